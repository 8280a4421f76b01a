"""Independent checks of what the solvers claim.

Nothing here is shared with the interior-point kernel: the residuals of an optimum and the inequalities of an
infeasibility certificate are recomputed from the constraints alone, in a few lines each.

The errors are those of the DIMACS challenge (Mittelmann 2003) with one change: where those divide by
1 + size, these divide by the size itself, so that they mean the same in any units. The size of the objective
is never zero where some distance is asked for. Eigenvalues are those in normalised coordinates: bounds are 1,
and the features of v / sqrt(bound) have root mean square 1 / sqrt(d).

What counts as violated is what ``constraints.TOLERANCE`` says: a metric that fails a constraint by less
satisfies it, so a certificate has to contradict the constraints with every bound relaxed by as much.

An optimum (A, y) of    min <C0, A> - c log det A   subject to   s_i (<C_i, A> - b_i) <= 0,  <R, A> <= rho,
A >= 0 has y >= 0, Z = C0 + sum_i s_i y_i C_i >= 0 and no gap between the two objectives. A certificate y >=
0 of infeasibility has S = sum_i s_i y_i C_i >= 0 and sum_i s_i b_i y_i < 0: for a feasible A, the sum of
y_i s_i (<C_i, A> - b_i) <= 0 would be positive (Farkas). With sum_i b_i y_i = 1 and bounds b_i (1 + s_i tol)
the second becomes sum_i s_i b_i y_i < -tol.

References
----------
H. D. Mittelmann, "An independent benchmarking of SDP and SOCP solvers", Mathematical Programming 95, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from lptml._jit import kernel
from lptml.constraints import ConstraintSet, Floats
from lptml.constraints.violation import TOLERANCE

#: A certificate must rule out every metric whose trace, in normalised units, is below this. Under a larger
#: metric no distance would keep a digit.
RADIUS = 1e16

#: The gap that a certificate must exceed: under every metric some constraint then fails by more than the
#: tolerance, with a hundredth of it to spare for the rounding of counted distances.
LEAST_GAP = 1.01 * TOLERANCE


class Residuals(NamedTuple):
    """How far (A, y) is from optimal; each is zero at an exact optimum.

    Attributes
    ----------
    primal : float
        Largest violation of a constraint, relative to its bound.
    psd : float
        How negative the smallest eigenvalue of A is, relative to the largest.
    dual : float
        How negative the smallest eigenvalue of Z, times the trace of A, or the smallest multiplier is,
        relative to the objective: how much it can spoil the lower bound on the objective.
    gap : float
        |primal objective - dual objective|, relative to their sizes (to c d + <C0, A> with a log det).
    """

    primal: float
    psd: float
    dual: float
    gap: float

    @property
    def largest(self) -> float:
        return max(self.primal, self.psd, self.dual, self.gap)


@dataclass(frozen=True)
class CertificateCheck:
    """What a certificate proves: every metric with a (normalised) trace below ``radius`` violates something.

    ``gap`` is -sum s_i b_i y_i with multipliers that sum to one in units of the bounds, so at least one
    constraint fails by ``gap``, relative to its bound, under every metric; it is violated if that exceeds the
    tolerance. ``radius`` is infinite when the sum of matrices is semidefinite to the last bit that floating
    point can tell.
    """

    gap: float
    radius: float

    @property
    def valid(self) -> bool:
        return self.gap > LEAST_GAP and self.radius >= RADIUS


@kernel
def _normalise(V: Floats, W: Floats, bound: Floats, scale: Floats, rows: Floats) -> None:
    """The scale of every feature, and the rows of V and then W divided by it."""
    m, d = V.shape
    k = rows.shape[0]
    for i in range(k):
        for j in range(d):
            rows[i, j] = V[i, j] if i < m else W[i - m, j]
    for j in range(d):
        total = 0.0
        for i in range(k):
            total += rows[i, j] * rows[i, j] / bound[i % m]
        scale[j] = np.sqrt(total * d / k) if total > 0.0 else 1.0
        for i in range(k):
            rows[i, j] /= scale[j]


@kernel
def _add_weighted(rows: Floats, m: int, coefficient: Floats, out: Floats) -> None:
    """out += sum of the rows' matrices times the first m coefficients, with the other sign for those of W."""
    d = rows.shape[1]
    for i in range(rows.shape[0]):
        factor = coefficient[i] if i < m else -coefficient[i - m]
        if factor != 0.0:
            for p in range(d):
                for q in range(d):
                    out[p, q] += factor * rows[i, p] * rows[i, q]


@kernel
def eigenvalues(S: Floats, out: Floats) -> None:
    """out <- the eigenvalues of a symmetric matrix, ascending."""
    d = S.shape[0]
    if d == 2:  # LAPACK takes microseconds to begin
        mean, half = 0.5 * (S[0, 0] + S[1, 1]), 0.5 * (S[0, 0] - S[1, 1])
        radius = np.sqrt(half * half + S[1, 0] * S[1, 0])
        out[0], out[1] = mean - radius, mean + radius
        return
    try:
        out[:] = np.linalg.eigvalsh(S)
    except Exception:  # no convergence
        out[0] = -np.inf  # what nothing is accepted with


@kernel
def check_optimum_arrays(
    V: Floats,
    W: Floats,
    sign: Floats,
    bound: Floats,
    R: Floats,
    rho: float,
    C0: Floats,
    c: float,
    A: Floats,
    y: Floats,
    rows: Floats,
    coefficient: Floats,
    mats: Floats,
) -> tuple[float, float, float, float]:
    """The four residuals of ``Residuals``, for compiled callers.

    The last three are room to work in: (m or 2 m, d), (m,) and (6, d, d).
    """
    m, d = V.shape
    Z, An, extra, scale, wa, wz = mats[0], mats[1], mats[2], mats[3, 0], mats[4, 0], mats[5, 0]
    _normalise(V, W, bound, scale, rows)
    size = 0.0
    for p in range(d):
        size += C0[p, p] / (scale[p] * scale[p]) / d
    c = c / size
    objective = 0.0
    for p in range(d):
        for q in range(d):
            Z[p, q] = C0[p, q] / (scale[p] * scale[q] * size)
            An[p, q] = A[p, q] * scale[p] * scale[q]
            objective += Z[p, q] * An[p, q]
            extra[p, q] = 0.0
    primal = 0.0
    dual_objective = 0.0
    smallest = 0.0
    for i in range(m):
        value = 0.0
        for p in range(d):
            row = 0.0
            for q in range(d):
                row += An[p, q] * rows[i, q]
            value += row * rows[i, p]
            if W.shape[0] > 0:
                row = 0.0
                for q in range(d):
                    row += An[p, q] * rows[m + i, q]
                value -= row * rows[m + i, p]
        primal = max(primal, sign[i] * (value / bound[i] - 1.0))
        coefficient[i] = sign[i] * y[i] / size
        dual_objective -= coefficient[i] * bound[i]
        smallest = min(smallest, y[i] * bound[i] / size)
    _add_weighted(rows, m, coefficient, extra)
    if R.shape[0] > 0:
        last = float(y[m])
        value = 0.0
        norm = 0.0
        for p in range(d):
            for q in range(d):
                value += R[0, p, q] * A[p, q]
                norm = max(norm, abs(R[0, p, q]) / (scale[p] * scale[q]))
                extra[p, q] += last * R[0, p, q] / (scale[p] * scale[q] * size)
        unit = abs(rho) if rho != 0.0 else norm
        primal = max(primal, (value - rho) / unit)
        dual_objective -= last * rho / size
        smallest = min(smallest, last * unit / size)
    trace = 0.0
    total = objective + dual_objective
    for p in range(d):
        trace += An[p, p]
        for q in range(d):
            Z[p, q] += extra[p, q]
            total += Z[p, q]
    if not np.isfinite(total):
        return np.inf, np.inf, np.inf, np.inf
    eigenvalues(An, wa)
    eigenvalues(Z, wz)
    yardstick = abs(objective) + abs(dual_objective)
    if c > 0.0:
        yardstick = c * d + abs(objective)
        for p in range(d):
            objective -= c * np.log(max(wa[p], 1e-300))
            dual_objective += c * (np.log(max(wz[p], 1e-300)) + 1.0 - np.log(c))
    yardstick = max(yardstick, 1e-300)
    psd = max(0.0, -wa[0]) / max(wa[d - 1], 1e-300)
    dual = max(0.0, max(-wz[0] * trace, -smallest)) / yardstick
    gap = abs(objective - dual_objective) / yardstick
    return primal, psd, dual, gap


@kernel
def check_certificate_arrays(
    V: Floats,
    W: Floats,
    sign: Floats,
    bound: Floats,
    R: Floats,
    rho: float,
    y: Floats,
    rows: Floats,
    coefficient: Floats,
    mats: Floats,
) -> tuple[float, float]:
    """Gap and radius of ``CertificateCheck``, for compiled callers, with the same room to work in."""
    m, d = V.shape
    S, scale, eigen = mats[0], mats[1, 0], mats[2, 0]
    _normalise(V, W, bound, scale, rows)
    total = 0.0
    for i in range(m):
        if y[i] < 0.0:
            return -1.0, 0.0
        total += y[i] * bound[i]
    last = 0.0
    if R.shape[0] > 0:
        last = float(y[m])
        if last < 0.0:
            return -1.0, 0.0
        unit = abs(rho)
        for p in range(d):
            for q in range(d):
                if rho == 0.0:
                    unit = max(unit, abs(R[0, p, q]) / (scale[p] * scale[q]))
        total += last * unit
    if not total > 0.0:
        return -1.0, 0.0
    gap = 0.0
    size = 0.0
    for i in range(m):
        coefficient[i] = sign[i] * y[i] / total
        gap -= coefficient[i] * bound[i]
        for p in range(d):
            size += abs(coefficient[i]) * rows[i, p] * rows[i, p]
            if W.shape[0] > 0:
                size += abs(coefficient[i]) * rows[m + i, p] * rows[m + i, p]
    for p in range(d):
        for q in range(d):
            S[p, q] = 0.0
    _add_weighted(rows, m, coefficient, S)
    if R.shape[0] > 0:
        for p in range(d):
            for q in range(d):
                S[p, q] += last / total * R[0, p, q] / (scale[p] * scale[q])
                size += last / total * abs(R[0, p, q]) / (scale[p] * scale[q])
        gap -= last / total * rho
    if not np.isfinite(gap + size):
        return -1.0, 0.0
    # Below this the sign of an eigenvalue is rounding.
    rounding = 4e-16 * (d + m) * size
    eigenvalues(S, eigen)
    radius = np.inf if eigen[0] >= -rounding else (gap - LEAST_GAP) / -eigen[0]
    return gap, radius


class _Arrays(Protocol):
    """An instance as plain arrays (``solution.BasisProblem``)."""

    @property
    def V(self) -> Floats: ...

    @property
    def W(self) -> Floats: ...

    @property
    def sign(self) -> Floats: ...

    @property
    def bound(self) -> Floats: ...

    @property
    def R(self) -> Floats: ...

    @property
    def rho(self) -> float: ...

    @property
    def C0(self) -> Floats: ...

    @property
    def c(self) -> float: ...


def check_optimum(problem: _Arrays, A: Floats, dual: Floats) -> Residuals:
    """``verify_solution`` on plain arrays."""
    p = problem
    residuals = check_optimum_arrays(
        p.V, p.W, p.sign, p.bound, p.R, p.rho, p.C0, p.c, A, dual, *_room(p.V, p.W)
    )
    return Residuals(*residuals)


def check_certificate(problem: _Arrays, y: Floats) -> CertificateCheck:
    """``verify_certificate`` on plain arrays."""
    p = problem
    gap, radius = check_certificate_arrays(p.V, p.W, p.sign, p.bound, p.R, p.rho, y, *_room(p.V, p.W))
    return CertificateCheck(gap, radius)


def _room(V: Floats, W: Floats) -> tuple[Floats, Floats, Floats]:
    """What the compiled checks work in."""
    m, d = V.shape
    return np.empty((m + len(W), d)), np.empty(m), np.empty((6, d, d))


def verify_solution(
    constraints: ConstraintSet,
    objective: Floats,
    A: Floats,
    dual: Floats,
    *,
    log_det: float = 0.0,
    regularizer: Floats | None = None,
    rho: float | None = None,
) -> Residuals:
    """Recompute how far a claimed optimum is from being one.

    Parameters
    ----------
    constraints : ConstraintSet
    objective : array of shape (d, d)
        The matrix C0 that was minimised.
    A : array of shape (d, d)
        The claimed minimiser.
    dual : array of shape (m,) or (m + 1,)
        The claimed multipliers; that of the regulariser is the last one.
    log_det : float
        The weight c of -log det A in the objective.
    regularizer, rho :
        The bound <R, A> <= rho, if there is one.

    Returns
    -------
    Residuals

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.exact.verify import verify_solution
    >>> far = ConstraintSet.from_differences([[2.0, 0.0]], [-1], bounds=(1.0, 1.0))
    >>> verify_solution(far, np.eye(2), np.diag([0.25, 0.0]), np.array([0.25])).largest < 1e-15
    True
    >>> round(verify_solution(far, np.eye(2), np.diag([0.16, 0.0]), np.array([0.25])).primal, 6)
    0.36
    """
    V, W, sign, bound = arrays(constraints)
    R, bound_r = regulariser_arrays(regularizer, rho, constraints.d)
    claim = (_own(objective), float(log_det), _own(A), _own(dual))
    return Residuals(*check_optimum_arrays(V, W, sign, bound, R, bound_r, *claim, *_room(V, W)))


def verify_certificate(
    constraints: ConstraintSet,
    y: Floats,
    *,
    regularizer: Floats | None = None,
    rho: float | None = None,
) -> CertificateCheck:
    """Recompute what multipliers y prove about the infeasibility of constraints.

    Parameters
    ----------
    constraints : ConstraintSet
    y : array of shape (m,) or (m + 1,)
        Multipliers; that of the regulariser is the last one.
    regularizer, rho :
        The bound <R, A> <= rho, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.exact.verify import verify_certificate
    >>> clash = ConstraintSet.from_differences([[1.0], [1.0]], [+1, -1], bounds=(1.0, 2.0))
    >>> check = verify_certificate(clash, np.array([1.0, 1.0]))
    >>> check.valid, round(check.gap, 6)  # every metric fails one of the two by 60%
    (True, 0.6)
    >>> verify_certificate(clash, np.array([1.0, 0.0])).valid
    False
    """
    V, W, sign, bound = arrays(constraints)
    R, bound_r = regulariser_arrays(regularizer, rho, constraints.d)
    gap, radius = check_certificate_arrays(V, W, sign, bound, R, bound_r, _own(y), *_room(V, W))
    return CertificateCheck(gap, radius)


def arrays(constraints: ConstraintSet) -> tuple[Floats, Floats, Floats, Floats]:
    """V, W (no rows if absent), sign and bound as the kernels take them: writable, contiguous float64."""
    V = np.array(constraints.V)
    W = np.empty((0, V.shape[1])) if constraints.W is None else np.array(constraints.W)
    return V, W, constraints.sign.astype(np.float64), np.array(constraints.bound)


def regulariser_arrays(regularizer: Floats | None, rho: float | None, d: int) -> tuple[Floats, float]:
    """The regulariser as a stack of none or one matrix, and its bound."""
    if regularizer is None:
        return np.empty((0, d, d)), 0.0
    assert rho is not None, "validated by the callers"
    return _own(regularizer)[None], float(rho)


def _own(array: Floats) -> Floats:
    return np.array(array, dtype=np.float64)  # numba compiles anew for read-only arrays
