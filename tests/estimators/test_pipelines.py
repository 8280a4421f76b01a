"""Learners of tuples alone in a pipeline, cloned, and set up anew: the same answers as by themselves.

After the consistency tests of metric-learn and scikit-learn: a pipeline of one estimator fits, scores,
predicts and transforms as that estimator does, on tuples of points and on indices with a preprocessor.
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

import lptml

SIZES = {"LPTML": 2, "LPTMLCV": 2, "ITML": 2, "MMC": 2, "LPTML_Triplets": 3, "LPTML_Quadruplets": 4}


def case(name: str, indices: bool) -> tuple[Any, list[np.ndarray]]:
    """An estimator with its preprocessor, and what to fit it to."""
    rng = np.random.default_rng(0)
    size = SIZES[name]
    points = rng.normal(size=(40, 5))
    numbers = rng.integers(40, size=(60, size))
    data = [numbers if indices else points[numbers]]
    if size == 2:
        near = np.abs(np.diff(points[numbers][..., 0], axis=1))[:, 0] < 1
        data.append(np.where(near, 1, -1))
    cls = getattr(lptml, name)
    known = inspect.signature(cls).parameters
    wanted = {"max_trials": 3, "random_state": 0, "preprocessor": points if indices else None}
    return cls(**{key: value for key, value in wanted.items() if key in known}), data


CASES = [(name, indices) for name in SIZES for indices in (False, True)]


@pytest.mark.parametrize(("name", "indices"), CASES)
def test_a_pipeline_of_one_learner_is_that_learner(name: str, indices: bool) -> None:
    estimator, data = case(name, indices)
    alone, pipeline = clone(estimator), make_pipeline(clone(estimator))
    assert alone.fit(*data) is alone
    assert pipeline.fit(*data) is pipeline
    np.testing.assert_array_equal(alone.components_, pipeline[-1].components_)
    assert alone.score(*data) == pipeline.score(*data)
    for method in ("predict", "decision_function"):
        np.testing.assert_array_equal(getattr(alone, method)(data[0]), getattr(pipeline, method)(data[0]))
    mapped = alone.transform(data[0])
    np.testing.assert_array_equal(mapped, pipeline.transform(data[0]))
    np.testing.assert_array_equal(mapped, clone(estimator).fit_transform(*data))
    assert mapped.shape == (60, SIZES[name], 5)
    distances = np.linalg.norm(mapped[:, 0] - mapped[:, 1], axis=1)
    np.testing.assert_allclose(distances, alone.pair_distance(data[0][:, :2]), rtol=1e-9)
    points = np.arange(5) if indices else np.random.default_rng(1).normal(size=(5, 5))
    np.testing.assert_array_equal(alone.transform(points), pipeline.transform(points))


@pytest.mark.parametrize(("name", "indices"), CASES)
def test_clones_and_parameters(name: str, indices: bool) -> None:
    estimator, data = case(name, indices)
    fitted = clone(estimator).fit(*data)
    again = clone(fitted)
    assert not hasattr(again, "components_")
    for key, value in estimator.get_params().items():
        np.testing.assert_array_equal(again.get_params()[key], value)
        assert again.set_params(**{key: value}) is again
    np.testing.assert_array_equal(again.fit(*data).components_, fitted.components_)
    with pytest.raises(ValueError, match="nonsense"):
        again.set_params(nonsense=1)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.decision_function(data[0]), fitted.decision_function(data[0]))


@pytest.mark.parametrize(("name", "indices"), CASES)
def test_tuples_stay_arrays_where_points_become_frames(name: str, indices: bool) -> None:
    estimator, data = case(name, indices)
    model = estimator.set_output(transform="pandas").fit(*data)
    assert isinstance(model.transform(data[0]), np.ndarray)
    frame = model.transform(np.arange(5) if indices else np.eye(5))
    assert list(frame.columns) == [f"{name.lower()}{i}" for i in range(5)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "indices"), [case for case in CASES if case[0] != "LPTMLCV"])
def test_searches_reach_through_the_pipeline(name: str, indices: bool) -> None:
    estimator, data = case(name, indices)
    pipeline = Pipeline([("learner", estimator)])
    scores = cross_val_score(pipeline, *data, cv=2, error_score="raise")
    np.testing.assert_array_equal(scores, cross_val_score(estimator, *data, cv=2, error_score="raise"))
    key = "max_trials" if "max_trials" in estimator.get_params() else "max_iter"
    grid = GridSearchCV(pipeline, {f"learner__{key}": [1, 2]}, cv=2, error_score="raise").fit(*data)
    assert grid.best_params_[f"learner__{key}"] in (1, 2)
    assert np.isfinite(grid.score(*data))


@pytest.mark.parametrize("name", [name for name, size in SIZES.items() if size == 2])
def test_labels_are_needed_by_pairs_alone(name: str) -> None:
    estimator, data = case(name, False)
    with pytest.raises((TypeError, ValueError), match="y"):
        make_pipeline(estimator).fit(data[0])
