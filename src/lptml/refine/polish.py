"""Exact searches for the true cost: along lines of metrics, and over everything when the problem is small.

Along a line A + t Delta every constraint is linear in t and flips once; along (G + t H)'(G + t H) it is
quadratic and flips twice at most. Sorting the flips gives the cost for every t at once, so the best t is
found exactly and without derivatives. ``polish`` follows such lines downhill.

For two and three features and few constraints ``enumerate_metrics`` searches everything. The metrics that
satisfy a given set of constraints form a closed convex set without lines, so it has an extreme point, and
an extreme point of rank r has at least r (r + 1) / 2 tight constraints (Barvinok 1995, Pataki 1998). For
d = 2 that leaves: no tight constraint (A = 0); rank one, one tight constraint or more; rank two and three
of them. The first kind is one metric. The second lies on one of n curves A = gg' with |v_i'g| =
sqrt(b_i). The third lies on a line where two constraints are tight. A sweep of each curve and each line
thus meets the best metric for certain. For d = 3 the lines where five constraints are tight and the
curves of rank one where two are meet nearly every cell, not all: rank two with three or four tight
constraints is left out.

References
----------
A. I. Barvinok, "Problems of distance geometry and convex properties of quadratic maps", Discrete and
Computational Geometry 13, 1995.

G. Pataki, "On the rank of extreme matrices in semidefinite programs and the multiplicity of optimal
eigenvalues", Mathematics of Operations Research 23, 1998.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations, product
from math import comb

import numpy as np

from lptml._jit import announce
from lptml._limits import OutOfTime, look, until
from lptml.constraints import ConstraintSet, Floats, Source
from lptml.constraints.scaling import feature_scale, scale_metric, unscale_metric
from lptml.constraints.violation import limit
from lptml.refine.kernels import enumerate_lines, inside, sweep

#: Flips that ``enumerate_metrics`` may sort: about 0.1 s.
ENUMERABLE = 6_000_000
_SORTED = 2_000_000  # flips that ``polish`` may sort: some tenths of a second


class _Lines:
    """The state of a search along lines: the metric, the values of all constraints, the cost."""

    def __init__(self, constraints: ConstraintSet, A: Floats) -> None:
        self.scale = feature_scale(constraints)
        self.V = constraints.V / self.scale
        self.W = None if constraints.W is None else constraints.W / self.scale
        self.sign = constraints.sign.astype(np.float64)
        self.limit = limit(self.sign, constraints.bound)
        self.weight = np.array(constraints.weight)
        self.straight = np.zeros(constraints.n)
        self.move_to(scale_metric(A, self.scale))

    def move_to(self, A: Floats) -> None:
        eigenvalues, Q = np.linalg.eigh((A + A.T) / 2)
        # Components below rounding are dropped, so the metric keeps its rank.
        self.roots = np.sqrt(np.maximum(eigenvalues, 0.0) * (eigenvalues > 1e-13 * eigenvalues[-1]))
        self.Q = Q
        G = self.roots[:, None] * Q.T
        self.A = G.T @ G
        self.value = self.squares(G)
        self.cost = float(self.weight[self.sign * (self.value - self.limit) > 0].sum())

    def squares(self, G: Floats) -> Floats:
        Y = self.V @ G.T
        total = np.einsum("ij,ij->i", Y, Y)
        if self.W is not None:
            Z = self.W @ G.T
            total -= np.einsum("ij,ij->i", Z, Z)
        return total

    def values(self, Delta: Floats) -> Floats:
        total = np.einsum("ij,ij->i", self.V @ Delta, self.V)
        if self.W is not None:
            total -= np.einsum("ij,ij->i", self.W @ Delta, self.W)
        return total

    def along(self, Delta: Floats, slope: Floats) -> bool:
        """Search A + t Delta, inside the cone; move there and return True if it costs less."""
        look()
        low, high = self._cone(Delta)
        if not low < high:
            return False
        announce(sweep)
        cost, left, right = sweep(
            self.value, slope, self.straight, self.sign, self.limit, self.weight, low, high, self.cost
        )
        if cost >= self.cost:
            return False
        return self._accept(self.A + inside(left, right) * Delta)

    def row(self, g: Floats, direction: Floats) -> bool:
        """Search A - gg' + (g + t h)(g + t h)' for a component g of A: it keeps the rank."""
        look()
        y, x = self.V @ g, self.V @ direction
        slope, bend = 2.0 * y * x, x * x
        if self.W is not None:
            y, x = self.W @ g, self.W @ direction
            slope, bend = slope - 2.0 * y * x, bend - x * x
        reach = 4.0 * np.linalg.norm(self.roots) / max(float(np.linalg.norm(direction)), 1e-300)
        announce(sweep)
        cost, left, right = sweep(
            self.value, slope, bend, self.sign, self.limit, self.weight, -reach, reach, self.cost
        )
        if cost >= self.cost:
            return False
        moved = g + inside(left, right) * direction
        return self._accept(self.A - np.outer(g, g) + np.outer(moved, moved))

    def _accept(self, A: Floats) -> bool:
        before = self.A, self.cost
        self.move_to(A)
        if self.cost < before[1]:
            return True
        self.move_to(before[0])  # rounding took away what the sweep promised
        return False

    def _cone(self, Delta: Floats) -> tuple[float, float]:
        """The t with A + t Delta positive semidefinite, from the eigenvalues of Delta relative to A."""
        positive = self.roots > 0
        B = self.Q[:, positive] / self.roots[positive]  # (d, rank)
        outside = Delta - Delta @ B @ (self.Q[:, positive] * self.roots[positive]).T
        relative = np.linalg.eigvalsh(B.T @ Delta @ B) if positive.any() else np.zeros(1)
        high = -1.0 / relative[0] if relative[0] < 0 else 1e200
        low = -1.0 / relative[-1] if relative[-1] > 0 else -1e200
        if np.abs(outside).max() > 1e-9 * np.abs(Delta).max():  # Delta leaves the range of A
            smallest, largest = np.linalg.eigvalsh(Delta)[[0, -1]]
            low = low if largest <= 1e-12 * abs(smallest) else 0.0
            high = high if smallest >= -1e-12 * abs(largest) else 0.0
        return low, high


def polish(
    constraints: ConstraintSet,
    A: Floats,
    *,
    rounds: int = 20,
    toward: tuple[Floats, ...] = (),
    keep_rank: bool = False,
    rng: np.random.Generator | None = None,
    deadline: float | None = None,
) -> Floats:
    """Follow exact line searches downhill from A; the result never costs more.

    Parameters
    ----------
    constraints : ConstraintSet
    A : array of shape (d, d)
        Positive semidefinite.
    rounds : int
        Each round tries about 4 d lines; the search ends after two rounds in a row without gain, and
        earlier when there are very many constraints.
    toward : arrays of shape (d, d)
        Other metrics, towards which and away from which to look.
    keep_rank : bool
        Never raise the rank.
    rng : numpy Generator, optional
        A fixed seed by default.
    deadline : float, optional
        The ``time.monotonic()`` at which to stop where it stands.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.refine.polish import polish
    >>> pairs = ConstraintSet.from_differences([[3.0, 0.0], [0.0, 1.0]], [+1, -1], bounds=(1.0, 1.0))
    >>> pairs.cost(np.eye(2)), pairs.cost(polish(pairs, np.eye(2)))
    (1.0, 0.0)
    """
    rng = np.random.default_rng(0) if rng is None else rng
    lines = _Lines(constraints, A)
    given = lines.cost
    idle = 0
    with until(deadline), suppress(OutOfTime):
        for _ in range(min(rounds, 1 + _SORTED // (4 * constraints.d * max(1, constraints.n)))):
            before = lines.cost
            _round(lines, toward, keep_rank, rng)
            idle = 0 if lines.cost < before else idle + 1
            if lines.cost == 0.0 or idle == 2:
                break
    return unscale_metric(lines.A, lines.scale) if lines.cost < given else A


def _round(lines: _Lines, toward: tuple[Floats, ...], keep_rank: bool, rng: np.random.Generator) -> None:
    d = len(lines.A)
    lines.along(lines.A, lines.value)  # the scale
    for other in toward:
        if keep_rank:
            break
        Delta = scale_metric(other, lines.scale) - lines.A
        lines.along(Delta, lines.values(Delta))
    # Rank-one directions: inside the range of A, where both signs are possible, and anywhere.
    spread = (lines.Q * lines.roots) @ rng.normal(size=(d, d))
    H = spread if keep_rank else np.concatenate([spread, rng.normal(size=(d, d))], axis=1)  # (d, 2 d)
    slopes = np.square(H.T @ lines.V.T)  # (2 d, n)
    if lines.W is not None:
        slopes -= np.square(H.T @ lines.W.T)
    for h, slope in zip(H.T, slopes):
        lines.along(np.outer(h, h), slope)
    for k in rng.permutation(d):
        g = lines.roots[k] * lines.Q[:, k]
        if lines.roots[k] > 0 or not keep_rank:
            for direction in rng.normal(size=(2, d)):
                if lines.row(g, direction):
                    break


def is_enumerable(source: Source) -> bool:
    """Whether ``enumerate_metrics`` takes about a tenth of a second at most."""
    d, n = source.d, source.n
    D = d * (d + 1) // 2
    return d in (2, 3) and n >= D and comb(n, D - 1) * n <= ENUMERABLE


def enumerate_metrics(constraints: ConstraintSet, A: Floats) -> Floats:
    """The cheapest metric of all (d = 2, pairs) or nearly so (d = 3, comparisons); A if none is cheaper."""
    scale = feature_scale(constraints)
    scaled = constraints.scaled(scale)
    best, cost = A, float(constraints.cost(A))
    for found in (_best_line(scaled, cost), _best_of_rank_one(scaled, cost)):
        if found is not None:
            metric = unscale_metric(found, scale)
            of_metric = float(constraints.cost(metric))
            if of_metric < cost:
                best, cost = metric, of_metric
    return best


def _best_line(constraints: ConstraintSet, cap: float) -> Floats | None:
    d = constraints.d
    rows, columns = np.triu_indices(d)
    if constraints.n < len(rows) - 1:  # no line has as many tight constraints as it takes
        return None
    twice = np.where(rows == columns, 1.0, 2.0)
    C = constraints.V[:, rows] * constraints.V[:, columns] * twice  # (n, D)
    if constraints.W is not None:
        C = C - constraints.W[:, rows] * constraints.W[:, columns] * twice
    size = np.linalg.norm(C, axis=1)
    size = np.where(size > 0, size, 1.0)
    sign, bound = constraints.sign.astype(np.float64), constraints.bound / size
    found = enumerate_lines(
        np.ascontiguousarray(C / size[:, None]),
        sign,
        bound,
        limit(sign, bound),
        np.array(constraints.weight),
        cap,
    )
    if found[-1] >= cap:
        return None
    A = np.zeros((d, d))
    A[rows, columns] = A[columns, rows] = found[:-1]
    eigenvalues, Q = np.linalg.eigh(A)
    return (Q * np.maximum(eigenvalues, 0.0)) @ Q.T


def _best_of_rank_one(constraints: ConstraintSet, cap: float) -> Floats | None:
    """The cheapest gg' with d - 1 tight pairs: v_i'g = +-sqrt(b_i) leaves a line of g to sweep."""
    if constraints.W is not None:
        return None
    V, d = constraints.V, constraints.d
    sign = constraints.sign.astype(np.float64)
    limits = limit(sign, constraints.bound)
    weight = np.array(constraints.weight)
    edge = np.sqrt(constraints.bound)
    tight = np.array(list(combinations(range(constraints.n), d - 1)))  # (m, d - 1)
    singular, Q = np.linalg.svd(V[tight])[1:]  # (m, d - 1), (m, d, d)
    independent = singular[:, -1] > 1e-9 * singular[:, 0]
    tight, H = tight[independent], Q[independent, -1]  # H: orthogonal to the chosen vectors, (m, d)
    if not len(tight):
        return None
    inverse = np.linalg.pinv(V[tight])  # (m, d, d - 1)
    X = H @ V.T  # (m, n)
    np.put_along_axis(X, tight, 0.0, axis=1)
    best: Floats | None = None
    for signs in product((1.0, -1.0), repeat=d - 2):
        G = np.einsum("mij,mj->mi", inverse, edge[tight] * np.array([1.0, *signs]))  # (m, d)
        Y = G @ V.T
        for g, h, y, x in zip(G, H, Y, X):
            cost, left, right = sweep(y * y, 2.0 * x * y, x * x, sign, limits, weight, -1e200, 1e200, cap)
            if cost < cap:
                g = g + inside(left, right) * h
                cap, best = cost, np.outer(g, g)
    return best
