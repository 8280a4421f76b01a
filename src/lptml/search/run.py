"""The search as it is run: Algorithm 2 (algorithm2.py) on an engine, with limits, progress and checkpoints.

For every p on the grid (1+eps)^-i, i = 0..log_{1+eps} n, draw samples that hold each constraint with
probability p, solve each sample exactly (Algorithm 1), and return the metric that violates the fewest of all
constraints. ``trials_per_level`` runs the inner loop a fixed number of times at each p, as
the algorithm is written; ``max_trials`` is LPTML_t of Section 3, a total of t trials that visits the levels
evenly.

What is added to the paper's text: an infeasible sample still gives its elastic minimiser as a candidate;
every candidate is judged at its best multiple, found exactly; the best multiple of the identity, which in its
limits is either trivial metric, is a candidate, so the result is never worse; a large sample is given up as
soon as its head is infeasible (trial.py); trials run in parallel and are reduced in their order, so the
result is the same, bit for bit, for every engine and number of workers.

Regularised (Theorem 2.4): minimises cost(A) + eta <R, A>. A trial works at a pair (p, rho) of two grids,
rho a guess of <R, A> that is added to the sample as one more constraint.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import cast

import numpy as np

from lptml._limits import Interrupts
from lptml._progress import make_display
from lptml._threads import single_threaded
from lptml.constraints import Floats, Source
from lptml.exact import Status
from lptml.search import checkpoint as saved_states
from lptml.search.driver import Pace, Run, complete, in_order, units
from lptml.search.engine import Engine, PartitionedSource, make_engine
from lptml.search.result import (
    SearchInterruptedWarning,
    SearchProgress,
    SearchResult,
    SearchStatus,
    finish,
)
from lptml.search.setup import Setup, check_arguments, make_entropy, prepare
from lptml.search.trial import SearchProblem, compile_trial

_CHECKPOINT_SECONDS = 1.0
_SERIAL = (
    1e8  # multiplications a count, up to which BLAS's threads, which spin when idle, take from the trials
)


class CheckpointWarning(UserWarning):
    """The state of a search could not be kept; the search went on."""


@dataclass(frozen=True)
class _Limits:
    trials: int
    seconds: float | None
    callback: Callable[[SearchProgress], object] | None


def search(
    source: Source | PartitionedSource,
    *,
    max_trials: int = 500,
    trials_per_level: int | None = None,
    epsilon: float = 0.5,
    objective: str = "trace",
    prior: Floats | None = None,
    strategy: str = "multi",
    solver: str = "numba",
    regularizer: Floats | None = None,
    eta: float = 0.0,
    engine: str | Engine = "local",
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    time_limit: float | None = None,
    target_cost: float | None = None,
    callback: Callable[[SearchProgress], object] | None = None,
    verbose: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    approximate_counting: bool | str = "auto",
    delta: float = 0.05,
    n_candidates: int = 8,
) -> SearchResult:
    """Search for the metric that violates the least weight of constraints.

    Parameters
    ----------
    source : ConstraintSet, LabelledPairs, IndexedPairs or a partitioned source
        The constraints.
    max_trials : int
        Trials in all (LPTML_t), spread over the grid of probabilities.
    trials_per_level : int, optional
        Trials at each probability, instead of ``max_trials``: Algorithm 2 as written.
    epsilon : float
        The grid is p = (1+eps)^-i.
    objective : "trace", "random" or "prior"
        What a trial minimises subject to its sample: the trace, r'Ar for a random direction r, or the
        divergence from ``prior``.
    prior : array of shape (d, d), optional
        The identity by default.
    strategy, solver : str
        See ``exact.exact_lptml``.
    regularizer : array of shape (d, d), optional
        R of the penalty eta * <R, A>; the identity by default. Positive semidefinite.
    eta : float
        Weight of the penalty; 0 for none.
    engine : "local", "dask", "spark" or an Engine
    n_jobs : int, optional
        Trials at the same time on the local engine, as in joblib.
    random_state : int, Generator, RandomState or None
        The same number gives the same metric whatever the engine and ``n_jobs``.
    time_limit : float, optional
        Seconds after which no more trials are started.
    target_cost : float, optional
        Stop when a metric violates at most this weight (plus penalty).
    callback : callable, optional
        Called with a ``SearchProgress`` after every unit of trials; a true result stops the search.
    verbose : int
        Above 0 a progress bar is shown (tqdm or rich), or log lines where neither is installed.
    checkpoint : path, optional
        Where to keep the state, about once a second; a search started again with this file goes on from it.
    approximate_counting : "auto", True or False
        Whether a candidate is abandoned as soon as a sequential test says that it cannot win. "auto": above
        16,384 constraints. The winner's cost is exact in any case.
    delta : float
        The probability that the sequential tests abandon the best candidate.
    n_candidates : int
        How many of the best metrics to return.

    Returns
    -------
    SearchResult

    References
    ----------
    D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
    geometric approximation algorithms"; arXiv:1905.09989.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.search import search
    >>> rng = np.random.default_rng(0)
    >>> V = rng.normal(size=(200, 2)) * [1.0, 40.0]
    >>> pairs = ConstraintSet.from_differences(V, np.where(abs(V[:, 0]) < 1, 1, -1), bounds=(1.0, 1.0))
    >>> result = search(pairs, max_trials=20, random_state=0)
    >>> result.cost, result.status.name
    (0.0, 'OPTIMAL')
    """
    setup = Setup(
        epsilon=epsilon,
        objective=objective,
        prior=prior,
        strategy=strategy,
        solver=solver,
        regularizer=regularizer,
        eta=eta,
        approximate_counting=approximate_counting,
        delta=delta,
        n_candidates=n_candidates,
    )
    check_arguments(source, setup, max_trials, trials_per_level, time_limit, target_cost)
    compile_trial(solver)
    runner = make_engine(engine, n_jobs=n_jobs)
    move = getattr(source, "on", None)  # partitions that can be read anywhere are read where the trials run
    source = source if move is None else move(runner)
    saved = None if checkpoint is None else saved_states.load(checkpoint)
    entropy = saved[0]["entropy"] if saved and random_state is None else make_entropy(random_state)
    with single_threaded(source.n * source.d**2 < _SERIAL):
        prepared = prepare(source, setup, entropy)
        problem = prepared.problem
        limits = _Limits(
            trials=max_trials if trials_per_level is None else trials_per_level * problem.grid_size,
            seconds=time_limit,
            callback=callback,
        )
        run = Run(prepared.board, target=max(0.0, target_cost or 0.0))
        run.start(problem)
        if checkpoint is not None and saved is not None:
            run.restore(saved_states.check(saved, prepared.fingerprint, run.state(), checkpoint))

        def save() -> None:
            if checkpoint is not None:
                saved_states.save(checkpoint, prepared.fingerprint, entropy, run.state())

        save()  # a place that cannot be written to is an error now, not after an hour
        with Interrupts() as interrupts:
            keep = _forgiving(save, checkpoint)
            status = _run_trials(problem, source, runner, run, limits, verbose, interrupts, keep)
            keep()
            result = finish(prepared, source, run, status)
    if status is SearchStatus.INTERRUPTED:
        message = f"search interrupted after {run.next_trial} trials; returning the best metric so far"
        warnings.warn(message, SearchInterruptedWarning, stacklevel=2)
    return result


def _forgiving(save: Callable[[], None], checkpoint: str | os.PathLike[str] | None) -> Callable[[], None]:
    """The same, but what goes wrong with the file is a warning, once: the search is worth more than it."""
    warned = False

    def keep() -> None:
        nonlocal warned
        try:
            save()
        except OSError as problem:
            if not warned:
                message = (
                    f"the checkpoint {checkpoint} can no longer be written ({problem}); the search goes on"
                )
                warnings.warn(message, CheckpointWarning, stacklevel=4)
            warned = True

    return keep


def _run_trials(
    problem: SearchProblem,
    source: Source | PartitionedSource,
    engine: Engine,
    run: Run,
    limits: _Limits,
    verbose: int,
    interrupts: Interrupts,
    save: Callable[[], None],
) -> SearchStatus:
    """The loop of Algorithm 2: units of trials out, results in, reduced in the order of trials."""
    pace = Pace()
    saved_at = time.monotonic()
    try:
        with engine.open(problem) as session, make_display(verbose, limits.trials) as display:
            work = units(problem, source, session, pace, run.next_trial, limits.trials)
            with closing(session.run(work)) as results:
                for result in in_order(results, run.next_trial):
                    if interrupts.seen:
                        return SearchStatus.INTERRUPTED
                    if limits.seconds is not None and run.elapsed > limits.seconds:
                        return SearchStatus.TIME_LIMIT
                    if result is None:
                        continue
                    pace.note(result)
                    if problem.source is None:
                        result = complete(problem, cast(PartitionedSource, source), result)
                    for _ in run.absorb(result.candidates):
                        cost = run.proven_cost(problem, source)
                        if cost <= run.target:
                            return SearchStatus.OPTIMAL if cost <= 0 else SearchStatus.TARGET_REACHED
                    display.show(run.next_trial, f"best {run.board.leader.cost / source.total_weight:.4f}")
                    if limits.callback is not None and limits.callback(_progress(run, limits)):
                        return SearchStatus.STOPPED
                    if time.monotonic() - saved_at > _CHECKPOINT_SECONDS:
                        save()
                        saved_at = time.monotonic()
    except KeyboardInterrupt:
        return SearchStatus.INTERRUPTED
    return SearchStatus.COMPLETED


def _progress(run: Run, limits: _Limits) -> SearchProgress:
    leader = run.board.leader
    return SearchProgress(
        n_trials=run.next_trial,
        max_trials=limits.trials,
        best_cost=leader.cost,
        A=leader.metric,
        seconds=run.elapsed,
        n_infeasible=int(run.statuses[Status.INFEASIBLE]),
    )
