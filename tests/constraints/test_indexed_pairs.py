"""Indexed pairs against the same pairs with stored differences."""

import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.constraints.indexed_pairs import IndexedPairs


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def both(request):
    rng = np.random.default_rng(0)
    n = 20_000  # more than a block of 16,384
    X = rng.normal(size=(30, 4)) + 100.0
    indices = rng.integers(30, size=(n, 2))
    y = rng.choice([-1, 1], n)
    weight = rng.uniform(0.1, 2.0, n) if request.param else None
    indexed = IndexedPairs.from_indices(X, indices, y, bounds=(1.5, 2.0), weight=weight)
    return indexed, ConstraintSet.from_pairs(X[indices], y, bounds=(1.5, 2.0), weight=weight)


def test_it_agrees_with_stored_differences(both):
    indexed, stored = both
    G = np.random.default_rng(1).normal(size=(2, 4))
    A = G.T @ G
    np.testing.assert_allclose(indexed.values(A), stored.values(A), atol=1e-10)
    assert indexed.cost(A) == stored.cost(A)
    assert indexed.cost(np.stack([A, 2 * A])).tolist() == stored.cost(np.stack([A, 2 * A])).tolist()
    assert indexed.total_weight == stored.total_weight
    assert indexed.trivial_costs() == stored.trivial_costs()
    assert indexed.best_identity().cost == stored.best_identity().cost
    some = np.array([3, 3, 16_390])
    np.testing.assert_allclose(indexed.take(some).V, stored.V[some], atol=1e-12)
    np.testing.assert_array_equal(indexed.take(some).weight, stored.weight[some])
    P = np.random.default_rng(1).normal(size=(2, 4))
    B = P @ A @ P.T
    np.testing.assert_allclose(indexed.projected(P).values(B), stored.projected(P).values(B), rtol=1e-9)


@pytest.mark.parametrize(
    ("indices", "message"),
    [([[0, 3]], "row 3"), ([[-1, 0]], "row -1"), ([[0.5, 1.0]], "whole numbers"), ([0, 1], r"\(n, 2\)")],
)
def test_bad_indices_are_named(indices, message):
    with pytest.raises(ValueError, match=message):
        IndexedPairs.from_indices(np.eye(3), indices, [1], bounds=(1.0, 1.0))
