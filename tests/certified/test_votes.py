"""Certificates of votes against every labelling there is, and attacks that never beat them."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lptml.certified import Ballot, attack_labels, decide, flip_radius, point_radius


def answer(near, weights, doubt, labels, n_classes):
    """The decision for one query, as the page defines it."""
    votes = [sum(labels[i] == c for i in near) for c in range(n_classes)]
    order = sorted(votes)
    if order[-1] - order[-2] >= doubt:
        return votes.index(order[-1])
    scores = [sum(w for w, y in zip(weights, labels) if y == c) for c in range(n_classes)]
    return int(np.argmax(scores))


@st.composite
def elections(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N, K = draw(st.integers(2, 6)), draw(st.integers(2, 3))
    k = draw(st.integers(1, N))
    near = np.array([rng.permutation(N)[:k] for _ in range(4)])
    weights = rng.normal(draw(st.sampled_from([0.0, 1.0])), 1.0, size=(4, N))
    codes = rng.integers(K, size=N) if draw(st.booleans()) else np.arange(N) // 4  # also clear majorities
    return Ballot(near, weights, draw(st.integers(1, 3))), codes, K


@settings(max_examples=200, deadline=None)
@given(elections())
def test_no_flips_within_the_radius_change_an_answer(election):
    ballot, codes, K = election
    radius = flip_radius(ballot, codes, K)
    before = decide(ballot, codes, K).answer
    cheapest = np.full(4, len(codes) + 1)
    for labels in product(range(K), repeat=len(codes)):
        flips = int((np.array(labels) != codes).sum())
        for q in range(4):
            now = answer(ballot.nearest[q], ballot.weights[q], ballot.doubt, labels, K)
            if now != before[q]:
                cheapest[q] = min(cheapest[q], flips)
    assert (cheapest > radius).all()
    for q, labels in enumerate(attack_labels(ballot, codes, K, len(codes))):
        if labels is not None:
            assert answer(ballot.nearest[q], ballot.weights[q], ballot.doubt, labels, K) != before[q]
            assert (labels != codes).sum() >= cheapest[q]


@pytest.mark.parametrize("k", [3, 6, 9])
def test_the_radius_of_a_plain_vote_is_exact(k):
    """Where both votes are the same one, one flip more than the radius changes the answer."""
    rng = np.random.default_rng(k)
    near = np.array([rng.permutation(10)[:k] for _ in range(20)])
    weights = np.zeros((20, 10))
    np.put_along_axis(weights, near, 1.0 / k, axis=1)
    ballot, codes = Ballot(near, weights, doubt=1), np.r_[np.zeros(8, int), 1, 1]
    radius = flip_radius(ballot, codes, 2)
    votes = decide(ballot, codes, 2).votes
    np.testing.assert_array_equal(radius, np.maximum((votes.max(1) - votes.min(1) - 1) // 2, 0))
    for q, labels in enumerate(attack_labels(ballot, codes, 2, 10)):
        cost = (labels != codes).sum()
        assert cost >= radius[q] + 1
        if votes[q].argmax() == 0:  # of equals the first wins, so a tie is enough for the other class only
            assert cost <= radius[q] + 2


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from(["plant", "remove", "alter"]),
)
def test_changed_points_within_the_radius(seed, k, doubt, attack):
    """Every change of one or two points of a line, for neighbours by distance."""
    rng = np.random.default_rng(seed)
    N = 10
    places, codes = np.arange(1.0, N + 1), np.where(rng.random(N) < 0.85, 0, 1)
    ballot = Ballot(np.argsort(places, kind="stable")[None, :k], np.zeros((1, N)), doubt)
    outcome = decide(ballot, codes, 2)
    radius = point_radius(outcome.votes, outcome.answer, lambda m: (k, doubt), 2)[0]
    assert radius >= 0
    spots, labels = [0.5, k + 0.5, 99.0], [0, 1]
    for m in range(1, radius + 1):
        taken = list(combinations(range(N), m)) if attack != "plant" else [()]
        added = list(product(product(spots, labels), repeat=m)) if attack != "remove" else [()]
        for out, new in product(taken, added):
            keep = np.setdiff1d(np.arange(N), out)
            where = np.r_[places[keep], [s for s, _ in new]]
            y = np.r_[codes[keep], [c for _, c in new]].astype(int)
            near = np.argsort(where, kind="stable")[:k]
            assert answer(near, np.zeros(len(y)), doubt, y, 2) == outcome.answer[0]


def test_a_class_alone_has_no_rival():
    ballot = Ballot(np.array([[0, 1]]), np.ones((1, 3)), 1)
    codes = np.zeros(3, dtype=int)
    assert decide(ballot, codes, 1).answer == [0]
    assert flip_radius(ballot, codes, 1) == [3]
    assert attack_labels(ballot, codes, 1, 3) == [None]
