"""Blocks of constraints as they are met on partitions, with values that no partition can change.

A block is a run of consecutive constraints of a partition. Its values <C, A> are computed row by row,
always in the same order of additions: a matrix product would round a row differently in blocks of different
shapes, and then the metric of a search could depend on how the data was cut.

Pairs of keys into a table of points take 17 bytes each or less. Their squared distances come from the
transformed points, as in ``lptml.constraints.indexed_pairs``; rows of difference vectors are transformed
themselves.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml._jit import kernel
from lptml.constraints import ConstraintSet, Floats, Ints, psd_factor
from lptml.constraints.checks import check_points
from lptml.engines.errors import PartitionError

#: Rows of a block: its values stay in the second-level cache.
ROWS = 1 << 16
_CACHE_BYTES = 1 << 27  # transformed points kept for the next partition of the same pass

Keys = NDArray[np.int32]


class Block(Protocol):
    """Consecutive constraints."""

    @property
    def n(self) -> int: ...

    @property
    def sign(self) -> NDArray[np.int8]: ...

    @property
    def bound(self) -> Floats: ...

    @property
    def weight(self) -> Floats: ...

    def values(self, A: Floats) -> Floats:
        """<C, A> for every row: (n,)."""

    def differs(self) -> NDArray[np.bool_]:
        """Which rows have a difference vector that is not zero."""

    def take(self, rows: Ints) -> ConstraintSet:
        """Some rows as stored constraints."""


@dataclass(eq=False)
class PointTable:
    """The points that pairs refer to, by row number or by key.

    ``X`` is centred, which leaves every difference as it is and keeps what is subtracted small.
    """

    X: Floats  # (N, d)
    keys: Any = None  # (N,) when pairs refer to points by key
    _transformed: OrderedDict[bytes, Floats] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        if len(self.X) >= 1 << 31:
            raise PartitionError(f"a table of {len(self.X)} points is too large: 2^31 - 1 at most")
        self._index: Any = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return PointTable, (self.X, self.keys)  # what was computed from them stays behind

    @classmethod
    def from_points(cls, X: ArrayLike, keys: ArrayLike | None = None) -> PointTable:
        points = check_points(X, "points", ndim=2)
        if len(points) == 0:
            raise PartitionError("the table of points is empty")
        if keys is not None:
            keys = np.asarray(keys)
            if len(np.unique(keys)) != len(points):
                raise PartitionError("the table of points has a key twice")
        return cls(points - points.mean(axis=0), keys)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def rows(self, keys: NDArray[Any], column: str) -> Keys:
        """Row numbers of the points with these keys."""
        if self.keys is not None:
            if self._index is None:
                import pandas as pd

                self._index = pd.Index(self.keys)
            rows = np.asarray(self._index.get_indexer(keys))
            if len(rows) and rows.min() < 0:
                raise PartitionError(
                    f"column {column!r} has the key {keys[rows < 0][0]!r}, which no point has"
                )
            return rows.astype(np.int32)
        if keys.dtype.kind not in "iu":
            raise PartitionError(
                f"column {column!r} must hold row numbers of the points, got {keys.dtype}; "
                "give the points a column 'key' for other keys"
            )
        if len(keys) and not (keys.min() >= 0 and keys.max() < len(self.X)):
            wrong = keys.min() if keys.min() < 0 else keys.max()
            raise PartitionError(
                f"column {column!r} names point {wrong}, but there are points 0 to {len(self.X) - 1}"
            )
        return np.ascontiguousarray(keys, dtype=np.int32)

    def transformed(self, A: Floats) -> Floats:
        """The points under the metric A: (N, rank), kept for the next block of the same pass."""
        token = A.tobytes()
        with self._lock:
            Z = self._transformed.get(token)
            if Z is None:
                Z = _transform(self.X, psd_factor(A))
                self._transformed[token] = Z
                while len(self._transformed) > 1 and self._cached_bytes > _CACHE_BYTES:
                    self._transformed.popitem(last=False)
            return Z

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """A number for every point, the same for points that coincide: (N,)."""
        return np.unique(self.X, axis=0, return_inverse=True)[1].reshape(-1)

    @property
    def _cached_bytes(self) -> int:
        return sum(Z.nbytes for Z in self._transformed.values())


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Pairs of points of a table."""

    table: PointTable
    left: Keys
    right: Keys
    sign: NDArray[np.int8]
    bound: Floats
    weight: Floats

    @property
    def n(self) -> int:
        return len(self.sign)

    def values(self, A: Floats) -> Floats:
        out = np.empty(self.n)
        _pair_values(self.table.transformed(A), self.left, self.right, out)
        return out

    def differs(self) -> NDArray[np.bool_]:
        places = self.table.places
        return places[self.left] != places[self.right]

    def take(self, rows: Ints) -> ConstraintSet:
        X = self.table.X
        return ConstraintSet(
            V=X[self.left[rows]] - X[self.right[rows]],
            W=None,
            sign=self.sign[rows],
            bound=self.bound[rows],
            weight=self.weight[rows],
        )


@dataclass(frozen=True, eq=False)
class VectorBlock:
    """Constraints with their difference vectors."""

    constraints: ConstraintSet

    @property
    def n(self) -> int:
        return self.constraints.n

    @property
    def sign(self) -> NDArray[np.int8]:
        return self.constraints.sign

    @property
    def bound(self) -> Floats:
        return self.constraints.bound

    @property
    def weight(self) -> Floats:
        return self.constraints.weight

    def values(self, A: Floats) -> Floats:
        out = np.empty(self.n)
        _row_squares(_transform(self.constraints.V, psd_factor(A)), out)
        return out

    def differs(self) -> NDArray[np.bool_]:
        return (self.constraints.V != 0.0).any(axis=1)

    def take(self, rows: Ints) -> ConstraintSet:
        return self.constraints.take(rows)


@dataclass(frozen=True)
class Layout:
    """What the columns of a partition mean.

    Parameters
    ----------
    bounds : (u, l)
        Similar pairs shall be at most u apart, dissimilar ones at least l.
    features : tuple of str
        Columns of the difference vector; empty when rows are pairs of keys ``left`` and ``right``.
    weighted : bool
        Whether there is a column ``weight``.
    grid : float or None
        Weights are rounded to multiples of it, so that every sum of them is exact.
    """

    bounds: tuple[float, float] = (1.0, 1.0)
    features: tuple[str, ...] = ()
    weighted: bool = False
    grid: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        rows = self.features or ("left", "right")
        return (*rows, "label", "weight") if self.weighted else (*rows, "label")

    def block(self, columns: Mapping[str, NDArray[Any]], table: PointTable | None) -> Block:
        """The block that these columns hold, or PartitionError."""
        sign = _signs(columns["label"])
        u, l = self.bounds
        bound = np.where(sign > 0, u * u, l * l)
        weight = self._weight(columns["weight"]) if self.weighted else np.ones(len(sign))
        if self.features:
            V = np.empty((len(sign), len(self.features)))
            for k, name in enumerate(self.features):
                V[:, k] = columns[name]
            if not np.isfinite(V).all():
                raise PartitionError("difference vectors contain NaN or infinity")
            return VectorBlock(ConstraintSet(V=V, W=None, sign=sign, bound=bound, weight=weight))
        if table is None:
            raise PartitionError("pairs of keys need a table of points")
        left, right = table.rows(columns["left"], "left"), table.rows(columns["right"], "right")
        return PairBlock(table, left, right, sign, bound, weight)

    def _weight(self, column: NDArray[Any]) -> Floats:
        weight = np.asarray(column, dtype=np.float64)
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise PartitionError("column 'weight' must hold finite numbers that are not negative")
        return weight if self.grid is None else np.round(weight / self.grid) * self.grid


def _signs(label: NDArray[Any]) -> NDArray[np.int8]:
    """Labels as +1 and -1; booleans say whether a pair is similar."""
    if label.dtype.kind == "b":
        return np.where(label, 1, -1).astype(np.int8)
    wrong = (label != 1) & (label != -1)
    if wrong.any():
        found = label[wrong].tolist()[0]
        raise PartitionError(
            f"column 'label' must hold +1 (similar) and -1 (dissimilar) only, found {found!r}"
        )
    return np.ascontiguousarray(label, dtype=np.int8)


def _transform(X: Floats, L: Floats) -> Floats:
    """X L', each row by the same additions whatever the shape of X."""
    Z = np.empty((len(X), len(L)))
    _row_products(X, np.ascontiguousarray(L.T), Z)
    return Z


@kernel
def _row_products(X: Floats, Lt: Floats, Z: Floats) -> None:
    for i in range(X.shape[0]):
        for k in range(Z.shape[1]):
            Z[i, k] = 0.0
        for j in range(X.shape[1]):
            x = X[i, j]
            for k in range(Z.shape[1]):
                Z[i, k] += x * Lt[j, k]


@kernel
def _row_squares(T: Floats, out: Floats) -> None:
    for i in range(out.shape[0]):
        value = 0.0
        for k in range(T.shape[1]):
            value += T[i, k] * T[i, k]
        out[i] = value


@kernel
def _pair_values(Z: Floats, left: Keys, right: Keys, out: Floats) -> None:
    for i in range(out.shape[0]):
        a, b = left[i], right[i]
        value = 0.0
        for k in range(Z.shape[1]):
            t = Z[a, k] - Z[b, k]
            value += t * t
        out[i] = value
