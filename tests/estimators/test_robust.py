"""LabelCleaner and RobustKNeighborsClassifier: scikit-learn's contract, and labels that are wrong."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from lptml import LabelCleaner, RobustKNeighborsClassifier
from lptml.datasets import load_wine, make_synthetic
from lptml.noise import flip_labels, flip_pairs


@parametrize_with_checks([RobustKNeighborsClassifier(), LabelCleaner(LogisticRegression())])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
