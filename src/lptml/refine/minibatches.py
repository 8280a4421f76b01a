"""Minibatches of the annealing, and the derivative of the smoothed cost of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lptml._jit import announce
from lptml.constraints import ConstraintSet, Floats, Ints, Source, rows_at
from lptml.constraints.indexed_pairs import IndexedPairs
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.labelled_triplets import LabelledTriplets
from lptml.refine.kernels import smooth_gram, smooth_rows

_ROWS = 16_384  # explicit constraints a minibatch
_RUN = 8  # consecutive constraints drawn together
_STORED = 2_000_000  # numbers of explicit constraints that are held in the precision of the descent
_CACHED = 2048  # rows whose images are made at once
_STRIP = 64  # of them whose distances are made at once, to stay in the cache
_POINTS = 512  # labelled points a minibatch: 130,816 pairs, or some 15,000 triplets
_SHORT = 1e-9  # a distance is taken for at least this much of its bound

Reals = NDArray[np.floating[Any]]


class Batches(Protocol):
    work: float  # multiplications a step and row of G
    share: float  # of all constraints that a minibatch holds

    def gradient(self, G: Floats, temperature: float) -> Floats:
        """The derivative of the smoothed cost of the next minibatch by G."""


class _RowBatches:
    """Minibatches of explicit constraints; few of them are followed all at once.

    Many are followed in single precision: nothing depends on the last digits.
    """

    def __init__(
        self,
        source: ConstraintSet | IndexedPairs,
        rng: np.random.Generator,
        batch: int,
        moderate: bool,
        warm: bool,
    ) -> None:
        self._source = source
        self._rng = rng
        self._batch = batch
        self._warm = warm
        rows = min(batch, source.n)
        self.work = 2.0 * rows * source.d
        self.share = rows / source.n
        single = moderate and (warm or source.n > batch)
        self._precision: type[np.floating[Any]] = np.float32 if single else np.float64
        self._stored: _Rows | None = None
        if source.n <= batch or source.n * source.d <= _STORED:
            self._stored = self._held(source.take(slice(None)))

    def gradient(self, G: Floats, temperature: float) -> Floats:
        gradient = np.zeros_like(G)
        for index in self._blocks():
            stored = self._stored
            rows = self._held(self._source.take(index)) if stored is None else stored.take(index)
            rows.add(gradient, G, temperature)
        return gradient / temperature if self._warm else gradient

    def _held(self, rows: ConstraintSet) -> _Rows:
        parts: list[Reals] = [
            part.astype(self._precision, copy=False) for part in (rows.V, rows.W) if part is not None
        ]
        kind, precision = (_WarmRows, self._precision) if self._warm else (_Rows, np.float64)
        # Copies, because Numba compiles a kernel anew for read-only arrays.
        return kind(
            parts, *(np.array(part, dtype=precision) for part in (rows.sign, rows.bound, rows.weight))
        )

    def _blocks(self) -> Iterator[Ints | slice]:
        """Blocks of all rows or of random ones: runs of neighbours, as memory brings several at a time."""
        if self._source.n <= self._batch:
            for start in range(0, self._source.n, _CACHED):
                yield slice(start, start + _CACHED)
            return
        run = min(_RUN, self._batch)
        first = self._rng.integers(self._source.n - run + 1, size=self._batch // run)
        first.sort()
        index = (first[:, None] + np.arange(run)).ravel()
        for start in range(0, len(index), _CACHED):
            yield index[start : start + _CACHED]


@dataclass(frozen=True, eq=False)
class _Rows:
    """A block of explicit constraints whose images stay in the cache."""

    parts: list[Reals]  # V, and W of comparisons
    sign: Reals
    bound: Reals
    weight: Reals

    def take(self, index: Ints | slice) -> Self:
        values = (rows_at(values, index) for values in (self.sign, self.bound, self.weight))
        return type(self)([rows_at(part, index) for part in self.parts], *values)

    def add(self, gradient: Floats, G: Floats, temperature: float) -> None:
        """Add the derivative of the smoothed cost by G (times the temperature, if warm) to ``gradient``."""
        factor = G.T.astype(self.parts[0].dtype)
        images = [part @ factor for part in self.parts]  # (rows, k) each
        squares = [np.einsum("ij,ij->i", image, image) for image in images]
        for part, image, factors in zip(self.parts, images, self._factors(squares, temperature)):
            image *= factors[:, None]
            gradient += image.T @ part

    def _factors(self, squares: list[Reals], temperature: float) -> list[Reals]:
        """Twice the derivatives of the cost by |G v|^2 and |G w|^2."""
        announce(smooth_rows)
        square, near = squares[0].astype(np.float64), np.empty(0)
        if len(squares) > 1:
            near = squares[1].astype(np.float64)
        pull, push = np.empty((2, len(square)))
        smooth_rows(near, square, self.sign, self.bound, self.weight, temperature, pull, push)
        used = (pull, push)[: len(squares)]  # of pairs there is nothing to push
        return [(2.0 * slope).astype(squares[0].dtype) for slope in used]


class _WarmRows(_Rows):
    """The same without compiled code, times the temperature."""

    def _factors(self, squares: list[Reals], temperature: float) -> list[Reals]:
        edge = np.sqrt(self.bound + squares[1] if len(squares) > 1 else self.bound)
        length = np.sqrt(squares[0])
        slope = _slopes(length, edge, self.sign * self.weight, temperature)
        return [slope / np.maximum(length, _SHORT * edge), slope / -edge]


class _PointBatches:
    """Minibatches of labelled points, each with all pairs among them."""

    def __init__(self, pairs: LabelledPairs, rng: np.random.Generator, batch: int) -> None:
        self._pairs = pairs
        self._rng = rng
        self._batch = batch
        N = len(pairs.X)
        m = min(batch, N)
        self.work = 2.0 * m * (m + pairs.d)
        self.share = m * (m - 1) / (N * (N - 1))
        # Copies, because Numba compiles a kernel anew for read-only arrays.
        self._y = np.array(pairs.y)
        self._weight = np.ones(N) if pairs.point_weight is None else np.array(pairs.point_weight)
        self._order: Ints = np.empty(0, dtype=np.int64)

    def gradient(self, G: Floats, temperature: float) -> Floats:
        pairs, index = self._pairs, self._next()
        X, y, weight = pairs.X[index], self._y[index], self._weight[index]
        Y = X @ G.T  # (m, k)
        K = Y @ Y.T  # (m, m)
        total = np.empty(len(X))
        announce(smooth_gram)
        kind_weight = np.array([pairs.similar_weight, pairs.dissimilar_weight])
        smooth_gram(K, y, weight, kind_weight, np.array(pairs.bounds), temperature, total)
        return 2.0 * ((K @ Y + total[:, None] * Y).T @ X)

    def _next(self) -> Ints | slice:
        """All points, or the next of a random order; every point comes once before any comes again."""
        if len(self._y) <= self._batch:
            return slice(None)
        if len(self._order) < self._batch:
            self._order = self._rng.permutation(len(self._y))
        index, self._order = self._order[: self._batch], self._order[self._batch :]
        return np.sort(index)


class _WarmPointBatches(_PointBatches):
    """The same without compiled code, in single precision where it holds the numbers."""

    def __init__(self, pairs: LabelledPairs, rng: np.random.Generator, batch: int, moderate: bool) -> None:
        super().__init__(pairs, rng, batch)
        precision: type[np.floating[Any]] = np.float32 if moderate else np.float64
        # Seen from the middle: the squared distances are differences of the squares.
        self._X: Reals = (pairs.X - np.median(pairs.X, axis=0)).astype(precision)
        self._whole = self._among(slice(None)) if len(self._X) <= batch else None

    def gradient(self, G: Floats, temperature: float) -> Floats:
        X, edge, weight = self._whole or self._among(self._next())
        Y = X @ G.T.astype(X.dtype)  # (m, k)
        squares = np.einsum("ij,ij->i", Y, Y)
        force = np.zeros_like(Y)  # on each image: the Laplacian of the slopes times Y
        short = _SHORT * min(self._pairs.bounds)
        for start in range(0, len(Y), _STRIP):  # pairs of the strip's points with all up to them
            rows, upto = slice(start, start + _STRIP), slice(start + _STRIP)
            length = (-2.0 * Y[rows]) @ Y[upto].T
            length += squares[rows, None]
            length += squares[upto]
            np.sqrt(np.maximum(length, 0.0, out=length), out=length)
            slope = _slopes(length, edge[rows, upto], weight[rows, upto], temperature)
            slope /= np.maximum(length, short, out=length)
            force[rows] += slope.sum(axis=1)[:, None] * Y[rows] - slope @ Y[upto]
            before = slope[:, :start]
            force[:start] += before.sum(axis=0)[:, None] * Y[:start] - before.T @ Y[rows]
        return (force.T @ X).astype(np.float64) / temperature

    def _among(self, index: Ints | slice) -> tuple[Reals, Reals, Reals]:
        """Points, the bound of each pair of them, and its weight with the sign of its kind."""
        X, pairs = self._X[index], self._pairs
        y, weight = self._y[index], self._weight[index].astype(X.dtype)
        kinds = [pairs.bounds, (pairs.similar_weight, -pairs.dissimilar_weight)]
        (u, l), (similar, dissimilar) = np.array(kinds, dtype=X.dtype)
        same = y[:, None] == y
        signed = np.where(same, similar, dissimilar)
        signed *= weight[:, None] * weight
        np.fill_diagonal(signed, 0.0)
        return X, np.where(same, u, l), signed


class _TripletBatches:
    """Minibatches of anchors with all their triplets, whose distances they share."""

    def __init__(
        self, triplets: LabelledTriplets, rng: np.random.Generator, batch: int, moderate: bool, warm: bool
    ) -> None:
        self._rng = rng
        self._batch = min(batch, len(triplets.anchors))
        self._a = triplets.targets.shape[1]
        self._precision: type[np.floating[Any]] = np.float32 if moderate and warm else np.float64
        # Seen from the middle: the differences of points far from the origin lose digits.
        self._X: Reals = (triplets.X - np.median(triplets.X, axis=0)).astype(self._precision)
        self._anchors = triplets.anchors
        self._others = np.concatenate([triplets.targets, triplets.impostors], axis=1)  # (m, a + b)
        w = np.ones(len(self._X)) if triplets.point_weight is None else triplets.point_weight
        weight = np.where(self._others >= 0, w[self._others], 0.0)
        weight[:, : self._a] *= w[self._anchors, None]
        self._weight: Reals = weight.astype(self._precision)
        self.work = 2.0 * self._batch * self._others.shape[1] * triplets.d
        self.share = self._batch / len(self._anchors)
        self._whole = self._among(slice(None)) if self._batch == len(self._anchors) else None

    def gradient(self, G: Floats, temperature: float) -> Floats:
        V, weight = self._whole or self._among(self._rng.permutation(len(self._anchors))[: self._batch])
        Y = V @ G.T.astype(V.dtype)  # (m (a + b), k)
        squares = np.einsum("ij,ij->i", Y, Y).reshape(len(weight), -1)
        edge = np.sqrt(squares[:, : self._a, None] + V.dtype.type(1.0))  # (m, a, 1)
        length = np.sqrt(squares[:, None, self._a :])  # (m, 1, b)
        slope = _slopes(length, edge, weight, temperature)  # (m, a, b)
        pull = (slope / edge).sum(axis=2)
        push = (slope / np.maximum(length, _SHORT)).sum(axis=1)
        Y *= np.concatenate([pull, -push], axis=1).reshape(-1, 1)
        return (Y.T @ V).astype(np.float64) / temperature

    def _among(self, index: Ints | slice) -> tuple[Reals, Reals]:
        """Difference vectors of anchors and others, (m (a + b), d), and weights of triplets, (m, a, b)."""
        others, weight = self._others[index], self._weight[index]
        V = self._X[self._anchors[index], None] - self._X[others]
        return V.reshape(-1, V.shape[2]), weight[:, : self._a, None] * weight[:, None, self._a :]


def _slopes(length: Reals, edge: Reals, weight: Reals, temperature: float) -> Reals:
    """weight p (1 - p), where p is the sigmoid of (length - edge) / temperature."""
    slope = length - edge
    np.abs(slope, out=slope)
    slope *= -1.0 / temperature
    np.exp(slope, out=slope)  # e of -|z|: it cannot overflow
    odds = slope + 1.0
    odds *= odds
    slope /= odds
    slope *= weight
    return slope


def batches_of(
    source: Source,
    sample: ConstraintSet,
    rng: np.random.Generator,
    batch: int | None,
    moderate: bool,
    warm: bool,
) -> Batches:
    """Minibatches; ``moderate``: whether single precision holds the numbers.

    As long as it is warm every constraint pulls, NumPy is as fast as a compiled loop, and single precision
    takes half of its time. When it is cold, most constraints pull no more, and a loop skips them; what pulls
    at a point then all but cancels, and needs double precision: on Wine at percentiles the violated share
    would be .321 instead of .312.
    """
    if isinstance(source, LabelledPairs):
        size = batch or _POINTS
        return _WarmPointBatches(source, rng, size, moderate) if warm else _PointBatches(source, rng, size)
    if isinstance(source, LabelledTriplets):
        return _TripletBatches(source, rng, batch or _POINTS, moderate, warm)
    rows = source if isinstance(source, ConstraintSet | IndexedPairs) else sample
    batches = _RowBatches(rows, rng, batch or _ROWS, moderate, warm)
    batches.share *= rows.total_weight / source.total_weight
    return batches
