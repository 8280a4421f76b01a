"""LPTML from triplets: the metric that violates the least weight of comparisons between distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from lptml._limits import Interrupts
from lptml.estimators import _inputs
from lptml.estimators._callbacks import with_callbacks
from lptml.estimators._constraints import comparisons, merge_rows, one_direction, spanned
from lptml.estimators._inputs import FloatArray
from lptml.estimators._lptml import LPTMLBase
from lptml.estimators._maps import fit_triplets, is_linear
from lptml.estimators._suspicion import share_of_first
from lptml.estimators.base import TripletsMixin


class LPTML_Triplets(TripletsMixin, LPTMLBase):
    """Learn a Mahalanobis metric from triplets, some of which may be wrong.

    A triplet (a, b, c) says that a is closer to b than to c. The metric violates as few as can be
    found of the constraints d2(a, b) + 1 <= d2(a, c), in squared distances.

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
    refine : bool, default=True
        Whether to optimise the best metrics of the search locally; False is the paper's plain search, with
        ``temperature=0``.
    temperature : float, default=0
        Width of the sigmoid that stands for the step from satisfied to violated, relative to the largest
        bound. 0 minimises the number of violated constraints itself; a larger one asks for clear margins,
        which is better under noise near the boundary, and no constraint ever pays more than its weight.
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
        Number of the given triplets that the metric violates.
    violation_rate_ : float
        Share of their weight.
    trivial_rate_ : float
        The same for the better of the two trivial metrics, A = 0 and A without limit.
    lower_bound_ : float or None
        No metric has a smaller rate; None where a tenth of the time of the fit would not tell: ask
        :meth:`certify`.
    support_ : ndarray of int
        Numbers of the triplets that hold the metric in place.
    history_ : tuple of (seconds, rate, trials)
        The least violated share of the weight after each improvement, and the trials done by then.
    n_trials_, n_infeasible_ : int
        Samples that the search solved, and how many of them were infeasible.
    n_iter_ : int
        The same as ``n_trials_``, at least 1.
    status_ : str
        Why learning ended.
    suspicion_ : ndarray (n_triplets,)
        How strongly the metric contradicts each triplet, from 0 to 1.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.

    References
    ----------
    D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
    geometric approximation algorithms"; arXiv:1905.09989.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml import LPTML_Triplets
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(300, 3, 2))
    >>> a, b, c = points[:, :, 0].T  # just the first feature matters
    >>> points[abs(a - b) > abs(a - c)] = points[abs(a - b) > abs(a - c)][:, [0, 2, 1]]
    >>> model = LPTML_Triplets(random_state=0).fit(points)
    >>> model.score(points) > 0.95
    True
    """

    def __init__(
        self,
        *,
        max_trials: int = 100,
        search_components: int | None = 6,
        epsilon: float = 0.5,
        objective: str = "trace",
        refine: bool = True,
        temperature: float = 0.0,
        prior: Any = "standardized",
        shrinkage: float = 0.0,
        regularization: float = 0.0,
        regularizer: Any = None,
        n_components: int | None = None,
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
        self.refine = refine
        self.temperature = temperature
        self.prior = prior
        self.shrinkage = shrinkage
        self.regularization = regularization
        self.regularizer = regularizer
        self.n_components = n_components
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
        triplets: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        initial_metric: Any = None,
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        triplets : array-like (n_triplets, 3, n_features), or (n_triplets, 3) of indices with a preprocessor
        y : array-like (n_triplets,), optional
            +1 where a triplet (a, b, c) is in the right order, -1 where it is (a, c, b); all +1 if not given.
        sample_weight : array-like (n_triplets,), optional
            What violating each triplet costs.
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
            fit_triplets(self, triplets, y, sample_weight, initial_metric)
            return self
        points = self._start_tuples(triplets)
        n, _, d = points.shape
        self._check_options(d)
        weight = _inputs.check_weight(sample_weight, n)
        if y is not None:
            reverse = _inputs.check_pair_labels(y, n) == -1
            points = points.copy()
            points[reverse, 1:] = points[reverse, :0:-1]
        differences = points[:, 1:] - points[:, :1]  # (n, 2, d): to the nearer, to the farther
        near, far = one_direction(differences[:, 0]), one_direction(differences[:, 1])
        first, total, _ = merge_rows(np.hstack([near, far]), np.ones(n), weight)
        source = comparisons(near[first], far[first], total)
        span, inside = spanned(source, points, weight)
        prior = self._prior(inside, span, source.d)
        learned = self._learn(inside, initial_metric, {"X": points, "y": None}, prior, span)
        with Interrupts():
            given = comparisons(near, far, weight)
            self._report_tuples(learned, span, given, weighed=weight is not None)
            self.support_ = first[learned.support]
            self._remember(near, far)
        return self

    def _judge(self, near: FloatArray, far: FloatArray) -> FloatArray:
        squares = [((V @ self._live_components().T) ** 2).sum(axis=1) for V in (near, far)]
        return share_of_first(*squares)
