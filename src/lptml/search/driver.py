"""The moving parts of the search: units of trials out, results in, in the order of trials.

``Run`` is the state of a search between two units. All of it is written to a checkpoint, and it depends on
the trials reduced so far and on nothing else (but for the clock): a search that resumes from it ends like
one that was never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import Floats, Ints, Source
from lptml.exact import Status
from lptml.search.engine import PartitionedSource, Session
from lptml.search.leaderboard import Leaderboard
from lptml.search.trial import (
    ROUNDS,
    Candidate,
    SearchProblem,
    Unit,
    UnitResult,
    count,
    draw,
    extend_trial,
    identity,
    more_rows,
)

_FIRST_UNIT = 4  # trials, before any was timed
_BATCH_ROWS = 1 << 20  # rows of samples that one pass over a partitioned source brings


@dataclass
class Run:
    """The state of a search."""

    board: Leaderboard
    next_trial: int = 0
    statuses: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Status), dtype=np.int64))
    looked: int = 0
    solves: int = 0
    seconds: float = 0.0  # of earlier runs, when resumed
    history: list[tuple[int, float, float]] = field(default_factory=list)  # (trial, second, best cost)
    began: float = field(default_factory=time.monotonic)
    target: float = 0.0  # a cost that ends the search

    @property
    def elapsed(self) -> float:
        return self.seconds + time.monotonic() - self.began

    def start(self, problem: SearchProblem) -> None:
        """Put the best multiple of the identity on the board, so that the result is never worse."""
        first = identity(problem)
        self.board.start(first)
        self.history.append((-1, self.elapsed, first.cost))
        self.looked += first.looked

    def absorb(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Take in candidates in the order of trials; yields each one that leads when it comes."""
        for candidate in candidates:
            self.next_trial = candidate.trial + 1
            self.statuses[candidate.status] += 1
            self.looked += candidate.looked
            self.solves += candidate.solves
            if self.board.add(candidate):
                self.history.append((candidate.trial, self.elapsed, candidate.cost))
                yield candidate

    def proven_cost(self, problem: SearchProblem, source: Source | PartitionedSource) -> float:
        """The leader's cost over all constraints; counted only when its estimate may end the search."""
        leader = self.board.leader
        if not self.board.rows:
            return leader.cost
        if leader.cost > self.target:
            return np.inf
        cost = cost_of(source, leader.metric) + leader.penalty
        self.looked += problem.n
        if cost <= self.target:
            leader.cost = cost
            self.board.crowned = leader
        return cost

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, for a checkpoint."""
        own: dict[str, NDArray[Any]] = {
            "next_trial": np.array(self.next_trial),
            "statuses": self.statuses,
            "counters": np.array([self.looked, self.solves]),
            "seconds": np.array(self.elapsed),
            "history": np.array(self.history, dtype=np.float64).reshape(-1, 3),
        }
        return own | {f"board_{name}": array for name, array in self.board.state().items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """The opposite of ``state``."""
        self.next_trial = int(state["next_trial"])
        self.statuses = state["statuses"].astype(np.int64)
        self.looked, self.solves = (int(number) for number in state["counters"])
        self.seconds = float(state["seconds"])
        self.history = [(int(trial), float(second), float(cost)) for trial, second, cost in state["history"]]
        prefix = "board_"
        self.board.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})


class Pace:
    """How many trials make a unit of the length that the engine wants, from the time that trials take."""

    def __init__(self) -> None:
        self.trials = 0
        self.seconds = 0.0

    def note(self, result: UnitResult) -> None:
        # Later trials count more: the first ones wait for compilers and caches.
        self.trials = self.trials // 2 + result.count
        self.seconds = self.seconds / 2 + result.seconds

    def unit(self, session: Session, left: int) -> int:
        if not self.trials:
            return min(_FIRST_UNIT, left)
        wanted = int(session.unit_seconds * self.trials / max(self.seconds, 1e-9))
        # Towards the end units get smaller, so that no worker is left with a whole one when the others stop;
        # but not so small that handing them out takes as long as running them: an eighth instead of a quarter
        # took 15% more time on Spark.
        share = max(-(-left // (2 * session.workers)), wanted // 4)
        return max(1, min(wanted, share, left))


def units(
    problem: SearchProblem,
    source: Source | PartitionedSource,
    session: Session,
    pace: Pace,
    first: int,
    total: int,
) -> Iterator[Unit]:
    """Units of the trials ``first`` to ``total``; from partitions, samples are taken a batch a pass."""
    while first < total:
        if problem.source is not None:
            size = pace.unit(session, total - first)
            yield Unit(first, size)
            first += size
            continue
        heads: list[Ints] = []
        rows = 0
        while first + len(heads) < total and rows < _BATCH_ROWS:
            heads.append(draw(problem, first + len(heads)).sample.head(problem.head))
            rows += len(heads[-1])
        samples = cast(PartitionedSource, source).take_batch(heads)
        last = first + len(samples)
        while first < last:
            size = min(pace.unit(session, total - first), last - first)
            yield Unit(first, size, tuple(samples[:size]))
            samples = samples[size:]
            first += size


def in_order(results: Iterator[UnitResult | None], first: int) -> Iterator[UnitResult | None]:
    """Results by ascending trial number; heartbeats pass through."""
    early: dict[int, UnitResult] = {}
    for result in results:
        if result is None:
            yield None
            continue
        early[result.first] = result
        while first in early:
            ready = early.pop(first)
            first += ready.count
            yield ready


def complete(problem: SearchProblem, source: PartitionedSource, result: UnitResult) -> UnitResult:
    """Finish what a unit left to the driver: pending trials, and exact counts when these were asked for."""
    candidates = list(result.candidates)
    pending = [k for k, candidate in enumerate(candidates) if candidate.status is Status.PENDING]
    for step in range(ROUNDS):
        if not pending:
            break
        requests = [(candidates[k].A, draw(problem, candidates[k].trial).sample) for k in pending]
        found = source.worst(requests, more_rows(problem))
        still = []
        for k, (_, rows) in zip(pending, found):
            candidates[k], done = extend_trial(problem, step, candidates[k], rows)
            if done:
                candidates[k] = count(problem, candidates[k])
            else:
                still.append(k)
        pending = still
    for k in pending:
        candidates[k] = replace(candidates[k], status=Status.FAILED, active=None)
    if problem.exact_counts:
        counted = [candidate for candidate in candidates if np.isfinite(candidate.cost)]
        if counted:
            costs = source.cost(np.array([candidate.metric for candidate in counted]))
            for candidate, cost in zip(counted, costs.tolist()):
                candidate.cost = cost + problem.penalty(candidate.metric)
                candidate.looked += problem.n
    return UnitResult(result.first, tuple(candidates), result.seconds)


def cost_of(source: Source | PartitionedSource, A: Floats) -> float:
    """The cost of one metric over all constraints."""
    return float(source.cost(A[None])[0])
