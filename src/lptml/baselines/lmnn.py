"""Large margin nearest neighbours (Weinberger and Saul 2009).

With the k target neighbours j ~> i (the nearest points of i's class, fixed beforehand), minimise over A >= 0

    mu sum_{j~>i} d2(i,j)  +  (1 - mu) sum_{j~>i} sum_{l: y_l != y_i} max(0, 1 + d2(i,j) - d2(i,l)).

The problem is convex in A. It is solved over a factor, A = G'G, by L-BFGS in whitened coordinates, with the
hinge replaced by its Huber form whose width shrinks in a few stages. Points go through in blocks, so the
memory is a few block x n arrays whatever n is.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors

from lptml.baselines._common import (
    Coordinates,
    Floats,
    Ints,
    blocks,
    check_components,
    check_integer,
    check_real,
    labelled,
    minimise_factor,
    warn_not_converged,
)
from lptml.estimators.base import SupervisedMixin, components_from_metric

_WIDTHS = (0.5, 0.1, 0.02)  # of the Huber hinge: the last leaves less than 1% of a unit margin per triplet


class LMNN(SupervisedMixin, BaseEstimator):
    """Large margin nearest neighbours.

    Parameters
    ----------
    n_neighbors : int
        Target neighbours of each point (fewer in classes that are smaller).
    regularization : float in [0, 1]
        mu, the weight of pulling target neighbours against pushing impostors.
    n_components : int, optional
        Rows of the learned map; with fewer than d the problem is no longer convex.
    max_iter : int
        Most L-BFGS steps in all.
    tol : float
        Relative decrease of the objective at which a stage stops.
    preprocessor : array-like or callable, optional
        Then points may be given as indices.

    Attributes
    ----------
    objective_ : float
        The objective, with the true hinge.
    components_, n_iter_ : as for every learner

    References
    ----------
    K. Q. Weinberger, L. K. Saul, "Distance metric learning for large margin nearest neighbor
    classification", Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from lptml.baselines import LMNN
    >>> from lptml.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LMNN().fit(X, y).transform(X).shape
    (150, 4)
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 3,
        regularization: float = 0.5,
        n_components: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        preprocessor: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.regularization = regularization
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points X (n, d) and classes y (n,); -1 marks an unlabelled point."""
        k = check_integer("n_neighbors", self.n_neighbors)
        mu = check_real("regularization", self.regularization, closed=True, most=1.0)
        max_iter = check_integer("max_iter", self.max_iter)
        tol = check_real("tol", self.tol)
        points, codes = labelled(*self._start_supervised(X, y))
        rows = check_components(self.n_components, points.shape[1])
        targets = target_neighbours(points, codes, k)
        space = Coordinates.whiten(points)
        G = _start(points, space, targets, rows)
        self.n_iter_, left, converged = 0, max_iter, False
        for width in _WIDTHS:
            G, _, used, converged = minimise_factor(
                partial(lmnn_objective, Z=space.Z, codes=codes, targets=targets, mu=mu, width=width),
                G,
                max_iter=max(left, 1),
                tol=tol,
            )
            self.n_iter_ += used
            left -= used
            if left <= 0:
                break
        if not converged or left <= 0:
            warn_not_converged("LMNN", max_iter, "the objective still falls")
        self.objective_ = lmnn_objective(G, space.Z, codes, targets, mu, 0.0)[0]
        L = G @ space.P
        self.components_ = components_from_metric(L.T @ L, rows)
        return self


def lmnn_objective(
    G: Floats, Z: Floats, codes: Ints, targets: Ints, mu: float, width: float
) -> tuple[float, Floats]:
    """The objective at A = G'G and its gradient by G, with a Huber hinge of that width (0: the hinge)."""
    from lptml.baselines._kernels import lmnn_push

    n = len(Z)
    E = Z @ G.T  # (n, k)
    norms = np.einsum("ij,ij->i", E, E)
    here, column = np.nonzero(targets >= 0)
    there = targets[here, column]
    loss = 0.0
    gradient = np.zeros((Z.shape[1], Z.shape[1]))  # by A
    column_sum = np.zeros(n)
    for block in blocks(n, n):
        D = norms[block, None] + norms - 2.0 * (E[block] @ E.T)  # (b, n)
        np.maximum(D, 0.0, out=D)
        W = np.zeros_like(D)
        loss += (1.0 - mu) * lmnn_push(D, block.start, targets, codes, max(width, 1e-300), W)
        W *= 1.0 - mu
        mine = (here >= block.start) & (here < block.stop)
        pulled = here[mine] - block.start, there[mine]
        loss += mu * D[pulled].sum()
        np.add.at(W, pulled, mu)
        # sum_ij W_ij (z_i - z_j)(z_i - z_j)'
        cross = Z[block].T @ (W @ Z)
        gradient += (Z[block] * W.sum(axis=1)[:, None]).T @ Z[block] - cross - cross.T
        column_sum += W.sum(axis=0)
    gradient += (Z * column_sum[:, None]).T @ Z
    return float(loss), 2.0 * G @ gradient


def target_neighbours(X: Floats, codes: Ints, k: int) -> Ints:
    """The k nearest other points of the same class, (n, k); -1 where the class has fewer."""
    targets = np.full((len(X), k), -1, dtype=np.int64)
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        count = min(k, len(members) - 1)
        if count > 0:
            search = NearestNeighbors(n_neighbors=count).fit(X[members])
            targets[members[:, None], np.arange(count)] = members[search.kneighbors(return_distance=False)]
    if (targets < 0).all():
        raise ValueError("no class has two points: LMNN has no target neighbours to pull")
    return targets


def _start(X: Floats, space: Coordinates, targets: Ints, rows: int) -> Floats:
    """A start at the scale of the margin: the identity, or the leading principal axes when rows < d."""
    r = space.Z.shape[1]
    if rows >= r:
        G = np.eye(r)
    else:
        axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:rows]
        G = space.factor(axes)
    here, column = np.nonzero(targets >= 0)
    gaps = (space.Z[here] - space.Z[targets[here, column]]) @ G.T
    mean = float((gaps**2).sum(axis=1).mean())
    return G / np.sqrt(mean) if mean > 0 else G
