"""The search in few dimensions: constraints mapped onto the leading directions of a metric.

A trial of Algorithm 2 solves semidefinite programs over d (d + 1) / 2 numbers, so its time grows with the
sixth power of d, and the number of constraints that hold a metric in place with the square. Where there are
more than ``SEARCHED`` features the search looks among the metrics P'BP, with P the directions in which the
points vary most under the prior metric; refinement then moves in all directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lptml.constraints import ConstraintSet, Floats, Ints, Source

if TYPE_CHECKING:
    from lptml.search.engine import PartitionedSource
    from lptml.search.sampling import Sample

#: Directions that the search looks in by default: 100 trials then take .1 to 1 s. With 4, 8 and 10 the leader
#: of the count was the same on four development sets (vehicle, optdigits, satimage, wisconsin), and 10 take
#: five times as long.
SEARCHED = 6


def leading_directions(sample: ConstraintSet, metric: Floats, count: int) -> Floats:
    """P (count, d): the directions in which difference vectors are longest under the metric L (k, d)."""
    parts = [sample.V] if sample.W is None else [sample.V, sample.W]
    moment = sum(part.T @ part for part in (part @ metric.T for part in parts))
    _, Q = np.linalg.eigh(moment)
    P: Floats = Q[:, ::-1][:, :count].T @ metric
    return P


class ProjectedPartitions:
    """A partitioned source whose constraints are mapped as they are brought over."""

    def __init__(self, source: PartitionedSource, P: Floats) -> None:
        self._source, self._P = source, P
        self.n, self.d = source.n, len(P)
        self.total_weight = source.total_weight
        self.trivial_costs = source.trivial_costs

    def _lifted(self, A: Floats) -> Floats:
        lifted: Floats = self._P.T @ A @ self._P
        return lifted

    def take_batch(self, indices: Sequence[Ints]) -> list[ConstraintSet]:
        return [rows.projected(self._P) for rows in self._source.take_batch(indices)]

    def cost(self, A: Floats) -> Floats:
        return self._source.cost(self._lifted(A))

    def broken_weights(self, A: Floats, scales: Floats) -> Floats:
        return self._source.broken_weights(self._lifted(A), scales)

    def worst(
        self, requests: Sequence[tuple[Floats, Sample]], count: int
    ) -> list[tuple[Ints, ConstraintSet]]:
        found = self._source.worst([(self._lifted(A), sample) for A, sample in requests], count)
        return [(numbers, rows.projected(self._P)) for numbers, rows in found]


def projected(source: Source | PartitionedSource, P: Floats) -> Source | PartitionedSource:
    """The source with its vectors mapped by P (r, d)."""
    project = getattr(source, "projected", None)
    if project is not None:
        return project(P)
    return ProjectedPartitions(source, P)  # type: ignore[arg-type]  # those without it are partitioned
