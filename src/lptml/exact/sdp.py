"""The basis problem: the paper's Basic-LPTML, a small semidefinite program solved exactly.

    minimise    <C0, A> - c log det A
    subject to  s_i (<C_i, A> - b_i) <= 0   for every constraint
                <R, A> <= rho               optionally, for any symmetric R (Section 2.4 of the paper)
                A positive semidefinite

With c = 0 and C0 = rr' + tau I it is the paper's w(F), with a trace term that keeps the minimiser bounded and
unique where r'Ar reaches zero. With C0 = P^-1 and c = 1 it is the metric closest to P in LogDet divergence.

The work is done by the interior-point kernel of ``exact.kernel``. What it returns is not trusted: an optimum
is reported only if ``verify.check_optimum`` confirms its residuals, infeasibility only with a Farkas
certificate that ``verify.check_certificate`` confirms. An instance that the kernel cannot settle goes to
Clarabel if that is installed; if that fails too the status says so.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np

from lptml._jit import announce
from lptml.constraints import ConstraintSet, Floats
from lptml.exact.attempt import INFEASIBLE, NOTHING_ASKED, OPTIMAL, attempt
from lptml.exact.coordinates import scale_problem
from lptml.exact.farkas import repairs
from lptml.exact.solution import (
    ACCEPT,
    BasisProblem,
    FarkasCertificate,
    Solution,
    Status,
    certificate,
    conclude,
    infeasible,
    is_feasible,
)
from lptml.exact.verify import (
    Residuals,
    arrays,
    check_certificate,
    check_optimum,
    regulariser_arrays,
)

SOLVERS = ("numba", "clarabel")

#: Where the feasible metrics have no interior (distances that are tight in the triangle inequality, say) the
#: multipliers are infinite and no solver gets as far. When every attempt falls short, the best of them is
#: accepted with errors up to this, its constraints satisfied as ever; its residuals tell.
ACCEPT_DEGENERATE = 1e-4


@dataclass(frozen=True)
class Attempt:
    """Settings of one run of the kernel: weights of the lower bounds and of the objective in the
    coordinates it works in, and the cost of the elastic variable in units of the normalised objective."""

    lower: float
    cost: float
    elastic: float


#: The first attempt suits nearly everything. Constraints that barely have a solution need coordinates in
#: which the objective counts for less, or multipliers beyond the elastic cost; an objective whose units have
#: nothing to do with those of the features needs coordinates in which it counts for more.
ATTEMPTS = (
    Attempt(lower=1e-2, cost=0.3, elastic=1e6),
    Attempt(lower=1e-2, cost=1e-4, elastic=1e6),
    Attempt(lower=1e-2, cost=10.0, elastic=1e6),
    Attempt(lower=1e-2, cost=1e-8, elastic=1e6),
    Attempt(lower=1e-2, cost=1e3, elastic=1e6),
    Attempt(lower=1e-2, cost=1e-4, elastic=1e9),
    Attempt(lower=1.0, cost=0.1, elastic=1e9),
)

_MAX_ITERATIONS = 80  # the kernel needs 8 to 30


def solve_basis(
    constraints: ConstraintSet,
    objective: Floats,
    *,
    log_det: float = 0.0,
    regularizer: Floats | None = None,
    rho: float | None = None,
    solver: str = "numba",
    tol: float = 1e-9,
) -> Solution:
    """Minimise a linear function of the metric subject to constraints.

    Parameters
    ----------
    constraints : ConstraintSet
        A few hundred at most; ``exact_lptml`` is for more.
    objective : array of shape (d, d)
        C0, symmetric and positive definite, in the coordinates of the constraints.
    log_det : float, default 0
        The weight c of -log det A.
    regularizer : array of shape (d, d), optional
        Any symmetric R; with ``rho`` it adds <R, A> <= rho.
    rho : float, optional
    solver : {"numba", "clarabel"}
        The compiled kernel (which falls back on Clarabel), or Clarabel at once.
    tol : float, default 1e-9
        Where the solver stops: relative gap and residuals in normalised units.

    Returns
    -------
    Solution

    Examples
    --------
    Two points shall be 2 apart and are 1 apart along the first axis:

    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.exact.sdp import solve_basis
    >>> far = ConstraintSet.from_differences([[1.0, 0.0]], [-1], bounds=(1.0, 2.0))
    >>> solution = solve_basis(far, np.eye(2))
    >>> solution.status
    <Status.OPTIMAL: 0>
    >>> solution.A.round(6) + 0.0
    array([[4., 0.],
           [0., 0.]])
    """
    C0 = check_matrix(objective, constraints.d, "objective")
    if not _positive_definite(C0):
        raise ValueError("objective must be positive definite, or the minimum may not exist")
    if not (np.isfinite(log_det) and log_det >= 0):
        raise ValueError(f"log_det must be a number >= 0, got {log_det!r}")
    if (regularizer is None) != (rho is None):
        raise ValueError("regularizer and rho go together: give both or none")
    if regularizer is not None:
        regularizer = check_matrix(regularizer, constraints.d, "regularizer")
        if rho is None or not np.isfinite(rho) or not regularizer.any():
            raise ValueError("rho must be finite and regularizer not zero")
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    if not 1e-12 <= tol <= 1e-4:
        raise ValueError(f"tol must be between 1e-12 and 1e-4, got {tol!r}")
    V, W, sign, bound = arrays(constraints)
    R, rho = regulariser_arrays(regularizer, rho, constraints.d)
    return solve_problem(BasisProblem(V, W, sign, bound, R, rho, C0, float(log_det)), solver, tol)


def check_matrix(matrix: Floats, d: int, name: str) -> Floats:
    """A finite symmetric (d, d) matrix, or ValueError."""
    matrix = np.array(matrix, dtype=np.float64)
    if matrix.shape != (d, d) or not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be a finite matrix of shape {(d, d)}, got shape {matrix.shape}")
    if np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
        raise ValueError(f"{name} must be symmetric")
    return (matrix + matrix.T) / 2


def _positive_definite(matrix: Floats) -> bool:
    """Whether Cholesky's method says so, after scaling the diagonal to ones."""
    diagonal = np.diag(matrix)
    if not (diagonal > 0).all():
        return False
    root = np.sqrt(diagonal)
    try:
        np.linalg.cholesky(matrix / root[:, None] / root)
    except np.linalg.LinAlgError:
        return False
    return True


def solve_problem(
    problem: BasisProblem, solver: str = "numba", tol: float = 1e-9, loose: float | None = None
) -> Solution:
    """Solve an instance whose arrays are known to be valid; the entry for inner loops.

    Of a clearly infeasible one the metric is only found to a tolerance of ``loose`` (by default ``tol``); the
    certificate is verified all the same.
    """
    if len(problem.V) + len(problem.R) == 0 or (solver != "numba" and _asks_for_nothing(problem)):
        return _closed_form(problem)
    failed = []
    if solver == "numba":
        for settings in ATTEMPTS:
            solution = _solve_kernel(problem, settings, tol, tol if loose is None else loose)
            if solution.status is not Status.FAILED:
                return solution
            failed.append(solution)
    if importlib.util.find_spec("clarabel") is not None:
        from lptml.exact.clarabel import solve_clarabel

        solution = solve_clarabel(problem, tol)
        if solution.status is not Status.FAILED:
            return solution
        failed.append(solution)
    elif solver == "clarabel":
        raise ImportError("solver='clarabel' needs Clarabel: pip install 'lptml[clarabel]'")
    best = min(failed, key=lambda solution: (not is_feasible(solution.residuals), solution.residuals.largest))
    if is_feasible(best.residuals) and best.residuals.largest <= ACCEPT_DEGENERATE:
        return best._replace(status=Status.OPTIMAL)
    return best


def _asks_for_nothing(problem: BasisProblem) -> bool:
    """Whether A = 0 satisfies everything and costs nothing."""
    return bool(problem.c == 0 and problem.rho >= 0 and (problem.sign > 0).all())


def compile_now() -> None:
    """Compile the kernel, or load it from disk, so that no clock that starts later counts it.

    A search that is stopped by its time limit while a thread still compiles would leave nothing behind, and
    the next process would begin anew.
    """
    V, none = np.ones((1, 1)), np.empty((0, 1))
    problem = BasisProblem(V, none, -V[0], V[0], np.empty((0, 1, 1)), 0.0, V, 0.0)
    solve_problem(problem)
    check_certificate(problem, V[0])


def _solve_kernel(problem: BasisProblem, settings: Attempt, tol: float, loose: float) -> Solution:
    """One run of the kernel and the check of what it says."""
    announce(attempt)
    p, s = problem, settings
    (m, d), n = p.V.shape, len(p.V) + len(p.R)
    # Few arrays, and everything by position: at d = 2 a sixth of the time is spent on these lines.
    metrics, multipliers, support = np.zeros((2, d, d)), np.zeros((3, n)), np.empty(m, np.int64)
    outcome, iterations, tight, t, linear, first, second, third, fourth = attempt(
        p.V, p.W, p.sign, p.bound, p.R, p.rho, p.C0, p.c, s.lower, s.cost, s.elastic,
        tol, loose, _MAX_ITERATIONS, ACCEPT, metrics, multipliers, support,
    )  # fmt: skip
    A, dual = metrics[0], multipliers[0]
    residuals = Residuals(first, second, third, fourth)
    if outcome == OPTIMAL:
        objective = linear if p.c == 0.0 else p.value(A)
        of_R = 0.0
        if n > m:
            dual, of_R = dual[:m], float(dual[m])
        return Solution(
            Status.OPTIMAL, A, dual, of_R, objective, residuals, support[:tight], t, None, iterations, "numba"
        )
    if outcome == NOTHING_ASKED:
        return conclude(p, A, dual, residuals, dual > 0, 0, "closed form", 0.0)
    if outcome == INFEASIBLE:
        return infeasible(p, A, FarkasCertificate(dual, 0.0, first, second), iterations, "numba", t)
    _, y, z = multipliers
    if t > 0.01 * ACCEPT:
        U, R, units, size = _scaled(p, settings)
        for weights in (y * (y > z), y):
            for multipliers in repairs(U, p.sign, R, weights, metrics[1]):
                found = certificate(p, multipliers / (units * size))
                if found is not None:
                    return infeasible(p, A, found, iterations, "numba", t)
    return conclude(p, A, dual, check_optimum(p, A, dual), y > z, iterations, "numba", t)


def _scaled(p: BasisProblem, settings: Attempt) -> tuple[Floats, Floats, Floats, float]:
    """Vectors, R and units of the multipliers in the kernel's coordinates, and the size of the objective."""
    d, n = len(p.C0), p.m + len(p.R)
    k = p.m + len(p.W)
    U, h, R, units = np.empty((k, d)), np.empty(n), np.empty(p.R.shape), np.empty(n)
    C0, T = np.empty((2, d, d))
    size = scale_problem(
        *(p.V, p.W, p.sign, p.bound, p.R, p.rho, p.C0, settings.lower, settings.cost),
        *(U, h, R, C0, T, units, np.empty((k, d)), np.empty((d, k)), np.empty((5, d, d))),
    )
    return U, R, units, size


def _closed_form(problem: BasisProblem) -> Solution:
    """Nothing asks for distance: A = 0, or the prior itself."""
    d, n = len(problem.C0), problem.m + len(problem.R)
    A = np.zeros((d, d)) if problem.c == 0 else problem.c * np.linalg.inv(problem.C0)
    nothing = np.zeros(n)
    A = (A + A.T) / 2
    return conclude(
        problem, A, nothing, check_optimum(problem, A, nothing), nothing > 0, 0, "closed form", 0.0
    )
