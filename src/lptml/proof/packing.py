"""A lower bound from many small contradictions: for four features and more.

Every metric violates a member of every contradiction, so the violated constraints are a hitting set of all of
them. The least weight of a hitting set is bounded by a linear program and its dual, a packing:

    min sum_i w_i x_i,  sum of x_i over S >= 1 for every contradiction S,  x >= 0
    max sum_S z_S,      sum of z_S over the S that contain i <= w_i,       z >= 0

Any z within its limits proves its sum (weak duality), whoever found it and however. The program has far too
many rows, so it is solved for some; its x are prices, and contradictions that are cheaper than 1 at these
prices (``lptml.proof.contradictions``) are the rows that it lacks. Where x is whole, or the sum rounded up to
the next possible cost meets that of a metric, that metric is the best possible.

References
----------
Parker and Ryan (1996), "Finding the minimum weight IIS cover of an infeasible system of linear
inequalities", Annals of Mathematics and Artificial Intelligence 17. Codato and Fischetti (2006),
"Combinatorial Benders' cuts for mixed-integer linear programming", Operations Research 54.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from lptml.constraints import ConstraintSet, Floats
from lptml.proof.contradictions import Contradiction, Separation
from lptml.proof.verify import rounded_up

_KEPT = 2000  # contradictions without a share that are kept, the youngest
_SHARE = 2.0  # seconds of looking for contradictions, for each second of the linear program
_LEAST = 0.05  # and at least these
_FEW = 5  # contradictions of one lower bound in a round below which they are left alone for a while
_PAUSE = 10  # rounds


class PackingSearch:
    """Contradictions so far, the prices that follow from them, and the bound.

    Parameters
    ----------
    constraints : ConstraintSet
    random_state : int or None
    known : list of Contradiction
        To start with.
    """

    def __init__(
        self,
        constraints: ConstraintSet,
        random_state: int | None = 0,
        known: Sequence[Contradiction] = (),
    ) -> None:
        self.separation = Separation(constraints, random_state)
        self.weight = constraints.weight
        self.found: list[Contradiction] = []
        self.shares = np.zeros(0)
        self.lower_bound = 0.0
        self.best: tuple[list[Contradiction], Floats] = ([], self.shares)
        self._seen: set[bytes] = set()
        self._x = np.zeros(constraints.n)  # the last solution
        self._mean = self._x  # of many: separating prices that move less needs fewer rounds
        self._seconds = 0.0  # of the last linear program
        self._pause = 0
        self._add(known)

    def step(self, deadline: float) -> tuple[list[Floats], bool]:
        """Find contradictions, bound anew; the metrics that were met, and whether there is more to do."""
        began = time.monotonic()
        until = min(deadline, began + max(_LEAST, _SHARE * self._seconds))
        price = 0.7 * self._x + 0.3 * self._mean
        metrics: list[Floats] = []
        new = 0
        if self._pause == 0 or not self.separation.has_time(deadline):
            new = self._add(self.separation.in_hulls(price, until))
            self._pause = _PAUSE if new < _FEW else 0
        else:
            self._pause -= 1
        while time.monotonic() < until and self.separation.has_time(deadline):
            some, more = self.separation.by_leaving_out(price, deadline)
            metrics += more
            new += self._add(some)
        if self.found and (new or not len(self.shares)):
            self._solve(deadline)
        return metrics, new > 0 or self.separation.has_time(deadline)

    def _add(self, contradictions: Iterable[Contradiction]) -> int:
        """Keep those that are new; how many."""
        new = 0
        for each in contradictions:
            key = np.sort(each.members).tobytes()
            if key not in self._seen:
                self._seen.add(key)
                self.found.append(each)
                new += 1
        return new

    def _solve(self, deadline: float) -> None:
        """The linear program, and what its packing proves."""
        began = time.monotonic()
        M = self._incidence()
        unit = float(self.weight.mean())  # tolerances of HiGHS are absolute
        answer = linprog(
            self.weight / unit,
            A_ub=-M,
            b_ub=-np.ones(M.shape[0]),
            bounds=(0, None),
            method="highs",
            options={"time_limit": max(0.05, deadline - began)},
        )
        self._seconds = time.monotonic() - began
        if answer.x is None or answer.ineqlin.marginals is None:
            return
        self._x = np.clip(answer.x, 0.0, 1.0)
        self._mean = 0.7 * self._mean + 0.3 * self._x
        self.shares = _within(M, -unit * answer.ineqlin.marginals, self.weight)
        bound = rounded_up(Fraction(float(self.shares.sum())), self.weight)
        if bound > self.lower_bound:
            used = np.flatnonzero(self.shares)
            self.lower_bound = bound
            self.best = [self.found[k] for k in used], self.shares[used]
        if len(self.found) > _KEPT + 2 * np.count_nonzero(self.shares):
            old = np.arange(len(self.found)) < len(self.found) - _KEPT // 2
            keep = np.flatnonzero(~old | (self.shares > 0))
            self.found = [self.found[k] for k in keep]
            self.shares = self.shares[keep]
            self._seen = {np.sort(each.members).tobytes() for each in self.found}

    def _incidence(self) -> sparse.csr_matrix:
        """Which constraints each contradiction has: (contradictions, n)."""
        starts = np.cumsum([0, *(len(each.members) for each in self.found)])
        columns = np.concatenate([each.members for each in self.found])
        return sparse.csr_matrix(
            (np.ones(len(columns)), columns, starts), shape=(len(self.found), len(self.weight))
        )


def _within(M: sparse.csr_matrix, shares: Floats, weight: Floats) -> Floats:
    """Shares on a grid on which sums are exact, and which no constraint has too much of.

    Examples
    --------
    >>> M = sparse.csr_matrix(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    >>> _within(M, np.array([0.75, 0.75]), np.ones(3)).round(3)
    array([0.5, 0.5])
    """
    shares = np.maximum(shares, 0.0)
    load = M.T @ shares
    # A constraint that was given too much takes it back from all that share in it.
    factor = np.divide(weight, load, out=np.ones_like(load), where=load > weight)
    most = np.array([factor[M.indices[a:b]].min() for a, b in zip(M.indptr[:-1], M.indptr[1:])])
    grid = 2.0 ** (np.ceil(np.log2(max(float(weight.sum()), 1e-300))) - 48)
    scaled: Floats = np.floor(shares * most * (1.0 - 1e-12) / grid) * grid
    return np.maximum(scaled, 0.0)
