"""Neighbours that vote with wrong labels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from lptml._candidates import View
from lptml.datasets import make_synthetic
from lptml.noise import flip_labels
from lptml.priors import within
from lptml.scatter import SHRINKAGE
from lptml.selection import select
from lptml.trust import trust_labels
from lptml.votes import adjusted, rightness


def test_rightness_is_what_counting_by_hand_gives():
    rng = np.random.default_rng(0)
    labels, truth = rng.integers(0, 3, (200, 8)), rng.integers(0, 3, 200)
    expected = []
    for votes, right in zip(labels.tolist(), truth.tolist()):
        score = 0.0
        for k in (4, 8):
            count = Counter(votes[:k])
            leaders = [c for c in count if count[c] == max(count.values())]
            score += (right in leaders) / len(leaders) + 0.1 * count[right] / k
        expected.append(score / 2)
    assert np.allclose(rightness(labels, np.eye(3)[truth]), expected)


def test_beliefs_are_probabilities_of_the_truth():
    labels = np.random.default_rng(1).integers(0, 2, (50, 8))
    sure = [rightness(labels, np.eye(2)[np.full(50, c)]) for c in (0, 1)]
    assert np.allclose(rightness(labels, np.full((50, 2), [0.3, 0.7])), 0.3 * sure[0] + 0.7 * sure[1])


@pytest.mark.parametrize("voters", [1, 3])
def test_fewer_voters_than_are_asked(voters):
    labels = np.zeros((2, voters), dtype=np.int64)
    assert np.allclose(rightness(labels, np.eye(2)), [1.1, 0.0])


def learned(X, labels):
    """The view of noisy points, the share of labels believed wrong, and a good metric."""
    trust = trust_labels(X, labels, 2)
    view = View(X, labels, trust.trust, 1.0, None, None, 0)
    return view, trust.noise_rate, within(view.classes(SHRINKAGE), view.scale)


def draw(seed, share):
    points = make_synthetic(random_state=seed)
    labels = flip_labels(points.target, share, random_state=seed).labels.astype(np.int64)
    return points.data, labels


def test_wrong_labels_vote_right_more_often_on_points_never_seen():
    fresh = make_synthetic(n_samples=4000, random_state=99)
    gains = []
    for seed in range(12):
        X, labels = draw(seed, 0.3)
        view, rate, L = learned(X[::2], labels[::2])
        scores = [
            KNeighborsClassifier(4).fit(view.X @ G.T, view.codes).score(fresh.data @ G.T, fresh.target)
            for G in (L, adjusted(view, L, rate))
        ]
        gains.append(scores[1] - scores[0])
    assert np.mean(gains) > 0.01


def test_the_metric_stays_where_there_is_nothing_to_gain():
    X, labels = draw(0, 0.0)
    view, rate, L = learned(X, labels)
    assert adjusted(view, L, rate) is L  # no label is suspected
    X, labels = draw(0, 0.3)
    view, rate, L = learned(X[:6], np.array([0, 1, 0, 1, 0, 1]))
    assert adjusted(view, L, rate) is L  # too few points to know the classes
    view, rate, L = learned(np.tile(X, (7, 1)), np.tile(labels, 7))
    assert adjusted(view, L, rate) is L  # many points


def test_rank_and_repetition():
    X, labels = draw(3, 0.3)
    view, rate, L = learned(X, labels)
    flat = adjusted(view, L[:1], rate)
    assert flat.shape == (1, 2)
    assert np.array_equal(adjusted(view, L, rate), adjusted(view, L, rate))


def test_selection_adjusts_unless_told_otherwise():
    X, labels = draw(4, 0.3)
    kept = select(X, labels, adjust=False)
    turned = select(X, labels)
    assert not np.allclose(kept.A / np.trace(kept.A), turned.A / np.trace(turned.A))
    assert kept.table[0].score == turned.table[0].score
