"""A time limit is for all of a fit: what there is no time for is left out, and the result says so.

By how many seconds limits are exceeded is measured in ``benchmarks/time_limits.py``; here the limit is over
before anything begins, or is never reached.
"""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from lptml import LPTML, LPTMLCV, LPTML_Quadruplets, LPTML_Supervised, LPTML_SupervisedCV, LPTML_Triplets
from lptml._limits import OutOfTime, until
from lptml.constraints import ConstraintSet
from lptml.exact import exact_lptml, make_objective
from lptml.noise.suspects import judge
from lptml.points.priors import make_prior
from lptml.refine.polish import polish
from lptml.search.setup import Setup, prepare
from lptml.search.trial import Unit, run_unit

LATE = "time_limit was reached"


def data(size: int) -> list[np.ndarray]:
    if size == 1:
        return list(load_iris(return_X_y=True))
    rng = np.random.default_rng(0)
    return [rng.normal(size=(60, size, 3)), *([rng.choice([-1, 1], 60)] if size == 2 else [])]


FITS = [
    (LPTML, 2),
    (LPTMLCV, 2),
    (LPTML_Triplets, 3),
    (LPTML_Quadruplets, 4),
    (LPTML_Supervised, 1),
    (LPTML_SupervisedCV, 1),
]


@pytest.mark.parametrize(("learner", "size"), FITS)
def test_without_any_time_there_is_a_metric(learner, size):
    model = learner(random_state=0, time_limit=1e-9).fit(*data(size))
    assert model.status_ == LATE
    assert model.n_trials_ == 0
    assert np.isfinite(model.components_).all()
    assert np.linalg.matrix_rank(model.components_) > 0
    assert 0 <= model.violation_rate_ <= 1
    assert len(model.suspicion_) == len(data(size)[0])
    if learner in (LPTMLCV, LPTML_SupervisedCV):
        assert np.isnan(model.best_score_)
        assert np.isnan(model.cv_results_["mean_test_score"]).all()
        assert model.best_index_ == 0


@pytest.mark.parametrize(("learner", "size"), FITS)
@pytest.mark.parametrize("rank", [None, 1])
def test_a_limit_that_is_not_reached_changes_nothing(learner, size, rank):
    free, limited = (
        learner(random_state=0, max_trials=5, n_components=rank, time_limit=limit).fit(*data(size))
        for limit in (None, 1e6)
    )
    np.testing.assert_array_equal(free.components_, limited.components_)
    assert free.status_ == limited.status_ != LATE


def test_rank_without_any_time():
    model = LPTML_Triplets(random_state=0, time_limit=1e-9, n_components=1).fit(*data(3))
    assert np.linalg.matrix_rank(model.components_) == 1


def test_the_clock_is_looked_at_inside_long_steps():
    X, y = load_iris(return_X_y=True)
    pairs = ConstraintSet.from_differences(np.diff(data(2)[0], axis=1)[:, 0], data(2)[1], bounds=(1.0, 1.0))
    with until(0.0):
        for step in (
            lambda: judge(X, y),
            lambda: make_prior("discriminant", X, y),
            lambda: exact_lptml(pairs, make_objective("trace", 3), rng=0),
        ):
            with pytest.raises(OutOfTime):
                step()
    A = np.eye(3)
    assert polish(pairs, A, deadline=0.0) is A


def test_a_unit_that_is_no_longer_wanted_ends_within_a_trial():
    pairs = ConstraintSet.from_differences(np.diff(data(2)[0], axis=1)[:, 0], data(2)[1], bounds=(1.0, 1.0))
    problem = prepare(pairs, Setup(), 0).problem
    assert run_unit(problem, Unit(0, 5)).count == 5
    stop = threading.Event()
    stop.set()
    assert run_unit(problem, Unit(0, 5), stop).count == 0


def test_settings_that_there_was_no_time_to_learn_are_not_averaged(monkeypatch):
    X, y = load_iris(return_X_y=True)
    whole = LPTML_SupervisedCV(random_state=0, max_trials=0).fit(X, y)
    assert whole.cv_results_["averaged"].sum() > 1
    metrics = LPTML_SupervisedCV._metrics

    def slow(self, data, settings):
        if len(settings) < 9:  # those that are averaged
            raise OutOfTime
        yield from metrics(self, data, settings)

    monkeypatch.setattr(LPTML_SupervisedCV, "_metrics", slow)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = LPTML_SupervisedCV(random_state=0, max_trials=0, time_limit=1e6).fit(X, y)
    assert np.flatnonzero(alone.cv_results_["averaged"]).tolist() == [alone.best_index_]
