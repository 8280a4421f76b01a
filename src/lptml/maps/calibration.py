"""Votes as probabilities of the right label, where some of the labels that they are compared with are wrong.

Out-of-sample votes p_i (n, K) become probabilities by one exponent, q_i ~ p_i^s, chosen together with the
share rho of wrong labels by maximum likelihood of the given labels,

    prod_i  sum_c q_i(c) T(c, y_i),     T(c, y) = 1 - rho if c = y else rho / (K - 1).

That labels may be wrong at all has to pay for itself: rho > 0 only where the log-likelihood gains half the
logarithm of n, as a parameter must by Schwarz (1978). Else every overlap of classes would be taken for noise.

References
----------
Schwarz, G. (1978). Estimating the dimension of a model. The Annals of Statistics 6 (2), 461-464.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lptml.constraints import Floats, Ints

SHARPNESS = np.geomspace(0.4, 8.0, 25)
RATES = np.array([0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4])
_FEWEST = 1e-3  # what is added to every probability: no vote excludes a class for good
_COMPARED = 5000  # points that the likelihood looks at, at most


@dataclass(frozen=True)
class Calibration:
    """The exponent, the share of wrong labels, and the penalised mean log-likelihood."""

    sharpness: float
    noise_rate: float
    score: float


def sharpened(P: Floats, sharpness: float) -> Floats:
    """Probabilities (n, K) to the power of ``sharpness``.

    Examples
    --------
    >>> sharpened(np.array([[0.6, 0.4]]), 2.0).round(2)
    array([[0.69, 0.31]])
    """
    E = sharpness * np.log(P + _FEWEST)
    Q = np.exp(E - E.max(axis=1, keepdims=True))
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))


def calibrate(P: Floats, codes: Ints) -> Calibration:
    """The most likely exponent and share of wrong labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=4000)
    >>> y = (rng.uniform(size=4000) < p).astype(int)
    >>> found = calibrate(np.stack([1 - p, p], axis=1), y)
    >>> bool(0.8 < found.sharpness < 1.2), found.noise_rate
    (True, 0.0)
    """
    some = slice(None, None, max(1, len(P) // _COMPARED))
    P, y = P[some], codes[some]
    n, K = P.shape
    rates = RATES[RATES < 0.9 * (K - 1) / K]
    price = np.where(rates > 0, np.log(n) / (2 * n), 0.0)
    best = Calibration(1.0, 0.0, -np.inf)
    for sharpness in SHARPNESS:
        q = sharpened(P, float(sharpness))[np.arange(n), y][:, None]
        scores = np.log(q * (1.0 - rates) + (1.0 - q) * rates / (K - 1)).mean(axis=0) - price
        at = int(scores.argmax())
        if scores[at] > best.score:
            best = Calibration(float(sharpness), float(rates[at]), float(scores[at]))
    return best
