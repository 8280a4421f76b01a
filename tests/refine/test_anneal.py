"""The smoothed cost: its gradient, its weights, its limits."""

from dataclasses import replace

import numpy as np
import pytest

from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.constraints.indexed_pairs import IndexedPairs
from lptml.constraints.scaling import blend, representative, truncate
from lptml.refine.anneal import Schedule, anneal, rescaled
from lptml.refine.minibatches import batches_of


def labelled(N=40, d=3, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d)) * np.arange(1, d + 1)
    return LabelledPairs.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.5), **options)


def triplets(n=200, d=3, seed=0):
    T = np.random.default_rng(seed).normal(size=(n, 3, d))
    near, far = (np.abs(T[:, 0, 0] - T[:, k, 0]) for k in (1, 2))
    T[near > far] = T[near > far][:, [0, 2, 1]]
    return ConstraintSet.from_triplets(T, margin=0.1)


def smoothed_cost(constraints, G, temperature):
    values = np.square(constraints.V @ G.T).sum(axis=1)
    near = np.zeros(constraints.n) if constraints.W is None else np.square(constraints.W @ G.T).sum(axis=1)
    z = constraints.sign * (np.sqrt(values) - np.sqrt(near + constraints.bound)) / temperature
    return float(constraints.weight @ (1 / (1 + np.exp(-z))))


@pytest.mark.parametrize("kind", ["rows", "points", "triplets"])
def test_gradient_is_that_of_the_smoothed_cost(kind):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, size=40)
    source = triplets() if kind == "triplets" else labelled(point_weight=weight, class_weight="balanced")
    stored = source if kind == "triplets" else source.take(np.arange(source.n))
    batches = batches_of(stored if kind == "rows" else source, stored, rng, 10_000, True, False)
    G = rng.normal(size=(2, 3))
    gradient = batches.gradient(G, 0.7)
    step = 1e-6
    for place in np.ndindex(G.shape):
        H = np.zeros_like(G)
        H[place] = step
        numeric = (smoothed_cost(stored, G + H, 0.7) - smoothed_cost(stored, G - H, 0.7)) / (2 * step)
        assert gradient[place] == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kind", ["rows", "points", "triplets"])
@pytest.mark.parametrize("batch", [24, 10_000])
def test_single_precision_follows_the_same_gradient(kind, batch):
    source = triplets() if kind == "triplets" else labelled()
    stored = source if kind == "triplets" else source.take(np.arange(source.n))
    source = stored if kind == "rows" else source
    G = np.random.default_rng(1).normal(size=(2, 3))
    single, double = (
        batches_of(source, stored, np.random.default_rng(0), batch, moderate, True).gradient(G, 0.7)
        for moderate in (True, False)
    )
    assert not np.array_equal(single, double)
    assert np.allclose(single, double, rtol=1e-4, atol=1e-5 * np.abs(double).max())


def test_points_and_their_pairs_have_the_same_gradient():
    source = labelled(N=150, point_weight=np.linspace(0.5, 2.0, 150))  # in three strips
    stored = source.take(np.arange(source.n))
    G = np.random.default_rng(1).normal(size=(2, 3))
    of_points, of_pairs = (
        batches_of(each, stored, np.random.default_rng(0), 20_000, True, False) for each in (source, stored)
    )
    np.testing.assert_allclose(of_points.gradient(G, 0.1), of_pairs.gradient(G, 0.1), rtol=1e-9)


@pytest.mark.parametrize("source", [labelled(), triplets()], ids=["pairs", "triplets"])
def test_annealing_beats_the_identity(source):
    A = anneal(source, np.eye(3))
    assert source.best_scale(A).cost < 0.6 * source.best_identity().cost
    assert np.linalg.eigvalsh(A)[0] >= -1e-12


def test_points_far_from_the_origin_keep_their_distances():
    source = labelled()
    far = replace(source, X=source.X + 1e4)
    G = np.random.default_rng(1).normal(size=(2, 3))
    near, away = (
        batches_of(each, each.take(np.arange(each.n)), np.random.default_rng(0), None, True, True)
        for each in (source, far)
    )
    near, away = near.gradient(G, 0.7), away.gradient(G, 0.7)
    np.testing.assert_allclose(away, near, rtol=1e-3, atol=1e-4 * np.abs(near).max())


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_minibatches_of_numbers_beyond_single_precision(size):
    source = labelled().take(np.arange(labelled().n))
    far = ConstraintSet.from_differences(
        size * source.V, source.sign, bounds=tuple(size * np.sqrt(source.bound[[0, -1]]))
    )
    A = anneal(far, np.eye(3), batch=256, final_temperature=0.1)
    assert far.best_scale(A).cost < 0.6 * far.best_identity().cost


def test_start_scale_and_units_do_not_matter():
    source = labelled()
    A = anneal(source, np.eye(3), steps=100)
    np.testing.assert_allclose(anneal(source, 1e-8 * np.eye(3), steps=100), A, rtol=1e-6)
    scale = np.array([1e-4, 1.0, 1e5])
    B = anneal(source.projected(np.diag(1.0 / scale)), np.diag(scale**2), steps=100)
    np.testing.assert_allclose(B / scale[:, None] / scale, A, rtol=1e-4, atol=1e-6 * np.abs(A).max())


def test_weights_decide_what_is_satisfied():
    V = np.array([[1.0, 0.0], [1.0, 0.0]])
    for heavy in (0, 1):
        weight = [10.0 if i == heavy else 1.0 for i in range(2)]
        clash = ConstraintSet.from_differences(V, [+1, -1], bounds=(1.0, 2.0), weight=weight)
        A = anneal(clash, np.eye(2))
        assert clash.best_scale(A).cost == 1.0


def test_rank_and_shrinkage():
    source = labelled(d=4)
    start = np.eye(4)
    assert np.linalg.matrix_rank(anneal(source, start, rank=2, steps=50)) <= 2
    assert np.linalg.matrix_rank(anneal(source, start, rank=2, steps=50, shrinkage=0.5)) <= 2
    free = anneal(source, start, steps=50)
    whole = anneal(source, start, steps=50, shrinkage=1.0)
    np.testing.assert_allclose(whole / whole[0, 0], start, atol=1e-12)
    half = anneal(source, start, steps=50, shrinkage=0.5)
    np.testing.assert_allclose(half, (free + whole) / 2, rtol=1e-9)


def test_minibatches_of_every_source_agree_with_the_whole():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=300) > 0
    points = LabelledPairs.from_labels(X, y, bounds=(1.0, 1.0))
    rows = points.take(np.arange(points.n))
    i, j = points.pairs(np.arange(points.n))
    indexed = IndexedPairs.from_indices(X, np.stack([i, j], axis=1), rows.sign, bounds=(1.0, 1.0))
    full = points.best_scale(anneal(points, np.eye(3))).cost
    for source, batch in ((points, 64), (rows, 2048), (indexed, 2048)):
        some = points.best_scale(anneal(source, np.eye(3), batch=batch)).cost
        assert some < 1.1 * full


def test_same_generator_same_metric():
    source = labelled(N=200)
    first, second = (
        anneal(source, np.eye(3), steps=30, batch=50, rng=np.random.default_rng(5)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": np.eye(2)}, "start must have shape"),
        ({"shrinkage": 1.5}, "shrinkage"),
        ({"rank": 0}, "rank"),
        ({"rank": 4}, "rank"),
        ({"steps": 0}, "steps"),
        ({"final_temperature": 5.0}, "temperature"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        anneal(labelled(), **{"start": np.eye(3), **options})


def test_schedule_is_geometric():
    steps = list(Schedule(3, 1.0, 0.01, 0.5, 0.005))
    np.testing.assert_allclose(steps, [(1.0, 0.5), (0.1, 0.05), (0.01, 0.005)])


def test_helpers():
    source = labelled()
    sample = representative(source, np.random.default_rng(0), 100)
    assert sample.n <= 100
    A = np.diag([1.0, 2.0, 3.0])
    assert np.linalg.matrix_rank(truncate(A, 1, np.ones(3))) == 1
    np.testing.assert_array_equal(blend(sample, A, np.zeros((3, 3)), 0.5), A)
    assert source.cost(rescaled(source.take(np.arange(source.n)), A)) == source.best_scale(A).cost
