"""Relevant component analysis (Bar-Hillel, Hertz, Shental and Weinshall 2005), a closed form.

Chunklets are groups of points known to be of one class, which one is unknown. With C the covariance of the
points about the mean of their chunklet, the metric is C^-1: what varies inside chunklets does not matter.
With fewer components than features, the space is first cut to those directions in which the total covariance
is largest relative to C.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from lptml.baselines._common import Floats, Ints, check_components, check_integer, check_real, labelled
from lptml.constraints.checks import as_labels
from lptml.constraints.scaling import standard_deviation
from lptml.estimators.base import MahalanobisMixin, SupervisedMixin, components_from_metric


class _RCA:
    """The solution shared by both learners."""

    n_components: int | None
    regularization: float
    components_: Floats

    def _learn(self, X: Floats, chunks: Ints) -> None:
        d = X.shape[1]
        rows = check_components(self.n_components, d)
        ridge = check_real("regularization", self.regularization, closed=True)
        centred = X - X.mean(axis=0)
        scale = standard_deviation(X)
        Z = centred / scale
        inner = chunk_covariance(Z, chunks) + ridge * np.eye(d)
        if rows < d:
            total = Z.T @ Z / len(Z)
            _, vectors = eigh(total, inner + 1e-12 * np.eye(d))
            basis = vectors[:, ::-1][:, :rows]  # (d, rows), already with basis' inner basis = I
            L = basis.T / scale
            largest = L[np.arange(rows), np.abs(L).argmax(axis=1)]
            self.components_ = np.ascontiguousarray(L * np.where(largest < 0, -1.0, 1.0)[:, None])
            return
        eigenvalues, vectors = np.linalg.eigh(inner)
        # Without regularization, directions that never vary in a chunklet would have infinite weight.
        weights = 1.0 / np.maximum(eigenvalues, 1e-12 * max(eigenvalues[-1], 1e-300))
        A = (vectors * weights) @ vectors.T
        self.components_ = components_from_metric(A / scale[:, None] / scale)


class RCA(_RCA, MahalanobisMixin, BaseEstimator):
    """Relevant component analysis from chunklets.

    Parameters
    ----------
    n_components : int, optional
        Rows of the learned map; all by default.
    regularization : float
        Added to the diagonal of the inner covariance of features scaled to unit variance, so that directions
        which do not vary inside chunklets get a large but finite weight.
    preprocessor : array-like or callable, optional
        Then points may be given as indices.

    References
    ----------
    A. Bar-Hillel, T. Hertz, N. Shental, D. Weinshall, "Learning a Mahalanobis metric from equivalence
    constraints", Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.baselines import RCA
    >>> X = np.array([[0, 0], [0.1, 3], [5, 0], [5.1, 3.5]])
    >>> RCA().fit(X, [0, 0, 1, 1]).transform(X).shape
    (4, 2)
    """

    def __init__(
        self, *, n_components: int | None = None, regularization: float = 1e-3, preprocessor: Any = None
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.preprocessor = preprocessor

    def fit(self, X: Any, chunks: Any) -> Self:
        """Learn from points X (n, d) and the chunklet of each, (n,) of integers; -1 is none."""
        self._start()
        points = self._points(X, reset=True, min_samples=2)
        codes = column_or_1d(as_labels(chunks))
        if codes.shape[0] != len(points) or codes.dtype.kind not in "iu":
            raise ValueError(
                f"chunks must be {len(points)} integers, one for each point (-1: in no chunklet)"
            )
        if codes.max() < 0:
            raise ValueError("chunks holds -1 only: no point is in a chunklet")
        self._learn(points, codes.astype(np.int64))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class RCA_Supervised(_RCA, SupervisedMixin, BaseEstimator):
    """Relevant component analysis from points and classes.

    Parameters
    ----------
    n_components, regularization, preprocessor
        As in :class:`RCA`.
    n_chunks : int, optional
        Number of random chunklets, each of points of one class; by default every class is one chunklet.
    chunk_size : int
        Points in each random chunklet.
    random_state : int, Generator or None
        Draws the chunklets.

    References
    ----------
    A. Bar-Hillel, T. Hertz, N. Shental, D. Weinshall, "Learning a Mahalanobis metric from equivalence
    constraints", Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> from lptml.baselines import RCA_Supervised
    >>> from lptml.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> RCA_Supervised().fit(X, y).transform(X).shape
    (150, 4)
    """

    def __init__(
        self,
        *,
        n_components: int | None = None,
        regularization: float = 1e-3,
        n_chunks: int | None = None,
        chunk_size: int = 2,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.n_chunks = n_chunks
        self.chunk_size = chunk_size
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points X (n, d) and classes y (n,); -1 marks an unlabelled point."""
        size = check_integer("chunk_size", self.chunk_size, least=2)
        points, codes = labelled(*self._start_supervised(X, y))
        if self.n_chunks is not None:
            n_chunks = check_integer("n_chunks", self.n_chunks)
            codes = draw_chunks(codes, n_chunks, size, np.random.default_rng(self.random_state))
        self._learn(points, codes)
        return self


def chunk_covariance(X: Floats, chunks: Ints) -> Floats:
    """Covariance (d, d) of the points in chunklets about the mean of their chunklet."""
    inside = chunks >= 0
    X, codes = X[inside], np.unique(chunks[inside], return_inverse=True)[1]
    sums = np.zeros((codes.max() + 1, X.shape[1]))
    np.add.at(sums, codes, X)
    centred = X - (sums / np.bincount(codes)[:, None])[codes]
    return centred.T @ centred / len(X)


def draw_chunks(codes: Ints, n_chunks: int, size: int, rng: np.random.Generator) -> Ints:
    """Disjoint random chunklets of ``size`` points of one class, as many as asked for or as there are."""
    chunks = np.full(len(codes), -1, dtype=np.int64)
    candidates = []
    for c in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == c))
        candidates += np.split(members[: len(members) // size * size], max(len(members) // size, 1))
    candidates = [group for group in candidates if len(group) == size]
    if not candidates:
        raise ValueError(f"no class has chunk_size={size} points")
    for number, pick in enumerate(rng.permutation(len(candidates))[:n_chunks]):
        chunks[candidates[pick]] = number
    return chunks
