"""Exact-LPTML, the paper's Algorithm 1: satisfy every constraint, or prove that it cannot be done.

w(F) is the minimum of the objective over the metrics that satisfy the constraints F (infinite if there are
none). (H, w) is an LP-type problem of combinatorial dimension at most D = d(d+1)/2 (Lemma 2.1 of the paper;
one more with a regulariser), solved by three basic operations: an initial basis (B0), a violation test (B1)
and the basis of a basis and one more constraint (B2). The strategies differ in which violated constraint
enters:

- ``"plain"``: the first one in a random order; then the scan begins again. It is Welzl's recursion
  Exact-LPTML(F; B) with the recursion unrolled, as w rises with every basis.
- ``"mtf"``: the same, and the constraint that entered moves to the front of the order (Welzl 1991).
- ``"pivot"``: the most violated one (Gaertner 1999).
- ``"multi"``: the ``batch`` most violated ones at once. Large sets are solved on a random sample first, and
  that on a sample of its own, after Clarkson (1995): a sample of n / 16 leaves about 16 D constraints
  violated, so that a few passes over n remain.

All give the same w. A basis is what remains when constraints with zero multipliers are left out.

References
----------
D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
geometric approximation algorithms", Algorithm 1 and Section 2; arXiv:1905.09989.

E. Welzl, "Smallest enclosing disks (balls and ellipsoids)", New Results and New Trends in Computer Science,
LNCS 555, 1991.

B. Gärtner, "Fast and robust smallest enclosing balls", European Symposium on Algorithms, 1999.

K. L. Clarkson, "Las Vegas algorithms for linear and integer programming when the dimension is small", Journal
of the ACM 42, 1995.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lptml._limits import look
from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.constraints.scaling import feature_scale
from lptml.constraints.violation import TOLERANCE, excess
from lptml.exact.basis import minimal_basis, minimal_infeasible
from lptml.exact.objectives import Objective
from lptml.exact.sdp import SOLVERS, check_matrix, solve_problem
from lptml.exact.solution import BasisProblem, FarkasCertificate, Solution, Status
from lptml.exact.verify import regulariser_arrays

_SAMPLING_RATIO = 16  # a sample of n / 16 leaves about 16 D constraints violated, and passes over n stay few
_KEEP = 1.0  # slack constraints stay while there are fewer than this many times D and a batch
_FIRST = 120  # one solve of this many constraints costs less than several of a few dozen
_PATIENCE = 50  # bases computed without a higher w before nothing is dropped any more
_SCAN = 1024  # constraints tested at once where the order matters


@dataclass
class Counts:
    """How much work an exact solve was.

    Attributes
    ----------
    violation_tests : int
        Constraints tested against a metric (B1).
    basis_computations : int
        Bases computed (B2).
    solves : int
        Semidefinite programs solved, those that make the basis minimal included.
    iterations : int
        Interior-point iterations of all of them.
    """

    violation_tests: int = 0
    basis_computations: int = 0
    solves: int = 0
    iterations: int = 0


@dataclass(frozen=True)
class ExactResult:
    """The answer of Exact-LPTML.

    Attributes
    ----------
    status : Status
    A : array of shape (d, d)
        The optimum; of an infeasible set, the metric that violates the found subsystem least.
    basis : array of int
        Constraints that alone have the same optimum: at most D (D + 1 with a regulariser) and none of them
        dispensable if the basis was made minimal. Empty for an infeasible set.
    objective : float
        w(F), infinite for an infeasible set.
    counts : Counts
    certificate : FarkasCertificate or None
        Proof of infeasibility; its multipliers belong to ``infeasible_subsystem``.
    infeasible_subsystem : array of int
        Constraints that contradict each other: at most D + 1 (D + 2 with a regulariser) if made minimal.
        Empty for a feasible set.
    """

    status: Status
    A: Floats
    basis: Ints
    objective: float
    counts: Counts
    certificate: FarkasCertificate | None
    infeasible_subsystem: Ints


@dataclass
class Instance:
    """Constraints F with all that w depends on, counting what is asked of it."""

    constraints: ConstraintSet
    C0: Floats
    c: float
    R: Floats
    rho: float
    solver: str
    tol: float
    loose: float | None = None
    counts: Counts = field(default_factory=Counts)
    highest: float = -np.inf  # of all values of w so far
    stalled: int = 0  # bases computed since it last rose

    def problem(self, index: Ints) -> BasisProblem:
        """The basis problem of the constraints with these numbers."""
        F = self.constraints
        W = np.empty((0, F.d)) if F.W is None else F.W.take(index, axis=0)
        sign = F.sign.take(index).astype(np.float64)
        return BasisProblem(
            F.V.take(index, axis=0), W, sign, F.bound.take(index), self.R, self.rho, self.C0, self.c
        )

    def solve(self, index: Ints) -> Solution:
        """w of the constraints with these numbers (Basic-LPTML)."""
        look()
        solution = solve_problem(self.problem(index), self.solver, self.tol, self.loose)
        self.counts.solves += 1
        self.counts.iterations += solution.iterations
        return solution


def initial_basis(instance: Instance) -> tuple[Ints, Solution]:
    """B0: a basis to start from. The empty set is one, with A = 0 or the prior as its optimum."""
    basis = np.empty(0, dtype=np.int64)
    return basis, instance.solve(basis)


def violation_test(instance: Instance, A: Floats, index: Ints | None = None) -> Floats:
    """B1 for all constraints, or those in ``index``: by how much A fails each, relative to its bound.

    As w has a unique minimiser, w(B + h) > w(B) if and only if the optimum of B violates h.
    """
    F = instance.constraints if index is None else instance.constraints.take(index)
    instance.counts.violation_tests += F.n
    return excess(F.values(A), F.sign, F.bound)


def basis_computation(instance: Instance, basis: Ints, entering: Ints) -> tuple[Ints, Solution]:
    """B2: the optimum of a basis and entering constraints, and which of them carry it.

    In exact arithmetic w rises every time. Where rounding stops it from rising, no constraint is dropped any
    more, so that the constraints grow in number and the algorithm ends.
    """
    together = np.concatenate([basis, entering])
    solution = instance.solve(together)
    instance.counts.basis_computations += 1
    rises = solution.objective > instance.highest
    instance.stalled = 0 if rises else instance.stalled + 1
    instance.highest = max(instance.highest, solution.objective)
    if instance.stalled > _PATIENCE and solution.status is Status.OPTIMAL:
        return together, solution
    return together[solution.support], solution


def exact_lptml(
    constraints: ConstraintSet,
    objective: Objective,
    *,
    rng: np.random.Generator | int | None = None,
    strategy: str = "multi",
    regularizer: Floats | None = None,
    rho: float | None = None,
    batch: int = 40,
    minimal: bool = True,
    solver: str = "numba",
    tol: float = 1e-9,
    loose: float | None = None,
) -> ExactResult:
    """The paper's Algorithm 1: the best metric among those that satisfy all constraints.

    Parameters
    ----------
    constraints : ConstraintSet
    objective : Objective
        From ``make_objective``.
    rng : numpy Generator, int or None
        Draws the random order or the samples.
    strategy : {"multi", "pivot", "mtf", "plain"}
        Which violated constraint enters; see the module.
    regularizer, rho : optional
        The bound <R, A> <= rho for a symmetric R.
    batch : int, default 40
        How many constraints enter at once with "multi".
    minimal : bool, default True
        Make the basis, or the infeasible subsystem, minimal. It takes extra solves when optima are degenerate
        and whenever the constraints are infeasible; a search that only needs A leaves it out.
    solver, tol :
        As in ``solve_basis``.
    loose : float, optional
        Tolerance of the metric of clearly infeasible constraints, where it is larger than ``tol``.

    Returns
    -------
    ExactResult

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.exact import exact_lptml, make_objective
    >>> F = ConstraintSet.from_differences(
    ...     [[2.0, 0.0], [4.0, 0.0], [0.0, 1.0]], [-1, -1, +1], bounds=(1.0, 2.0))
    >>> result = exact_lptml(F, make_objective("trace", 2), rng=0)
    >>> result.status.name, result.basis.tolist(), result.A.round(6).tolist()
    ('OPTIMAL', [0], [[1.0, 0.0], [0.0, 0.0]])
    """
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(_STRATEGIES)}, got {strategy!r}")
    if objective.matrix.shape != (constraints.d,) * 2:
        raise ValueError(
            f"the objective is for {len(objective.matrix)} features, the constraints have {constraints.d}"
        )
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch!r}")
    if (regularizer is None) != (rho is None):
        raise ValueError("regularizer and rho go together: give both or none")
    if regularizer is not None:
        regularizer = check_matrix(regularizer, constraints.d, "regularizer")
    R, bound = regulariser_arrays(regularizer, rho, constraints.d)
    if objective.original_units:
        C0 = np.array(objective.matrix)  # a process may have it from a file, but kernels take writable arrays
    else:
        C0 = objective.linear_part(constraints, feature_scale(constraints))
    instance = Instance(constraints, C0, objective.log_det, R, bound, solver, tol, loose)
    generator = np.random.default_rng(rng)
    basis, solution = _STRATEGIES[strategy](instance, generator, batch)
    return _conclude(instance, basis, solution, minimal)


def _conclude(instance: Instance, basis: Ints, solution: Solution, minimal: bool) -> ExactResult:
    proof = solution.certificate
    if len(basis) > len(solution.support):  # nothing was dropped any more
        basis = basis[solution.support]
    if minimal and solution.status is Status.OPTIMAL:
        basis = minimal_basis(instance.solve, instance.problem(basis), basis, solution)
    if minimal and solution.status is Status.INFEASIBLE:
        basis, proof = minimal_infeasible(instance.solve, basis, solution)
    elif proof is not None:
        support = solution.support
        proof = FarkasCertificate(proof.y[support], proof.regularizer_multiplier, proof.gap, proof.radius)
    nothing = np.empty(0, dtype=np.int64)
    feasible = solution.status is Status.OPTIMAL
    return ExactResult(
        status=solution.status,
        A=solution.A,
        basis=np.sort(basis) if feasible else nothing,
        objective=solution.objective,
        counts=instance.counts,
        certificate=proof,
        infeasible_subsystem=basis if solution.status is Status.INFEASIBLE else nothing,
    )


def _ordered(instance: Instance, rng: np.random.Generator, move_to_front: bool) -> tuple[Ints, Solution]:
    """Exact-LPTML(F; B): the first violated constraint of a random order enters, and the scan starts anew."""
    n = instance.constraints.n
    order = rng.permutation(n)
    basis, solution = initial_basis(instance)
    position = 0
    while position < n and solution.status is Status.OPTIMAL:
        block = order[position : position + _SCAN]
        violated = np.flatnonzero(violation_test(instance, solution.A, block) > TOLERANCE)
        if len(violated) == 0:
            position += len(block)
            continue
        # Only the tests up to the first violated one were needed.
        first = position + int(violated[0])
        instance.counts.violation_tests -= position + len(block) - first - 1
        h = order[first : first + 1].copy()
        basis, solution = basis_computation(instance, basis, h)
        if move_to_front:
            order[1 : first + 1] = order[:first]
            order[0] = h[0]
        position = 0
    return basis, solution


def _plain(instance: Instance, rng: np.random.Generator, batch: int) -> tuple[Ints, Solution]:
    return _ordered(instance, rng, move_to_front=False)


def _move_to_front(instance: Instance, rng: np.random.Generator, batch: int) -> tuple[Ints, Solution]:
    return _ordered(instance, rng, move_to_front=True)


def _pivot(instance: Instance, rng: np.random.Generator, batch: int) -> tuple[Ints, Solution]:
    """The most violated constraint enters."""
    basis, solution = initial_basis(instance)
    while solution.status is Status.OPTIMAL and instance.constraints.n:
        violation = violation_test(instance, solution.A)
        worst = int(violation.argmax())
        if violation[worst] <= TOLERANCE:
            break
        basis, solution = basis_computation(instance, basis, np.array([worst]))
    return basis, solution


def _multi(instance: Instance, rng: np.random.Generator, batch: int) -> tuple[Ints, Solution]:
    """The ``batch`` most violated constraints enter together, on ever larger samples of F.

    All that was ever violated stays in a pool, which is small and is satisfied before a level is passed over
    again: so each level is passed over only a few times.
    """
    F = instance.constraints
    first = max(2 * batch + F.d, min(2 * F.D // 3, _FIRST))
    if F.n <= first:
        return basis_computation(instance, np.empty(0, dtype=np.int64), np.arange(F.n))
    levels: list[Ints | None] = [None]  # all of F
    size = F.n
    while size > max(_SAMPLING_RATIO * first, 500):
        size //= _SAMPLING_RATIO
        parent = levels[-1]
        drawn = rng.integers(F.n if parent is None else len(parent), size=size)
        levels.append(drawn if parent is None else parent[drawn])
    smallest = levels[-1]
    start = rng.permutation(F.n)[:first] if smallest is None else np.unique(smallest[:first])
    basis, solution = basis_computation(instance, start[:0], start)
    pool = start
    for level in reversed(levels):
        while solution.status is Status.OPTIMAL:
            violation = violation_test(instance, solution.A, level)
            violated = np.flatnonzero(violation > TOLERANCE)
            if len(violated) == 0:
                break
            pool = np.union1d(pool, violated if level is None else level[violated])
            basis, solution = _satisfy(instance, basis, solution, pool, max(batch, F.D // 4))
    return basis, solution


def _satisfy(
    instance: Instance, basis: Ints, solution: Solution, pool: Ints, batch: int
) -> tuple[Ints, Solution]:
    """Let the worst constraints of a pool enter until none of it is violated, or no metric is left.

    Constraints that went slack are dropped when there are too many, not at once: they tend to come back.
    """
    working = basis
    while solution.status is Status.OPTIMAL:
        violation = violation_test(instance, solution.A, pool)
        entering = np.flatnonzero(violation > TOLERANCE)
        if len(entering) == 0:
            break
        if len(entering) > batch:
            entering = entering[np.argpartition(violation[entering], len(entering) - batch)[-batch:]]
        if len(working) + len(entering) > _KEEP * (instance.constraints.D + batch):
            working = basis
        working = np.concatenate([working, pool[entering]])
        basis, solution = basis_computation(instance, working[:0], working)
    return basis, solution


_STRATEGIES: dict[str, Callable[[Instance, np.random.Generator, int], tuple[Ints, Solution]]] = {
    "multi": _multi,
    "pivot": _pivot,
    "mtf": _move_to_front,
    "plain": _plain,
}
