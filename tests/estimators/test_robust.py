"""LabelCleaner and RobustKNeighborsClassifier: scikit-learn's contract, and labels that are wrong."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from lptml import LabelCleaner, RobustKNeighborsClassifier
from lptml.datasets import load_wine, make_synthetic
from lptml.noise import flip_labels, flip_pairs
from lptml.noise.suspects import judge


@parametrize_with_checks([RobustKNeighborsClassifier(), LabelCleaner(LogisticRegression())])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_wrong_labels_hardly_hurt():
    X, y = load_wine(return_X_y=True)
    scores = []
    for seed in range(4):
        noisy = flip_labels(y[::2], 0.3, random_state=seed)
        robust = RobustKNeighborsClassifier(random_state=0).fit(X[::2], noisy.labels)
        scores.append(robust.score(X[1::2], y[1::2]))
    assert np.mean(scores) > 0.9
    again = RobustKNeighborsClassifier(random_state=0).fit(X[::2], noisy.labels)
    assert np.array_equal(robust.predict_proba(X), again.predict_proba(X))


def test_cleaner_drops_corrects_and_counts():
    X, y = make_synthetic(random_state=0, return_X_y=True)
    names = np.array(["left", "right"])[y]
    noisy = flip_labels(names, 0.1, random_state=0)
    dropped = LabelCleaner(KNeighborsClassifier(4), n_suspects=10).fit(X, noisy.labels)
    assert noisy.flipped[dropped.suspects_].sum() >= 9
    assert dropped.estimator_.n_samples_fit_ == len(y) - 10
    corrected = LabelCleaner(KNeighborsClassifier(4), n_suspects=10, action="correct").fit(X, noisy.labels)
    assert (corrected.labels_ == names).mean() >= 0.98


def test_cleaner_of_pairs():
    X, y = load_wine(return_X_y=True)
    i, j = np.random.default_rng(0).integers(len(X), size=(2, 300))
    i, j = i[i != j], j[i != j]
    noisy = flip_pairs(np.where(y[i] == y[j], 1, -1), 0.1, random_state=0)

    class Remember(KNeighborsClassifier):
        def fit(self, X, y):
            self.seen_ = X.shape
            return self

    cleaner = LabelCleaner(Remember(), n_suspects=20).fit(np.stack([X[i], X[j]], axis=1), noisy.labels)
    assert cleaner.estimator_.seen_ == (len(i) - 20, 2, 13)
    assert noisy.flipped[cleaner.suspects_].mean() > 0.6


@pytest.mark.parametrize("n_suspects", ["auto", 60])
def test_labels_that_a_review_vouches_for_stay(n_suspects):
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 0.2, random_state=0).labels
    before = RobustKNeighborsClassifier(random_state=0).fit(X, noisy)
    sure = np.zeros(len(y), dtype=bool)
    sure[before.suspects_[:8]] = True  # labels that looked wrong, and that somebody has confirmed
    robust = RobustKNeighborsClassifier(n_suspects=n_suspects, random_state=0).fit(X, noisy, trusted=sure)
    cleaner = LabelCleaner(KNeighborsClassifier(), action="correct", n_suspects=n_suspects)
    cleaner.fit(X, noisy, trusted=sure)
    for model in (robust, cleaner):
        assert (model.suspicion_[sure] == 0).all()
        assert not sure[model.suspects_].any()
    assert np.array_equal(cleaner.labels_[sure], noisy[sure])
    assert np.array_equal(robust.beliefs_[sure].argmax(axis=1), noisy[sure])


def test_the_suspicion_is_that_of_the_function():
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 0.1, random_state=0).labels
    sure = np.arange(len(y)) % 5 == 0
    model = RobustKNeighborsClassifier(random_state=0).fit(X, noisy, trusted=sure)
    found = judge(X, noisy, trusted=sure, random_state=0)
    assert np.array_equal(model.suspicion_, found.suspicion)
    assert (model.noise_rate_, model.noise_interval_) == (found.noise_rate, found.noise_interval)
    assert model.can_judge_ == found.can_judge


def test_bad_parameters_are_named():
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match="n_suspects"):
        LabelCleaner(KNeighborsClassifier(), n_suspects=-1).fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        LabelCleaner(KNeighborsClassifier()).fit(X, None)
    for model in (LabelCleaner(KNeighborsClassifier()), RobustKNeighborsClassifier()):
        with pytest.raises(ValueError, match="trusted must be 178 booleans"):
            model.fit(X, y, trusted=[1, 0])
    pairs = np.stack([X[:-1], X[1:]], axis=1)
    with pytest.raises(ValueError, match="trusted is about labels of points"):
        LabelCleaner(KNeighborsClassifier()).fit(pairs, np.where(y[:-1] == y[1:], 1, -1), trusted=y > 0)


@pytest.mark.parametrize("vouched", [False, True])
def test_the_order_of_the_rows_does_not_matter(vouched):
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 0.2, random_state=0).labels
    trusted = noisy == np.where(np.arange(len(y)) % 7 == 0, y, -1)
    order = np.random.default_rng(0).permutation(len(y))
    first, second = (
        RobustKNeighborsClassifier(random_state=0).fit(
            X[rows], noisy[rows], trusted=trusted[rows] if vouched else None
        )
        for rows in (np.arange(len(y)), order)
    )
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    np.testing.assert_array_equal(first.suspicion_[order], second.suspicion_)
    np.testing.assert_array_equal(first.beliefs_[order], second.beliefs_)
    assert first.suspects_.tolist() == order[second.suspects_].tolist()
