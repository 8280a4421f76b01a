"""LPTML from pairs: the metric that violates the least weight of similar and dissimilar pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lptml._limits import Interrupts
from lptml.constraints import ConstraintSet
from lptml.constraints.span import Span
from lptml.estimators import _inputs
from lptml.estimators._callbacks import with_callbacks
from lptml.estimators._constraints import kind_weights, merge_rows, one_direction, spanned
from lptml.estimators._inputs import FloatArray
from lptml.estimators._lptml import COMMON_CONSTRAINTS, PAIR_CONSTRAINTS, LPTMLBase
from lptml.estimators._maps import fit_pairs, is_linear
from lptml.estimators._suspicion import of_each
from lptml.estimators.base import PairsMixin
from lptml.noise.pair_suspects import pair_suspicion


@dataclass(frozen=True, eq=False)
class Compared:
    """Pairs as given, and the distinct ones among them that are learned from."""

    points: FloatArray  # (n, 2, d)
    labels: NDArray[np.int8]  # (n,)
    weight: FloatArray | None  # (n,)
    V: FloatArray  # (n, d) differences, each in one direction
    first: NDArray[np.intp]  # numbers of the distinct pairs, in an order that the data alone determines
    group: NDArray[np.intp]  # (n,) the distinct pair of each; -1: of none
    source: ConstraintSet  # the distinct pairs
    span: Span  # of their differences
    inside: ConstraintSet  # the distinct pairs, on coordinates of the span


class PairsBase(PairsMixin, LPTMLBase):
    """From pairs to constraints; what LPTML and LPTMLCV share."""

    bounds_: tuple[float, float]

    def _compared(self, pairs: Any, y: Any, calibration_params: Any, sample_weight: Any) -> Compared:
        """Validate the input of fit."""
        options: Any = self
        self._check_calibration_params(calibration_params)
        points, labels = self._start_pairs(pairs, y)
        n, _, d = points.shape
        self._check_options(d)
        weight = _inputs.check_weight(sample_weight, n)
        if weight is not None and len(np.unique(labels[weight > 0])) < 2:
            raise ValueError("sample_weight leaves just one class of pairs: both kinds are needed")
        weight = kind_weights(options.class_weight, labels, weight)
        V = one_direction(points[:, 0] - points[:, 1])  # (n, d)
        first, total, group = merge_rows(V, labels, weight)
        self.bounds_ = self._bounds(options.bounds, V[first], V if weight is None else V[weight > 0])
        source = ConstraintSet.from_differences(V[first], labels[first], bounds=self.bounds_, weight=total)
        span, inside = spanned(source, points, weight)
        return Compared(points, labels, weight, V, first, group, source, span, inside)

    def _settle_pairs(
        self, data: Compared, learned: Any, calibration_params: Mapping[str, Any] | None
    ) -> None:
        """Set the fitted attributes that are about the given pairs."""
        weight = data.weight
        given = ConstraintSet.from_differences(data.V, data.labels, bounds=self.bounds_, weight=weight)
        self._report_tuples(learned, data.span, given, weighed=weight is not None)
        self.support_ = data.first[learned.support]
        u, l = self.bounds_
        if calibration_params is None and u == l:
            # What the metric was learned for. The threshold of most right training pairs would vary more: by
            # noise at the boundary (benchmarks.pairs, 2,000 pairs) it is .3 to .5 points worse.
            self.set_threshold(u)
        else:
            self._calibrate(data.points, data.labels, calibration_params, weight)
        self._remember(data.source.V, data.labels[data.first], data.source.weight, data.group)

    def _judge(
        self, V: FloatArray, labels: NDArray[np.int8], weight: FloatArray, group: NDArray[np.intp]
    ) -> FloatArray:
        return of_each(pair_suspicion(V, labels, sample_weight=weight), group)


class LPTML(PairsBase):
    """Learn a Mahalanobis metric from pairs, some of whose labels may be wrong.

    The metric violates as little as can be found of the constraints "similar pairs are at most u apart,
    dissimilar pairs at least l", so a wrong label is a violated constraint and does not bend the metric.

    Parameters
    ----------
    max_trials : int, default=100
        Random samples that the search solves exactly (the paper's t); 0 leaves everything to refinement.
    search_components : int or None, default=6
        Where there are more features, the search looks among metrics of the leading directions under the
        prior, this many: the time of a trial grows with their sixth power. None: in all directions.
    epsilon : float, default=0.5
        Resolution of the search's grid of sampling rates, p = (1 + epsilon)^-i.
    objective : {"trace", "random", "prior"}, default="trace"
        What a sample's metric minimises: the trace, r'Ar for a random direction r, or the divergence from a
        multiple of the identity of the scaled features.
    bounds : "auto", float, (u, l) or ("percentile", a, b), default="auto"
        How near similar pairs must be (u) and how far apart dissimilar ones (l): left to the default, as the
        ratio u / l, as two distances, or at the a-th and b-th percentile of the training distances.
    refine : bool, default=True
        Whether to optimise the best metrics of the search locally; False is the paper's plain search, with
        ``temperature=0``.
    temperature : float, default=0
        Width of the zone around the bounds in which labels are uncertain, relative to the largest bound. 0
        minimises the number of violated constraints itself. A larger one maximises the likelihood of the
        labels, blurred by noise of that width near the bound and wrong anywhere for a share of the pairs
        that is estimated along; that loss is bounded too, and better under noise near the boundary.
    prior : {"identity", "standardized", "within"} or array-like (d, d), default="standardized"
        The metric that refinement may start from and that the result is shrunk to; "within" makes the
        differences of similar points round.
    shrinkage : float in [0, 1], default=0
        How far to move the result towards the prior; 1 is the prior itself.
    regularization : float, default=0
        eta: the cost is the violated weight plus eta <R, A>.
    regularizer : array-like (n_features, n_features), optional
        R, the identity if not given; refused while ``regularization`` is 0.
    n_components : int, optional
        Largest rank of the metric and number of rows of ``components_``; if not given, as many as features.
        Data with more features than points span fewer directions, and then there are no more rows than those.
    class_weight : None, "balanced" or dict, default=None
        Factors {1: a, -1: b} for the weights of similar and dissimilar pairs; "balanced" gives both kinds the
        same total.
    approximate_counting : bool or "auto", default="auto"
        Whether to drop a candidate of the search as soon as a sequential test says that it cannot win; "auto"
        does so where there are many constraints. The cost of the result is exact in any case.
    time_limit : float, optional
        Seconds after which the best metric so far is taken.
    engine : {"local", "dask", "spark"} or an engine, default="local"
        Where the trials of the search run.
    n_jobs : int, optional
        Trials at the same time on the local engine, as in joblib; the result does not depend on it.
    map : {"linear", "relu", "nystroem"}, map or transformer, default="linear"
        What the points go through before the metric: nothing; a hidden layer trained on the same
        constraints; Gaussian basis functions; a map of :mod:`lptml.maps`, or any
        transformer of scikit-learn. Matrices among the options are then about the features of the map.
    random_state : int, RandomState or None, default=None
        The same number gives the same metric, bit for bit.
    verbose : int, default=0
        Above 0, progress is shown.
    callback : callable, optional
        Called as ``callback(cost, A)`` with the best metric so far; a true result stops the fit.
    checkpoint : path, optional
        File that keeps the state of the search; a fit started again with it goes on from there.
    preprocessor : None, array-like or callable, default=None
        Lets input be given as indices: the points they refer to, or a function from indices to points.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        L, the learned map; the Mahalanobis matrix is L'L.
    map_, last_layer_ : map, ndarray (n_components, m)
        With a map that is not linear, in place of ``components_``: ``transform`` is L f(x).
    n_violations_ : int
        Number of the given pairs that the metric violates.
    violation_rate_ : float
        Share of their weight.
    trivial_rate_ : float
        The same for the better of the two trivial metrics, A = 0 and A without limit.
    lower_bound_ : float or None
        No metric has a smaller rate; None where a tenth of the time of the fit would not tell: ask
        :meth:`certify`.
    support_ : ndarray of int
        Numbers of the pairs that hold in place the metric of least trace which satisfies what this one
        satisfies; none beyond 16 features, where that takes long.
    bounds_ : (float, float)
        The bounds (u, l) used.
    threshold_ : float
        Largest distance that :meth:`predict` calls similar: the bound, if u and l are one; otherwise, or
        where ``calibration_params`` say how, calibrated on the training pairs.
    history_ : tuple of (seconds, rate, trials)
        The least violated share of the weight after each improvement, and the trials done by then.
    n_trials_, n_infeasible_ : int
        Samples that the search solved, and how many of them were infeasible.
    n_iter_ : int
        The same as ``n_trials_``, at least 1.
    status_ : str
        Why learning ended.
    suspicion_ : ndarray (n_pairs,)
        Probability that each pair's label is wrong; see :func:`lptml.noise.suspects.pair_suspicion`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.

    See Also
    --------
    LPTMLCV : The same, with the temperature chosen by cross-validation.
    LPTML_Supervised : From points and their classes.

    References
    ----------
    D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
    geometric approximation algorithms"; arXiv:1905.09989.

    V. J. Yohai, "High breakdown-point and high efficiency robust estimates for regression", Annals of
    Statistics 15, 1987 (MM-estimation).

    M. Alishahi, A. Little, J. M. Phillips, "Linear distance metric learning with noisy labels", 2023;
    arXiv:2306.03173.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml import LPTML
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(200, 2, 3))
    >>> near = abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1  # just the first feature matters
    >>> y = np.where(near, 1, -1)
    >>> model = LPTML(random_state=0).fit(pairs, y)
    >>> model.violation_rate_ < 0.03 < model.trivial_rate_
    True
    >>> model.predict([[[0.0, 0.0, 0.0], [0.1, 2.0, -2.0]], [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = COMMON_CONSTRAINTS | PAIR_CONSTRAINTS

    def __init__(
        self,
        *,
        max_trials: int = 100,
        search_components: int | None = 6,
        epsilon: float = 0.5,
        objective: str = "trace",
        bounds: Any = "auto",
        refine: bool = True,
        temperature: float = 0.0,
        prior: Any = "standardized",
        shrinkage: float = 0.0,
        regularization: float = 0.0,
        regularizer: Any = None,
        n_components: int | None = None,
        class_weight: Any = None,
        approximate_counting: bool | str = "auto",
        time_limit: float | None = None,
        engine: Any = "local",
        n_jobs: int | None = None,
        map: Any = "linear",
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[..., Any] | None = None,
        checkpoint: Any = None,
        preprocessor: Any = None,
    ) -> None:
        self.max_trials = max_trials
        self.search_components = search_components
        self.epsilon = epsilon
        self.objective = objective
        self.bounds = bounds
        self.refine = refine
        self.temperature = temperature
        self.prior = prior
        self.shrinkage = shrinkage
        self.regularization = regularization
        self.regularizer = regularizer
        self.n_components = n_components
        self.class_weight = class_weight
        self.approximate_counting = approximate_counting
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.map = map
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.preprocessor = preprocessor

    @with_callbacks
    def fit(
        self,
        pairs: Any,
        y: Any,
        calibration_params: Mapping[str, Any] | None = None,
        *,
        sample_weight: Any = None,
        initial_metric: Any = None,
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        pairs : array-like (n_pairs, 2, n_features), or (n_pairs, 2) of indices with a preprocessor
        y : array-like (n_pairs,)
            +1 for similar, -1 for dissimilar pairs.
        calibration_params : dict, optional
            How to set ``threshold_`` at the end, on these pairs: ``strategy``, ``min_rate`` and ``beta`` of
            :meth:`calibrate_threshold`.
        sample_weight : array-like (n_pairs,), optional
            What violating each pair costs.
        initial_metric : array-like (n_features, n_features), optional
            A metric to start from as well; at temperature 0 and without shrinkage the result never costs
            more.

        Returns
        -------
        self
        """
        self._validate_params()
        self._start_clock()
        if not is_linear(self.map):
            fit_pairs(self, pairs, y, calibration_params, sample_weight, initial_metric)
            return self
        data = self._compared(pairs, y, calibration_params, sample_weight)
        learned = self._learn(
            data.inside,
            initial_metric,
            {"X": data.points, "y": data.labels},
            self._prior(data.inside, data.span, data.source.d),
            data.span,
        )
        with Interrupts():
            self._settle_pairs(data, learned, calibration_params)
        return self
