"""Triplets of labelled points: each point is nearer to points of its class than to points of others.

A point has a few targets (neighbours of its class) and impostors (neighbours of other classes), and each
target with each impostor is a triplet (Weinberger and Saul 2009). The triplets of N points share N (a + b)
distances, so their violations are counted from the transformed points, and the difference vectors of just
those triplets are stored that a sample asks for.

References
----------
Weinberger, K. Q. and Saul, L. K. (2009). Distance metric learning for large margin nearest neighbor
classification. Journal of Machine Learning Research 10, 207-244.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml.constraints.constraint_set import ConstraintSet, Floats, InMemory, Ints, Scaled, psd_factor
from lptml.constraints.violation import is_violated

_BLOCK_BYTES = 1 << 26  # of the differences that are made at once


@dataclass(frozen=True, eq=False)
class LabelledTriplets(InMemory):
    """Triplets (anchor, target, impostor): d2(anchor, impostor) - d2(anchor, target) >= 1.

    Parameters
    ----------
    X : array of shape (N, d)
        Points.
    anchors : array of shape (m,)
        Rows of X.
    targets, impostors : arrays of shape (m, a) and (m, b)
        Rows of X, -1 where an anchor has fewer.
    point_weight : array of shape (N,), optional
        A triplet weighs the product of the weights of its points.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints.labelled_triplets import LabelledTriplets
    >>> X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    >>> triplets = LabelledTriplets(X, np.array([0]), np.array([[1]]), np.array([[2]]), None)
    >>> triplets.cost(np.eye(2)), triplets.cost(np.diag([0.1, 1.0]))
    (1.0, 0.0)
    """

    X: Floats
    anchors: Ints
    targets: Ints
    impostors: Ints
    point_weight: Floats | None

    def __post_init__(self) -> None:
        for array in (self.X, self.anchors, self.targets, self.impostors, self.point_weight):
            if array is not None:
                array.flags.writeable = False

    @cached_property
    def _numbers(self) -> tuple[Ints, Ints, Ints]:
        """Anchor, target and impostor of every triplet, as places in their arrays."""
        present = (self.targets >= 0)[:, :, None] & (self.impostors >= 0)[:, None, :]  # (m, a, b)
        i, t, f = np.nonzero(present)
        return i, t, f

    @property
    def n(self) -> int:
        return len(self._numbers[0])

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @cached_property
    def weight(self) -> Floats:
        """(n,) what violating each triplet costs."""
        w = self.point_weight
        return np.ones(self.n) if w is None else w[self.points(slice(None))].prod(axis=1)

    @cached_property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    def points(self, index: NDArray[Any] | slice) -> Ints:
        """The rows of the points of the triplets with these numbers: (k, 3)."""
        i, t, f = (part[index] for part in self._numbers)
        return np.stack([self.anchors[i], self.targets[i, t], self.impostors[i, f]], axis=1)

    def take(self, index: NDArray[Any] | slice) -> ConstraintSet:
        """The triplets with these numbers, as stored constraints."""
        x, near, far = self.X[self.points(index)].transpose(1, 0, 2)
        k = len(x)
        return ConstraintSet(
            V=x - far,
            W=x - near,
            sign=np.full(k, -1, dtype=np.int8),
            bound=np.ones(k),
            weight=np.array(self.weight[index]),
        )

    def projected(self, P: Floats) -> LabelledTriplets:
        """The same triplets of the points mapped by P (r, d)."""
        return replace(self, X=self.X @ P.T)

    def values(self, A: Floats) -> Floats:
        """d2(anchor, impostor) - d2(anchor, target) of every triplet, shape (n,)."""
        return self._gains(self.X @ psd_factor(A).T)

    def _gains(self, Z: Floats) -> Floats:
        """d2(anchor, impostor) - d2(anchor, target) of every triplet, for points that were mapped to Z."""
        near, far = (self._squares(Z, others) for others in (self.targets, self.impostors))
        i, t, f = self._numbers
        return far[i, f] - near[i, t]

    def cost(self, A: Floats) -> Any:
        """The weight of the triplets that A violates: a float, or shape (k,) for a stack."""
        if A.ndim == 3:
            return np.array([self.cost(metric) for metric in A])
        return float(self.weight[is_violated(self.values(A), -1.0, 1.0)].sum())

    def best_scale(self, A: Floats, slope: float = 0.0) -> Scaled:
        """The multiple c A that violates least, exactly; with a slope the one of least cost + slope * c."""
        from lptml.constraints.ray import best_on_ray  # compiled code is loaded where it is needed

        sign = np.full(self.n, -1, dtype=np.int8)
        return best_on_ray(self.values(A), sign, np.ones(self.n), self.weight, slope)

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""
        grows = self._gains(self.X) > 0
        return self.total_weight, float(self.weight[~grows].sum())

    def _squares(self, Z: Floats, others: Ints) -> Floats:
        """Squared distances of the anchors to other points: (m, a); what they are where those are absent
        does not matter."""
        out = np.empty(others.shape)
        height = max(1, _BLOCK_BYTES // (8 * max(1, others.shape[1] * Z.shape[1])))
        for start in range(0, len(others), height):
            rows = slice(start, start + height)
            away = Z[others[rows]] - Z[self.anchors[rows], None]
            out[rows] = np.einsum("ijk,ijk->ij", away, away)
        return out
