"""Nearest neighbours that vote by what their labels are worth."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lptml.constraints.span import span_of_points
from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.estimators.label_cleaner import choose
from lptml.points.priors import standardised

if TYPE_CHECKING:
    from lptml.noise.trust import Trust

__all__ = ["RobustKNeighborsClassifier"]


def check_mask(trusted: Any, n: int) -> NDArray[np.bool_]:
    """Booleans, one for each point."""
    mask = np.asarray(trusted)
    if mask.shape != (n,) or mask.dtype != bool:
        raise ValueError(f"trusted must be {n} booleans, got {mask.dtype} of shape {mask.shape}")
    return mask


def _likely(codes: NDArray[np.int64], trust: Trust) -> NDArray[np.int64]:
    """The most likely labels; those given if a class would vanish."""
    likely = trust.posterior.argmax(axis=1).astype(np.int64)
    return codes if len(np.unique(likely)) < len(np.unique(codes)) else likely


class RobustKNeighborsClassifier(ClassifierMixin, BaseEstimator):
    """Nearest neighbours that survive wrong labels: metric, cleaning and voting together.

    The labels are judged (:mod:`lptml.noise.trust`), :class:`lptml.LPTML_SupervisedCV` learns a metric from
    the most likely labels, and each neighbour votes for the classes with what is believed about it: a trusted
    point for its label, a suspect for the class that all other points see in it, a doubtful one for both in
    proportion. With labels that are all right this is k-NN under a good metric.

    Parameters
    ----------
    n_neighbors : int, default=4
        Voting neighbours; 4 as in the paper.
    weights : {"uniform", "distance"}, default="uniform"
        Whether nearer neighbours count more (by the inverse distance).
    metric_learner : None or estimator, default=None
        A transformer to learn the metric with, from the labels that are not suspects; by default
        :class:`lptml.LPTML_SupervisedCV`, from the most likely label of every point.
    n_suspects : "auto" or int, default="auto"
        By default every label counts as far as it is trusted. A number instead: that many labels, the most
        suspicious, are replaced by the most likely ones, all others are taken as they are.
    random_state : int, RandomState or None, default=None
        The same number gives the same classifier, bit for bit.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        L, the metric; the Mahalanobis matrix is L'L. Absent with ``metric_learner``.
    metric_learner_ : estimator
        The fitted metric learner; absent where there is just one class.
    suspicion_ : ndarray (n_samples,)
        Probability that each training label is wrong.
    suspects_ : ndarray of int
        Rows of the labels that are more likely wrong than right (or ``n_suspects`` of them), the most
        suspicious first.
    noise_rate_ : float
        Estimated share of wrong labels.
    beliefs_ : ndarray (n_samples, n_classes)
        What each training point votes.
    points_ : ndarray (n_samples, k)
        The training points, transformed.
    classes_ : ndarray
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.

    See Also
    --------
    LabelCleaner : Cleaning in front of any estimator.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"})],
        "metric_learner": [None, HasMethods(["fit", "transform"])],
        "n_suspects": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_neighbors: int = 4,
        *,
        weights: str = "uniform",
        metric_learner: Any = None,
        n_suspects: int | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric_learner = metric_learner
        self.n_suspects = n_suspects
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, trusted: Any = None) -> Self:
        """Judge the labels and choose the metric.

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
        from lptml.estimators._lptml import seed
        from lptml.noise.trust import trust_labels

        self._validate_params()
        points, labels = validate_data(self, X, y, dtype=np.float64)
        points = np.ascontiguousarray(points)
        _inputs.check_magnitude(points, "X")
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        if type_of_target(labels) not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {type_of_target(labels)}")
        self.classes_, inverse = np.unique(labels, return_inverse=True)
        codes = inverse.astype(np.int64)
        K = len(self.classes_)
        number = 0 if self.random_state is None else seed(self.random_state)
        sure = None if trusted is None else check_mask(trusted, len(points))
        trust = trust_labels(points, codes, K, trusted=sure, rng=np.random.default_rng(number))
        chosen = choose(trust.suspicion, codes, self.n_suspects)
        found = np.flatnonzero(chosen)
        self.suspicion_ = trust.suspicion
        self.suspects_ = found[np.argsort(-trust.suspicion[found], kind="stable")]
        self.noise_rate_ = float(trust.noise_rate)
        self.beliefs_ = trust.posterior
        if self.n_suspects != "auto":
            own = np.eye(K, dtype=bool)[codes]
            likely = np.eye(K)[np.where(own, -1.0, trust.probability).argmax(axis=1)]
            self.beliefs_ = np.where(chosen[:, None], likely, own.astype(np.float64))
        self._fit_metric(points, codes, trust, chosen, number)
        self.points_ = self._map(points)
        return self

    def _fit_metric(
        self,
        points: FloatArray,
        codes: NDArray[np.int64],
        trust: Trust,
        chosen: NDArray[np.bool_],
        number: int,
    ) -> None:
        from lptml.estimators.supervised_cv import LPTML_SupervisedCV

        if len(self.classes_) < 2:
            span = span_of_points(points)
            self.components_ = span.map_outside(standardised(span.coordinates(points)))
            return
        learner = self.metric_learner
        if learner is None:
            learner = LPTML_SupervisedCV(n_neighbors=self.n_neighbors, random_state=number)
            labels = _likely(codes, trust)  # numbers: -1 would stand for a point without a label
        else:
            points, labels = points[~chosen], self.classes_[codes[~chosen]]
        self.metric_learner_ = clone(learner).fit(points, labels)
        if self.metric_learner is None:
            self.components_ = self.metric_learner_.components_

    def _map(self, points: FloatArray) -> FloatArray:
        if self.metric_learner is not None:
            return np.asarray(self.metric_learner_.transform(points), dtype=np.float64)
        return points @ self.components_.T

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of the votes for each class.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        ndarray (n_samples, n_classes)
        """
        check_is_fitted(self, "points_")
        points = validate_data(self, X, dtype=np.float64, reset=False)
        count = min(self.n_neighbors, len(self.points_))
        finder = NearestNeighbors(n_neighbors=count).fit(self.points_)
        distance, nearest = finder.kneighbors(self._map(np.ascontiguousarray(points)))
        votes = self.beliefs_[nearest]  # (n, k, K)
        if self.weights == "distance":
            smallest = np.maximum(distance.min(axis=1, keepdims=True), 1e-300)
            votes = votes * (smallest / np.maximum(distance, smallest))[:, :, None]
        total = votes.sum(axis=1)
        return np.asarray(total / total.sum(axis=1, keepdims=True))

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
