"""Estimators with maps that are not linear: rings, the contract, files, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.model_files import edited, members, write

from lptml import LPTML, LPTML_Supervised, LPTML_SupervisedCV, LPTML_Triplets, load, save
from lptml.estimators.io import ModelFileError
from lptml.maps import ForestMap, NystroemMap, ReluMap

FAST = {"max_trials": 2, "random_state": 0}


def rings(n, noise, rng):
    y = rng.integers(2, size=n)
    radius, angle = 1.0 + y + 0.1 * rng.normal(size=n), rng.uniform(0, 2 * np.pi, size=n)
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return np.hstack([ring, rng.normal(size=(n, noise))]), y


@pytest.mark.parametrize("noise", [0, 8])
def test_pairs_of_rings(noise):
    rng = np.random.default_rng(0)
    X, y = rings(4000, noise, rng)
    pairs, told = X.reshape(2000, 2, -1), np.where(y[::2] == y[1::2], 1, -1)
    told = np.where(rng.uniform(size=2000) < 0.1, -told, told)
    new, truth = rings(4000, noise, rng)
    same = np.where(truth[::2] == truth[1::2], 1, -1)
    accuracy = {
        kind: (LPTML(map=kind, **FAST).fit(pairs, told).predict(new.reshape(2000, 2, -1)) == same).mean()
        for kind in ("linear", "relu")
    }
    assert accuracy["linear"] < 0.7 < 0.95 < accuracy["relu"]


def test_triplets_of_rings():
    rng = np.random.default_rng(1)
    X, y = rings(900, 0, rng)
    a = rng.integers(900, size=1500)
    near = np.array([rng.choice(np.flatnonzero(y == y[i])) for i in a])
    far = np.array([rng.choice(np.flatnonzero(y != y[i])) for i in a])
    model = LPTML_Triplets(map="relu", **FAST).fit(np.stack([X[a], X[near], X[far]], axis=1)[:1000])
    held = np.stack([X[a], X[near], X[far]], axis=1)[1000:]
    linear = LPTML_Triplets(**FAST).fit(np.stack([X[a], X[near], X[far]], axis=1)[:1000])
    assert model.score(held) > 0.95 > 0.8 > linear.score(held)


MAPS = ["relu", "nystroem", "forest", ReluMap(width=8), NystroemMap(components=5)]


@pytest.mark.parametrize("kind", MAPS, ids=str)
def test_what_a_fitted_learner_offers(kind):
    X, y = load_iris(return_X_y=True)
    model = LPTML_Supervised(map=kind, **FAST).fit(X[::3], y[::3])
    Z = model.transform(X)
    assert KNeighborsClassifier(4).fit(Z[::3], y[::3]).score(Z[1::3], y[1::3]) > 0.85
    distance = model.get_metric()
    assert distance(X[0], X[99]) == pytest.approx(np.linalg.norm(Z[0] - Z[99]))
    assert distance(X[0], X[99], squared=True) == pytest.approx(np.square(Z[0] - Z[99]).sum())
    assert model.pair_distance(X[[[0, 99]]])[0] == pytest.approx(distance(X[0], X[99]))
    with pytest.raises(AttributeError, match="not linear"):
        _ = model.components_
    with pytest.raises(AttributeError, match="not linear"):
        model.get_mahalanobis_matrix()
    assert len(model.get_feature_names_out()) == Z.shape[1]
    for again in (pickle.loads(pickle.dumps(model)), clone(model).fit(X[::3], y[::3])):
        np.testing.assert_array_equal(again.transform(X), Z)
    assert len(model.suspicion_) == 50
    assert model.support_.max(initial=0) < 50
    model.set_params(map="linear").fit(X[::3], y[::3])
    assert model.transform(X).shape == (150, 4)
    assert model.components_.shape == (4, 4)


@pytest.mark.parametrize("kind", [*MAPS, ForestMap(6, n_trees=20, min_leaf=3, seed=4)], ids=str)
def test_model_files(kind, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = LPTML_Supervised(map=kind, **FAST).fit(X[::3], y[::3])
    again = load(save(model, tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert repr(again.get_params()["map"]) == repr(kind)
    np.testing.assert_array_equal(again.fit(X[::3], y[::3]).transform(X), model.transform(X))


def test_model_file_of_maps_with_widths_that_were_compared(tmp_path):
    X, y = load_iris(return_X_y=True)
    maps = ["linear", ReluMap(width=4), NystroemMap(components=3)]
    model = LPTML_SupervisedCV(maps=maps, priors=("standardized",), cv=2, n_repeats=1, **FAST)
    model.fit(X[::3], y[::3])
    again = load(save(model, tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert repr(again.maps) == repr(maps)
    assert repr(again.best_params_) == repr(model.best_params_)
    assert {*map(repr, again.cv_results_["param_map"])} == {*map(repr, maps)}


class Doubled(ReluMap):
    """A stranger's kind of map."""


def test_maps_that_no_file_knows_are_refused_by_name(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = LPTML_Supervised(map=Doubled(width=4), **FAST).fit(X[::3], y[::3])
    with pytest.raises(ValueError, match="map"):
        save(model, tmp_path / "model.npz")


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "relu"},
        {"kind": "relu", "width": -1, "seed": 0},
        {"kind": "relu", "width": "8", "seed": 0},
        {"kind": "relu", "width": {"$": "map"}, "seed": 0},
        {"kind": "relu", "width": 8, "seed": 0, "metric": 1},
        {"kind": ["relu"], "width": 8, "seed": 0},
        {"kind": "LabelCleaner", "width": 8, "seed": 0},
    ],
    ids=str,
)
def test_settings_of_maps_in_files_are_checked(settings, tmp_path):
    X, y = load_iris(return_X_y=True)
    path = save(LPTML_Supervised(map=ReluMap(width=8), **FAST).fit(X[::3], y[::3]), tmp_path / "model.npz")
    write(path, edited(members(path), lambda header: header["model"]["params"]["map"].update(value=settings)))
    with pytest.raises(ModelFileError, match="map"):
        load(path)


@pytest.mark.parametrize("make", [ReluMap, NystroemMap, ForestMap])
@pytest.mark.parametrize("number", [-1, 1.5, True, "3", None])
def test_widths_are_whole_numbers(make, number):
    with pytest.raises(ValueError, match="must be a whole number of at least"):
        make(number)


def test_model_file_of_pairs_and_of_a_choice(tmp_path):
    X, y = load_iris(return_X_y=True)
    pairs = X[:100].reshape(50, 2, 4)[np.random.default_rng(0).permutation(50)]
    pairs = np.concatenate([pairs, np.stack([X[:50], X[50:100]], axis=1)])
    model = LPTML(map="relu", **FAST).fit(pairs, np.repeat([1, -1], 50))
    again = load(save(model, tmp_path / "pairs.npz"))
    np.testing.assert_array_equal(again.predict(pairs), model.predict(pairs))
    ends = model.transform(pairs)  # (n, 2, k), each end where the point alone would be
    np.testing.assert_allclose(ends[:, 0], again.transform(pairs[:, 0]), atol=1e-12)
    apart = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    np.testing.assert_allclose(apart, model.pair_distance(pairs), rtol=1e-9, atol=1e-12)
    rng = np.random.default_rng(0)
    X, y = rings(120, 0, rng)
    # Rings far apart from each other's centre: neighbours see them as well as any map does
    chosen = LPTML_SupervisedCV(
        maps=("linear", "forest"), priors=("standardized",), cv=2, n_repeats=1, **FAST
    )
    chosen.fit(X, y)
    np.testing.assert_array_equal(load(save(chosen, tmp_path / "cv.npz")).transform(X), chosen.transform(X))


def test_transformers_work_and_have_no_file(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rings(200, 0, rng)
    model = make_pipeline(
        StandardScaler(), LPTML_Supervised(map=PolynomialFeatures(2, include_bias=False), **FAST)
    )
    Z = model.fit(X, y).transform(X)
    assert Z.shape == (200, 5)
    with pytest.raises(ValueError, match="map"):
        save(model[-1], tmp_path / "model.npz")


def test_the_choice_is_never_worse_than_linear_in_validation():
    rng = np.random.default_rng(0)
    X, y = rings(150, 6, rng)
    model = LPTML_SupervisedCV(maps=("linear", "relu"), priors=("standardized",), n_repeats=1, **FAST)
    model.fit(X, y)
    scores = model.cv_results_["mean_test_score"]
    linear = model.cv_results_["param_map"] == "linear"
    assert model.best_params_["map"] == "relu"
    assert model.best_score_ >= scores[linear].max() + 0.05
    assert not model.cv_results_["averaged"][linear].any()
    assert hasattr(model, "last_layer_")
    assert not hasattr(model, "components_")
    new, truth = rings(300, 6, rng)
    knn = KNeighborsClassifier(4).fit(model.transform(X), y)
    assert knn.score(model.transform(new), truth) > 0.9


def test_bad_maps_are_named():
    X, y = load_iris(return_X_y=True)
    for bad in ("cubic", 3, ReluMap):
        with pytest.raises(ValueError, match="map must be"):
            LPTML_Supervised(map=bad, **FAST).fit(X, y)
    with pytest.raises(ValueError, match="maps must be"):
        LPTML_SupervisedCV(maps=("cubic",)).fit(X, y)
    with pytest.raises(ValueError, match="initial_metric"):
        LPTML_Supervised(map="relu", **FAST).fit(X, y, initial_metric=np.eye(4))
    pairs = X[:100].reshape(50, 2, 4)
    with pytest.raises(ValueError, match="forest"):
        LPTML(map="forest", **FAST).fit(pairs, np.where(np.arange(50) % 2, 1, -1))


@parametrize_with_checks(
    [LPTML_Supervised(map="relu", max_trials=1), LPTML_Supervised(map="forest", max_trials=1)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
