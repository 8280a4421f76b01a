"""LPTML, the paper's Algorithm 2, in its own words: serial, without limits, progress or checkpoints.

The search that people run (run.py) does these steps on an engine and surrounds them with all that. This is
what it must agree with, bit for bit; nothing but tests calls it on large problems.

References
----------
D. Ihara Centurion, N. Mohammadi, F. Sgherzi, A. Sidiropoulos, "Robust Mahalanobis metric learning via
geometric approximation algorithms", Algorithm 2 (LPTML) and Section 3 (LPTML_t); arXiv:1905.09989.
"""

from __future__ import annotations

from lptml.constraints import Source
from lptml.search.setup import Setup, prepare
from lptml.search.trial import Candidate, count, draw, identity, solve


def algorithm2(F: Source, *, t: int, eps: float = 0.5, seed: int = 0, objective: str = "trace") -> Candidate:
    """Of t metrics, each exact for a random sample of the constraints F, the one that violates least of F.

    Parameters
    ----------
    F : ConstraintSet, LabelledPairs or another source in memory
    t : int
        Trials, spread evenly over the grid of probabilities.
    eps : float
        The grid is p = (1+eps)^-i, for i = 0, 1, ... while p n >= 1.
    seed : int
    objective : "trace", "random" or "prior"
        What Exact-LPTML minimises subject to a sample.

    Returns
    -------
    Candidate
        Its ``metric``, its ``cost`` and the ``trial`` that found it (-1: the best multiple of the identity).

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import LabelledPairs
    >>> from lptml.search import algorithm2, search
    >>> X = np.random.default_rng(0).normal(size=(20, 2)) * [1.0, 40.0]
    >>> F = LabelledPairs.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.0))
    >>> best = algorithm2(F, t=50)
    >>> best.cost == search(F, max_trials=50, random_state=0).cost
    True
    """
    problem = prepare(F, Setup(epsilon=eps, objective=objective, approximate_counting=False), seed).problem
    best = identity(problem)  # never worse than either trivial metric
    for i in range(t):
        drawn = draw(problem, i)  # p = (1+eps)^-i, and each constraint of F with probability p
        A = solve(problem, drawn)  # Exact-LPTML on the sample: Algorithm 1
        candidate = count(problem, A)  # what its best multiple violates of F
        if candidate.cost < best.cost:
            best = candidate
    return best
