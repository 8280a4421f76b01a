"""Showing how long work gets on: a bar by tqdm or rich where one is installed, else log lines."""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol

logger = logging.getLogger("lptml.search")

_LOG_SECONDS = 5.0


class Display(Protocol):
    """Something that shows how much is done and a word on the best so far."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, done: int, text: str) -> None: ...


_factory: Callable[[int, str], Display] | None = None


@contextmanager
def shown_by(factory: Callable[[int, str], Display]) -> Iterator[None]:
    """Let displays be what ``factory(total, unit)`` makes, for a program that shows progress itself."""
    global _factory
    before, _factory = _factory, factory
    try:
        yield
    finally:
        _factory = before


def make_display(verbose: int, total: int, unit: str = "trial") -> Display:
    """A display for ``total`` trials (or other units); nothing is shown when ``verbose`` is 0."""
    if not verbose:
        return _Silent()
    if _factory is not None:
        return _factory(total, unit)
    if importlib.util.find_spec("tqdm") is not None:
        return _TqdmBar(total, unit)
    if importlib.util.find_spec("rich") is not None:
        return _RichBar(total, unit)
    return _LogLines(total, unit)


class _Silent:
    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, done: int, text: str) -> None:
        pass


class _LogLines(_Silent):
    def __init__(self, total: int, unit: str) -> None:
        self.total, self.unit = total, unit
        self.last = time.monotonic()

    def __enter__(self) -> _LogLines:
        return self

    def show(self, done: int, text: str) -> None:
        now = time.monotonic()
        if now - self.last >= _LOG_SECONDS or done >= self.total:
            self.last = now
            logger.info("%d of %d %ss, %s", done, self.total, self.unit, text)


class _TqdmBar:
    def __init__(self, total: int, unit: str) -> None:
        from tqdm import tqdm

        self.bar: Any = tqdm(total=total, unit=unit)

    def __enter__(self) -> _TqdmBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def show(self, done: int, text: str) -> None:
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update(done - self.bar.n)


class _RichBar:
    def __init__(self, total: int, unit: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True))  # standard output is for results
        self.task = self.bar.add_task(f"{unit}s", total=total)

    def __enter__(self) -> _RichBar:
        self.bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.__exit__(kind, error, trace)

    def show(self, done: int, text: str) -> None:
        self.bar.update(self.task, completed=done, description=text)
