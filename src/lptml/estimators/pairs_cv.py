"""LPTML from pairs with temperature, prior, shrinkage and rank chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar, Self

import numpy as np

from lptml._limits import Interrupts
from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.constraints.scaling import blend, feature_scale, representative, truncate
from lptml.constraints.span import Span
from lptml.estimators._constraints import in_unit_scale
from lptml.estimators._cv import CVMixin, but_shrinkage, cv_constraints
from lptml.estimators.pairs import LPTML, PairsBase
from lptml.select.cross_validation import Setting, grid_of

#: Pairs that settings are compared on; of more pairs these are drawn.
VALIDATED = 20_000


class LPTMLCV(CVMixin, PairsBase):
    """:class:`LPTML` with temperature, prior, shrinkage and rank chosen by cross-validation.

    Every combination of the lists below is learned without a fold of the pairs and scored on it: the score of
    a pair is the log-likelihood of its label, at the temperature of the combination, with the share of
    labels that are wrong at any distance estimated on the other folds. The metric is the plain average of
    all combinations within one standard error of the best (of the paired difference), each learned again from
    all pairs. As in scikit-learn, the folds do not depend on ``random_state``; nor do they depend on the
    order of the pairs.

    Parameters
    ----------
    temperatures : list of float, default=(0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005)
        Values of ``temperature`` to try; see :class:`LPTML`. 0 is the count of violated pairs, and takes
        about twenty times as long.
    priors : list, default=("standardized",)
        Values of ``prior`` to try.
    shrinkages : list of float, default=(0.0,)
        Values of ``shrinkage`` to try; 1 is the prior itself, without learning.
    n_components : int, None or list, default=None
        Largest ranks of the metric to try.
    cv : int, default=5
        Folds of each deal.
    n_repeats : int, default=1
        How often the pairs are dealt.
    max_trials : int, default=100
        Random samples that the search solves exactly for the best setting; the others, and the fits of the
        cross-validation, start from their priors.
    search_components : int or None, default=6
        See :class:`LPTML`.
    epsilon : float, default=0.5
        Resolution of the search's grid of sampling rates, p = (1 + epsilon)^-i.
    objective : {"trace", "random", "prior"}, default="trace"
        What a sample's metric minimises.
    bounds : "auto", float, (u, l) or ("percentile", a, b), default="auto"
        See :class:`LPTML`.
    class_weight : None, "balanced" or dict, default=None
        Factors {1: a, -1: b} for the weights of similar and dissimilar pairs; "balanced" gives both kinds the
        same total.
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
    cv_results_ : dict of arrays
        ``params`` and ``param_...`` of every setting, its ``mean_test_score``, ``std_test_score`` (over the
        folds), ``rank_test_score``, ``standard_error`` of its difference from the best, and whether it is
        ``averaged``.
    best_params_ : dict
        The setting of largest mean score.
    best_index_ : int
    best_score_ : float
    n_violations_, violation_rate_, trivial_rate_, lower_bound_, support_, bounds_, threshold_, history_
        As in :class:`LPTML`, about this metric.
    n_trials_, n_infeasible_, n_iter_, status_
        Of the search and refinement with ``best_params_``.
    suspicion_ : ndarray (n_pairs,)
        Probability that each pair's label is wrong; see :func:`lptml.noise.suspects.pair_suspicion`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.

    See Also
    --------
    LPTML : One setting.

    References
    ----------
    D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
    geometric approximation algorithms"; arXiv:1905.09989.

    L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and regression trees", 1984, section 3.4.3
    (the rule of one standard error).

    Examples
    --------
    >>> import numpy as np
    >>> from lptml import LPTMLCV
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(300, 2, 3))
    >>> near = abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1  # just the first feature matters
    >>> y = np.where(near ^ (rng.random(300) < 0.1), 1, -1)  # a tenth of the labels are wrong
    >>> model = LPTMLCV(random_state=0).fit(pairs, y)
    >>> bool(np.mean(model.predict(pairs) == np.where(near, 1, -1)) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = cv_constraints()

    def __init__(
        self,
        *,
        temperatures: Any = (0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005),
        priors: Any = ("standardized",),
        shrinkages: Any = (0.0,),
        n_components: Any = None,
        cv: int = 5,
        n_repeats: int = 1,
        max_trials: int = 100,
        search_components: int | None = 6,
        epsilon: float = 0.5,
        objective: str = "trace",
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
        self.temperatures = temperatures
        self.priors = priors
        self.shrinkages = shrinkages
        self.n_components = n_components
        self.cv = cv
        self.n_repeats = n_repeats
        self.max_trials = max_trials
        self.search_components = search_components
        self.epsilon = epsilon
        self.objective = objective
        self.bounds = bounds
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.preprocessor = preprocessor

    def fit(
        self,
        pairs: Any,
        y: Any,
        calibration_params: Mapping[str, Any] | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Choose the settings and learn the metric.

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

        Returns
        -------
        self
        """
        self._validate_params()
        self._begin()
        settings = grid_of(**self._values(("identity", "standardized", "within")))
        data = self._compared(pairs, y, calibration_params, sample_weight)
        source, span = data.inside, data.span
        others = self._compare(source, span, settings)
        best = LPTML(**self.best_params_, **self._options(others))
        best._start_clock()
        best.n_features_in_ = self.n_features_in_
        prior = best._prior(source, span, self.n_features_in_)
        given = {"X": data.points, "y": data.labels}
        learned = best._learn(source, None, given, prior, span, solve_support=not others)
        metrics = self._while_time(others, self._metrics(source, span, others))
        learned = self._adopt_average(best, learned, metrics, source, None, span)
        with Interrupts():
            self._settle_pairs(data, learned, calibration_params)
        return self

    def _metrics(self, source: ConstraintSet, span: Span, settings: list[Setting]) -> Iterator[Floats]:
        """The metric of every setting, learned without a search; one descent serves all shrinkages."""
        from lptml.learn import learn
        from lptml.refine.starts import standardised

        unit, factor = in_unit_scale(source)
        assert isinstance(unit, ConstraintSet), "pairs in memory"
        sample = representative(unit, np.random.default_rng(self._number))
        for _, group in groupby(settings, key=but_shrinkage):
            same = list(group)
            given = LPTML(prior=same[0]["prior"])._prior(source, span, self.n_features_in_)
            start = None if given is None else given / factor
            prior = standardised(sample) if start is None else start
            learned = prior
            if any(setting["shrinkage"] < 1 for setting in same):
                found = learn(
                    unit,
                    max_trials=0,
                    temperature=same[0]["temperature"],
                    prior=start,
                    n_components=span.rank(same[0]["n_components"]),
                    random_state=self._number,
                    solve_support=False,
                )
                if found.status.name == "INTERRUPTED":  # what is compared must be whole
                    raise KeyboardInterrupt
                learned = found.A
            for setting in same:
                A, rank = learned, setting["n_components"]
                if setting["shrinkage"] > 0:
                    A = blend(sample, learned, prior, setting["shrinkage"])
                    A = A if rank is None else truncate(A, rank, feature_scale(sample))
                    A = A * (unit.best_scale(A).scale or 1.0)
                yield A * factor

    def _compare(self, source: ConstraintSet, span: Span, settings: list[Setting]) -> list[Setting]:
        """Cross-validate; return the good settings but the best."""
        from lptml.learn.mixture import log_likelihood, share_of_coins

        rng = np.random.default_rng(0)  # dealt by the data alone, whose order is that of ``merge_rows``
        rows = np.arange(source.n)
        if source.n > VALIDATED:
            rows = np.sort(rng.choice(rows, VALIDATED, replace=False))
        some = source.take(rows)

        def score_fold(train: Ints, test: Ints) -> Iterator[Floats]:
            seen, unseen = some.take(train), some.take(test)
            for setting, A in zip(settings, self._metrics(seen, span, settings)):
                T = setting["temperature"]
                yield log_likelihood(unseen, A, T, share_of_coins(seen, A, T))

        kinds = (some.sign < 0).astype(np.int64)
        return self._cross_validate(settings, kinds, some.weight, score_fold, rng)
