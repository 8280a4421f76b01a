"""Validation chooses among metrics, and never trusts a handful of points."""

import numpy as np
import pytest

from lptml._candidates import LEARNED, PRIORS, Shape, View
from lptml.datasets import load_iris, load_wine
from lptml.selection import FOLDS, VALIDATION_POINTS, _weights, deal, select


def test_a_learned_metric_wins_on_wine_and_repeats_bit_for_bit():
    X, y = load_wine(return_X_y=True)
    first, second = (select(X[::2], y[::2], constraints="all", random_state=1) for _ in range(2))
    assert np.array_equal(first.A, second.A)
    assert np.allclose(first.A, first.components.T @ first.components)
    scores = {tried.name: tried.score for tried in first.table}
    assert scores[first.name] >= scores["standardised"] > scores["identity"]
    assert len(first.suspicion) == len(X[::2])


def test_rank_and_bounds_are_kept():
    X, y = load_iris(return_X_y=True)
    chosen = select(X, y, constraints="all", n_components=2, bounds=(1.0, 2.0))
    assert chosen.components.shape == (2, 4)
    assert chosen.bounds == (1.0, 2.0)


def test_weights_follow_scores_and_odds():
    rng = np.random.default_rng(0)
    good = rng.random(400)
    scores = np.stack([good, good - 0.5 * (rng.random(400) < 0.3), good, np.full(400, np.nan)])
    even = _weights(scores, np.ones(400), np.zeros(4))
    assert np.allclose(even, [0.5, 0.0, 0.5, 0.0])
    uneven = _weights(scores, np.ones(400), np.log([1.0, 1.0, 3.0, 1.0]))
    assert np.allclose(uneven, [0.25, 0.0, 0.75, 0.0])


def test_few_points_leave_the_odds_as_they_are():
    scores = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    weights = _weights(scores, np.ones(3), np.log([9.0, 1.0]))
    assert weights[0] > 0.5


def test_the_mean_holds_what_the_table_says():
    X, y = load_iris(return_X_y=True)
    chosen = select(X, y)
    weights = [tried.weight for tried in chosen.table]
    assert sum(weights) == pytest.approx(1.0)
    assert 1 < sum(weight > 0 for weight in weights) <= 6
    assert max(chosen.table, key=lambda tried: tried.weight).name == chosen.name


def test_more_features_than_points_leave_the_standardised_metric():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 40)), np.arange(20) % 2
    assert select(X, y).name == "standardised"


def test_every_class_is_dealt_to_every_fold():
    codes = np.repeat([0, 1, 2], [30, 9, 3])
    rows, fold = deal(codes, FOLDS, np.random.default_rng(0), VALIDATION_POINTS)
    assert np.array_equal(rows, np.arange(42))
    for c in range(3):
        assert set(fold[codes == c]) == {0, 1, 2}


def test_odds_follow_the_shape_of_the_data():
    candidates = [*PRIORS, *(each for learners in LEARNED.values() for each in learners)]
    odds = {candidate.name: candidate.log_odds for candidate in candidates}
    many_points, few_points = Shape(0.05, 0.2, 0.0), Shape(0.2, 0.2, 0.0)
    assert odds["within classes"](many_points) > odds["within classes"](few_points)
    assert odds["discriminant, shrunk"](many_points) < odds["discriminant, shrunk"](few_points)
    few_classes, many_classes = Shape(0.1, 0.05, 0.0), Shape(0.1, 0.9, 0.0)
    assert odds["discriminant"](few_classes) > odds["within classes"](few_classes)
    assert odds["discriminant"](many_classes) < odds["within classes"](many_classes)
    alike, unlike = Shape(0.1, 0.5, 0.0), Shape(0.1, 0.5, 4.0)
    assert odds["identity"](alike) > odds["identity"](unlike)
    for shape in (Shape(0.0, 0.0, 0.0), Shape(10.0, 1.0, 100.0)):
        assert all(abs(log_odds(shape)) <= 3 for log_odds in odds.values())


def test_shape_of_labelled_points():
    X = np.random.default_rng(0).normal(size=(40, 4)) * [1.0, 1.0, 100.0, 100.0]
    view = View(X, np.arange(40) % 3, np.ones(40), 1.0, None, None, 0)
    assert view.shape == pytest.approx((0.1, 0.5, np.log(10) ** 2), rel=0.2)
    two = View(X[:, :1], np.arange(40) % 3, np.ones(40), 1.0, None, None, 0)
    assert two.shape.q == 1.0


def test_validation_may_choose_a_low_rank():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 20))
    X[:, :2] += 6.0 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    chosen = select(X, y, random_state=0)
    weights = {tried.name: tried.weight for tried in chosen.table}
    assert weights["discriminant, low rank"] > 0
    spread = np.linalg.svd(chosen.components, compute_uv=False)
    assert spread[2] < 0.5 * spread[1]  # classes differ in two directions


def test_no_time_leaves_the_default():
    X, y = load_iris(return_X_y=True)
    chosen = select(X, y, time_limit=0.0)
    assert [tried.name for tried in chosen.table] == ["standardised"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraints": "some"}, "constraints must be"),
        ({"n_components": 9}, "n_components must lie"),
        ({"initial_metric": np.eye(3)}, "initial_metric must have shape"),
        ({"initial_metric": -np.eye(4)}, "positive semidefinite"),
    ],
)
def test_bad_options_are_named(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        select(X, y, **options)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="two classes"):
        select(np.zeros((4, 2)), np.zeros(4))


def test_verbose_shows_the_candidates(capfd):
    X, y = load_iris(return_X_y=True)
    quiet, shown = (select(X[::3], y[::3], random_state=0, verbose=verbose) for verbose in (0, 1))
    assert np.array_equal(quiet.A, shown.A)
    assert f"{len(shown.table)}/{len(shown.table)}" in capfd.readouterr().err
