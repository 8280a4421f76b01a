"""What the LPTML estimators share: their options, and the way from constraints to a metric.

They learn from constraints made ready by ``_constraints``. Rates and counts are reported for the constraints
as they were given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lptml._limits import Interrupts
from lptml.constraints import ConstraintSet, Source
from lptml.constraints.bounds import bounds_for
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.span import Span
from lptml.estimators import _inputs
from lptml.estimators._callbacks import Announcer, CallbackSupport
from lptml.estimators._constraints import AnySource, each_as_one, in_unit_scale, on_span
from lptml.estimators._inputs import FloatArray
from lptml.estimators._mahalanobis import components_from_metric
from lptml.estimators._suspicion import SuspicionMixin

if TYPE_CHECKING:
    from lptml.proof import Certified

#: A lower bound is looked for up to this many constraints times features squared.
BOUNDED_SIZE = 1_000_000

#: And in no less than these seconds, which it takes to begin.
SHORTEST = 0.01

#: Pairs by their difference vectors, or implicit in labels.
Pairs = FloatArray | LabelledPairs

#: Domains of the options that every LPTML estimator has.
COMMON_CONSTRAINTS: dict[str, Any] = {
    "max_trials": [Interval(Integral, 0, None, closed="left")],
    "search_components": [None, Interval(Integral, 1, None, closed="left")],
    "epsilon": [Interval(Real, 0, None, closed="neither")],
    "objective": [StrOptions({"random", "trace", "prior"})],
    "refine": ["boolean"],
    "temperature": [Interval(Real, 0, None, closed="left")],
    "prior": [StrOptions({"identity", "standardized", "within"}), "array-like"],
    "shrinkage": [Interval(Real, 0, 1, closed="both")],
    "regularization": [Interval(Real, 0, None, closed="left")],
    "regularizer": [None, "array-like"],
    "n_components": [None, Interval(Integral, 1, None, closed="left")],
    "approximate_counting": ["boolean", StrOptions({"auto"})],
    "time_limit": [None, Interval(Real, 0, None, closed="neither")],
    "engine": [str, object],
    "n_jobs": [None, Integral],
    "map": "no_validation",  # by estimators._maps
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "callback": [None, callable],
    "checkpoint": [None, str, object],
    "preprocessor": "no_validation",
}

#: Domains of the options that only pairs have.
PAIR_CONSTRAINTS: dict[str, Any] = {
    "bounds": [
        StrOptions({"auto"}),
        Interval(Real, 0, None, closed="neither"),
        tuple,
        list,
    ],
    "class_weight": [None, StrOptions({"balanced"}), dict],
}


class LPTMLBase(SuspicionMixin, CallbackSupport, BaseEstimator):
    """Learning, and the fitted attributes that tell what was learned."""

    _parameter_constraints: ClassVar[dict[str, Any]] = COMMON_CONSTRAINTS
    components_: FloatArray
    n_features_in_: int
    lower_bound_: float | None
    _certifiable: tuple[AnySource, Span]

    def _start_clock(self) -> None:
        """Note when the fit began: its time limit is for all of it."""
        self._began = time.monotonic()

    def _deadline(self, share: float = 1.0) -> float | None:
        """The ``time.monotonic()`` at which this share of the time limit is over."""
        limit: float | None = self.time_limit
        return None if limit is None else self._began + share * limit

    def _seconds_left(self) -> float | None:
        deadline = self._deadline()
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    def _check_options(self, d: int) -> None:
        """Refuse options that fit their own domain but not each other or the data."""
        options: Any = self
        if options.n_components is not None and options.n_components > d:
            raise ValueError(f"n_components must be at most the {d} features, got {options.n_components}")
        if options.n_jobs == 0:
            raise ValueError("n_jobs must not be 0")
        if options.regularizer is not None and options.regularization == 0:
            raise ValueError("regularizer has no effect while regularization is 0")
        if not options.refine and options.temperature > 0:
            raise ValueError("refine=False is the search alone, at temperature 0: set temperature=0 as well")

    @staticmethod
    def _bounds(bounds: Any, distinct: Pairs, given: Pairs) -> tuple[float, float]:
        """Return (u, l) for pairs: percentiles are those of all given pairs, a ratio needs their size."""
        return bounds_for(bounds, given if _is_percentile(bounds) else distinct)

    def _prior(self, source: ConstraintSet, span: Span, d: int) -> FloatArray | None:
        """Return the prior as a matrix for constraints on a span of d features; None for the standardised."""
        from lptml.refine.starts import default_starts

        options: Any = self
        if not isinstance(options.prior, str):
            matrix = _inputs.check_metric(options.prior, d, "prior")
            return None if matrix is None else span.metric_inside(matrix)
        if options.prior == "standardized":
            return None
        return span.diagonal_inside(np.ones(d)) if options.prior == "identity" else default_starts(source)[1]

    def _report_tuples(self, learned: Any, span: Span, given: ConstraintSet, weighed: bool) -> None:
        """Set the rates for pairs or comparisons of all features."""
        inside = on_span(given, span)
        counted = each_as_one(inside) if weighed else inside
        self._report(learned, span, inside, counted, given.trivial_costs())

    def _learn(
        self,
        source: AnySource,
        initial_metric: Any,
        data: dict[str, Any],
        prior: FloatArray | None,
        span: Span,
        solve_support: bool = True,
    ) -> Any:
        """Learn a metric for constraints on coordinates of the span; ``prior`` is a matrix for them."""
        from lptml.learn import learn  # compiled code is loaded by the first fit, not by the import

        options: Any = self
        d = self.n_features_in_
        unit, factor = in_unit_scale(source)
        regularizer = _inputs.check_metric(options.regularizer, d, "regularizer")
        if regularizer is not None:
            regularizer = span.metric_inside(regularizer) * factor
        elif options.regularization > 0:
            regularizer = span.diagonal_inside(np.ones(d)) * factor
        _inputs.check_penalty(options.regularization, regularizer)
        start = _inputs.check_metric(initial_metric, d, "initial_metric")
        self._certifiable = source, span
        announcer = self._announcer(factor, data, span)
        announcer.begin()
        learned = learn(
            unit,
            max_trials=options.max_trials,
            search_components=options.search_components,
            epsilon=options.epsilon,
            objective=options.objective,
            refine=options.refine,
            temperature=options.temperature,
            prior=None if prior is None else prior / factor,
            shrinkage=options.shrinkage,
            regularization=options.regularization,
            regularizer=regularizer,
            n_components=span.rank(options.n_components),
            approximate_counting=options.approximate_counting,
            time_limit=self._seconds_left(),
            engine=options.engine,
            n_jobs=options.n_jobs,
            random_state=seed(options.random_state),
            verbose=int(options.verbose),
            callback=announcer if announcer.wanted else None,
            checkpoint=options.checkpoint,
            initial_metric=None if start is None else span.metric_inside(start) / factor,
            solve_support=solve_support,
        )
        with Interrupts():
            self._settle(learned, unit, announcer)
        return learned

    def _announcer(self, factor: float, data: dict[str, Any], span: Span) -> Announcer:
        options: Any = self

        def components(A: FloatArray) -> FloatArray:
            return span.map_outside(np.sqrt(factor) * components_from_metric(A, options.n_components))

        def metric(A: FloatArray) -> FloatArray:
            return span.metric_outside(factor * A)

        return Announcer(self, options.callback, data, metric, components)

    def _settle(self, learned: Any, unit: Source, announcer: Announcer) -> None:
        """Set what does not depend on how the constraints were given."""
        self.components_ = announcer.components(learned.A)
        self.n_trials_ = learned.n_trials
        self.n_iter_ = max(1, learned.n_trials)
        self.n_infeasible_ = learned.n_infeasible
        self.status_ = learned.status.value
        self.lower_bound_ = _lower_bound(unit, learned)
        announcer.end()

    def certify(
        self,
        *,
        time_limit: float = 60.0,
        gap: float = 0.0,
        callback: Callable[[float, float], object] | None = None,
        resume: Certified | None = None,
    ) -> Certified:
        """Prove how far the metric is from the best possible one, on the constraints it was learned from.

        Up to three features this usually ends with the proof that no metric violates less; with more, and
        many violated, with a lower bound. ``lower_bound_`` is set to what was proven.

        Parameters
        ----------
        time_limit : float, default=60
            Seconds.
        gap : float, default=0
            Stop when the bound is within this share of the cost.
        callback : callable, optional
            Called as ``callback(lower_bound, cost)`` now and then; a true result stops.
        resume : Certified, optional
            An earlier result for the same constraints, to go on from.

        Returns
        -------
        lptml.proof.Certified
            Bound, cost and certificate; ``statement`` says in words what is proven. ``A`` is the cheapest
            metric known, which may be better than the model's.

        Examples
        --------
        >>> import numpy as np
        >>> from lptml import LPTML
        >>> pairs = np.random.default_rng(0).normal(size=(100, 2, 2))
        >>> y = np.where(abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
        >>> y[:5] *= -1
        >>> model = LPTML(random_state=0).fit(pairs, y)
        >>> model.certify().proof.value
        'no metric costs less'
        """
        from lptml.proof import certify

        check_is_fitted(self, "components_")
        if not hasattr(self, "_certifiable"):
            raise ValueError("a model from a file is without its constraints: fit it again to certify it")
        source, span = self._certifiable
        L = span.map_inside(self.components_)
        certified = certify(
            source, L.T @ L, time_limit=time_limit, gap=gap, random_state=0, callback=callback, resume=resume
        )
        self.lower_bound_ = certified.lower_bound / (source.total_weight or 1.0)
        return certified

    def _report(
        self, learned: Any, span: Span, given: Source, counted: Source, trivial: tuple[float, float]
    ) -> None:
        """Set the rates for the constraints as they were given: weighted, and each counted as one.

        Both are on coordinates of the span; ``trivial`` are the costs of the two trivial metrics.
        """
        L = span.map_inside(self.components_)
        A = L.T @ L
        total = given.total_weight or 1.0  # no constraints: none is violated
        cost = float(given.cost(A))
        self.violation_rate_ = cost / total
        self.trivial_rate_ = min(trivial) / total
        if self.lower_bound_ is not None:
            self.lower_bound_ /= total
        self.history_ = tuple((seconds, cost / total, trials) for seconds, cost, trials in learned.history)
        self.n_violations_ = round(cost if counted is given else counted.cost(A))


def _lower_bound(source: Source, learned: Any) -> float | None:
    """Return a proven lower bound on the cost of every metric, in a tenth of the time that learning took.

    None where that would not do, or would be long: then nobody has asked (``LPTMLBase.certify``).
    """
    if learned.cost == 0:
        return 0.0
    seconds = 0.1 * learned.history[-1][0]
    ended = learned.status.name not in ("INTERRUPTED", "STOPPED", "TIME_LIMIT")
    if not ended or seconds < SHORTEST or source.n * source.d**2 > BOUNDED_SIZE:
        return None
    from lptml.proof import certify

    return min(certify(source, learned.A, time_limit=seconds).lower_bound, learned.cost)


def _is_percentile(bounds: Any) -> bool:
    return isinstance(bounds, tuple | list) and len(bounds) > 0 and bounds[0] == "percentile"


def seed(random_state: Any) -> int:
    """Return a whole number that stands for scikit-learn's ways of giving a random state."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
