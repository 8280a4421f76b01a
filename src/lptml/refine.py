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
from dataclasses import dataclass
from enum import Enum

import numpy as np

from lptml.anneal import Schedule, anneal, cool, representative, truncate
from lptml.constraints import ConstraintSet, Floats, Source
from lptml.polish import enumerate_metrics, is_enumerable, polish
from lptml.scaling import feature_scale

#: Up to this many multiplications (n d^2) a count is exact throughout; above it only for the finalists.
_EXACT_WORK = 2e9
_JUDGES = 200_000  # constraints that stand for a larger source while candidates are compared
_POLISH_ENTRIES = 4_000_000  # n d up to which the line searches pay
_FINALISTS = 2


class Stop(Enum):
    """Why a refinement ended."""

    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Refined:
    """The outcome of a refinement."""

    A: Floats
    cost: float
    """The weight that A violates, counted exactly over all constraints."""
    start_cost: float
    """The least cost among the starts."""
    history: tuple[tuple[float, float], ...]
    """(seconds, least cost) after each improvement; estimated from a sample on large sources."""
    candidates: tuple[Floats, ...]
    """The best metrics of the single annealings, cheapest first."""
    stop: Stop


def default_starts(sample: ConstraintSet) -> list[Floats]:
    """Good metrics that need no search: standardised, whitened within similar pairs, identity, whitened.

    Parameters
    ----------
    sample : ConstraintSet
        The constraints or a random sample of them.

    Returns
    -------
    list of arrays of shape (d, d), those expected to be best first.

    Examples
    --------
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.refine import default_starts
    >>> pairs = ConstraintSet.from_differences([[3.0, 0.0], [0.0, 1.0]], [+1, -1], bounds=(1.0, 1.0))
    >>> default_starts(pairs)[0].diagonal().round(3)
    array([0.222, 2.   ])
    """
    scale = feature_scale(sample)
    near = sample.V[sample.sign > 0] if sample.W is None else sample.W
    standardised = np.diag(1.0 / scale**2)
    return [standardised, _whitening(near, scale), np.eye(sample.d), _whitening(sample.V, scale)]


def _whitening(V: Floats, scale: Floats) -> Floats:
    """The inverse second moment of difference vectors, slightly shrunk where it is nearly singular."""
    d = len(scale)
    U = V / scale
    M = U.T @ U / max(1, len(U)) + 1e-6 * np.eye(d)
    A = np.linalg.inv(M) / scale[:, None] / scale
    return (A + A.T) / 2


def refine(
    source: Source,
    starts: Sequence[Floats] = (),
    *,
    n_starts: int = 4,
    n_hops: int = 4,
    steps: int = Schedule.steps,
    rank: int | None = None,
    penalty: Floats | None = None,
    random_state: int | np.random.SeedSequence | None = 0,
    time_limit: float | None = None,
    callback: Callable[[float, Floats], None] | None = None,
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
    random_state : int, SeedSequence or None
        The same number gives the same metric, bit for bit.
    time_limit : float, optional
        Seconds after which the best so far is returned.
    callback : callable, optional
        Called as ``callback(cost, A)`` after each improvement.

    Returns
    -------
    Refined

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.refine import refine
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> pairs = ConstraintSet.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.0))
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
    seed = (
        random_state
        if isinstance(random_state, np.random.SeedSequence)
        else np.random.SeedSequence(random_state)
    )
    run = _Run(source, rank, penalty, np.random.default_rng(seed), time_limit, callback)
    stop = Stop.FINISHED
    try:
        run.compare(starts)
        run.anneal_all(starts, n_starts, steps)
        run.hop(n_hops, steps // 2)
        run.finish()
    except _TimeOver:
        stop = Stop.TIME_LIMIT
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
        warnings.warn("refinement interrupted; the best metric so far is returned", stacklevel=2)
    return run.result(stop)


class _TimeOver(Exception):
    """The time limit has passed."""


class _Run:
    """One refinement: the best metric so far, and what the steps share."""

    def __init__(
        self,
        source: Source,
        rank: int | None,
        penalty: Floats | None,
        rng: np.random.Generator,
        time_limit: float | None,
        callback: Callable[[float, Floats], None] | None,
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
        exact = source.n * float(source.d) ** 2 <= _EXACT_WORK
        # Judging by a sample keeps a large source to the few exact counts of the finalists.
        self.judge: Source = source if exact else representative(source, rng, _JUDGES)
        self.found: list[tuple[float, int, Floats]] = []  # (cost by the judge, order of arrival, metric)
        self.history: list[tuple[float, float]] = []
        self.start_cost = np.inf
        zero = np.zeros((source.d, source.d))
        self._add(zero, self._cost(self.judge, zero))
        self.offer(truncate(np.eye(source.d), rank, np.ones(source.d)) if rank else np.eye(source.d))

    @property
    def best(self) -> Floats:
        return min(self.found, key=lambda entry: entry[:2])[2]

    @property
    def best_cost(self) -> float:
        return min(entry[0] for entry in self.found)

    def check_time(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise _TimeOver

    def _cost(self, source: Source, A: Floats) -> float:
        cost = float(source.cost(A)) * (self.source.total_weight / source.total_weight)
        return cost if self.penalty is None else cost + float(np.vdot(self.penalty, A))

    def _add(self, A: Floats, cost: float) -> None:
        improved = not self.found or cost < self.best_cost
        self.found.append((cost, len(self.found), A))
        if improved:
            self.history.append((time.monotonic() - self.began, cost))
            if self.callback is not None:
                self.callback(cost, A)

    def offer(self, A: Floats) -> float:
        """Take a metric into account at its best scale (as it is, when a penalty makes the scale matter)."""
        scale = self.judge.best_scale(A).scale if self.penalty is None else 1.0
        if scale > 0 and np.isfinite(scale):
            A = scale * A
        cost = self._cost(self.judge, A)
        self._add(A, cost)
        return cost

    def compare(self, starts: Sequence[Floats]) -> None:
        """The starts as they are given, so that nothing is lost by rescaling them."""
        for A in starts:
            A = truncate(A, self.rank, self.scale) if self.rank else A
            self._add(A, self._cost(self.judge, A))
        self.start_cost = self.best_cost

    def anneal_all(self, starts: Sequence[Floats], n_starts: int, steps: int) -> None:
        for A in default_starts(self.sample)[:n_starts]:
            self._anneal(A, Schedule(steps))
        for A in starts[:3]:
            # Warm, not hot: a hot start would forget the candidate.
            self._anneal(A, Schedule(steps, first_temperature=0.3, first_step=0.3))

    def hop(self, n_hops: int, steps: int) -> None:
        """Reheat the best metric, in turn far and near."""
        for i in range(n_hops):
            heat = (1.0, 0.5) if i % 2 == 0 else (0.1, 0.1)
            self._anneal(self.best, Schedule(max(1, steps), first_temperature=heat[0], first_step=heat[1]))

    def _anneal(self, start: Floats, schedule: Schedule) -> None:
        if self.best_cost <= 0.0 or not start.any():
            return
        self.check_time()
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
        self.offer(A)

    def finish(self) -> None:
        """Exact searches, on the constraints themselves where they are few enough."""
        if self.best_cost <= 0.0 or self.penalty is not None:
            return
        self.check_time()
        if self.source.n * self.source.d > _POLISH_ENTRIES:
            return
        source = self.source
        constraints = source if isinstance(source, ConstraintSet) else source.take(np.arange(source.n))
        if self.rank is None and is_enumerable(constraints):
            A = enumerate_metrics(constraints, self.best)
        else:
            ordered = [entry[2] for entry in sorted(self.found, key=lambda entry: entry[:2])]
            A = polish(
                constraints,
                ordered[0],
                toward=tuple(ordered[1:4]),
                keep_rank=self.rank is not None,
                rng=self.rng,
            )
        self._add(A, self._cost(self.judge, A))

    def result(self, stop: Stop) -> Refined:
        ordered = sorted(self.found, key=lambda entry: entry[:2])
        if self.judge is not self.source:
            finalists = ordered[:_FINALISTS]
            counted = [(self._cost(self.source, A), order, A) for _, order, A in finalists]
            ordered = sorted(counted, key=lambda entry: entry[:2]) + ordered[_FINALISTS:]
        cost, _, A = ordered[0]
        return Refined(
            A=A,
            cost=cost,
            start_cost=float(self.start_cost),
            history=tuple(self.history),
            candidates=tuple(entry[2] for entry in ordered[:5]),
            stop=stop,
        )


__all__ = ["Refined", "Stop", "anneal", "default_starts", "polish", "refine"]
