"""Learners that choose by cross-validation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.neighbors import KNeighborsClassifier

from lptml import LPTML, LPTMLCV, LPTML_Supervised, LPTML_SupervisedCV


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X[::2], y[::2]


@pytest.fixture(scope="module")
def fitted(wine):
    return LPTML_SupervisedCV(random_state=0, max_trials=5).fit(*wine)


def test_the_table_holds_every_setting_and_the_rule_can_be_redone(fitted):
    results = fitted.cv_results_
    assert len(results["params"]) == 9
    assert {(p["prior"], p["shrinkage"]) for p in results["params"]} == {
        (prior, s) for prior in ("standardized", "within", "discriminant") for s in (0.0, 0.5, 1.0)
    }
    mean, error = results["mean_test_score"], results["standard_error"]
    best = int(np.argmax(mean))
    assert fitted.best_index_ == best
    assert fitted.best_params_ == results["params"][best]
    assert fitted.best_score_ == mean[best]
    assert results["rank_test_score"][best] == 1
    np.testing.assert_array_equal(results["averaged"], mean >= mean[best] - error)


def test_the_metric_is_the_average_of_the_good_settings():
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    fitted = LPTML_SupervisedCV(random_state=0, max_trials=5).fit(X, y)
    assert fitted.cv_results_["averaged"].sum() > 1
    metrics = []
    for params, averaged in zip(fitted.cv_results_["params"], fitted.cv_results_["averaged"]):
        if averaged:
            best = params == fitted.best_params_
            single = LPTML_Supervised(**params, max_trials=5 if best else 0, random_state=0).fit(X, y)
            Z = (X - X.mean(axis=0)) @ single.components_.T
            metrics.append(single.get_mahalanobis_matrix() / np.median((Z**2).sum(axis=1)))
    A, mean = fitted.get_mahalanobis_matrix(), np.mean(metrics, axis=0)
    np.testing.assert_allclose(A / np.trace(A), mean / np.trace(mean), rtol=1e-6, atol=1e-12)


def test_attributes_are_about_the_metric_and_the_best_constraints(fitted, wine):
    assert 1 <= fitted.n_trials_ <= 5
    assert 0 < fitted.violation_rate_ < fitted.trivial_rate_
    assert fitted.history_[-1][1] == pytest.approx(fitted.violation_rate_)
    assert fitted.support_.shape[1] == 3
    X, y = wine
    knn = KNeighborsClassifier(4).fit(fitted.transform(X), y)
    Xt, yt = load_wine(return_X_y=True)
    assert knn.score(fitted.transform(Xt[1::2]), yt[1::2]) > 0.9


def test_the_support_of_an_average_is_satisfied_by_the_average():
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    fitted = LPTML_SupervisedCV(random_state=0, max_trials=2).fit(X, y)
    assert fitted.cv_results_["averaged"].sum() > 1
    assert len(fitted.support_) > 0
    A = fitted.get_mahalanobis_matrix()
    for i, j, k in fitted.support_:
        near, far = X[i] - X[j], X[i] - X[k]
        assert far @ A @ far - near @ A @ near >= 1 - 2e-7


def test_the_seed_does_not_deal_the_folds():
    X, y = load_iris(return_X_y=True)
    first, second = (LPTML_SupervisedCV(random_state=s, max_trials=0).fit(X, y) for s in (0, 1))
    np.testing.assert_array_equal(first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"])


def test_a_grid_of_the_users_own():
    X, y = load_iris(return_X_y=True)
    grid = {
        "priors": [np.diag([0.0, 0.0, 1.0, 1.0]), "identity"],
        "shrinkages": [0.5],
        "temperatures": [0.1, 0.3],
        "constraints": ["triplets", "neighbors"],
        "n_components": [1, None],
    }
    model = LPTML_SupervisedCV(**grid, cv=2, n_repeats=1, max_trials=0, random_state=0).fit(X[::2], y[::2])
    assert len(model.cv_results_["params"]) == 16
    names = {"constraints", "map", "n_components", "prior", "temperature", "shrinkage"}
    assert set(model.best_params_) == names
    rank_one = LPTML_SupervisedCV(n_components=1, max_trials=0, random_state=0).fit(X[::2], y[::2])
    assert rank_one.components_.shape == (1, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"priors": []}, "the list of values for prior is empty"),
        ({"priors": ["whatever"]}, "priors must be among"),
        ({"shrinkages": [2.0]}, "shrinkages must lie in"),
        ({"temperatures": [-1.0]}, "temperatures must be finite"),
        ({"constraints": "some"}, "constraints must be among"),
        ({"n_components": [9]}, "n_components must be whole numbers from 1 to the 4 features"),
        ({"bounds": 0.5}, "bounds is about pairs"),
        ({"cv": 1}, "cv"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_a_bad_grid_is_met_at_the_door(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        LPTML_SupervisedCV(**options).fit(X, y)


def test_a_class_of_one_point_and_a_time_limit_do_no_harm():
    X, y = load_iris(return_X_y=True)
    y = y.copy()
    y[0] = 7
    model = LPTML_SupervisedCV(random_state=0, max_trials=2, n_repeats=50, time_limit=0.2).fit(X[::3], y[::3])
    assert np.isfinite(model.components_).all()


def make_pairs(n, noise, seed=0):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n, 2, 4))
    near = np.abs(pairs[:, 0, :2] - pairs[:, 1, :2]).sum(axis=1) < 2
    return pairs, np.where(near ^ (rng.random(n) < noise), 1, -1), np.where(near, 1, -1)


def test_pairs_choose_a_temperature():
    pairs, y, _ = make_pairs(600, 0.1)
    model = LPTMLCV(random_state=0, max_trials=5).fit(pairs, y)
    assert [p["temperature"] for p in model.cv_results_["params"]] == [
        0.1,
        0.07,
        0.05,
        0.03,
        0.02,
        0.01,
        0.005,
    ]
    assert model.best_params_["temperature"] in (0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005)
    assert model.n_trials_ == 5
    unseen, _, truth = make_pairs(3000, 0.0, seed=1)
    count = LPTML(random_state=0, max_trials=5).fit(pairs, y)
    assert np.mean(model.predict(unseen) == truth) >= np.mean(count.predict(unseen) == truth) - 0.01
    again = clone(model).fit(pairs[::-1], y[::-1])
    np.testing.assert_array_equal(again.components_, model.components_)


def test_pairs_prior_shrinkage_and_rank():
    pairs, y, _ = make_pairs(200, 0.05)
    model = LPTMLCV(
        temperatures=[0.05],
        priors=["within", np.eye(4)],
        shrinkages=[0.0, 1.0],
        n_components=[2, None],
        cv=3,
        max_trials=0,
        random_state=0,
    ).fit(pairs, y, {"strategy": "max_tpr", "min_rate": 0.5})
    assert len(model.cv_results_["params"]) == 8
    assert model.threshold_ > 0
    assert 0 < model.violation_rate_ < 1


def test_ctrl_c_ends_a_cross_validation(wine, monkeypatch):
    """A setting whose descent was cut short would be compared as if it were whole."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("lptml.learn.pipeline.cool", interrupted)
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        LPTML_SupervisedCV(random_state=0).fit(*wine)
    pairs, y, _ = make_pairs(100, 0.1)
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        LPTMLCV(random_state=0).fit(pairs, y)
