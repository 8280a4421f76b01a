"""Learners from tuples: pairs, triplets and quadruplets, and how they judge and score new tuples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import ClassifierTags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.estimators._mahalanobis import MahalanobisMixin
from lptml.estimators._thresholds import best_threshold, check_calibration


class _EmbedTuples:
    """What maps tuples; apart from the transformers, so that ``set_output`` leaves its result 3-D."""

    def fit_transform(self: Any, tuples: Any, y: Any = None, **fit_params: Any) -> FloatArray:
        """Fit, and return the points of the tuples in the learned space.

        Returns
        -------
        ndarray (n_tuples, size of a tuple, n_components)
        """
        given = () if y is None else (y,)
        self.fit(tuples, *given, **fit_params)
        return self._embedded(tuples)

    def transform(self: Any, X: Any) -> Any:
        """Return points in the learned space.

        Parameters
        ----------
        X : array-like (n_points, n_features), or (n_points,) of indices with a preprocessor
            Or tuples as for ``fit``. Whole numbers in as many columns as a tuple has points are indices only
            if the points have another number of features.

        Returns
        -------
        ndarray (n_points, n_components); for tuples (n_tuples, size of a tuple, n_components)
        """
        check_is_fitted(self)
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        indices = len(shape) == 2 and shape[1] == self._tuple_size != self.n_features_in_
        if len(shape) == 3 or (indices and self.preprocessor_ is not None):
            return self._embedded(X)
        return super().transform(X)  # type: ignore[misc]  # of the class that this one is mixed into

    def _embedded(self: Any, tuples: Any) -> FloatArray:
        embedded: FloatArray = self._tuples(tuples, self._tuple_size) @ self._live_components().T
        return embedded


class _TuplesMixin(_EmbedTuples, MahalanobisMixin):
    """A learner fitted to tuples of points; a binary classifier of tuples in the eyes of scikit-learn."""

    _tuple_size: int
    classes_ = np.array([-1, 1])

    def _start_tuples(self, tuples: Any) -> FloatArray:
        """Validate the tuples given to fit; return them as (n, size, d)."""
        self._start()
        return self._tuples(tuples, self._tuple_size, reset=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = getattr(self, "preprocessor", None) is not None
        return tags

    def _distance(self, array: FloatArray, i: int, j: int) -> FloatArray:
        """Return the distance of the i-th and j-th point of each tuple."""
        return np.linalg.norm((array[:, i] - array[:, j]) @ self._live_components().T, axis=1)


class PairsMixin(_TuplesMixin):
    """A learner fitted to pairs that are similar (+1) or dissimilar (-1), and a classifier of pairs."""

    _tuple_size = 2
    threshold_: float

    __metadata_request__fit: ClassVar = {"pairs": UNUSED}
    __metadata_request__predict: ClassVar = {"pairs": UNUSED}
    __metadata_request__decision_function: ClassVar = {"pairs": UNUSED}
    __metadata_request__score: ClassVar = {"pairs": UNUSED}

    def _start_pairs(self, pairs: Any, y: Any) -> tuple[FloatArray, NDArray[np.int8]]:
        """Validate the input of fit; return pairs (n, 2, d) and labels (n,), both kinds being present."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None"
            )
        array = self._start_tuples(pairs)
        return array, _inputs.check_pair_labels(y, len(array), both=True)

    def _calibrate(
        self,
        pairs: FloatArray,
        y: NDArray[np.int8],
        params: Mapping[str, Any] | None,
        weight: FloatArray | None = None,
    ) -> None:
        """Set ``threshold_`` at the end of fit, on the training pairs."""
        distances = self._distance(pairs, 0, 1)
        self.threshold_ = best_threshold(distances, y, weight=weight, **(params or {}))

    @staticmethod
    def _check_calibration_params(params: Mapping[str, Any] | None) -> None:
        """Refuse bad ``calibration_params`` before anything is fitted."""
        if params is None:
            return
        if not isinstance(params, Mapping):
            raise ValueError(f"calibration_params must be a dict or None, got {type(params).__name__}")
        unknown = sorted(set(params) - {"strategy", "min_rate", "beta"})
        if unknown:
            raise ValueError(
                f"calibration_params has unknown keys {unknown}: strategy, min_rate and beta are known"
            )
        check_calibration(**params)

    def decision_function(self, pairs: Any) -> FloatArray:
        """Return minus the distance of each pair: larger means more similar."""
        return self.pair_score(pairs)

    def predict(self, pairs: Any) -> NDArray[np.int64]:
        """Return +1 for each pair whose distance is at most ``threshold_``, and -1 for the others.

        Parameters
        ----------
        pairs : array-like (n_pairs, 2, n_features), or (n_pairs, 2) of indices with a preprocessor

        Returns
        -------
        ndarray (n_pairs,)

        Raises
        ------
        AttributeError
            While there is no threshold: see :meth:`set_threshold` and :meth:`calibrate_threshold`.
        """
        check_is_fitted(self)
        if "threshold_" not in vars(self):
            raise AttributeError("no threshold has been set: call set_threshold or calibrate_threshold first")
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the area under the ROC curve of calling pairs similar by their distance."""
        from sklearn.metrics import roc_auc_score  # takes a second to import

        scores = self.decision_function(pairs)
        labels = _inputs.check_pair_labels(y, len(scores))
        weight = _inputs.check_weight(sample_weight, len(scores))
        return float(roc_auc_score(labels, scores, sample_weight=weight))

    def set_threshold(self, threshold: float) -> Self:
        """Set ``threshold_``, the largest distance at which a pair is called similar.

        Examples
        --------
        >>> import numpy as np
        >>> from lptml import LPTML
        >>> pairs = np.array([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
        >>> model = LPTML(bounds=(1.0, 2.0), max_trials=1, random_state=0).fit(pairs, [1, -1])
        >>> model.set_threshold(0.0).predict([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 9.0]]])
        array([ 1, -1])
        """
        check_is_fitted(self)
        try:
            value = float(threshold)
        except (TypeError, ValueError) as error:
            raise ValueError(f"threshold must be a real number, got {type(threshold).__name__}") from error
        if np.isnan(value):
            raise ValueError("threshold must be a real number, got NaN")
        self.threshold_ = value
        return self

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: Any,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
        sample_weight: Any = None,
    ) -> Self:
        """Set ``threshold_`` to what is best on validation pairs.

        Parameters
        ----------
        pairs_valid : array-like (n_pairs, 2, n_features), or (n_pairs, 2) of indices with a preprocessor
        y_valid : array-like (n_pairs,)
            +1 for similar, -1 for dissimilar pairs.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
            What to maximise: accuracy; the F-beta score of similar pairs; the true positive rate where
            the true negative rate is at least ``min_rate``; the true negative rate where the true positive
            rate is at least ``min_rate``.
        min_rate : float in [0, 1], optional
            Needed by "max_tpr" and "max_tnr", refused otherwise.
        beta : float, default 1
            Of "f_beta"; refused otherwise unless 1.
        sample_weight : array-like (n_pairs,), optional

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from lptml import LPTML
        >>> pairs = np.array([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
        >>> model = LPTML(bounds=(1.0, 2.0), max_trials=1, random_state=0).fit(pairs, [1, -1])
        >>> model.calibrate_threshold(pairs, [1, -1], strategy="max_tpr", min_rate=0.9).predict(pairs)
        array([ 1, -1])
        """
        check_is_fitted(self)
        check_calibration(strategy, min_rate, beta)
        array = self._tuples(pairs_valid, 2)
        labels = _inputs.check_pair_labels(y_valid, len(array), name="y_valid")
        weight = _inputs.check_weight(sample_weight, len(array))
        options = {"strategy": strategy, "min_rate": min_rate, "beta": beta}
        self._calibrate(array, labels, options, weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class _OrderMixin(_TuplesMixin):
    """Triplets and quadruplets: a tuple is right when its first two points are closer than its other two."""

    def _order_accuracy(self, predictions: NDArray[Any], y: Any, sample_weight: Any) -> float:
        """Return the weighted share of predictions that agree with y (all +1 if None); 0 agrees by half."""
        n = len(predictions)
        labels = np.ones(n, dtype=np.int8) if y is None else _inputs.check_pair_labels(y, n)
        weight = _inputs.check_weight(sample_weight, n)
        return float(np.average((predictions * labels + 1) / 2, weights=weight))


class TripletsMixin(_OrderMixin):
    """A learner fitted to triplets (a, b, c) in which a should be closer to b than to c."""

    _tuple_size = 3

    __metadata_request__fit: ClassVar = {"triplets": UNUSED}
    __metadata_request__predict: ClassVar = {"triplets": UNUSED}
    __metadata_request__decision_function: ClassVar = {"triplets": UNUSED}
    __metadata_request__score: ClassVar = {"triplets": UNUSED}

    def decision_function(self, triplets: Any) -> FloatArray:
        """Return d(a, c) - d(a, b) of each triplet (a, b, c)."""
        self._live_components()
        array = self._tuples(triplets, 3)
        return self._distance(array, 0, 2) - self._distance(array, 0, 1)

    def predict(self, triplets: Any) -> NDArray[np.int64]:
        """Return +1 for each triplet in the right order, d(a, b) < d(a, c), and -1 for the others."""
        return np.where(self.decision_function(triplets) > 0, 1, -1)

    def score(self, triplets: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of triplets whose predicted order is right: +1, or that of ``y`` if given."""
        return self._order_accuracy(self.predict(triplets), y, sample_weight)


class QuadrupletsMixin(_OrderMixin):
    """A learner fitted to quadruplets (a, b, c, d) in which a should be closer to b than c to d."""

    _tuple_size = 4

    __metadata_request__fit: ClassVar = {"quadruplets": UNUSED}
    __metadata_request__predict: ClassVar = {"quadruplets": UNUSED}
    __metadata_request__decision_function: ClassVar = {"quadruplets": UNUSED}
    __metadata_request__score: ClassVar = {"quadruplets": UNUSED}

    def decision_function(self, quadruplets: Any) -> FloatArray:
        """Return d(c, d) - d(a, b) of each quadruplet (a, b, c, d)."""
        self._live_components()
        array = self._tuples(quadruplets, 4)
        return self._distance(array, 2, 3) - self._distance(array, 0, 1)

    def predict(self, quadruplets: Any) -> NDArray[np.int64]:
        """Return the sign of d(c, d) - d(a, b): +1 for the right order, -1 for the wrong one, 0 for a tie."""
        return np.sign(self.decision_function(quadruplets)).astype(np.int64)

    def score(self, quadruplets: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of quadruplets whose predicted order is right (a tie counts half)."""
        return self._order_accuracy(self.predict(quadruplets), y, sample_weight)
