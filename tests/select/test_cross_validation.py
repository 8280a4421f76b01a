"""The rule of the cross-validation on numbers made up for it."""

import threading

import numpy as np

from lptml._limits import look, until
from lptml.select.cross_validation import Scores, deal, mean_metric, neighbour_share, score_settings


def test_within_one_standard_error_of_the_best_is_good():
    rng = np.random.default_rng(0)
    base = rng.random(400)
    score = np.stack([base, base - 0.001 + 0.1 * rng.normal(size=400), base - 0.2])
    scores = Scores([{"a": k} for k in range(3)], score, np.ones(400), score[:, :2])
    difference = score[scores.best] - score
    expected = difference.mean(axis=1) <= difference.std(axis=1) / np.sqrt(400)
    np.testing.assert_array_equal(scores.good, expected)
    assert scores.good.tolist() == [True, True, False]


def test_equal_scores_are_all_good_and_the_first_is_best():
    scores = Scores([{"a": 0}, {"a": 1}], np.ones((2, 5)), np.ones(5), np.ones((2, 3)))
    assert scores.best == 0
    assert scores.good.all()
    assert scores.as_results()["rank_test_score"].tolist() == [1, 1]


def test_weights_count_as_copies():
    score = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    weighted = Scores([{}, {}], score, np.array([2.0, 1.0, 1.0]), score)
    copied = Scores([{}, {}], score[:, [0, 0, 1, 2]], np.ones(4), score)
    np.testing.assert_allclose(weighted.mean, copied.mean)


def test_every_point_is_scored_once_a_deal():
    seen = np.zeros(30, dtype=int)

    def score_fold(train, test):
        assert not set(train) & set(test)
        seen[test] += 1
        yield np.ones(len(test))

    codes = np.arange(30) % 2
    score_settings([{}], codes, np.ones(30), score_fold, folds=4, repeats=3, rng=np.random.default_rng(0))
    assert (seen == 3).all()


def scored_until(folds_done):
    """Scores of ten points in five folds, out of time after some of them."""
    stop, done = threading.Event(), []

    def score_fold(train, test):
        if len(done) == folds_done:
            stop.set()
        look()
        done.append(test)
        yield np.ones(len(test))

    codes, rng = np.zeros(10, dtype=np.int64), np.random.default_rng(0)
    with until(None, stop):
        scores = score_settings([{}], codes, np.ones(10), score_fold, folds=5, repeats=2, rng=rng)
    return scores, np.concatenate(done) if done else np.empty(0, dtype=int)


def test_folds_that_are_done_when_the_time_is_over_count():
    scores, tested = scored_until(3)
    assert len(tested) == 6
    np.testing.assert_array_equal(np.flatnonzero(scores.weight), np.sort(tested))
    assert scores.mean.tolist() == [1.0]
    scores, _ = scored_until(7)
    assert scores.weight.all()
    np.testing.assert_array_equal(scores.score, np.ones((1, 10)))


def test_without_any_fold_the_first_setting_is_best():
    scores, _ = scored_until(0)
    assert scores.best == 0
    assert scores.good.tolist() == [True]
    assert np.isnan(scores.as_results()["mean_test_score"]).all()


def test_classes_are_dealt_evenly():
    codes = np.repeat([0, 1], [9, 21])
    fold = deal(codes, 3, np.random.default_rng(0))
    assert [np.bincount(codes[fold == f]).tolist() for f in range(3)] == [[3, 7]] * 3


def test_the_share_of_neighbours():
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    codes = np.array([0, 0, 1, 0])
    share = neighbour_share(np.eye(1), X, codes, np.ones(4), np.array([1, 2, 3]), np.array([0]), 2)
    assert share.tolist() == [0.5]


def test_the_average_does_not_depend_on_the_units_of_its_parts():
    V = np.random.default_rng(0).normal(size=(40, 2))
    A, B = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    np.testing.assert_allclose(mean_metric(V, [A, B]), mean_metric(V, [7 * A, 0.1 * B]))
