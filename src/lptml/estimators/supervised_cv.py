"""LPTML from labelled points with prior, shrinkage and the rest chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from lptml._limits import Interrupts
from lptml._threads import SMALL, single_threaded
from lptml.constraints import Floats, Ints, psd_factor
from lptml.constraints.from_labels import KINDS
from lptml.constraints.scaling import blend, standard_deviation, truncate
from lptml.estimators._cv import CVMixin, but_shrinkage, check_names, cv_constraints
from lptml.estimators._labelled import Labelled, SupervisedBase, prior_factor
from lptml.estimators._maps import check_map, is_linear, map_of, settle, through
from lptml.estimators.supervised import LPTML_Supervised
from lptml.points import priors
from lptml.select.cross_validation import Setting, grid_of, neighbour_share

#: Points that settings are compared on; of more points these are drawn.
VALIDATED = 3000
_OF_CONSTRAINTS = ("n_constraints", "bounds", "class_weight")


class LPTML_SupervisedCV(CVMixin, SupervisedBase):
    """:class:`LPTML_Supervised` with its settings chosen by cross-validation.

    Every combination of the lists below is learned without a fold of the points and scored on it: the score
    of a point is the share of its nearest training neighbours that have its label. Points and neighbours
    count as far as their labels can be trusted, where there are triplets among the constraints. The metric
    is the plain average of all combinations within one standard error of the best (of the paired
    difference), each learned again from all points. As in scikit-learn, the folds do not depend on
    ``random_state``; nor do they depend on the order of the points.

    Parameters
    ----------
    maps : list, default=("linear",)
        Values of ``map`` to try; see :class:`LPTML_Supervised`. Each is learned anew without each fold, so
        that none is chosen for fitting the training points alone. Just settings with the map of the best one
        are averaged: there is no mean of metrics over different features.
    priors : list, default=("standardized", "within", "discriminant")
        Values of ``prior`` to try; see :class:`LPTML_Supervised`.
    shrinkages : list of float, default=(0.0, 0.5, 1.0)
        Values of ``shrinkage`` to try; 1 is the prior itself, without learning.
    temperatures : list of float, default=(0.15,)
        Values of ``temperature`` to try; 0 is the count of violated constraints.
    constraints : str or list of str, default="triplets"
        Kinds of constraints to try: "triplets", "neighbors", "all".
    n_components : int, None or list, default=None
        Largest ranks of the metric to try.
    cv : int, default=3
        Folds of each deal.
    n_repeats : int, default=2
        How often the points are dealt.
    n_neighbors : int, default=4
        Neighbours that the score looks at.
    max_trials : int, default=100
        Random samples that the search solves exactly for the best setting; the others, and the fits of the
        cross-validation, start from their priors.
    search_components : int or None, default=6
        See :class:`LPTML_Supervised`.
    epsilon : float, default=0.5
        Resolution of the search's grid of sampling rates, p = (1 + epsilon)^-i.
    objective : {"trace", "random", "prior"}, default="trace"
        What a sample's metric minimises.
    n_constraints : int, optional
        Triplets (or pairs of each kind) to draw; all of them if not given.
    bounds : "auto", float, (u, l) or ("percentile", a, b), default="auto"
        For pairs; see :class:`LPTML_Supervised`.
    class_weight : None, "balanced" or dict, default=None
        For pairs; see :class:`LPTML_Supervised`.
    time_limit : float, optional
        Seconds after which the best metric so far is taken. Half of them go to the cross-validation: folds
        that are not done by then do not count, and if none is, the first setting of the lists is taken.
    engine : {"local", "dask", "spark"} or an engine, default="local"
        Where the trials of the search run.
    n_jobs : int, optional
        Trials at the same time on the local engine, as in joblib; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        The same number gives the same metric, bit for bit.
    verbose : int, default=0
        Above 0, progress is shown.
    callback : callable, optional
        Called as ``callback(cost, A)`` with the best metric so far of the best setting; a true result stops
        its fit.
    preprocessor : None, array-like or callable, default=None
        Lets input be given as indices: the points they refer to, or a function from indices to points.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        L, the learned map; the Mahalanobis matrix is L'L.
    map_, last_layer_ : map, ndarray (n_components, m)
        Where the map of ``best_params_`` is not linear, in place of ``components_``: ``transform`` is L f(x).
    cv_results_ : dict of arrays
        ``params`` and ``param_...`` of every setting, its ``mean_test_score``, ``std_test_score`` (over the
        folds), ``rank_test_score``, ``standard_error`` of its difference from the best, and whether it is
        ``averaged``.
    best_params_ : dict
        The setting of largest mean score.
    best_index_ : int
    best_score_ : float
    n_violations_, violation_rate_, trivial_rate_, lower_bound_, support_, bounds_, history_
        As in :class:`LPTML_Supervised`, about this metric and the constraints of ``best_params_``.
    n_trials_, n_infeasible_, n_iter_, status_
        Of the search and refinement with ``best_params_``.
    suspicion_ : ndarray (n_samples,)
        Probability that each label is wrong: :func:`lptml.suspicion` of the training data. The within-class
        metric enters it, which learning starts from, not the learned one.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.
    classes_ : ndarray
        The labels met, without -1.

    See Also
    --------
    LPTML_Supervised : One setting, in about half of the time.
    RobustKNeighborsClassifier : A classifier on this metric and on maps that are not linear.

    References
    ----------
    D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
    geometric approximation algorithms"; arXiv:1905.09989.

    L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and regression trees", 1984, section 3.4.3
    (the rule of one standard error).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lptml import LPTML_SupervisedCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LPTML_SupervisedCV(random_state=0).fit(X, y)
    >>> sorted(model.best_params_)
    ['constraints', 'map', 'n_components', 'prior', 'shrinkage', 'temperature']
    >>> model.best_score_ > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = cv_constraints(
        constraints=[str, list, tuple],
        maps=[list, tuple],
        n_constraints=[None, Interval(Integral, 1, None, closed="left")],
        n_neighbors=[Interval(Integral, 1, None, closed="left")],
    )

    def __init__(
        self,
        *,
        maps: Any = ("linear",),
        priors: Any = ("standardized", "within", "discriminant"),
        shrinkages: Any = (0.0, 0.5, 1.0),
        temperatures: Any = (0.15,),
        constraints: Any = "triplets",
        n_components: Any = None,
        cv: int = 3,
        n_repeats: int = 2,
        n_neighbors: int = 4,
        max_trials: int = 100,
        search_components: int | None = 6,
        epsilon: float = 0.5,
        objective: str = "trace",
        n_constraints: int | None = None,
        bounds: Any = "auto",
        class_weight: Any = None,
        time_limit: float | None = None,
        engine: Any = "local",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[..., Any] | None = None,
        preprocessor: Any = None,
    ) -> None:
        self.maps = maps
        self.priors = priors
        self.shrinkages = shrinkages
        self.temperatures = temperatures
        self.constraints = constraints
        self.n_components = n_components
        self.cv = cv
        self.n_repeats = n_repeats
        self.n_neighbors = n_neighbors
        self.max_trials = max_trials
        self.search_components = search_components
        self.epsilon = epsilon
        self.objective = objective
        self.n_constraints = n_constraints
        self.bounds = bounds
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, trust: Any = None) -> Self:
        """Choose the settings and learn the metric.

        Parameters
        ----------
        X : array-like (n_samples, n_features), or (n_samples,) of indices with a preprocessor
        y : array-like (n_samples,)
            Classes: numbers, strings or booleans; the number -1 marks an unlabelled point, which is left out.
        sample_weight : array-like (n_samples,), optional
            Weights of the points; a constraint weighs the product of those of its points.
        trust : array-like (n_samples,), optional
            Probability that each label is right, from 0 to 1, instead of the estimate of
            :func:`lptml.suspicion`; ones take all labels as they are.

        Returns
        -------
        self
        """
        self._validate_params()
        self._begin()
        kinds = [self.constraints] if isinstance(self.constraints, str) else [*self.constraints]
        check_names("constraints", kinds, tuple(KINDS))
        for kind in kinds:
            self._check_kind(kind)
        if not len(self.maps):
            raise ValueError("the list of values for maps is empty")
        for each in self.maps:
            check_map(each, "maps")
        settings = grid_of(map=[*self.maps], constraints=kinds, **self._values(priors.NAMES))
        data = self._labelled(X, y, sample_weight, trust, kinds)
        with single_threaded(len(data.rows) <= SMALL):
            others = self._compare(data, settings)
            best = self._learner(self.best_params_, **self._options(others))
            judged, start = data, None
            if not is_linear(best.map):
                mapping = map_of(best.map, data, self._number)
                data, start = through(data, mapping), mapping.metric
            best._start_clock()
            weighed = data.of_kind(best.constraints)
            L = best._prior_factor(best.prior, weighed)
            chosen = best._chosen(weighed, best.constraints, L)
            best.n_features_in_ = data.given.shape[1]
            given = {"X": data.given, "y": data.codes}
            learned = best._learn(chosen.source, start, given, L.T @ L, data.span, solve_support=not others)
            centred = data.X - data.X.mean(axis=0)
            metrics = self._while_time(others, self._metrics(data, others))
            learned = self._adopt_average(best, learned, metrics, chosen.source, centred, data.span)
            self.bounds_ = best.bounds_
            with Interrupts():
                self._settle_labelled(weighed, chosen, learned)
                if not is_linear(best.map):
                    settle(self, mapping, self.components_)
                    self._judged(judged)
        return self

    def _learner(self, setting: Setting, **options: Any) -> LPTML_Supervised:
        """An LPTML_Supervised with a setting of the grid and the options of this estimator."""
        handed_on = {name: getattr(self, name) for name in _OF_CONSTRAINTS}
        return LPTML_Supervised(**setting, **handed_on, **options)

    def _metrics(self, whole: Labelled, settings: list[Setting]) -> Iterator[Floats]:
        """The metric of every setting, learned without a search; one descent serves all shrinkages."""
        if len(whole.rows) < 2:  # a fold of two points: nothing can be learned from one
            yield from [np.eye(whole.points.shape[1])] * len(settings)
            return
        for _, group in groupby(settings, key=but_shrinkage):
            same = list(group)
            data = whole.of_kind(same[0]["constraints"])
            L = prior_factor(same[0]["prior"], data)
            prior = L.T @ L
            learned = None
            if any(setting["shrinkage"] < 1 for setting in same):
                learner = self._learner({**same[0], "shrinkage": 0.0}, random_state=self._number)
                learned, sample = learner._without_search(data, L)
            for setting in same:
                A = prior if learned is None else blend(sample, learned, prior, setting["shrinkage"])
                rank = setting["n_components"]
                yield A if rank is None else truncate(A, rank, standard_deviation(data.X))

    def _compare(self, data: Labelled, settings: list[Setting]) -> list[Setting]:
        """Cross-validate; return the good settings but the best."""
        rng = np.random.default_rng(0)  # dealt by the data alone, whose order is that of ``merge_rows``
        rows = np.arange(len(data.rows))
        if len(rows) > VALIDATED:
            rows = np.sort(rng.choice(rows, VALIDATED, replace=False))
        X, y = data.X[rows], data.y[rows]
        w = np.ones(len(rows)) if data.worth is None else data.worth[rows]

        def score_fold(train: Ints, test: Ints) -> Iterator[Floats]:
            part = data.take(rows[train])
            for _, group in groupby(settings, key=lambda setting: id(setting["map"])):
                same = [*group]
                if is_linear(same[0]["map"]):
                    factors, features = (psd_factor(A) for A in self._metrics(part, same)), X
                else:
                    mapping = map_of(same[0]["map"], part, self._number)
                    seen, features = through(part, mapping), mapping.transform(data.features[rows])
                    factors = (seen.span.map_outside(psd_factor(A)) for A in self._metrics(seen, same))
                for L in factors:
                    yield neighbour_share(L, features, y, w, train, test, self.n_neighbors)

        good = self._cross_validate(settings, y, w, score_fold, rng)
        chosen = self.best_params_["map"]
        self.cv_results_["averaged"] &= np.array([setting["map"] is chosen for setting in settings])
        return [setting for setting in good if setting["map"] is chosen]
