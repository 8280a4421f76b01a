"""What ends a step before it is done: a deadline, or Ctrl-C.

A search or a descent that runs out of time returns the best so far, and is given its seconds as an argument.
What surrounds it (judging labels, a fold of a cross-validation, an exact solution) is whole or worth nothing:
it runs inside ``until``, its loops ``look`` at the clock, and who asked for it does without it when
``OutOfTime`` is raised. Where a step may not be cut in half, ``Interrupts`` puts Ctrl-C off until it ends.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any


class OutOfTime(Exception):
    """A step was given up; nothing of it is left."""


_ends: ContextVar[tuple[float, threading.Event | None]] = ContextVar("_ends", default=(float("inf"), None))


@contextmanager
def until(deadline: float | None, stop: threading.Event | None = None) -> Iterator[None]:
    """Let ``look`` raise after this ``time.monotonic()``, or once ``stop`` is set.

    Examples
    --------
    >>> with until(0.0):
    ...     look()
    Traceback (most recent call last):
    lptml._limits.OutOfTime
    """
    before = _ends.get()
    earliest = before[0] if deadline is None else min(deadline, before[0])
    token = _ends.set((earliest, before[1] if stop is None else stop))
    try:
        yield
    finally:
        _ends.reset(token)


def look() -> None:
    """Raise OutOfTime if the time of the step is over."""
    deadline, stop = _ends.get()
    if (stop is not None and stop.is_set()) or time.monotonic() > deadline:
        raise OutOfTime


class Interrupts:
    """The first Ctrl-C sets ``seen``, so that no step is cut in half; the second one raises.

    Python delivers signals to the main thread, so elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.seen = False
        self._previous: Any = None

    def __enter__(self) -> Interrupts:
        heard = threading.current_thread() is threading.main_thread()
        if heard and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
