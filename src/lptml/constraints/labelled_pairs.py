"""All pairs of labelled points, as constraints that are never stored.

N points with labels give N (N - 1) / 2 pairs: similar when the labels agree, dissimilar when not. For
50,000 points these are 1.2 thousand million constraints. ``LabelledPairs`` counts violations over all of
them exactly, through blocks of transformed points, and makes a ``ConstraintSet`` of just those that a
sample asks for. Pairs are numbered row by row of the upper triangle: (0,1), (0,2), ..., (1,2), ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml._threads import share_out
from lptml.constraints.checks import (
    as_labels,
    check_bounds,
    check_heaviest,
    check_points,
    check_spread,
    check_weight,
    spread_of_points,
)
from lptml.constraints.constraint_set import (
    ConstraintSet,
    Floats,
    InMemory,
    Ints,
    Scaled,
    psd_factor,
)
from lptml.constraints.violation import limit

#: Up to this many pairs the best scale is found by sorting all of them, above it by sorting this many.
SCALE_PAIRS = 1 << 21
_PARTS = 16  # a count is made in this many parts, several at a time
_BLOCK = 512  # points on each side of a tile: its 2 MB of squared distances stay in the cache


@dataclass(frozen=True, eq=False)
class LabelledPairs(InMemory):
    """Every pair of N labelled points as a constraint; see ``LabelledPairs.from_labels``.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet, LabelledPairs
    >>> X = np.array([[0.0, 0.0], [0.0, 5.0], [2.0, 0.0], [2.0, 5.0]])
    >>> pairs = LabelledPairs.from_labels(X, ["a", "a", "b", "b"], bounds=(1.0, 1.0))
    >>> pairs.n
    6
    >>> pairs.cost(np.eye(2))  # both similar pairs are 5 apart
    2.0
    >>> pairs.cost(np.diag([1.0, 0.0]))
    0.0
    """

    X: Floats
    y: Ints
    bounds: tuple[float, float]
    similar_weight: float
    dissimilar_weight: float
    point_weight: Floats | None

    def __post_init__(self) -> None:
        for array in (self.X, self.y, self.point_weight):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def from_labels(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        bounds: tuple[float, float],
        point_weight: ArrayLike | None = None,
        class_weight: str | dict[int, float] | None = None,
    ) -> LabelledPairs:
        """All pairs of labelled points: similar when they share a label, else dissimilar.

        Parameters
        ----------
        X : array-like of shape (N, d)
            Points.
        y : array-like of shape (N,)
            Labels of any type. Points labelled with the number -1 are unlabelled and left out.
        bounds : (u, l)
            Similar pairs shall be at most u apart, dissimilar ones at least l.
        point_weight : array-like of shape (N,), optional
            A pair weighs the product of its points' weights.
        class_weight : "balanced", {+1: a, -1: b} or None
            Weights of similar and dissimilar pairs; "balanced" gives both kinds the same total.

        Returns
        -------
        LabelledPairs
            ``sample_each`` draws from it; ``take`` makes a ``ConstraintSet`` of pairs by their numbers.
        """
        points, labels = check_points(X, "X", ndim=2), as_labels(y)
        check_spread(spread_of_points(points), "X")
        if labels.shape != (len(points),):
            raise ValueError(
                f"y must hold one label for each point: expected {len(points)}, got shape {labels.shape}"
            )
        weight = None if point_weight is None else check_weight(point_weight, len(points), "point_weight")
        known = labels != -1 if labels.dtype.kind in "if" else np.ones(len(points), dtype=bool)
        if not known.all():
            points, labels = points[known], labels[known]
            weight = None if weight is None else weight[known]
        if len(points) < 2:
            raise ValueError(f"y must label at least two points, got {len(points)}")
        codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        similar_weight, dissimilar_weight = _kind_weights(class_weight, np.bincount(codes))
        # Squared distances come from inner products; centring keeps their rounding errors small.
        return cls(
            X=points - points.mean(axis=0),
            y=codes,
            bounds=check_bounds(bounds),
            similar_weight=similar_weight,
            dissimilar_weight=dissimilar_weight,
            point_weight=weight,
        )

    @property
    def n(self) -> int:
        return len(self.X) * (len(self.X) - 1) // 2

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @cached_property
    def kind_weights(self) -> tuple[float, float]:
        """The total weights of similar and of dissimilar pairs."""
        w = np.ones(len(self.X)) if self.point_weight is None else self.point_weight
        of_class = np.bincount(self.y, weights=w)
        similar = float((of_class**2).sum() - (w**2).sum()) / 2
        dissimilar = float(w.sum() ** 2 - (of_class**2).sum()) / 2
        return self.similar_weight * max(similar, 0.0), self.dissimilar_weight * max(dissimilar, 0.0)

    @property
    def total_weight(self) -> float:
        return sum(self.kind_weights)

    def pairs(self, index: Ints) -> tuple[Ints, Ints]:
        """The two points of the pairs with these numbers."""
        N = len(self.X)
        index = np.asarray(index, dtype=np.int64)
        # Row i starts at i (2N - i - 1) / 2; the root is off by one at most, in either direction.
        i = ((2 * N - 1 - np.sqrt((2.0 * N - 1) ** 2 - 8.0 * index)) / 2).astype(np.int64)
        i = np.clip(i, 0, N - 2)
        i -= _row_start(i, N) > index
        i += _row_start(i + 1, N) <= index
        return i, index - _row_start(i, N) + i + 1

    def take(self, index: Ints) -> ConstraintSet:
        """The pairs with these numbers, as stored constraints."""
        i, j = self.pairs(index)
        return self.between(i, j)

    def between(self, i: Ints, j: Ints) -> ConstraintSet:
        """The pairs of points i and j, as stored constraints."""
        u, l = self.bounds
        similar = self.y[i] == self.y[j]
        weight = np.where(similar, self.similar_weight, self.dissimilar_weight)
        if self.point_weight is not None:
            weight = weight * self.point_weight[i] * self.point_weight[j]
        return ConstraintSet(
            V=self.X[i] - self.X[j],
            W=None,
            sign=np.where(similar, 1, -1).astype(np.int8),
            bound=np.where(similar, u * u, l * l),
            weight=weight,
        )

    def sample_each(self, count: int, rng: np.random.Generator) -> ConstraintSet:
        """``count`` similar and ``count`` dissimilar pairs, uniformly and without repetition."""
        return self.take(self.draw_each(count, rng))

    def draw_each(self, count: int, rng: np.random.Generator) -> Ints:
        """The numbers, ascending, of the pairs of ``sample_each``."""
        if not (isinstance(count, int | np.integer) and count > 0):
            raise ValueError(f"n_constraints must be a positive whole number, got {count!r}")
        if self.n <= max(4 * count, 1 << 16):
            i, j = self.pairs(np.arange(self.n))
            similar = self.y[i] == self.y[j]
            drawn = [
                rng.permutation(kind)[:count] for kind in (np.flatnonzero(similar), np.flatnonzero(~similar))
            ]
            return np.sort(np.concatenate(drawn))
        return np.sort(np.concatenate([self._draw_kind(same, count, rng) for same in (True, False)]))

    def _draw_kind(self, same: bool, count: int, rng: np.random.Generator) -> Ints:
        """Numbers of distinct random pairs of one kind, by drawing pairs until enough of that kind are in."""
        sizes = np.bincount(self.y)
        available = int((sizes * (sizes - 1) // 2).sum())
        available = available if same else self.n - available
        if available <= 2 * count:  # too few to wait for: list them, one class or one row at a time
            return rng.permutation(self._list_kind(same))[:count]
        found = np.empty(0, dtype=np.int64)
        order = np.argsort(self.y, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)])
        share = sizes * (sizes - 1.0)
        while len(found) < count:
            draws = 2 * (count - len(found)) + 64
            if same:
                c = rng.choice(len(sizes), size=draws, p=share / share.sum())
                i, j = (order[starts[c] + rng.integers(sizes[c])] for _ in range(2))
                keep = i != j
            else:
                i, j = rng.integers(len(self.X), size=(2, draws))
                keep = self.y[i] != self.y[j]
            low, high = np.minimum(i, j)[keep], np.maximum(i, j)[keep]
            found = np.unique(np.concatenate([found, _row_start(low, len(self.X)) + high - low - 1]))
        return rng.permutation(found)[:count]

    def _list_kind(self, same: bool) -> Ints:
        N = len(self.X)
        rows = []
        for i in range(N - 1):
            j = np.arange(i + 1, N)
            j = j[(self.y[j] == self.y[i]) == same]
            rows.append(_row_start(np.int64(i), N) + j - i - 1)
        return np.concatenate(rows)

    def projected(self, P: Floats) -> LabelledPairs:
        """The same pairs of the points mapped by P (r, d)."""
        return replace(self, X=self.X @ P.T)

    def cost(self, A: Floats) -> Any:
        """The weight of the pairs that A violates, over all pairs: a float, or shape (k,) for a stack."""
        stack = np.atleast_3d(A.T).T  # (k, d, d)
        costs = np.array([self._cost(metric) for metric in stack])
        return float(costs[0]) if A.ndim == 2 else costs

    def _cost(self, A: Floats) -> float:
        order = self._by_class
        Z = self.X[order] @ psd_factor(A).T  # (N, rank)
        w = None if self.point_weight is None else self.point_weight[order]
        norms = np.einsum("ij,ij->i", Z, Z)
        ones = np.ones_like(norms)
        # One matrix product gives |z|^2 - 2 z'z~ + |z~|^2, the squared distances of a whole tile.
        left = np.column_stack([-2.0 * Z, norms, ones])
        right = np.column_stack([Z, ones, norms])
        u, l = self.bounds

        def violated(tiles: list[tuple[slice, slice, bool]]) -> Floats:
            """The weights of violated similar and dissimilar pairs in these tiles."""
            total = np.zeros(2)
            tile, mask = np.empty(_BLOCK * _BLOCK), np.empty(_BLOCK * _BLOCK, dtype=bool)
            for rows, columns, same in tiles:
                shape = (rows.stop - rows.start, columns.stop - columns.start)
                d2 = tile[: shape[0] * shape[1]].reshape(shape)
                np.matmul(left[rows], right[columns].T, out=d2)
                over = mask[: d2.size].reshape(shape)
                slack = 1e-14 * (norms[rows].max() + norms[columns].max())
                threshold = limit(1, u * u) if same else limit(-1, l * l)
                _exceed(d2, threshold, slack, Z[rows], Z[columns], over)
                if same:
                    total[0] += (0.5 if rows == columns else 1.0) * _weigh(over, w, rows, columns)
                else:
                    np.logical_not(over, out=over)
                    total[1] += _weigh(over, w, rows, columns)
            return total

        tiles = list(self._tiles())
        # The parts do not depend on the number of processors, so neither does the rounding of their sum.
        count = min(_PARTS, 1 + len(tiles) // 64)
        parts = [tiles[k::count] for k in range(count)]
        similar, dissimilar = np.sum(share_out(violated, parts), axis=0)
        return float(self.similar_weight * similar + self.dissimilar_weight * dissimilar)

    @cached_property
    def _by_class(self) -> Ints:
        return np.argsort(self.y, kind="stable")

    def _tiles(self) -> Iterator[tuple[slice, slice, bool]]:
        """Tiles of the matrix of pairs, points sorted by class, that hold each pair of one kind once.

        A tile on the diagonal (rows == columns) holds its similar pairs twice.
        """
        N = len(self.X)
        edges = np.concatenate([[0], np.cumsum(np.bincount(self.y))])
        for first, last in pairwise(edges):
            for top in range(first, last, _BLOCK):
                rows = slice(top, min(top + _BLOCK, last))
                for left in range(top, last, _BLOCK):
                    yield rows, slice(left, min(left + _BLOCK, last)), True
                for left in range(last, N, _BLOCK):
                    yield rows, slice(left, min(left + _BLOCK, N)), False

    def best_scale(self, A: Floats, slope: float = 0.0) -> Scaled:
        """The multiple c A that violates least; above ``SCALE_PAIRS`` pairs the best one for that many.

        With a slope, the one of least cost + slope * c.
        """
        from lptml.constraints.ray import best_on_ray  # compiled code is loaded where it is needed

        few = self.n <= SCALE_PAIRS
        index = (
            np.arange(self.n) if few else np.random.default_rng(0).integers(self.n, size=SCALE_PAIRS)
        )  # fixed, so that every call sees the same pairs
        u, l = self.bounds
        i, j = self.pairs(index)
        similar = self.y[i] == self.y[j]
        weight = np.where(similar, self.similar_weight, self.dissimilar_weight)
        if self.point_weight is not None:
            weight *= self.point_weight[i] * self.point_weight[j]
        Z = self.X @ psd_factor(A).T
        values = np.concatenate(
            [_row_squares(Z[i[k : k + 65536]] - Z[j[k : k + 65536]]) for k in range(0, len(i), 65536)]
        )
        sign = np.where(similar, 1, -1).astype(np.int8)
        share = len(index) / self.n
        best = best_on_ray(values, sign, np.where(similar, u * u, l * l), weight, slope * share)
        return best if few else Scaled(best.scale, self.cost(best.scale * A) + slope * best.scale)

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""
        similar, dissimilar = self.kind_weights
        twin = np.unique(self.X, axis=0, return_inverse=True)[1].ravel()
        w = np.ones(len(self.X)) if self.point_weight is None else self.point_weight
        twins = _pair_weight(twin, w)
        twins_of_a_class = _pair_weight(
            np.unique(np.stack([twin, self.y]), axis=1, return_inverse=True)[1], w
        )
        apart = similar - self.similar_weight * twins_of_a_class
        return dissimilar, apart + self.dissimilar_weight * (twins - twins_of_a_class)


def _row_start(i: Any, N: int) -> Any:
    """The number of the first pair (i, i + 1) of a row."""
    return i * (2 * N - i - 1) // 2


def _row_squares(T: Floats) -> Floats:
    return np.einsum("ij,ij->i", T, T)


def _pair_weight(group: Ints, w: Floats) -> float:
    """The total weight of the pairs within groups of points."""
    group = np.ravel(group)
    sums = np.bincount(group, weights=w)
    return float((sums**2).sum() - (w**2).sum()) / 2


def _exceed(
    d2: Floats, threshold: float, slack: float, Z: Floats, Y: Floats, over: NDArray[np.bool_]
) -> None:
    """Set in ``over`` which squared distances exceed a threshold, computing anew those too close to call."""
    np.greater(d2, threshold + slack, out=over)
    surely = np.count_nonzero(over)
    np.greater(d2, threshold - slack, out=over)
    if np.count_nonzero(over) != surely:
        i, j = np.nonzero(over & (d2 <= threshold + slack))
        over[i, j] = _row_squares(Z[i] - Y[j]) > threshold


def _weigh(mask: NDArray[np.bool_], w: Floats | None, rows: slice, columns: slice) -> float:
    if w is None:
        return float(np.count_nonzero(mask))
    return float(w[rows] @ (mask @ w[columns]))


def _kind_weights(class_weight: str | dict[int, float] | None, sizes: Ints) -> tuple[float, float]:
    """What a similar and a dissimilar pair weigh; "balanced" keeps the mean weight at 1."""
    if class_weight is None:
        return 1.0, 1.0
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}")
        N = int(sizes.sum())
        similar = int((sizes * (sizes - 1) // 2).sum())
        total = N * (N - 1) // 2
        return total / (2 * max(similar, 1)), total / (2 * max(total - similar, 1))
    try:
        similar_weight, dissimilar_weight = float(class_weight[1]), float(class_weight[-1])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"class_weight must give weights for +1 and -1, got {class_weight!r}") from None
    if not (0 <= similar_weight < np.inf and 0 <= dissimilar_weight < np.inf):
        raise ValueError(f"class_weight must hold finite weights that are not negative, got {class_weight!r}")
    check_heaviest(np.array([similar_weight, dissimilar_weight]), "class_weight")
    return similar_weight, dissimilar_weight
