"""Implicit pairs of labelled points against the same pairs, listed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lptml.constraints.labelled_pairs
from lptml.constraints import ConstraintSet
from lptml.constraints.labelled_pairs import LabelledPairs


def listed(pairs: LabelledPairs) -> ConstraintSet:
    i, j = np.triu_indices(len(pairs.X), 1)
    return pairs.between(i, j)


def random_pairs(rng, N, d=3, classes=3, **options):
    return LabelledPairs.from_labels(
        rng.normal(size=(N, d)), rng.integers(classes, size=N), bounds=(1.5, 2.0), **options
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 60), st.integers(0, 10**6))
def test_pairs_are_numbered_along_the_rows_of_the_upper_triangle(N, seed):
    pairs = random_pairs(np.random.default_rng(seed), N)
    np.testing.assert_array_equal(pairs.pairs(np.arange(pairs.n)), np.triu_indices(N, 1))


def test_numbering_holds_where_the_square_root_is_rounded():
    pairs = LabelledPairs(np.zeros((100_000_001, 0)), np.zeros(1, int), (1, 1), 1, 1, None)
    N = len(pairs.X)
    for i in (0, 1, N // 3, N // 2, N - 3, N - 2):
        start = i * (2 * N - i - 1) // 2
        assert [int(k[0]) for k in pairs.pairs(np.array([start]))] == [i, i + 1]
        assert [int(k[0]) for k in pairs.pairs(np.array([start + N - i - 2]))] == [i, N - 1]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([None, "balanced", {1: 2.0, -1: 0.5}]))
def test_costs_are_those_of_the_listed_pairs(seed, weighted, class_weight):
    rng = np.random.default_rng(seed)
    N = int(rng.integers(3, 50))
    point_weight = rng.uniform(0.1, 2.0, N) if weighted else None
    pairs = random_pairs(rng, N, point_weight=point_weight, class_weight=class_weight)
    everything = listed(pairs)
    G = rng.normal(size=(2, 3))
    A = G.T @ G
    assert pairs.cost(A) == pytest.approx(everything.cost(A), rel=1e-12)
    assert pairs.total_weight == pytest.approx(everything.total_weight, rel=1e-12)
    assert pairs.trivial_costs() == pytest.approx(everything.trivial_costs(), rel=1e-10, abs=1e-9)
    assert pairs.best_scale(A).cost == pytest.approx(everything.best_scale(A).cost, rel=1e-12)
    assert pairs.best_identity().scale == pytest.approx(everything.best_identity().scale, rel=1e-9)


def test_tiles_cover_every_pair_once():
    rng = np.random.default_rng(0)
    pairs = random_pairs(rng, 1100)  # of 512 points a side
    G = rng.normal(size=(3, 3))
    assert pairs.cost(G.T @ G) == listed(pairs).cost(G.T @ G)


def test_pairs_on_the_bound_are_told_apart_far_from_the_origin():
    # Distances of exactly u, where inner products of large coordinates lose all their digits.
    X = np.array([[1e8, 0.0], [1e8, 1.0], [-1e8, 0.0], [-1e8, 1.0 + 1e-5]])
    pairs = LabelledPairs.from_labels(X, [0, 0, 1, 1], bounds=(1.0, 1.0))
    assert pairs.cost(np.eye(2)) == 1.0


def test_a_large_set_finds_its_scale_on_a_sample_and_counts_exactly(monkeypatch):
    monkeypatch.setattr(lptml.constraints.labelled_pairs, "SCALE_PAIRS", 200)
    pairs = random_pairs(np.random.default_rng(1), 60)
    best = pairs.best_scale(np.eye(3))
    assert best.cost == listed(pairs).cost(best.scale * np.eye(3))
    assert best.cost <= 1.2 * listed(pairs).best_identity().cost


@pytest.mark.parametrize("N", [30, 800])
def test_sampled_pairs_are_distinct_and_of_each_kind(N):
    pairs = random_pairs(np.random.default_rng(2), N, classes=4)
    sample = pairs.sample_each(50, np.random.default_rng(3))
    assert (sample.sign == 1).sum() == (sample.sign == -1).sum() == 50
    assert len(np.unique(sample.V, axis=0)) == 100
    again = pairs.sample_each(50, np.random.default_rng(3))
    np.testing.assert_array_equal(sample.V, again.V)


def test_a_sample_takes_all_where_there_are_fewer():
    X = np.arange(6.0)[:, None]
    everything = LabelledPairs.from_labels(X, list("aabbcc"), bounds=(1, 1))
    sample = everything.sample_each(1000, np.random.default_rng(0))
    assert (sample.sign == 1).sum() == 3
    assert (sample.sign == -1).sum() == 12
    y = np.repeat(np.arange(500), 2)  # 500 similar pairs among half a million
    many = LabelledPairs.from_labels(np.arange(1000.0)[:, None], y, bounds=(1, 1))
    few = many.sample_each(1000, np.random.default_rng(0))
    assert (few.sign == 1).sum() == 500


def test_unlabelled_points_are_left_out():
    X = np.arange(4.0)[:, None]
    pairs = LabelledPairs.from_labels(X, [0, -1, 0, 1], bounds=(1, 1), point_weight=[1, 9, 2, 3])
    assert pairs.n == 3
    assert pairs.total_weight == 2 + 3 + 6


def test_balanced_kinds_have_the_same_total():
    pairs = random_pairs(np.random.default_rng(4), 40, class_weight="balanced")
    similar, dissimilar = pairs.kind_weights
    assert similar == pytest.approx(dissimilar)
    assert similar + dissimilar == pytest.approx(pairs.n)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1]}, "one label for each point"),
        ({"y": [-1, -1, 1]}, "at least two"),
        ({"class_weight": "even"}, "balanced"),
        ({"class_weight": {1: 1.0}}, "weights for"),
        ({"class_weight": {1: -1.0, -1: 1.0}}, "not negative"),
        ({"point_weight": [1, 2]}, "point_weight"),
        ({"X": [[1.0], [np.inf], [2.0]]}, "X contains"),
    ],
)
def test_bad_input_is_named(arguments, message):
    good = {"X": [[0.0], [1.0], [2.0]], "y": [0, 0, 1], "bounds": (1.0, 1.0)}
    with pytest.raises(ValueError, match=message):
        LabelledPairs.from_labels(**(good | arguments))


def test_a_sample_of_nothing_is_refused():
    pairs = LabelledPairs.from_labels([[0.0], [1.0]], [0, 1], bounds=(1.0, 1.0))
    with pytest.raises(ValueError, match="n_constraints"):
        pairs.sample_each(0, np.random.default_rng(0))
