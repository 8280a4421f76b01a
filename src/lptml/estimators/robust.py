"""Nearest neighbours under several maps that vote by what their labels are worth."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lptml._threads import SMALL, single_threaded
from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.estimators._lptml import seed
from lptml.estimators.label_cleaner import choose
from lptml.estimators.supervised import LPTML_Supervised
from lptml.estimators.supervised_cv import LPTML_SupervisedCV
from lptml.maps.calibration import calibrate, sharpened
from lptml.maps.forest import grow
from lptml.maps.votes import LeafVotes, NearestVotes, RidgeVotes, Voter, restore
from lptml.noise.trust import Trust, trust_labels

#: Neighbours, least squares penalties and least sizes of a leaf: the out-of-sample likelihood chooses.
NEIGHBORS = (5, 9, 15, 30, 60)
RIDGES = (0.1, 0.5, 2.0)
LEAVES = (1, 3, 6)
MAPS = ("linear", "nystroem", "forest", "relu")


class RobustKNeighborsClassifier(ClassifierMixin, BaseEstimator):
    """Nearest neighbours under several maps, each a metric, that survive wrong labels; their votes averaged.

    Under each map every training point votes with its label, near ones most. How smooth the votes are, and
    how they become probabilities, is chosen by how likely they make the labels of the points that they leave
    out, where a share of these labels may be wrong; then each label votes with the probability that it is
    right (:func:`lptml.suspicion`), and the probabilities of all maps are averaged.

    The maps are

    - ``"linear"``: the metric of :class:`lptml.LPTML_SupervisedCV`; the nearest neighbours, weighted by a
      Gaussian of their distance,
    - ``"nystroem"``: Gaussian radial basis functions; kernel ridge regression, whose predictions are weighted
      votes of all points,
    - ``"forest"``: leaves of extremely randomised trees; the points in the same leaves, which is the forest's
      own vote,
    - ``"relu"``: a hidden layer learned by :class:`lptml.LPTML_Supervised`; neighbours as for "linear".

    Parameters
    ----------
    n_neighbors : "auto" or int, default="auto"
        Voting neighbours under "linear" and "relu": chosen among 5, 9, 15, 30 and 60 for each, or this many.
        With ``maps=("linear",)`` and ``weights="uniform"`` it is the k of a k-nearest-neighbours classifier.
    weights : {"gaussian", "uniform", "distance"}, default="gaussian"
        How these neighbours count: by a Gaussian of the distance whose standard deviation is half that of the
        farthest, alike, or by the inverse distance.
    maps : tuple of str, default=("linear", "nystroem", "forest")
        The maps, one or several. All count alike: to leave out those that are behind in the validation lost
        .3 to 1.2 points on the 13 development sets of docs/maps.md.
    metric_learner : None or estimator, default=None
        A transformer to take in place of the metric of "linear".
    n_suspects : "auto" or int, default="auto"
        By default every label counts as far as it is trusted. A number instead: that many labels, the most
        suspicious, are replaced by the most likely ones, all others are taken as they are.
    random_state : int, RandomState or None, default=None
        The same number gives the same classifier, bit for bit.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        L, the metric of "linear"; the Mahalanobis matrix is L'L. Absent with ``metric_learner`` or without
        that map.
    metric_learner_ : estimator
        The fitted metric learner of "linear"; absent where there is just one class.
    relu_learner_ : LPTML_Supervised
        The learner of "relu".
    map_scores_ : dict of float
        Mean log-likelihood of the training labels under each map, out of sample.
    n_neighbors_ : dict of int
        The neighbours of "linear" and "relu".
    suspicion_ : ndarray (n_samples,)
        Probability that each training label is wrong: :func:`lptml.suspicion` of the training data.
    suspects_ : ndarray of int
        Rows of the labels that are more likely wrong than right (or ``n_suspects`` of them), the most
        suspicious first.
    noise_rate_, noise_interval_ : float, tuple of two floats
        Estimated share of wrong labels, and where it lies with a probability of 90%.
    can_judge_ : bool
        Whether the features tell so much about the labels that most wrong ones would be seen.
    beliefs_ : ndarray (n_samples, n_classes)
        What each training point votes.
    voters_, sharpness_ : dict
        What judges new points under each map, and the power that makes probabilities of its votes.
    classes_ : ndarray
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.

    See Also
    --------
    LabelCleaner : Cleaning in front of any estimator.

    References
    ----------
    Y. Lin, Y. Jeon, "Random forests and adaptive nearest neighbors", Journal of the American Statistical
    Association 101, 2006.

    C. Scott, G. Blanchard, G. Handy, "Classification with asymmetric label noise: consistency and maximal
    denoising", Conference on Learning Theory, 2013 (what can be told about the share of wrong labels).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lptml import RobustKNeighborsClassifier
    >>> from lptml.noise import flip_labels
    >>> X, y = load_wine(return_X_y=True)
    >>> noisy = flip_labels(y[::2], 0.2, random_state=0).labels
    >>> model = RobustKNeighborsClassifier(random_state=0).fit(X[::2], noisy)
    >>> model.score(X[1::2], y[1::2]) > 0.93
    True
    """

    suspicion_: FloatArray
    beliefs_: FloatArray
    suspects_: NDArray[np.intp]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"gaussian", "uniform", "distance"})],
        "maps": [tuple, list],
        "metric_learner": [None, HasMethods(["fit", "transform"])],
        "n_suspects": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        *,
        weights: str = "gaussian",
        maps: Any = ("linear", "nystroem", "forest"),
        metric_learner: Any = None,
        n_suspects: int | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.maps = maps
        self.metric_learner = metric_learner
        self.n_suspects = n_suspects
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, trusted: Any = None) -> Self:
        """Learn the maps, judge the labels, and calibrate the votes.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        y : array-like (n_samples,)
            Classes of any type, some of them possibly wrong.
        trusted : array-like of bool (n_samples,), optional
            Labels that are known to be right, for example from a review
            (:func:`lptml.report.corrections.trusted_rows`): they vote for themselves, and others are judged
            by them.

        Returns
        -------
        self
        """
        self._validate_params()
        self._check_maps()
        points, labels = _inputs.points_and_labels(self, X, y)
        self.classes_, inverse = np.unique(labels, return_inverse=True)
        codes = inverse.astype(np.int64)
        sure = None if trusted is None else _inputs.check_mask(trusted, len(points))
        number = 0 if self.random_state is None else seed(self.random_state)
        # The same classifier, whatever the order of the rows.
        order = np.lexsort((np.zeros(len(points)) if sure is None else sure, codes, *points.T[::-1]))
        with single_threaded(len(points) <= SMALL):
            self._fit_votes(points[order], codes[order], None if sure is None else sure[order], number)
        back = np.argsort(order)
        self.suspicion_, self.beliefs_ = self.suspicion_[back], self.beliefs_[back]
        self.suspects_ = order[self.suspects_]
        return self

    def _check_maps(self) -> None:
        names = [*self.maps]
        if not names or len(set(names)) < len(names) or not set(names) <= set(MAPS):
            raise ValueError(f"maps must be different names among {', '.join(MAPS)}; got {self.maps!r}")
        if self.metric_learner is not None and "linear" not in names:
            raise ValueError('metric_learner has no effect: maps does not contain "linear"')

    def _fit_votes(
        self, points: FloatArray, codes: NDArray[np.int64], sure: NDArray[np.bool_] | None, number: int
    ) -> None:
        K = len(self.classes_)
        self.voters_, self.map_scores_, self.n_neighbors_, self.sharpness_ = {}, {}, {}, {}
        found = trust_labels(points, codes, K, trusted=sure, rng=np.random.default_rng(number))
        self._believe(found, sure)
        if K < 2:  # nothing to choose from
            return
        own = np.eye(K)[codes]
        for name in self.maps:
            heard = [
                (calibrate(voter.among(own), codes), voter)
                for voter in self._voters(name, points, codes, number)
            ]
            best, voter = max(heard, key=lambda each: each[0].score)
            self.map_scores_[name], self.sharpness_[name] = best.score, best.sharpness
            self.voters_[name] = voter.settled(self.beliefs_).arrays()
            if isinstance(voter, NearestVotes):
                self.n_neighbors_[name] = voter.k

    def _believe(self, found: Trust, sure: NDArray[np.bool_] | None) -> None:
        """What each training point votes, from what was found about the labels."""
        self.suspicion_, self.noise_rate_ = found.suspicion, found.noise_rate
        self.noise_interval_, self.can_judge_ = found.noise_interval, found.can_judge
        chosen = choose(found.suspicion, found.codes, self.n_suspects, sure)
        rows = np.flatnonzero(chosen)
        self.suspects_ = rows[np.argsort(-found.suspicion[rows], kind="stable")]
        own = np.eye(len(self.classes_))[found.codes]
        self.beliefs_ = own * found.trust[:, None]
        if self.n_suspects != "auto":
            self.beliefs_ = np.where(chosen[:, None], np.eye(len(self.classes_))[found.suggested], own)

    def _voters(self, name: str, points: FloatArray, codes: NDArray[np.int64], number: int) -> list[Voter]:
        """The voters under a map, one for each degree of smoothing."""
        if name == "nystroem":
            return [*RidgeVotes.of(points, RIDGES, number)]
        if name == "forest":
            own = np.eye(len(self.classes_))[codes]
            grown = [grow(points, own, None, min_leaf=size, seed=number) for size in LEAVES]
            return [LeafVotes(each.trees, each.trees.leaves(points), each.left_out) for each in grown]
        learner = self._learner(name, number)
        if self.metric_learner is not None:
            learner.fit(points, self.classes_[codes])
        elif name == "linear":  # the votes weigh the labels: the metric takes them as they are
            learner.fit(points, codes, trust=np.ones(len(codes)))
        else:
            learner.fit(points, codes)
        if name == "linear":
            self.metric_learner_ = learner
            if self.metric_learner is None:
                self.components_ = learner.components_
        else:
            self.relu_learner_ = learner
        ks = NEIGHBORS if self.n_neighbors == "auto" else (int(self.n_neighbors),)
        return [*NearestVotes.of(np.asarray(learner.transform(points), dtype=np.float64), ks, self.weights)]

    def _learner(self, name: str, number: int) -> Any:
        if name == "linear":
            if self.metric_learner is not None:
                return clone(self.metric_learner)
            return LPTML_SupervisedCV(random_state=number)
        return LPTML_Supervised(map=name, random_state=number)

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities of the classes.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        ndarray (n_samples, n_classes)
        """
        check_is_fitted(self, "voters_")
        points = _inputs.points_of(self, X)
        if not self.voters_:
            return np.ones((len(points), 1))
        total = np.zeros((len(points), len(self.classes_)))
        for name, state in self.voters_.items():
            voter = restore(state, points.shape[1], len(self.classes_))
            votes = voter.about(self._image(name, points))
            total += sharpened(votes, self.sharpness_[name]) / len(self.voters_)
        return total

    def _image(self, name: str, points: FloatArray) -> FloatArray:
        if name == "linear" and self.metric_learner is None:
            return points @ self.components_.T
        if name in ("linear", "relu"):
            learner = self.metric_learner_ if name == "linear" else self.relu_learner_
            return np.asarray(learner.transform(points), dtype=np.float64)
        return points

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with most votes; the first of equals.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        ndarray (n_samples,)
        """
        votes = self.predict_proba(X)
        return np.asarray(self.classes_[votes.argmax(axis=1)])
