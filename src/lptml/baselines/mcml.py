"""Maximally collapsing metric learning (Globerson and Roweis 2006).

With p_A(j|i) proportional to exp(-d2_A(i,j)) over j != i, and p_0(j|i) uniform on the other points of i's
class,

    minimise  sum_i KL(p_0(.|i) || p_A(.|i))   over A >= 0,

which is convex in A. It is solved over a factor, A = G'G, by L-BFGS in whitened coordinates; points go
through in blocks, so no n x n array is held. The value differs from the divergence by the constant entropy of
p_0.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

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


class MCML(SupervisedMixin, BaseEstimator):
    """Maximally collapsing metric learning.

    Parameters
    ----------
    n_components : int, optional
        Rows of the learned map; with fewer than d the problem is no longer convex.
    max_iter : int
        Most L-BFGS steps.
    tol : float
        Relative decrease of the objective at which it stops.
    preprocessor : array-like or callable, optional
        Then points may be given as indices.

    Attributes
    ----------
    objective_ : float
        Cross entropy of p_0 and p_A, averaged over the points.
    components_, n_iter_ : as for every learner

    References
    ----------
    A. Globerson, S. Roweis, "Metric learning by collapsing classes", Advances in Neural Information
    Processing Systems 18, 2006.

    Examples
    --------
    >>> from lptml.baselines import MCML
    >>> from lptml.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MCML().fit(X, y).transform(X).shape
    (150, 4)
    """

    def __init__(
        self,
        *,
        n_components: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        preprocessor: Any = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points X (n, d) and classes y (n,); -1 marks an unlabelled point."""
        max_iter = check_integer("max_iter", self.max_iter)
        tol = check_real("tol", self.tol)
        points, codes = labelled(*self._start_supervised(X, y))
        rows = check_components(self.n_components, points.shape[1])
        if (np.bincount(codes) < 2).all():
            raise ValueError("no class has two points: MCML has nothing to collapse")
        space = Coordinates.whiten(points)
        r = space.Z.shape[1]
        if rows >= r:
            G = np.eye(r)
        else:
            axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:rows]
            G = space.factor(axes)
        # Whitened points are sqrt(2 rows) apart; start where the softmax has a unit temperature.
        G = G / np.sqrt(max(2.0 * float((G**2).sum()), 1e-300))
        G, self.objective_, self.n_iter_, converged = minimise_factor(
            lambda g: mcml_objective(g, space.Z, codes), G, max_iter=max_iter, tol=tol
        )
        if not converged:
            warn_not_converged("MCML", max_iter, "the objective still falls")
        L = G @ space.P
        self.components_ = components_from_metric(L.T @ L, rows)
        return self


def mcml_objective(G: Floats, Z: Floats, codes: Ints) -> tuple[float, Floats]:
    """Mean over i of sum_j p_0(j|i) d2(i,j) + log sum_j exp(-d2(i,j)) at A = G'G, and its gradient by G."""
    n = len(Z)
    E = Z @ G.T  # (n, k)
    norms = np.einsum("ij,ij->i", E, E)
    sizes = np.bincount(codes)[codes]  # (n,)
    loss = 0.0
    gradient = np.zeros((Z.shape[1], Z.shape[1]))  # by A
    column_sum = np.zeros(n)
    for block in blocks(n, n):
        own = np.arange(block.start, block.stop)
        D = norms[block, None] + norms - 2.0 * (E[block] @ E.T)  # (b, n)
        np.maximum(D, 0.0, out=D)
        D[own - block.start, own] = np.inf
        least = D.min(axis=1, keepdims=True)
        P = np.exp(least - D)
        total = P.sum(axis=1, keepdims=True)
        P /= total
        D[own - block.start, own] = 0.0
        alone = sizes[block] < 2  # a point alone in its class has no p_0 and does not count
        share = np.where(alone, 0.0, 1.0 / np.maximum(sizes[block] - 1, 1))[:, None]
        W = np.where(codes[block, None] == codes, share, 0.0)
        W[own - block.start, own] = 0.0
        loss += float((W * D).sum() + (np.log(total) - least)[~alone].sum())
        P[alone] = 0.0
        W -= P
        # sum_ij W_ij (z_i - z_j)(z_i - z_j)'; the rows of W sum to zero
        cross = Z[block].T @ (W @ Z)
        gradient -= cross + cross.T
        column_sum += W.sum(axis=0)
    gradient += (Z * column_sum[:, None]).T @ Z
    return loss / n, 2.0 / n * G @ gradient
