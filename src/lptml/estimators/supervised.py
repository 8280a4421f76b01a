"""LPTML from labelled points: constraints from the labels, and a metric that violates the least of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from lptml._from_labels import KINDS, constraints_from_labels
from lptml.estimators import _inputs
from lptml.estimators._callbacks import with_callbacks
from lptml.estimators._inputs import FloatArray
from lptml.estimators._lptml import (
    COMMON_CONSTRAINTS,
    PAIR_CONSTRAINTS,
    LPTMLBase,
    each_as_one,
    merge_rows,
    seed,
)
from lptml.estimators._suspicion import of_each
from lptml.estimators._validation import adopt, choose, is_validated, table
from lptml.estimators.base import SupervisedMixin
from lptml.labels import LabelledPairs

__all__ = ["LPTML_Supervised"]


class LPTML_Supervised(SupervisedMixin, LPTMLBase):
    """Learn a Mahalanobis metric from points and their classes, some of which may be wrong.

    Points of one class shall be near each other and points of different classes apart; the metric violates as
    few of these constraints as can be found. Wrong labels become violated constraints and do not bend it.

    Parameters
    ----------
    max_trials : int or "auto", default="auto"
        Random samples that the search solves exactly (the paper's t); 0 leaves everything to refinement.
        "auto" is 100 up to 10 features and fewer beyond, where a trial is slow and refinement finds more.
    epsilon : float, default=0.5
        Resolution of the search's grid of sampling rates, p = (1 + epsilon)^-i.
    objective : {"trace", "random", "prior"}, default="trace"
        What a sample's metric minimises: the trace, r'Ar for a random direction r, or the divergence from a
        multiple of the identity of the scaled features.
    bounds : "auto", float, (u, l) or ("percentile", a, b), default="auto"
        How near similar pairs must be (u) and how far apart dissimilar ones (l): left to the default, as the
        ratio u / l, as two distances, or at the a-th and b-th percentile of the training distances.
    constraints : {"auto", "all", "neighbors", "triplets"}, default="auto"
        What the labels demand: that all pairs be near or far, just pairs of neighbours, or that neighbours
        of a point's own class be nearer than others. "auto" leaves the choice to validation (beyond 6,000
        points violations are then counted over all pairs, whatever the metric was learned from), and is
        "all" without.
    n_constraints : int, optional
        Pairs of each kind (or triplets) to draw; all of them if not given.
    validation : {"auto", "neighbors"} or None, default="auto"
        How the metric is chosen. None: the metric of least cost on the constraints. "neighbors": the one
        under which out-of-sample nearest neighbours vote best, among metrics learned from each kind of
        constraints and those that need no learning, adjusted a little where wrong labels are believed to
        vote; the options of the search must then have their default values. "auto" is "neighbors" where they
        do, and None where any of them was set: ``max_trials``, ``epsilon``, ``objective``, ``refine``,
        ``regularization``, ``regularizer``, ``class_weight``, ``approximate_counting``, ``engine``,
        ``checkpoint``.
    refine : bool, default=True
        Whether to optimise the best metrics of the search locally; False is the paper's plain search.
    regularization : float, default=0
        eta: the cost is the violated weight plus eta <R, A>.
    regularizer : array-like (n_features, n_features), optional
        R, the identity if not given; refused while ``regularization`` is 0.
    n_components : int, optional
        Largest rank of the metric and number of rows of ``components_``; all features if not given.
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
    n_violations_ : int
        Number of the given constraints that the metric violates.
    violation_rate_ : float
        Share of their weight.
    trivial_rate_ : float
        The same for the better of the two trivial metrics, A = 0 and A without limit.
    lower_bound_ : float
        No metric has a smaller rate; 0 where nothing was proven, as of metrics that validation chose.
    support_ : ndarray (k, 2) or (k, 3) of int
        Rows of the points of the constraints that hold the metric in place.
    bounds_ : (float, float)
        The bounds (u, l) used.
    history_ : tuple of (seconds, rate, trials)
        The least violated share of the weight after each improvement, and the trials done by then.
    n_trials_, n_infeasible_ : int
        Samples that the search solved, and how many of them were infeasible.
    n_iter_ : int
        The same as ``n_trials_``, at least 1.
    status_ : str
        Why learning ended.
    suspicion_ : ndarray (n_samples,)
        How strongly the metric contradicts the label of each point, from 0 to 1.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.
    classes_ : ndarray
        The labels met, without -1.
    validation_ : tuple of dict
        Each candidate's name, score, advantage over the standardised metric and its standard error, its
        weight in the mean that is the metric and whether it has one; empty where no choice was made.

    See Also
    --------
    LPTML : From pairs.
    lptml.LabelCleaner : Find, drop or correct wrong labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from lptml import LPTML_Supervised
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(LPTML_Supervised(random_state=0), KNeighborsClassifier())
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **COMMON_CONSTRAINTS,
        **PAIR_CONSTRAINTS,
        "constraints": [StrOptions({"auto", *KINDS})],
        "n_constraints": [None, Interval(Integral, 1, None, closed="left")],
        "validation": [None, StrOptions({"auto", "neighbors"})],
    }

    def __init__(
        self,
        *,
        max_trials: int | str = "auto",
        epsilon: float = 0.5,
        objective: str = "trace",
        bounds: Any = "auto",
        constraints: str = "auto",
        n_constraints: int | None = None,
        validation: str | None = "auto",
        refine: bool = True,
        regularization: float = 0.0,
        regularizer: Any = None,
        n_components: int | None = None,
        class_weight: Any = None,
        approximate_counting: bool | str = "auto",
        time_limit: float | None = None,
        engine: Any = "local",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[..., Any] | None = None,
        checkpoint: Any = None,
        preprocessor: Any = None,
    ) -> None:
        self.max_trials = max_trials
        self.epsilon = epsilon
        self.objective = objective
        self.bounds = bounds
        self.constraints = constraints
        self.n_constraints = n_constraints
        self.validation = validation
        self.refine = refine
        self.regularization = regularization
        self.regularizer = regularizer
        self.n_components = n_components
        self.class_weight = class_weight
        self.approximate_counting = approximate_counting
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.preprocessor = preprocessor

    @with_callbacks
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, initial_metric: Any = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like (n_samples, n_features), or (n_samples,) of indices with a preprocessor
        y : array-like (n_samples,)
            Classes: numbers, strings or booleans; the number -1 marks an unlabelled point, which is left out.
        sample_weight : array-like (n_samples,), optional
            Weights of the points; a constraint weighs the product of those of its points.
        initial_metric : array-like (n_features, n_features), optional
            A metric to start from as well, which the result never costs more than; one more candidate where
            validation chooses.

        Returns
        -------
        self
        """
        self._validate_params()
        validated = is_validated(self)
        points, codes = self._start_supervised(X, y)
        self._check_options(points.shape[1])
        weight = _inputs.check_weight(sample_weight, len(points))
        known = np.flatnonzero(codes >= 0 if weight is None else (codes >= 0) & (weight > 0))
        if len(np.unique(codes[known])) < 2:
            raise ValueError("sample_weight leaves just one class: at least two classes are needed")
        first, total, group = merge_rows(
            points[known], codes[known], None if weight is None else weight[known]
        )
        rows = known[first]  # distinct points, in an order that the data alone determines
        distinct = self._all_pairs(points[rows], codes[rows], None if (total == 1).all() else total)
        given = self._all_pairs(points[known], codes[known], None if weight is None else weight[known])
        self.bounds_ = self._bounds(self.bounds, distinct, given)
        distinct = replace(distinct, bounds=self.bounds_)
        number = seed(self.random_state)
        kind = "all" if self.constraints == "auto" else self.constraints
        selected = choose(self, distinct, initial_metric, number) if validated else None
        if selected is not None:
            kind = selected.constraints
        rng = np.random.default_rng(number)
        chosen = constraints_from_labels(kind, distinct, self.n_constraints, rng)
        data = {"X": points, "y": codes}
        self.validation_ = () if selected is None else table(selected)
        if selected is None:
            learned = self._learn(chosen.source, initial_metric, data)
        else:
            learned = adopt(self, selected, chosen.source, data)
        if isinstance(chosen.source, LabelledPairs):
            given = replace(given, bounds=self.bounds_)
            ones = replace(given, similar_weight=1.0, dissimilar_weight=1.0, point_weight=None)
            plain = weight is None and self.class_weight is None
            self._report(learned, given, given if plain else ones)
        else:
            self._report(learned, chosen.source, each_as_one(chosen.source))
        self.support_ = rows[chosen.points(learned.support)]
        place = np.full(len(points), -1)
        place[known] = group
        self._remember(distinct.X, distinct.y, distinct.point_weight, place)
        if selected is not None:  # the witnesses have been heard already
            self.suspicion_ = of_each(selected.suspicion, place)
        return self

    def _judge(
        self,
        X: FloatArray,
        codes: NDArray[np.int64],
        weight: FloatArray | None,
        place: NDArray[np.intp],
    ) -> FloatArray:
        from lptml.suspects import suspicion

        return of_each(suspicion(X, codes, sample_weight=weight), place)

    def _all_pairs(self, X: FloatArray, codes: NDArray[np.int64], weight: FloatArray | None) -> LabelledPairs:
        return LabelledPairs.from_labels(
            X, codes, bounds=(1.0, 1.0), point_weight=weight, class_weight=self.class_weight
        )
