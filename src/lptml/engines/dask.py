"""The Dask engine: units of trials, and passes over partitions, on the workers of a ``distributed`` cluster.

The problem is made by a task from bytes that the scheduler keeps. So it reaches workers that join later,
and it is made again when the worker that held it dies; scattered data would be lost with the last replica.
Units and passes depend on it, are idempotent, and are run again by the scheduler when their worker is lost.
What is left to do here: to submit again what the scheduler gave up after several deaths, to notice that the
scheduler itself is gone, and to follow the number of workers.
"""

from __future__ import annotations

import logging
import pickle
import queue
import time
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import cloudpickle
import dask
from distributed import Client, Future, KilledWorker, get_client
from distributed.comm import CommClosedError
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from lptml._trial import Problem, run_unit
from lptml.engines._blocks import Table
from lptml.engines._passes import Part, Task
from lptml.engines.base import Unit, UnitResult
from lptml.engines.errors import EngineLost

_HEARTBEAT = 0.05  # seconds between looks at the clock, at Ctrl-C and at the connection
_DEATHS = 20  # tasks given up by the scheduler before the engine gives up too: something kills every worker
_RETRIES = 3  # of a task that raises: memory or a disk may be short for a moment
_WORKERS_SECONDS = 1.0  # between two looks at how many workers there are
_PASS_TASKS = 256  # partitions handed to the scheduler at a time

logger = logging.getLogger(__name__)


class DaskEngine:
    """Trials on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, the address of a scheduler ("tcp://host:8786"), or None: the client that is current, else a
        cluster of processes on this machine that ends with the engine.
    """

    name = "dask"

    def __init__(self, client: Client | str | None = None) -> None:
        self._given = client
        self._made: Client | None = None

    @property
    def client(self) -> Client:
        """The client, connected when it is first needed."""
        if isinstance(self._given, Client):
            return self._given
        if self._made is None:
            self._made = self._connect()
        return self._made

    def _connect(self) -> Client:
        if self._given is not None:
            try:
                client = Client(self._given, set_as_default=False)
            except (OSError, TimeoutError) as error:
                raise EngineLost(f"there is no Dask scheduler at {self._given}: {error}") from error
        else:
            try:
                return get_client()
            except ValueError:
                client = Client(
                    n_workers=cpu_count(), threads_per_worker=1, dashboard_address=None, set_as_default=False
                )
        weakref.finalize(self, client.close)
        return client

    @contextmanager
    def open(self, problem: Problem) -> Iterator[DaskSession]:
        """See ``engines.base.Engine``."""
        client = self.client
        shared = _share(client, pickle.dumps(problem, protocol=5), _make_problem)
        try:
            yield DaskSession(client, shared)
        finally:
            shared.release()

    def mapper(self) -> DaskMapper:
        """Passes over partitions on this engine's workers."""
        return DaskMapper(self)


class DaskSession:
    """A problem on the workers of a cluster."""

    unit_seconds = 0.1

    def __init__(self, client: Client, problem: Future) -> None:
        self._client = client
        self._problem = problem
        self._counted_at = -_WORKERS_SECONDS
        self._workers = 1

    @property
    def workers(self) -> int:
        """How many units can run now; workers may come and go."""
        if time.monotonic() - self._counted_at > _WORKERS_SECONDS:
            self._workers = max(1, sum(_asked(self._client, self._client.nthreads).values()))
            self._counted_at = time.monotonic()
        return self._workers

    def run(self, units: Iterable[Unit]) -> Iterator[UnitResult | None]:
        """See ``engines.base.Session``."""
        waiting = iter(units)
        flight = _Flight(self._client)
        try:
            while True:
                while len(flight) < 2 * self.workers:  # one running, one ready
                    unit = next(waiting, None)
                    if unit is None:
                        break
                    flight.submit(unit.first, _run_unit, self._problem, unit)
                if not len(flight):
                    return
                landed = flight.land(_HEARTBEAT)
                yield None if landed is None else landed[1]
        finally:
            flight.abandon()


class DaskMapper:
    """Passes over partitions, each a task."""

    def __init__(self, engine: DaskEngine) -> None:
        self._engine = engine
        self._table: tuple[Callable[[], Table], Future] | None = None

    def map(self, tasks: Sequence[tuple[Part, Task]], table: Callable[[], Table] | None) -> list[Any]:
        """See ``engines.partitioned.Mapper``."""
        flight = _Flight(self._engine.client)
        points = None if table is None else self._share(table)
        results: list[Any] = [None] * len(tasks)
        sent = 0
        try:
            while sent < len(tasks) or len(flight):
                while sent < len(tasks) and len(flight) < _PASS_TASKS:
                    part, task = tasks[sent]
                    flight.submit(sent, _run_task, part, task, points)
                    sent += 1
                landed = flight.land(_HEARTBEAT)
                if landed is not None:
                    results[landed[0]] = landed[1]
        finally:
            flight.abandon()
        return results

    def _share(self, table: Callable[[], Table]) -> Future:
        if self._table is None or self._table[0] is not table:
            self._table = table, _share(self._engine.client, cloudpickle.dumps(table), _make_table)
        return self._table[1]


class _Flight:
    """Tasks that are out, and what came back."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._out: dict[str, tuple[Any, Future, tuple[Any, ...]]] = {}
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._deaths = 0

    def __len__(self) -> int:
        return len(self._out)

    def submit(self, tag: Hashable, function: Callable[..., Any], *arguments: Any) -> None:
        """Send a task; ``tag`` comes back with its result."""
        key = _key(function)
        future = _asked(
            self._client,
            lambda: self._client.submit(function, *arguments, key=key, retries=_RETRIES, pure=False),
        )
        self._out[key] = tag, future, (function, *arguments)
        future.add_done_callback(self._done.put)

    def land(self, timeout: float) -> tuple[Any, Any] | None:
        """Tag and result of a task that has ended; None when none does within ``timeout`` seconds."""
        try:
            future = self._done.get(timeout=timeout)
        except queue.Empty:
            _check(self._client)
            return None
        if future.key not in self._out:
            return None
        tag, _, call = self._out.pop(future.key)
        try:
            return tag, _asked(self._client, future.result)
        except KilledWorker as error:
            self._deaths += 1
            if self._deaths > _DEATHS:
                raise EngineLost(f"workers of the Dask cluster die again and again: {error}") from error
            logger.warning("workers died under a task; running it again (%s)", error)
            self.submit(tag, *call)
            return None

    def abandon(self) -> None:
        """Forget what has not ended."""
        futures = [future for _, future, _ in self._out.values()]
        self._out.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)


def _share(client: Client, blob: bytes, make: Callable[[bytes], Any]) -> Future:
    """An object on the cluster that outlives any worker: a task makes it from bytes kept by the scheduler."""
    key = _key(make)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        return _asked(client, lambda: client.submit(make, blob, key=key, retries=_RETRIES, pure=False))


def _key(function: Callable[..., Any]) -> str:
    return f"lptml{function.__name__}-{uuid.uuid4().hex}"


def _asked(client: Client, question: Callable[[], Any]) -> Any:
    """The answer of the cluster, or EngineLost when there is nobody to ask."""
    from asyncio import CancelledError as AsyncCancelled
    from concurrent.futures import CancelledError

    try:
        return question()
    except (CancelledError, AsyncCancelled, CommClosedError, ConnectionError) as error:
        raise EngineLost(_gone(client)) from error
    except (OSError, TimeoutError, RuntimeError):
        _check(client)
        raise


def _check(client: Client) -> None:
    if client.status != "running":
        raise EngineLost(_gone(client))


def _gone(client: Client) -> str:
    address = getattr(client.scheduler, "address", None) or "?"
    return (
        f"the Dask scheduler at {address} went away. A checkpoint holds what was found: "
        "the same call with the same checkpoint goes on from there, on any engine"
    )


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


def _run_unit(problem: Problem, unit: Unit) -> UnitResult:
    with _threadpools().limit(limits=1, user_api="blas"):
        return run_unit(problem, unit)


def _run_task(part: Part, task: Task, table: Table | None) -> Any:
    with _threadpools().limit(limits=1, user_api="blas"):
        return task.run(part, table)


def _make_problem(blob: bytes) -> Problem:
    problem: Problem = pickle.loads(blob)
    return problem


def _make_table(blob: bytes) -> Table:
    table: Table = cloudpickle.loads(blob)()
    return table
