"""Suspects among labels and among verdicts on bare pairs."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import lptml
from lptml.datasets import load_wine
from lptml.noise import flip_labels, flip_pairs
from lptml.noise.suspects import judge, judge_pairs, pair_suspicion


def wine_pairs(n=600):
    X, y = load_wine(return_X_y=True)
    i, j = np.random.default_rng(0).integers(len(X), size=(2, n))
    i, j = i[i != j], j[i != j]
    return np.stack([X[i], X[j]], axis=1), np.where(y[i] == y[j], 1, -1)


def test_strings_weights_and_unlabelled_points():
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 0.1, random_state=0)
    plain = lptml.suspicion(X, noisy.labels)
    names = np.array(["red", "white", "rose"])[noisy.labels]
    assert roc_auc_score(noisy.flipped, lptml.suspicion(X, names)) > 0.98
    assert np.allclose(lptml.suspicion(X, noisy.labels, sample_weight=np.full(len(y), 2.0)), plain)
    hidden = noisy.labels.copy()
    hidden[:20] = -1
    assert (lptml.suspicion(X, hidden)[:20] == 0).all()
    assert len(judge(X, hidden).suspicion) == len(y) - 20


def test_wrong_verdicts_on_pairs_are_found():
    pairs, y = wine_pairs()
    noisy = flip_pairs(y, 0.2, random_state=0)
    verdict = judge_pairs(pairs, noisy.labels)
    assert roc_auc_score(noisy.flipped, verdict.suspicion) > 0.93
    assert abs(verdict.noise_rate - 0.2) < 0.08
    assert np.array_equal(pair_suspicion(pairs, noisy.labels), verdict.suspicion)
    by_difference = pair_suspicion(pairs[:, 0] - pairs[:, 1], noisy.labels)
    assert np.array_equal(by_difference, verdict.suspicion)


def test_one_kind_of_pairs_or_too_few_are_not_judged():
    pairs, y = wine_pairs(40)
    assert (pair_suspicion(pairs, np.ones(len(y))) == 0).all()
    assert (pair_suspicion(pairs[:4], [1, 1, -1, -1]) == 0).all()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "one label a point"),
        (np.full((3, 2), np.nan), [0, 1, 1], "NaN"),
        (np.zeros((3, 2)), [-1, -1, -1], "labels no point"),
    ],
)
def test_bad_input_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        lptml.suspicion(X, y)


def test_bad_pairs_are_named():
    with pytest.raises(ValueError, match="similar"):
        pair_suspicion(np.zeros((3, 2)), [1, 2, -1])
