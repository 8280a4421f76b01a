"""Call a function in a process of its own, while this one goes on."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")


@contextlib.contextmanager
def beside(function: Callable[..., T], *arguments: Any) -> Iterator[Callable[[], T]]:
    """Start a function of a module in a new process; the block gets a callable that waits for its result.

    For what threads cannot do at the same time, such as importing. The process hears no Ctrl-C and ends with
    the block. If it fails, the function is called here, where its error is raised as any other.

    Examples
    --------
    >>> from math import factorial
    >>> from lptml.cli.beside import beside
    >>> with beside(factorial, 5) as result:
    ...     result()
    120
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments), daemon=True)
    with _interrupts_wait():
        process.start()
    sender.close()

    def result() -> T:
        try:
            return receiver.recv()
        except EOFError:
            return function(*arguments)

    try:
        yield result
    finally:
        process.kill()
        process.join()
        receiver.close()


def _answer(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with contextlib.suppress(Exception):
        sender.send(function(*arguments))


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold Ctrl-C back; a process that is started meanwhile never hears it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it lets interrupts through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
