"""What there is to say about a basis problem: the instance, how a solve ended, the answer, the proof.

Every solver ends in one of the functions below, which accept an optimum or a certificate only where the
independent check of ``exact.verify`` agrees.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import Floats, Ints
from lptml.exact.verify import Residuals, check_certificate

#: An optimum is accepted when no error exceeds this, and no constraint fails by more than a third of it: well
#: inside the tolerance at which a constraint counts as violated.
ACCEPT = 1e-7

NO_OPTIMUM = Residuals(np.inf, np.inf, np.inf, np.inf)


class Status(enum.IntEnum):
    """How a solve ended: of a basis problem, of Exact-LPTML, of the sample of a trial."""

    OPTIMAL = 0  #: the metric satisfies every constraint
    INFEASIBLE = 1  #: no metric does; there is a proof, and the elastic minimiser
    EMPTY = 2  #: of a trial: its sample held no constraint
    FAILED = 3  #: no answer could be verified: it may lie within the tolerance of both
    PENDING = 4  #: of a trial: optimal so far, the rest of its sample lies on partitions


@dataclass(frozen=True)
class FarkasCertificate:
    """A verified proof that every metric violates some of the constraints, by more than the tolerance.

    The multipliers satisfy y >= 0, sum s_i y_i C_i (+ y_R R) >= 0 and sum s_i b_i y_i (+ y_R rho) < -tol.

    Attributes
    ----------
    y : array of shape (m,)
        Multipliers of the constraints; sum b_i y_i = 1 (with the regulariser's share).
    regularizer_multiplier : float
        The multiplier of <R, A> <= rho; 0 without a regulariser.
    gap : float
        Every metric fails some constraint by at least this, relative to its bound: more than the tolerance
        by which violations are counted.
    radius : float
        The certificate holds for every metric whose trace in normalised units is below this; usually
        infinite.
    """

    y: Floats
    regularizer_multiplier: float
    gap: float
    radius: float


class Solution(NamedTuple):
    """The answer to a basis problem.

    Attributes
    ----------
    status : Status
    A : array of shape (d, d)
        The minimiser. Of an infeasible instance, the metric whose largest relative violation is smallest.
    dual : array of shape (m,)
        Multipliers of the constraints; zero, or of the order of the tolerance, for slack ones.
    regularizer_dual : float
        The multiplier of <R, A> <= rho.
    objective : float
        <C0, A> - c log det A; infinite for an infeasible instance, so that it is the paper's w.
    residuals : Residuals
        Recomputed independently for (A, dual); infinite for an infeasible instance, which has no optimum.
    support : array of int
        The tight constraints, whose multipliers count. They alone have the same optimum, or are infeasible.
    elastic : float
        The largest relative violation that remains: about 0 when feasible.
    certificate : FarkasCertificate or None
        Proof of infeasibility.
    iterations : int
    solver : str
        Whose answer was verified: "numba", "clarabel", or "closed form" where A = 0 or the prior is optimal.
    """

    status: Status
    A: Floats
    dual: Floats
    regularizer_dual: float
    objective: float
    residuals: Residuals
    support: Ints
    elastic: float
    certificate: FarkasCertificate | None
    iterations: int
    solver: str


@dataclass(frozen=True)
class BasisProblem:
    """One instance as plain arrays, in original units: what the solvers take and the checks recompute."""

    V: Floats  # (m, d)
    W: Floats  # (m, d) or (0, d)
    sign: Floats  # (m,)
    bound: Floats  # (m,)
    R: Floats  # (0, d, d) or (1, d, d)
    rho: float
    C0: Floats  # (d, d)
    c: float

    @property
    def m(self) -> int:
        return len(self.V)

    def value(self, A: Floats) -> float:
        """The objective at A."""
        linear = float(np.vdot(self.C0, A))
        if self.c == 0.0:
            return linear
        determinant_sign, log = np.linalg.slogdet(A)
        return linear - self.c * float(log) if determinant_sign > 0 else np.inf


def is_feasible(residuals: Residuals) -> bool:
    """Whether every constraint is satisfied, as far as an optimum's have to be."""
    return residuals.primal <= ACCEPT / 3


def conclude(
    problem: BasisProblem,
    A: Floats,
    dual: Floats,
    residuals: Residuals,
    tight: NDArray[np.bool_],
    iterations: int,
    solver: str,
    elastic: float,
) -> Solution:
    """OPTIMAL if the independent check of (A, dual) agrees, else FAILED; ``tight`` rows carry A."""
    status = Status.OPTIMAL if max(residuals) <= ACCEPT and is_feasible(residuals) else Status.FAILED
    objective, last = problem.value(A), 0.0
    if len(problem.R):
        dual, last, tight = dual[:-1], float(dual[-1]), tight[:-1]
    support = tight.nonzero()[0]
    return Solution(status, A, dual, last, objective, residuals, support, elastic, None, iterations, solver)


def infeasible(
    problem: BasisProblem, A: Floats, proof: FarkasCertificate, iterations: int, solver: str, elastic: float
) -> Solution:
    """An infeasible instance with its verified certificate."""
    return Solution(
        status=Status.INFEASIBLE,
        A=A,
        dual=proof.y,
        regularizer_dual=proof.regularizer_multiplier,
        objective=np.inf,
        residuals=NO_OPTIMUM,
        support=(proof.y > 0).nonzero()[0],
        elastic=float(elastic),
        certificate=proof,
        iterations=int(iterations),
        solver=solver,
    )


def failure(problem: BasisProblem, solver: str) -> Solution:
    """A solver came to nothing."""
    d, nothing = len(problem.C0), np.zeros(problem.m)
    return Solution(
        status=Status.FAILED,
        A=np.zeros((d, d)),
        dual=nothing,
        regularizer_dual=0.0,
        objective=np.inf,
        residuals=NO_OPTIMUM,
        support=nothing.nonzero()[0],
        elastic=np.inf,
        certificate=None,
        iterations=0,
        solver=solver,
    )


def certificate(problem: BasisProblem, y: Floats) -> FarkasCertificate | None:
    """The multipliers as a certificate, if the independent check accepts them."""
    total = float(
        y @ (np.append(problem.bound, abs(problem.rho) or 1.0) if len(problem.R) else problem.bound)
    )
    if not total > 0:
        return None
    check = check_certificate(problem, y / total)
    if not check.valid:
        return None
    m = problem.m
    extra = float(y[m] / total) if len(y) > m else 0.0
    return FarkasCertificate(y[:m] / total, extra, check.gap, check.radius)
