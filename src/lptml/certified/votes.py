"""The decision of two votes, and how many changes of the training data it provably survives.

The first vote counts one vote for each of k neighbours. If its winner leads by at least ``doubt`` votes, it
is the answer; else the winner of the second vote is, sum_i w_i(x) [y_i = c] with weights that no label
decides.

Let a be the answer and b a rival. A flip changes the first lead v_a - v_b by 2 if it turns a voter for a into
one for b, by 1 if it turns any other voter, so r flips leave at least

    v_a - v_b - 2 min(r, v_a) - min(max(r - v_a, 0), k - v_a - v_b)                 (1)

and the second lead falls by at most the sum of the r largest of |w_i| + w_i ([y_i = a] - [y_i = b])     (2).
Both are attained. The answer stays a if the first lead stays at ``doubt`` or above against every b, or if no
b can come to lead a by ``doubt`` in the first vote and a stays ahead in the second. ``docs/certified.md`` has
the proof.

References
----------
Jia, J., Liu, Y., Cao, X. and Gong, N. Z. (2022). Certified robustness of nearest neighbors against data
poisoning and backdoor attacks. AAAI 36.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lptml.constraints.checks import Floats, Ints

_TOLERANCE = 1e-9  # a lead of weights below this is none: sums are rounded


@dataclass(frozen=True, eq=False)
class Ballot:
    """Who votes for each of q queries; no label is in it."""

    nearest: Ints
    """(q, k)"""
    weights: Floats
    """(q, N)"""
    doubt: int
    """The lead that the first vote must have to decide."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome under one labelling."""

    votes: Ints
    """(q, K): of the first vote"""
    scores: Floats
    """(q, K): of the second"""
    first: NDArray[np.bool_]
    """(q,): whether the first vote decided"""
    answer: Ints
    """(q,)"""


def decide(ballot: Ballot, codes: Ints, n_classes: int) -> Outcome:
    """Count both votes.

    Parameters
    ----------
    ballot : Ballot
    codes : array of shape (N,)
        Classes 0 .. n_classes - 1 of the training points.
    n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.certified import Ballot, decide, flip_radius
    >>> ballot = Ballot(np.array([[0, 1, 2, 3, 4]]), np.full((1, 6), 1 / 6), doubt=1)
    >>> codes = np.array([0, 0, 0, 0, 0, 1])
    >>> decide(ballot, codes, 2).answer, flip_radius(ballot, codes, 2)
    (array([0]), array([2]))
    """
    member = np.eye(n_classes, dtype=np.int64)[codes]  # (N, K)
    votes = member[ballot.nearest].sum(axis=1)  # (q, K)
    scores = ballot.weights @ member
    first = _lead(votes) >= ballot.doubt
    answer = np.where(first, votes.argmax(axis=1), scores.argmax(axis=1))
    return Outcome(votes, scores, first, answer.astype(np.int64))


def flip_radius(ballot: Ballot, codes: Ints, n_classes: int) -> Ints:
    """(q,) changed labels that leave each answer as it is, whichever they are.

    Labels change to any of the classes. The bound is exact for each vote alone.
    """
    decision = decide(ballot, codes, n_classes)
    answer, N = decision.answer, len(codes)
    radius = np.full(len(answer), N, dtype=np.int64)
    stays, never, second = radius.copy(), radius.copy(), radius.copy()
    rows = np.arange(len(answer))
    own = decision.votes[rows, answer]
    for b in range(n_classes):
        rivals = np.flatnonzero(answer != b)
        votes = own[rivals], decision.votes[rivals, b]
        k = ballot.nearest.shape[1]
        stays[rivals] = np.minimum(stays[rivals], _first_radius(*votes, k, ballot.doubt, N))
        never[rivals] = np.minimum(never[rivals], _first_radius(*votes, k, 1 - ballot.doubt, N))
        lead = decision.scores[rivals, answer[rivals]] - decision.scores[rivals, b]
        gains = _gains(ballot.weights[rivals], codes, answer[rivals], b)
        second[rivals] = np.minimum(second[rivals], _second_radius(lead, gains))
    return np.maximum(np.maximum(stays, np.minimum(never, second)), 0)


def point_radius(votes: Ints, answer: Ints, changed: Callable[[int], tuple[int, int]], n_points: int) -> Ints:
    """(q,) planted, removed or altered training points that leave each answer as it is.

    For votes whose neighbours do not depend on other training points. A changed point moves a lead by at most
    2: it takes one voter away and puts another in its place. Only the first vote is relied upon.

    Parameters
    ----------
    votes : array of shape (q, K)
    answer : array of shape (q,)
    changed : callable
        The number of voters and the doubt after m changes.
    n_points : int
        The most changes to consider.
    """
    rows = np.arange(len(votes))
    others = votes.copy()
    others[rows, answer] = -1
    lead = votes[rows, answer] - others.max(axis=1)  # (q,)
    k, _ = changed(0)
    radius = np.zeros(len(votes), dtype=np.int64)
    alive = np.ones(len(votes), dtype=bool)
    for m in range(1, n_points + 1):
        voters, doubt = changed(m)
        alive &= lead - 2 * m - abs(voters - k) >= doubt
        if not alive.any():
            break
        radius[alive] = m
    return radius


def _lead(votes: Ints) -> Ints:
    """(q,) votes of the winner beyond those of the next; all of them if there is no other class."""
    if votes.shape[1] == 1:
        return np.asarray(votes[:, 0])
    two = np.partition(votes, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _first_radius(own: Ints, rival: Ints, k: int, least: int, N: int) -> Ints:
    """The most flips after which (1) is ``least`` or more; -1 if it is less already."""
    room = own - rival - least
    twos = np.minimum(room // 2, own)
    ones = room - 2 * own
    unlimited = ones >= k - own - rival  # every voter turned, and still not enough
    r = np.where(twos < own, twos, np.where(unlimited, N, own + ones))
    return np.where(room < 0, -1, r)


def _gains(weights: Floats, codes: Ints, answer: Ints, b: int) -> Floats:
    """(q, N): what the best new label of each point takes from the lead of the answer over b."""
    signs = (codes == answer[:, None]).astype(np.float64) - (codes == b)
    return np.abs(weights) + weights * signs


def _second_radius(lead: Floats, gains: Floats) -> Ints:
    """The most flips after which the lead is positive, by (2); -1 if it is not."""
    lost = np.cumsum(-np.sort(-gains, axis=1), axis=1)
    r = (lost < lead[:, None] - _TOLERANCE).sum(axis=1)
    return np.where(lead > _TOLERANCE, r, -1)
