"""What a map is learned from, and what every map can do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import ConstraintSet, Floats, Ints

#: The state of a map, as model files hold it.
Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Points, and what is demanded of them.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.maps import Evidence
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> pairs = Evidence(X, np.eye(1), tuples=np.array([[0, 1], [0, 2]]), sign=np.array([1, -1]),
    ...                  bound=np.array([4.0, 4.0]), weight=np.ones(2))
    >>> pairs.constraints(X).cost(np.eye(1))
    0.0
    """

    X: Floats
    """(n, d) points."""
    L: Floats
    """(k, d) a linear map, in whose image distances are of a sensible scale."""
    tuples: Ints
    """(N, 2) pairs or (N, 3) triplets (point, near, far), as rows of X."""
    sign: NDArray[np.int8] | Ints
    """(N,) +1 for similar and -1 for dissimilar pairs; -1 for triplets, whose far point is to be far."""
    bound: Floats
    """(N,) squared bounds of pairs, margins of triplets."""
    weight: Floats
    """(N,)"""
    labels: Ints | None = None
    """(n,) classes 0 .. K - 1, where there are any."""
    trust: Floats | None = None
    """(n,) what the labels weigh; None: all alike."""

    @classmethod
    def of_points(cls, X: Floats, L: Floats | None = None, **more: Any) -> Evidence:
        """Points of which nothing is demanded."""
        nothing = np.empty(0)
        L = np.eye(X.shape[1]) if L is None else L
        return cls(X, L, np.empty((0, 2), dtype=np.int64), nothing.astype(np.int64), nothing, nothing, **more)

    def constraints(self, F: Floats, rows: Ints | None = None) -> ConstraintSet:
        """The demands on features F (n, m) of the points, all of them or those of these numbers."""
        rows = np.arange(len(self.tuples)) if rows is None else rows
        points = self.tuples[rows]
        W = F[points[:, 1]] - F[points[:, 0]] if points.shape[1] == 3 else None
        return ConstraintSet(
            V=F[points[:, -1]] - F[points[:, 0]],
            W=W,
            sign=np.ascontiguousarray(self.sign[rows], dtype=np.int8),
            bound=self.bound[rows],
            weight=self.weight[rows],
        )


class Map(Protocol):
    """A map f of points to features, over which a Mahalanobis metric is learned.

    ``transform`` of the points one by one and of all at once must agree. ``metric`` is a metric of the
    features (m, m) to start learning from, or None.
    """

    metric: Floats | None

    def fit(self, evidence: Evidence) -> Self:
        """Learn the map; all chance comes from a seed given to the constructor."""
        ...

    def transform(self, X: Floats) -> Floats:
        """Features (n, m) of points (n, d)."""
        ...

    def arrays(self) -> Arrays:
        """The state, which ``restore`` of the same class takes."""
        ...

    @classmethod
    def restore(cls, arrays: Arrays) -> Self:
        """The map of that state; ValueError where it is none."""
        ...


def check_settings(mapping: Any) -> None:
    """ValueError unless what a map's constructor was given are whole numbers; a seed and a width may be 0.

    Examples
    --------
    >>> from lptml.maps import ReluMap
    >>> ReluMap(width=-1)
    Traceback (most recent call last):
        ...
    ValueError: width of ReluMap must be a whole number of at least 0, got -1
    """
    for field in fields(mapping):
        if not field.init:
            continue
        value: object = getattr(mapping, field.name)
        least = int(field.name not in ("seed", "width"))
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise ValueError(
                f"{field.name} of {type(mapping).__name__} must be a whole number of at least {least}, "
                f"got {value!r}"
            )


def rows_of(points: Floats) -> tuple[Floats, Ints]:
    """Distinct points (n, d) of tuples (N, size, d), and the tuples as rows of them (N, size).

    Examples
    --------
    >>> X, rows = rows_of(np.array([[[1.0], [2.0]], [[2.0], [2.0]]]))
    >>> X.ravel(), rows
    (array([1., 2.]), array([[0, 1],
           [1, 1]]))
    """
    N, size, d = points.shape
    X, rows = np.unique(points.reshape(-1, d), axis=0, return_inverse=True)
    return X, rows.reshape(N, size).astype(np.int64)
