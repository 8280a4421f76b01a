"""One definition of cost, tolerance and best multiple: whoever looks for the best scale finds the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lptml.constraints import TOLERANCE, ConstraintSet
from lptml.constraints.counting import best_multiple, broken_weights, exact_multiple
from lptml.constraints.indexed_pairs import IndexedPairs
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.engines.partitioned import from_arrays
from lptml.search.remote import Remote

quick = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
slopes = st.sampled_from([0.0, 0.0, 0.3])
#: l^2 / u^2 - 1 in tolerances: where one scale meets both bounds, where none does, and close to the edge.
apart = st.sampled_from([-5e6, 0.0, 0.4, 1.0, 1.7, 1.9, 2.1, 3.0, 5e6])


def promised(source, A, found, slope=0.0):
    """The cost, which the multiple has when it is counted."""
    assert found.cost == pytest.approx(source.cost(found.scale * A) + slope * found.scale, rel=1e-12)
    return found.cost


def by_counting(constraints, A, slope):
    """Branch and bound over counts of three parts."""
    parts = [constraints.take(rows) for rows in np.array_split(np.arange(constraints.n), 3)]
    return exact_multiple(
        lambda scales: sum(broken_weights(part, A, scales) for part in parts),
        constraints.take(slice(0, None, 2)),
        A,
        constraints.trivial_costs()[0],
        slope,
    )


def by_trying(constraints, A, slope):
    """The least cost at any of many scales, none of them close to where a constraint flips."""
    values = constraints.values(A)
    edges = np.sort(constraints.bound[values > 0] / values[values > 0])
    inner = np.array([0.99, 0.9, 0.5, 0.0, -0.5, -0.9, -0.99]) * TOLERANCE
    scales = np.concatenate([[0.0], np.outer(edges, 1 + inner).ravel(), edges[-1:] * 2.0])
    return min(constraints.cost(scale * A) + slope * scale for scale in scales)


@quick
@given(seeds, slopes, apart)
def test_pairs_of_points(seed, slope, apart):
    """Points on a small grid, so that many pairs have the same distance and different labels."""
    rng = np.random.default_rng(seed)
    N, d = int(rng.integers(3, 14)), int(rng.integers(1, 4))
    X, labels = rng.integers(0, 4, (N, d)).astype(float), rng.integers(0, 2, N)
    pairs = np.array(list(combinations(range(N), 2)))
    y = np.where(labels[pairs[:, 0]] == labels[pairs[:, 1]], 1, -1)
    bounds = (1.0, float(np.sqrt(max(1 + apart * TOLERANCE, 0.25))))
    G = rng.normal(size=(d, d))
    A = G.T @ G
    stored = ConstraintSet.from_differences(X[pairs[:, 0]] - X[pairs[:, 1]], y, bounds=bounds)
    indexed = IndexedPairs.from_indices(X, pairs, y, bounds=bounds)
    implicit = LabelledPairs.from_labels(X, labels, bounds=bounds)
    parts = from_arrays(X, pairs, y, bounds=bounds, n_parts=2)
    costs = [
        promised(stored, A, stored.best_scale(A, slope), slope),
        promised(stored, A, best_multiple(stored, A, slope), slope),
        promised(stored, A, by_counting(stored, A, slope), slope),
        promised(indexed, A, indexed.best_scale(A, slope), slope),
        promised(implicit, A, implicit.best_scale(A, slope), slope),
        promised(parts, A, parts.best_scale(A, slope), slope),
    ]
    np.testing.assert_allclose(costs, costs[0], rtol=1e-7)
    assert costs[0] <= by_trying(stored, A, slope) * (1 + 1e-7)
    on_a_sample = Remote(parts).best_scale(A, slope)
    assert promised(parts, A, on_a_sample, slope) >= costs[0] * (1 - 1e-7)


@quick
@given(seeds, slopes)
def test_comparisons(seed, slope):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 4))
    weight = rng.integers(1, 5, n).astype(float)
    triplets = ConstraintSet.from_triplets(rng.integers(-3, 4, (n, 3, d)).astype(float), weight=weight)
    G = rng.normal(size=(d, d))
    A = G.T @ G
    costs = [
        promised(triplets, A, find(triplets, A, slope), slope)
        for find in (ConstraintSet.best_scale, best_multiple, by_counting)
    ]
    np.testing.assert_allclose(costs, costs[0], rtol=1e-7)
    assert costs[0] <= by_trying(triplets, A, slope) * (1 + 1e-7)


@pytest.mark.parametrize(("l", "cost"), [(1 + 0.8 * TOLERANCE, 0.0), (1 + 1.1 * TOLERANCE, 1.0)])
def test_two_bounds_that_only_the_tolerance_lets_meet(l, cost):
    pairs = ConstraintSet.from_differences([[1.0], [1.0]], [1, -1], bounds=(1.0, l))
    for find in (ConstraintSet.best_scale, best_multiple, lambda *given: by_counting(*given, 0.0)):
        assert promised(pairs, np.eye(1), find(pairs, np.eye(1))) == cost
