"""Cleaning in front of any estimator: find wrong labels, drop or correct them, fit to the rest."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.estimators._lptml import seed
from lptml.noise.pair_suspects import judge_pairs
from lptml.noise.trust import Trust, trust_labels


def choose(
    suspicion: FloatArray,
    codes: NDArray[np.int64],
    n_suspects: int | str,
    trusted: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Which labels to act on; trusted ones stay, and the least suspicious of every class.

    Examples
    --------
    >>> choose(np.array([0.9, 0.1, 0.8, 0.7]), np.array([0, 0, 1, 1]), "auto")
    array([ True, False,  True, False])
    """
    protected = np.zeros(len(codes), dtype=bool) if trusted is None else trusted.copy()
    order = np.argsort(suspicion, kind="stable")
    protected[order[np.unique(codes[order], return_index=True)[1]]] = True
    allowed = ~protected
    if n_suspects == "auto":
        return np.asarray(allowed & (suspicion > 0.5))
    ranked = order[::-1][allowed[order[::-1]]][: int(n_suspects)]
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[ranked] = True
    return chosen


def _has(name: str) -> Any:
    """Condition of a delegated method: the estimator, fitted or not, has it."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return available_if(check)


class LabelCleaner(MetaEstimatorMixin, BaseEstimator):
    """Find wrong labels, drop or correct them, and fit an estimator to the rest.

    Works with any classifier or metric learner: points with classes (:func:`lptml.suspicion`), and, for
    learners from pairs such as :class:`lptml.LPTML`, pairs that are called similar or not
    (:func:`lptml.noise.suspects.pair_suspicion`).

    Parameters
    ----------
    estimator : estimator
        What to fit to the cleaned labels; it is cloned.
    action : {"drop", "correct"}, default="drop"
        Leave suspects out, or give them the most likely label.
    n_suspects : "auto" or int, default="auto"
        How many labels to act on: those more likely wrong than right, or this many, the most suspicious
        first. The most trusted label of each class always stays.
    random_state : int, RandomState or None, default=None
        Passed on to the search for suspects; the same number gives the same result.

    Attributes
    ----------
    estimator_ : estimator
        The one fitted to the cleaned labels.
    suspicion_ : ndarray (n_samples,)
        Probability that each label is wrong.
    suspects_ : ndarray of int
        Rows that were dropped or corrected, the most suspicious first.
    labels_ : ndarray (n_samples,)
        The labels; with ``action="correct"`` after correction.
    noise_rate_, noise_interval_ : float, tuple of two floats
        Estimated share of wrong labels, and where it lies with a probability of 90%.
    can_judge_ : bool
        Whether the features tell so much about the labels that most wrong ones would be seen.
    classes_ : ndarray
        The labels met.
    n_features_in_ : int

    See Also
    --------
    RobustKNeighborsClassifier : Metric, cleaning and voting in one.

    References
    ----------
    C. Scott, G. Blanchard, G. Handy, "Classification with asymmetric label noise: consistency and maximal
    denoising", Conference on Learning Theory, 2013 (what can be told about the share of wrong labels).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from lptml import LabelCleaner
    >>> X, y = load_iris(return_X_y=True)
    >>> noisy = y.copy()
    >>> noisy[[3, 80, 120]] = [1, 2, 0]
    >>> cleaner = LabelCleaner(KNeighborsClassifier(), action="correct").fit(X, noisy)
    >>> sorted(cleaner.suspects_.tolist()), cleaner.labels_[[3, 80, 120]].tolist()
    ([3, 80, 120], [0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"])],
        "action": [StrOptions({"drop", "correct"})],
        "n_suspects": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        action: str = "drop",
        n_suspects: int | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.action = action
        self.n_suspects = n_suspects
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, trusted: Any = None, **fit_params: Any) -> Self:
        """Find the suspects and fit the estimator to the cleaned labels.

        Parameters
        ----------
        X : array-like (n_samples, n_features), or pairs (n_pairs, 2, n_features)
        y : array-like (n_samples,)
            Classes; for pairs +1 (similar) and -1 (dissimilar).
        trusted : array-like of bool (n_samples,), optional
            Labels of points that are known to be right, for example from a review: they stay, and others are
            judged by them. Not for pairs.
        **fit_params
            Passed to the estimator's ``fit``; arrays of length n_samples lose the dropped rows.

        Returns
        -------
        self
        """
        self._validate_params()
        if y is None:
            raise ValueError("LabelCleaner requires y to be passed, but the target y is None")
        if np.asarray(X).ndim == 3:
            if trusted is not None:
                raise ValueError("trusted is about labels of points: it must be None for pairs")
            given = np.asarray(X)
            labels = _inputs.check_pair_labels(y, len(given)).astype(np.int64)
            found: Trust = judge_pairs(given, labels, random_state=self._seed())
            self.n_features_in_ = given.shape[2]
            self.classes_ = np.unique(labels)
            likely = -labels  # the other label
        else:
            given, labels = _inputs.points_and_labels(self, X, y, min_samples=2)
            self.classes_, codes = np.unique(labels, return_inverse=True)
            rng = np.random.default_rng(self._seed())
            sure = None if trusted is None else _inputs.check_mask(trusted, len(given))
            found = trust_labels(given, codes.astype(np.int64), len(self.classes_), trusted=sure, rng=rng)
            likely = self.classes_[found.suggested]
        chosen = choose(found.suspicion, found.codes, self.n_suspects, found.trusted)
        self.suspicion_ = found.suspicion
        self.noise_rate_, self.noise_interval_ = found.noise_rate, found.noise_interval
        self.can_judge_ = found.can_judge
        self.suspects_ = np.argsort(-np.where(chosen, found.suspicion, -1.0), kind="stable")[: chosen.sum()]
        self.labels_ = np.where(chosen & (self.action == "correct"), likely, labels).astype(labels.dtype)
        rows = np.arange(len(labels)) if self.action == "correct" else np.flatnonzero(~chosen)
        kept = {
            name: np.asarray(value)[rows] if np.ndim(value) and len(value) == len(labels) else value
            for name, value in fit_params.items()
            if value is not None
        }
        self.estimator_ = clone(self.estimator).fit(_rows(X, given, rows), self.labels_[rows], **kept)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _seed(self) -> int:
        return 0 if self.random_state is None else seed(self.random_state)

    @_has("predict")
    def predict(self, X: Any) -> Any:
        """Predict with the fitted estimator."""
        return self._fitted().predict(X)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities of the fitted estimator."""
        return self._fitted().predict_proba(X)

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Decision function of the fitted estimator."""
        return self._fitted().decision_function(X)

    @_has("transform")
    def transform(self, X: Any) -> Any:
        """Transform with the fitted estimator."""
        return self._fitted().transform(X)

    @_has("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the features that ``transform`` returns."""
        return self._fitted().get_feature_names_out(input_features)

    @_has("score")
    def score(self, X: Any, y: Any, **params: Any) -> float:
        """Score of the fitted estimator."""
        return float(self._fitted().score(X, y, **params))

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.transformer_tags = inner.transformer_tags
        tags.target_tags.required = True
        tags.input_tags.three_d_array = inner.input_tags.three_d_array
        return tags


def _rows(original: Any, array: NDArray[Any], rows: NDArray[np.intp]) -> Any:
    """Rows of the input in its own type, so that the estimator sees feature names."""
    if hasattr(original, "iloc"):
        return original.iloc[rows]
    if hasattr(original, "__dataframe__") and not isinstance(original, np.ndarray):
        return original.take(rows) if hasattr(original, "take") else original[rows]
    return array[rows]
