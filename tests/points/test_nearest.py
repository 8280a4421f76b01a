"""Our neighbours and votes against scikit-learn's."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from lptml.points.nearest import majority, nearest


@pytest.mark.parametrize("n_queries", [40, 1500])  # fewer and more than a block of 1,024
def test_same_neighbours_and_votes_as_scikit_learn(n_queries):
    rng = np.random.default_rng(0)
    Z, queries, codes = rng.normal(size=(90, 3)), rng.normal(size=(n_queries, 3)), rng.integers(3, size=90)
    near = nearest(Z, queries, 5)
    assert np.array_equal(
        near, NearestNeighbors(n_neighbors=5).fit(Z).kneighbors(queries, return_distance=False)
    )
    assert np.array_equal(majority(codes, near), KNeighborsClassifier(5).fit(Z, codes).predict(queries))
    others = nearest(Z, Z, 5, own=np.arange(90))
    assert np.array_equal(others, NearestNeighbors(n_neighbors=5).fit(Z).kneighbors(return_distance=False))


def test_weights_decide_and_the_first_of_equals_wins():
    codes = np.array([0, 1, 1])
    near = np.array([[0, 1], [0, 2]])
    assert majority(codes, near).tolist() == [0, 0]
    assert majority(codes, near, weight=np.array([1.0, 2.0, 0.5])).tolist() == [1, 0]
