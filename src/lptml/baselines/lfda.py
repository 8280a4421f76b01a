"""Local Fisher discriminant analysis (Sugiyama 2007), a closed form.

Within each class, points are joined by the affinity exp(-d2(i,j) / (s_i s_j)), s_i being i's distance to its
k-th nearest neighbour in the class. Pairs that are near in the sense of the affinity should be close, pairs
of different classes far: the map is made of the leading solutions of the generalised eigenproblem  S_b t =
lambda S_w t  between the local between-class and within-class scatter matrices (his equations 9 to 12).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

from lptml.baselines._common import Floats, Ints, check_components, check_integer, labelled
from lptml.constraints.scaling import standard_deviation
from lptml.estimators.base import SupervisedMixin

_EMBEDDINGS = ("weighted", "orthonormalized", "plain")
_RIDGE = 1e-9  # relative to the mean eigenvalue of the within scatter, which dependent features make singular


class LFDA(SupervisedMixin, BaseEstimator):
    """Local Fisher discriminant analysis.

    Parameters
    ----------
    n_components : int, optional
        Rows of the learned map; all by default.
    n_neighbors : int
        k of the local scaling (at most the size of the class); 7 is Sugiyama's choice.
    embedding_type : {"weighted", "orthonormalized", "plain"}
        Rows scaled by the root of their eigenvalue; made orthonormal; or as the eigenproblem gives them.
    preprocessor : array-like or callable, optional
        Then points may be given as indices.

    References
    ----------
    M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant
    analysis", Journal of Machine Learning Research 8, 2007.

    Examples
    --------
    >>> from lptml.baselines import LFDA
    >>> from lptml.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LFDA(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    def __init__(
        self,
        *,
        n_components: int | None = None,
        n_neighbors: int = 7,
        embedding_type: str = "weighted",
        preprocessor: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.embedding_type = embedding_type
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points X (n, d) and classes y (n,); -1 marks an unlabelled point."""
        if self.embedding_type not in _EMBEDDINGS:
            raise ValueError(f"embedding_type must be one of {_EMBEDDINGS}, got {self.embedding_type!r}")
        points, codes = labelled(*self._start_supervised(X, y))
        d = points.shape[1]
        rows = check_components(self.n_components, d)
        k = check_integer("n_neighbors", self.n_neighbors)
        scale = standard_deviation(points)
        between, within = scatters(points, codes, k)
        # The eigenproblem is the same in any coordinates; features divided by their spread are well
        # conditioned.
        between, within = (M / scale[:, None] / scale for M in (between, within))
        ridge = _RIDGE * (np.trace(within) / d + np.trace(between) / d)
        ridge = max(ridge, 1e-30)  # points that differ by rounding alone
        values, vectors = eigh(between, within + ridge * np.eye(d))
        order = np.argsort(-values, kind="stable")[:rows]
        T = vectors[:, order] / scale[:, None]  # (d, k)
        if self.embedding_type == "weighted":
            T = T * np.sqrt(np.maximum(values[order], 0.0))
        elif self.embedding_type == "orthonormalized":
            T = np.linalg.qr(T)[0]
        largest = np.abs(T).argmax(axis=0)
        signs = np.where(T[largest, np.arange(T.shape[1])] < 0, -1.0, 1.0)
        self.components_ = np.ascontiguousarray((T * signs).T)
        return self


def scatters(X: Floats, codes: Ints, k: int) -> tuple[Floats, Floats]:
    """Local between-class and within-class scatter matrices, each (d, d)."""
    n, d = X.shape
    X = X - X.mean(axis=0)  # scatters are of differences; centred, they lose no digits
    between, within = np.zeros((d, d)), np.zeros((d, d))
    for c in np.unique(codes):
        Xc = X[codes == c]
        nc = len(Xc)
        D = cdist(Xc, Xc, "sqeuclidean")  # (nc, nc)
        local = np.sqrt(np.partition(D, min(k, nc - 1), axis=1)[:, min(k, nc - 1)])  # (nc,)
        product = np.outer(local, local)
        affinity = np.where(product > 0, np.exp(-D / np.where(product > 0, product, 1.0)), 0.0)
        # sum_ij a_ij (x_i - x_j)(x_i - x_j)' / 2
        G = (Xc * affinity.sum(axis=1)[:, None]).T @ Xc - Xc.T @ affinity @ Xc
        total = Xc.sum(axis=0)
        within += G / nc
        # pairs of the class weigh a_ij (1/n - 1/nc), pairs across classes 1/n (his equation 12)
        between += G * (1.0 / n - 1.0 / nc) + (1.0 - nc / n) * Xc.T @ Xc + np.outer(total, total) / n
    grand = X.sum(axis=0)
    between -= np.outer(grand, grand) / n
    return (between + between.T) / 2, (within + within.T) / 2
