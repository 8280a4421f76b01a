"""Samples: the right distribution, the same everywhere, in time proportional to their size."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from lptml.search.sampling import Sample, draw_sample, grid_position, probability_grid, trial_rng


def _chi_square(counts: Counter, outcomes: int, draws: int) -> float:
    expected = draws / outcomes
    return sum((counts[o] - expected) ** 2 / expected for o in counts) + expected * (outcomes - len(counts))


@pytest.mark.parametrize(("n", "size"), [(5, 2), (6, 3), (9, 2)])
def test_every_ordered_subset_is_equally_likely(n, size):
    rng = np.random.default_rng(0)
    keys = rng.integers(1 << 64, size=20_000, dtype=np.uint64)
    counts = Counter(tuple(Sample(n, size, int(key)).head(size)) for key in keys)
    outcomes = math.perm(n, size)
    # Five standard deviations of a chi-square variable.
    assert _chi_square(counts, outcomes, len(keys)) < outcomes - 1 + 5 * math.sqrt(2 * outcomes)


def test_inclusions_are_independent():
    n, p, draws = 300, 0.2, 5000
    together = np.zeros((20, 20))
    sizes = []
    for trial in range(draws):
        member = np.zeros(n)
        index = draw_sample(n, p, trial_rng(1, trial)).indices()
        sizes.append(len(index))
        member[index] = 1
        together += np.outer(member[:20], member[:20])
    pairs = together[np.triu_indices(20, 1)] / draws
    z = (pairs - p**2) / math.sqrt(p**2 * (1 - p**2) / draws)
    assert abs(z).max() < 4.5
    assert abs(np.diagonal(together) / draws - p).max() < 4.5 * math.sqrt(p * (1 - p) / draws)
    assert np.var(sizes) == pytest.approx(n * p * (1 - p), rel=0.1)


@pytest.mark.parametrize("n", [1, 2, 3, 255, 256, 257, 1000, 65_537])
def test_a_full_sample_is_a_permutation(n):
    assert sorted(Sample(n, n, 3).head(n)) == list(range(n))


def test_contains_and_indices_agree_for_any_partition():
    sample = Sample(10_007, 1234, 99)
    everything = np.arange(10_007)
    np.testing.assert_array_equal(np.flatnonzero(sample.contains(everything)), sample.indices())
    parts = np.array_split(everything, 7)
    np.testing.assert_array_equal(
        np.concatenate([part[sample.contains(part)] for part in parts]), sample.indices()
    )


def test_the_head_is_a_prefix():
    sample = Sample(10**12, 10**9, 5)
    np.testing.assert_array_equal(sample.head(10), sample.head(1000)[:10])
    np.testing.assert_array_equal(sample.part(4, 10), sample.head(10)[4:])
    assert len(Sample(10, 3, 0).head(100)) == 3


def test_a_sample_of_more_constraints_than_memory_holds():
    sizes = [len(draw_sample(10**15, 1e-13, np.random.default_rng(seed)).indices()) for seed in range(100)]
    assert 90 < np.mean(sizes) < 110


def test_trials_draw_from_their_own_seeds():
    first = [draw_sample(1000, 0.1, trial_rng(7, trial)).indices() for trial in range(5)]
    again = [draw_sample(1000, 0.1, trial_rng(7, trial)).indices() for trial in reversed(range(5))][::-1]
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], first[1])


def test_edges():
    rng = np.random.default_rng(0)
    assert draw_sample(10, 1.0, rng).size == 10
    assert len(draw_sample(10, 0.0, rng).indices()) == 0
    with pytest.raises(ValueError, match="epsilon"):
        probability_grid(10, 0.0)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-17, 5e-324])
def test_a_grid_that_no_search_could_visit_is_refused_before_it_is_laid_out(epsilon):
    with pytest.raises(ValueError, match=r"epsilon = .* makes a grid of .* use a larger epsilon"):
        probability_grid(5000, epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 2, 100, 10**6])
def test_the_grid_is_the_one_of_algorithm_2(n, epsilon):
    grid = probability_grid(n, epsilon)
    last = math.floor(math.log(n) / math.log1p(epsilon) + 1e-9)
    np.testing.assert_allclose(grid, [(1 + epsilon) ** -i for i in range(last + 1)])
    assert grid[-1] >= 1 / n * (1 - 1e-9)


@pytest.mark.parametrize("levels", [1, 2, 3, 20, 21, 87, 100])
def test_every_run_over_the_grid_visits_each_level_once(levels):
    order = [grid_position(trial, levels) for trial in range(3 * levels)]
    assert order[0] == 0
    for k in range(3):
        assert sorted(order[k * levels : (k + 1) * levels]) == list(range(levels))
    if levels >= 20:  # a quarter of a run already reaches every quarter of the grid
        assert {4 * place // levels for place in order[: levels // 4 + 1]} == {0, 1, 2, 3}
