"""One trial of Algorithm 2: sample, solve exactly, find the best multiple, count.

A sample may be as large as all constraints. Its head, the first members in the sample's random order, is
solved first. When the head is infeasible, so is the sample, and the head's certificate proves it: that ends
nearly every trial with a large sample. When the head is feasible and the sample goes on, the worst
violators of the rest are added and the problem solved again until none is left or it turns infeasible. This
is Algorithm 1 with several violated constraints a round; a round is one pass over the sample, and no sample
is ever stored.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import ConstraintSet, Floats, Ints, Source
from lptml.counting import best_multiple, violations, worst_rows
from lptml.engines.base import Pending, Unit, UnitResult
from lptml.exact import Objective, exact_lptml, make_objective
from lptml.sampling import Sample, draw_sample, grid_position, trial_rng
from lptml.scaling import scale_metric
from lptml.sdp import Status, compile_now

_TOLERANCE = 1e-8  # of the solver: candidates are compared, not kept; a tenth of what counts as violated
_LOOSE = 1e-4  # of the metric of an infeasible sample, a candidate like any other; saves a fifth of its solve
_BATCH = (
    10  # constraints that enter at once: small first solves, as most samples show at the first that they fail
)
_ROWS = 1 << 16  # rows of a block of a pass over a sample
_ROUNDS = 200  # passes over one sample; each adds constraints that were violated, so few are ever needed


class TrialStatus(IntEnum):
    """How a trial ended."""

    FEASIBLE = 0  #: its metric satisfies the whole sample
    INFEASIBLE = 1  #: no metric does; the candidate is the elastic minimiser
    EMPTY = 2  #: the sample held no constraint
    FAILED = 3  #: no verified solution; there is no candidate
    PENDING = 4  #: its head is feasible, the rest of the sample lies on partitions


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a worker needs to run any trial."""

    n: int
    d: int
    entropy: int
    levels: Floats  # (levels,) the grid of probabilities
    objective: Objective | None  # None: a random direction for every trial, in features of this scale
    feature_scale: Floats  # (d,)
    strategy: str
    solver: str
    scored: ConstraintSet  # the constraints that give a candidate its scale and first count
    head: int  # constraints of a sample that are solved before the rest is looked at
    exact_counts: bool  # count each candidate over all constraints, not just the scored ones
    paired_counts: bool  # return which scored constraints a candidate violates
    regularizer: Floats | None = None  # (d, d)
    eta: float = 0.0
    guesses: Floats | None = None  # (guesses,) of <R, A>, for a regularised search
    source: Source | None = None  # None: partitioned, samples come with the units

    @property
    def grid_size(self) -> int:
        """Places of the grid: probabilities, times guesses of <R, A>."""
        return len(self.levels) * (1 if self.guesses is None else len(self.guesses))

    def penalty(self, A: Floats) -> float:
        """eta * <R, A>."""
        return 0.0 if self.regularizer is None else self.eta * float(np.sum(self.regularizer * A))

    def sample(self, trial: int) -> Sample:
        """The sample of a trial."""
        return self.plan(trial)[0]

    def plan(self, trial: int) -> tuple[Sample, float | None, np.random.Generator]:
        """Sample, guess of <R, A> and remaining random numbers of a trial."""
        rng = trial_rng(self.entropy, trial)
        place = grid_position(trial, self.grid_size)
        p = float(self.levels[place % len(self.levels)])
        rho = None if self.guesses is None else float(self.guesses[place // len(self.levels)])
        return draw_sample(self.n, p, rng), rho, rng

    def trial_objective(self, rng: np.random.Generator) -> Objective:
        """What a trial minimises, in original features, so that all rounds of a trial minimise the same."""
        if self.objective is not None:
            return self.objective
        r = make_objective("random", self.d, rng)
        return replace(r, matrix=scale_metric(r.matrix, self.feature_scale), original_units=True)


_OUTCOMES = {
    Status.OPTIMAL: TrialStatus.FEASIBLE,
    Status.INFEASIBLE: TrialStatus.INFEASIBLE,
    Status.FAILED: TrialStatus.FAILED,
}


@dataclass(frozen=True, eq=False)
class Candidate:
    """The metric of a trial, before scaling."""

    status: TrialStatus
    A: Floats
    solves: int
    active: ConstraintSet | None = None  # of a pending trial


@functools.cache
def compile_trial(solver: str) -> None:
    """Compile what a trial runs, or load it from disk, so that no clock that starts later counts it."""
    if solver == "numba":
        compile_now()
    Sample(n=2, size=1, key=0).head(1)
    one = ConstraintSet.from_differences([[1.0]], [-1], bounds=(1.0, 1.0))
    best_multiple(one, np.eye(1))


def run_unit(problem: Problem, unit: Unit, stop: threading.Event | None = None) -> UnitResult:
    """Run the trials of a unit; ``stop`` abandons it between two trials (the result is then cut short)."""
    began = time.perf_counter()
    rows: list[tuple[int, Floats, float, float, NDArray[np.uint8], int, int]] = []
    pending = []
    for k in range(unit.count):
        if stop is not None and stop.is_set():
            break
        trial = unit.first + k
        candidate = run_trial(problem, trial, None if unit.samples is None else unit.samples[k])
        if candidate.status is TrialStatus.PENDING and candidate.active is not None:
            pending.append(Pending(trial, candidate.A, candidate.active))
        rows.append(score(problem, candidate))
    d, width = problem.d, _mask_bytes(problem)
    return UnitResult(
        first=unit.first,
        status=np.array([row[0] for row in rows], dtype=np.int8),
        A=np.array([row[1] for row in rows]).reshape(len(rows), d, d),
        scale=np.array([row[2] for row in rows]),
        cost=np.array([row[3] for row in rows]),
        violated=np.array([row[4] for row in rows], dtype=np.uint8).reshape(len(rows), width),
        looked=np.array([row[5] for row in rows], dtype=np.int64),
        solves=np.array([row[6] for row in rows], dtype=np.int64),
        seconds=time.perf_counter() - began,
        pending=tuple(pending),
    )


def run_trial(problem: Problem, trial: int, head: ConstraintSet | None = None) -> Candidate:
    """Sample and solve; with a partitioned source (``head`` given) a trial may be left pending."""
    sample, rho, rng = problem.plan(trial)
    if sample.size == 0:
        return Candidate(TrialStatus.EMPTY, np.zeros((problem.d, problem.d)), 0)
    source = problem.source
    if head is None:
        assert source is not None, "a problem without a source needs the samples of its units"
        head = source.take(sample.head(problem.head))
    whole = head.n == sample.size
    solved = _solve(problem, head, problem.trial_objective(rng), rho, rng, goes_on=not whole)
    if whole or solved.status is not TrialStatus.FEASIBLE:
        return solved
    if source is None:
        return Candidate(TrialStatus.PENDING, solved.A, solved.solves, solved.active)

    def worst(A: Floats) -> ConstraintSet:
        return source.take(worst_of_sample(source, A, sample, more_rows(problem)))

    return resume_trial(problem, trial, solved, worst)


def resume_trial(
    problem: Problem, trial: int, solved: Candidate, worst: Callable[[Floats], ConstraintSet]
) -> Candidate:
    """Add the worst violators of the rest of a sample until there are none, or no metric is left."""
    for step in range(_ROUNDS):
        solved, done = extend_trial(problem, trial, step, solved, worst(solved.A))
        if done:
            return solved
    return Candidate(TrialStatus.FAILED, solved.A, solved.solves)


def extend_trial(
    problem: Problem, trial: int, step: int, solved: Candidate, more: ConstraintSet
) -> tuple[Candidate, bool]:
    """One round of a trial whose sample goes on: the candidate, and whether the trial has ended."""
    if more.n == 0:
        return Candidate(TrialStatus.FEASIBLE, solved.A, solved.solves), True
    assert solved.active is not None
    _, rho, rng = problem.plan(trial)
    objective = problem.trial_objective(rng)
    active = join(solved.active, more)
    again = _solve(problem, active, objective, rho, trial_rng(problem.entropy, trial, step))
    solves = solved.solves + again.solves
    if again.status is not TrialStatus.FEASIBLE:
        return Candidate(again.status, again.A, solves), True
    return Candidate(again.status, again.A, solves, active), False


def more_rows(problem: Problem) -> int:
    """How many violators of the rest of a sample a round adds."""
    return max(20, problem.d * (problem.d + 1) // 2)


def _solve(
    problem: Problem,
    constraints: ConstraintSet,
    objective: Objective,
    rho: float | None,
    rng: np.random.Generator,
    goes_on: bool = True,
) -> Candidate:
    """Solve constraints exactly; with what carries a feasible solution where the trial ``goes_on``."""
    result = exact_lptml(
        constraints,
        objective,
        rng=rng,
        strategy=problem.strategy,
        solver=problem.solver,
        regularizer=problem.regularizer,
        rho=rho,
        minimal=False,
        batch=_BATCH,
        tol=_TOLERANCE,
        loose=_LOOSE,
    )
    status = _OUTCOMES[result.status]
    solves = result.counts.solves
    if status is TrialStatus.FAILED:
        return Candidate(status, np.zeros((problem.d, problem.d)), solves)
    active = constraints.take(result.basis) if goes_on and status is TrialStatus.FEASIBLE else None
    return Candidate(status, result.A, solves, active)


def score(
    problem: Problem, candidate: Candidate
) -> tuple[int, Floats, float, float, NDArray[np.uint8], int, int]:
    """A candidate's row in a ``UnitResult``: its best multiple on the scored constraints, its count."""
    A, scored = candidate.A, problem.scored
    none = np.zeros(_mask_bytes(problem), dtype=np.uint8)
    if candidate.status not in (TrialStatus.FEASIBLE, TrialStatus.INFEASIBLE):
        return candidate.status, A, 0.0, np.inf, none, 0, candidate.solves
    share = scored.n / problem.n
    best = best_multiple(scored, A, problem.penalty(A) * share)
    cost, looked = best.cost / share, scored.n
    if problem.exact_counts and problem.source is not None:
        cost = float(problem.source.cost(best.scale * A)) + best.scale * problem.penalty(A)
        looked += problem.n
    mask = violations(scored, best.scale * A) if problem.paired_counts else none
    return candidate.status, A, best.scale, cost, mask, looked, candidate.solves


def _mask_bytes(problem: Problem) -> int:
    return -(-problem.scored.n // 8) if problem.paired_counts else 0


def worst_of_sample(source: Source, A: Floats, sample: Sample, count: int) -> Ints:
    """The numbers of the constraints of a sample that A violates most, by blocks, for a source in memory."""
    worst = np.empty(0, dtype=np.int64)
    excess = np.empty(0)
    everything = sample.size > sample.n // 4  # then rows in their order are cheaper to reach than at random
    for start in range(0, sample.n if everything else sample.size, _ROWS):
        if everything:
            index = np.arange(start, min(start + _ROWS, sample.n), dtype=np.int64)
            index = index[sample.contains(index)]
        else:
            index = np.sort(sample.part(start, start + _ROWS))
        rows, by = worst_rows(source.take(index), A, count)
        worst, excess = keep_worst(np.concatenate([worst, index[rows]]), np.concatenate([excess, by]), count)
    return worst


def keep_worst(index: Ints, excess: Floats, count: int) -> tuple[Ints, Floats]:
    """The ``count`` entries of largest excess, worst first, ties to the lower number."""
    order = np.lexsort((index, -excess))[:count]
    return index[order], excess[order]


def join(*parts: ConstraintSet) -> ConstraintSet:
    """Constraint sets one after another."""
    W = [part.W for part in parts if part.W is not None]
    return ConstraintSet(
        V=np.concatenate([part.V for part in parts]),
        W=np.concatenate(W) if W else None,
        sign=np.concatenate([part.sign for part in parts]),
        bound=np.concatenate([part.bound for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
    )
