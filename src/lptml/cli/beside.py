"""Call a function in a process of its own, while this one goes on."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import FrameType
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

    def result() -> T:
        try:
            return receiver.recv()
        except EOFError:
            return function(*arguments)

    try:
        with _interrupts_wait():
            process.start()
        sender.close()
        yield result
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        receiver.close()


def _answer(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with contextlib.suppress(Exception):
        sender.send(function(*arguments))


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended; a process that is started in it never hears it.

    The mask is what that process inherits. It does not keep Ctrl-C from Python, which hears it through any of
    its threads, so the handler waits too: an exception amid the start would leave half a process behind.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it lets interrupts through again when it starts
    came: list[tuple[int, FrameType | None]] = []
    handler = None
    if threading.current_thread() is threading.main_thread():  # elsewhere there is no handler to replace
        handler = signal.signal(signal.SIGINT, lambda *interrupt: came.append(interrupt))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if came and callable(handler):
        handler(*came[0])
