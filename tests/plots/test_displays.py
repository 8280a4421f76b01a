"""Displays: from_estimator computes and draws, plot draws again, the axes are those given."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from lptml import LPTML, CertifiedKNeighborsClassifier, LPTML_Supervised, LPTML_SupervisedCV
from lptml.plots import (
    CertifiedAccuracyDisplay,
    EmbeddingDisplay,
    FeatureWeightsDisplay,
    PairDistancesDisplay,
    SearchHistoryDisplay,
    SuspicionDisplay,
)
from lptml.report import views

mpl.use("agg")
X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model() -> LPTML_Supervised:
    return LPTML_Supervised(
        max_trials=3, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0
    ).fit(X, y)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    mpl.pyplot.close("all")


def test_embedding_rings_the_suspects(model: LPTML_Supervised) -> None:
    display = EmbeddingDisplay.from_estimator(model, X, y, suspects=[0, 77])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["0", "1", "2", "suspect"]
    assert display.points.shape == (150, 2)
    rings = display.ax_.collections[-1].get_offsets()
    np.testing.assert_allclose(rings, display.points[[0, 77]])


def test_embedding_keeps_distances_in_the_plane(model: LPTML_Supervised) -> None:
    after = EmbeddingDisplay.from_estimator(model, X, y).points
    flat = views.plane(model.transform(X))
    np.testing.assert_allclose(np.linalg.norm(after[3] - after[90]), np.linalg.norm(flat[3] - flat[90]))
    before = EmbeddingDisplay.from_estimator(model, X, y, before=True).points
    np.testing.assert_allclose(
        np.linalg.norm(before, axis=1) <= np.linalg.norm(X - X.mean(0), axis=1) + 1e-9, True
    )


def test_plot_draws_on_the_given_axes(model: LPTML_Supervised) -> None:
    figure, (one, other) = mpl.pyplot.subplots(1, 2)
    display = FeatureWeightsDisplay.from_estimator(model, X, ax=one)
    assert display.ax_ is one
    assert display.plot(ax=other) is display
    assert display.ax_ is other
    assert display.figure_ is figure
    assert len(one.patches) == len(other.patches) == 4


def test_feature_weights_are_shares_of_the_squared_distance(model: LPTML_Supervised) -> None:
    display = FeatureWeightsDisplay.from_estimator(model, X, feature_names=["a", "b", "c", "d"])
    assert display.share.sum() == pytest.approx(1)
    assert (np.diff(display.share) <= 0).all()
    A = model.get_mahalanobis_matrix()
    heaviest = "abcd"[int(np.argmax(np.diag(A) * X.var(axis=0)))]
    assert display.names[0] == heaviest
    np.testing.assert_allclose(np.diag(display.correlation), 1)
    assert len(FeatureWeightsDisplay.from_estimator(model, X, limit=2).names) == 2


def test_pair_distances_of_labels_and_of_pairs_agree(model: LPTML_Supervised) -> None:
    of_labels = PairDistancesDisplay.from_estimator(model, X, y)
    i, j = np.triu_indices(len(X), 1)
    of_pairs = PairDistancesDisplay.from_estimator(
        model, np.stack([X[i], X[j]], axis=1), np.where(y[i] == y[j], 1, -1)
    )
    np.testing.assert_allclose(of_labels.distances.similar, of_pairs.distances.similar)
    np.testing.assert_allclose(of_labels.distances.dissimilar, of_pairs.distances.dissimilar)
    violated = (of_pairs.distances.similar > model.bounds_[0] * (1 + 1e-7)).sum()
    violated += (of_pairs.distances.dissimilar < model.bounds_[1] * (1 - 1e-7)).sum()
    assert violated == model.n_violations_
    edges, similar, dissimilar = of_pairs.distances.histogram()
    assert similar.sum() == pytest.approx(1)
    assert dissimilar.sum() == pytest.approx(1)
    assert len(edges) == len(similar) + 1


def test_history_ends_at_the_cost_of_the_metric(model: LPTML_Supervised) -> None:
    history = SearchHistoryDisplay.from_estimator(model).history
    assert (np.diff(history.rate) < 0).all()
    assert (np.diff(history.trial) >= 0).all()
    assert history.rate[-1] == pytest.approx(model.violation_rate_, abs=1e-3)
    assert history.trial[-1] <= model.n_trials_ == 3


def test_history_of_a_metric_that_is_not_the_least_met() -> None:
    """A metric of clear margins, averaged: the line is what was met, the dot is the metric itself."""
    chosen = LPTML_SupervisedCV(max_trials=5, n_repeats=1, random_state=0).fit(X, y)
    chosen.history_ = (*chosen.history_[:-1], (9.0, 0.5, 5))  # whatever it was, it ends high
    chosen.violation_rate_ = 0.5
    display = SearchHistoryDisplay.from_estimator(chosen)
    assert (np.diff(display.history.rate) < 0).all()
    assert display.history.rate[-1] == min(rate for _, rate, _ in chosen.history_)
    line, dot, euclidean = display.ax_.lines[:3]
    assert line.get_xdata()[-1] == dot.get_xdata()[0] == 9.0
    assert dot.get_ydata()[0] == 0.5
    assert (euclidean.get_label(), euclidean.get_ydata()[0]) == ("Euclidean distance", chosen.trivial_rate_)


def test_triplets_have_no_bounds_to_draw() -> None:
    model = LPTML_Supervised(max_trials=1, random_state=0).fit(X, y)
    display = PairDistancesDisplay.from_estimator(model, X, y)
    assert display.bounds is None
    assert not display.ax_.lines


def test_suspicion_is_drawn_sorted(model: LPTML_Supervised) -> None:
    display = SuspicionDisplay.from_estimator(model, n_suspects=3)
    drawn = display.ax_.lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, np.sort(model.suspicion_)[::-1])
    assert display.ax_.patches[0].get_label() == "suspects"


def test_unfitted_estimators_are_refused() -> None:
    with pytest.raises(NotFittedError):
        EmbeddingDisplay.from_estimator(LPTML(), X, y)
    with pytest.raises(NotFittedError):
        SearchHistoryDisplay.from_estimator(LPTML())


def test_one_feature_and_constant_features() -> None:
    assert views.plane(X[:, :1]).shape == (150, 2)
    flat = np.zeros((4, 2))
    assert views.quantised(views.plane(flat)) == [5000] * 8
    weights = views.feature_weights(np.eye(2), flat, ["a", "b"])
    assert weights.share.tolist() == [0, 0]


def test_certified_accuracy_falls_with_the_budget() -> None:
    classifier = CertifiedKNeighborsClassifier().fit(X[::2], y[::2], reference=X[::2])
    for attack, words in (("flip", "wrong labels (75 points)"), ("plant", "planted points (75 points)")):
        display = CertifiedAccuracyDisplay.from_estimator(classifier, X[1::2], y[1::2], attack=attack)
        (line,) = display.ax_.lines
        np.testing.assert_array_equal(line.get_xdata(), np.arange(16))
        assert (np.diff(display.accuracy) <= 0).all()
        assert display.accuracy[0] == classifier.score(X[1::2], y[1::2])
        assert display.ax_.get_xlabel() == words
        again = display.plot(ax=mpl.pyplot.subplots()[1])
        np.testing.assert_array_equal(again.ax_.lines[0].get_ydata(), display.accuracy)
    with pytest.raises(NotFittedError):
        CertifiedAccuracyDisplay.from_estimator(CertifiedKNeighborsClassifier(), X, y)
