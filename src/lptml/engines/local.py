"""The local engine: trials on the cores of this machine.

Threads by default: the compiled kernels release the interpreter lock, the constraints are shared, and nothing
is copied. ``backend="processes"`` runs joblib's loky workers instead, for machines with so many cores that
what little of a trial is plain Python would make threads wait for each other. Each worker process gets the
problem once; a worker that dies is replaced and its units are run again.

Even a single job runs off the main thread, so that Ctrl-C and time limits are heard while a kernel computes.
The linear algebra library is held to one thread for each worker: the cores are taken already.
"""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from lptml._threads import single_threaded
from lptml.search.trial import SearchProblem, Unit, UnitResult, run_unit

_HEARTBEAT = 0.05  # seconds between looks at the clock and at Ctrl-C
_DEATHS = 20  # workers lost before the search gives up: then something kills every worker

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalEngine:
    """Trials on this machine's cores.

    Parameters
    ----------
    n_jobs : int or None
        How many trials run at the same time, as in joblib: None means 1 (or what ``joblib.parallel_config``
        says), -1 all cores.
    backend : "threads" or "processes"
    """

    n_jobs: int | None = None
    backend: str = "threads"
    name: str = "local"

    def __post_init__(self) -> None:
        if self.backend not in ("threads", "processes"):
            raise ValueError(f"backend must be 'threads' or 'processes', got {self.backend!r}")
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; use None or 1 for a single job, -1 for all cores")

    @contextmanager
    def open(self, problem: SearchProblem) -> Iterator[LocalSession]:
        workers = joblib.effective_n_jobs(self.n_jobs)
        with single_threaded():
            if self.backend == "threads":
                yield LocalSession(workers, lambda: _Threads(problem, workers))
            else:
                yield LocalSession(workers, lambda: _Processes(problem, workers))


class LocalSession:
    """A problem shared with the threads, or sent to the processes, of this machine."""

    unit_seconds = 0.1

    def __init__(self, workers: int, start: Callable[[], _Pool]) -> None:
        self.workers = workers
        self._start = start

    def run(self, units: Iterable[Unit]) -> Generator[UnitResult | None, None, None]:
        """See ``search.engine.Session``."""
        waiting = iter(units)
        running: dict[Future[UnitResult], Unit] = {}
        again: list[Unit] = []  # units of workers that died
        deaths = 0
        pool = self._start()
        try:
            while True:
                while len(running) < self.workers + 1:  # one ahead, so that no worker waits for the driver
                    unit = again.pop() if again else next(waiting, None)
                    if unit is None:
                        break
                    running[pool.submit(unit)] = unit
                if not running:
                    return
                done = wait(running, timeout=_HEARTBEAT, return_when=FIRST_COMPLETED).done
                if not done:
                    yield None
                for future in done:
                    unit = running.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        again = [unit, *running.values()]
                        running.clear()
                        deaths += 1
                        if deaths > _DEATHS:
                            raise
                        logger.warning("a worker process died; running %d unit(s) again", len(again))
                        pool.close()
                        pool = self._start()
                        break
                    yield result
        finally:
            pool.close()


class _Pool(Protocol):
    """Threads or processes that run units."""

    def submit(self, unit: Unit) -> Future[UnitResult]: ...

    def close(self) -> None: ...


class _Threads:
    def __init__(self, problem: SearchProblem, workers: int) -> None:
        self.problem = problem
        self.stop = threading.Event()
        self.executor = ThreadPoolExecutor(workers, thread_name_prefix="lptml")

    def submit(self, unit: Unit) -> Future[UnitResult]:
        return self.executor.submit(run_unit, self.problem, unit, self.stop)

    def close(self) -> None:
        self.stop.set()
        self.executor.shutdown(wait=False, cancel_futures=True)


class _Processes:
    def __init__(self, problem: SearchProblem, workers: int) -> None:
        # Through a file, because workers then share one copy in the page cache.
        self.folder = tempfile.TemporaryDirectory(prefix="lptml-")
        path = os.path.join(self.folder.name, "problem")
        joblib.dump(problem, path)
        self.executor: Any = get_reusable_executor(
            max_workers=workers, initializer=_receive, initargs=(path,), reuse=False
        )

    def submit(self, unit: Unit) -> Future[UnitResult]:
        # Workers start at the first unit. They inherit a blocked SIGINT: Ctrl-C goes to the whole group of
        # processes, and the driver is the one to answer it.
        before = (
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            if hasattr(signal, "SIG_BLOCK")
            else None
        )
        try:
            future: Future[UnitResult] = self.executor.submit(_run_received, unit)
        finally:
            if before is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return future

    def close(self) -> None:
        self.executor.shutdown(wait=True, kill_workers=True)
        self.folder.cleanup()


_received: list[SearchProblem] = []  # in a worker process: the problem it was started with


def _receive(path: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _received[:] = [joblib.load(path, mmap_mode="r")]


def _run_received(unit: Unit) -> UnitResult:
    with single_threaded():
        return run_unit(_received[0], unit)
