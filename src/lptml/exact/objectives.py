"""What Exact-LPTML minimises: the function w of the paper, and two alternatives.

- ``"random"``, the paper's r'Ar for a random unit vector r, plus tau times the trace. From d = 4 on r'Ar
  alone reaches zero for nearly every sample, on a whole face of metrics; the trace makes the minimiser
  unique.
- ``"trace"``, the trace alone.
- ``"prior"``, the LogDet divergence from a given metric P: <P^-1, A> - log det A. It is strictly convex,
  does not depend on the units of the features, and its minimiser has full rank.

The first two live in features of unit root mean square, so that they too do not depend on units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lptml.constraints import ConstraintSet, Floats

KINDS = ("random", "trace", "prior")

#: Weight of the trace beside r'Ar. Smaller ones leave the optimum nearly degenerate and the solver more
#: steps.
TAU = 1e-3


@dataclass(frozen=True, eq=False)
class Objective:
    """An objective before the units of the features are known.

    Attributes
    ----------
    kind : str
    matrix : array of shape (d, d)
        The linear part, in features divided by their root mean square unless ``original_units``.
    log_det : float
        The weight of -log det A.
    original_units : bool
        Whether ``matrix`` is in original features.
    """

    kind: str
    matrix: Floats
    log_det: float = 0.0
    original_units: bool = False

    def linear_part(self, constraints: ConstraintSet, scale: Floats) -> Floats:
        """C0 in the original features, for constraints whose features have this scale."""
        if self.original_units:
            return self.matrix
        C0 = self.matrix * scale[:, None] * scale
        if self.kind == "prior" and constraints.n:
            # The identity of scaled features, at the size that the bounds ask for.
            values = np.abs(constraints.values(np.diag(1.0 / scale**2)))
            ratio = constraints.bound[values > 0] / values[values > 0]
            if len(ratio):
                C0 = C0 / np.exp(np.log(ratio).mean())
        return C0


def make_objective(
    kind: str,
    d: int,
    rng: np.random.Generator | int | None = None,
    *,
    prior: Floats | None = None,
    tau: float = TAU,
) -> Objective:
    """An objective for ``exact_lptml``.

    Parameters
    ----------
    kind : {"random", "trace", "prior"}
    d : int
        The number of features.
    rng : numpy Generator, int or None
        Draws r for "random".
    prior : array of shape (d, d), optional
        For "prior": a positive definite metric; by default a multiple of the identity in scaled features that
        suits the bounds.
    tau : float, default 1e-3
        For "random": the weight of the trace.

    Examples
    --------
    >>> from lptml.exact import make_objective
    >>> make_objective("trace", 2).matrix
    array([[1., 0.],
           [0., 1.]])
    """
    if kind not in KINDS:
        raise ValueError(f"objective must be one of {', '.join(KINDS)}, got {kind!r}")
    if prior is not None and kind != "prior":
        raise ValueError(f'a prior metric needs objective="prior", got {kind!r}')
    if not (np.isfinite(tau) and tau > 0):
        raise ValueError(f"tau must be a positive number, got {tau!r}")
    if kind == "trace":
        return Objective(kind, np.eye(d))
    if kind == "random":
        r = np.random.default_rng(rng).standard_normal(d)
        r /= np.linalg.norm(r)
        return Objective(kind, np.outer(r, r) + tau * np.eye(d))
    if prior is None:
        return Objective(kind, np.eye(d), log_det=1.0)
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (d, d) or not np.isfinite(prior).all():
        raise ValueError(f"prior must be a finite matrix of shape {(d, d)}, got shape {prior.shape}")
    try:
        np.linalg.cholesky(prior)
    except np.linalg.LinAlgError:
        raise ValueError("prior must be positive definite") from None
    inverse = np.linalg.inv((prior + prior.T) / 2)
    return Objective(kind, (inverse + inverse.T) / 2, log_det=1.0, original_units=True)
