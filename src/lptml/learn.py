"""The whole pipeline from constraints to a metric: search, refine, canonical re-solve.

    source ──> search (Algorithm 2) ──> candidates ──> refine ──> A ──> canonical metric and support

Every estimator learns through ``learn``; its options are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lptml.constraints import Floats, Ints, Source
from lptml.refine import Stop, refine


@dataclass(frozen=True)
class Learned:
    """A metric and how it was found."""

    A: Floats
    """The metric, shape (d, d), positive semidefinite."""
    cost: float
    """The weight of the constraints that A violates, counted exactly."""
    total_weight: float
    """The weight of all constraints."""
    trivial_cost: float
    """The cost of the better of the trivial metrics: A = 0 and A without limit."""
    support: Ints
    """Numbers of the constraints that hold the canonical metric in place; empty if not solved for."""
    history: tuple[tuple[float, float], ...]
    """(seconds, least cost so far) after each improvement."""
    n_trials: int
    """Samples that the search solved."""
    n_infeasible: int
    """How many of them were infeasible."""
    status: Stop
    """Why learning ended."""
    lower_bound: float | None
    """A proven lower bound on the cost of every metric; None when it was not asked for."""
    candidates: tuple[Floats, ...]
    """The best few metrics met, cheapest first."""

    @property
    def violation_rate(self) -> float:
        """The share of the weight that A violates."""
        return self.cost / self.total_weight if self.total_weight > 0 else 0.0

    @property
    def trivial_rate(self) -> float:
        """The share of the weight that the better trivial metric violates."""
        return self.trivial_cost / self.total_weight if self.total_weight > 0 else 0.0


def learn(
    source: Source,
    *,
    initial_metric: Floats | None = None,
    n_components: int | None = None,
    random_state: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[float, Floats], None] | None = None,
) -> Learned:
    """Learn the metric that violates as little of the constraints as can be found.

    Parameters
    ----------
    source : Source
        Constraints with their bounds and weights.
    initial_metric : array of shape (d, d), optional
        A metric to start from as well; the result never costs more.
    n_components : int, optional
        The largest rank of the metric.
    random_state : int, optional
        The same number gives the same metric, bit for bit.
    time_limit : float, optional
        Seconds after which the best so far is returned.
    callback : callable, optional
        Called as ``callback(cost, A)`` after each improvement.

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
    starts = () if initial_metric is None else (np.asarray(initial_metric, dtype=np.float64),)
    refined = refine(
        source,
        starts,
        rank=n_components,
        random_state=random_state,
        time_limit=time_limit,
        callback=callback,
    )
    return Learned(
        A=refined.A,
        cost=refined.cost,
        total_weight=source.total_weight,
        trivial_cost=min(source.trivial_costs()),
        support=np.empty(0, dtype=np.int64),
        history=refined.history,
        n_trials=0,
        n_infeasible=0,
        status=refined.stop,
        lower_bound=None,
        candidates=refined.candidates,
    )
