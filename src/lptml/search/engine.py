"""The contract between the search and the engines that run its trials: small Protocols and their messages.

The driver (run.py) numbers the trials of Algorithm 2, cuts them into units of consecutive trials, hands
the units to an engine's session and reduces the results in the order of trials. A unit is idempotent: its
result depends on the problem and the trial numbers alone, so an engine may run it anywhere, twice, or again
after a worker's death, and the search ends with the same metric, bit for bit.

An engine is where trials run: ``Engine.open`` sends the problem to the workers once, ``Session.run`` maps
units. A source is where constraints are. In memory it travels inside the problem and a unit's worker takes
the rows of its samples itself. A partitioned source stays where it is: the driver asks it, a batch of
trials in each pass, for the rows of the samples, and sends them along in the units. Everything else that the
driver needs from constraints is a count: ``PartitionedSource`` is these operations.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.search.sampling import Sample
from lptml.search.trial import SearchProblem, Unit, UnitResult

#: Module and class of every engine known by name; modules are imported when they are asked for.
_ENGINES = {
    "local": ("lptml.engines.local", "LocalEngine"),
    "dask": ("lptml.engines.dask", "DaskEngine"),
    "spark": ("lptml.engines.spark", "SparkEngine"),
}

#: How the addresses of each kind of cluster begin.
_ADDRESSES = {
    "dask": ("tcp://", "tls://", "ws://", "wss://", "ucx://", "inproc://"),
    "spark": ("spark://", "k8s://", "yarn", "local[", "local-cluster["),
}
#: Packages whose objects (a client, a session) stand for an engine.
_PACKAGES = {"distributed": "dask", "pyspark": "spark"}


class Session(Protocol):
    """A problem on its workers."""

    #: How long a unit should take, in seconds: long against the engine's overhead for a task.
    unit_seconds: float
    #: How many units run at the same time.
    workers: int

    def run(self, units: Iterable[Unit]) -> Generator[UnitResult | None, None, None]:
        """Map units to workers; yield results in any order, and None every 0.1 s while there are none.

        Units are to be taken from the iterable as workers come free (a few ahead), because their size follows
        the time that trials are found to take, and because taking one may cost a pass over the data. Closing
        the iterator abandons what has not finished.
        """


@runtime_checkable
class Engine(Protocol):
    """Something that runs units of trials."""

    name: str

    def open(self, problem: SearchProblem) -> AbstractContextManager[Session]:
        """Send the problem to the workers, once."""


@runtime_checkable
class PartitionedSource(Protocol):
    """Constraints that are never collected. Constraints are numbered 0..n-1 across the partitions.

    Weights must lie on the exact-sum grid of ``checks.exact_sum_grid``, so that sums over partitions do
    not depend on how many there are; values of a constraint must not depend on the partition it is in.
    """

    @property
    def n(self) -> int:
        """The number of constraints."""

    @property
    def d(self) -> int:
        """The number of features."""

    @property
    def total_weight(self) -> float:
        """The weight of all constraints."""

    def take_batch(self, indices: Sequence[Ints]) -> list[ConstraintSet]:
        """The rows with these numbers, in the order given, for each of several arrays: one pass for all."""

    def cost(self, A: Floats) -> Floats:
        """The weight that each of a stack of metrics (k, d, d) violates: (k,)."""

    def broken_weights(self, A: Floats, scales: Floats) -> Floats:
        """``counting.broken_weights`` summed over the partitions: (2, k)."""

    def worst(
        self, requests: Sequence[tuple[Floats, Sample]], count: int
    ) -> list[tuple[Ints, ConstraintSet]]:
        """For each metric and sample: numbers and rows of the sample's ``count`` most violated constraints.

        Worst first as in ``counting.worst_rows``, ties to the lower number; fewer when fewer are violated.
        One pass for all requests. ``Sample.contains`` tells which rows of a partition a sample holds.
        """

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""


def make_engine(engine: Any, *, n_jobs: int | None = None) -> Engine:
    """An engine by its name, by the address or an object of its cluster, or the engine itself.

    Parameters
    ----------
    engine : str, distributed.Client, pyspark.sql.SparkSession or Engine
        "local", "dask" or "spark"; the address of a Dask scheduler ("tcp://host:8786") or a Spark master
        ("spark://host:7077", "yarn"); a client, a session; or an object with the interface of
        ``search.engine.Engine``.
    n_jobs : int or None
        For the local engine; clusters have the workers they have.

    Examples
    --------
    >>> from lptml.search.engine import make_engine
    >>> make_engine("local", n_jobs=2).name
    'local'
    """
    if isinstance(engine, str):
        kind = kind_of(engine)
        if kind != engine:
            return _factory(kind)(engine)
        return _factory(kind)(n_jobs) if kind == "local" else _factory(kind)()
    for base in type(engine).__mro__:
        package = base.__module__.split(".")[0]
        if package in _PACKAGES:
            return _factory(_PACKAGES[package])(engine)
    if isinstance(engine, Engine):
        return engine
    raise ValueError(f"engine must be one of {sorted(_ENGINES)} or an Engine, got {engine!r}")


def kind_of(engine: str) -> str:
    """ "local", "dask" or "spark" for the name of an engine or the address of a cluster.

    Examples
    --------
    >>> from lptml.engines import kind_of
    >>> kind_of("spark"), kind_of("tcp://host:8786")
    ('spark', 'dask')
    """
    for kind, starts in _ADDRESSES.items():
        if engine.startswith(starts):
            return kind
    if engine not in _ENGINES:
        raise ValueError(f"engine must be one of {sorted(_ENGINES)} or a cluster's address, got {engine!r}")
    return engine


def _factory(kind: str) -> Callable[..., Engine]:
    module, name = _ENGINES[kind]
    try:
        factory: Callable[..., Engine] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"engine={kind!r} needs the package {error.name!r}: pip install 'lptml[{kind}]'"
        ) from error
    return factory
