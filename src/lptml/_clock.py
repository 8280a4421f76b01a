"""A deadline for steps that have nothing to show half-way.

A search or a descent that runs out of time returns the best so far, and is given its seconds as an argument.
What surrounds it (judging labels, a fold of a cross-validation, an exact solution) is whole or worth nothing:
it runs inside ``until``, its loops ``look`` at the clock, and who asked for it does without it when
``OutOfTime`` is raised.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["OutOfTime", "look", "until"]


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
    lptml._clock.OutOfTime
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
