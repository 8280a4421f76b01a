"""What several baselines need: options, pairs from labels, whitened coordinates, L-BFGS on a factor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from lptml.constraints import LabelledPairs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 4_000_000  # entries of the largest temporary array: 32 MB


def check_real(
    name: str, value: Any, *, above: float = 0.0, closed: bool = False, most: float = np.inf
) -> float:
    """Return a finite real option, or raise a ValueError that names it."""
    fine = not isinstance(value, bool) and isinstance(value, Real) and np.isfinite(float(value))
    if not fine or float(value) < above or (float(value) == above and not closed) or float(value) > most:
        relation = ">=" if closed else ">"
        limit = "" if most == np.inf else f" and <= {most:g}"
        raise ValueError(f"{name} must be a finite number {relation} {above:g}{limit}, got {value!r}")
    return float(value)


def check_integer(name: str, value: Any, *, least: int = 1) -> int:
    """Return a whole-number option, or raise a ValueError that names it."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def check_components(value: Any, d: int) -> int:
    """Return the number of rows of the learned map: d when the option is None."""
    if value is None:
        return d
    k = check_integer("n_components", value)
    if k > d:
        raise ValueError(f"n_components must be at most the number of features, {d}, got {k}")
    return k


def labelled(X: Floats, codes: Ints) -> tuple[Floats, Ints]:
    """Leave out the unlabelled points (-1)."""
    known = codes >= 0
    return np.ascontiguousarray(X[known]), codes[known]


def sample_differences(
    X: Floats, codes: Ints, n_constraints: int | None, random_state: int | np.random.Generator | None
) -> tuple[Floats, NDArray[np.int8]]:
    """Differences and labels of ``n_constraints`` pairs of each kind; by default 20 (number of classes)^2.

    Pairs of identical points are left out: no metric can tell them apart.
    """
    n = 20 * len(np.unique(codes[codes >= 0])) ** 2 if n_constraints is None else n_constraints
    pairs = LabelledPairs.from_labels(X, codes, bounds=(1.0, 1.0))
    drawn = pairs.sample_each(check_integer("n_constraints", n), np.random.default_rng(random_state))
    V, sign = drawn.V, drawn.sign
    distinct = V.any(axis=1)
    V, sign = V[distinct], sign[distinct]
    if not ((sign > 0).any() and (sign < 0).any()):
        raise ValueError("the labels give no pair of distinct points of each kind (similar and dissimilar)")
    return V, sign


def blocks(n: int, row: int) -> Iterator[slice]:
    """Slices of 0..n whose rows of ``row`` entries stay within :data:`BLOCK`."""
    step = max(1, BLOCK // max(row, 1))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def warn_not_converged(name: str, max_iter: int, what: str) -> None:
    """Say that ``max_iter`` was reached, and what the solution lacks."""
    warnings.warn(
        f"{name} did not converge within max_iter={max_iter} ({what}); raise max_iter or tol",
        ConvergenceWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class Coordinates:
    """Whitened coordinates Z = (X - mean) P' in which a first-order method converges fast.

    P (r, d) has the rank r of the data, so constant and dependent features do no harm. A metric Z'M Z in
    these coordinates is P'MP in the original ones; every objective here is a function of distances and so
    unchanged.
    """

    Z: Floats  # (n, r)
    P: Floats  # (r, d)

    @classmethod
    def whiten(cls, X: Floats) -> Coordinates:
        """Coordinates of unit covariance over the points, null directions removed."""
        centred = X - X.mean(axis=0)
        spread = np.sqrt((centred**2).mean(axis=0))
        scale = np.where(spread > 0, spread, 1.0)
        _, singular, rows = np.linalg.svd(centred / scale, full_matrices=False)
        keep = singular > 1e-10 * max(float(singular.max(initial=0.0)), 1e-300)
        if not keep.any():
            raise ValueError("all points are identical: there is no distance to learn")
        P = rows[keep] / (singular[keep, None] / np.sqrt(len(X))) / scale  # (r, d)
        return cls(np.ascontiguousarray(centred @ P.T), P)

    def factor(self, L: Floats) -> Floats:
        """The map L (k, d) of the original features, in these coordinates: (k, r)."""
        return L @ np.linalg.pinv(self.P)


def minimise_factor(
    objective: Callable[[Floats], tuple[float, Floats]], G: Floats, *, max_iter: int, tol: float
) -> tuple[Floats, float, int, bool]:
    """Minimise f over a factor G (k, r) by L-BFGS; return G, f, iterations and whether it converged.

    With A = G'G and k = r, a convex f(A) has no local minimum in G that is not global (Burer and Monteiro
    2005).
    """
    shape = G.shape

    def flat(g: Floats) -> tuple[float, Floats]:
        value, gradient = objective(g.reshape(shape))
        return value, gradient.ravel()

    result = minimize(
        flat,
        G.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": tol, "gtol": 1e-12, "maxcor": 20},
    )
    # Status 2 is a line search that finds no lower point: the best that floating point can do.
    return result.x.reshape(shape), float(result.fun), int(result.nit), result.status in (0, 2)
