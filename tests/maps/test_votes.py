"""Votes against scikit-learn's neighbours, ridge regression and forests; calibration on known noise."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier

from lptml.maps.calibration import calibrate, sharpened
from lptml.maps.forest import flatten, grow
from lptml.maps.votes import LeafVotes, NearestVotes, RidgeVotes, restore


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=90) > 0).astype(np.int64) + (X[:, 1] > 1)
    return X, y, np.eye(3)[y], rng.normal(size=(25, 3))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_nearest_votes_are_those_of_scikit_learn(data, weights):
    X, y, beliefs, new = data
    voter = NearestVotes.of(X, (7,), weights)[0]
    theirs = KNeighborsClassifier(7, weights=weights).fit(X, y)
    np.testing.assert_allclose(voter.settled(beliefs).about(new), theirs.predict_proba(new))
    for i in (0, 41):
        rest = np.arange(90) != i
        alone = KNeighborsClassifier(7, weights=weights).fit(X[rest], y[rest])
        np.testing.assert_allclose(voter.among(beliefs)[i], alone.predict_proba(X[i : i + 1])[0])


def test_least_squares_is_kernel_ridge_without_each_point(data):
    X, _, beliefs, _ = data
    voter = RidgeVotes.of(X, (0.5,))[0]
    basis = voter.basis
    Z = np.clip((X - basis.centre) / basis.scale, -3, 3)
    mean = beliefs.mean(axis=0)
    for i in (0, 13, 77):
        rest = np.arange(90) != i
        ridge = KernelRidge(alpha=0.5, kernel="rbf", gamma=1 / (2 * basis.width)).fit(
            Z[rest], beliefs[rest] - mean
        )
        expected = np.maximum(ridge.predict(Z[i : i + 1])[0] + mean, 1e-3)
        np.testing.assert_allclose(voter.among(beliefs)[i], expected / expected.sum(), atol=1e-5)


def test_leaf_votes_are_the_prediction_of_the_forest(data):
    X, _, beliefs, new = data
    forest = ExtraTreesRegressor(20, min_samples_leaf=3, random_state=0).fit(X, beliefs)
    trees = flatten([tree.tree_ for tree in forest.estimators_], np.zeros(3), np.ones(3))
    voter = LeafVotes(trees, trees.leaves(X), np.ones((90, 20), bool))
    np.testing.assert_allclose(voter.settled(beliefs).about(new), forest.predict(new))


def test_a_training_point_does_not_hear_itself(data):
    X, _, beliefs, _ = data
    grown = grow(X, beliefs, None)
    voter = LeafVotes(grown.trees, grown.trees.leaves(X), grown.left_out)
    other = beliefs.copy()
    other[5] = [0.0, 0.0, 1.0]
    np.testing.assert_allclose(voter.among(beliefs)[5], voter.among(other)[5], atol=1e-12)


def test_settled_voters_come_back(data):
    X, _, beliefs, new = data
    grown = grow(X, beliefs, None, n_trees=5)
    voters = [
        NearestVotes.of(X, (5,), "gaussian")[0],
        RidgeVotes.of(X, (0.5,))[0],
        LeafVotes(grown.trees, grown.trees.leaves(X), grown.left_out),
    ]
    for voter in voters:
        settled = voter.settled(beliefs)
        np.testing.assert_array_equal(restore(settled.arrays(), 3, 3).about(new), settled.about(new))
        for d, K in ((2, 3), (3, 4)):
            if d == 3 or not isinstance(voter, NearestVotes):  # whose points may be of any map
                with pytest.raises(ValueError):
                    restore(settled.arrays(), d, K)


def test_calibration_finds_the_noise_and_no_noise():
    rng = np.random.default_rng(0)
    p = np.where(rng.uniform(size=3000) < 0.5, 0.97, 0.03)
    y = (rng.uniform(size=3000) < p).astype(np.int64)
    votes = np.stack([1 - p, p], axis=1)
    assert calibrate(votes, y).noise_rate == 0
    flipped = np.where(rng.uniform(size=3000) < 0.2, 1 - y, y)
    softer = np.where(votes > 0.5, 0.77, 0.23)
    assert calibrate(softer, flipped).noise_rate in (0.0, 0.2)  # cannot be told from overlap
    spread = rng.uniform(size=3000)
    right = (rng.uniform(size=3000) < spread).astype(np.int64)
    wrong = np.where(rng.uniform(size=3000) < 0.2, 1 - right, right)
    found = calibrate(np.stack([1 - spread, spread], axis=1), wrong)
    assert 0.1 <= found.noise_rate <= 0.3
    assert 0.7 < found.sharpness < 1.5


def test_powers_of_probabilities_are_probabilities():
    P = sharpened(np.random.default_rng(0).dirichlet(np.ones(4), size=30), 3.0)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
