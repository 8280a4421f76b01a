"""The attacker that knows the learner: exact budget, bounded work, and it finds what blind attacks do not."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from lptml import LFDA
from lptml.noise import adaptive_flips, flip_labels


class Gullible(TransformerMixin, BaseEstimator):
    """Throws its first feature away as soon as a chosen point has another label than a chosen one."""

    fits: ClassVar[int] = 0

    def __init__(self, point=0, label=0):
        self.point = point
        self.label = label

    def fit(self, X, y):
        type(self).fits += 1
        self.keep_ = y[self.point] == self.label
        return self

    def transform(self, X):
        return X * [float(self.keep_), 1.0]


class Brittle(StandardScaler):
    """Cannot be fitted to anything but these labels."""

    def __init__(self, only=()):
        super().__init__()
        self.only = only

    def fit(self, X, y):
        if not np.array_equal(y, self.only):
            raise ValueError("these are not the labels I know")
        return super().fit(X)


@pytest.fixture
def halves():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = np.c_[10.0 * y, rng.standard_normal(40)]
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
def test_exactly_the_budget_is_spent(halves, share):
    X, y, X_val, y_val = halves
    attack = adaptive_flips(LFDA(), X, y, share, X_val, y_val, n_fits=12, random_state=0)
    assert attack.n_flipped == round(share * 20)
    assert np.array_equal(attack.labels != y, attack.flipped)
    assert attack.n_fits <= 12


def test_the_accuracy_is_that_of_true_voters_under_the_metric_of_the_wrong_labels():
    X, y = load_iris(return_X_y=True)
    attack = adaptive_flips(LFDA(), X[::2], y[::2], 0.1, X[1::2], y[1::2], n_fits=10, random_state=0)
    for labels, accuracy in ((attack.labels, attack.accuracy), (y[::2], attack.clean_accuracy)):
        metric = LFDA().fit(X[::2], labels)
        voters = KNeighborsClassifier(4).fit(metric.transform(X[::2]), y[::2])
        assert voters.score(metric.transform(X[1::2]), y[1::2]) == accuracy


def test_it_hurts_more_than_blind_attacks():
    X, y = load_iris(return_X_y=True)
    attack = adaptive_flips(LFDA(), X[::2], y[::2], 0.1, X[1::2], y[1::2], n_fits=40, random_state=0)
    blind = []
    for seed in range(5):
        metric = LFDA().fit(X[::2], flip_labels(y[::2], 0.1, random_state=seed).labels)
        voters = KNeighborsClassifier(4).fit(metric.transform(X[::2]), y[::2])
        blind.append(voters.score(metric.transform(X[1::2]), y[1::2]))
    assert attack.accuracy < min(blind)
    assert attack.accuracy < attack.clean_accuracy


def test_it_finds_the_label_that_a_learner_hangs_on(halves):
    X, y, X_val, y_val = halves
    attack = adaptive_flips(Gullible(point=3), X, y, 0.1, X_val, y_val, n_fits=60, random_state=0)
    assert attack.flipped[3]
    assert attack.clean_accuracy == 1.0 > attack.accuracy


def test_no_more_fits_than_allowed(halves):
    X, y, X_val, y_val = halves
    for n_fits in (1, 2, 9):
        Gullible.fits = 0
        attack = adaptive_flips(Gullible(), X, y, 0.1, X_val, y_val, n_fits=n_fits, random_state=0)
        assert attack.n_fits == n_fits
        assert Gullible.fits == n_fits + 1  # one to the true labels


def test_it_stops_when_there_is_nothing_left_to_try():
    attack = adaptive_flips(StandardScaler(), [[0.0], [1.0]], [0, 1], 0.5, n_fits=1000, random_state=0)
    assert attack.n_fits == 2
    assert attack.n_flipped == 1


def test_a_learner_that_does_not_look_at_labels_is_not_hurt(halves):
    X, y, X_val, y_val = halves
    attack = adaptive_flips(StandardScaler(), X, y, 0.2, X_val, y_val, n_fits=5, random_state=0)
    assert attack.accuracy == attack.clean_accuracy
    assert attack.n_flipped == 4


def test_failed_fits_are_counted_and_are_no_attacks(halves):
    X, y, X_val, y_val = halves
    attack = adaptive_flips(Brittle(tuple(y)), X, y, 0.2, X_val, y_val, n_fits=6, random_state=0)
    assert (attack.n_fits, attack.n_failed, attack.n_flipped) == (6, 6, 0)
    assert attack.accuracy == attack.clean_accuracy


def test_the_seed_decides_and_strings_keep_their_type(halves):
    X, y, X_val, y_val = halves
    names = np.array(["no", "yes"])
    one, two, other = (
        adaptive_flips(LFDA(), X, names[y], 0.2, X_val, names[y_val], n_fits=8, random_state=seed)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one.labels, two.labels)
    assert not np.array_equal(one.labels, other.labels)
    assert one.labels.dtype.kind == "U"


def test_without_held_out_points_each_is_judged_by_the_others(halves):
    X, y, _, _ = halves
    attack = adaptive_flips(StandardScaler(), X, y, 0.1, n_neighbors=1, n_fits=1, random_state=0)
    assert attack.clean_accuracy == 1.0
    lonely = adaptive_flips(StandardScaler(), [[0.0], [0.1], [9.0]], [0, 0, 1], 0.0, n_neighbors=1)
    assert lonely.clean_accuracy == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learner": object()}, "learner"),
        ({"share": 1.2}, "share"),
        ({"y": [0, 0, 0]}, "one class"),
        ({"X": [[0.0]]}, "shape"),
        ({"n_fits": 0}, "n_fits"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"X_val": [[0.0]]}, "together"),
        ({"X_val": [[0.0]], "y_val": []}, "y_val"),
        ({"X_val": [[0.0]], "y_val": [0, 1]}, "X_val"),
        ({"X_val": [[0.0, 1.0]], "y_val": [0]}, "features"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"learner": StandardScaler(), "X": [[0.0], [1.0], [2.0]], "y": [0, 1, 1], "share": 0.3}
    with pytest.raises(ValueError, match=message):
        adaptive_flips(**{**arguments, **changes})
