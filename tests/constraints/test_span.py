"""The span of data with more features than points: the same distances in fewer coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lptml.constraints import ConstraintSet
from lptml.constraints.scaling import feature_scale
from lptml.constraints.span import span_of_points, span_of_tuples, span_of_vectors

quick = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def wide(seed: int, n: int, d: int, rank: int | None = None) -> np.ndarray:
    """Points in features whose units differ by nine orders of magnitude, far from the origin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) if rank is None else rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    return (X + 100.0 * rng.normal(size=d)) * 10.0 ** rng.uniform(-3, 6, size=d)


def differences(X: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(len(X), 1)
    return X[i] - X[j]


@quick
@given(seeds, st.integers(2, 9), st.integers(10, 60), st.sampled_from([None, 1, 3]))
def test_a_metric_gives_the_same_distances_inside(seed: int, n: int, d: int, rank: int | None) -> None:
    X = wide(seed, n, d, rank)
    span = span_of_points(X)
    G = np.random.default_rng(seed).normal(size=(d, d)) / X.std(axis=0)
    V, Z = differences(X), differences(span.coordinates(X))
    assert Z.shape[1] == min(n - 1, rank or n)
    expected = np.einsum("ij,ij->i", V @ (G.T @ G), V)
    np.testing.assert_allclose(np.einsum("ij,ij->i", Z @ span.metric_inside(G.T @ G), Z), expected, rtol=1e-6)
    np.testing.assert_allclose(np.square(Z @ span.map_inside(G).T).sum(axis=1), expected, rtol=1e-6)


@quick
@given(seeds, st.integers(2, 9), st.integers(10, 60))
def test_the_identity_and_the_standardised_metric_are_what_they_were(seed: int, n: int, d: int) -> None:
    X = wide(seed, n, d)
    span = span_of_points(X)
    V, Z = differences(X), differences(span.coordinates(X))
    inside = np.einsum("ij,ij->i", Z @ span.diagonal_inside(np.ones(d)), Z)
    np.testing.assert_allclose(inside, np.square(V).sum(axis=1), rtol=1e-6)
    standardised = np.square(V / X.std(axis=0)).sum(axis=1)
    np.testing.assert_allclose(np.square(Z).sum(axis=1), standardised, rtol=1e-8)
    spread = span.coordinates(X).std(axis=0)
    np.testing.assert_allclose(spread, spread[0], rtol=1e-6)  # so dividing by it changes nothing


@quick
@given(seeds, st.integers(1, 4), st.integers(12, 40))
def test_what_is_learned_inside_is_a_map_of_the_features(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    V, W = wide(seed, 2 * n, d).reshape(2, n, d)
    span = span_of_vectors(V, W)
    far, near = span.coordinates(V), span.coordinates(W)
    inside = ConstraintSet(far, near, -np.ones(n, np.int8), np.ones(n), np.ones(n))
    scale = feature_scale(inside)
    np.testing.assert_allclose(scale, scale[0], rtol=1e-6)
    L = rng.normal(size=(3, inside.d))
    outside = span.map_outside(L)
    assert outside.shape == (3, d)
    np.testing.assert_allclose(V @ outside.T, inside.V @ L.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(span.metric_outside(L.T @ L), outside.T @ outside, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(span.map_inside(outside), L, rtol=1e-6, atol=1e-9)


def test_nothing_is_done_where_there_are_as_many_points_as_features() -> None:
    X = wide(0, 8, 8)
    span = span_of_points(X)
    assert span.coordinates(X) is X
    assert span.map_outside(X) is X
    assert span.metric_inside(X) is X
    assert span.rank(5) == 5
    assert (span.diagonal_inside(np.ones(8)) == np.eye(8)).all()


def test_many_pairs_of_few_points_are_reduced_too() -> None:
    X = wide(1, 12, 20)
    i, j = np.triu_indices(12, 1)
    pairs = X[np.stack([i, j], axis=1)]  # 66 pairs in 20 features
    assert span_of_vectors(pairs[:, 0] - pairs[:, 1]).inverse is None
    assert len(span_of_tuples(pairs, pairs[:, 0] - pairs[:, 1]).inverse) == 11


@pytest.mark.parametrize("value", [0.0, 3e-5, 1e40])
def test_points_that_are_all_equal_have_one_coordinate(value: float) -> None:
    X = np.full((3, 7), value)
    span = span_of_points(X)
    assert (span.coordinates(X) == np.zeros((3, 1))).all()
    assert np.isfinite(span.map_outside(np.eye(1))).all()


def test_equal_points_have_equal_coordinates_whatever_their_place() -> None:
    X = wide(2, 40, 300)
    X[[3, 17, 39]] = X[20]
    span = span_of_points(X)
    Z = span.coordinates(X)
    assert (Z[[3, 17, 39]] == Z[20]).all()
    assert Z.shape[1] == 36
    assert (span.coordinates(X[::-1]) == Z[::-1]).all()


def test_a_constant_feature_changes_nothing() -> None:
    X = wide(3, 5, 30)
    with_constant = np.column_stack([X, np.full(5, 1e9)])
    Z, Y = (span_of_points(each).coordinates(each) for each in (X, with_constant))
    np.testing.assert_allclose(differences(Y) ** 2 @ np.ones(4), differences(Z) ** 2 @ np.ones(4), rtol=1e-9)
