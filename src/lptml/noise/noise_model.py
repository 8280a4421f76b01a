"""From class scores to the probability that a label is wrong, with the overlap of the classes accounted for.

Scores E_i(c) of point i, made without its own label, become class probabilities p_i = softmax(s E_i) by one
sharpness s. A share rho of the labels is wrong, one of the other classes each, so that the given label has

    P(y_i) = (1 - rho) p_i(y_i) + rho / (K - 1) (1 - p_i(y_i)),

and Bayes' rule gives the probability that it is wrong. Everything hinges on rho, and overlapping classes look
much like wrong labels. What tells them apart: the clearer a point, the more often its given label agrees with
the scores where classes overlap, but never more often than 1 - rho where labels are wrong. Where no point is
clear, or all are equally so, nothing tells. So neither s nor rho is fixed at one value: every pair of values
counts by its posterior probability, and the suspicion is the mean over them. Where the data cannot tell rho
from 0, the mean stays low by itself; the marginal posterior of rho gives the interval that is reported.

References
----------
.. [1] Scott, Blanchard and Handy (2013). Classification with asymmetric label noise: consistency and maximal
       denoising. COLT. (What can and what cannot be identified.)
.. [2] Guo, Pleiss, Sun and Weinberger (2017). On calibration of modern neural networks. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import Floats, Ints

_NEVER = 0.23  # over N: how likely what never happened in N trials still is (median, Jeffreys' prior)
_LITTLE = 0.1  # prior of rho proportional to 1 / (.1 + rho): as likely below .1 as from .1 to .3
_SHARPNESS = np.geomspace(0.05, 10.0, 31)  # typical log-odds that are tried
_SHARES = np.linspace(0.0, 1.0, 41) ** 2  # of the largest rho: finer near 0
_LEAST = 1e-3  # information that every model is granted
_ROWS = 5000  # rows that sharpness and rho are fitted to at most


@dataclass(frozen=True, eq=False)
class Fitted:
    """Posterior means over sharpness and share of wrong labels."""

    probability: Floats
    """(N, K): classes without hearing the given label."""
    suspicion: Floats
    """(N,): probability that the given label is wrong."""
    noise_rate: float
    """Mean of rho."""
    interval: tuple[float, float]
    """The shortest that holds 90% of the posterior probability; from 0 where that is likeliest."""
    information: float
    """Mean log-likelihood of the given labels beyond that of a guess, at its highest."""


def softmax(E: Floats) -> Floats:
    """Probabilities from log-probabilities up to a constant, along the last axis."""
    P = np.exp(E - E.max(axis=-1, keepdims=True))
    return np.asarray(P / P.sum(axis=-1, keepdims=True))


def fit_noise(E: Floats, codes: Ints, trusted: NDArray[np.bool_] | None = None) -> Fitted:
    """Fit sharpness and share of wrong labels to scores E (N, K) and the given labels.

    ``trusted`` marks labels that are known to be right.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.noise_model import fit_noise
    >>> rng = np.random.default_rng(0)
    >>> odds = 6.0 * rng.normal(size=1000)  # logarithms, of class 1 against class 0
    >>> truth = (rng.random(1000) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    >>> given = np.where(rng.random(1000) < 0.1, 1 - truth, truth)
    >>> found = fit_noise(np.stack([0.0 * odds, odds], axis=1), given)
    >>> clear = (given != truth) & (abs(odds) > 9.0)
    >>> bool(abs(found.noise_rate - 0.1) < 0.02), bool(found.suspicion[clear].min() > 0.9)
    (True, True)
    >>> nothing = fit_noise(rng.normal(size=(1000, 2)), given)  # scores that say nothing
    >>> bool(nothing.suspicion.max() < 0.6), bool(nothing.interval[1] > 0.3)
    (True, True)
    """
    N, K = E.shape
    known = np.zeros(N, dtype=bool) if trusted is None else trusted
    some = np.linspace(0, N - 1, min(N, _ROWS)).astype(np.int64)
    own = np.arange(len(some))
    rates = 0.9 * (K - 1) / K * _SHARES  # (R,)
    doubted = np.where(known[some, None], 0.0, rates)  # (n, R)
    sharpness = _SHARPNESS / _typical_margin(E[some])
    logs = np.empty((len(sharpness), len(rates)))
    for number, s in enumerate(sharpness):
        p = softmax(s * E[some])[own, codes[some], None]  # (n, 1)
        logs[number] = np.log(p * (1.0 - doubted) + (1.0 - p) * doubted / (K - 1) + 1e-300).sum(axis=0)
    prior = np.gradient(rates) / (_LITTLE + rates)
    W = np.exp(logs - logs.max()) * prior
    W /= W.sum()  # (S, R) posterior
    probability, suspicion = np.zeros((N, K)), np.zeros(N)
    for row in np.flatnonzero(W.sum(axis=1) > 1e-6):
        P = softmax(sharpness[row] * E)
        p = P[np.arange(N), codes]
        probability += W[row].sum() * P
        for rate in np.flatnonzero(W[row] > 1e-6):
            suspicion += W[row, rate] * _wrong(p, rates[rate], K)
    probability /= probability.sum(axis=1, keepdims=True)
    suspicion[known] = 0.0
    of_rate = W.sum(axis=0)
    return Fitted(
        probability,
        np.minimum(suspicion, 1.0),
        float(of_rate @ rates),
        shortest(rates, of_rate),
        float(logs.max()) / len(some) + float(np.log(K)),
    )


def combine(fits: list[Fitted], *, emphasis: float = 0.0) -> Floats:
    """(N, K) mean log-probability of sources of scores, each fitted by itself.

    No source calls a class less likely than N points can tell. All sources count alike, or by that power of
    their information about the given labels, where one of them may be worth next to nothing.
    """
    least = _NEVER / len(fits[0].suspicion)
    worth = [max(fit.information, _LEAST) ** emphasis for fit in fits]
    logs = [np.log(np.maximum(fit.probability, least)) for fit in fits]
    return np.asarray(np.average(logs, axis=0, weights=worth))


def mixed_suspicion(whole: Fitted, rigid: Fitted) -> Floats:
    """(N,) suspicion if wrong labels may also lie together, where just the rigid one of the models tells.

    The larger of what all say and half of what the rigid model says, since they lie together as likely as
    not. The rigid model counts by its share of the information, so that it does not speak where the classes
    are no clouds around centres and it knows next to nothing. It never calls a label wrong by itself.

    Notes
    -----
    ROC AUC of 20% uniform flips, the 10% most confident and one neighbourhood of 10%, four splits of the 13
    development sets with 38 votes for a point, and the calibration error under all conditions: .887, .900,
    .590; .024 without the rigid model, .886, .913, .631; .020 with it. The mean of both had .884, .913, .638;
    .023, but 15 of the 84 labels above .9 in Letter with 10% uniform flips were right, in place of 3 of 31;
    the mean of their log-odds .885, .912, .621; .025.
    """
    share = min(max(rigid.information, _LEAST) / max(whole.information, _LEAST), 1.0)
    return np.maximum(whole.suspicion, share * rigid.suspicion / 2.0)


def detected(probability: Floats, rate: float) -> float:
    """The share of wrong labels that would have a suspicion above one half, if a share ``rate`` were wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.noise_model import detected
    >>> detected(np.array([[0.99, 0.01]] * 9), 0.1), detected(np.array([[0.7, 0.3]] * 9), 0.1)
    (0.99, 0.0)
    """
    K = probability.shape[1]
    seen = _wrong(probability, rate, K) > 0.5  # (N, K), were that label given
    # A wrong label on a point of class c is one of the other K - 1, each as likely.
    others = (seen.sum(axis=1, keepdims=True) - seen) / (K - 1)
    return float((probability * others).sum(axis=1).mean())


def _wrong(p: Floats, rate: float, K: int) -> Floats:
    """Bayes: the probability that a label is wrong to which the scores give the probability p."""
    wrong = (1.0 - p) * (rate / (K - 1))
    return wrong / np.maximum(p * (1.0 - rate) + wrong, 1e-300)


def shortest(rates: Floats, mass: Floats, level: float = 0.9) -> tuple[float, float]:
    """The shortest interval that holds so much of the probability of these rates, spread between them."""
    edges = np.concatenate([[rates[0]], (rates[1:] + rates[:-1]) / 2.0, [rates[-1]]])
    below = np.concatenate([[0.0], np.cumsum(mass)])
    left_out = np.linspace(0.0, 1.0 - level, 41)  # on the left
    low, high = np.interp(left_out, below, edges), np.interp(left_out + level, below, edges)
    best = int((high - low).argmin())
    return float(low[best]), float(high[best])


def _typical_margin(E: Floats) -> float:
    """Median lead of the first class over the second, the unit of sharpness."""
    top = np.partition(E, -2, axis=1)
    margin = float(np.median(top[:, -1] - top[:, -2]))
    return margin if margin > 1e-9 else 1.0
