"""Lower bounds on the cost of every metric, with proofs.

Constraints that contradict each other (an infeasible subsystem, with the multipliers of Farkas' lemma as its
certificate) cannot all hold, so every metric violates one of them at least. The cost of the best metric is
therefore at least

- the sum over disjoint subsystems of their smallest weights;
- more generally the value of any packing: multipliers z_S >= 0 with sum over S containing i of z_S <=
weight_i prove
  sum of z_S (the dual of a linear program, which finds the best such multipliers);
- the least weight of constraints that hits every subsystem (a set cover, by HiGHS on small instances).

``certify`` collects subsystems by the implicit hitting set method (Chandrasekaran, Karp, Moreno-Centeno
and Vempala 2011; for linear systems Parker and Ryan 1996): take away the cheapest set of constraints that
hits all known subsystems, look for a contradiction in what is left, and add it. If nothing is left that
contradicts itself, the metric that satisfies the rest is optimal, and proven so.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from lptml.constraints import Floats, Ints, Source
from lptml.exact.sdp import Solution, Status, solve_basis
from lptml.exact.verify import verify_certificate
from lptml.search.engine import PartitionedSource
from lptml.search.remote import nearby

_LISTED = 20_000  # constraints that are searched for contradictions
_DIRECT = 120  # constraints that one semidefinite program takes; more go through Algorithm 1
_SHRINK = 30  # metrics of up to this many dimensions have their subsystems made irreducible
_COVER = 20_000  # nonzeros of a cover problem up to which HiGHS is asked for whole numbers


class Proof(Enum):
    """How far a certification got."""

    OPTIMAL = "no metric costs less"
    BOUNDED = "stopped with a gap"


@dataclass(frozen=True)
class Subsystem:
    """Constraints that contradict each other."""

    constraints: Ints
    """Their numbers in the source."""
    multipliers: Floats
    """Farkas multipliers, one a constraint, verified."""
    gap: float
    """Every metric violates one of the constraints by at least this, relative to its bound."""


@dataclass(frozen=True)
class Certified:
    """A lower bound with its proof, beside the best metric known."""

    lower_bound: float
    """No metric violates less weight than this."""
    packing_bound: float
    """What the packing alone proves; the rest of ``lower_bound`` is proven by HiGHS' search for covers."""
    A: Floats
    """The cheapest metric known: the given one, or one that was met on the way."""
    cost: float
    """The weight that A violates."""
    subsystems: tuple[Subsystem, ...]
    packing: Floats
    """The multiplier of each subsystem; per constraint they sum to its weight at most."""
    proof: Proof
    seconds: float

    @property
    def gap(self) -> float:
        """How much cheaper than A a metric might still be."""
        return max(0.0, self.cost - self.lower_bound)

    def verify(self, source: Source) -> float:
        """Recompute what the subsystems and the packing prove, sharing no code with their search.

        Raises ``ValueError`` if a certificate or the packing does not hold.
        """
        load: dict[int, float] = {}
        weight: dict[int, float] = {}
        for subsystem, share in zip(self.subsystems, self.packing):
            members = source.take(subsystem.constraints)
            if not verify_certificate(members, subsystem.multipliers).valid:
                raise ValueError(f"the certificate of constraints {subsystem.constraints} does not hold")
            for i, w in zip(subsystem.constraints.tolist(), members.weight.tolist()):
                load[i] = load.get(i, 0.0) + float(share)
                weight[i] = w
        if any(load[i] > weight[i] * (1 + 1e-12) for i in load) or (self.packing < 0).any():
            raise ValueError("the packing uses more of a constraint than its weight")
        return float(self.packing.sum())


def certify(
    source: Source | PartitionedSource,
    A: Floats | None = None,
    *,
    time_limit: float = 10.0,
    random_state: int | None = 0,
    callback: Callable[[float, float], object] | None = None,
) -> Certified:
    """A lower bound on the cost of every metric, and how far the given one is from it.

    Parameters
    ----------
    source : Source
        Constraints. Contradictions are looked for among 20,000 of them at most, drawn at random: what these
        prove holds for all, but it is the less the more there are.
    A : array of shape (d, d), optional
        The metric to compare with; by default the best multiple of the identity.
    time_limit : float
        Seconds after which to stop with what is proven; 0 stops after the first subsystem. The clock is
        looked at between subsystems: with 30 features one takes seconds, with 45 a minute or two.
    random_state : int, optional
        The same number gives the same subsystems, if the time limit does not come between.
    callback : callable, optional
        Called as ``callback(lower_bound, cost)`` after each round; a true result stops.

    Returns
    -------
    Certified

    Examples
    --------
    Similar and dissimilar at the same place cannot both hold:

    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.refine.lower_bounds import certify
    >>> V = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    >>> pairs = ConstraintSet.from_differences(V, [+1, -1, +1, -1], bounds=(1.0, 2.0))
    >>> certified = certify(pairs, np.eye(2))
    >>> certified.lower_bound, certified.cost, certified.proof.name
    (2.0, 2.0, 'OPTIMAL')
    >>> certified.verify(pairs)
    2.0
    """
    if source.n < 1:
        raise ValueError("there are no constraints to certify")
    if not time_limit >= 0:
        raise ValueError(f"time_limit must not be negative, got {time_limit}")
    near = nearby(source)
    if A is None:
        A = near.best_identity().scale * np.eye(near.d)
    first = near.take(np.arange(1))
    verify_certificate(first, np.ones(1))  # these two compile, which shall not count against the limit
    solve_basis(first, np.eye(near.d))
    run = _Run(near, np.asarray(A, dtype=np.float64), time_limit, np.random.default_rng(random_state))
    constraints = run.constraints
    try:
        run.collect(np.zeros(constraints.n, dtype=bool), disjoint=True)
        run.bound()
        while not run.optimal and not run.late and not (callback and callback(run.lower_bound, run.cost)):
            before = len(run.subsystems)
            run.collect(run.cover, disjoint=False)
            if len(run.subsystems) == before:
                break  # the rest is feasible (then run.optimal says so) or could not be settled
            run.bound()
    except KeyboardInterrupt:
        warnings.warn("certification interrupted; the bound proven so far is returned", stacklevel=2)
    return run.result()


class _Run:
    """Subsystems so far, and what they prove."""

    def __init__(self, source: Source, A: Floats, time_limit: float, rng: np.random.Generator) -> None:
        self.source = source
        # What some of the constraints prove holds for all of them.
        self.number = np.arange(source.n)
        if source.n > _LISTED:
            self.number = np.unique(rng.integers(source.n, size=_LISTED))
        constraints = source.take(self.number)
        counts = constraints.weight > 0  # the others prove nothing
        self.number, constraints = self.number[counts], constraints.take(counts)
        self.constraints = constraints
        self.rng = rng
        self.began = time.monotonic()
        self.deadline = self.began + time_limit
        self.A = A
        self.cost = float(source.cost(A))
        self.subsystems: list[Subsystem] = []
        self.lower_bound = 0.0
        self.packing = np.zeros(0)
        self.cover = np.zeros(constraints.n, dtype=bool)
        self.grid = _common_measure(constraints.weight)

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    @property
    def optimal(self) -> bool:
        return self.lower_bound >= self.cost * (1 - 1e-9)

    def collect(self, removed: NDArray[np.bool_], disjoint: bool) -> None:
        """Find contradictions among what is not removed, taking members of each away until none is left."""
        removed = removed.copy()
        while True:
            rest = np.flatnonzero(~removed)
            subsystem, A = self._contradiction(rest)
            if subsystem is None:
                self._offer(A)
                return
            self.subsystems.append(subsystem)
            if disjoint:
                removed[subsystem.constraints] = True
            else:
                # The member that pulls hardest for its weight: likely the wrong one.
                members = self.constraints.take(subsystem.constraints)
                pull = subsystem.multipliers * members.bound / members.weight
                removed[subsystem.constraints[int(np.argmax(pull))]] = True
            if self.late:
                return

    def _contradiction(self, rest: Ints) -> tuple[Subsystem | None, Floats | None]:
        """A subsystem among these constraints; or none, and a metric that satisfies them (or None)."""
        if not len(rest):
            return None, np.zeros((self.constraints.d, self.constraints.d))
        among = self.constraints.take(rest)
        members = np.arange(len(rest))
        if len(rest) > max(_DIRECT, 2 * among.D):
            from lptml.exact import exact_lptml, make_objective

            exact = exact_lptml(among, make_objective("trace", among.d, self.rng), rng=self.rng)
            if exact.status is Status.OPTIMAL:
                return None, exact.A
            if exact.status is not Status.INFEASIBLE:
                return None, None
            members = exact.infeasible_subsystem
        solution = self._solve(rest[members])
        if solution.status is Status.OPTIMAL:
            return None, solution.A if len(members) == len(rest) else None
        found = self._verified(rest[members], solution)
        return (None, None) if found is None else (self._shrunk(found), None)

    def _solve(self, members: Ints) -> Solution:
        return solve_basis(self.constraints.take(members), np.eye(self.constraints.d))

    def _verified(self, members: Ints, solution: Solution) -> Subsystem | None:
        """The subsystem that a solution claims, if its certificate holds when it is checked apart."""
        if solution.status is not Status.INFEASIBLE or solution.certificate is None:
            return None
        y = solution.certificate.y
        # One that only just holds may not without its zeros, which count in the units of the check.
        for keep in (y > 0, y >= 0):
            check = verify_certificate(self.constraints.take(members[keep]), y[keep])
            if check.valid:
                return Subsystem(members[keep], y[keep], check.gap)
        return None

    def _shrunk(self, subsystem: Subsystem) -> Subsystem:
        """Leave out what the contradiction does not need: the smaller, the stronger the bound."""
        if self.constraints.D > _SHRINK:
            return subsystem
        for i in self.rng.permutation(subsystem.constraints):
            if len(subsystem.constraints) > 2:
                others = subsystem.constraints[subsystem.constraints != i]
                smaller = self._verified(others, self._solve(others))
                subsystem = subsystem if smaller is None else smaller
        return subsystem

    def _offer(self, A: Floats | None) -> None:
        if A is not None:
            A = self.constraints.best_scale(A).scale * A
            cost = float(self.source.cost(A))
            if cost < self.cost:
                self.A, self.cost = A, cost

    def bound(self) -> None:
        """The best packing and the cheapest cover of the subsystems so far."""
        if not self.subsystems:
            return
        columns = np.concatenate([s.constraints for s in self.subsystems])
        rows = np.repeat(np.arange(len(self.subsystems)), [len(s.constraints) for s in self.subsystems])
        used, place = np.unique(columns, return_inverse=True)
        M = sparse.csr_matrix((np.ones(len(rows)), (rows, place)))  # (subsystems, constraints used)
        weight = self.constraints.weight[used]
        self.packing = _best_packing(M, weight)
        proven = [self.lower_bound, float(self.packing.sum())]
        chosen = None
        if M.nnz <= _COVER:
            seconds = max(0.05, self.deadline - time.monotonic())
            unit = float(weight.mean())  # the tolerances of HiGHS are absolute
            answer = milp(
                weight / unit,
                constraints=LinearConstraint(M, lb=1.0),
                integrality=np.ones(len(used)),
                bounds=Bounds(0.0, 1.0),
                options={"time_limit": seconds, "mip_rel_gap": 0.0},
            )
            if answer.mip_dual_bound is not None and np.isfinite(answer.mip_dual_bound):
                proven.append(unit * float(answer.mip_dual_bound))
            chosen = None if answer.x is None else answer.x > 0.5
        self.lower_bound = self._rounded_up(max(proven))
        self.cover = np.zeros(self.constraints.n, dtype=bool)
        self.cover[used[_greedy_cover(M, weight) if chosen is None else chosen]] = True

    def _rounded_up(self, bound: float) -> float:
        """Every cost is a multiple of the grid, so a bound between two multiples proves the larger.

        First it gives up a little for the rounding of the solvers; on a fine grid that is all that happens.
        """
        steps = bound / self.grid
        return min(float(np.ceil(steps - 1e-6 - 1e-9 * steps)) * self.grid, self.cost)

    def result(self) -> Certified:
        packing = self.packing
        if len(packing) < len(self.subsystems):
            packing = np.concatenate([packing, np.zeros(len(self.subsystems) - len(packing))])
        return Certified(
            lower_bound=self.lower_bound,
            packing_bound=float(packing.sum()),
            A=self.A,
            cost=self.cost,
            subsystems=tuple(replace(s, constraints=self.number[s.constraints]) for s in self.subsystems),
            packing=packing,
            proof=Proof.OPTIMAL if self.optimal else Proof.BOUNDED,
            seconds=time.monotonic() - self.began,
        )


def _common_measure(weight: Floats) -> float:
    """A number of which every sum of these weights is a multiple: the weight, if all are equal."""
    if not len(weight) or (weight == weight[0]).all():
        return float(weight[0]) if len(weight) else 1.0
    mantissa, exponent = np.frexp(weight)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((digits & -digits).astype(np.float64))[1] - 1  # the place of the last bit that is set
    return float(np.ldexp(1.0, int((exponent - 53 + lowest).min())))


def _best_packing(M: sparse.csr_matrix, weight: Floats) -> Floats:
    """Multipliers z >= 0 of largest sum with M'z <= weight, made to hold after the LP solver's rounding."""
    answer = linprog(-np.ones(M.shape[0]), A_ub=M.T, b_ub=weight, bounds=(0, None), method="highs")
    if answer.x is None:
        return np.zeros(M.shape[0])
    z = np.maximum(answer.x, 0.0)
    excess = float(np.max((M.T @ z) / weight, initial=1.0))
    return z / excess


def _greedy_cover(M: sparse.csr_matrix, weight: Floats) -> Floats:
    """Constraints that hit every subsystem, each time the one that hits most for its weight."""
    chosen = np.zeros(M.shape[1], dtype=bool)
    open_rows = np.ones(M.shape[0])
    while open_rows.any():
        gain = (M.T @ open_rows) / weight
        best = int(np.argmax(gain))
        chosen[best] = True
        open_rows[M[:, [best]].toarray()[:, 0] > 0] = 0.0
    return chosen
