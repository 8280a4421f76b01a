"""LPTML from labelled points: constraints from the labels, and a metric that violates few of them."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lptml._limits import Interrupts
from lptml._threads import SMALL, single_threaded
from lptml.constraints import ConstraintSet
from lptml.constraints.from_labels import KINDS
from lptml.constraints.scaling import representative
from lptml.estimators._callbacks import with_callbacks
from lptml.estimators._constraints import in_unit_scale
from lptml.estimators._inputs import FloatArray
from lptml.estimators._labelled import Labelled, SupervisedBase
from lptml.estimators._lptml import COMMON_CONSTRAINTS, PAIR_CONSTRAINTS, seed
from lptml.estimators._maps import fit_supervised, is_linear
from lptml.points import priors


class LPTML_Supervised(SupervisedBase):
    """Learn a Mahalanobis metric from points and their classes, some of which may be wrong.

    Each point shall be nearer to its neighbours of its own class than to those of other classes. The metric
    is searched for among those that violate few of these constraints (the paper's algorithm), refined by a
    bounded loss of every constraint's margin, and shrunk towards a metric that needs no search. A wrong
    label becomes violated constraints, none of which pays more than its weight, and the weight falls with the
    trust in its labels, so that it hardly bends the metric.

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
    constraints : {"triplets", "neighbors", "all"}, default="triplets"
        What the labels demand: that a point be nearer to its 3 nearest neighbours of its class than to the 10
        nearest of other classes, by a margin; that pairs of near neighbours be near or far; or that all
        pairs be. A triplet weighs the product of the trust in its three labels, one minus
        :func:`lptml.suspicion`, as do its points where the prior is found; pairs count alike, as in the
        paper. Where no class has two points there is no triplet, and the metric is the prior.
    n_constraints : int, optional
        Triplets (or pairs of each kind) to draw; all of them if not given. Beyond 4,000 points the triplets
        are those of 4,000 random ones.
    prior : {"discriminant", "within", "standardized", "identity"} or matrix, default="discriminant"
        The metric under which neighbours are looked for, from which refinement may start, and to which the
        result is shrunk: the one that makes the classes round and stretches the directions between their
        centres, the same without stretching, features divided by their standard deviations, or Euclidean.
    shrinkage : float in [0, 1], default=0.5
        How far to move the result towards the prior; 1 is the prior itself.
    temperature : float, default=0.15
        Width of the sigmoid that stands for the step from satisfied to violated, relative to the margin. 0
        minimises the number of violated constraints itself; a larger one asks for clear margins, which
        generalise better.
    bounds : "auto", float, (u, l) or ("percentile", a, b), default="auto"
        For pairs: how near similar ones must be (u) and how far apart dissimilar ones (l), left to the
        default, as the ratio u / l, as two distances, or at the a-th and b-th percentile of the training
        distances.
    refine : bool, default=True
        Whether to optimise the best metrics of the search locally; False is the paper's plain search, with
        ``temperature=0`` and ``shrinkage=0``.
    regularization : float, default=0
        eta: the cost is the violated weight plus eta <R, A>.
    regularizer : array-like (n_features, n_features), optional
        R, the identity if not given; refused while ``regularization`` is 0.
    n_components : int, optional
        Largest rank of the metric and number of rows of ``components_``; if not given, as many as features.
        Data with more features than points span fewer directions, and then there are no more rows than those.
    class_weight : None, "balanced" or dict, default=None
        For pairs: factors {1: a, -1: b} for the weights of similar and dissimilar ones; "balanced" gives both
        kinds the same total.
    approximate_counting : bool or "auto", default="auto"
        Whether to drop a candidate of the search as soon as a sequential test says that it cannot win; "auto"
        does so where there are many constraints. The cost of the result is exact in any case.
    time_limit : float, optional
        Seconds after which the best metric so far is taken; where that is too short for the prior, the
        standardised metric takes its place.
    engine : {"local", "dask", "spark"} or an engine, default="local"
        Where the trials of the search run.
    n_jobs : int, optional
        Trials at the same time on the local engine, as in joblib; the result does not depend on it.
    map : {"linear", "relu", "nystroem", "forest"}, map or transformer, default="linear"
        What the points go through before the metric: nothing; a hidden layer trained on the same
        constraints; Gaussian basis functions; leaves of a forest grown on the labels; a map of
        :mod:`lptml.maps`, or any transformer of scikit-learn. Matrices among the options are then about the
        features of the map.
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
        Number of the given constraints that the metric violates.
    violation_rate_ : float
        Share of their weight.
    trivial_rate_ : float
        The same for the better of the two trivial metrics, A = 0 and A without limit.
    lower_bound_ : float or None
        No metric has a smaller rate; None where a tenth of the time of the fit would not tell: ask
        :meth:`certify`.
    support_ : ndarray (k, 2) or (k, 3) of int
        Rows of the points of the constraints that hold in place the metric of least trace which satisfies
        what this one satisfies; none beyond 16 features, where that takes long.
    bounds_ : (float, float) or None
        The bounds (u, l) of pairs; None for triplets, whose margin is one.
    history_ : tuple of (seconds, rate, trials)
        The violated share of the weight after each improvement, and the trials done by then; the last entry
        is the metric returned, which at a positive temperature may violate more than the one before.
    n_trials_, n_infeasible_ : int
        Samples that the search solved, and how many of them were infeasible.
    n_iter_ : int
        The same as ``n_trials_``, at least 1.
    status_ : str
        Why learning ended.
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
    lptml.LPTML_SupervisedCV : The same, with prior and shrinkage chosen by cross-validation.
    LPTML : From pairs.
    lptml.LabelCleaner : Find, drop or correct wrong labels.

    References
    ----------
    D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
    geometric approximation algorithms"; arXiv:1905.09989.

    K. Q. Weinberger, L. K. Saul, "Distance metric learning for large margin nearest neighbor
    classification", Journal of Machine Learning Research 10, 2009 (target neighbours and impostors).

    V. J. Yohai, "High breakdown-point and high efficiency robust estimates for regression", Annals of
    Statistics 15, 1987 (MM-estimation).

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
        "constraints": [StrOptions(set(KINDS))],
        "n_constraints": [None, Interval(Integral, 1, None, closed="left")],
        "prior": [StrOptions(set(priors.NAMES)), "array-like"],
    }

    def __init__(
        self,
        *,
        max_trials: int = 100,
        search_components: int | None = 6,
        epsilon: float = 0.5,
        objective: str = "trace",
        constraints: str = "triplets",
        n_constraints: int | None = None,
        prior: Any = "discriminant",
        shrinkage: float = 0.5,
        temperature: float = 0.15,
        bounds: Any = "auto",
        refine: bool = True,
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
        self.constraints = constraints
        self.n_constraints = n_constraints
        self.prior = prior
        self.shrinkage = shrinkage
        self.temperature = temperature
        self.bounds = bounds
        self.refine = refine
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
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        trust: Any = None,
        initial_metric: Any = None,
    ) -> Self:
        """Learn the metric.

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
        initial_metric : array-like (n_features, n_features), optional
            A metric to start from as well; at temperature 0 and without shrinkage the result never costs
            more.

        Returns
        -------
        self
        """
        self._validate_params()
        self._start_clock()
        self._check_kind(self.constraints)
        if not is_linear(self.map):
            fit_supervised(self, X, y, sample_weight, trust, initial_metric)
            return self
        data = self._labelled(X, y, sample_weight, trust, [self.constraints])
        with single_threaded(len(data.rows) <= SMALL):
            L = self._prior_factor(self.prior, data)
            chosen = self._chosen(data, self.constraints, L)
            learned = self._learn(
                chosen.source, initial_metric, {"X": data.given, "y": data.codes}, L.T @ L, data.span
            )
            with Interrupts():
                self._settle_labelled(data, chosen, learned)
        return self

    def _without_search(self, data: Labelled, L: FloatArray) -> tuple[FloatArray, ConstraintSet]:
        """The metric that refinement alone learns, and the constraints or a sample of them."""
        from lptml.learn import learn  # compiled code is loaded by the first fit, not by the import

        number = seed(self.random_state)
        source = self._chosen(data, self.constraints, L).source
        unit, factor = in_unit_scale(source)
        learned = learn(
            unit,
            max_trials=0,
            temperature=self.temperature,
            prior=L.T @ L / factor,
            n_components=data.span.rank(self.n_components),
            random_state=number,
            solve_support=False,
        )
        if learned.status.name == "INTERRUPTED":  # what is compared must be whole
            raise KeyboardInterrupt
        return learned.A * factor, representative(source, np.random.default_rng(number))
