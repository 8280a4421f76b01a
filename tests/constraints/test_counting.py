"""Best multiples against brute force, branch and bound against sorting, the test against its promise."""

from __future__ import annotations

import numpy as np
import pytest

from lptml.constraints import TOLERANCE, ConstraintSet, counting
from lptml.constraints.counting import (
    best_multiple,
    broken_weights,
    cannot_beat,
    difference_radius,
    exact_multiple,
    sign_test,
    violations,
    worst_rows,
)
from lptml.constraints.ray import best_on_ray


def _random_constraints(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 300)), int(rng.integers(1, 5))
    weight = None if seed % 2 else rng.integers(1, 5, n).astype(float)
    if seed % 5 == 0:
        triplets = rng.normal(size=(n, 3, d))
        constraints = ConstraintSet.from_triplets(triplets, weight=weight)
    else:
        V = rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1)))
        if seed % 3 == 0:
            V = np.round(V)  # many flips at the same scale, and some zero distances
        bounds = (1.0, float(rng.choice([0.5, 1.0, 2.0])))
        constraints = ConstraintSet.from_differences(V, rng.choice([-1, 1], n), bounds=bounds, weight=weight)
    G = rng.normal(size=(d, d))
    return constraints, G.T @ G, rng


@pytest.mark.parametrize("seed", range(60))
def test_best_multiple_is_the_middle_of_the_widest_of_the_best_intervals(seed):
    constraints, A, _ = _random_constraints(seed)
    values = constraints.values(A)
    edges = (1 + constraints.sign * TOLERANCE) * constraints.bound
    flips = np.unique(edges[values > 0] / values[values > 0])
    ends = np.append(flips, np.inf)
    low, high = ends[:-1], ends[1:]
    middle = np.where(high < np.inf, np.sqrt(low) * np.sqrt(high), 2.0 * low)
    costs = constraints.cost(middle[:, None, None] * A) if len(flips) else np.empty(0)
    best = best_multiple(constraints, A)
    assert best.cost == min([constraints.cost(0.0 * A), *costs]) == constraints.cost(best.scale * A)
    if best.cost < constraints.cost(0.0 * A):
        widest = max(np.flatnonzero(costs == best.cost), key=lambda i: high[i] / low[i])
        assert best.scale == pytest.approx(middle[widest], rel=1e-8)
    else:
        assert best.scale == 0.0
    assert constraints.best_scale(A).scale == pytest.approx(best.scale, rel=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_cost_on_a_ray_is_the_weight_that_is_violated(seed):
    rng = np.random.default_rng(seed)
    near, far = rng.uniform(0.1, 1.0, 20), rng.uniform(2.0 if seed % 2 else 0.5, 3.0, 20)
    values, sign, weight = np.concatenate([near, far]), np.repeat([1, -1], 20).astype(np.int8), rng.random(40)
    best = best_on_ray(values.copy(), sign, np.ones(40), weight)
    scaled = best.scale * values
    violated = np.where(sign > 0, scaled > 1 + TOLERANCE, scaled < 1 - TOLERANCE)
    assert best.cost == pytest.approx(weight[violated].sum(), rel=1e-12, abs=0)  # not 1e-16 more or less


@pytest.mark.parametrize("seed", range(60))
def test_best_multiple_with_a_penalty(seed):
    constraints, A, rng = _random_constraints(seed)
    slope = float(rng.exponential())
    best = best_multiple(constraints, A, slope)
    values = constraints.values(A)
    flips = constraints.bound[values > 0] / values[values > 0]
    scales = np.concatenate([[0.0], flips])
    costs = constraints.cost(scales[:, None, None] * A) + slope * scales
    assert best.cost == pytest.approx(costs.min(), rel=1e-6, abs=1e-9)
    assert constraints.cost(best.scale * A) + slope * best.scale == pytest.approx(best.cost)


@pytest.mark.parametrize("slope", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(40))
def test_branch_and_bound_finds_what_sorting_finds(seed, slope):
    constraints, A, _ = _random_constraints(seed)
    sample = constraints.take(slice(0, None, 3))
    at_zero = constraints.cost(0 * A)
    parts = [constraints.take(rows) for rows in np.array_split(np.arange(constraints.n), 4)]

    def count(scales):
        return sum(broken_weights(part, A, scales) for part in parts)

    found = exact_multiple(count, sample, A, at_zero, slope)
    assert found.cost == pytest.approx(best_multiple(constraints, A, slope).cost, rel=1e-6)
    whole = exact_multiple(lambda scales: broken_weights(constraints, A, scales), sample, A, at_zero, slope)
    assert (found.scale, found.cost) == (whole.scale, whole.cost)  # whatever the partition


def test_branch_and_bound_looks_beyond_a_sample_that_never_flips():
    constraints = ConstraintSet.from_differences([[0.0], [1.0], [5.0]], [1, 1, -1], bounds=(1.0, 1.0))
    found = exact_multiple(
        lambda scales: broken_weights(constraints, np.eye(1), scales),
        constraints.take(slice(0, 1)),
        np.eye(1),
        constraints.cost(np.zeros((1, 1))),
    )
    assert found.cost == 0.0 == constraints.cost(found.scale * np.eye(1))


@pytest.mark.parametrize("seed", range(20))
def test_broken_weights_add_up_to_the_cost(seed):
    constraints, A, rng = _random_constraints(seed)
    scales = rng.exponential(size=7)
    broken = broken_weights(constraints, A, scales)
    np.testing.assert_array_equal(broken.sum(axis=0), constraints.cost(scales[:, None, None] * A))


def test_tight_constraints_are_met_at_their_own_scale():
    V = np.array([[1.0], [1.0]])
    constraints = ConstraintSet.from_differences(V, [+1, -1], bounds=(1.0, 1.0))
    best = best_multiple(constraints, np.eye(1) * 3.0)
    assert best.cost == 0.0
    assert constraints.cost(best.scale * 3.0 * np.eye(1)) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_worst_rows_are_the_worst(seed):
    constraints, A, _ = _random_constraints(seed)
    rows, excess = worst_rows(constraints, A, 5)
    violated = np.flatnonzero(constraints.violated(A))
    everything = constraints.sign * (constraints.values(A) / constraints.bound - 1)
    assert len(rows) == min(5, len(violated))
    assert set(rows) <= set(violated)
    np.testing.assert_array_equal(excess, np.sort(everything[violated])[::-1][: len(rows)])


def test_the_radius_covers_the_mean():
    rng = np.random.default_rng(0)
    n, m, delta = 5000, 400, 0.1
    x = rng.choice([-1.0, 0.0, 1.0], size=n, p=[0.05, 0.9, 0.05])
    missed = 0
    for _ in range(500):
        part = x[rng.permutation(n)[:m]]
        radius = difference_radius(part.mean(), (part**2).mean(), 2.0, m, n, delta)
        missed += abs(part.mean() - x.mean()) > radius
    assert missed <= 0.1 * 500
    assert difference_radius(0.0, 1.0, 2.0, 50, 50, delta) == 0.0


def test_the_sign_test_keeps_its_promise():
    rng = np.random.default_rng(1)
    n, m, delta = 5000, 500, 0.05
    x = rng.permutation(np.repeat([1, -1, 0], [250, 250, 4500]))  # no worse in all
    wrong = 0
    for _ in range(2000):
        part = x[rng.permutation(n)[:m]]
        wrong += sign_test(int((part > 0).sum()), int((part < 0).sum())) < delta
    assert wrong / 2000 < delta
    assert sign_test(3, 3) == sign_test(2, 5) == 1.0
    assert sign_test(40, 0) == pytest.approx(2.0**-40)
    assert sign_test(4, 3, everything=True) == 0.0


def test_a_worse_candidate_is_abandoned_and_an_equal_one_is_not():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(4096, 2))
    y = np.where(abs(V[:, 0]) < 1, 1, -1)
    constraints = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
    good, bad = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    bits = [violations(constraints, A) for A in (good, bad)]
    n = 10**6
    assert cannot_beat(bits[1], bits[0], constraints.weight, n, 0.0, 0.01)
    assert not cannot_beat(bits[0], bits[1], constraints.weight, n, 0.0, 0.01)
    assert not cannot_beat(bits[0], bits[0], constraints.weight, n, 0.0, 0.01)
    assert cannot_beat(bits[0], bits[0], constraints.weight, n, float(n), 0.01)  # its penalty decides


def test_values_do_not_depend_on_how_vectors_lie_in_memory():
    rng = np.random.default_rng(0)
    V, A = rng.normal(size=(2000, 13)), np.eye(13) + 0.1
    y = np.where(rng.random(2000) < 0.5, 1, -1)
    expected = ((V @ A) * V).sum(axis=1)
    for stored in (V, np.asfortranarray(V), np.repeat(V, 2, axis=0)[::2]):
        pairs = ConstraintSet.from_differences(stored, y, bounds=(1.0, 1.0))
        assert np.allclose(counting._values(pairs, A), expected, rtol=1e-12)
