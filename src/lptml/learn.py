"""The whole pipeline from constraints to a metric: search, refine, canonical re-solve.

    source ──> search (Algorithm 2) ──> candidates ──> refine ──> A ──> canonical metric and support

Every estimator learns through ``learn``, and its options are theirs. ``refine=False`` is the algorithm of the
paper alone.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable

import numpy as np

from lptml._learned import Learned
from lptml._trial import compile_trial
from lptml.anneal import Schedule, cool, truncate
from lptml.canonical import Canonical, canonical, in_memory, solved_quickly
from lptml.constraints import ConstraintSet, Floats, Source
from lptml.engines import Engine, make_engine
from lptml.engines.base import PartitionedSource
from lptml.labels import LabelledPairs
from lptml.refine import RefinementInterruptedWarning, Stop
from lptml.refine import refine as refine_metrics
from lptml.scaling import feature_scale
from lptml.search import Progress, SearchResult, SearchStatus, search

_SEARCH_SHARE = 0.5  # of a time limit, if refinement follows

_TRIALS = 100  # of a search by default
_AT_ONCE = (SearchStatus.INTERRUPTED, SearchStatus.STOPPED)  # the user wants to have it now
_STATUS = {
    Stop.FINISHED: SearchStatus.COMPLETED,
    Stop.OPTIMAL: SearchStatus.OPTIMAL,
    Stop.TIME_LIMIT: SearchStatus.TIME_LIMIT,
    Stop.STOPPED: SearchStatus.STOPPED,
    Stop.INTERRUPTED: SearchStatus.INTERRUPTED,
}


def learn(
    source: Source | PartitionedSource,
    *,
    max_trials: int | str = "auto",
    epsilon: float = 0.5,
    objective: str = "trace",
    refine: bool = True,
    regularization: float = 0.0,
    regularizer: Floats | None = None,
    n_components: int | None = None,
    initial_metric: Floats | None = None,
    approximate_counting: bool | str = "auto",
    time_limit: float | None = None,
    engine: str | Engine = "local",
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int = 0,
    callback: Callable[[float, Floats], object] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    lower_bound_seconds: float = 0.0,
) -> Learned:
    """Learn the metric that violates as little of the constraints as can be found.

    Parameters
    ----------
    source : Source
        Constraints with their bounds and weights.
    max_trials : int or "auto"
        Trials of the search (the paper's t); 0 leaves all to the refinement. "auto": 100 up to 10 features,
        then ever fewer, because the time of a trial grows with the sixth power of their number while
        refinement gains more by then; 100 in any case without refinement.
    epsilon, objective, approximate_counting, engine, n_jobs, verbose, checkpoint
        Of the search; see ``search.search``.
    refine : bool
        Refine what the search finds; False is the algorithm of the paper.
    regularization, regularizer : float, array of shape (d, d)
        eta and R of a penalty eta * <R, A>; R is the identity by default.
    n_components : int, optional
        The largest rank of the metric.
    initial_metric : array of shape (d, d), optional
        A metric to start from as well; the result never costs more.
    time_limit : float, optional
        Seconds after which the best so far is returned. Half of them go to the search.
    random_state : int, optional
        The same number gives the same metric, bit for bit, whatever ``engine`` and ``n_jobs``.
    callback : callable, optional
        Called as ``callback(cost, A)`` now and then, with the best so far; a true result stops.
    lower_bound_seconds : float
        Time to spend on a proven lower bound (``lower_bounds.certify``); 0 for none.

    Returns
    -------
    Learned

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.learn import learn
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> pairs = ConstraintSet.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.0))
    >>> learned = learn(pairs, random_state=0)
    >>> learned.violation_rate < learned.trivial_rate
    True
    """
    d = source.d
    if isinstance(max_trials, str):
        if max_trials != "auto":
            raise ValueError(f'max_trials must be a whole number or "auto", got {max_trials!r}')
        max_trials = _trials(d) if refine else _TRIALS
    if not (refine or max_trials > 0):
        raise ValueError("nothing to do: max_trials is 0 and refine is False")
    if not 0 <= regularization < np.inf:
        raise ValueError(f"regularization must be a finite number >= 0, got {regularization}")
    if n_components is not None and not 1 <= n_components <= d:
        raise ValueError(f"n_components must lie in 1..{d}, got {n_components}")
    starts = [] if initial_metric is None else [np.array(initial_metric, dtype=np.float64)]
    if starts and starts[0].shape != (d, d):
        raise ValueError(f"initial_metric must have shape ({d}, {d}), got {starts[0].shape}")
    R = np.eye(d) if regularizer is None else np.array(regularizer, dtype=np.float64)
    penalty = regularization * R if regularization > 0 else None
    runner = make_engine(engine, n_jobs=n_jobs)
    move = getattr(source, "on", None)  # partitions that can be read anywhere are read where the trials run
    source = source if move is None else move(runner)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if random_state is None else random_state
    _compile_now(searching=max_trials > 0, refining=refine)
    watch = _Watch(time_limit, callback)
    found = None
    if max_trials > 0:
        found = search(
            source,
            max_trials=max_trials,
            epsilon=epsilon,
            objective=objective,
            regularizer=R if regularization > 0 else None,
            eta=regularization,
            engine=runner,
            random_state=seed,
            time_limit=watch.left(_SEARCH_SHARE if refine else 1.0),
            callback=None if callback is None else watch.of_search,
            verbose=verbose,
            checkpoint=checkpoint,
            approximate_counting=approximate_counting,
        )
        starts += [candidate.A for candidate in found.candidates]
        if found.status in _AT_ONCE:
            refine = False
    if refine:
        refined = refine_metrics(
            source,
            starts,
            rank=n_components,
            penalty=penalty,
            random_state=seed,
            time_limit=watch.left(1.0),
            callback=watch.of_refinement,
        )
        A, candidates, status = refined.A, refined.candidates, _STATUS[refined.stop]
        cost = refined.cost - _penalty(penalty, A)
        if found is not None and status is SearchStatus.COMPLETED:
            status = found.status  # a search cut short says so
    else:
        assert found is not None, "without refinement there was a search"
        candidates = _ranked(source, starts, n_components, penalty)
        A, status = candidates[0], found.status
        cost = _in_full(source, A)
    return _conclude(
        source, A, cost, penalty, candidates, status, found, watch, n_components, lower_bound_seconds, seed
    )


@functools.cache
def _compile_now(*, searching: bool, refining: bool) -> None:
    """Compile what learning runs, or load it from disk, on the smallest problems: no clock is to count it."""
    if searching:
        compile_trial("numba")
    if refining:
        pairs = LabelledPairs.from_labels(np.eye(3), [0, 0, 1], bounds=(1.0, 1.0))
        stored = in_memory(pairs)
        for source in (pairs, stored):
            cool(source, stored, np.eye(3), Schedule(steps=1), rng=np.random.default_rng(0))


def _trials(d: int) -> int:
    """Trials that take about as long as 100 do at 10 features: a quarter of a second."""
    return min(_TRIALS, int(_TRIALS * (10 / d) ** 6))


class _Watch:
    """The clock, the user's callback and the history of the best cost over both stages."""

    def __init__(self, time_limit: float | None, callback: Callable[[float, Floats], object] | None) -> None:
        self.began = time.monotonic()
        self.time_limit = time_limit
        self.callback = callback
        self.history: list[tuple[float, float]] = []

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def left(self, share: float) -> float | None:
        """The seconds that a stage may take: this share of those that are left, if they are limited."""
        return None if self.time_limit is None else share * max(0.0, self.time_limit - self.elapsed)

    def _note(self, cost: float) -> None:
        if not self.history or cost < self.history[-1][1]:
            self.history.append((self.elapsed, cost))

    def of_search(self, progress: Progress) -> object:
        return False if self.callback is None else self.callback(progress.best_cost, progress.A)

    def of_refinement(self, cost: float, A: Floats) -> object:
        self._note(cost)
        return False if self.callback is None else self.callback(cost, A)

    def whole_history(self, found: SearchResult | None, cost: float) -> tuple[tuple[float, float, int], ...]:
        """Improvements of the search, then those of the refinement that were better still."""
        path: list[tuple[float, float, int]] = []
        trials = 0
        if found is not None:
            h, trials = found.history, found.n_trials
            path = list(zip(h.seconds.tolist(), h.cost.tolist(), (h.trial + 1).tolist()))
        for seconds, value in [*self.history, (self.elapsed, cost)]:
            if not path or value < path[-1][1]:
                path.append((seconds, value, trials))
        return tuple(path)


def _penalty(penalty: Floats | None, A: Floats) -> float:
    return 0.0 if penalty is None else float(np.vdot(penalty, A))


def _in_full(source: Source | PartitionedSource, A: Floats) -> float:
    return float(np.asarray(source.cost(A[None]))[0])


def _ranked(
    source: Source | PartitionedSource, metrics: list[Floats], rank: int | None, penalty: Floats | None
) -> tuple[Floats, ...]:
    """Metrics by what they cost, cut down to a rank first."""
    if rank is not None:
        scale = feature_scale(_some(source))
        metrics = [truncate(A, rank, scale) for A in metrics]
    costs = np.asarray(source.cost(np.stack(metrics)))
    if penalty is not None:
        costs = costs + np.array([np.vdot(penalty, A) for A in metrics])
    return tuple(metrics[i] for i in np.argsort(costs, kind="stable")[:5])


def _some(source: Source | PartitionedSource) -> ConstraintSet:
    """The first constraints, for the sizes of features."""
    index = np.arange(min(source.n, 20_000))
    return source.take_batch([index])[0] if isinstance(source, PartitionedSource) else source.take(index)


def _canonical(source: Source, A: Floats, seed: int) -> Canonical | None:
    try:
        return canonical(source, A, seed)
    except KeyboardInterrupt:  # what was learned so far is not lost with it
        message = "interrupted while the support constraints were solved for; they are left out"
        warnings.warn(message, RefinementInterruptedWarning, stacklevel=4)
        return None


def _conclude(
    source: Source | PartitionedSource,
    A: Floats,
    cost: float,
    penalty: Floats | None,
    candidates: tuple[Floats, ...],
    status: SearchStatus,
    found: SearchResult | None,
    watch: _Watch,
    n_components: int | None,
    lower_bound_seconds: float,
    seed: int,
) -> Learned:
    solved = None
    lower_bound = None
    if not isinstance(source, PartitionedSource):
        if solved_quickly(source) and status not in _AT_ONCE and watch.left(1.0) != 0.0:
            solved = _canonical(source, A, seed)
            if solved is not None and solved.cost < cost and penalty is None and n_components is None:
                A, cost = solved.A, solved.cost  # minimising the trace met a constraint more
        if lower_bound_seconds > 0:
            from lptml.lower_bounds import certify

            certified = certify(source, A, time_limit=lower_bound_seconds, random_state=seed)
            lower_bound = certified.lower_bound
            if certified.cost < cost and penalty is None and n_components is None:
                A, cost, solved = certified.A, certified.cost, None
    return Learned(
        A=A,
        cost=cost,
        penalty=_penalty(penalty, A),
        total_weight=source.total_weight,
        trivial_cost=min(source.trivial_costs()),
        canonical=None if solved is None else solved.A,
        support=np.empty(0, dtype=np.int64) if solved is None else solved.support,
        history=watch.whole_history(found, cost),
        n_trials=0 if found is None else found.n_trials,
        n_infeasible=0 if found is None else found.n_infeasible,
        status=status,
        lower_bound=lower_bound,
        candidates=candidates,
    )
