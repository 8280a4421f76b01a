"""Flips of labels aimed at one answer: an upper bound on what a certificate can promise.

For each rival three orders of flipping are tried: those that cost the answer most in the second vote; voters
of the first vote, the heaviest in the second first; and both leads together, each in units of what it needs.
A prefix of an order that changes the answer is an attack. Flips that it can do without are then taken back
one by one. Every attack is confirmed by counting the votes again under the changed labels.
"""

from __future__ import annotations

import numpy as np

from lptml.certified.votes import Ballot, decide
from lptml.constraints.checks import Floats, Ints


def attack_labels(ballot: Ballot, codes: Ints, n_classes: int, limit: int) -> list[Ints | None]:
    """The cheapest change of labels found that changes each answer.

    Parameters
    ----------
    ballot : Ballot
    codes : array of shape (N,)
    n_classes : int
    limit : int
        The most labels to change.

    Returns
    -------
    list
        For each query the labels after the attack, shape (N,), or None if no attack was found.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.certified import Ballot, attack_labels
    >>> ballot = Ballot(np.array([[0, 1, 2, 3, 4]]), np.full((1, 6), 1 / 6), doubt=1)
    >>> codes = np.array([0, 0, 0, 0, 0, 1])
    >>> int((attack_labels(ballot, codes, 2, limit=6)[0] != codes).sum())
    3
    """
    decision = decide(ballot, codes, n_classes)
    found: list[Ints | None] = []
    for q, answer in enumerate(decision.answer):
        one = Ballot(ballot.nearest[q : q + 1], ballot.weights[q : q + 1], ballot.doubt)
        best: Ints | None = None
        for b in np.flatnonzero(np.arange(n_classes) != answer):
            most = limit if best is None else int((best != codes).sum()) - 1
            attacked = _towards(one, codes, n_classes, int(answer), int(b), most)
            best = best if attacked is None else attacked
        found.append(best)
    return found


def _towards(ballot: Ballot, codes: Ints, n_classes: int, a: int, b: int, limit: int) -> Ints | None:
    """The cheapest attack found in favour of b, with at most ``limit`` flips."""
    weights, voters = ballot.weights[0], ballot.nearest[0]
    signs = (codes == a).astype(np.float64) - (codes == b)
    second = np.abs(weights) + weights * signs
    first = np.zeros(len(codes))
    first[voters] = 1.0 + signs[voters]
    to_a = (weights < 0) & (first == 0)  # a negative weight that is no voter helps b by voting for a
    best: Ints | None = None
    for gain in (second, first + 1e-6 * second, _relative(first, ballot, codes, a, b) + _share(second)):
        order = np.argsort(-gain, kind="stable")
        for relabel in (np.where(to_a, a, b), np.full(len(codes), b)):
            useful = order[(relabel[order] != codes[order]) & (gain[order] > 0)]
            attacked = _shortest_prefix(ballot, codes, n_classes, a, useful[:limit], relabel)
            if attacked is not None:
                best, limit = attacked, int((attacked != codes).sum()) - 1
    return best


def _relative(first: Floats, ballot: Ballot, codes: Ints, a: int, b: int) -> Floats:
    """The first gains as a share of the lead, so that gains in both votes can be added."""
    votes = codes[ballot.nearest[0]]
    lead = (votes == a).sum() - (votes == b).sum() + ballot.doubt
    return first / max(float(lead), 1.0)


def _share(second: Floats) -> Floats:
    return second / max(float(second.sum()), 1e-300)


def _shortest_prefix(
    ballot: Ballot, codes: Ints, n_classes: int, a: int, order: Ints, relabel: Ints
) -> Ints | None:
    """Flip in this order until the answer is no longer a, then take back what was not needed."""
    labels = codes.copy()
    for count, i in enumerate(order, start=1):
        labels[i] = relabel[i]
        if decide(ballot, labels, n_classes).answer[0] != a:
            for j in order[:count]:
                labels[j], kept = codes[j], labels[j]
                if decide(ballot, labels, n_classes).answer[0] == a:
                    labels[j] = kept
            return labels
    return None
