"""Triplets of labelled points against the same triplets stored one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lptml.constraints import ConstraintSet
from lptml.constraints.from_labels import constraints_from_labels, nearest_of_each_kind
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.learn import learn
from lptml.refine.minibatches import batches_of


def make(seed, N=25, d=3, K=3, weighted=True, metric=None):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(N, d)), np.arange(N) % K
    weight = rng.integers(1, 4, N).astype(float) if weighted else None
    pairs = LabelledPairs.from_labels(X, y, bounds=(1.0, 1.0), point_weight=weight)
    return constraints_from_labels("triplets", pairs, None, rng, np.eye(d) if metric is None else metric)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), weighted=st.booleans())
def test_counts_scales_and_trivial_costs_are_those_of_the_stored_triplets(seed, weighted):
    chosen = make(seed, weighted=weighted)
    source, points = chosen.source, chosen.points(np.arange(chosen.source.n))
    w = None if source.point_weight is None else source.point_weight[points].prod(axis=1)
    stored = ConstraintSet.from_triplets(source.X[points], weight=w)
    L = np.random.default_rng(seed + 1).normal(size=(2, 3))
    A = L.T @ L
    assert source.n == stored.n
    assert source.total_weight == stored.total_weight
    np.testing.assert_allclose(source.values(A), stored.values(A), atol=1e-12)
    assert source.cost(A) == stored.cost(A)
    assert source.best_scale(A).cost == stored.best_scale(A).cost
    assert source.trivial_costs() == stored.trivial_costs()
    np.testing.assert_array_equal(source.cost(np.stack([A, 2 * A])), stored.cost(np.stack([A, 2 * A])))
    some = np.array([3, 0, 7])
    np.testing.assert_array_equal(source.take(some).V, stored.take(some).V)
    scale = np.array([1.0, 2.0, 0.5])
    assert source.projected(np.diag(scale)).cost(A) == source.cost(A * scale[:, None] * scale)


@pytest.mark.parametrize("warm", [True, False])
def test_the_slope_of_the_bounded_loss_is_that_of_finite_differences(warm):
    source = make(0).source
    rng = np.random.default_rng(1)
    G, T, step = rng.normal(size=(2, 3)), 0.5, 1e-6

    def loss(G):
        stored = source.take(slice(None))
        near, far = (((part @ G.T) ** 2).sum(axis=1) for part in (stored.W, stored.V))
        return stored.weight @ (1 / (1 + np.exp((np.sqrt(far) - np.sqrt(near + 1)) / T)))

    gradient = batches_of(source, source.take(slice(None)), rng, None, False, warm).gradient(G, T)
    for i in range(2):
        for j in range(3):
            E = np.zeros_like(G)
            E[i, j] = step
            assert gradient[i, j] == pytest.approx(
                (loss(G + E) - loss(G - E)) / (2 * step), rel=1e-4, abs=1e-4
            )


def test_neighbours_are_those_of_the_metric():
    Z = np.array([[0.0, 0.0], [1.0, 9.0], [2.0, 0.0], [0.5, 0.0]])
    y = np.array([0, 0, 0, 1])
    same, other = nearest_of_each_kind(Z * [1.0, 0.0], y, np.array([0, 3]), 1, 2)
    assert same.tolist() == [[1], [-1]]
    assert other.tolist() == [[3, -1], [0, 1]]


def test_labels_that_allow_no_triplet_leave_the_prior():
    pairs = LabelledPairs.from_labels(np.eye(3), [0, 1, 2], bounds=(1.0, 1.0))
    source = constraints_from_labels("triplets", pairs, None, np.random.default_rng(0), np.eye(3)).source
    assert source.n == 0
    learned = learn(source, prior=2.0 * np.eye(3), temperature=0.1)
    np.testing.assert_array_equal(learned.A, 2.0 * np.eye(3))
    assert learned.cost == 0
    with pytest.raises(ValueError, match="no constraints to learn from"):
        learn(source)
