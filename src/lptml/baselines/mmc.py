"""Mahalanobis metric for clustering (Xing, Ng, Jordan and Russell 2003).

    maximise  sum_{dissimilar} sqrt(v'Av)   subject to  sum_{similar} v'Av <= 1,  A >= 0 (or diagonal)

With S the sum of vv' over similar pairs and B = S^1/2 A S^1/2 the constraint is tr B <= 1 and the objective
concave in B. Over a factor, B = G'G with |G|_F = 1, it is the sum of the norms |Gu|, u = S^-1/2 v: convex in
G, so G <- G H / |G H| with H = sum uu' / |Gu| never decreases it; L-BFGS finishes. The bound

    optimum - value  <=  (lambda_max(H) - <H, B>) / 2

(the derivative of a concave function over the set tr B = 1) certifies the result, and is what ``tol`` refers
to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lptml.baselines._common import (
    Floats,
    check_integer,
    check_real,
    labelled,
    minimise_factor,
    sample_differences,
    warn_not_converged,
)
from lptml.estimators.base import PairsMixin, SupervisedMixin, components_from_metric

_POWER_STEPS = 20  # monotone steps before L-BFGS, which needs a start away from the kinks of the norms


@dataclass(frozen=True, eq=False)
class MMCResult:
    """Solution with its certificate: the optimum exceeds ``value`` by at most ``gap``."""

    A: Floats  # (d, d)
    value: float
    gap: float
    n_iter: int


def solve_mmc(
    V: Floats,
    sign: NDArray[Any],
    *,
    diagonal: bool = False,
    regularization: float = 1e-6,
    max_iter: int = 1000,
    tol: float = 1e-4,
) -> MMCResult:
    """Solve the problem of the module's docstring.

    Parameters
    ----------
    V : ndarray (n, d)
        Differences of the pairs, none of them zero.
    sign : ndarray (n,)
        +1 similar, -1 dissimilar; both present.
    diagonal : bool
        Restrict A to diagonal matrices.
    regularization : float
        Added to the diagonal of S, in units of the features' mean squares: S may be singular, and then the
        problem itself is unbounded.
    max_iter : int
        Most steps.
    tol : float
        Largest gap, relative to the value.
    """
    scale = np.sqrt((V**2).mean(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    U = V / scale
    similar, apart = U[sign > 0], U[sign < 0]
    S = similar.T @ similar / len(similar) + regularization * np.eye(U.shape[1])
    root = np.diag(1.0 / np.sqrt(np.diag(S))) if diagonal else _inverse_root(S)
    u = apart @ root  # (m, d)
    d = u.shape[1]
    G = np.eye(d) / np.sqrt(d)

    def pulled(G: Floats) -> tuple[float, Floats]:
        """Value and H at the unit-norm factor G."""
        norms = np.linalg.norm(u @ G.T, axis=1)
        weighted = u / np.maximum(norms, 1e-150)[:, None]
        return float(norms.sum()), np.diag((weighted * u).sum(axis=0)) if diagonal else weighted.T @ u

    def negative(G: Floats) -> tuple[float, Floats]:
        """-sum |Gu| / |G| and its gradient: the constraint as a normalisation."""
        size = float(np.linalg.norm(G))
        value, H = pulled(G / size)
        return -value, -((G / size) @ H - value * G / size) / size

    n_iter = min(_POWER_STEPS, max_iter)
    for _ in range(n_iter):
        G = G @ pulled(G)[1]
        G /= np.linalg.norm(G)
    value, gap = _certified(G, *pulled(G))
    while gap > tol * value and n_iter < max_iter:
        G, _, used, _ = minimise_factor(negative, G, max_iter=max_iter - n_iter, tol=1e-15)
        G /= np.linalg.norm(G)
        n_iter += max(used, 1)
        before = gap
        value, gap = _certified(G, *pulled(G))
        if gap > 0.9 * before:  # floating point has no more to give
            break
    L = G @ root / scale
    return MMCResult(
        L.T @ L / len(similar), value / np.sqrt(len(similar)), gap / np.sqrt(len(similar)), n_iter
    )


def _certified(G: Floats, value: float, H: Floats) -> tuple[float, float]:
    gap = (np.linalg.eigvalsh((H + H.T) / 2)[-1] - float(((G @ H) * G).sum())) / 2.0
    return value, max(float(gap), 0.0)


def _inverse_root(S: Floats) -> Floats:
    eigenvalues, vectors = np.linalg.eigh(S)
    return (vectors / np.sqrt(np.maximum(eigenvalues, 1e-12 * eigenvalues[-1]))) @ vectors.T


class _MMC:
    """Options and solution shared by both learners."""

    diagonal: bool
    regularization: float
    max_iter: int
    tol: float
    components_: Floats

    def _check_options(self) -> None:
        if not isinstance(self.diagonal, bool | np.bool_):
            raise ValueError(f"diagonal must be True or False, got {self.diagonal!r}")
        check_real("regularization", self.regularization, closed=True)
        check_integer("max_iter", self.max_iter)
        check_real("tol", self.tol)

    def _learn(self, V: Floats, sign: NDArray[Any]) -> None:
        result = solve_mmc(
            V,
            sign,
            diagonal=bool(self.diagonal),
            regularization=float(self.regularization),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )
        if result.gap > self.tol * result.value:
            warn_not_converged("MMC", self.max_iter, f"relative gap {result.gap / result.value:.2g}")
        self.n_iter_ = result.n_iter
        self.objective_ = result.value
        self.gap_ = result.gap
        self.components_ = components_from_metric(result.A)


class MMC(_MMC, PairsMixin, BaseEstimator):
    """Mahalanobis metric for clustering, from pairs.

    Parameters
    ----------
    diagonal : bool
        Learn a weight for each feature instead of a full matrix.
    regularization : float
        Added to the mean squares of the similar differences (in units of each feature's own), which keeps the
        problem bounded when similar pairs do not span the space.
    max_iter : int
        Most steps.
    tol : float
        Largest distance from the optimum, relative to the objective; it is certified by duality.
    preprocessor : array-like or callable, optional
        Then pairs may be given as indices.

    Attributes
    ----------
    objective_ : float
        Sum of the dissimilar distances, the similar squared ones summing to one.
    gap_ : float
        The optimum is at most ``objective_ + gap_``.
    components_, threshold_, n_iter_ : as for every pairs learner

    References
    ----------
    E. P. Xing, A. Y. Ng, M. I. Jordan, S. Russell, "Distance metric learning with application to clustering
    with side-information", Advances in Neural Information Processing Systems 15, 2003.

    Examples
    --------
    >>> from lptml.baselines import MMC
    >>> pairs = [[[0, 0], [0, 3]], [[1, 0], [1.5, 4]], [[0, 0], [2, 0]], [[0, 1], [2, 1]]]
    >>> MMC().fit(pairs, [1, 1, -1, -1]).predict(pairs)
    array([ 1,  1, -1, -1])
    """

    def __init__(
        self,
        *,
        diagonal: bool = False,
        regularization: float = 1e-6,
        max_iter: int = 1000,
        tol: float = 1e-4,
        preprocessor: Any = None,
    ) -> None:
        self.diagonal = diagonal
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.preprocessor = preprocessor

    def fit(self, pairs: Any, y: Any, calibration_params: Mapping[str, Any] | None = None) -> Self:
        """Learn from pairs (n, 2, d), or (n, 2) of indices with a preprocessor, and y (n,) in {-1, +1}."""
        self._check_options()
        self._check_calibration_params(calibration_params)
        array, sign = self._start_pairs(pairs, y)
        V = array[:, 0] - array[:, 1]
        distinct = V.any(axis=1)
        if not ((sign[distinct] > 0).any() and (sign[distinct] < 0).any()):
            raise ValueError("pairs of distinct points of both kinds, similar and dissimilar, are needed")
        self._learn(V[distinct], sign[distinct])
        self._calibrate(array, sign, calibration_params)
        return self


class MMC_Supervised(_MMC, SupervisedMixin, BaseEstimator):
    """Mahalanobis metric for clustering, from points and classes.

    Parameters
    ----------
    diagonal, regularization, max_iter, tol, preprocessor
        As in :class:`MMC`.
    n_constraints : int, optional
        Pairs of each kind, drawn uniformly; by default 20 times the square of the number of classes.
    random_state : int, Generator or None
        Draws the pairs.

    References
    ----------
    E. P. Xing, A. Y. Ng, M. I. Jordan, S. Russell, "Distance metric learning with application to clustering
    with side-information", Advances in Neural Information Processing Systems 15, 2003.

    Examples
    --------
    >>> from lptml.baselines import MMC_Supervised
    >>> from lptml.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MMC_Supervised(random_state=0).fit(X, y).transform(X).shape
    (150, 4)
    """

    def __init__(
        self,
        *,
        diagonal: bool = False,
        regularization: float = 1e-6,
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_constraints: int | None = None,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.diagonal = diagonal
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.n_constraints = n_constraints
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points X (n, d) and classes y (n,); -1 marks an unlabelled point."""
        self._check_options()
        points, codes = labelled(*self._start_supervised(X, y))
        self._learn(*sample_differences(points, codes, self.n_constraints, self.random_state))
        return self
