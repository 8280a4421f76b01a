"""Metric learners as parts: pipelines before and behind, neighbours, clusters, kernels, data frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import HDBSCAN
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, load_wine, make_circles
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lptml import LPTML, LPTML_Supervised

FAST = {"max_trials": 3, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return train_test_split(*load_iris(return_X_y=True), random_state=0, train_size=60)


@pytest.mark.parametrize("before", [StandardScaler(), PCA(2), Nystroem(n_components=5, random_state=0)])
def test_behind_a_transformer_and_before_neighbours(iris, before):
    X, X_test, y, y_test = iris
    for learner in (LPTML_Supervised(**FAST), LPTML_Supervised(random_state=0)):
        model = make_pipeline(before, learner, KNeighborsClassifier()).fit(X, y)
        assert model.score(X_test, y_test) > 0.85


def test_cross_validation_and_grid_search_of_a_pipeline(iris):
    X, _, y, _ = iris
    pipe = make_pipeline(
        StandardScaler(),
        LPTML_Supervised(**FAST, constraints="all", temperature=0.0, shrinkage=0.0),
        KNeighborsClassifier(),
    )
    assert cross_val_score(pipe, X, y, cv=2, error_score="raise").mean() > 0.85
    grid = {"lptml_supervised__constraints": ["all", "triplets"]}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.85


def test_metric_function_gives_the_same_neighbours(iris):
    X, X_test, y, y_test = iris
    learner = LPTML_Supervised(**FAST).fit(X, y)
    through = KNeighborsClassifier(metric=learner.get_metric(), algorithm="brute").fit(X, y)
    mapped = KNeighborsClassifier(algorithm="brute").fit(learner.transform(X), y)
    np.testing.assert_array_equal(through.predict(X_test), mapped.predict(learner.transform(X_test)))
    assert through.score(X_test, y_test) > 0.85


def test_clusters_follow_the_metric():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0.0, 1.0], 60) + 0.02 * rng.normal(size=120), 5 * rng.normal(size=120)])
    y = np.repeat([0, 1], 60)
    learner = LPTML_Supervised(**FAST).fit(X[::2], y[::2])

    def agreement(model, data):
        found = model.fit_predict(data)
        return max(np.mean(found == y), np.mean(found == 1 - y))

    assert agreement(HDBSCAN(min_cluster_size=20, copy=True), X) < 0.9
    assert agreement(HDBSCAN(min_cluster_size=20, copy=True), learner.transform(X)) > 0.9
    through = HDBSCAN(min_cluster_size=20, metric=learner.get_metric(), algorithm="brute", copy=True)
    assert agreement(through, X) > 0.9


def test_a_metric_that_is_not_linear_in_the_input():
    """Circles: no linear map brings a ring together, one of Nystroem's features does."""
    X, y = make_circles(400, noise=0.2, factor=0.4, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, train_size=80, random_state=0)
    i, j = np.triu_indices(len(X_test), 1)

    def told_apart(*steps):
        Z = make_pipeline(*steps).fit(X, y).transform(X_test)
        return roc_auc_score(y_test[i] == y_test[j], -np.linalg.norm(Z[i] - Z[j], axis=1))

    learner = LPTML_Supervised(**FAST)
    kernel = Nystroem(gamma=1.0, n_components=10, random_state=0)
    assert told_apart(kernel, learner) > max(told_apart(learner), told_apart(kernel)) + 0.2


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_through_a_pipeline(frame):
    data = load_wine()
    names = list(data.feature_names[:4])
    X = frame(dict(zip(names, data.data[::4, :4].T)))
    learner = LPTML_Supervised(**FAST)
    kind = "pandas" if frame is pd.DataFrame else "polars"
    pipe = make_pipeline(StandardScaler(), learner).set_output(transform=kind)
    Z = pipe.fit_transform(X, data.target[::4])
    assert isinstance(Z, frame)
    assert list(Z.columns) == [f"lptml_supervised{i}" for i in range(4)]
    assert list(pipe[-1].feature_names_in_) == list(pipe[0].get_feature_names_out())
    assert list(pipe.get_feature_names_out()) == list(Z.columns)


def test_mixed_columns():
    frame = pd.DataFrame({"size": [1.0, 1.1, 3.0, 3.2] * 5, "kind": ["a", "b", "a", "b"] * 5})
    y = ["small", "small", "large", "large"] * 5
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["kind"]), (StandardScaler(), ["size"])
    )
    pipe = make_pipeline(encode, LPTML_Supervised(**FAST), KNeighborsClassifier(3)).fit(frame, y)
    assert pipe.score(frame, y) == 1.0


def test_pairs_of_rows_of_a_data_frame():
    data = load_iris(as_frame=True)
    rng = np.random.default_rng(0)
    index = rng.integers(0, 150, size=(80, 2))
    y = np.where(data.target.to_numpy()[index[:, 0]] == data.target.to_numpy()[index[:, 1]], 1, -1)
    learner = LPTML(**FAST, preprocessor=data.data).fit(index, y)
    assert list(learner.feature_names_in_) == list(data.data.columns)
    assert learner.transform(data.data).shape == (150, 4)
    assert learner.score(pd.DataFrame(index), y) > 0.95
