"""Information-theoretic metric learning (Davis, Kulis, Jain, Sra and Dhillon 2007).

    minimise  D_ld(A, A_0) + gamma D_ld(diag xi, diag xi_0)
    subject to  v'Av <= xi_i (similar),  v'Av >= xi_i (dissimilar)

with D_ld(A, B) = tr(AB^-1) - log det(AB^-1) - d, and xi_0 the squared bounds. Cyclic Bregman projections
(their algorithm 1) keep, for duals y >= 0 and s = +1 (similar) or -1 (dissimilar),

    A^-1 = A_0^-1 + sum_i s_i y_i v_i v_i'     and     1 / xi_i = 1 / xi_0i - s_i y_i / gamma,

the stationarity conditions of the problem; at convergence also s_i (v'Av - xi_i) <= 0, with equality where
y_i > 0. The returned metric is recomputed from the duals by the first of these, so the rounding of thousands
of rank-one updates does not remain in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator

from lptml.baselines._common import (
    Floats,
    check_integer,
    check_real,
    labelled,
    sample_differences,
    warn_not_converged,
)
from lptml.estimators.base import PairsMixin, SupervisedMixin, components_from_metric

_MOST_POINTS = 1000  # for the percentiles of the distances: half a million pairs place them well enough


@dataclass(frozen=True, eq=False)
class ITMLResult:
    """Solution of the LogDet problem with its duals."""

    A: Floats  # (d, d)
    dual: Floats  # (n,)
    xi: Floats  # (n,) the bounds after slack, squared distances
    n_iter: int
    change: float


def solve_itml(
    V: Floats,
    sign: NDArray[Any],
    bounds: tuple[float, float],
    A0: Floats,
    *,
    gamma: float,
    max_iter: int,
    tol: float,
) -> ITMLResult:
    """Solve the problem of the module's docstring.

    Parameters
    ----------
    V : ndarray (n, d)
        Differences of the pairs, none of them zero.
    sign : ndarray (n,)
        +1 similar, -1 dissimilar.
    bounds : (u, l)
        Distances: similar pairs at most u, dissimilar ones at least l.
    A0 : ndarray (d, d)
        Prior, positive definite.
    gamma : float
        Price of slack.
    max_iter : int
        Sweeps over all pairs.
    tol : float
        Largest relative change of the duals in the last sweep.
    """
    from lptml.baselines._kernels import itml_sweeps

    s = sign.astype(np.float64)  # (n,)
    # In features divided by their RMS; the divergence is invariant to a change of coordinates.
    scale = np.sqrt((V**2).mean(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    U = np.ascontiguousarray(V / scale)
    prior = A0 * scale[:, None] * scale
    A = prior.copy()
    xi0 = np.where(s > 0, bounds[0], bounds[1]) ** 2  # (n,)
    xi, dual = xi0.copy(), np.zeros(len(U))
    n_iter, change = itml_sweeps(A, U, s, xi, dual, gamma, max_iter, tol)
    inverse = cho_solve(cho_factor(prior), np.eye(len(prior))) + (U * (s * dual)[:, None]).T @ U
    try:
        exact = cho_solve(cho_factor((inverse + inverse.T) / 2), np.eye(len(prior)))
    except np.linalg.LinAlgError:  # conditioned beyond double precision: the updated A is the better one
        exact = A
    exact = (exact + exact.T) / 2
    return ITMLResult(exact / scale[:, None] / scale, dual, xi, int(n_iter), float(change))


class _ITML:
    """Options and solution shared by both learners."""

    gamma: float
    max_iter: int
    tol: float
    prior: Any
    random_state: Any
    components_: Floats

    def _check_options(self) -> None:
        check_real("gamma", self.gamma)
        check_integer("max_iter", self.max_iter)
        check_real("tol", self.tol)

    def _learn(self, X: Floats, V: Floats, sign: NDArray[Any], bounds: Any) -> None:
        """X are the points that the percentiles and the covariance prior are taken from."""
        self.bounds_ = _bounds(bounds, X, self.random_state)
        A0 = _prior(self.prior, X)
        result = solve_itml(
            V,
            sign,
            self.bounds_,
            A0,
            gamma=float(self.gamma),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )
        if result.change > self.tol:
            warn_not_converged("ITML", self.max_iter, f"the duals still change by {result.change:.2g}")
        self.n_iter_ = result.n_iter
        self.dual_ = result.dual
        self.components_ = components_from_metric(result.A)


class ITML(_ITML, PairsMixin, BaseEstimator):
    """Information-theoretic metric learning from pairs.

    Parameters
    ----------
    gamma : float
        Price of slack: small values let the bounds move, large ones enforce them.
    max_iter : int
        Most sweeps over the pairs.
    tol : float
        Stop when the duals change by less than this share in a sweep.
    prior : {"identity", "covariance"} or array-like (d, d)
        The metric to stay close to; ``"covariance"`` is the inverse covariance of the points.
    preprocessor : array-like or callable, optional
        Then pairs may be given as indices.
    random_state : int, Generator or None
        Chooses the points for the percentiles when there are more than a thousand.

    Attributes
    ----------
    bounds_ : tuple (u, l) of distances
    dual_ : ndarray, one multiplier a (distinct) pair
    components_, threshold_, n_iter_ : as for every pairs learner

    References
    ----------
    J. V. Davis, B. Kulis, P. Jain, S. Sra, I. S. Dhillon, "Information-theoretic metric learning",
    International Conference on Machine Learning, 2007.

    Examples
    --------
    >>> from lptml.baselines import ITML
    >>> pairs = [[[0, 0], [0, 3]], [[1, 0], [1.5, 4]], [[0, 0], [2, 0]], [[0, 1], [2, 1]]]
    >>> ITML().fit(pairs, [1, 1, -1, -1]).predict(pairs)
    array([ 1,  1, -1, -1])
    """

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        max_iter: int = 10000,
        tol: float = 1e-3,
        prior: Any = "identity",
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.prior = prior
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(
        self, pairs: Any, y: Any, bounds: Any = None, calibration_params: Mapping[str, Any] | None = None
    ) -> Self:
        """Learn from pairs.

        Parameters
        ----------
        pairs : array-like (n, 2, d), or (n, 2) of indices with a preprocessor
        y : array-like (n,)
            +1 similar, -1 dissimilar.
        bounds : (u, l), optional
            Distances; by default the 5th and 95th percentiles of the distances between the given points.
        calibration_params : dict, optional
            For :meth:`calibrate_threshold` on the training pairs.
        """
        self._check_options()
        self._check_calibration_params(calibration_params)
        array, sign = self._start_pairs(pairs, y)
        V = array[:, 0] - array[:, 1]
        distinct = V.any(axis=1)
        if not distinct.any():
            raise ValueError("all pairs join identical points: there is no distance to learn")
        X = np.unique(array.reshape(-1, array.shape[2]), axis=0)
        self._learn(X, V[distinct], sign[distinct], bounds)
        self._calibrate(array, sign, calibration_params)
        return self


class ITML_Supervised(_ITML, SupervisedMixin, BaseEstimator):
    """Information-theoretic metric learning from points and classes.

    Parameters
    ----------
    gamma, max_iter, tol, prior, preprocessor
        As in :class:`ITML`.
    n_constraints : int, optional
        Pairs of each kind, drawn uniformly; by default 20 times the square of the number of classes.
    random_state : int, Generator or None
        Draws the pairs.

    References
    ----------
    J. V. Davis, B. Kulis, P. Jain, S. Sra, I. S. Dhillon, "Information-theoretic metric learning",
    International Conference on Machine Learning, 2007.

    Examples
    --------
    >>> from lptml.baselines import ITML_Supervised
    >>> from lptml.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ITML_Supervised(random_state=0).fit(X, y).transform(X).shape
    (150, 4)
    """

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        max_iter: int = 10000,
        tol: float = 1e-3,
        n_constraints: int | None = None,
        prior: Any = "identity",
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.n_constraints = n_constraints
        self.prior = prior
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(self, X: Any, y: Any, bounds: Any = None) -> Self:
        """Learn from points X (n, d) and classes y (n,); -1 marks an unlabelled point."""
        self._check_options()
        points, codes = labelled(*self._start_supervised(X, y))
        V, sign = sample_differences(points, codes, self.n_constraints, self.random_state)
        self._learn(points, V, sign, bounds)
        return self


def _bounds(bounds: Any, X: Floats, random_state: Any) -> tuple[float, float]:
    """The given bounds, or the 5th and 95th percentiles of the distances."""
    if bounds is None:
        if len(X) > _MOST_POINTS:
            X = X[np.random.default_rng(random_state).choice(len(X), _MOST_POINTS, replace=False)]
        distances = pdist(X)
        positive = distances[distances > 0]
        u, l = np.percentile(distances, (5, 95))
        return (float(u) if u > 0 else float(positive.min())), (float(l) if l > 0 else float(positive.max()))
    values = np.asarray(bounds, dtype=np.float64)
    if values.shape != (2,) or not np.isfinite(values).all() or (values <= 0).any():
        raise ValueError(f"bounds must be two positive distances (u, l), got {bounds!r}")
    return float(values[0]), float(values[1])


def _prior(prior: str | ArrayLike, X: Floats) -> Floats:
    d = X.shape[1]
    if isinstance(prior, str):
        if prior == "identity":
            return np.eye(d)
        if prior == "covariance":
            covariance = np.atleast_2d(np.cov(X, rowvar=False))
            ridge = 1e-6 * np.trace(covariance) / d + 1e-300
            return np.linalg.inv(covariance + ridge * np.eye(d))
        raise ValueError(f"prior must be 'identity', 'covariance' or a matrix, got {prior!r}")
    matrix = np.asarray(prior, dtype=np.float64)
    if matrix.shape != (d, d) or not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix)[0] <= 0:
        raise ValueError(f"prior must be a positive definite matrix of shape ({d}, {d})")
    return matrix
