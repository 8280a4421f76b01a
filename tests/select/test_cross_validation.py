"""The rule of the cross-validation on numbers made up for it."""

import numpy as np

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


def test_a_stop_waits_until_every_point_was_scored():
    calls = []
    scores = score_settings(
        [{}],
        np.zeros(10, dtype=np.int64),
        np.ones(10),
        lambda train, test: iter([np.ones(len(test))]),
        folds=5,
        repeats=9,
        rng=np.random.default_rng(0),
        watch=lambda done: calls.append(done) or True,
    )
    assert calls == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(scores.score, np.ones((1, 10)))


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
