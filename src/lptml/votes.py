"""Neighbours that vote with wrong labels: how often they are right, and under which metric most often.

A k-NN classifier behind the metric votes with the labels as they were given. Where many of them are wrong,
which of the points become neighbours matters more than the last percent of the geometry: with 30% wrong
labels, four neighbours are outvoted or tied for two points in five, whatever the metric, but not for the same
points. So a metric that is good already may be turned a little until the votes are right more often:

    draw points from the classes as they are believed to be
    for t = 1, 2, ...: A' <- a random matrix near A; count the wrong verdicts on the drawn points
    keep the A' with fewest

which is the search of the paper's Algorithm 2 with verdicts for constraints. Beliefs and classes come from
the witnesses of :mod:`lptml.trust`; drawn points, unlike the few given ones, tell metrics apart that differ
by a percent.

It is left alone where there is nothing to gain: where (nearly) all labels are believed; where there are fewer
than 2 d points a class, because then the scatter of the classes is not known well enough to draw from; and
among many points, because chance evens out there.
"""

from __future__ import annotations

import numpy as np

from lptml._candidates import View
from lptml._nearest import nearest
from lptml.constraints import Floats, Ints
from lptml.scatter import SHRINKAGE

__all__ = ["NEIGHBORS", "adjusted", "rightness"]

NEIGHBORS = (4, 8)  # numbers of voters that are asked
_SOFT = 0.1  # weight of the share of right votes, beside the right verdicts
_WRONG = 0.03  # share of wrong labels below which the metric stays as it is
_POINTS_A_FEATURE = 2.0  # in each class, at least
_MANY = 600  # points from which on it stays as it is
_DRAWN = 1000
_TRIALS = 64
_TURN = 0.45  # size of the random matrices; more of it gains more, at the cost of the geometry


def rightness(labels: Ints, beliefs: Floats) -> Floats:
    """(n,) how right neighbours' verdicts are: the majority's, ties shared, plus a little for each vote.

    Parameters
    ----------
    labels : array of shape (n, m)
        Labels 0 .. K - 1 of the neighbours, the nearest first; all of ``NEIGHBORS`` up to m are asked.
    beliefs : array of shape (n, K)
        Probabilities of the classes of the points that are voted on.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.votes import rightness
    >>> beliefs = np.array([[1.0, 0.0]])
    >>> rightness(np.array([[0, 0, 0, 1]]), beliefs)  # right, with three votes of four
    array([1.075])
    >>> rightness(np.array([[0, 1, 0, 1]]), beliefs)  # a tie
    array([0.55])
    """
    n, most = labels.shape
    asked = [k for k in NEIGHBORS if k <= most] or [most]
    own = np.arange(n)
    votes = np.zeros_like(beliefs)
    score = np.zeros(n)
    for k in range(max(asked)):
        votes[own, labels[:, k]] += 1.0
        if k + 1 in asked:
            leading = votes == votes.max(axis=1, keepdims=True)
            score += (leading * beliefs).sum(axis=1) / leading.sum(axis=1)
            score += _SOFT * (votes * beliefs).sum(axis=1) / (k + 1)
    return np.asarray(score / len(asked))


def adjusted(view: View, L: Floats, noise_rate: float) -> Floats:
    """The metric near L under which the given labels, wrong ones too, vote right most often; see above.

    Parameters
    ----------
    view : View
        The points with their given labels, and how far these are trusted.
    L : array of shape (k, d)
        A good metric, L'L.
    noise_rate : float
        Share of the labels that is believed wrong.

    Returns
    -------
    array of shape (k, d), of the same rank
    """
    (N, d), K = view.X.shape, view.n_classes
    if noise_rate < _WRONG or not _POINTS_A_FEATURE * K * d <= N <= _MANY:
        return L
    rng = np.random.default_rng(view.seed)
    classes = rng.choice(K, size=_DRAWN, p=view.share)
    fit = view.classes(SHRINKAGE)
    drawn = fit.centres[classes] + rng.standard_normal((_DRAWN, d)) @ np.linalg.cholesky(fit.scatter).T
    points = (view.X - np.median(view.X, axis=0)) @ L.T  # (N, k)
    drawn = drawn * view.scale @ L.T  # (_DRAWN, k)
    beliefs = np.eye(K)[classes]
    k = len(L)
    best, most = np.eye(k), -np.inf
    for trial in range(_TRIALS + 1):
        turn = np.eye(k) if trial == 0 else np.eye(k) + _TURN / np.sqrt(k) * rng.standard_normal((k, k))
        near = nearest(points @ turn.T, drawn @ turn.T, min(max(NEIGHBORS), N))
        score = float(rightness(view.codes[near], beliefs).mean())
        if score > most:
            best, most = turn, score
    return best @ L
