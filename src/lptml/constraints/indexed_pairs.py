"""Pairs of rows of a table of points: two keys and a label each, without stored differences.

n pairs of N points take 17 bytes each beside the table, where their difference vectors would take 8 d. The
squared distances come from the transformed points, so N d^2 + n d operations count the violations of n pairs
instead of n d^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.constraints.checks import (
    check_bounds,
    check_pair_labels,
    check_points,
    check_spread,
    check_weight,
    spread_of_points,
)
from lptml.constraints.constraint_set import (
    ConstraintSet,
    Floats,
    InMemory,
    Scaled,
    psd_factor,
)
from lptml.constraints.violation import is_violated

_ROWS = 1 << 14  # pairs in a block


@dataclass(frozen=True, eq=False)
class IndexedPairs(InMemory):
    """Similar and dissimilar pairs of rows of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints.indexed_pairs import IndexedPairs
    >>> X = np.array([[0.0, 0.0], [0.0, 5.0], [2.0, 0.0]])
    >>> pairs = IndexedPairs.from_indices(X, [[0, 1], [0, 2]], [+1, -1], bounds=(1.0, 1.0))
    >>> pairs.cost(np.eye(2))
    1.0
    >>> pairs.cost(np.diag([1.0, 0.0]))
    0.0
    """

    X: Floats
    left: NDArray[np.integer[Any]]
    right: NDArray[np.integer[Any]]
    sign: NDArray[np.int8]
    bounds: tuple[float, float]
    weight: Floats | None

    @classmethod
    def from_indices(
        cls,
        X: ArrayLike,
        indices: ArrayLike,
        y: ArrayLike,
        *,
        bounds: tuple[float, float],
        weight: ArrayLike | None = None,
    ) -> IndexedPairs:
        """Pairs given as two row numbers of X each, shape (n, 2), with labels y of +1 and -1."""
        points = check_points(X, "X", ndim=2)
        check_spread(spread_of_points(points), "X")
        rows = np.asarray(indices)
        if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
            raise ValueError(
                f"indices must be whole numbers of shape (n, 2), got {rows.dtype} of shape {rows.shape}"
            )
        if rows.size and not (rows.min() >= 0 and rows.max() < len(points)):
            wrong = rows.min() if rows.min() < 0 else rows.max()
            raise ValueError(f"indices name row {wrong}, but X has rows 0 to {len(points) - 1}")
        return cls(
            X=points - points.mean(axis=0),
            left=np.ascontiguousarray(rows[:, 0]),
            right=np.ascontiguousarray(rows[:, 1]),
            sign=check_pair_labels(y, len(rows)).astype(np.int8),
            bounds=check_bounds(bounds),
            weight=None if weight is None else check_weight(weight, len(rows)),
        )

    @property
    def n(self) -> int:
        return len(self.left)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @cached_property
    def total_weight(self) -> float:
        return float(self.n) if self.weight is None else float(self.weight.sum())

    def take(self, index: NDArray[Any] | slice) -> ConstraintSet:
        """The pairs with these numbers, as stored constraints."""
        sign = self.sign[index]
        return ConstraintSet(
            V=self.X[self.left[index]] - self.X[self.right[index]],
            W=None,
            sign=sign,
            bound=self._bound(sign),
            weight=np.ones(len(sign)) if self.weight is None else self.weight[index],
        )

    def projected(self, P: Floats) -> IndexedPairs:
        """The same pairs of the points mapped by P (r, d)."""
        return replace(self, X=self.X @ P.T)

    def values(self, A: Floats) -> Floats:
        """The squared distance of every pair, shape (n,)."""
        return np.concatenate([block for _, block in self._blocks(A)] or [np.empty(0)])

    def cost(self, A: Floats) -> Any:
        """The weight of the pairs that A violates: a float, or shape (k,) for a stack."""
        if A.ndim == 3:
            return np.array([self.cost(metric) for metric in A])
        total = 0.0
        for rows, block in self._blocks(A):
            sign = self.sign[rows]
            wrong = is_violated(block, sign, self._bound(sign))
            total += float(np.count_nonzero(wrong) if self.weight is None else wrong @ self.weight[rows])
        return total

    def best_scale(self, A: Floats, slope: float = 0.0) -> Scaled:
        """The multiple c A that violates least, exactly; with a slope the one of least cost + slope * c."""
        from lptml.constraints.ray import best_on_ray  # compiled code is loaded where it is needed

        weight = np.ones(self.n) if self.weight is None else self.weight
        return best_on_ray(self.values(A), self.sign, self._bound(self.sign), weight, slope)

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""
        weight = np.ones(self.n) if self.weight is None else self.weight
        grows = self.values(np.eye(self.d)) > 0
        return float(weight[self.sign < 0].sum()), float(weight[grows == (self.sign > 0)].sum())

    def _bound(self, sign: NDArray[np.int8]) -> Floats:
        u, l = self.bounds
        return np.where(sign > 0, u * u, l * l)

    def _blocks(self, A: Floats) -> Iterator[tuple[slice, Floats]]:
        Z = self.X @ psd_factor(A).T  # (N, rank)
        for start in range(0, self.n, _ROWS):
            rows = slice(start, min(start + _ROWS, self.n))
            T = Z[self.left[rows]] - Z[self.right[rows]]
            yield rows, np.einsum("ij,ij->i", T, T)
