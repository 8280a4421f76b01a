"""metric-learn's contract, on learners that do nothing but keep the identity."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from lptml.estimators._inputs import PreprocessorError
from lptml.estimators.base import (
    MahalanobisMetric,
    PairsMixin,
    QuadrupletsMixin,
    SupervisedMixin,
    TripletsMixin,
    components_from_metric,
)


class Pairs(PairsMixin, BaseEstimator):
    def __init__(self, *, factor=1.0, preprocessor=None):
        self.factor = factor
        self.preprocessor = preprocessor

    def fit(self, pairs, y, calibration_params=None):
        self._check_calibration_params(calibration_params)
        pairs, y = self._start_pairs(pairs, y)
        self.components_ = self.factor * np.eye(pairs.shape[2])
        self._calibrate(pairs, y, calibration_params)
        return self


class Triplets(TripletsMixin, BaseEstimator):
    def __init__(self, *, preprocessor=None):
        self.preprocessor = preprocessor

    def fit(self, triplets, y=None):
        self.components_ = np.eye(self._start_tuples(triplets).shape[2])
        return self


class Quadruplets(QuadrupletsMixin, BaseEstimator):
    def __init__(self, *, preprocessor=None):
        self.preprocessor = preprocessor

    def fit(self, quadruplets, y=None):
        self.components_ = np.eye(self._start_tuples(quadruplets).shape[2])
        return self


class Supervised(SupervisedMixin, BaseEstimator):
    def __init__(self, *, preprocessor=None):
        self.preprocessor = preprocessor

    def fit(self, X, y):
        X, self.codes = self._start_supervised(X, y)
        self.components_ = np.eye(X.shape[1])
        return self


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def pairs(rng):
    return rng.normal(size=(60, 2, 3))


@pytest.fixture
def y(pairs):
    return np.where(np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1) < 2.2, 1, -1)


def test_distances_scores_and_matrix_follow_components_as_they_are_now(pairs, y):
    learner = Pairs().fit(pairs, y)
    distances = np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)
    np.testing.assert_allclose(learner.pair_distance(pairs), distances)
    np.testing.assert_array_equal(learner.pair_score(pairs), -learner.pair_distance(pairs))
    np.testing.assert_array_equal(learner.decision_function(pairs), learner.pair_score(pairs))
    with pytest.warns(FutureWarning, match="pair_distance"):
        np.testing.assert_array_equal(learner.score_pairs(pairs), learner.pair_distance(pairs))
    metric = learner.get_metric()
    learner.components_ = np.array([[2.0, 0.0, 0.0]])
    np.testing.assert_allclose(learner.pair_distance(pairs), 2 * np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]))
    np.testing.assert_array_equal(learner.get_mahalanobis_matrix(), np.diag([4.0, 0.0, 0.0]))
    np.testing.assert_allclose(learner.transform(pairs[:, 0]), 2 * pairs[:, 0, :1])
    assert list(learner.get_feature_names_out()) == ["pairs0"]
    assert metric(*pairs[0]) == pytest.approx(distances[0])  # a copy: the change above is not its concern
    learner.components_ = np.array([1.0, 0.0, 0.0])  # one row given as a vector
    assert learner.transform(pairs[:, 0]).shape == (60, 1)
    learner.components_ = np.eye(2)
    with pytest.raises(ValueError, match="components_"):
        learner.transform(pairs[:, 0])


def test_metric_function(pairs, y):
    metric = Pairs(factor=2.0).fit(pairs, y).get_metric()
    u, v = pairs[0]
    assert metric(u, v) == pytest.approx(2 * np.linalg.norm(u - v))
    assert metric(u, v, squared=True) == pytest.approx(metric(u, v) ** 2)
    assert metric(list(u), list(v)) == metric(u, v)
    assert pickle.loads(pickle.dumps(metric))(u, v) == metric(u, v)
    for wrong in (u[:2], [u, u], 1.0):
        with pytest.raises(ValueError, match="shape"):
            metric(wrong, v)


@pytest.mark.parametrize("algorithm", ["brute", "ball_tree"])
def test_metric_function_in_neighbours(pairs, y, algorithm):
    learner = Pairs().fit(pairs, y)
    learner.components_ = np.diag([1.0, 5.0, 0.1])
    X, target = pairs[:, 0], pairs[:, 0, 1] > 0
    through_metric = KNeighborsClassifier(metric=learner.get_metric(), algorithm=algorithm).fit(X, target)
    transformed = KNeighborsClassifier().fit(learner.transform(X), target)
    new = pairs[:, 1]
    np.testing.assert_array_equal(through_metric.predict(new), transformed.predict(learner.transform(new)))


def test_unfitted_learners_say_so(pairs, y):
    for call in (
        lambda p: p.transform(pairs[:, 0]),
        lambda p: p.pair_distance(pairs),
        lambda p: p.get_metric(),
        lambda p: p.get_mahalanobis_matrix(),
        lambda p: p.predict(pairs),
        lambda p: p.decision_function(pairs),
        lambda p: p.score(pairs, y),
        lambda p: p.set_threshold(1.0),
        lambda p: p.calibrate_threshold(pairs, y),
    ):
        with pytest.raises(NotFittedError):
            call(Pairs())


def test_n_features_counts_features_not_points(pairs, y):
    assert Pairs().fit(pairs, y).n_features_in_ == 3


def test_predict_compares_with_the_threshold(pairs, y):
    learner = Pairs().fit(pairs, y)
    assert (learner.predict(pairs) == y).all()  # calibrated at the end of fit
    assert learner.set_threshold(1) is learner
    np.testing.assert_array_equal(learner.predict(pairs), np.where(learner.pair_distance(pairs) <= 1, 1, -1))
    learner.set_threshold(learner.pair_distance(pairs)[0])
    assert learner.predict(pairs[:1])[0] == 1  # at the threshold is similar
    del learner.threshold_
    with pytest.raises(AttributeError, match="threshold"):
        learner.predict(pairs)
    learner.calibrate_threshold(pairs, y, strategy="max_tpr", min_rate=0.9, sample_weight=np.ones(60))
    assert (learner.predict(pairs) == y).mean() > 0.9
    for wrong in ("far", None, float("nan"), [1.0, 2.0]):
        with pytest.raises(ValueError, match="threshold"):
            learner.set_threshold(wrong)


@pytest.mark.parametrize(
    "params", [{"strategy": "no"}, {"min_rate": 2}, {"shape": 1}, "accuracy", {"strategy": "max_tpr"}]
)
def test_calibration_params_are_checked_before_fitting(pairs, y, params):
    learner = Pairs()
    with pytest.raises(ValueError, match=r"strategy|min_rate|calibration_params"):
        learner.fit(pairs, y, calibration_params=params)
    assert not hasattr(learner, "components_")


def test_score_is_the_area_under_the_curve(pairs, y):
    noisy = np.where(np.random.default_rng(1).random(60) < 0.2, -y, y)
    learner = Pairs().fit(pairs, noisy)
    expected = roc_auc_score(noisy, -learner.pair_distance(pairs))
    assert learner.score(pairs, noisy) == pytest.approx(expected)
    assert cross_val_score(Pairs(), pairs, noisy, scoring="roc_auc").mean() == pytest.approx(
        cross_val_score(Pairs(), pairs, noisy).mean()
    )


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "accuracy", "f1"])
def test_scorers_of_scikit_learn(pairs, y, scoring):
    assert is_classifier(Pairs())
    scores = cross_val_score(Pairs(), pairs, y, scoring=scoring, error_score="raise")
    assert scores.mean() > 0.9
    search = GridSearchCV(Pairs(), {"factor": [1.0, 2.0]}, scoring=scoring, error_score="raise").fit(pairs, y)
    assert search.best_score_ == pytest.approx(scores.mean())


def test_triplets(rng):
    triplets = rng.normal(size=(40, 3, 2))
    learner = Triplets().fit(triplets)
    a, b, c = triplets.transpose(1, 0, 2)
    margin = np.linalg.norm(a - c, axis=1) - np.linalg.norm(a - b, axis=1)
    np.testing.assert_allclose(learner.decision_function(triplets), margin)
    np.testing.assert_array_equal(learner.predict(triplets), np.where(margin > 0, 1, -1))
    assert learner.score(triplets) == pytest.approx((margin > 0).mean())
    assert learner.score(triplets, np.sign(margin)) == 1.0
    tie = np.zeros((1, 3, 2))
    assert learner.predict(tie)[0] == -1  # never 0
    assert np.isfinite(cross_val_score(Triplets(), triplets, error_score="raise")).all()


def test_quadruplets(rng):
    quadruplets = rng.normal(size=(40, 4, 2))
    learner = Quadruplets().fit(quadruplets)
    a, b, c, d = quadruplets.transpose(1, 0, 2)
    margin = np.linalg.norm(c - d, axis=1) - np.linalg.norm(a - b, axis=1)
    np.testing.assert_allclose(learner.decision_function(quadruplets), margin)
    np.testing.assert_array_equal(learner.predict(quadruplets), np.sign(margin))
    assert learner.score(quadruplets) == pytest.approx((margin > 0).mean())
    assert learner.predict(np.zeros((1, 4, 2)))[0] == 0
    assert learner.score(np.zeros((1, 4, 2))) == 0.5


def test_fit_transform_of_tuples_gives_their_points(pairs, y):
    learner = Pairs(factor=3.0)
    np.testing.assert_allclose(learner.fit_transform(pairs, y), 3 * pairs)
    learner.set_output(transform="pandas")
    assert isinstance(learner.transform(pairs[:, 0]), pd.DataFrame)
    assert isinstance(learner.fit_transform(pairs, y), np.ndarray)


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars", "callable"])
def test_preprocessor(pairs, y, kind):
    points = np.concatenate([pairs[:, 0], pairs[:, 1]])
    index = np.stack([np.arange(60), np.arange(60, 120)], axis=1)
    names = ["a", "b", "c"]
    preprocessor = {
        "array": points,
        "list": points.tolist(),
        "pandas": pd.DataFrame(points, columns=names),
        "polars": pl.DataFrame(points, schema=names),
        "callable": lambda i: points[i],
    }[kind]
    learner = Pairs(preprocessor=preprocessor).fit(index, y)
    np.testing.assert_allclose(learner.pair_distance(index), Pairs().fit(pairs, y).pair_distance(pairs))
    np.testing.assert_array_equal(learner.predict(index), learner.predict(pairs))
    np.testing.assert_array_equal(learner.transform(np.arange(5)), points[:5])
    assert learner.score(index, y) == 1.0
    assert learner.calibrate_threshold(index, y).threshold_ == pytest.approx(2.2, abs=0.2)
    assert hasattr(learner, "feature_names_in_") == (kind in ("pandas", "polars"))
    supervised = Supervised(preprocessor=preprocessor).fit(np.arange(120), points[:, 0] > 0)
    np.testing.assert_array_equal(supervised.transform(np.arange(120)), points)
    assert cross_val_score(learner, index, y, error_score="raise").mean() == 1.0


def test_bad_preprocessors_and_indices_are_named(pairs, y):
    points = pairs[:, 0]
    index = np.zeros((60, 2), dtype=int)
    for preprocessor, tuples, names in [
        (3, index, "preprocessor"),
        ("points.csv", index, "preprocessor"),
        (points, index + 60, "0..59"),
        (points, index - 1, "0..59"),
        (points, index + 0.5, "integers"),
        (points, index[:, [0, 0, 0]], "2 columns"),
        (lambda i: points[i, 0], index, "one point"),
        (lambda i: 1 / 0, index, "preprocessor failed"),
        (None, index, "preprocessor"),
        (np.full((60, 3), np.nan), index, "preprocessor contains NaN"),
    ]:
        with pytest.raises(ValueError, match=names):
            Pairs(preprocessor=preprocessor).fit(tuples, y)
    with pytest.raises(PreprocessorError):
        Pairs(preprocessor=lambda i: 1 / 0).fit(index, y)


def test_feature_names_of_data_frames(rng):
    X = pd.DataFrame(rng.normal(size=(20, 2)), columns=["length", "width"])
    learner = Supervised().fit(X, X["length"] > 0)
    assert list(learner.feature_names_in_) == ["length", "width"]
    assert list(learner.get_feature_names_out()) == ["supervised0", "supervised1"]
    with pytest.raises(ValueError, match="feature names"):
        learner.transform(X.rename(columns={"width": "height"}))
    frame = learner.set_output(transform="polars").transform(X)
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["supervised0", "supervised1"]
    learner = Supervised().fit(pl.from_pandas(X), pl.Series(["a", "b"] * 10))
    assert list(learner.feature_names_in_) == ["length", "width"]
    assert list(learner.classes_) == ["a", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.transform(pl.from_pandas(X))
    with pytest.raises(ValueError, match="feature names"):
        learner.transform(pl.from_pandas(X).rename({"width": "height"}))


def test_labels_of_points(rng):
    X = rng.normal(size=(6, 2))
    learner = Supervised().fit(X, ["x", "y", "x", "y", "x", "z"])
    np.testing.assert_array_equal(learner.codes, [0, 1, 0, 1, 0, 2])
    learner = Supervised().fit(X, [0, 4, -1, 4, -1, 0])  # -1: unlabelled
    np.testing.assert_array_equal(learner.codes, [0, 1, -1, 1, -1, 0])
    np.testing.assert_array_equal(learner.classes_, [0, 4])
    with pytest.raises(ValueError, match="unlabelled"):
        Supervised().fit(X, [-1, 1, -1, 1, -1, 1])


def test_clone_and_pickle(pairs, y):
    learner = Pairs(factor=2.0).fit(pairs, y)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.predict(pairs), learner.predict(pairs))
    assert not hasattr(clone(learner), "components_")


def test_metadata_requests_do_not_list_the_input():
    for learner in (Pairs(), Triplets(), Quadruplets()):
        requests = learner.get_metadata_routing()
        for method in ("fit", "predict", "decision_function", "score"):
            listed = set(getattr(requests, method).requests)
            assert not listed & {"pairs", "triplets", "quadruplets", "y"}


@pytest.mark.parametrize("spread", [0, 3, 8])
def test_components_keep_the_matrix_at_any_scale(rng, spread):
    d = 6
    scale = 10.0 ** np.linspace(-spread, spread, d)
    G = rng.normal(size=(d, d))
    A = (G.T @ G) * np.outer(scale, scale)
    L = components_from_metric(A)
    np.testing.assert_allclose(L.T @ L, A, rtol=1e-10, atol=1e-12 * np.outer(scale, scale).min())
    v = rng.normal(size=(10, d)) / scale
    np.testing.assert_allclose(((v @ L.T) ** 2).sum(1), np.einsum("ni,ij,nj->n", v, A, v), rtol=1e-10)


def test_components_of_few_ranks(rng):
    G = rng.normal(size=(2, 5))
    L = components_from_metric(G.T @ G, 2)
    assert L.shape == (2, 5)
    np.testing.assert_allclose(L.T @ L, G.T @ G, atol=1e-12)
    np.testing.assert_array_equal(components_from_metric(np.zeros((3, 3))), np.zeros((3, 3)))


def test_the_metric_takes_single_rows_as_metric_learn_does():
    metric = MahalanobisMetric(np.array([[3.0, 0.0], [0.0, 4.0]]))
    assert metric([[0, 0]], [[1, 1]]) == metric([0, 0], [[1, 1]]) == 5.0
    with pytest.raises(ValueError, match="vectors of 2 features"):
        metric(np.zeros((2, 2)), np.zeros((2, 2)))
