"""Waiting for a cluster without being at its mercy."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

_SLICE = (
    0.05  # seconds between two looks for Ctrl-C, which some systems do not deliver to a thread that waits
)


class Question:
    """A call to the cluster, made in a thread of its own so that nobody has to wait for the answer.

    Ctrl-C is blocked there, and so in the processes that the call starts: it goes to the whole group of
    processes, and the driver is the one to answer it.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._heard: tuple[Any, BaseException | None] | None = None
        threading.Thread(target=self._ask, name="lptml-dask", daemon=True).start()

    def _ask(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._answer.put((self._call(), None))
        except BaseException as error:  # raised where the answer is taken
            self._answer.put((None, error))

    def answered(self, seconds: float) -> bool:
        """Whether the answer comes within these seconds; Ctrl-C is heard meanwhile."""
        deadline = time.monotonic() + seconds
        while self._heard is None:
            left = deadline - time.monotonic()
            try:
                self._heard = self._answer.get(timeout=min(max(left, 1e-3), _SLICE))
            except queue.Empty:
                if left <= 0:
                    return False
        return True

    def answer(self) -> Any:
        """The answer, or what was raised in its place; call it when it is ``answered``."""
        assert self._heard is not None
        value, error = self._heard
        if error is not None:
            raise error
        return value
