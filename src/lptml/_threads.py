"""How many threads BLAS may use: one, where the matrices are small or the work is shared out by hand."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

SMALL = 2000  # points up to which a fit is quicker with one thread
_T = TypeVar("_T")
_R = TypeVar("_R")


@cache
def _controller() -> Any:
    import_module("scipy.linalg")  # SciPy has a BLAS of its own, which must be loaded to be found
    from threadpoolctl import ThreadpoolController  # it looks through all loaded libraries, once

    return ThreadpoolController()


class _OneThread(AbstractContextManager[None]):
    """The limit is the process's: the first thread to enter sets it, the last to leave takes it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(None, None, None)


_ONE_THREAD = _OneThread()


def single_threaded(condition: bool = True) -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread, if the condition holds.

    On products of a few hundred rows a second thread gains nothing; where other processes keep the machine
    busy, waiting for it takes ten times as long as the work.
    """
    return _ONE_THREAD if condition else nullcontext()


def share_out(work: Callable[[_T], _R], parts: Sequence[_T]) -> list[_R]:
    """The results of ``work`` on every part, in their order, by one thread for each processor.

    BLAS keeps to one thread meanwhile: its own threads would wait for each other at every small product.
    """
    if len(parts) == 1:
        return [work(parts[0])]
    workers = min(len(parts), processors())
    with single_threaded():
        if workers == 1:
            return [work(part) for part in parts]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, parts))


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
