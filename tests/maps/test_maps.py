"""Maps: gradients by finite differences, leaves by scikit-learn, kernels by hand, states that come back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from lptml.maps import (
    KINDS,
    Evidence,
    ForestMap,
    NystroemMap,
    ReluMap,
    TransformerMap,
    restore_map,
    state_of,
)
from lptml.maps.forest import Trees, flatten
from lptml.maps.relu import loss_and_gradients


def evidence(seed=0, n=60, d=3, size=2, N=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    tuples = np.array([rng.choice(n, size, replace=False) for _ in range(N)])
    sign = rng.choice([-1, 1], size=N) if size == 2 else -np.ones(N, dtype=int)
    labels = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    return Evidence(X, np.eye(d), tuples, sign, np.ones(N), rng.uniform(0.5, 2, size=N), labels)


@pytest.mark.parametrize("size", [2, 3])
def test_gradients_are_those_of_finite_differences(size):
    told = evidence(size=size)
    rng = np.random.default_rng(1)
    parts = [rng.normal(size=shape) for shape in ((5, 3), (5,), (4, 8))]
    rows = np.arange(50)
    _, *gradients = loss_and_gradients(told.X, told, rows, *parts, 0.7)
    for number, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        values = []
        for h in (1e-5, -1e-5):
            moved = [part + h * direction if i == number else part for i, part in enumerate(parts)]
            values.append(loss_and_gradients(told.X, told, rows, *moved, 0.7)[0])
        numeric = (values[0] - values[1]) / 2e-5
        assert numeric == pytest.approx((gradient * direction).sum(), rel=1e-4, abs=1e-7)


def test_loss_tends_to_the_violated_weight():
    told = evidence()
    W, c, G = np.zeros((0, 3)), np.zeros(0), np.eye(3)
    rows = np.arange(len(told.tuples))
    loss, *_ = loss_and_gradients(told.X, told, rows, W, c, G, 1e-6)
    distance = np.linalg.norm(told.X[told.tuples[:, 1]] - told.X[told.tuples[:, 0]], axis=1)
    violated = np.where(told.sign > 0, distance > 1, distance < 1)
    assert loss == pytest.approx((violated * told.weight).sum() / told.weight.sum(), abs=1e-6)


def test_leaves_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 4)), rng.normal(size=(200, 2))
    forest = ExtraTreesRegressor(7, random_state=0).fit(X, Y)
    trees = flatten([tree.tree_ for tree in forest.estimators_], np.zeros(4), np.ones(4))
    trees.check(4)
    new = rng.normal(size=(3000, 4))
    theirs, ours = forest.apply(new), trees.leaves(new)
    for t in range(7):  # the same partition of the points, under other numbers
        pairs = np.unique(np.stack([theirs[:, t], ours[:, t]], axis=1), axis=0)
        assert len(pairs) == len(np.unique(theirs[:, t])) == len(np.unique(ours[:, t]))
    assert len(np.unique(ours)) <= trees.n_leaves


def test_forest_features_are_its_kernel():
    told = evidence(n=40)
    f = ForestMap(components=1000).fit(told)
    F = f.transform(told.X)
    leaves = f.trees.leaves(told.X)
    share = (leaves[:, None] == leaves[None]).mean(axis=2)
    np.testing.assert_allclose(F @ F.T, share, atol=1e-6)


def test_nystroem_features_are_the_kernel():
    told = evidence(n=50)
    f = NystroemMap(components=1000).fit(told)
    F = f.transform(told.X)[:, 3:]
    Z = f.transform(told.X)[:, :3]
    np.testing.assert_allclose(F @ F.T, rbf_kernel(Z, gamma=1 / (2 * float(f._width))), atol=1e-6)


def test_linear_metrics_are_metrics_of_the_features():
    told = evidence()
    A = np.diag([1.0, 2.0, 3.0])
    for kind in (ReluMap, NystroemMap):
        F = kind().fit(told).transform(told.X)[:, :3]
        back, *_ = np.linalg.lstsq(F - F.mean(axis=0), told.X - told.X.mean(axis=0), rcond=None)
        v = F[0] - F[1]
        x = told.X[0] - told.X[1]
        assert v @ back @ A @ back.T @ v == pytest.approx(x @ A @ x)


def test_a_layer_that_does_not_help_is_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    pairs = np.arange(400).reshape(200, 2)
    told = Evidence(X, np.eye(2), pairs, rng.choice([-1, 1], 200), np.ones(200), np.ones(200))
    linear = np.abs(X[pairs[:, 0], 0] - X[pairs[:, 1], 0]) < 1
    easy = Evidence(X, np.eye(2), pairs, np.where(linear, 1, -1), np.ones(200), np.ones(200))
    assert ReluMap().fit(easy).transform(X).shape[1] >= 2
    nothing = ReluMap().fit(Evidence.of_points(X))
    assert nothing.transform(X).shape == (400, 2)
    assert ReluMap(width=0).fit(told).transform(X).shape == (400, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_states_come_back(kind):
    told = evidence()
    f = KINDS[kind](seed=3).fit(told)
    again = restore_map(state_of(f))
    new = np.random.default_rng(5).normal(size=(20, 3))
    np.testing.assert_array_equal(again.transform(new), f.transform(new))
    one_by_one = np.concatenate([f.transform(row[None]) for row in new])
    np.testing.assert_allclose(one_by_one, f.transform(new), atol=1e-9)
    assert np.array_equal(KINDS[kind](seed=3).fit(told).transform(new), f.transform(new))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_damaged_trees_are_refused_or_end(seed):
    rng = np.random.default_rng(seed)
    f = ForestMap(n_trees=3, components=4).fit(evidence(n=30))
    trees = f.trees
    children = trees.children.copy()
    children[rng.integers(len(children)), rng.integers(2)] = rng.integers(-5, len(children) + 5)
    feature = trees.feature.copy()
    feature[rng.integers(len(feature))] = rng.integers(-2, 6)
    damaged = Trees(children, feature, trees.threshold, trees.roots, trees.centre, trees.scale)
    try:
        damaged.check(3)
    except ValueError:
        return
    assert damaged.leaves(np.zeros((5, 3))).max() < damaged.n_leaves


def test_transformers_are_maps_without_a_file():
    f = TransformerMap(PolynomialFeatures(2)).fit(evidence())
    assert f.transform(np.ones((2, 3))).shape == (2, 10)
    with pytest.raises(ValueError, match="PolynomialFeatures"):
        state_of(f)


def test_forest_needs_labels():
    with pytest.raises(ValueError, match="forest"):
        ForestMap().fit(Evidence.of_points(np.zeros((5, 2))))
