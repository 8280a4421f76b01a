"""The efficient step for pairs: the likelihood of labels that are blurred at the boundary or plainly wrong.

A label is a coin toss with probability eps, whatever the distance, and otherwise right except near the
bound, where noise of width T blurs it:

    P(label i) = eps / 2 + (1 - eps) / (1 + exp(z_i)),      z_i = sign_i (|G v_i| - b_i) / T.

T is given (the temperature); eps is estimated along with the metric A = G'G, by maximum likelihood. Minus the
logarithm is a bounded loss: a violated pair pays log(2 / eps) at most, and as T falls to 0 all that are
violated pay the same, so that the count is its limit, as it is the sigmoid's. Near the boundary it is the
logistic likelihood, which is efficient where the sigmoid is not. Being bounded it has many local minima, so
it is the second step of an MM-estimation (Yohai 1987): L-BFGS starts where the count and the sigmoid end.

Measured by ``benchmarks.pairs`` (docs/generalisation.md). For triplets the sigmoid alone was as good or
better (8 of the development sets, 2 splits, 20% wrong labels, clean voters: 78.2 against 77.8).

References
----------
Yohai, V. J. (1987). High breakdown-point and high efficiency robust estimates for regression. The Annals of
Statistics 15 (2), 642-656.

Alishahi, M., Little, A. and Phillips, J. M. (2023). Linear distance metric learning with noisy labels.
arXiv:2306.03173.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np

from lptml._limits import look
from lptml.constraints import ConstraintSet, Floats
from lptml.constraints.scaling import feature_scale, scale_metric, unscale_metric

_ITERATIONS = 200  # far more than the likelihood needs to settle to the fourth digit of an accuracy
_RARE, _COMMON = 1e-3, 0.98  # limits of eps, to stay clear of log 0 and of pairs that say nothing


def log_likelihood(pairs: ConstraintSet, A: Floats, temperature: float, eps: float) -> Floats:
    """(n,) the logarithm of the probability of every label under a metric; at T = 0 the bound is sharp."""
    return np.asarray(np.log(0.5 * eps + (1.0 - eps) * _right(pairs, A, temperature)))


def share_of_coins(pairs: ConstraintSet, A: Floats, temperature: float) -> float:
    """The likeliest eps for a metric, by bisection: the likelihood is concave in eps.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.learn.mixture import share_of_coins
    >>> pairs = ConstraintSet.from_differences(np.full((8, 1), 0.5), [1] * 7 + [-1], bounds=(1.0, 1.0))
    >>> round(share_of_coins(pairs, np.eye(1), 0.0), 3)  # every second coin comes up wrong: 2 of 8
    0.25
    """
    right = _right(pairs, A, temperature)
    low, high = _RARE, _COMMON
    for _ in range(30):
        eps = 0.5 * (low + high)
        slope = pairs.weight @ ((0.5 - right) / (0.5 * eps + (1.0 - eps) * right))
        low, high = (eps, high) if slope > 0 else (low, eps)
    return 0.5 * (low + high)


def _right(pairs: ConstraintSet, A: Floats, temperature: float) -> Floats:
    """(n,) how likely each label is where no coin is tossed."""
    from scipy.special import expit

    if temperature == 0:
        return np.where(pairs.violated(A), 0.0, 1.0)
    edge = np.sqrt(pairs.bound)
    length = np.sqrt(np.maximum(pairs.values(A), 0.0))
    return np.asarray(expit(pairs.sign * (edge - length) / (temperature * float(edge.max()))))


class _Late(Exception):
    """The time is over."""


def likeliest(
    pairs: ConstraintSet,
    start: Floats,
    temperature: float,
    *,
    rank: int | None = None,
    penalty: Floats | None = None,
    deadline: float | None = None,
) -> Floats:
    """The metric of largest likelihood near a start.

    Parameters
    ----------
    pairs : ConstraintSet
        Pairs, no comparisons.
    start : array of shape (d, d)
        A metric at the scale of the bounds.
    temperature : float
        T, relative to the largest bound.
    rank : int, optional
        The largest rank of the result.
    penalty : array of shape (d, d), optional
        P of a term <P, A> that is added to minus the log-likelihood.
    deadline : float, optional
        The ``time.monotonic()`` at which to stop where it stands.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.learn.mixture import likeliest
    >>> V = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(np.abs(V[:, 0]) < 1, 1, -1)  # just the first feature matters
    >>> pairs = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
    >>> A = likeliest(pairs, np.eye(2), 0.05)
    >>> pairs.cost(A) < 0.05 * pairs.n < pairs.cost(np.eye(2))
    True
    """
    from scipy.optimize import minimize  # loaded where it is needed
    from scipy.special import expit

    scale = feature_scale(pairs)  # (d,)
    edge = np.sqrt(pairs.bound)  # (n,)
    V, width = pairs.V / scale, temperature * float(edge.max())
    w = pairs.weight / pairs.total_weight
    P = None if penalty is None else scale_metric(penalty, 1.0 / scale) / pairs.total_weight
    eigenvalues, Q = np.linalg.eigh(scale_metric(start, scale))
    k = len(Q) if rank is None else rank
    # A row of zeros has no gradient, so none is left at zero.
    top = np.maximum(eigenvalues[-k:], 1e-4 * max(float(eigenvalues[-1]), 1e-300))
    G = (Q[:, -k:] * np.sqrt(top)).T  # (k, d)

    reached = np.append(G.ravel(), 0.0)

    def loss(x: Floats) -> tuple[float, Floats]:
        if deadline is not None and time.monotonic() > deadline:
            raise _Late
        look()
        factor, eps = x[:-1].reshape(G.shape), float(expit(x[-1]))
        image = V @ factor.T  # (n, k)
        length = np.sqrt(np.einsum("ij,ij->i", image, image))
        right = expit(pairs.sign * (edge - length) / width)  # (n,) where no coin is tossed
        chance = 0.5 * eps + (1.0 - eps) * right
        slope = w * (1.0 - eps) * right * (1.0 - right) / chance * pairs.sign / width
        image *= (slope / np.maximum(length, 1e-9 * edge))[:, None]
        gradient = image.T @ V
        value = -float(w @ np.log(chance))
        if P is not None:
            value += float(np.vdot(P, factor.T @ factor))
            gradient += 2.0 * factor @ P
        of_eps = eps * (1.0 - eps) * float(w @ ((right - 0.5) / chance))
        return value, np.append(gradient.ravel(), of_eps)

    def keep(x: Floats) -> None:
        reached[:] = x

    # Of tossed coins every second one comes up wrong.
    eps = np.clip(2.0 * float(pairs.cost(start)) / pairs.total_weight, 10 * _RARE, 0.9)
    reached[-1] = np.log(eps / (1.0 - eps))
    limits = [(None, None)] * G.size + [tuple(np.log(share / (1.0 - share)) for share in (_RARE, _COMMON))]
    with contextlib.suppress(_Late):
        reached = minimize(
            loss,
            reached.copy(),
            jac=True,
            method="L-BFGS-B",
            bounds=limits,
            callback=keep,
            options={"maxiter": _ITERATIONS},
        ).x
    G = reached[:-1].reshape(G.shape)
    return unscale_metric(G.T @ G, scale)
