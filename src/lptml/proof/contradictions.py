"""Small sets of constraints that contradict each other, and are cheap at given prices.

No metric satisfies all members of a contradiction, so every metric pays for one of them at least. Which
contradictions are worth having is said by prices, one for each constraint (``lptml.proof.packing``): those
whose members cost less than 1 together. There are two ways to them:

- a lower bound inside the convex hull of upper bounds (``lptml.proof.hulls``): thousands a second;
- leave out constraints at random, dear ones more likely, and ask Exact-LPTML whether the rest can hold. If it
  cannot, its certificate names at most D + 1 constraints; if it can, its metric may be cheap itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from lptml._limits import OutOfTime, until
from lptml._threads import share_out, single_threaded
from lptml.constraints import ConstraintSet, Floats, Ints, factor
from lptml.exact import exact_lptml, make_objective
from lptml.exact.solution import Status
from lptml.exact.verify import LEAST_GAP
from lptml.proof.hulls import inside_hull
from lptml.proof.verify import contradicts, feature_exponents

# What is added to the prices, from the combination that proves most to cheap ones.
_LEVELS = np.array([1.0, 0.1, 0.02])
_MOST = 0.98  # contradictions of a larger total price bring little
_PIVOTS_AT_ONCE = 4e7  # of products between two looks at the clock: about a twentieth of a second

# Seconds of an exact solve are about this times d**5: 0.5 at d = 30, 4.7 at d = 45.
_SOLVE = 2.5e-8
# Metrics of up to this many dimensions (13 features) have their contradictions made irreducible: on Wine the
# same bound takes two thirds of the time.
_IRREDUCIBLE = 100
_DRAWS = 8  # exact solves at a time


class Contradiction(NamedTuple):
    """Constraints that cannot all hold, with multipliers of Farkas' lemma that prove it."""

    members: Ints
    multipliers: Floats


class Separation:
    """Finds contradictions at prices.

    Parameters
    ----------
    constraints : ConstraintSet
    random_state : int or None
    """

    def __init__(self, constraints: ConstraintSet, random_state: int | None) -> None:
        self.constraints = constraints
        self.rng = np.random.default_rng(random_state)
        self.exponents = feature_exponents(constraints)
        self.keenness = 30.0  # dear constraints stay away with probability 1 - exp(-keenness * price)
        self.solve_seconds = _SOLVE * constraints.d**5
        with single_threaded():
            self._prepare_hull()

    def _prepare_hull(self) -> None:
        """Vectors in units of their bounds, in even coordinates of the span of the upper bounds."""
        c = self.constraints
        self.upper = np.flatnonzero(c.sign > 0)
        self.lower = np.empty(0, dtype=np.int64)
        if c.W is not None or not len(self.upper):
            return
        V = np.ldexp(c.V, -self.exponents) / np.sqrt(c.bound * (1.0 + LEAST_GAP * c.sign))[:, None]
        _, size, Q = np.linalg.svd(V[self.upper], full_matrices=False)
        rank = int((size > 1e-9 * size[0]).sum())
        if rank == 0:
            return
        turned = V @ Q.T
        outside = np.linalg.norm(V - turned @ Q, axis=1) + np.linalg.norm(turned[:, rank:], axis=1)
        near = outside <= 1e-9 * np.linalg.norm(V, axis=1)
        self.lower = np.flatnonzero((c.sign < 0) & near)
        Z = turned[:, :rank] / size[:rank] * np.sqrt(len(self.upper))
        self.U = np.ascontiguousarray(Z[self.upper])
        self.Z = Z
        self.first = qr(self.U.T, mode="r", pivoting=True)[-1][:rank].astype(np.int64)
        self.first_inverse = np.ascontiguousarray(np.linalg.inv(self.U[self.first].T))
        self.inside = np.zeros(c.n, dtype=bool)
        self.looked = False  # whether every lower bound was tried once

    def in_hulls(self, price: Floats, deadline: float) -> Iterator[Contradiction]:
        """Contradictions of one lower bound each."""
        lower = self.rng.permutation(self.lower)
        if not len(lower):
            return
        at_once = max(1, int(_PIVOTS_AT_ONCE / (self.U.size * self.U.shape[1])))
        for start in range(0, len(lower), at_once):
            if time.monotonic() >= deadline:
                return
            rows = lower[start : start + at_once]
            found, multipliers, inside = inside_hull(
                self.U,
                self.Z[rows],
                price[self.upper],
                price[rows],
                _LEVELS,
                self.first,
                self.first_inverse,
                _MOST,
            )
            self.inside[rows] |= inside
            for places, y in zip(found, multipliers):
                used = places >= 0
                places = places[used]
                members = np.concatenate([rows[places[:1]], self.upper[places[1:]]])
                contradiction = self._proven(members, y[used] / self.constraints.bound[members])
                if contradiction is not None:
                    yield contradiction
        if not self.looked:
            self.looked = True
            self.lower = np.flatnonzero(self.inside)  # the others never will be

    def has_time(self, deadline: float) -> bool:
        """Whether exact solves are likely to end before a deadline."""
        return time.monotonic() + 1.5 * self.solve_seconds <= deadline

    def by_leaving_out(self, price: Floats, deadline: float) -> tuple[list[Contradiction], list[Floats]]:
        """Contradictions of what is left when dear constraints are left out, and metrics that satisfy it."""
        draws = self.rng.spawn(_DRAWS if self.solve_seconds < 0.05 else 2)
        began = time.monotonic()

        def draw(rng: np.random.Generator) -> tuple[Contradiction | None, Floats | None]:
            rest = np.flatnonzero(rng.random(len(price)) < np.exp(-self.keenness * price))
            return self.among(rest, rng, deadline)

        results = share_out(draw, draws)
        self.solve_seconds = max(self.solve_seconds, 2.0 * (time.monotonic() - began) / len(draws))
        metrics = [A for _, A in results if A is not None]
        # Half of the rests shall be feasible: then those that are not contradict themselves only just.
        self.keenness *= 0.9 if 2 * len(metrics) > len(results) else 1.05
        return [each for each, _ in results if each is not None], metrics

    def among(
        self, rest: Ints, rng: np.random.Generator, deadline: float
    ) -> tuple[Contradiction | None, Floats | None]:
        """A contradiction among these constraints, or a metric for them; neither if neither is proven."""
        c = self.constraints
        if not len(rest):
            return None, np.zeros((c.d, c.d))
        objective = make_objective("trace", c.d)
        try:
            with until(deadline):
                exact = exact_lptml(c.take(rest), objective, rng=rng, minimal=c.D <= _IRREDUCIBLE)
        except OutOfTime:
            return None, None
        if exact.status is Status.OPTIMAL:  # where features differ a lot, rounding may leave no metric
            return None, exact.A if factor(exact.A) is not None else None
        if exact.status is not Status.INFEASIBLE or exact.certificate is None:
            return None, None
        return self._proven(rest[exact.infeasible_subsystem], exact.certificate.y), None

    def _proven(self, members: Ints, y: Floats) -> Contradiction | None:
        """The contradiction, if the independent check accepts it."""
        members, y = members[y > 0], y[y > 0]
        among = self.constraints.take(members)
        y = y / float(among.bound @ y)
        for multipliers in (_lifted(among, y), y):
            if contradicts(among, multipliers, self.exponents):
                return Contradiction(members, multipliers)
        return None


def _lifted(among: ConstraintSet, y: Floats) -> Floats:
    """More weight on the upper bounds, for a quarter of the gap: it outweighs what rounding spoils."""
    upper = among.sign > 0
    if among.W is not None or not upper.any():
        return y
    gap = float(-(among.sign * among.bound) @ y)
    return y + np.where(upper, max(0.0, gap) / (4.0 * upper.sum() * among.bound), 0.0)
