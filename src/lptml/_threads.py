"""How many threads BLAS may use: one, where the matrices are small or the work is shared out by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # it looks through all loaded libraries, once

    return ThreadpoolController()


def single_threaded(condition: bool = True) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread, if the condition holds."""
    return _controller().limit(limits=1, user_api="blas") if condition else nullcontext()


def share_out(work: Callable[[_T], _R], parts: Sequence[_T]) -> list[_R]:
    """The results of ``work`` on every part, in their order, by one thread a processor.

    BLAS keeps to one thread meanwhile: its own threads would wait for each other at every small product.
    """
    if len(parts) == 1:
        return [work(parts[0])]
    workers = min(len(parts), _processors())
    with single_threaded():
        if workers == 1:
            return [work(part) for part in parts]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, parts))


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
