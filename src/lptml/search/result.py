"""What a search returns, and the last steps towards it: exact costs and the exact scale of the winner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from lptml.constraints import Floats, Ints, Source
from lptml.constraints.counting import exact_multiple
from lptml.exact import Status
from lptml.search.driver import Run, cost_of
from lptml.search.engine import PartitionedSource
from lptml.search.guarantees import achieved_confidence
from lptml.search.sampling import grid_position
from lptml.search.setup import Prepared
from lptml.search.trial import Candidate, by_cost

_FINALISTS = 3  # candidates whose cost is counted over all constraints after approximate counting
_QUICK = 4 * 10**6  # numbers that can still be read in the time left after Ctrl-C


class SearchStatus(Enum):
    """Why a search ended."""

    COMPLETED = "all trials were run"
    OPTIMAL = "a metric that violates nothing was found"
    TARGET_REACHED = "target_cost was reached"
    TIME_LIMIT = "time_limit was reached"
    STOPPED = "the callback asked to stop"
    INTERRUPTED = "interrupted by Ctrl-C"


class SearchInterruptedWarning(UserWarning):
    """The search was interrupted and returned the best metric so far."""


@dataclass(frozen=True, eq=False)
class SearchProgress:
    """What a callback is told."""

    n_trials: int
    max_trials: int
    best_cost: float  # estimated, when counting is approximate
    A: Floats  # (d, d) the best metric so far
    seconds: float
    n_infeasible: int


@dataclass(frozen=True, eq=False)
class History:
    """The best cost so far: one entry whenever it improved."""

    trial: Ints
    seconds: Floats
    cost: Floats

    def after_trials(self, count: int) -> float:
        """The best cost after so many trials."""
        return self._last(np.searchsorted(self.trial, count, side="left"))

    def after_seconds(self, seconds: float) -> float:
        """The best cost after so many seconds."""
        return self._last(np.searchsorted(self.seconds, seconds, side="right"))

    def _last(self, place: Any) -> float:
        return float(self.cost[max(int(place) - 1, 0)])


@dataclass(frozen=True)
class Counted:
    """How many constraint values were computed to count violations, and how many full counting takes."""

    looked: int
    full: int

    @property
    def share(self) -> float:
        return self.looked / max(1, self.full)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    A : array of shape (d, d)
        The best metric.
    cost : float
        The total weight that it violates, exactly over all constraints unless ``exact`` is False.
    penalty : float
        eta * <R, A>; 0 without a regulariser.
    trial : int
        The trial that found it; -1 for the best multiple of the identity.
    candidates : tuple of Candidate
        The best few distinct metrics, best first, ``A`` itself among them.
    history : History
    n_trials, n_feasible, n_infeasible, n_empty, n_failed : int
        Trials in all, and by how their samples turned out.
    n_solves : int
        Basis problems solved.
    counted : Counted
    confidence : float or None
        For d <= 3: with at least this probability a better metric would have been found, had there been
        one. None where that cannot be said, which above d = 3 is always: there stopping is a heuristic.
    status : SearchStatus
    exact : bool
    seconds : float
    entropy : int
        The seed that repeats this search.
    """

    A: Floats
    cost: float
    penalty: float
    trial: int
    candidates: tuple[Candidate, ...]
    history: History
    n_trials: int
    n_feasible: int
    n_infeasible: int
    n_empty: int
    n_failed: int
    n_solves: int
    counted: Counted
    confidence: float | None
    status: SearchStatus
    exact: bool
    seconds: float
    entropy: int


def finish(
    prepared: Prepared, source: Source | PartitionedSource, run: Run, status: SearchStatus
) -> SearchResult:
    """Settle what approximate counting left open, and give the winner its exact scale and cost."""
    problem, board = prepared.problem, run.board
    sampled = prepared.scoring.n < problem.n  # not all constraints are scored
    hurry = status is SearchStatus.INTERRUPTED and problem.n * problem.d > _QUICK
    known = [] if board.rows else board.finalists  # entries whose costs are exact
    if board.crowned is not None:
        known = [board.crowned]
    elif not hurry:
        if board.rows:
            board.settle(prepared.setup.n_candidates)
            board.raise_finalists()
            known = sorted(board.entries, key=by_cost)[:_FINALISTS] if sampled else board.finalists
            if sampled:
                _count_exactly(source, known, run)
        if sampled:
            _rescale(prepared, source, min(known, key=by_cost), run)
            _rescale(prepared, source, board.identity, run, counted=board.identity in known)
            known = [board.identity, *(entry for entry in known if entry is not board.identity)]
    exact = bool(known)
    best = min(known or board.finalists, key=by_cost)
    cost = best.cost - best.penalty
    if exact and not (sampled and best.rate == 0.0):
        cost = cost_of(source, best.metric)
    others = sorted((entry for entry in board.finalists if entry is not best), key=by_cost)
    return SearchResult(
        A=best.metric,
        cost=cost,
        penalty=best.penalty,
        trial=best.trial,
        candidates=tuple(
            replace(entry, exact=entry in known, masks=[])
            for entry in [best, *others][: prepared.setup.n_candidates]
        ),
        history=_history(run),
        n_trials=run.next_trial,
        n_feasible=int(run.statuses[Status.OPTIMAL]),
        n_infeasible=int(run.statuses[Status.INFEASIBLE]),
        n_empty=int(run.statuses[Status.EMPTY]),
        n_failed=int(run.statuses[Status.FAILED]),
        n_solves=run.solves,
        counted=Counted(run.looked + board.looked, problem.n * (1 + int(run.statuses[:2].sum()))),
        confidence=_confidence(prepared, run, cost) if exact else None,
        status=status,
        exact=exact,
        seconds=run.elapsed,
        entropy=problem.entropy,
    )


def _count_exactly(source: Source | PartitionedSource, entries: list[Candidate], run: Run) -> None:
    costs = source.cost(np.array([entry.metric for entry in entries]))
    for entry, cost in zip(entries, costs):
        entry.cost = float(cost) + entry.penalty
    run.looked += source.n * len(entries)


def _rescale(
    prepared: Prepared, source: Source | PartitionedSource, entry: Candidate, run: Run, counted: bool = True
) -> None:
    """The best multiple over all constraints, where it was found on the scored ones.

    Unless ``counted``, the cost so far is an estimate.
    """
    A = entry.A
    if isinstance(source, PartitionedSource):
        at_zero = source.trivial_costs()[0]
        best = exact_multiple(
            lambda scales: source.broken_weights(A, scales), prepared.scoring, A, at_zero, entry.rate
        )
    else:
        best = source.best_scale(A, entry.rate)
    run.looked += source.n
    if best.cost < entry.cost or not counted:
        entry.scale, entry.cost = best.scale, best.cost


def _history(run: Run) -> History:
    trial, seconds, cost = (np.array(column) for column in zip(*run.history))
    return History(trial.astype(np.int64), seconds.astype(np.float64), cost.astype(np.float64))


def _confidence(prepared: Prepared, run: Run, cost: float) -> float | None:
    """What ``guarantees.achieved_confidence`` says, where it says anything: few features, equal weights."""
    problem = prepared.problem
    if cost == 0:
        return 1.0
    weight = prepared.scoring.weight
    if problem.d > 3 or problem.guesses is not None or weight.min() != weight.max():
        return None
    levels = len(problem.levels)
    rounds, rest = divmod(run.next_trial, levels)  # every round of trials visits each level once
    counts = rounds + np.bincount([grid_position(trial, levels) for trial in range(rest)], minlength=levels)
    return achieved_confidence(problem.levels, counts.tolist(), problem.d, round(cost / weight[0]))
