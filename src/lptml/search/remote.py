"""A partitioned source behind the interface of one in memory, for stages that look at few constraints."""

from __future__ import annotations

from typing import Any

import numpy as np

from lptml.constraints import ConstraintSet, Floats, Ints, Scaled, Source
from lptml.search.engine import PartitionedSource


class Remote:
    """Rows are brought over as they are asked for; counts are made where the constraints lie."""

    def __init__(self, source: PartitionedSource) -> None:
        self._source = source
        self.n, self.d = source.n, source.d
        self.total_weight = source.total_weight
        self.trivial_costs = source.trivial_costs

    def take(self, index: Ints) -> ConstraintSet:
        return self._source.take_batch([index])[0]

    def cost(self, A: Floats) -> Any:
        costs = self._source.cost(A[None] if A.ndim == 2 else A)
        return float(costs[0]) if A.ndim == 2 else costs

    def best_scale(self, A: Floats, slope: float = 0.0) -> Scaled:
        """The best multiple on a sample, with its cost everywhere."""
        rng = np.random.default_rng(0)
        sample = self.take(np.unique(rng.integers(self.n, size=min(self.n, 20_000))))
        scale = sample.best_scale(A, slope * sample.n / self.n).scale
        return Scaled(scale, self.cost(scale * A) + slope * scale)

    def best_identity(self) -> Scaled:
        return self.best_scale(np.eye(self.d))


def nearby(source: Source | PartitionedSource) -> Source:
    """The source itself if it is in memory."""
    return Remote(source) if isinstance(source, PartitionedSource) else source
