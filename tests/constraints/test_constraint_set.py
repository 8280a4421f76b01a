"""Constraint sets against one-line NumPy definitions that share no code with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lptml.constraints import TOLERANCE, ConstraintSet, factor
from lptml.constraints.checks import exact_sum_grid
from lptml.constraints.scaling import feature_scale, scale_metric, unscale_metric


def random_set(rng, n=40, d=3, kind="pairs"):
    weight = rng.uniform(0.1, 3.0, n)
    if kind == "pairs":
        return ConstraintSet.from_pairs(
            rng.normal(size=(n, 2, d)), rng.choice([-1, 1], n), bounds=(1.0, 1.5), weight=weight
        )
    if kind == "triplets":
        return ConstraintSet.from_triplets(rng.normal(size=(n, 3, d)), margin=0.5, weight=weight)
    return ConstraintSet.from_quadruplets(rng.normal(size=(n, 4, d)), margin=0.5, weight=weight)


def random_metric(rng, d, rank=None):
    G = rng.normal(size=(rank or d, d))
    return G.T @ G


def matrices(c):
    C = np.einsum("ni,nj->nij", c.V, c.V)
    return C if c.W is None else C - np.einsum("ni,nj->nij", c.W, c.W)


@pytest.mark.parametrize("kind", ["pairs", "triplets", "quadruplets"])
@pytest.mark.parametrize("rank", [1, 3])
def test_values_and_cost_follow_the_definition(kind, rank):
    rng = np.random.default_rng(0)
    c = random_set(rng, kind=kind)
    A = random_metric(rng, c.d, rank)
    values = np.einsum("nij,ij->n", matrices(c), A)
    np.testing.assert_allclose(c.values(A), values, rtol=1e-12, atol=1e-12)
    wrong = c.sign * (values - c.bound) > 0
    assert c.cost(A) == pytest.approx(c.weight[wrong].sum(), rel=1e-14)
    assert (c.violated(A) == wrong).all()


def test_a_triplet_is_violated_when_the_far_point_is_not_farther_by_the_margin():
    near_far = np.array([[[0.0], [1.0], [2.0]]])  # d2: 1 and 4
    assert ConstraintSet.from_triplets(near_far, margin=3.0).cost(np.eye(1)) == 0
    assert ConstraintSet.from_triplets(near_far, margin=3.1).cost(np.eye(1)) == 1


def test_a_stack_of_metrics_gives_what_each_gives_alone():
    rng = np.random.default_rng(1)
    c = random_set(rng, n=500)
    stack = np.stack([random_metric(rng, 3, rank) for rank in (1, 2, 3)])
    np.testing.assert_allclose(c.values(stack), [c.values(A) for A in stack], rtol=1e-12)
    assert c.cost(stack).tolist() == [c.cost(A) for A in stack]


def test_indefinite_matrices_have_values_too():
    rng = np.random.default_rng(2)
    c = random_set(rng, kind="triplets")
    A = rng.normal(size=(3, 3))
    A = A + A.T
    np.testing.assert_allclose(c.values(A), np.einsum("nij,ij->n", matrices(c), A), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["pairs", "triplets", "quadruplets"]))
def test_best_scale_is_the_best_of_a_fine_grid_and_its_cost_is_real(seed, kind):
    rng = np.random.default_rng(seed)
    c = random_set(rng, n=int(rng.integers(1, 25)), kind=kind)
    A = random_metric(rng, c.d)
    best = c.best_scale(A)
    assert c.cost(best.scale * A) == pytest.approx(best.cost, rel=1e-12)
    flips = c.bound / np.maximum(c.values(A), 1e-9)
    grid = np.concatenate([[0.0], flips * (1 - 1e-6), flips, flips * (1 + 1e-6)])
    assert best.cost <= min(c.cost(s * A) for s in grid) * (1 + 1e-12)


def test_best_scale_meets_two_bounds_that_coincide():
    c = ConstraintSet.from_differences([[2.0], [2.0]], [1, -1], bounds=(1.0, 1.0))
    best = c.best_scale(np.eye(1))
    assert best.cost == 0
    assert best.scale == pytest.approx(0.25)


def test_trivial_costs_are_the_limits_of_the_identity():
    rng = np.random.default_rng(3)
    for kind in ("pairs", "triplets"):
        c = random_set(rng, kind=kind)
        assert c.trivial_costs() == (
            c.cost(np.zeros((3, 3))),
            pytest.approx(c.cost(1e12 * np.eye(3))),
        )
        assert c.best_identity().cost <= min(c.trivial_costs())


def test_points_that_coincide_never_satisfy_a_lower_bound():
    c = ConstraintSet.from_differences(np.zeros((2, 2)), [1, -1], bounds=(1.0, 1.0))
    assert c.trivial_costs() == (1.0, 1.0)
    assert c.best_identity().cost == 1.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_sums_of_weights_do_not_depend_on_their_order(weights, random):
    w = exact_sum_grid(np.array(weights))
    shuffled = w.tolist()
    random.shuffle(shuffled)
    assert sum(shuffled) == sum(w.tolist()) == w.sum()
    np.testing.assert_allclose(w, weights, atol=max(1e-300, 1e-13 * sum(weights)))


def test_factor_keeps_relative_accuracy_across_scales():
    scale = np.array([1e-6, 1.0, 1e6])
    A = (np.eye(3) + 0.3) / scale[:, None] / scale
    L = factor(A)
    np.testing.assert_allclose(L.T @ L, A, rtol=1e-12)
    assert factor(np.diag([1.0, -1.0])) is None
    assert factor(np.zeros((2, 2))).shape == (0, 2)


def test_tolerance_is_relative_to_the_bound():
    c = ConstraintSet.from_differences([[1e-3]], [1], bounds=(1e-3, 1e-3))
    assert c.cost((1 + 0.5 * TOLERANCE) * np.eye(1)) == 0
    assert c.cost((1 + 2 * TOLERANCE) * np.eye(1)) == 1


def test_sets_are_immutable_and_leave_the_callers_arrays_alone():
    V = np.ones((2, 2))
    c = ConstraintSet.from_differences(V, [1, -1], bounds=(1.0, 1.0))
    assert np.shares_memory(c.V, V)
    with pytest.raises(ValueError):
        c.V[0, 0] = 2.0
    V[0, 0] = 2.0


def test_scaling_is_an_exact_change_of_variables():
    rng = np.random.default_rng(4)
    c = random_set(rng, d=4, kind="quadruplets")
    A = random_metric(rng, 4)
    scale = feature_scale(c)
    rms = np.sqrt((np.concatenate([c.V, c.W]) ** 2).mean(axis=0))
    np.testing.assert_allclose(scale, rms, rtol=1e-12)
    np.testing.assert_allclose(c.scaled(scale).values(scale_metric(A, scale)), c.values(A), rtol=1e-10)
    np.testing.assert_allclose(unscale_metric(scale_metric(A, scale), scale), A, rtol=1e-14)


@pytest.mark.parametrize("size", [1e-99, 1e99])
def test_feature_scale_survives_extreme_magnitudes(size):
    c = ConstraintSet.from_differences([[size, 0.0], [size, 0.0]], [1, -1], bounds=(1.0, 1.0))
    np.testing.assert_allclose(feature_scale(c), [size, 1.0], rtol=1e-12)


def pair(V=((1.0,),), y=(1,), bounds=(1, 1), weight=None):
    return ConstraintSet.from_differences(V, y, bounds=bounds, weight=weight)


BAD = {
    "NaN": (lambda: pair(V=[[np.nan]]), "V contains NaN"),
    "label": (lambda: pair(y=[0]), r"\+1 .* -1"),
    "length": (lambda: pair(y=[1, 1]), r"expected shape \(1,\)"),
    "bounds": (lambda: pair(bounds=(0, 1)), "positive and finite"),
    "one bound": (lambda: pair(bounds=1.0), "pair of numbers"),
    "weight": (lambda: pair(weight=[-1]), "not negative"),
    "no weight": (lambda: pair(weight=[0]), "zero everywhere"),
    "no features": (lambda: pair(V=np.ones((1, 0))), "features"),
    "pair shape": (lambda: ConstraintSet.from_pairs(np.ones((2, 3, 1)), [1, 1], bounds=(1, 1)), "n, 2, d"),
    "text": (lambda: ConstraintSet.from_pairs([[["a"], ["b"]]], [1], bounds=(1, 1)), "real numbers"),
    "margin": (lambda: ConstraintSet.from_triplets(np.ones((1, 3, 1)), margin=0), "margin"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make()
