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
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lptml._limits import OutOfTime, look, until
from lptml.constraints import ConstraintSet, Floats, Ints, Source
from lptml.constraints.counting import best_multiple, violations, worst_rows
from lptml.constraints.scaling import scale_metric
from lptml.exact import Objective, Status, exact_lptml, make_objective
from lptml.exact.sdp import compile_now
from lptml.search.sampling import Sample, draw_sample, grid_position, trial_rng

_TOLERANCE = 1e-8  # of the solver: candidates are compared, not kept; a tenth of what counts as violated
_LOOSE = 1e-4  # of the metric of an infeasible sample, a candidate like any other; saves a fifth of its solve
_BATCH = (
    10  # constraints that enter at once: small first solves, as most samples show at the first that they fail
)
_ROWS = 1 << 16  # rows of a block of a pass over a sample
ROUNDS = 200  # passes over one sample; each adds constraints that were violated, so few are ever needed


@dataclass(frozen=True, eq=False)
class SearchProblem:
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

    def trial_objective(self, rng: np.random.Generator) -> Objective:
        """What a trial minimises, in original features, so that all rounds of a trial minimise the same."""
        if self.objective is not None:
            return self.objective
        r = make_objective("random", self.d, rng)
        return replace(r, matrix=scale_metric(r.matrix, self.feature_scale), original_units=True)


class Drawn(NamedTuple):
    """What chance decides about a trial."""

    trial: int
    sample: Sample
    rho: float | None  # a guess of <R, A>, for a regularised search
    rng: np.random.Generator  # the random numbers that are left


@dataclass(eq=False)
class Candidate:
    """The metric of a trial, on its way from the solution of a sample to the result of the search.

    ``solve`` gives it its metric, ``count`` its scale and cost; the leaderboard may sharpen these.
    """

    trial: int  # -1: the identity
    status: Status
    A: Floats  # (d, d), before scaling
    solves: int = 0  # basis problems solved
    active: ConstraintSet | None = None  # what carries the solution of a pending trial
    scale: float = 0.0  # the best multiple
    cost: float = np.inf  # what it violates, the penalty included; inf: there is no metric
    rate: float = 0.0  # the penalty eta <R, A>, before scaling
    looked: int = 0  # constraints whose values were computed to count
    masks: list[NDArray[np.uint8]] = field(default_factory=list)  # violations on the rows of each level
    exact: bool = False  # in a result: whether the cost is counted over all constraints

    @property
    def metric(self) -> Floats:
        """A at its best scale."""
        return self.scale * self.A

    @property
    def penalty(self) -> float:
        return self.scale * self.rate

    @property
    def violated(self) -> float:
        """The weight of the violated constraints: the cost without the penalty."""
        return self.cost - self.penalty

    @property
    def level(self) -> int:
        """The level of the sequential test that it has been counted on."""
        return max(0, len(self.masks) - 1)


def by_cost(candidate: Candidate) -> tuple[float, int]:
    """The order of candidates: cheapest first; ties go to the lowest trial."""
    return candidate.cost, candidate.trial


@dataclass(frozen=True, eq=False)
class Unit:
    """Consecutive trials: the task that an engine maps.

    ``samples`` holds the head of each trial's sample when the source is partitioned; with a source in memory
    it is None and the worker takes the rows.
    """

    first: int
    count: int
    samples: tuple[ConstraintSet, ...] | None = None


@dataclass(frozen=True, eq=False)
class UnitResult:
    """The candidates of a unit's trials, in their order."""

    first: int
    candidates: tuple[Candidate, ...]
    seconds: float

    @property
    def count(self) -> int:
        return len(self.candidates)


@functools.cache
def compile_trial(solver: str) -> None:
    """Compile what a trial runs, or load it from disk, so that no clock that starts later counts it."""
    if solver == "numba":
        compile_now()
    Sample(n=2, size=1, key=0).head(1)
    one = ConstraintSet.from_differences([[1.0]], [-1], bounds=(1.0, 1.0))
    best_multiple(one, np.eye(1))


def run_unit(problem: SearchProblem, unit: Unit, stop: threading.Event | None = None) -> UnitResult:
    """Run the trials of a unit; ``stop`` abandons it (the result is then cut short)."""
    began = time.perf_counter()
    candidates: list[Candidate] = []
    with until(None, stop), suppress(OutOfTime):
        for k in range(unit.count):
            look()
            drawn = draw(problem, unit.first + k)
            solved = solve(problem, drawn, None if unit.samples is None else unit.samples[k])
            candidates.append(count(problem, solved))
    return UnitResult(unit.first, tuple(candidates), time.perf_counter() - began)


def draw(problem: SearchProblem, trial: int) -> Drawn:
    """A place on the grid, and a sample that holds each constraint with the probability p of that place."""
    rng = trial_rng(problem.entropy, trial)
    place = grid_position(trial, problem.grid_size)
    p = float(problem.levels[place % len(problem.levels)])
    rho = None if problem.guesses is None else float(problem.guesses[place // len(problem.levels)])
    return Drawn(trial, draw_sample(problem.n, p, rng), rho, rng)


def solve(problem: SearchProblem, drawn: Drawn, head: ConstraintSet | None = None) -> Candidate:
    """Exact-LPTML on a sample; with a partitioned source (``head`` given) a trial may be left pending."""
    trial, sample, _, rng = drawn
    if sample.size == 0:
        return Candidate(trial, Status.EMPTY, np.zeros((problem.d, problem.d)))
    source = problem.source
    if head is None:
        assert source is not None, "a problem without a source needs the samples of its units"
        head = source.take(sample.head(problem.head))
    whole = head.n == sample.size
    solved = _solve_rows(problem, drawn, head, problem.trial_objective(rng), rng, goes_on=not whole)
    if whole or solved.status is not Status.OPTIMAL:
        return solved
    if source is None:
        return replace(solved, status=Status.PENDING)

    def worst(A: Floats) -> ConstraintSet:
        return source.take(worst_of_sample(source, A, sample, more_rows(problem)))

    return resume_trial(problem, solved, worst)


def resume_trial(
    problem: SearchProblem, solved: Candidate, worst: Callable[[Floats], ConstraintSet]
) -> Candidate:
    """Add the worst violators of the rest of a sample until there are none, or no metric is left."""
    for step in range(ROUNDS):
        solved, done = extend_trial(problem, step, solved, worst(solved.A))
        if done:
            return solved
    return Candidate(solved.trial, Status.FAILED, solved.A, solved.solves)


def extend_trial(
    problem: SearchProblem, step: int, solved: Candidate, more: ConstraintSet
) -> tuple[Candidate, bool]:
    """One round of a trial whose sample goes on: the candidate, and whether the trial has ended."""
    if more.n == 0:
        return Candidate(solved.trial, Status.OPTIMAL, solved.A, solved.solves), True
    assert solved.active is not None
    drawn = draw(problem, solved.trial)
    objective = problem.trial_objective(drawn.rng)
    rng = trial_rng(problem.entropy, solved.trial, step)
    active = join(solved.active, more)  # grows: what was left out for being slack would come back
    again = _solve_rows(problem, drawn, active, objective, rng)
    done = again.status is not Status.OPTIMAL
    return replace(again, solves=solved.solves + again.solves, active=None if done else active), done


def more_rows(problem: SearchProblem) -> int:
    """How many violators of the rest of a sample a round adds."""
    return max(20, problem.d * (problem.d + 1) // 2)


def _solve_rows(
    problem: SearchProblem,
    drawn: Drawn,
    constraints: ConstraintSet,
    objective: Objective,
    rng: np.random.Generator,
    goes_on: bool = False,
) -> Candidate:
    """Solve constraints exactly; with what carries a feasible solution where the trial ``goes_on``."""
    result = exact_lptml(
        constraints,
        objective,
        rng=rng,
        strategy=problem.strategy,
        solver=problem.solver,
        regularizer=problem.regularizer,
        rho=drawn.rho,
        minimal=False,
        batch=_BATCH,
        tol=_TOLERANCE,
        loose=_LOOSE,
    )
    A = np.zeros((problem.d, problem.d)) if result.status is Status.FAILED else result.A
    active = constraints.take(result.basis) if goes_on and result.status is Status.OPTIMAL else None
    return Candidate(drawn.trial, result.status, A, result.counts.solves, active)


def identity(problem: SearchProblem) -> Candidate:
    """The candidate that needs no trial; its limits in scale are the two trivial metrics."""
    return count(problem, Candidate(-1, Status.OPTIMAL, np.eye(problem.d)))


def count(problem: SearchProblem, candidate: Candidate) -> Candidate:
    """Find the best multiple of a candidate on the scored constraints, and what it costs."""
    if candidate.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return candidate
    A, scored = candidate.A, problem.scored
    rate = problem.penalty(A)
    share = scored.n / problem.n
    best = best_multiple(scored, A, rate * share)
    cost, looked = best.cost / share, scored.n
    if problem.exact_counts and problem.source is not None:
        cost = float(problem.source.cost(best.scale * A)) + best.scale * rate
        looked += problem.n
    masks = [violations(scored, best.scale * A)] if problem.paired_counts else []
    return replace(candidate, scale=best.scale, cost=cost, rate=rate, looked=looked, masks=masks, active=None)


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
