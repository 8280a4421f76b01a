"""Which training points vote for a query: neighbours by random walks, under metrics that no label decides.

Features come first: x becomes asinh((x - median) / spread), which pulls in their tails. Two metrics follow:
every feature divided by its standard deviation, and that metric whitened by the scatter of the differences
between neighbours, which makes the directions small in which neighbours differ and so large those
in which clusters do. Under each, a point is tied to its 10 nearest reference points, by
exp(-d^2 / (s_i s_j)) with s the distance to the tenth. A walk from the query along these ties has after
five steps arrived with a certain probability at each training point; the average over both metrics is how
near that point is. The ``k`` nearest have one vote each. Walks stay within clusters, so that k may be as
large as a cluster and the voters still of one class, which is what a lead that survives many flips needs.

Where these votes are close a second, sharper vote decides: weights (k(x) + 1)'(K + 1 + c I)^-1 with a
Gaussian kernel under the first metric, which is kernel ridge regression on indicators of the classes: linear
in them, therefore a vote, though some weights are negative.

Everything here is a function of the points alone. With a separate ``reference`` the ties, scales and widths
are a function of the reference alone, and how near a training point is to a query does not depend on other
training points.

References
----------
Coifman, R. R. and Lafon, S. (2006). Diffusion maps. Applied and Computational Harmonic Analysis 21 (1), 5-30.

Zelnik-Manor, L. and Perona, P. (2004). Self-tuning spectral clustering. NIPS 17.

Rosenfeld, E., Winston, E., Ravikumar, P. and Kolter, J. Z. (2020). Certified robustness to label-flipping
attacks via randomized smoothing. ICML 37.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.spatial.distance import cdist

from lptml.constraints.checks import Floats, Ints
from lptml.constraints.span import span_of_points
from lptml.points.priors import standardised
from lptml.points.scatter import robust_scale

# Chosen on the 13 development sets (docs/certified.md): 5 ties or 2 steps lose a point of certified accuracy,
# 8 steps half a point. Tails pulled in gain half a point to one and a half at each budget.
_TIES = 10  # neighbours that a point is tied to
_STEPS = 4  # of the walk, after the one from the query
_ROUNDS = 3  # of whitening: neighbours under the metric so far, then the scatter of their differences
_RIDGE = 0.1  # added to that scatter, whose average eigenvalue is 1
_NOISE = 0.3  # c of the kernel vote
_DIGITS = 12  # probabilities that agree so far are equal, so that rounding decides nothing


@dataclass(frozen=True, eq=False)
class _Walk:
    """One metric: where the reference points lie, and where walks from them arrive."""

    L: Floats
    """(r, d)"""
    nodes: Floats
    """(R, r)"""
    widths: Floats
    """(R,): the distance to the tenth neighbour"""
    arrivals: Floats
    """(R, N): probability of each training point after the walk"""


@dataclass(frozen=True, eq=False)
class Voters:
    """Who votes, for any query; made by :func:`find_voters`."""

    median: Floats
    """(d,)"""
    spread: Floats
    """(d,)"""
    mean: Floats
    """(d,): of the features after their tails were pulled in"""
    walks: tuple[_Walk, ...]
    width: float
    """Squared distances are divided by it in the kernel vote."""
    points: Floats
    """(N, r): training points under the first metric"""
    factor: tuple[Floats, bool]
    """Cholesky factor of K + 1 + c I"""

    def nearest(self, X: Floats, k: int) -> Ints:
        """(q, k) numbers of the training points that vote for each query (q, d)."""
        centred = self.features(X)
        near = sum(_ties(centred @ w.L.T, w.nodes, w.widths) @ w.arrivals for w in self.walks)
        near = np.round(np.asarray(near) / len(self.walks), _DIGITS)
        order = np.argsort(-near, axis=1, kind="stable")[:, :k]
        return order.astype(np.int64)

    def weights(self, X: Floats) -> Floats:
        """(q, N) weights of all training points in the second vote."""
        kernel = _kernel(self.features(X) @ self.walks[0].L.T, self.points, self.width)
        return np.asarray(cho_solve(self.factor, kernel.T).T)

    def features(self, X: Floats) -> Floats:
        """(q, d): features with their tails pulled in, which metrics are applied to."""
        return _pulled_in(X, self.median, self.spread) - self.mean


def find_voters(X: Floats, reference: Floats | None = None) -> Voters:
    """Prepare the votes of training points.

    Parameters
    ----------
    X : array of shape (N, d)
        The training points.
    reference : array of shape (R, d), optional
        Points without labels that decide metrics and ties; the training points by default.

    Returns
    -------
    Voters

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.certified import find_voters
    >>> X = np.r_[np.linspace(0, 1, 20), np.linspace(9, 10, 20)][:, None]
    >>> sorted(find_voters(X).nearest(np.array([[0.0]]), 20)[0]) == list(range(20))
    True
    """
    nodes = X if reference is None else reference
    median, spread = np.median(nodes, axis=0), robust_scale(nodes)
    centred = _pulled_in(nodes, median, spread)
    mean = centred.mean(axis=0)
    centred -= mean
    training = _pulled_in(X, median, spread) - mean
    walks = []
    for L in label_free_metrics(centred):
        Z = centred @ L.T
        near, widths = _neighbours(Z)
        step = _transition(Z, near, widths)
        arrivals = np.linalg.matrix_power(step, _STEPS)  # (R, R)
        if reference is not None:
            arrivals = arrivals @ _ties(training @ L.T, Z, widths).T  # (R, N)
        walks.append(_Walk(L, Z, widths, arrivals))
    width = float(np.einsum("ij,ij->", walks[0].nodes, walks[0].nodes)) / len(nodes)
    width = width if width > 0 else 1.0
    points = training @ walks[0].L.T
    kernel = _kernel(points, points, width) + _NOISE * np.eye(len(points))
    return Voters(median, spread, mean, tuple(walks), width, points, cho_factor(kernel, lower=True))


def _pulled_in(X: Floats, median: Floats, spread: Floats) -> Floats:
    """Linear within the spread of a feature, logarithmic beyond."""
    return np.asarray(np.arcsinh((X - median) / spread))


def label_free_metrics(X: Floats) -> tuple[Floats, Floats]:
    """Two metrics of points (R, d), as factors L: standardised, and whitened by neighbours' differences.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.certified.voters import label_free_metrics
    >>> rng = np.random.default_rng(0)
    >>> X = np.c_[np.repeat([0.0, 8.0], 50) + rng.normal(size=100), rng.normal(size=100)]
    >>> first, second = label_free_metrics(X)  # along the first feature clusters are apart, not neighbours
    >>> bool(second[0, 0] / second[1, 1] > 1.5 * first[0, 0] / first[1, 1])
    True
    """
    span = span_of_points(X)
    base = span.map_outside(standardised(span.coordinates(X)))  # (r, d)
    Z = X @ base.T
    root = np.eye(len(base))
    for _ in range(_ROUNDS):
        near, _ = _neighbours(Z @ root)
        differences = (Z[:, None, :] - Z[near]).reshape(-1, Z.shape[1])
        scatter = differences.T @ differences
        mean = float(np.trace(scatter)) / len(scatter)
        if mean <= 0:  # all points are one
            break
        lengths, V = eigh(scatter / mean + _RIDGE * np.eye(len(scatter)))
        root = (V / np.sqrt(lengths)) @ V.T
    return base, root @ base


def _neighbours(Z: Floats) -> tuple[Ints, Floats]:
    """(R, 10) nearest other points, and the distance to the last of them, (R,)."""
    squares = cdist(Z, Z, "sqeuclidean")
    np.fill_diagonal(squares, np.inf)
    count = min(_TIES, len(Z) - 1)
    near = np.argsort(squares, axis=1, kind="stable")[:, :count]
    last = np.take_along_axis(squares, near[:, -1:], axis=1)[:, 0] if count else np.zeros(len(Z))
    return near.astype(np.int64), np.sqrt(last)


def _transition(Z: Floats, near: Ints, widths: Floats) -> Floats:
    """(R, R) probabilities of a step; two points are tied where one is a neighbour of the other."""
    tied = np.zeros((len(Z), len(Z)), dtype=bool)
    np.put_along_axis(tied, near, True, axis=1)
    tied |= tied.T
    strength = _strength(cdist(Z, Z, "sqeuclidean"), widths[:, None] * widths)
    return _probabilities(np.where(tied, strength, 0.0), tied)


def _ties(Z: Floats, nodes: Floats, widths: Floats) -> Floats:
    """(q, R) probabilities of the first step from points (q, r)."""
    squares = cdist(Z, nodes, "sqeuclidean")
    near = np.argsort(squares, axis=1, kind="stable")[:, :_TIES]
    tied = np.zeros(squares.shape, dtype=bool)
    np.put_along_axis(tied, near, True, axis=1)
    own = np.sqrt(np.take_along_axis(squares, near[:, -1:], axis=1))
    return _probabilities(np.where(tied, _strength(squares, own * widths), 0.0), tied)


def _strength(squares: Floats, widths: Floats) -> Floats:
    """exp(-d^2 / width), 1 for points that coincide."""
    return np.asarray(np.exp(-np.minimum(squares / np.maximum(widths, 1e-300), 700.0)))


def _probabilities(strength: Floats, tied: NDArray[np.bool_]) -> Floats:
    """Rows that sum to one; a point that is tied to nobody stays where it is."""
    total = strength.sum(axis=1, keepdims=True)
    if tied.shape[0] == tied.shape[1] == 1:
        return np.ones((1, 1))
    return np.asarray(strength / total)


def _kernel(Z: Floats, points: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-cdist(Z, points, "sqeuclidean") / width) + 1.0)
