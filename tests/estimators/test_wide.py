"""More features than points: every learner works in the span of the data and speaks of the features."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import lptml
from lptml import (
    LPTML,
    LPTMLCV,
    LabelCleaner,
    LPTML_Quadruplets,
    LPTML_Supervised,
    LPTML_SupervisedCV,
    LPTML_Triplets,
    RobustKNeighborsClassifier,
)
from lptml.noise.suspects import pair_suspects, pair_suspicion, suspects

QUICK = {"max_trials": 4, "random_state": 0}


def points(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, size=d)
    return X + 3.0 * y[:, None] * X.std(axis=0) * (np.arange(d) < 10), y


def tuples(n: int, size: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, size, d)) * 10.0 ** rng.uniform(-3, 3, size=d)


def labels(n: int) -> np.ndarray:
    return np.where(np.arange(n) % 2, 1, -1)


def fits(n: int, d: int) -> dict[str, Any]:
    """A fit of every learner to n points or tuples of d features."""
    X, y = points(n, d)
    pairs, v = tuples(n, 2, d), labels(n)
    return {
        "pairs": lambda: LPTML(**QUICK).fit(pairs, v),
        "pairs, cross-validated": lambda: LPTMLCV(cv=2, temperatures=[0.1], **QUICK).fit(pairs, v),
        "triplets": lambda: LPTML_Triplets(**QUICK).fit(tuples(n, 3, d)),
        "quadruplets": lambda: LPTML_Quadruplets(**QUICK).fit(tuples(n, 4, d)),
        "supervised": lambda: LPTML_Supervised(**QUICK).fit(X, y),
        "supervised, all pairs": lambda: LPTML_Supervised(constraints="all", **QUICK).fit(X, y),
        "supervised, neighbours": lambda: LPTML_Supervised(constraints="neighbors", **QUICK).fit(X, y),
        "supervised, cross-validated": lambda: LPTML_SupervisedCV(n_repeats=1, **QUICK).fit(X, y),
        "neighbours": lambda: RobustKNeighborsClassifier(random_state=0).fit(X, y),
        "one class": lambda: RobustKNeighborsClassifier(random_state=0).fit(X, np.zeros(n)),
        "cleaner": lambda: LabelCleaner(KNeighborsClassifier(1)).fit(X, y),
        "cleaner of pairs": lambda: LabelCleaner(LPTML(**QUICK)).fit(pairs, v),
        "suspicion": lambda: lptml.suspicion(X, y),
        "suspects": lambda: suspects(X, y),
        "suspects among pairs": lambda: pair_suspects(pairs, v),
        "suspicion of pairs": lambda: pair_suspicion(pairs, v),
    }


@pytest.mark.parametrize("name", fits(2, 2))
def test_no_matrix_of_all_features_by_all_features(name: str) -> None:
    fits(12, 20)[name]()  # what is compiled and imported once does not count
    n, d = 12, 6000
    fit = fits(n, d)[name]
    tracemalloc.start()
    model = fit()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * d * d / 3
    if hasattr(model, "components_"):
        k, features = model.components_.shape
        assert features == d
        assert k <= 2 * n


@pytest.mark.parametrize("name", [name for name in fits(2, 2) if "susp" not in name])
def test_every_learner_is_whole(name: str) -> None:
    model = fits(10, 40)[name]()
    if hasattr(model, "components_"):
        assert np.isfinite(model.components_).all()
    if hasattr(model, "violation_rate_"):
        assert 0 <= (model.lower_bound_ or 0.0) <= model.violation_rate_ <= 1
    if hasattr(model, "transform") and not isinstance(model, LabelCleaner):
        assert model.transform(points(3, 40)[0]).shape == (3, len(model.components_))


@pytest.mark.parametrize("prior", ["identity", "standardized", "matrix"])
@pytest.mark.parametrize("learner", [LPTML, LPTML_Supervised])
def test_the_prior_is_that_of_the_features(learner: Any, prior: str) -> None:
    n, d = 15, 60
    G = np.random.default_rng(1).normal(size=(d, d))
    (X, y), pairs = points(n, d), tuples(n, 2, d)
    size = (
        X.std(axis=0) if learner is LPTML_Supervised else np.sqrt((np.diff(pairs, axis=1) ** 2).mean((0, 1)))
    )
    L = {"identity": np.eye(d), "standardized": np.diag(1 / size), "matrix": G}[prior]
    model = learner(prior=G.T @ G if prior == "matrix" else prior, shrinkage=1.0, temperature=0.1, **QUICK)
    if learner is LPTML_Supervised:
        i, j = np.triu_indices(n, 1)
        Z = model.fit(X, y).transform(X)
        V, found = X[i] - X[j], np.linalg.norm(Z[i] - Z[j], axis=1)
    else:
        V, found = pairs[:, 0] - pairs[:, 1], model.fit(pairs, labels(n)).pair_distance(pairs)
    expected = np.linalg.norm(V @ L.T, axis=1)
    np.testing.assert_allclose(found / found.mean(), expected / expected.mean(), rtol=1e-5)


def test_contradictions_are_all_that_is_violated() -> None:
    """Independent difference vectors can have any lengths, so that only those with both labels are left."""
    pairs = tuples(20, 2, 200)
    twice = np.concatenate([pairs, pairs[:3]])
    y = np.concatenate([labels(20), -labels(3)])
    model = LPTML(bounds=(1.0, 2.0), random_state=0).fit(twice, y)
    assert model.n_violations_ == 3
    assert model.violation_rate_ == pytest.approx(3 / 23)


def test_rates_are_those_of_the_features() -> None:
    n, d = 12, 40
    triplets = np.round(tuples(n, 3, d))
    triplets[0, 2] = triplets[0, 1]  # equally near: no multiple of the identity holds
    model = LPTML_Triplets(**QUICK).fit(triplets)
    near, far = (triplets[:, [0]] - triplets[:, 1:]).transpose(1, 0, 2)
    euclidean = np.mean(np.square(far).sum(axis=1) <= np.square(near).sum(axis=1))
    assert model.trivial_rate_ == pytest.approx(euclidean)
    near, far = (np.square(V @ model.components_.T).sum(axis=1) for V in (near, far))
    assert model.violation_rate_ == pytest.approx(np.mean(far - near < 1 - 1e-6))


def test_the_trivial_rate_of_labels_is_that_of_the_features() -> None:
    X, y = points(12, 40)
    squares = np.square(X[:, None] - X).sum(axis=2)
    grows = []
    for i in range(12):
        alike = [j for j in np.argsort(squares[i]) if y[j] == y[i] and j != i][:3]
        other = [j for j in np.argsort(squares[i]) if y[j] != y[i]]
        grows += [squares[i, far] > squares[i, near] for near in alike for far in other]
    model = LPTML_Supervised(prior="identity", **QUICK).fit(X, y, trust=np.ones(12))
    assert model.trivial_rate_ == pytest.approx(np.mean(np.logical_not(grows)))
    n = len(grows)
    drawn = LPTML_Supervised(prior="identity", n_constraints=n - 1, **QUICK).fit(X, y)
    assert drawn.trivial_rate_ == pytest.approx(model.trivial_rate_, abs=1 / n)


def test_bounds_are_distances_of_the_features() -> None:
    X, y = points(10, 50)
    i, j = np.triu_indices(10, 1)
    distances = np.linalg.norm(X[i] - X[j], axis=1)
    model = LPTML_Supervised(constraints="all", bounds=("percentile", 10, 90), **QUICK).fit(X, y)
    np.testing.assert_allclose(model.bounds_, np.percentile(distances, [10, 90]))


def test_copies_and_the_order_of_points_change_nothing() -> None:
    X, y = points(10, 50)
    order = np.random.default_rng(0).permutation(10)
    first = LPTML_Supervised(**QUICK).fit(X, y)
    assert (LPTML_Supervised(**QUICK).fit(X[order], y[order]).components_ == first.components_).all()
    weighed = LPTML_Supervised(**QUICK).fit(X, y, sample_weight=np.where(y == 1, 2.0, 1.0))
    copied = np.concatenate([np.arange(10), np.flatnonzero(y == 1)])
    assert (LPTML_Supervised(**QUICK).fit(X[copied], y[copied]).components_ == weighed.components_).all()


def test_points_at_the_same_place_stay_there() -> None:
    X, y = points(10, 50)
    X[4] = X[5]  # of different classes
    Z = LPTML_Supervised(**QUICK).fit(X, y).transform(X)
    np.testing.assert_allclose(Z[4], Z[5], rtol=0, atol=1e-12 * np.abs(Z).max())


@pytest.mark.parametrize("asked", [1, 3, 39])
def test_the_rank_is_what_was_asked_for_or_what_there_is(asked: int) -> None:
    X, y = points(10, 40)
    for model in (
        LPTML_Supervised(n_components=asked, **QUICK).fit(X, y),
        LPTML_SupervisedCV(n_components=asked, n_repeats=1, **QUICK).fit(X, y),
        LPTML(n_components=asked, **QUICK).fit(tuples(9, 2, 40), labels(9)),
    ):
        assert model.components_.shape == (min(asked, 9), 40)


def test_regulariser_start_and_callback_are_about_the_features() -> None:
    pairs, y = tuples(8, 2, 30), labels(8)
    pairs /= np.abs(pairs).max(axis=(0, 1))
    met = []
    model = LPTML(callback=lambda cost, A: met.append((cost, A)), **QUICK)
    model.fit(pairs, y, initial_metric=np.eye(30))
    assert all(A.shape == (30, 30) for _, A in met)
    V = pairs[:, 0] - pairs[:, 1]
    cost, A = met[-1]
    u, l = model.bounds_
    squares = np.einsum("ij,ij->i", V @ A, V)
    assert cost == np.sum(np.where(y == 1, squares > u**2 * (1 + 1e-6), squares < l**2 * (1 - 1e-6)))
    strong = LPTML(regularization=1e6, regularizer=np.diag(np.r_[1.0, np.zeros(29)]), **QUICK).fit(pairs, y)
    weight = np.square(strong.components_).sum(axis=0)
    assert weight[0] < 1e-3 * weight.max()


def test_everything_at_one_place_is_no_error() -> None:
    same = np.ones((6, 2, 30))
    assert LPTML(**QUICK).fit(same, labels(6)).violation_rate_ == pytest.approx(0.5)
    model = LPTML_Supervised(**QUICK).fit(np.ones((6, 30)), np.arange(6) % 2)
    assert np.isfinite(model.components_).all()


def test_neighbours_of_new_points_are_found() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 400))
    X[:, :40] += 1.2 * y[:, None]
    train, test = slice(0, 40), slice(40, 80)
    assert RobustKNeighborsClassifier(random_state=0).fit(X[train], y[train]).score(X[test], y[test]) > 0.85


def test_reasons_are_features_that_speak_against_a_label() -> None:
    X, y = points(60, 400)
    y[7] = 1 - y[7]
    table = suspects(X, y, feature_names=[str(j) for j in range(400)], top=1)
    assert table.row[0] == 7
    assert all(int(name) < 10 for name in table.features[0])  # the ten that differ between the classes
    assert len(table.features[0]) == 3
