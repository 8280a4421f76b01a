"""All of scikit-learn's estimator checks on every estimator.

The checks know points, not tuples. So each learner from tuples is checked behind an adapter that reads a row
x of a table as one tuple: as the pair (0, x), the triplet (0, x/2, x) or the quadruplet (0, x/2, 0, x).
Everything else, from parameters and tags to weights and pickling, is the learner's own. No check is excluded
but one that is mistaken in old releases (``failing``); what pair input makes impossible is the accuracy that
one of them asks for, see ``poor_score`` below.
"""

import numpy as np
import pytest
import sklearn
from sklearn.base import TransformerMixin, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lptml import LPTML, LPTML_Quadruplets, LPTML_Supervised, LPTML_Triplets

FAST = {"max_trials": 2, "random_state": 0}


class Rows:
    """Reads rows as tuples."""

    fractions: tuple[float, ...]

    def _tuples(self, tuples, size, *, reset=False):
        X = validate_data(self, tuples, dtype=np.float64, reset=reset, ensure_min_samples=2 if reset else 1)
        return np.stack([fraction * X for fraction in self.fractions], axis=1)

    def fit_transform(self, X, y=None, **fit_params):
        return TransformerMixin.fit_transform(self, X, y, **fit_params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags


class PairRows(Rows, LPTML):
    """A classifier of rows: the second of two classes is called similar."""

    fractions = (0.0, 1.0)

    def fit(self, pairs, y, calibration_params=None, *, sample_weight=None, initial_metric=None):
        if y is not None:
            _, y = validate_data(self, pairs, y, dtype=None)
            y = column_or_1d(y)
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
            if len(self.classes_) > 2:
                raise ValueError(
                    "Only binary classification is supported. The type of the target is multiclass."
                )
            y = 2 * codes - 1
        given = self.class_weight
        if isinstance(given, dict):
            self.class_weight = {2 * code - 1: given[label] for code, label in enumerate(self.classes_)}
        try:
            return super().fit(
                pairs, y, calibration_params, sample_weight=sample_weight, initial_metric=initial_metric
            )
        finally:
            self.class_weight = given

    def decision_function(self, pairs):
        distance = self.pair_distance(pairs)
        return self.threshold_ - distance  # positive for the second class, as of any classifier

    def predict(self, pairs):
        return self.classes_[(super().predict(pairs) + 1) // 2]

    def score(self, pairs, y, sample_weight=None):
        check_is_fitted(self)
        return super().score(pairs, np.where(np.asarray(y) == self.classes_[1], 1, -1), sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # The class of a row cannot depend on its sign, as the distance of a pair is symmetric: blobs on both
        # sides of the origin are one to it.
        tags.classifier_tags.poor_score = True
        return tags


class OrderRows(Rows):
    """Transforms rows: orders have no classes to tell apart."""

    def score(self, X, y=None, sample_weight=None):
        return super().score(X, None, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = tags.classifier_tags = None
        return tags


class TripletRows(OrderRows, LPTML_Triplets):
    fractions = (0.0, 0.5, 1.0)

    def fit(self, triplets, y=None, *, sample_weight=None, initial_metric=None):
        return super().fit(triplets, sample_weight=sample_weight, initial_metric=initial_metric)


class QuadrupletRows(OrderRows, LPTML_Quadruplets):
    fractions = (0.0, 0.5, 0.0, 1.0)

    def fit(self, quadruplets, y=None, *, weights=None, sample_weight=None, initial_metric=None):
        return super().fit(quadruplets, weights, sample_weight=sample_weight, initial_metric=initial_metric)


ESTIMATORS = [LPTML_Supervised(**FAST), PairRows(**FAST), TripletRows(**FAST), QuadrupletRows(**FAST)]


def failing(estimator):
    """Checks that fail by a mistake of their own, with the releases of scikit-learn that have it."""
    if isinstance(estimator, PairRows) and parse_version(sklearn.__version__) < parse_version("1.7"):
        return {
            "check_sample_weight_equivalence_on_dense_data": "makes two classes of three by the first label, "
            "which is another in the weighted than in the repeated rows"
        }
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=failing)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([LPTML_Supervised(random_state=0)])
def test_estimator_checks_with_validation(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", [LPTML(), LPTML_Triplets(), LPTML_Quadruplets()])
def test_tags_of_the_learners_themselves(learner):
    tags = get_tags(learner)
    assert is_classifier(learner)
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array
    assert not tags.input_tags.sparse
    assert not tags.classifier_tags.multi_class
    assert tags.target_tags.required == isinstance(learner, LPTML)
    indexed = get_tags(learner.set_params(preprocessor=np.eye(2)))
    assert indexed.input_tags.two_d_array
