"""What the four LPTML estimators share: their options, and the way from a source of constraints to a metric.

Before learning, equal constraints become one with the sum of their weights, in an order that depends on the
data alone. So a weight of two means what two copies mean, bit for bit, and neither duplicates nor the order
of the input change the result. Rates and counts are reported for the constraints as they were given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lptml._limits import Interrupts
from lptml.constraints import ConstraintSet, Source
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.labelled_triplets import LabelledTriplets
from lptml.constraints.span import Span, span_of_tuples
from lptml.estimators import _inputs
from lptml.estimators._callbacks import Announcer, CallbackSupport
from lptml.estimators._inputs import FloatArray
from lptml.estimators._mahalanobis import components_from_metric
from lptml.estimators._suspicion import SuspicionMixin

if TYPE_CHECKING:
    from lptml.proof import Certified

__all__ = [
    "COMMON_CONSTRAINTS",
    "PAIR_CONSTRAINTS",
    "LPTMLBase",
    "comparisons",
    "each_as_one",
    "in_unit_scale",
    "kind_weights",
    "merge_rows",
    "one_direction",
    "seed",
    "spanned",
]

#: A lower bound is looked for up to this many constraints times features squared.
BOUNDED_SIZE = 1_000_000

#: And in no less than these seconds, which it takes to begin.
SHORTEST = 0.01

#: Constraints in memory, of any kind.
AnySource = ConstraintSet | LabelledPairs | LabelledTriplets

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
        from lptml.constraints.bounds import bounds_for

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


def in_unit_scale(source: AnySource) -> tuple[AnySource, float]:
    """Return the constraints with features and bounds of order one, and the factor that undoes it.

    Features are divided by a power of two and bounds by a power of four, so that nothing is rounded and data
    in other units give the same metric, bit for bit, in those units.

    Examples
    --------
    >>> pairs = ConstraintSet.from_differences([[3e60], [5e60]], [1, -1], bounds=(4e60, 4e60))
    >>> unit, factor = in_unit_scale(pairs)
    >>> unit.cost(np.array([[1.0]])), pairs.cost(np.array([[factor]]))
    (0.0, 0.0)
    """
    if isinstance(source, LabelledPairs):
        size = _power_of_two(np.abs(source.X).max(initial=0.0))
        bound = _power_of_two(max(source.bounds))
        u, l = source.bounds
        bounds = (u / bound, l / bound)
        return replace(source, X=source.X / size, bounds=bounds), (bound / size) ** 2
    if isinstance(source, LabelledTriplets):  # their margin is one
        size = _power_of_two(np.abs(source.X).max(initial=0.0))
        return replace(source, X=source.X / size), size**-2.0
    W = source.W
    largest = max(np.abs(part).max(initial=0.0) for part in (source.V, W) if part is not None)
    size = _power_of_two(largest)
    bound = _power_of_two(np.sqrt(source.bound.max()))
    unit = ConstraintSet(
        V=source.V / size,
        W=None if W is None else W / size,
        sign=source.sign.view(),
        bound=source.bound / bound**2,
        weight=source.weight.view(),
    )
    return unit, (bound / size) ** 2


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0


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


def one_direction(V: FloatArray) -> FloatArray:
    """Return difference vectors turned so that their first nonzero entry is positive: v and -v are alike.

    Examples
    --------
    >>> one_direction(np.array([[0.0, -1.0], [2.0, -3.0]]))
    array([[ 0.,  1.],
           [ 2., -3.]])
    """
    entry = V[np.arange(len(V)), (V != 0).argmax(axis=1)]
    return np.where(entry[:, None] < 0, -V, V) + 0.0  # + 0.0: no negative zeros


def merge_rows(
    rows: FloatArray, labels: NDArray[Any], weight: FloatArray | None
) -> tuple[NDArray[np.intp], FloatArray, NDArray[np.intp]]:
    """Group rows that are equal and have equal labels, in an order that the data alone determines.

    Rows of weight zero are left out.

    Parameters
    ----------
    rows : array (n, m)
    labels : array (n,) of numbers
    weight : array (n,) or None

    Returns
    -------
    first : array (k,)
        The number of the first row of each group.
    total : array (k,)
        The weight of each group.
    group : array (n,)
        The group of each row, -1 where its weight is zero.

    Examples
    --------
    >>> rows = np.array([[2.0], [1.0], [2.0], [2.0]])
    >>> first, total, group = merge_rows(rows, np.array([1, 1, 1, -1]), None)
    >>> total[group]
    array([2., 1., 2., 1.])
    """
    kept = np.arange(len(rows)) if weight is None else np.flatnonzero(weight > 0)
    w = np.ones(len(kept)) if weight is None else weight[kept]
    # One number a row that decides the order: a fixed generic combination, summed column by column so that
    # equal rows give equal sums whatever their place in memory.
    generic = np.random.default_rng(0).normal(size=rows.shape[1] + 1)
    key = generic[-1] * labels[kept]
    spread = np.abs(rows[kept]).max(axis=0, initial=0.0)
    for j, scale in enumerate(np.where(spread > 0, spread, 1.0)):
        key = key + generic[j] * (rows[kept, j] / scale)
    order = np.argsort(key, kind="stable")
    ordered = kept[order]
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = (rows[ordered[1:]] != rows[ordered[:-1]]).any(axis=1) | (
        labels[ordered[1:]] != labels[ordered[:-1]]
    )
    number = np.cumsum(new) - 1
    group = np.full(len(rows), -1, dtype=np.intp)
    group[ordered] = number
    return ordered[new], np.bincount(number, weights=w[order]).astype(np.float64), group


def kind_weights(
    class_weight: str | Mapping[int, float] | None, y: NDArray[np.int8], weight: FloatArray | None
) -> FloatArray | None:
    """Return the weights of pairs with ``class_weight`` applied to similar (+1) and dissimilar (-1) ones.

    Examples
    --------
    >>> kind_weights("balanced", np.array([1, -1, -1, -1], dtype=np.int8), None)
    array([2.        , 0.66666667, 0.66666667, 0.66666667])
    """
    if class_weight is None:
        return weight
    w = np.ones(len(y)) if weight is None else weight
    if class_weight == "balanced":
        totals = {kind: float(w[y == kind].sum()) for kind in (1, -1)}
        factors = {kind: w.sum() / (2 * total) for kind, total in totals.items()}
    else:
        assert not isinstance(class_weight, str)
        factors = _check_class_weight(class_weight)
    return w * np.where(y == 1, factors[1], factors[-1])


def _check_class_weight(class_weight: Mapping[Any, Any]) -> dict[int, float]:
    if set(class_weight) != {1, -1}:
        raise ValueError(f"class_weight must give weights for +1 and -1, got {class_weight!r}")
    factors = {int(kind): class_weight[kind] for kind in class_weight}
    for value in factors.values():
        if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
            raise ValueError(f"class_weight must hold positive finite numbers, got {class_weight!r}")
    return {kind: float(value) for kind, value in factors.items()}


def spanned(
    source: ConstraintSet, tuples: FloatArray, weight: FloatArray | None
) -> tuple[Span, ConstraintSet]:
    """Return the span of the constraints on tuples of points (n, size, d), and the constraints on it."""
    used = tuples if weight is None else tuples[weight > 0]
    span = span_of_tuples(used, *(part for part in (source.V, source.W) if part is not None))
    return span, on_span(source, span)


def on_span(constraints: ConstraintSet, span: Span) -> ConstraintSet:
    """Return the same constraints on coordinates of a span."""
    if span.inverse is None:
        return constraints
    W = constraints.W
    return replace(
        constraints,
        V=span.coordinates(constraints.V),
        W=None if W is None else span.coordinates(W),
        sign=constraints.sign.view(),
        bound=constraints.bound.view(),
        weight=constraints.weight.view(),
    )


def each_as_one(constraints: ConstraintSet) -> ConstraintSet:
    """Return the same constraints with a weight of one each."""
    return ConstraintSet(
        V=constraints.V.view(),
        W=None if constraints.W is None else constraints.W.view(),
        sign=constraints.sign.view(),
        bound=constraints.bound.view(),
        weight=np.ones(constraints.n),
    )


def comparisons(near: FloatArray, far: FloatArray, weight: FloatArray | None) -> ConstraintSet:
    """Return the constraints "the first vector is shorter than the second, by a margin of 1 in squares"."""
    origin = np.zeros_like(near)
    return ConstraintSet.from_quadruplets(np.stack([near, origin, far, origin], axis=1), weight=weight)
