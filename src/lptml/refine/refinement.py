"""Refinement: local optimisation of the true cost (what LO-RANSAC is to RANSAC).

Sampling finds a metric that satisfies a small sample exactly; as soon as d or the share of bad
constraints grows, that metric is hardly better than a trivial one. Refinement takes the best candidates
and some good metrics that need no search (identity, standardised, whitened, whitened within similar
pairs), and

1. anneals the smoothed cost from each of them (``anneal``);
2. reheats the best result a few times, keeping what costs less;
3. follows exact line searches (``polish``), or searches everything when there are two or three features and
   few constraints;
4. solves exactly on the constraints that the winner satisfies, a feasible set by construction, for its
   canonical metric and its support constraints (``canonical``).

No step is accepted unless it costs less, so the result never costs more than any start, nor than the best
multiple of the identity with its limits, the two trivial metrics.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lptml.constraints import Floats, Source
from lptml.constraints.counting import best_multiple
from lptml.constraints.scaling import feature_scale, representative, truncate
from lptml.refine.anneal import Schedule, cool
from lptml.refine.canonical import in_memory
from lptml.refine.polish import enumerate_metrics, is_enumerable, polish
from lptml.refine.starts import default_starts, rank_one_starts
from lptml.search.engine import PartitionedSource
from lptml.search.remote import Remote, nearby
from lptml.search.result import SearchStatus

#: Up to this many multiplications (n d^2) a count is exact throughout; above it only for the finalists.
_EXACT_WORK = 2e9
_JUDGES = 20_000_000  # entries (n d) of the sample that stands for a larger source in comparisons
_POLISHED = 20_000  # constraints up to which the line searches pay
_FINALISTS = 2  # of a large source, counted exactly
_ANNEALED_STARTS = 3


class RefinementInterruptedWarning(UserWarning):
    """The refinement was interrupted and returned the best metric so far."""


@dataclass(frozen=True)
class Improvement:
    """The cost after an improvement; on large sources estimated from a sample."""

    seconds: float
    cost: float


@dataclass(frozen=True, eq=False)
class Refined:
    """The outcome of a refinement.

    Attributes
    ----------
    A : array of shape (d, d)
        The best metric.
    cost : float
        The weight that A violates, counted exactly over all constraints, plus its penalty.
    start_cost : float
        The least cost among the given starts; infinite without any.
    history : tuple of Improvement
    candidates : tuple of arrays of shape (d, d)
        The best metrics that were met, cheapest first.
    status : SearchStatus
    """

    A: Floats
    cost: float
    start_cost: float
    history: tuple[Improvement, ...]
    candidates: tuple[Floats, ...]
    status: SearchStatus


def refine(
    source: Source | PartitionedSource,
    starts: Sequence[Floats] = (),
    *,
    n_starts: int = 4,
    n_hops: int = 4,
    steps: int = Schedule.steps,
    rank: int | None = None,
    penalty: Floats | None = None,
    random_state: int | np.random.Generator | None = 0,
    time_limit: float | None = None,
    callback: Callable[[float, Floats], object] | None = None,
) -> Refined:
    """The cheapest metric that local optimisation finds from the given and the default starts.

    Parameters
    ----------
    source : Source
        Constraints.
    starts : sequence of arrays of shape (d, d)
        Candidates, best first, for instance of a search. All of them are compared with the result; the first
        three are annealed.
    n_starts : int
        How many of ``default_starts`` to anneal as well.
    n_hops : int
        Reheatings of the best result.
    steps : int
        Gradient steps an annealing; reheatings take half.
    rank : int, optional
        The largest rank of the result. Starts of higher rank are cut down to it first.
    penalty : array of shape (d, d), optional
        P of a linear term <P, A> added to the cost (a regulariser times its factor), positive semidefinite.
    random_state : int, Generator or None
        The same number gives the same metric, bit for bit.
    time_limit : float, optional
        Seconds after which the best so far is returned.
    callback : callable, optional
        Called as ``callback(cost, A)`` after each improvement; a true result stops.

    Returns
    -------
    Refined

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet, LabelledPairs
    >>> from lptml.refine import refine
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> pairs = LabelledPairs.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.0))
    >>> refine(pairs).cost < pairs.best_identity().cost
    True
    """
    if rank is not None and not 1 <= rank <= source.d:
        raise ValueError(f"rank must lie in 1..{source.d}, got {rank}")
    for A in starts:
        if A.shape != (source.d, source.d):
            raise ValueError(f"starts must have shape ({source.d}, {source.d}), got {A.shape}")
    if source.n < 1:
        raise ValueError("there are no constraints to refine on")
    near = nearby(source)
    run = _Run(near, rank, penalty, np.random.default_rng(random_state), time_limit, callback)
    status = SearchStatus.COMPLETED
    try:
        run.begin(starts)
        if run.enumerable:  # everything is searched in the end: one annealing, for a metric inside its cell
            n_starts, n_hops, starts, steps = min(n_starts, 1), 0, (), steps // 2
        elif run.judge is not near:  # minibatches: every start ends alike
            n_starts, n_hops = min(n_starts, 2), min(n_hops, 1)
        run.anneal_all(starts, n_starts, max(1, steps))
        run.hop(n_hops, max(1, steps // 2))
        run.finish()
    except _Ended as ended:
        status = ended.status
    except KeyboardInterrupt:
        status = SearchStatus.INTERRUPTED
        message = "refinement interrupted; returning the best metric so far"
        warnings.warn(message, RefinementInterruptedWarning, stacklevel=2)
    return run.result(status)


class _Ended(Exception):
    """Nothing is left to do, or no time to do it."""

    def __init__(self, status: SearchStatus) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass(frozen=True, eq=False)
class _Entry:
    cost: float  # by the judge
    order: int
    A: Floats
    given: bool = False

    @property
    def rank(self) -> tuple[float, int]:
        return self.cost, self.order


class _Run:
    """One refinement: the metrics met so far, and what the steps share."""

    def __init__(
        self,
        source: Source,
        rank: int | None,
        penalty: Floats | None,
        rng: np.random.Generator,
        time_limit: float | None,
        callback: Callable[[float, Floats], object] | None,
    ) -> None:
        self.source = source
        self.rank = rank
        self.penalty = penalty
        self.rng = rng
        self.callback = callback
        self.began = time.monotonic()
        self.deadline = None if time_limit is None else self.began + time_limit
        self.sample = representative(source, rng)
        self.scale = feature_scale(self.sample)
        exact = source.n * float(source.d) ** 2 <= _EXACT_WORK and not isinstance(source, Remote)
        # Judging by a sample keeps a large source to the few exact counts of the finalists.
        self.judge: Source = (
            source if exact else representative(source, rng, max(20_000, _JUDGES // source.d))
        )
        self.enumerable = rank is None and penalty is None and is_enumerable(source)
        self.defaults: list[Floats] = []
        self.met: list[_Entry] = []
        self.history: list[Improvement] = []

    @property
    def best(self) -> _Entry:
        return min(self.met, key=lambda entry: entry.rank)

    def _cost(self, source: Source, A: Floats) -> float:
        cost = float(source.cost(A))
        if source is not self.source:
            cost *= self.source.total_weight / source.total_weight
        return cost if self.penalty is None else cost + float(np.vdot(self.penalty, A))

    def _add(self, A: Floats, given: bool = False) -> None:
        entry = _Entry(self._cost(self.judge, A), len(self.met), A, given)
        improved = not self.met or entry.cost < self.best.cost
        self.met.append(entry)
        if improved:
            self.history.append(Improvement(time.monotonic() - self.began, entry.cost))
            if self.callback is not None and self.callback(entry.cost, A):
                raise _Ended(SearchStatus.STOPPED)

    def check(self) -> None:
        """End the run if nothing is left to gain or no time to gain it."""
        if self.best.cost <= 0.0:
            raise _Ended(SearchStatus.OPTIMAL)
        self._check_clock()

    def _check_clock(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise _Ended(SearchStatus.TIME_LIMIT)

    def begin(self, starts: Sequence[Floats]) -> None:
        """The trivial metric, the starts as they are given, and the default ones at their best scale."""
        d = self.source.d
        self._add(np.zeros((d, d)))
        for A in starts:
            if self.met[1:]:  # one of them is compared in any case
                self._check_clock()
            self._add(truncate(A, self.rank, self.scale) if self.rank else A, given=True)
        self._check_clock()
        for A in rank_one_starts(self.sample):
            self._check_clock()
            self._offer(A)
        self.defaults = default_starts(self.sample)
        for A in self.defaults:
            self._check_clock()
            self._offer(truncate(A, self.rank, self.scale) if self.rank else A)

    def _offer(self, A: Floats) -> None:
        """Take a metric into account at its best scale."""
        if self.penalty is None:
            scale = self.judge.best_scale(A).scale
        else:
            share = self.sample.total_weight / self.source.total_weight
            scale = best_multiple(self.sample, A, share * float(np.vdot(self.penalty, A))).scale
        self._add(scale * A if scale > 0 and np.isfinite(scale) else A)

    def anneal_all(self, starts: Sequence[Floats], n_starts: int, steps: int) -> None:
        for A in self.defaults[:n_starts]:
            self._anneal(A, Schedule(steps))
        for A in starts[:_ANNEALED_STARTS]:
            # Warm, not hot: a hot start would forget the candidate.
            self._anneal(A, Schedule(steps, first_temperature=0.3, first_step=0.3))

    def hop(self, n_hops: int, steps: int) -> None:
        """Reheat the best metric: far, near, then anything between."""
        for i in range(n_hops):
            heat = (1.0, 0.1)[i] if i < 2 else float(np.exp(self.rng.uniform(np.log(0.05), np.log(1.5))))
            self._anneal(self.best.A, Schedule(steps, first_temperature=heat, first_step=min(0.5, heat)))

    def _anneal(self, start: Floats, schedule: Schedule) -> None:
        self.check()
        if not start.any():
            return  # A = 0 has no direction to go
        A = cool(
            self.source,
            self.sample,
            start,
            schedule,
            rank=self.rank,
            penalty=self.penalty,
            rng=self.rng,
            deadline=self.deadline,
        )
        self._offer(A)

    def finish(self) -> None:
        """Exact searches, on the constraints themselves where they are few enough."""
        self.check()
        if self.source.n > _POLISHED or self.penalty is not None:
            return
        constraints = in_memory(self.source)
        if self.enumerable:
            A = enumerate_metrics(constraints, self.best.A)
        else:
            ordered = sorted(self.met, key=lambda entry: entry.rank)
            A = polish(
                constraints,
                ordered[0].A,
                toward=tuple(entry.A for entry in ordered[1:4]),
                keep_rank=self.rank is not None,
                rng=self.rng,
                deadline=self.deadline,
            )
        self._add(A)

    def result(self, status: SearchStatus) -> Refined:
        if not self.met:
            self._add(np.zeros((self.source.d, self.source.d)))
        given = [entry for entry in self.met if entry.given]
        ordered = sorted(self.met, key=lambda entry: entry.rank)
        if self.judge is not self.source:
            # The sample's error decides who may still be the best; given metrics are compared in any case.
            error = np.sqrt(max(ordered[0].cost, 1.0) * self.source.total_weight / self.judge.n)
            close = [entry for entry in ordered if entry.cost <= ordered[0].cost + 4 * error]
            finalists = close[:_FINALISTS] + [entry for entry in given if entry not in close[:_FINALISTS]]
            counted = [replace(entry, cost=self._cost(self.source, entry.A)) for entry in finalists]
            given = [entry for entry in counted if entry.given]
            others = [entry for entry in ordered if entry not in finalists]
            ordered = sorted(counted, key=lambda entry: entry.rank) + others
        return Refined(
            A=ordered[0].A,
            cost=ordered[0].cost,
            start_cost=min((entry.cost for entry in given), default=np.inf),
            history=tuple(self.history),
            candidates=tuple(entry.A for entry in ordered[:5]),
            status=status,
        )
