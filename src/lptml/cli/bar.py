"""One progress bar for a whole command, from its first second, with the time left; on a terminal only.

A command says once which stages it has and roughly how long each takes (:func:`working`); what happens inside
a stage, a cross-validation or a search, moves the same bar (:func:`progress`, :class:`_Inner`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import click

from lptml import _progress

Advance = Callable[[int, int | None], None]
_INNER = 0.8  # of what is left of a stage, the part that one display fills; there may be more to come


class Bar:
    """The bar on the terminal.

    Parameters
    ----------
    stages : dict
        Name of each stage and its share of the time, in any unit.
    """

    def __init__(self, stages: dict[str, float]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        total = sum(stages.values())
        self.shares = {name: share / total for name, share in stages.items()}
        self.before = 0.0  # the shares of the stages that ended
        self.stage, self.share, self.inside = "", 0.0, 0.0
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self.rich = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.rich.add_task("starting", total=1.0)

    def enter(self, stage: str) -> None:
        """Begin a stage."""
        self.stage, self.inside = stage, 0.0
        self.share = self.shares.pop(stage, 0.0)
        self.show(0.0)

    def leave(self) -> None:
        """End the stage."""
        self.before += self.share
        self.share = 0.0
        self.show(0.0)

    def show(self, inside: float) -> None:
        """How much of the stage is done."""
        done = min(1.0, self.before + self.share * inside)
        self.rich.update(self.task, completed=done, description=self.stage)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        with self.rich._lock:
            self.rich.console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Inner:
    """What a learner shows of its work: a part of the stage it is in."""

    def __init__(self, bar: Bar, total: int) -> None:
        self.bar, self.total = bar, max(1, total)
        self.start = bar.inside
        self.end = bar.inside + _INNER * (1.0 - bar.inside)

    def __enter__(self) -> _Inner:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.inside = self.end
        self.bar.show(self.end)

    def show(self, done: int, text: str) -> None:
        """The place of the work among the whole."""
        self.bar.show(self.start + (self.end - self.start) * min(1.0, done / self.total))


_current: Bar | None = None


@contextlib.contextmanager
def working(quiet: bool, **stages: float) -> Iterator[None]:
    """One bar for all stages of a command; their names may hold underscores for spaces."""
    global _current
    if _current is not None or quiet or not sys.stderr.isatty():
        yield
        return
    try:
        bar = Bar({name.replace("_", " "): share for name, share in stages.items()})
    except ImportError:
        yield
        return

    def inner(total: int, unit: str) -> _progress.Display:
        return _Inner(bar, total)

    _current = bar
    try:
        with bar.rich, _progress.shown_by(inner):
            yield
    finally:
        _current = None


@contextlib.contextmanager
def progress(stage: str, *, quiet: bool) -> Iterator[Advance]:
    """A stage of the bar, or a bar of its own.  Yields ``advance(done, total)``."""
    with working(quiet, **{stage: 1.0}):
        bar = _current
        if bar is None:
            yield lambda done, total: None
            return
        bar.enter(stage)
        try:
            yield lambda done, total: bar.show(done / total if total else 0.0)
        finally:
            bar.leave()


def say(text: str) -> None:
    """A line on standard error, above the bar if there is one."""
    if _current is not None:
        _current.say(text)
    else:
        click.echo(text, err=True)


def shows() -> bool:
    """Whether there is a bar."""
    return _current is not None
