"""LabelCleaner and RobustKNeighborsClassifier: scikit-learn's contract, and labels that are wrong."""

from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from lptml import LabelCleaner, RobustKNeighborsClassifier


@parametrize_with_checks([RobustKNeighborsClassifier(), LabelCleaner(LogisticRegression())])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
