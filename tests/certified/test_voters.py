"""Who votes depends on points only, and on reference points only where there are any."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from lptml.certified import find_voters
from lptml.certified.voters import label_free_metrics

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)) * [1.0, 10.0, 100.0, 0.1]
X[30:] += [8.0, 0, 0, 0]
Q = X[::7] + 0.01


def test_the_second_vote_is_kernel_ridge_regression():
    voters = find_voters(X)
    low, middle, high = np.percentile(X, [25, 50, 75], axis=0)
    spread = np.minimum((high - low) / 1.349, X.std(0))
    Z, ZQ = (np.arcsinh((points - middle) / spread) for points in (X, Q))
    Z, ZQ = Z / Z.std(0), ZQ / Z.std(0)

    def kernel(A, B):
        return np.exp(-cdist(A, B, "sqeuclidean") / X.shape[1]) + 1.0

    Y = rng.normal(size=(60, 3))
    ridge = KernelRidge(alpha=0.3, kernel="precomputed").fit(kernel(Z, Z), Y)
    expected = ridge.predict(kernel(ZQ, Z))
    np.testing.assert_allclose(voters.weights(Q) @ Y, expected, atol=1e-9)


def test_units_and_place_do_not_matter():
    other = find_voters(X * [1e3, 1e-3, 7.0, 2.0] + [5.0, -3.0, 0.0, 1e2])
    again = other.nearest(Q * [1e3, 1e-3, 7.0, 2.0] + [5.0, -3.0, 0.0, 1e2], 20)
    np.testing.assert_array_equal(find_voters(X).nearest(Q, 20), again)


def test_walks_stay_within_clusters():
    near = find_voters(X).nearest(X, 30)
    assert ((near < 30) == (np.arange(60) < 30)[:, None]).mean() > 0.99


def test_arrivals_are_powers_of_a_walk():
    walk = find_voters(X).walks[0]
    np.testing.assert_allclose(walk.arrivals.sum(axis=1), 1.0)
    assert (walk.arrivals >= 0).all()


def test_with_a_reference_other_points_do_not_matter():
    reference = rng.normal(size=(80, 4)) * [4.0, 10.0, 100.0, 0.1]
    whole, part = find_voters(X, reference), find_voters(X[:40], reference)
    order = whole.nearest(Q, 60)
    kept = np.array([row[row < 40] for row in order])
    np.testing.assert_array_equal(part.nearest(Q, 40), kept)


@pytest.mark.parametrize(
    "points",
    [
        np.ones((5, 3)),  # one place
        np.zeros((1, 2)),
        np.arange(2.0)[:, None],
        np.repeat(np.eye(3), 20, axis=0),  # more copies than ties
        np.r_[np.zeros((15, 1)), [[1e100]]],
        rng.normal(size=(8, 300)),  # wide
    ],
)
def test_degenerate_points(points):
    voters = find_voters(points)
    near = voters.nearest(points, len(points))
    assert (np.sort(near, axis=1) == np.arange(len(points))).all()
    assert np.isfinite(voters.weights(points)).all()
    assert all(np.isfinite(L).all() for L in label_free_metrics(points))
