"""Callbacks of scikit-learn 1.9 and later."""

import numpy as np
import pytest

from lptml import LPTML, LPTML_Supervised

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")


class Recorder:
    """Notes what it is told; asks to stop after some improvements."""

    def __init__(self, stop_after=None):
        self.events, self.stop_after, self.fitted = [], stop_after, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(f"end {context.task_name}")
        self.fitted.append((fitted_estimator, X, y))
        improvements = self.events.count("end improvement")
        return self.stop_after is not None and improvements >= self.stop_after


@pytest.fixture
def pairs():
    return np.random.default_rng(0).normal(size=(80, 2, 3))


@pytest.fixture
def y(pairs):
    y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    y[::8] *= -1
    return y


def test_tasks_and_their_metrics(pairs, y):
    recorder = Recorder()
    model = LPTML(max_trials=5, random_state=0).set_callbacks(recorder).fit(pairs, y)
    events = recorder.events
    assert events[:2] == ["setup", "begin fit"]
    assert events[-2:] == ["end fit", "teardown"]
    assert events.count("begin improvement") == events.count("end improvement") > 0
    for fitted, X, labels in recorder.fitted[:-1]:
        assert fitted.transform(X[:, 0]).shape == (80, 3)
        assert len(labels) == 80
    np.testing.assert_array_equal(recorder.fitted[-1][0].components_, model.components_)
    plain = LPTML(max_trials=5, random_state=0).fit(pairs, y)
    np.testing.assert_array_equal(plain.components_, model.components_)


def test_a_callback_can_stop_the_fit(pairs, y):
    recorder = Recorder(stop_after=1)
    model = LPTML(max_trials=100_000, random_state=0).set_callbacks(recorder).fit(pairs, y)
    assert model.n_trials_ < 100_000
    assert recorder.events[-1] == "teardown"


def test_callbacks_are_torn_down_when_the_fit_fails(pairs, y):
    recorder = Recorder()
    learner = LPTML(max_trials=5, callback=lambda *_: 1 / 0).set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError):
        learner.fit(pairs, y)
    assert recorder.events[-1] == "teardown"


def test_progress_bar_of_scikit_learn(capsys):
    pytest.importorskip("rich", reason="the progress bar of scikit-learn is drawn by rich")
    X = np.random.default_rng(1).normal(size=(40, 2))
    model = LPTML_Supervised(max_trials=3, random_state=0)
    model.set_callbacks(callback.ProgressBar()).fit(X, X[:, 0] > 0)
    assert model.components_.shape == (2, 2)
