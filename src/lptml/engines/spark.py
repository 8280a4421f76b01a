"""The Spark engine: units of trials, and passes over partitions, as jobs of a Spark application.

The problem is a broadcast variable: the driver keeps it, executors fetch it when they first need it and
again after they were lost. A unit is a job of one task, submitted by a thread of its own; a pass over
partitions is one job. Spark runs the tasks of lost executors again where its master is set up to
(``local[2,4]``, a standalone cluster, YARN, Kubernetes; not ``local[2]``); what it gives up is submitted
again here. Exceptions of a task travel back as values, so that they arrive as what they are.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import time
import traceback
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
from joblib import cpu_count
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import InheritableThread, SparkConf, SparkContext, StorageLevel, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lptml.engines._blocks import Block, Layout, PointTable
from lptml.engines._passes import Part, Task
from lptml.engines._readers import arrow_columns, slices
from lptml.engines._worker import on_one_core, pass_on_one_core
from lptml.engines.errors import EngineLost, PartitionError
from lptml.search.trial import SearchProblem, Unit, UnitResult

_HEARTBEAT = 0.05  # seconds between looks at the clock and at Ctrl-C
_DEATHS = 20  # jobs given up by Spark before the engine gives up too: something kills every executor
_RETRIES = 3  # of a task that raises: memory or a disk may be short for a moment
_WORKERS_SECONDS = 5.0  # between two looks at how many cores there are

logger = logging.getLogger(__name__)


class SparkEngine:
    """Trials on a Spark cluster.

    Parameters
    ----------
    session : SparkSession, str or None
        A session, the address of a master ("spark://host:7077", "yarn"), or None: the session that is
        active, else one made from Spark's own configuration, on this machine's cores if that names no
        master. A session made here ends with the engine.
    """

    name = "spark"

    def __init__(self, session: SparkSession | str | None = None) -> None:
        self._given = session
        self._made: SparkSession | None = None

    def __deepcopy__(self, memo: object) -> Self:
        return self  # a handle on a cluster, so that scikit-learn can clone estimators that have it

    @property
    def session(self) -> SparkSession:
        """The session, started when it is first needed."""
        if self._given is not None and not isinstance(self._given, str):
            return self._given
        if self._made is None:
            self._made = self._start()
        return self._made

    def _start(self) -> SparkSession:
        active = SparkSession.getActiveSession()
        if active is not None and self._given is None:
            return active
        master = self._given or SparkConf().get("spark.master", f"local[{cpu_count()},{_RETRIES + 1}]")
        if str(master).startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        session = (
            SparkSession.builder.appName("lptml")
            .master(master)
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        if active is None:
            weakref.finalize(self, session.stop)
        return session

    @contextmanager
    def open(self, problem: SearchProblem) -> Iterator[SparkTrials]:
        """See ``search.engine.Engine``."""
        context = self.session.sparkContext
        shared = _asked(context, lambda: context.broadcast(problem))
        try:
            yield SparkTrials(context, shared)
        finally:
            if _alive(context):
                shared.unpersist()

    def mapper(self) -> SparkMapper:
        """Passes over partitions on this engine's executors."""
        return SparkMapper(self)


class SparkTrials:
    """A problem on the executors of a cluster."""

    unit_seconds = 1.0

    def __init__(self, context: SparkContext, problem: Any) -> None:
        self._context = context
        self._problem = problem
        self._counted_at = -_WORKERS_SECONDS
        self._workers = 1

    @property
    def workers(self) -> int:
        """How many units can run now; executors may come and go."""
        if time.monotonic() - self._counted_at > _WORKERS_SECONDS:
            self._workers = max(1, int(_asked(self._context, lambda: self._context.defaultParallelism)))
            self._counted_at = time.monotonic()
        return self._workers

    def run(self, units: Iterable[Unit]) -> Iterator[UnitResult | None]:
        """See ``search.engine.Session``."""
        waiting = iter(units)
        group = f"lptml-{uuid.uuid4().hex}"
        flown: dict[Future[list[Any]], tuple[Unit, int]] = {}  # with the number of times it has raised
        deaths = _Deaths()
        try:
            while True:
                while len(flown) < self.workers + 1:  # one ahead
                    unit = next(waiting, None)
                    if unit is None:
                        break
                    flown[_in_background(self._job, group, unit)] = unit, 0
                if not flown:
                    return
                done = wait(flown, timeout=_HEARTBEAT, return_when=FIRST_COMPLETED).done
                if not done:
                    yield None
                for future in done:
                    unit, raised = flown.pop(future)
                    try:
                        [result] = future.result()
                    except (Py4JError, PySparkException, OSError) as error:
                        deaths.note(self._context, error)
                        flown[_in_background(self._job, group, unit)] = unit, raised
                        continue
                    if isinstance(result, Raised):
                        result.settle(raised)
                        flown[_in_background(self._job, group, unit)] = unit, raised + 1
                        continue
                    yield result
        finally:
            if flown and _alive(self._context):
                self._context.cancelJobGroup(group)

    def _job(self, group: str, unit: Unit) -> list[Any]:
        problem = self._problem
        self._context.setJobGroup(group, f"lptml: trials from {unit.first}", interruptOnCancel=True)
        one = self._context.parallelize([unit], 1)
        return one.map(lambda unit: guarded(on_one_core, problem.value, unit)).collect()


def _in_background(job: Callable[..., list[Any]], *arguments: Any) -> Future[list[Any]]:
    """Run a job in a thread that ends with the interpreter.

    The job of a cluster that went away may never return, and the threads of an executor are waited for at
    exit.
    """
    future: Future[list[Any]] = Future()

    def work() -> None:
        try:
            future.set_result(job(*arguments))
        except BaseException as error:
            future.set_exception(error)

    try:
        InheritableThread(target=work, daemon=True, name="lptml-spark").start()
    except (Py4JError, PySparkException, OSError) as error:
        future.set_exception(error)
    return future


class SparkMapper:
    """Passes over partitions that any executor can read, one job a pass."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self._table: tuple[Callable[[], PointTable], Any] | None = None

    def map(self, tasks: Sequence[tuple[Part, Task]], table: Callable[[], PointTable] | None) -> list[Any]:
        """See ``engines._partitions.Mapper``."""
        context = self._engine.session.sparkContext
        points = None if table is None else self._share(context, table)

        def run(pair: tuple[Part, Task]) -> Any:
            part, task = pair
            return guarded(pass_on_one_core, part, task, None if points is None else points.value)

        return insist(context, lambda: context.parallelize(tasks, len(tasks)).map(run).collect())

    def _share(self, context: SparkContext, table: Callable[[], PointTable]) -> Any:
        if self._table is None or self._table[0] is not table:
            self._table = table, _asked(context, lambda: context.broadcast(table()))
        return self._table[1]


@dataclass(frozen=True)
class FramePart:
    """A partition of a Spark DataFrame, by its number."""

    number: int

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        raise PartitionError("a partition of a Spark DataFrame can be read by its own session only")


@dataclass(frozen=True, eq=False)
class _BatchPart:
    """The rows of a partition as Spark hands them over."""

    batches: Iterator[Any]

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        for batch in self.batches:
            yield from slices(arrow_columns(batch, layout.columns), layout, table)


class FrameMapper:
    """Passes over the partitions of a DataFrame, which only its session can read.

    The rows are sorted by all their columns and kept (memory, then disk): a constraint's number, and with
    it the metric, does not depend on how Spark cut or shuffled them.
    """

    def __init__(self, frame: DataFrame, columns: Sequence[str]) -> None:
        self._frame = frame.select(*columns).orderBy(*columns).persist(StorageLevel.MEMORY_AND_DISK)
        self._context = frame.sparkSession.sparkContext
        self._table: tuple[Callable[[], PointTable], Any] | None = None
        insist(self._context, lambda: [self._frame.count()])
        self.parts = [FramePart(k) for k in range(self._frame.rdd.getNumPartitions())]
        weakref.finalize(self, _unpersist, self._context, self._frame)

    def map(self, tasks: Sequence[tuple[Part, Task]], table: Callable[[], PointTable] | None) -> list[Any]:
        """See ``engines._partitions.Mapper``."""
        context = self._context
        points = None
        if table is not None:
            if self._table is None or self._table[0] is not table:
                self._table = table, _asked(context, lambda: context.broadcast(table()))
            points = self._table[1]
        numbers = [part.number for part, _ in tasks if isinstance(part, FramePart)]
        wanted = _asked(context, lambda: context.broadcast(dict(zip(numbers, (task for _, task in tasks)))))

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            number = TaskContext.get().partitionId()
            task = wanted.value.get(number)
            if task is not None:
                shared = None if points is None else points.value
                result = guarded(pass_on_one_core, _BatchPart(batches), task, shared)
                yield pa.RecordBatch.from_pydict({"part": [number], "result": [pickle.dumps(result)]})

        def job() -> list[Any]:
            rows = self._frame.mapInArrow(run, "part long, result binary").collect()
            found = {row["part"]: pickle.loads(row["result"]) for row in rows}
            return [found.get(number) for number in numbers]

        try:
            return insist(context, job)
        finally:
            if _alive(context):
                wanted.destroy()


def _unpersist(context: SparkContext, frame: DataFrame) -> None:
    if _alive(context):
        frame.unpersist()


@dataclass(frozen=True)
class Raised:
    """An exception of a task, on its way to the driver."""

    error: bytes
    text: str

    def settle(self, times: int) -> None:
        """Let it pass a few times, then raise it."""
        if times < _RETRIES:
            logger.warning("a task raised; running it again:\n%s", self.text)
            return
        error = pickle.loads(self.error)
        error.add_note(f"on a Spark executor:\n{self.text}")
        raise error


def guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, or what it raises as a value."""
    try:
        return function(*arguments)
    except Exception as error:
        text = traceback.format_exc()
        try:
            blob = pickle.dumps(error)
            pickle.loads(blob)
        except Exception:  # an exception that cannot travel
            blob = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
        return Raised(blob, text)


class _Deaths:
    """Jobs that Spark gave up."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, context: SparkContext, error: BaseException) -> None:
        if isinstance(error, Py4JNetworkError) or not _alive(context):
            raise EngineLost(_gone(context)) from error
        self.count += 1
        if self.count > _DEATHS:
            raise EngineLost(f"executors of the Spark cluster die again and again: {error}") from error
        logger.warning("Spark gave up a job; running it again (%s)", str(error).splitlines()[0])


def insist(context: SparkContext, job: Callable[[], list[Any]]) -> list[Any]:
    """The results of a job of several tasks, through deaths and passing errors."""
    deaths = _Deaths()
    for times in range(_DEATHS + _RETRIES + 1):
        try:
            results = job()
        except (Py4JError, PySparkException, OSError) as error:
            deaths.note(context, error)
            continue
        raised = next((result for result in results if isinstance(result, Raised)), None)
        if raised is None:
            return results
        raised.settle(times - deaths.count)
    raise EngineLost("a pass over the partitions failed again and again")


def _asked(context: SparkContext, question: Callable[[], Any]) -> Any:
    """The answer of the driver's Java process, or EngineLost when it is gone."""
    try:
        return question()
    except (Py4JError, OSError, AttributeError, AssertionError) as error:
        if isinstance(error, Py4JNetworkError) or not _alive(context):
            raise EngineLost(_gone(context)) from error
        raise


def _alive(context: SparkContext) -> bool:
    try:
        return context._jsc is not None and not context._jsc.sc().isStopped()
    except (Py4JError, OSError):
        return False


def _gone(context: SparkContext) -> str:
    return (
        f"the Spark application at {context.master} went away. A checkpoint holds what was found: "
        "the same call with the same checkpoint goes on from there, on any engine"
    )
