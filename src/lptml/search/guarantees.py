"""How many trials the guarantee of Algorithm 2 takes, and what a finished search has earned of it.

Let k constraints be violated by the best metric A*. It is w(B) for a basis B of at most D = d(d+1)/2
constraints, so a trial whose sample holds B and none of the k violators ends with a metric at least as
good. At probability p that happens with probability

    q(p, k) = p^D (1-p)^k,    which is largest at p = D / (D + k).

A grid with ratio 1+eps has a point between p/(1+eps) and p, and q has one maximum, so some level of the
grid has at least q(p/(1+eps), k).

For a large k an approximation needs less (Lemma 2.3 of the paper, after Har-Peled, "Geometric approximation
algorithms", chapter 15): in a sample R of rate r, the violations of all n^D bases are in proportion within
a factor 1 +- eps/3 as soon as r k >= 27 (D log n + log(4/delta)) / eps^2 (Chernoff and a union bound), and
a sample of F at rate r p is a sample of R at rate p. So a (1+eps)-approximation needs no more trials than
an optimum with

    k' = 27 (1+eps/3) (D log n + log(4/delta)) / eps^2

violators, whatever k is. The best metric violates at most half of the constraints: A = 0 or A -> infinity
does.

References
----------
D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
geometric approximation algorithms", Lemma 2.3; arXiv:1905.09989.

S. Har-Peled, "Geometric approximation algorithms", American Mathematical Society, 2011, chapter 15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike

from lptml.search.sampling import probability_grid


def theoretical_trials(n: int, d: int, epsilon: float, delta: float) -> int:
    """Trials after which a search has a (1+eps)-approximation with probability at least 1 - delta.

    Parameters
    ----------
    n : int
        The number of constraints.
    d : int
        The number of features.
    epsilon : float
        The grid's ratio is 1+eps, and so is the approximation.
    delta : float
        The probability of failure.

    Returns
    -------
    int
        The number of trials over the whole grid. It grows like (log n / eps^2)^D: for d = 2 it can be run
        on small problems, for d = 13 it has hundreds of digits.

    Examples
    --------
    >>> from lptml.search.guarantees import theoretical_trials
    >>> theoretical_trials(n=100, d=1, epsilon=0.5, delta=0.05)
    5316
    >>> len(str(theoretical_trials(n=3916, d=13, epsilon=0.5, delta=0.05)))
    167
    """
    if n < 1 or d < 1:
        raise ValueError(f"n and d must be positive, got {n!r} and {d!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    levels = len(probability_grid(n, epsilon))
    D = d * (d + 1) // 2
    enough = 27 * (1 + epsilon / 3) * (D * math.log(n) + math.log(4 / delta)) / epsilon**2
    k = min(n // 2, math.ceil(enough))
    p = D / (D + k) / (1 + epsilon)
    log_q = D * math.log(p) + k * math.log1p(-p)
    # (1-q)^N <= delta; N = log(1/delta) / q is enough, in decimals because q may be below the smallest float.
    inner = (Decimal(-math.log(delta)) * Decimal(-log_q).exp()).to_integral_value(rounding="ROUND_CEILING")
    return levels * int(inner)


def achieved_confidence(probabilities: ArrayLike, counts: Sequence[int], d: int, violated: int) -> float:
    """The probability that a search would have found a better metric, had there been one.

    For every k up to ``violated``, a metric that violates k constraints is matched by these trials with at
    least this probability.

    Parameters
    ----------
    probabilities : array-like of shape (levels,)
        The levels of the grid.
    counts : sequence of int
        Trials run at each level.
    d : int
    violated : int
        The number of constraints that the best metric found violates.

    Examples
    --------
    >>> from lptml.search.guarantees import achieved_confidence
    >>> achieved_confidence([1.0, 0.5], [1, 100], d=2, violated=3)
    0.95...
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if violated == 0:
        return 1.0
    D = d * (d + 1) // 2
    k = violated - 1  # a better metric violates at most one fewer
    with np.errstate(divide="ignore", invalid="ignore"):
        q = p**D * np.where(p < 1, 1 - p, 0.0) ** k
        log_miss = np.sum(np.asarray(counts) * np.log1p(-np.minimum(q, 1.0)), where=np.asarray(counts) > 0)
    return float(-np.expm1(log_miss))
