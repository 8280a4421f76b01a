"""The Dask engine: units of trials, and passes over partitions, on the workers of a ``distributed`` cluster.

The problem is made by a task from bytes that the scheduler keeps. So it reaches workers that join later,
and it is made again when the worker that held it dies; scattered data would be lost with the last replica.
Units and passes depend on it, are idempotent, and are run again by the scheduler when their worker is lost.
What is left to do here: to submit again what the scheduler gave up after several deaths, to notice that the
scheduler itself is gone, and to follow the number of workers.

A cluster may fall silent at any call. So whatever waits for an answer waits in a thread of its own
(``Question``), and the one that looks at the clock and hears Ctrl-C never waits for longer than a heartbeat.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from typing import Any, Self

import dask
import numpy as np
from distributed import Client, Future, KilledWorker, get_client
from distributed.comm import CommClosedError
from distributed.protocol.pickle import dumps, loads
from joblib import cpu_count

from lptml.engines._blocks import Block, Layout, PointTable
from lptml.engines._passes import Part, Task
from lptml.engines._question import Question
from lptml.engines._readers import MemoryPart
from lptml.engines._worker import on_one_core, pass_on_one_core
from lptml.engines.errors import EngineLost, PartitionError
from lptml.search.trial import SearchProblem, Unit, UnitResult

_HEARTBEAT = 0.05  # seconds between looks at the clock, at Ctrl-C and at the connection
_DEATHS = 20  # tasks given up by the scheduler before the engine gives up too: something kills every worker
_RETRIES = 3  # of a task that raises: memory or a disk may be short for a moment
_WORKERS_SECONDS = 1.0  # between two looks at how many workers there are
_PASS_TASKS = 256  # partitions handed to the scheduler at a time
_START_SECONDS = 120.0  # for a cluster to start, or for a scheduler to answer the first question
_DESERTED_SECONDS = 300.0  # without any worker, before a search or pass gives up waiting for one
_FAREWELL_SECONDS = 2.0  # for a cluster to hear that something is no longer wanted

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

    def __deepcopy__(self, memo: object) -> Self:
        return self  # a handle on a cluster, so that scikit-learn can clone estimators that have it

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
                client = _start_cluster()
        weakref.finalize(self, _close, client)
        return client

    @contextmanager
    def open(self, problem: SearchProblem) -> Iterator[DaskSession]:
        """See ``search.engine.Engine``."""
        client = self.client
        shared = _share(client, dumps(problem), _make_problem)
        try:
            yield DaskSession(client, shared)
        finally:
            shared.release()  # sends, but waits for nothing

    def mapper(self) -> DaskMapper:
        """Passes over partitions on this engine's workers."""
        return DaskMapper(self)


class DaskSession:
    """A problem on the workers of a cluster."""

    unit_seconds = 0.25

    def __init__(self, client: Client, problem: Future) -> None:
        self._client = client
        self._problem = problem
        self._threads: dict[str | None, int] = {}  # of the workers there are, by address
        self._copies: dict[str | None, Future] = {}  # the problem, on each of them
        self._counted_at = -np.inf
        self._asked: Question | None = None  # how many threads each worker has

    @property
    def workers(self) -> int:
        """How many units can run now; workers may come and go."""
        if self._asked is None and time.monotonic() - self._counted_at > _WORKERS_SECONDS:
            self._asked = Question(self._client.nthreads)
        first = self._counted_at == -np.inf
        if self._asked is not None and self._asked.answered(_START_SECONDS if first else 0.0):
            self._threads = _asked(self._client, self._asked.answer) or {None: 1}
            self._copies = {at: self._copies.get(at) or self._copy(at) for at in self._threads}
            self._counted_at, self._asked = time.monotonic(), None
        elif first:
            raise EngineLost(_silent(self._client))
        return sum(self._threads.values())

    def _copy(self, address: str | None) -> Future:
        """The problem on a worker, or elsewhere once that is gone.

        Dask sends a task to a worker that holds what it depends on. With one problem for all, that is one
        worker for all, and the others wait until they may steal: half a second of a search of three.
        """
        if address is None:
            return self._problem
        where = {"workers": [address], "allow_other_workers": True}
        options = {"key": _key(_itself), "retries": _RETRIES, "pure": False}
        return _asked(self._client, lambda: self._client.submit(_itself, self._problem, **where, **options))

    def run(self, units: Iterable[Unit]) -> Iterator[UnitResult | None]:
        """See ``search.engine.Session``."""
        waiting = iter(units)
        flight = _Flight(self._client)
        try:
            while True:
                while len(flight) < 2 * self.workers:  # one running, one ready
                    unit = next(waiting, None)
                    if unit is None:
                        break
                    worker = min(self._copies, key=lambda at: flight.count(at) / self._threads[at])
                    flight.submit(worker, on_one_core, self._copies[worker], unit)
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
        self._table: tuple[Callable[[], PointTable], Future] | None = None

    def map(self, tasks: Sequence[tuple[Part, Task]], table: Callable[[], PointTable] | None) -> list[Any]:
        """See ``engines._partitions.Mapper``."""
        client = self._engine.client
        flight = _Flight(client)
        points = None if table is None else self._share(table)
        results: list[Any] = [None] * len(tasks)
        sent = 0
        try:
            while sent < len(tasks) or len(flight):
                while sent < len(tasks) and len(flight) < _PASS_TASKS:
                    flight.start(sent, partial(self._begin, client, *tasks[sent], points))
                    sent += 1
                landed = flight.land(_HEARTBEAT)
                if landed is not None:
                    results[landed[0]] = landed[1]
        finally:
            flight.abandon()
        return results

    def _begin(self, client: Client, part: Any, task: Task, points: Future | None) -> Future:
        options = {"retries": _RETRIES, "pure": False}
        if isinstance(part, DelayedPart):  # its rows are made by the graph that came with it, on a worker
            call = dask.delayed(_pass_over, pure=False)(part.rows, task, points)
            return client.compute(call, retries=_RETRIES)
        return client.submit(pass_on_one_core, part, task, points, key=_key(pass_on_one_core), **options)

    def _share(self, table: Callable[[], PointTable]) -> Future:
        if self._table is None or self._table[0] is not table:
            self._table = table, _share(self._engine.client, dumps(table), _make_table)
        return self._table[1]


@dataclass(frozen=True, eq=False)
class DelayedPart:
    """A partition of a Dask collection: a task graph that makes its rows, or arrays of columns."""

    rows: Any

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        return MemoryPart(self.rows.compute()).blocks(layout, table)


def frame_parts(frame: Any) -> list[DelayedPart]:
    """The partitions of a Dask DataFrame."""
    return [DelayedPart(rows) for rows in frame.to_delayed()]


def array_parts(V: Any, y: Any, weight: Any = None) -> list[DelayedPart]:
    """The partitions of Dask Arrays: difference vectors (n, d), labels and weights (n,)."""
    V = V.rechunk({1: -1})
    columns = [V.to_delayed().ravel()]
    for name, other in (("y", y), ("weight", weight)):
        if other is None:
            continue
        if len(other.chunks[0]) != len(V.chunks[0]) or not _same_chunks(other.chunks[0], V.chunks[0]):
            try:
                other = other.rechunk((V.chunks[0],))
            except ValueError as error:
                raise PartitionError(f"{name} does not have the chunks of the vectors: {error}") from None
        columns.append(other.to_delayed().ravel())
    make = dask.delayed(_columns)
    return [DelayedPart(make(*blocks)) for blocks in zip(*columns, strict=True)]


def _same_chunks(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(x == y or (x != x and y != y) for x, y in zip(a, b))  # unknown sizes are NaN


def _columns(V: Any, y: Any, weight: Any = None) -> dict[str, Any]:
    if len(V) != len(y):
        raise PartitionError(f"a chunk has {len(V)} vectors and {len(y)} labels")
    columns = {f"v{k}": V[:, k] for k in range(V.shape[1])} | {"label": y}
    return columns if weight is None else columns | {"weight": weight}


def _pass_over(rows: Any, task: Task, table: PointTable | None) -> Any:
    return pass_on_one_core(MemoryPart(rows), task, table)


class _Flight:
    """Tasks that are out, and what came back."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._out: dict[str, tuple[Any, Future, Callable[[], Future]]] = {}
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._fetched: tuple[Future, Question] | None = None  # a result on its way
        self._deaths = 0
        self._heard_at = time.monotonic()
        self._deserted: Question | None = None

    def __len__(self) -> int:
        return len(self._out)

    def count(self, tag: Hashable) -> int:
        """How many of the tasks that are out have this tag."""
        return sum(each == tag for each, _, _ in self._out.values())

    def submit(self, tag: Hashable, function: Callable[..., Any], *arguments: Any) -> None:
        """Send a task; ``tag`` comes back with its result."""
        client, options = self._client, {"retries": _RETRIES, "pure": False}
        self.start(tag, lambda: client.submit(function, *arguments, key=_key(function), **options))

    def start(self, tag: Hashable, begin: Callable[[], Future]) -> None:
        """Send the task that ``begin`` sends, now and after a death."""
        future = _asked(self._client, begin)
        self._out[future.key] = tag, future, begin
        future.add_done_callback(self._done.put)

    def land(self, timeout: float) -> tuple[Any, Any] | None:
        """Tag and result of a task that has ended; None when none does within ``timeout`` seconds."""
        if self._fetched is None:
            try:
                future = self._done.get(timeout=timeout)
            except queue.Empty:
                self._check()
                return None
            if future.key not in self._out:
                return None
            # Its worker may have died since: then the result is on its way for as long as it takes anew.
            self._fetched = future, Question(partial(_outcome, future))
        future, fetched = self._fetched
        if not fetched.answered(timeout):
            self._check()
            return None
        self._fetched, self._heard_at = None, time.monotonic()
        tag, _, begin = self._out.pop(future.key)
        result, error = _asked(self._client, fetched.answer)
        if error is None:
            return tag, result
        if not isinstance(error, KilledWorker):
            raise error
        self._deaths += 1
        if self._deaths > _DEATHS:
            raise EngineLost(f"workers of the Dask cluster die again and again: {error}") from error
        logger.warning("workers died under a task; running it again (%s)", error)
        self.start(tag, begin)
        return None

    def _check(self) -> None:
        """EngineLost when the scheduler is gone, or there has been no worker for long."""
        _check(self._client)
        if time.monotonic() - self._heard_at < _DESERTED_SECONDS:
            return
        if self._deserted is None:
            self._deserted = Question(self._client.nthreads)
        if self._deserted.answered(0.0):
            if not _asked(self._client, self._deserted.answer):
                raise EngineLost(_silent(self._client))
            self._deserted, self._heard_at = None, time.monotonic()  # somebody works, if slowly

    def abandon(self) -> None:
        """Forget what has not ended."""
        futures = [future for _, future, _ in self._out.values()]
        self._out.clear()
        if futures and self._client.status == "running":
            Question(partial(self._client.cancel, futures, force=True)).answered(_FAREWELL_SECONDS)


def _outcome(future: Future) -> tuple[Any, BaseException | None]:
    """The result of a task that has ended, or what it raised."""
    if future.status == "error":
        return None, future.exception()
    return future.result(), None


def _start_cluster() -> Client:
    """A cluster of processes on this machine; Ctrl-C is heard while it starts, but not by its processes."""
    resource_tracker.ensure_running()  # the thread in which it starts no longer blocks Ctrl-C
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "set_as_default": False}
    question = Question(partial(Client, n_workers=cpu_count(), **options))
    ready = False
    try:
        ready = question.answered(_START_SECONDS)
    finally:
        if not ready:  # whenever it comes, it is not wanted any more
            Question(lambda: _close(question.answer()) if question.answered(_START_SECONDS) else None)
    if not ready:
        raise EngineLost(f"no Dask cluster has started on this machine within {_START_SECONDS:.0f} s")
    try:
        return question.answer()
    except (OSError, TimeoutError, RuntimeError) as error:
        raise EngineLost(f"no Dask cluster could be started on this machine: {error}") from error


def _close(client: Client) -> None:
    """Leave a cluster; one that is not there any more does not keep the program from ending."""
    Question(client.close).answered(5 * _FAREWELL_SECONDS)


def _share(client: Client, blob: bytes, make: Callable[[bytes], Any]) -> Future:
    """An object on the cluster that outlives any worker: a task makes it from bytes kept by the scheduler."""
    key = _key(make)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        return _asked(client, lambda: client.submit(make, blob, key=key, retries=_RETRIES, pure=False))


def _key(function: Callable[..., Any]) -> str:
    return f"lptml-{function.__name__.lstrip('_')}-{uuid.uuid4().hex}"


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


def _silent(client: Client) -> str:
    return (
        f"the Dask cluster at {getattr(client.scheduler, 'address', '?')} has no worker, or does not answer"
    )


def _itself(problem: SearchProblem) -> SearchProblem:
    return problem


def _make_problem(blob: bytes) -> SearchProblem:
    problem: SearchProblem = loads(blob)
    return problem


def _make_table(blob: bytes) -> PointTable:
    table: PointTable = loads(blob)()
    return table
