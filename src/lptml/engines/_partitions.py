"""The partitioned source: constraints that no machine holds, counted and sampled where their partitions are.

The search asks four things of such a source (``search.engine.PartitionedSource``): rows by their numbers,
the cost of metrics, the cost along a ray, and the worst violators of a sample. Each is one pass over the
partitions for a whole batch of questions, and each partition answers for itself (``_passes``), so what
travels is small.

Constraints are numbered in the order of the partitions and of the rows within. The numbers, the values of
each constraint and the sums of weights do not depend on how the data is cut, so neither does the metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from joblib import effective_n_jobs

from lptml.constraints import ConstraintSet, Floats, Ints, Scaled
from lptml.constraints.bounds import resolve_bounds
from lptml.constraints.counting import exact_multiple
from lptml.constraints.ray import broken_from_places
from lptml.engines import _passes
from lptml.engines._blocks import Layout, PointTable
from lptml.engines._passes import Part, Survey, Task
from lptml.engines.errors import PartitionError
from lptml.search.engine import make_engine
from lptml.search.sampling import Sample
from lptml.search.trial import join

if TYPE_CHECKING:
    from lptml.search.engine import Engine

_SAMPLE = 1 << 17  # rows that percentiles of distances and first scales come from

Bounds = Any


class Mapper(Protocol):
    """Where passes run."""

    def map(self, tasks: Sequence[tuple[Part, Task]], table: Callable[[], PointTable] | None) -> list[Any]:
        """The result of every task, in their order; ``table`` makes the points that they share."""


@dataclass
class LocalMapper:
    """Passes on threads of this machine: decoding files and counting both release the interpreter lock."""

    n_jobs: int | None = None

    def __post_init__(self) -> None:
        self._loaded: tuple[Callable[[], PointTable], PointTable] | None = None

    def map(self, tasks: Sequence[tuple[Part, Task]], table: Callable[[], PointTable] | None) -> list[Any]:
        from concurrent.futures import ThreadPoolExecutor

        points = self._points(table)
        workers = min(effective_n_jobs(self.n_jobs), len(tasks))
        if workers <= 1:
            return [task.run(part, points) for part, task in tasks]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda pair: pair[1].run(pair[0], points), tasks))

    def _points(self, table: Callable[[], PointTable] | None) -> PointTable | None:
        if table is None:
            return None
        if self._loaded is None or self._loaded[0] is not table:
            self._loaded = table, table()
        return self._loaded[1]


@dataclass(frozen=True, eq=False)
class PartitionedPairs:
    """Pairs spread over partitions; a ``PartitionedSource`` and a ``Source``.

    Made by the functions of ``engines.partitioned``.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.engines.partitioned import from_arrays
    >>> X = np.array([[0.0, 0.0], [0.0, 5.0], [2.0, 0.0]])
    >>> pairs = from_arrays(X, [[0, 1], [0, 2]], [+1, -1], bounds=(1.0, 1.0), n_parts=2)
    >>> pairs.n, pairs.cost(np.eye(2)), pairs.cost(np.diag([1.0, 0.0]))
    (2, 1.0, 0.0)
    """

    parts: tuple[Part, ...]
    layout: Layout
    d: int
    first: Ints  # (parts + 1,) the number of each partition's first constraint, and n
    surveys: tuple[Survey, ...]
    mapper: Mapper
    table: Callable[[], PointTable] | None = None
    moves: bool = True  # whether passes may run on another engine than the one that made the source

    @property
    def n(self) -> int:
        return int(self.first[-1])

    @property
    def D(self) -> int:
        """The dimension of the space of metrics, which bounds the size of a basis."""
        return self.d * (self.d + 1) // 2

    @property
    def bounds(self) -> tuple[float, float]:
        return self.layout.bounds

    @property
    def total_weight(self) -> float:
        return math.fsum(survey.weight for survey in self.surveys)

    def __len__(self) -> int:
        return self.n

    def on(self, engine: Engine) -> PartitionedPairs:
        """The same constraints, their passes mapped by an engine."""
        if not self.moves:
            return self
        make = getattr(engine, "mapper", None)
        mapper = LocalMapper(getattr(engine, "n_jobs", None)) if make is None else make()
        return replace(self, mapper=mapper)

    def take(self, index: Ints) -> ConstraintSet:
        """The constraints with these numbers, in this order."""
        return self.take_batch([index])[0]

    def take_batch(self, indices: Sequence[Ints]) -> list[ConstraintSet]:
        """See ``search.engine.PartitionedSource``."""
        arrays = [np.asarray(index, dtype=np.int64) for index in indices]
        wanted = np.unique(np.concatenate([*arrays, np.empty(0, dtype=np.int64)]))
        if len(wanted) and not (wanted[0] >= 0 and wanted[-1] < self.n):
            raise IndexError(f"constraints are numbered 0 to {self.n - 1}")
        cuts = np.searchsorted(wanted, self.first)
        work = [(k, wanted[a:b]) for k, (a, b) in enumerate(pairwise(cuts)) if a < b]
        if not work:
            none = ConstraintSet(
                V=np.empty((0, self.d)),
                W=None,
                sign=np.empty(0, dtype=np.int8),
                bound=np.empty(0),
                weight=np.empty(0),
            )
            return [none for _ in arrays]
        found = self._run(_passes.take, work)
        rows = join(*(part for part in found if part is not None))
        return [rows.take(np.searchsorted(wanted, index)) for index in arrays]

    def cost(self, A: Floats) -> Any:
        """The weight of the constraints that A violates: a float, or shape (k,) for a stack."""
        stack = np.ascontiguousarray(A if A.ndim == 3 else A[None], dtype=np.float64)
        total = np.sum(self._everywhere(_passes.cost, stack), axis=0)
        return total if A.ndim == 3 else float(total[0])

    def broken_weights(self, A: Floats, scales: Floats) -> Floats:
        """See ``search.engine.PartitionedSource``."""
        order = np.argsort(scales)
        argument = np.ascontiguousarray(A, dtype=np.float64), np.ascontiguousarray(scales[order])
        places = np.sum(self._everywhere(_passes.broken, argument), axis=0)  # (2, k + 1)
        out = np.empty((2, len(scales)))
        out[:, order] = broken_from_places(places)
        return out

    def worst(
        self, requests: Sequence[tuple[Floats, Sample]], count: int
    ) -> list[tuple[Ints, ConstraintSet]]:
        """See ``search.engine.PartitionedSource``."""
        found = self._everywhere(_passes.worst, (list(requests), count))
        merged = [_passes.merge_worst([part[k] for part in found], count) for k in range(len(requests))]
        none = self.take_batch([np.empty(0, dtype=np.int64)])[0]
        return [(np.empty(0, dtype=np.int64), none) if w is None else (w[0], w[2]) for w in merged]

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""
        return (
            math.fsum(survey.at_zero for survey in self.surveys),
            math.fsum(survey.at_infinity for survey in self.surveys),
        )

    def best_scale(self, A: Floats, slope: float = 0.0) -> Scaled:
        """The multiple c A that violates least, exactly, in a few passes; with a slope, plus slope * c."""
        return exact_multiple(
            lambda scales: self.broken_weights(A, scales),
            self.sample(_SAMPLE),
            A,
            self.trivial_costs()[0],
            slope,
        )

    def best_identity(self) -> Scaled:
        """The multiple of the identity that violates least: the best metric without learning."""
        return self.best_scale(np.eye(self.d))

    def sample(self, size: int, key: int = 0) -> ConstraintSet:
        """So many constraints drawn at random without replacement; all of them when there are fewer."""
        return self.take(np.sort(Sample(self.n, self.n, key).head(size)))

    def _everywhere(self, function: _passes.Pass, argument: Any) -> list[Any]:
        return self._run(function, [(k, argument) for k in range(len(self.parts))])

    def _run(self, function: _passes.Pass, work: Sequence[tuple[int, Any]]) -> list[Any]:
        tasks = [
            (self.parts[k], Task(self.layout, function, argument, int(self.first[k]), self.surveys[k].n))
            for k, argument in work
        ]
        return self.mapper.map(tasks, self.table)


def number(
    parts: Iterable[Part],
    layout: Layout,
    bounds: Bounds,
    mapper: Mapper,
    table: Callable[[], PointTable] | None = None,
    d: int | None = None,
    moves: bool = True,
) -> PartitionedPairs:
    """Survey the partitions, number their constraints and settle the bounds."""
    parts = tuple(parts)
    if d is None:
        d = len(layout.features) if table is None else table().d
    surveys = _survey(parts, layout, mapper, table)
    if layout.weighted:
        total = math.fsum(survey.weight for survey in surveys)
        if not 0 < total < np.inf:
            raise PartitionError("column 'weight' is zero everywhere: nothing would be learned")
        # The grid of checks.exact_sum_grid; now each sum is exact, so it is the same for all partitions.
        layout = replace(layout, grid=2.0 ** max(math.ceil(math.log2(total)) - 50, -1022))
        surveys = _survey(parts, layout, mapper, table)
    kept = [k for k, survey in enumerate(surveys) if survey.n]
    if not kept:
        raise PartitionError("there are no constraints in the partitions")
    first = np.concatenate([[0], np.cumsum([surveys[k].n for k in kept])]).astype(np.int64)
    source = PartitionedPairs(
        parts=tuple(parts[k] for k in kept),
        layout=layout,
        d=d,
        first=first,
        surveys=tuple(surveys[k] for k in kept),
        mapper=mapper,
        table=table,
        moves=moves,
    )
    V = source.sample(_SAMPLE).V
    settled = resolve_bounds(bounds, np.sqrt(np.einsum("ij,ij->i", V, V)))
    return replace(source, layout=replace(layout, bounds=settled))


def _survey(
    parts: Sequence[Part], layout: Layout, mapper: Mapper, table: Callable[[], PointTable] | None
) -> list[Survey]:
    found = mapper.map([(part, Task(layout, _passes.survey, None, 0)) for part in parts], table)
    return [
        Survey(0, 0.0, 0.0, 0.0) if survey is None else survey for survey in found
    ]  # Spark skips empty ones


def mapper_of(engine: Any) -> Mapper:
    """The mapper of an engine given by name or object."""
    made = make_engine(engine)
    make = getattr(made, "mapper", None)
    return LocalMapper(getattr(made, "n_jobs", None)) if make is None else make()
