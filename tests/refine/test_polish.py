"""Exact searches: the sweep against brute force, enumeration against the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lptml.constraints import TOLERANCE, ConstraintSet
from lptml.refine.kernels import sweep
from lptml.refine.polish import enumerate_metrics, is_enumerable, polish


def random_pairs(n, d, seed, **options):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d))
    y = np.where(np.abs(V[:, 0]) + rng.normal(size=n) * 0.5 < 1.0, 1, -1)
    return ConstraintSet.from_differences(V, y, bounds=(1.0, 1.3), **options)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), curved=st.booleans(), whole=st.booleans())
def test_sweep_finds_the_cheapest_stretch(seed, n, curved, whole):
    rng = np.random.default_rng(seed)
    value, slope = rng.normal(size=(2, n))
    bend = rng.normal(size=n) if curved else np.zeros(n)
    slope[rng.random(n) < 0.2] = 0.0
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    limit, weight = rng.uniform(0.5, 2.0, size=(2, n))
    weight = np.round(weight * 8) / 8
    low, high = (-5.0, 5.0) if not whole else (-1e3, 1e3)
    cost, left, right = sweep(value, slope, bend, sign, limit, weight, low, high, 1e9)
    t = np.linspace(low, high, 20_001)[1:-1, None]
    costs = ((sign * (value + t * (slope + t * bend) - limit)) > 0) @ weight
    assert cost <= costs.min()  # a stretch may be narrower than the grid, so it may be cheaper still
    middle = 0.5 * (left + right)
    at = weight[sign * (value + middle * (slope + middle * bend) - limit) > 0].sum()
    assert at == cost
    assert low <= left < right <= high


def test_sweep_says_when_there_is_nothing_cheaper():
    one = np.ones(1)
    assert sweep(2 * one, 0 * one, 0 * one, one, one, one, -1.0, 1.0, 1.0) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("rank", [None, 1])
def test_polish_never_costs_more_and_keeps_the_rank(d, rank):
    for seed in range(5):
        pairs = random_pairs(60, d, seed)
        start = pairs.best_scale(np.eye(d)).scale * np.eye(d)
        if rank is not None:
            start = np.diag([1.0] + [0.0] * (d - 1))
        A = polish(pairs, start, keep_rank=rank is not None)
        assert pairs.cost(A) <= pairs.cost(start)
        assert np.linalg.eigvalsh(A)[0] >= -1e-12 * np.abs(A).max()
        if rank is not None:
            assert np.linalg.matrix_rank(A, tol=1e-9 * np.abs(A).max()) <= rank


def test_polish_looks_towards_other_metrics():
    pairs = random_pairs(60, 2, 1)
    better = enumerate_metrics(pairs, np.zeros((2, 2)))
    A = polish(pairs, np.eye(2), toward=(better,))
    assert pairs.cost(A) <= pairs.cost(np.eye(2))


def test_polish_on_comparisons():
    rng = np.random.default_rng(0)
    T = rng.normal(size=(100, 3, 3))
    triplets = ConstraintSet.from_triplets(T, margin=0.1)
    assert triplets.cost(polish(triplets, np.eye(3))) < triplets.cost(np.eye(3))


@pytest.mark.parametrize("seed", range(6))
def test_enumeration_is_optimal_in_two_dimensions(seed):
    """Against a fine grid of all metrics up to scale, each at its best scale."""
    pairs = random_pairs(25, 2, seed, weight=np.random.default_rng(seed).uniform(0.5, 2, size=25))
    best = pairs.cost(enumerate_metrics(pairs, np.zeros((2, 2))))
    for angle in np.linspace(0, np.pi, 60):
        g = np.array([np.cos(angle), np.sin(angle)])
        for share in np.linspace(0, 1, 30):
            A = np.outer(g, g) + share * np.outer([-g[1], g[0]], [-g[1], g[0]])
            assert best <= pairs.best_scale(A).cost + 1e-9


def test_enumeration_copes_with_degenerate_instances():
    V = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6)
    pairs = ConstraintSet.from_differences(V, [1, -1] * 6, bounds=(1.0, 1.0))
    A = enumerate_metrics(pairs, np.zeros((2, 2)))
    assert pairs.cost(A) == 0.0  # length exactly one serves both labels
    nothing = ConstraintSet.from_differences(np.zeros((5, 2)), [1, -1, 1, -1, 1], bounds=(1.0, 1.0))
    assert nothing.cost(enumerate_metrics(nothing, np.zeros((2, 2)))) == 2.0


@pytest.mark.parametrize("d", [2, 3])
def test_enumeration_of_few_pairs_finds_metrics_of_rank_one(d):
    """So few that no line has enough tight constraints: the best metric is gg' with d - 1 of them."""
    pairs = ConstraintSet.from_differences(np.eye(d)[: d - 1], [-1] * (d - 1), bounds=(1.0, 2.0))
    assert pairs.cost(np.zeros((d, d))) == d - 1
    A = enumerate_metrics(pairs, np.zeros((d, d)))
    assert pairs.cost(A) == 0.0
    assert np.linalg.matrix_rank(A, tol=1e-9 * np.abs(A).max()) == 1


def test_what_is_enumerable():
    assert is_enumerable(random_pairs(60, 2, 0))
    assert is_enumerable(random_pairs(25, 3, 0))
    assert not is_enumerable(random_pairs(2000, 2, 0))
    assert not is_enumerable(random_pairs(60, 4, 0))
    assert not is_enumerable(random_pairs(2, 2, 0))


def test_the_tolerance_is_that_of_the_count():
    pairs = ConstraintSet.from_differences(
        [[1.0, 0.0], [1.0 + 1e-9, 0.0], [0.0, 1.0]], [1, -1, 1], bounds=(1.0, 1.0)
    )
    A = enumerate_metrics(pairs, np.zeros((2, 2)))
    assert pairs.cost(A) == 0.0
    assert abs(A[0, 0] - 1.0) < 2 * TOLERANCE
