"""The whole pipeline from constraints to a metric: search, refine, shrink, canonical re-solve.

    source ──> search (Algorithm 2) ──> candidates ──> refine ──> shrink ──> A ──> canonical metric, support

Every estimator learns through ``learn``, and its options are theirs. ``refine=False`` is the algorithm of the
paper alone.

Refinement minimises a bounded loss, sum_i weight_i sigmoid(-margin_i / T), which tends to the weight of the
violated constraints as the temperature T falls to 0. At T > 0 no constraint pays more than its weight either,
but clear margins pay less than narrow ones, which averages over noise near the boundary. The pattern is that
of MM-estimation (Yohai 1987): a start of high breakdown, here the candidate that violates least, then an
efficient step from there. At T = 0 refinement goes on to the count itself, by reheating and exact line
searches (``refine``).

References
----------
Yohai, V. J. (1987). High breakdown-point and high efficiency robust estimates for regression. The Annals of
Statistics 15 (2), 642-656.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable

import numpy as np

from lptml._limits import Interrupts, OutOfTime, until
from lptml.constraints import ConstraintSet, Floats, Source, psd_factor
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.scaling import SAMPLE, blend, feature_scale, representative, truncate
from lptml.learn.learned import Learned
from lptml.learn.mixture import likeliest
from lptml.proof import certify
from lptml.refine import RefinementInterruptedWarning
from lptml.refine import refine as refine_metrics
from lptml.refine.anneal import Schedule, cool
from lptml.refine.canonical import Canonical, canonical, in_memory, solved_quickly
from lptml.refine.starts import default_starts, standardised
from lptml.search import SearchProgress, SearchResult, SearchStatus, search
from lptml.search.engine import Engine, PartitionedSource, make_engine
from lptml.search.projection import SEARCHED, leading_directions, projected
from lptml.search.remote import nearby
from lptml.search.trial import compile_trial

_HURRIED = 1000  # constraints that stand for all where there is no time to learn
_SEARCH_SHARE = 0.5  # of a time limit, if refinement follows: neither is preferred

#: At a positive temperature: steps, and the temperature of the first, in units of the largest bound. Warm, so
#: that the start is improved and not forgotten; 200 steps, or .15, end within .3 points on the 13 development
#: sets of docs/generalisation.md.
_STEPS, _WARM = 100, 0.5
_AT_ONCE = (SearchStatus.INTERRUPTED, SearchStatus.STOPPED)  # the user wants to have it now


def learn(
    source: Source | PartitionedSource,
    *,
    max_trials: int = 100,
    search_components: int | None = SEARCHED,
    epsilon: float = 0.5,
    objective: str = "trace",
    refine: bool = True,
    temperature: float = 0.0,
    prior: Floats | None = None,
    shrinkage: float = 0.0,
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
    solve_support: bool = True,
) -> Learned:
    """Learn the metric that violates as little of the constraints as can be found.

    Parameters
    ----------
    source : Source
        Constraints with their bounds and weights.
    max_trials : int
        Trials of the search (the paper's t); 0 leaves all to the refinement.
    search_components : int, optional
        Where there are more features the search looks among metrics of the leading directions under the
        prior, this many; None: in all directions. A trial takes the sixth power of their number.
    epsilon, objective, approximate_counting, engine, n_jobs, verbose, checkpoint
        Of the search; see ``search.search``.
    refine : bool
        Refine what the search finds; False is the algorithm of the paper.
    temperature : float
        T of the bounded loss, relative to the largest bound; 0 is the count. Without ``refine`` it must be 0.
    prior : array of shape (d, d), optional
        The metric that is one of the starts, that gives the search its directions, that the result is shrunk
        to, and that is returned where there are no constraints; the standardised metric by default.
    shrinkage : float in [0, 1]
        How far to move the result towards the prior, brought to the same mean squared distance; 1 is the
        prior itself.
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
        Time to spend on a proven lower bound (``lptml.proof.certify``); 0 for none.
    solve_support : bool
        Whether to solve for the canonical metric and its support, where that is quick.

    Returns
    -------
    Learned

    References
    ----------
    D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
    geometric approximation algorithms"; arXiv:1905.09989.

    V. J. Yohai, "High breakdown-point and high efficiency robust estimates for regression", Annals of
    Statistics 15, 1987 (MM-estimation).

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.learn import learn
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> pairs = LabelledPairs.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.0))
    >>> learned = learn(pairs, random_state=0)
    >>> learned.violation_rate < learned.trivial_rate
    True
    """
    d = source.d
    _check(d, max_trials, search_components, refine, temperature, shrinkage, regularization, n_components)
    starts = [] if initial_metric is None else [np.array(initial_metric, dtype=np.float64)]
    for name, matrix in (("initial_metric", initial_metric), ("prior", prior)):
        if matrix is not None and np.shape(matrix) != (d, d):
            raise ValueError(f"{name} must have shape ({d}, {d}), got {np.shape(matrix)}")
    if source.n == 0:
        if prior is None:
            raise ValueError("there are no constraints to learn from")
        return _unchallenged(np.array(prior, dtype=np.float64))
    R = np.eye(d) if regularizer is None else np.array(regularizer, dtype=np.float64)
    penalty = regularization * R if regularization > 0 else None
    runner = make_engine(engine, n_jobs=n_jobs)
    move = getattr(source, "on", None)  # partitions that can be read anywhere are read where the trials run
    source = source if move is None else move(runner)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if random_state is None else random_state
    compile_now(searching=max_trials > 0, refining=refine and temperature == 0)
    watch = _Watch(time_limit, callback)
    late = watch.left(1.0) == 0.0
    sample = representative(nearby(source), np.random.default_rng(seed), _HURRIED if late else SAMPLE)
    anchor = standardised(sample) if prior is None else np.array(prior, dtype=np.float64)
    found = None
    if max_trials > 0 and watch.left(1.0) != 0.0:
        P = None
        if search_components is not None and search_components < d:
            P = leading_directions(sample, psd_factor(anchor), search_components)
        found = search(
            source if P is None else projected(source, P),
            max_trials=max_trials,
            epsilon=epsilon,
            objective=objective,
            regularizer=None if penalty is None else R if P is None else _restricted(R, P),
            eta=regularization,
            engine=runner,
            random_state=seed,
            time_limit=watch.left(_SEARCH_SHARE if refine else 1.0),
            callback=None if callback is None else watch.of_search(P),
            verbose=verbose,
            checkpoint=checkpoint,
            approximate_counting=approximate_counting,
        )
        starts += [each.metric if P is None else P.T @ each.metric @ P for each in found.candidates]
    if prior is not None:
        starts.append(anchor)
    elif temperature > 0:  # the count's refinement brings its own
        starts += default_starts(sample)
    status = SearchStatus.COMPLETED if found is None else found.status
    if watch.left(1.0) == 0.0 and status is SearchStatus.COMPLETED:
        status = SearchStatus.TIME_LIMIT
    candidates: tuple[Floats, ...]
    if found is None and status is SearchStatus.TIME_LIMIT:  # not even for a search
        A = _at_best_scale(nearby(source), (starts or [anchor])[0], penalty)
        A = A if n_components is None else truncate(A, n_components, feature_scale(sample))
        candidates = (A,)
    elif refine and status not in _AT_ONCE:
        A, candidates, stop = _refined(
            source, sample, starts or [anchor], temperature, n_components, penalty, seed, watch
        )
        if found is None or status is SearchStatus.COMPLETED or stop is not SearchStatus.COMPLETED:
            status = stop  # a search cut short says so
    else:
        candidates = _ranked(source, starts, n_components, penalty)
        A = candidates[0]
    with Interrupts():  # a second Ctrl-C, or one in these last lines, does not lose what was learned
        if shrinkage > 0:
            A = blend(sample, A, anchor, shrinkage)
            A = A if n_components is None else truncate(A, n_components, feature_scale(sample))
            A = _at_best_scale(nearby(source), A, penalty)
        cost = _in_full(source, A)
        if status is SearchStatus.OPTIMAL and cost > 0:
            status = SearchStatus.COMPLETED  # the metric that violates nothing was left for clearer margins
        exact = temperature == 0 and shrinkage == 0 and penalty is None and n_components is None
        return _conclude(
            source,
            A,
            cost,
            penalty,
            candidates,
            status,
            found,
            watch,
            exact,
            solve_support,
            lower_bound_seconds,
            seed,
        )


def _check(
    d: int,
    max_trials: int,
    search_components: int | None,
    refine: bool,
    temperature: float,
    shrinkage: float,
    regularization: float,
    n_components: int | None,
) -> None:
    """Every ValueError of ``learn`` about numbers."""
    if not isinstance(max_trials, int | np.integer) or isinstance(max_trials, bool) or max_trials < 0:
        raise ValueError(f"max_trials must be a whole number that is not negative, got {max_trials!r}")
    if search_components is not None and search_components < 1:
        raise ValueError(f"search_components must be at least 1 or None, got {search_components!r}")
    if not (refine or max_trials > 0):
        raise ValueError("nothing to do: max_trials is 0 and refine is False")
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be a finite number >= 0, got {temperature}")
    if temperature > 0 and not refine:
        raise ValueError("temperature is the refinement's: with refine=False it must be 0")
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage must lie in [0, 1], got {shrinkage}")
    if not 0 <= regularization < np.inf:
        raise ValueError(f"regularization must be a finite number >= 0, got {regularization}")
    if n_components is not None and not 1 <= n_components <= d:
        raise ValueError(f"n_components must lie in 1..{d}, got {n_components}")


def _unchallenged(prior: Floats) -> Learned:
    """The prior, where no constraint says otherwise."""
    return Learned(
        A=prior,
        cost=0.0,
        penalty=0.0,
        total_weight=0.0,
        trivial_cost=0.0,
        canonical=None,
        support=np.empty(0, dtype=np.int64),
        history=((0.0, 0.0, 0),),
        n_trials=0,
        n_infeasible=0,
        status=SearchStatus.OPTIMAL,
        lower_bound=None,
        candidates=(prior,),
    )


def _restricted(R: Floats, P: Floats) -> Floats:
    """The penalty <R, P'BP> as one on B."""
    restricted: Floats = P @ R @ P.T
    return (restricted + restricted.T) / 2


def _refined(
    source: Source | PartitionedSource,
    sample: ConstraintSet,
    starts: list[Floats],
    temperature: float,
    rank: int | None,
    penalty: Floats | None,
    seed: int,
    watch: _Watch,
) -> tuple[Floats, tuple[Floats, ...], SearchStatus]:
    """The metric of least bounded loss near the best start; at temperature 0, of least cost."""
    if temperature == 0:
        refined = refine_metrics(
            source,
            starts,
            rank=rank,
            penalty=penalty,
            random_state=seed,
            time_limit=watch.left(1.0),
            callback=watch.of_refinement,
        )
        return refined.A, refined.candidates, refined.status
    near = nearby(source)
    scaled = [_at_best_scale(near, A, penalty) for A in starts if watch.left(1.0) != 0.0 or A is starts[0]]
    candidates = _ranked(source, scaled, rank, penalty)
    if watch.of_refinement(_in_full(source, candidates[0]), candidates[0]):
        return candidates[0], candidates, SearchStatus.STOPPED
    schedule = Schedule(_STEPS, max(_WARM, temperature), temperature)
    try:
        A = cool(
            near,
            sample,
            candidates[0],
            schedule,
            rank=rank,
            penalty=penalty,
            rng=np.random.default_rng(seed),
            deadline=watch.deadline,
        )
        A = _at_best_scale(near, A, penalty)
        if sample.W is None:  # pairs: at the scale that is likeliest, not at the one that counts least
            A = likeliest(sample, A, temperature, rank=rank, penalty=penalty, deadline=watch.deadline)
    except KeyboardInterrupt:
        message = "refinement interrupted; returning the best metric so far"
        warnings.warn(message, RefinementInterruptedWarning, stacklevel=4)
        return candidates[0], candidates, SearchStatus.INTERRUPTED
    status = SearchStatus.TIME_LIMIT if watch.left(1.0) == 0.0 else SearchStatus.COMPLETED
    return A, (A, *candidates), status


def _at_best_scale(source: Source, A: Floats, penalty: Floats | None) -> Floats:
    """A at the multiple that costs least; A as it is where that is A = 0."""
    scale = source.best_scale(A, _penalty(penalty, A)).scale
    return scale * A if scale > 0 and np.isfinite(scale) else A


@functools.cache
def compile_now(*, searching: bool, refining: bool) -> None:
    """Compile what learning runs, or load it from disk, on the smallest problems: no clock is to count it."""
    if searching:
        compile_trial("numba")
    if refining:
        pairs = LabelledPairs.from_labels(np.eye(3), [0, 0, 1], bounds=(1.0, 1.0))
        stored = in_memory(pairs)
        for source in (pairs, stored):
            cool(source, stored, np.eye(3), Schedule(steps=1), rng=np.random.default_rng(0))


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

    @property
    def deadline(self) -> float | None:
        """The ``time.monotonic()`` at which to stop."""
        return None if self.time_limit is None else self.began + self.time_limit

    def _note(self, cost: float) -> None:
        if not self.history or cost < self.history[-1][1]:
            self.history.append((self.elapsed, cost))

    def of_search(self, P: Floats | None) -> Callable[[SearchProgress], object]:
        """The user's callback for a search among the metrics P'AP."""

        def tell(progress: SearchProgress) -> object:
            A = progress.A if P is None else P.T @ progress.A @ P
            return False if self.callback is None else self.callback(progress.best_cost, A)

        return tell

    def of_refinement(self, cost: float, A: Floats) -> object:
        self._note(cost)
        return False if self.callback is None else self.callback(cost, A)

    def whole_history(self, found: SearchResult | None, cost: float) -> tuple[tuple[float, float, int], ...]:
        """Improvements of the search, those of the refinement that were better still, and the result."""
        path: list[tuple[float, float, int]] = []
        trials = 0
        if found is not None:
            h, trials = found.history, found.n_trials
            path = list(zip(h.seconds.tolist(), h.cost.tolist(), (h.trial + 1).tolist()))
        for seconds, value in self.history:
            if not path or value < path[-1][1]:
                path.append((seconds, value, trials))
        if not path or cost != path[-1][1]:
            path.append((self.elapsed, cost, trials))  # at a positive temperature not always the least
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


def _canonical(source: Source, A: Floats, seed: int, deadline: float | None) -> Canonical | None:
    try:
        with until(deadline):
            return canonical(source, A, seed)
    except OutOfTime:
        return None
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
    exact: bool,
    solve_support: bool,
    lower_bound_seconds: float,
    seed: int,
) -> Learned:
    solved = None
    lower_bound = None
    if not isinstance(source, PartitionedSource):
        if solve_support and solved_quickly(source) and status not in _AT_ONCE and watch.left(1.0) != 0.0:
            solved = _canonical(source, A, seed, watch.deadline)
            if exact and solved is not None and solved.cost < cost:
                A, cost = solved.A, solved.cost  # minimising the trace met a constraint more
        if lower_bound_seconds > 0:
            certified = certify(source, A, time_limit=lower_bound_seconds, random_state=seed)
            lower_bound = certified.lower_bound
            if exact and certified.cost < cost:
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
