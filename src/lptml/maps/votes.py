"""Votes of neighbours under a map: class probabilities as weighted means of what training points believe.

A voter weighs the training points by how near they are to a point, and averages their beliefs. Leaving out a
point's own belief gives out-of-sample probabilities of the training points, from which smoothing is chosen,
labels are judged and probabilities are calibrated.

- ``NearestVotes``: the k nearest under a metric, weighted by a Gaussian whose standard deviation is half the
  distance of the farthest of them (or alike, or by the inverse distance).
- ``RidgeVotes``: all points through a Gaussian kernel of the robustly scaled features, by regularised least
  squares. The weights are those of kernel ridge regression, whose predictions without a point are known in
  closed form.
- ``LeafVotes``: the points in the same leaves of a forest, every tree with the same total weight: the
  forest's own prediction, as weights of neighbours (Lin and Jeon 2006). A training point hears just the trees
  that were not grown on it.

``settled`` fixes the beliefs; what it returns judges new points and is plain arrays.

References
----------
Lin, Y. and Jeon, Y. (2006). Random forests and adaptive nearest neighbors. Journal of the American
Statistical Association 101 (474), 578-590.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import Floats, Ints
from lptml.maps.forest import Trees
from lptml.points.scatter import robust_scale, squared_distances

#: Arrays, numbers and texts by name.
State = dict[str, Any]

_BLOCK = 1024
_LANDMARKS = 600
_CELLS = 12_000_000  # entries of the matrix of basis functions at most
_CLIP = 3.0  # robust standard deviations beyond which features of the kernel are cut off
_FEWEST = 1e-3  # probability that no class falls below in least squares


class Settled(Protocol):
    """Class probabilities of new points."""

    def about(self, X: Floats) -> Floats:
        """(q, K)"""
        ...

    def arrays(self) -> State:
        """The state."""
        ...


class Voter(Protocol):
    """Class probabilities from the beliefs (n, K) of the training points."""

    def among(self, beliefs: Floats) -> Floats:
        """(n, K) probabilities of the training points, each without its own belief."""
        ...

    def settled(self, beliefs: Floats) -> Settled:
        """The voter with these beliefs, for new points."""
        ...


class _Stored:
    """A dataclass of arrays and numbers as a state."""

    def arrays(self: Any) -> State:
        """Every field by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _shares(votes: Floats) -> Floats:
    """Votes as probabilities; alike where nobody votes."""
    total = votes.sum(axis=1, keepdims=True)
    alike = np.full_like(votes, 1.0 / votes.shape[1])
    return np.divide(votes, total, out=alike, where=total > 0)


@dataclass(frozen=True, eq=False)
class NearestVotes:
    """The k nearest of points (n, m); ``order`` and ``length`` are those of each among the others.

    Examples
    --------
    >>> Z = np.array([[0.0], [1.0], [10.0]])
    >>> voter = NearestVotes.of(Z, (2,), "gaussian")[0]
    >>> voter.settled(np.eye(3)).about(np.array([[0.1]])).round(2)
    array([[0.88, 0.12, 0.  ]])
    """

    points: Floats
    k: int
    weights: str
    order: Ints
    length: Floats

    @classmethod
    def of(cls, points: Floats, ks: tuple[int, ...], weights: str) -> list[Self]:
        """A voter for every number of neighbours that there are points for."""
        from sklearn.neighbors import NearestNeighbors

        most = len(points) - 1
        possible = sorted({min(k, most) for k in ks})
        length, order = NearestNeighbors(n_neighbors=possible[-1]).fit(points).kneighbors()
        return [cls(points, k, weights, order, length) for k in possible]

    def among(self, beliefs: Floats) -> Floats:
        """Every training point by its neighbours."""
        return _mean(self.length[:, : self.k], beliefs[self.order[:, : self.k]], self.weights)

    def settled(self, beliefs: Floats) -> Nearest:
        """For new points."""
        return Nearest(self.points, beliefs, self.k, self.weights)


@dataclass(frozen=True, eq=False)
class Nearest(_Stored):
    """The k nearest of points, with what they believe."""

    points: Floats
    beliefs: Floats
    k: int
    weights: str

    def _is_sound(self, d: int, n_classes: int) -> bool:
        known = self.weights in ("gaussian", "uniform", "distance") and 1 <= self.k <= len(self.points)
        return known and self.points.ndim == 2 and self.beliefs.shape == (len(self.points), n_classes)

    def about(self, X: Floats) -> Floats:
        """New points, mapped as the training points were."""
        from sklearn.neighbors import NearestNeighbors

        finder = NearestNeighbors(n_neighbors=min(self.k, len(self.points))).fit(self.points)
        length, order = finder.kneighbors(X)
        return _mean(length, self.beliefs[order], self.weights)


def _mean(length: Floats, beliefs: Floats, weights: str) -> Floats:
    """Mean (n, K) of beliefs (n, k, K), weighted by the distances (n, k)."""
    if weights == "uniform":
        return _shares(beliefs.sum(axis=1))
    if weights == "distance":
        smallest = np.maximum(length.min(axis=1, keepdims=True), 1e-300)
        w = smallest / np.maximum(length, smallest)
    else:
        farthest = np.maximum(length.max(axis=1, keepdims=True), 1e-300)
        w = np.exp(-2.0 * np.square(length / farthest))
    return _shares(np.einsum("ik,ikc->ic", w, beliefs))


@dataclass(frozen=True, eq=False)
class RidgeVotes:
    """Least squares on Gaussian basis functions, with a penalty ``ridge`` on their squared coefficients.

    Examples
    --------
    >>> X = np.linspace(0.0, 1.0, 40)[:, None]
    >>> voter = RidgeVotes.of(X, (0.5,))[0]
    >>> beliefs = np.eye(2)[(X[:, 0] > 0.5).astype(int)]
    >>> voter.settled(beliefs).about(np.array([[0.1], [0.9]])).argmax(axis=1)
    array([0, 1])
    """

    basis: Basis
    values: Floats  # (n, m) basis functions at the training points
    ridge: float

    @classmethod
    def of(cls, X: Floats, ridges: tuple[float, ...], seed: int = 0) -> list[Self]:
        """A voter for every penalty."""
        basis = Basis.of(X, seed)
        values = basis.at(X)
        return [cls(basis, values, ridge) for ridge in ridges]

    def _solved(self, right: Floats) -> Floats:
        gram = self.values.T @ self.values
        gram[np.diag_indices(len(gram))] += self.ridge
        return np.asarray(np.linalg.solve(gram, right))

    def among(self, beliefs: Floats) -> Floats:
        """Every training point by all others."""
        mean = beliefs.mean(axis=0)
        hat = self._solved(self.values.T)  # (m, n)
        leverage = np.minimum(np.einsum("im,mi->i", self.values, hat), 1.0 - 1e-9)
        residual = beliefs - mean - self.values @ (hat @ (beliefs - mean))
        return _shares(np.maximum(beliefs - residual / (1.0 - leverage)[:, None], _FEWEST * mean.sum()))

    def settled(self, beliefs: Floats) -> Ridge:
        """For new points."""
        mean = beliefs.mean(axis=0)
        slope = self._solved(self.values.T @ (beliefs - mean))
        basis = self.basis
        return Ridge(basis.centre, basis.scale, basis.landmarks, basis.width, basis.root @ slope, mean)


@dataclass(frozen=True, eq=False)
class Basis:
    """Gaussian functions around landmarks, made orthonormal there."""

    centre: Floats
    scale: Floats
    landmarks: Floats
    width: float
    root: Floats

    @classmethod
    def of(cls, X: Floats, seed: int) -> Self:
        """All points are landmarks up to 600; the width is twice the median squared 20th distance."""
        centre, scale = np.median(X, axis=0), robust_scale(X)
        n = len(X)
        m = min(n, _LANDMARKS, max(100, _CELLS // n))
        some = np.sort(np.random.default_rng(seed).permutation(n)[:m])
        landmarks = _scaled(X[some], centre, scale)
        among = squared_distances(landmarks, landmarks)
        rank = min(20, m - 1)
        width = 2.0 * float(np.median(np.partition(among, rank, axis=1)[:, rank])) or 1.0
        values, Q = np.linalg.eigh(np.exp(-among / (2.0 * width)))
        kept = values > 1e-8 * values[-1]
        return cls(centre, scale, landmarks, width, Q[:, kept] / np.sqrt(values[kept]))

    def at(self, X: Floats) -> Floats:
        """(n, m)"""
        return _kernel(_scaled(X, self.centre, self.scale), self.landmarks, self.width) @ self.root


def _scaled(X: Floats, centre: Floats, scale: Floats) -> Floats:
    return np.clip((X - centre) / scale, -_CLIP, _CLIP)


def _kernel(Z: Floats, landmarks: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-squared_distances(Z, landmarks) / (2.0 * width)))


@dataclass(frozen=True, eq=False)
class Ridge(_Stored):
    """What least squares found, for new points."""

    centre: Floats
    scale: Floats
    landmarks: Floats
    width: float
    slope: Floats
    mean: Floats

    def _is_sound(self, d: int, n_classes: int) -> bool:
        m = len(self.landmarks)
        return (
            self.centre.shape == self.scale.shape == (d,)
            and self.landmarks.shape == (m, d)
            and self.slope.shape == (m, n_classes)
            and self.mean.shape == (n_classes,)
            and self.width > 0
            and bool((self.scale > 0).all())
        )

    def about(self, X: Floats) -> Floats:
        """(q, K)"""
        blocks = [
            _kernel(_scaled(X[i : i + _BLOCK], self.centre, self.scale), self.landmarks, self.width)
            @ self.slope
            for i in range(0, len(X), _BLOCK)
        ]
        return _shares(np.maximum(self.mean + np.concatenate(blocks), _FEWEST * self.mean.sum()))


@dataclass(frozen=True, eq=False)
class LeafVotes:
    """The points in the same leaves; ``leaves`` (n, trees) are those of the training points.

    Examples
    --------
    >>> trees = Trees(np.array([[1, 2], [-1, -1], [-2, -2]]), np.zeros(3, int), np.array([0.5, 0, 0]),
    ...               np.zeros(1, int), np.zeros(1), np.ones(1))
    >>> X = np.array([[0.0], [0.2], [1.0]])
    >>> voter = LeafVotes(trees, trees.leaves(X), np.ones((3, 1), bool))
    >>> voter.settled(np.eye(3)).about(np.array([[0.1]]))
    array([[0.5, 0.5, 0. ]])
    """

    trees: Trees
    leaves: Ints
    left_out: NDArray[np.bool_]

    def _sums(self, beliefs: Floats) -> Floats:
        """Sum of the beliefs in every leaf (leaves, K)."""
        at, number = self.leaves.ravel(), self.leaves.shape[1]
        sums = [
            np.bincount(at, weights=np.repeat(column, number), minlength=self.trees.n_leaves)
            for column in beliefs.T
        ]
        return np.stack(sums, axis=1)

    def among(self, beliefs: Floats) -> Floats:
        """Every training point by the trees that were not grown on it."""
        sums = self._sums(beliefs)
        out = np.empty_like(beliefs)
        for i in range(0, len(beliefs), _BLOCK):
            rows = slice(i, i + _BLOCK)
            others = np.maximum(sums[self.leaves[rows]] - beliefs[rows, None], 0.0)  # (b, trees, K)
            total = others.sum(axis=2)
            heard = self.left_out[rows] & (total > 1e-12)
            weight = np.divide(heard, total, out=np.zeros_like(total), where=heard)
            out[rows] = np.einsum("it,itc->ic", weight, others)
        nobody = out.sum(axis=1) == 0
        out[nobody] = beliefs.sum(axis=0)
        return _shares(out)

    def settled(self, beliefs: Floats) -> Leaves:
        """For new points."""
        trees = self.trees
        shares = _shares(self._sums(beliefs))
        return Leaves(**vars(trees), shares=shares)


@dataclass(frozen=True, eq=False)
class Leaves(_Stored):
    """Trees with class probabilities in their leaves."""

    children: Ints
    feature: Ints
    threshold: Floats
    roots: Ints
    centre: Floats
    scale: Floats
    shares: Floats

    def _is_sound(self, d: int, n_classes: int) -> bool:
        self._trees.check(d)
        return self.shares.shape == (self._trees.n_leaves, n_classes)

    @property
    def _trees(self) -> Trees:
        return Trees(self.children, self.feature, self.threshold, self.roots, self.centre, self.scale)

    def about(self, X: Floats) -> Floats:
        """(q, K): the mean over the trees."""
        trees = self._trees
        blocks = [self.shares[trees.leaves(X[i : i + _BLOCK])].mean(axis=1) for i in range(0, len(X), _BLOCK)]
        return np.concatenate(blocks)


def restore(state: State, d: int, n_classes: int) -> Nearest | Ridge | Leaves:
    """The settled voter of a state.

    Raises
    ------
    ValueError
        If it is the state of none that judges points of d features (or of a map) by so many classes.
    """
    for kind in (Nearest, Ridge, Leaves):
        if set(state) == {field.name for field in fields(kind)}:
            try:
                voter = kind(**state)
                if voter._is_sound(d, n_classes):
                    return voter
            except (AttributeError, IndexError, TypeError, ValueError) as error:
                raise ValueError(f"the parts of {kind.__name__} are of the wrong type") from error
    raise ValueError(f"no voter of {n_classes} classes has the parts {', '.join(sorted(state))}")
