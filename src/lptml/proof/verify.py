"""Checks of certificates, by a few lines each that share no code with the search for them.

A tree of cells (``lptml.proof.cells``) proves a bound if its cells contain all metrics and no metric in a
leaf costs less. The first holds by construction: the roots contain every upper triangular matrix with
nonnegative diagonal up to multiples and signs of rows, and a cell is cut in two. With coordinates T that make
no matrix shorter (in units in which features have sizes between 1 and 2), a metric T G'G T' / t whose
threshold t is below 1 / RADIUS has a trace above RADIUS, as some entry of G is 1. The second is recomputed
here for every leaf on all constraints, without what the search has folded away.

Rounding. Ends of cells are dyadic numbers, so cutting is exact. A computed u = T'v / sqrt(limit) differs from
the true one by at most (d + 3) eps m with m = |T|'|v| / sqrt(limit) and eps = 2^-53; entries of G are at most
1, so a row of G times u is off by (d + 3) eps sum(m) for that, by d eps sum(m) for the product itself, and
its radius by (d + 1) eps sum(m): 4 (d + 2) eps sum(m) is more than all three. Squares and their sums lose (d
+ 2) eps of themselves, less than 1e-14. Limits are the bounds with ``LEAST_GAP`` added, a hundredth more than
the tolerance of counting, as in ``lptml.exact.verify``. Weights are multiples of a grid on which their sums
are exact.

A packing (``lptml.proof.packing``) proves the sum of its shares if its sets are contradictions and no
constraint has more shares than its weight. Multipliers y >= 0 show a contradiction (Farkas) if the matrix
S = sum s_i y_i C_i is semidefinite and G = -sum s_i b_i y_i - LEAST_GAP sum b_i y_i positive: for constraints
that hold up to the tolerance, <S, A> < -G. Rounded multipliers leave S semidefinite only up to the last
digits, so it is the matrix S + (G / RADIUS) I that has to be positive definite, in units in which features
have sizes between 1 and 2: that excludes every metric whose trace there is at most RADIUS. It is shown by its
least eigenvalue, where that exceeds all rounding, and else in whole numbers, without any.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from lptml._limits import look
from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.exact.verify import LEAST_GAP, RADIUS

_ENTRIES = 2_000_000  # ranges that are computed at a time
_FINEST = 2.0**-100
_EXACT = 40  # features up to which whole numbers are tried: they take a tenth of a second then


class CertificateError(ValueError):
    """A certificate that does not prove what it says."""


def least_cost_of_cells(constraints: ConstraintSet, T: Floats, codes: NDArray[np.int8]) -> float:
    """What no metric costs less than, by the leaves of a tree of cells.

    Parameters
    ----------
    constraints : ConstraintSet
    T : array of shape (d, d)
        The coordinates: metrics are T G'G T' / t with G upper triangular.
    codes : array of int8
        Trees in preorder, one for each root: the axis that a cell is cut along, negative for a leaf.

    Raises
    ------
    CertificateError
        If the cells do not contain all metrics.

    Examples
    --------
    One leaf for each root: nothing is cut yet, and little is proven.

    >>> pairs = ConstraintSet.from_differences([[1.0], [2.0]], [-1, +1], bounds=(1.0, 1.0))
    >>> least_cost_of_cells(pairs, np.eye(1), np.array([-1], dtype=np.int8))
    1.0
    """
    d = constraints.d
    if T.shape != (d, d) or not np.isfinite(T).all() or not _are_long(T, feature_exponents(constraints)):
        raise CertificateError("the coordinates of the cells leave metrics out")
    smallest = (1.0 - 1e-8) / RADIUS  # of the thresholds
    # Upper bounds come first, so that a stable sort puts them first among equals.
    constraints = constraints.take(np.argsort(-constraints.sign, kind="stable"))
    sign, w = constraints.sign, constraints.weight
    root = np.sqrt(constraints.bound * (1.0 + LEAST_GAP * sign))[:, None]
    parts = [part for part in (constraints.V, constraints.W) if part is not None]
    slack = 4 * (d + 2) * 2.0**-53 * sum((np.abs(part) @ np.abs(T) / root).sum(axis=1) for part in parts)
    proven = np.inf
    leaves, at_once = _leaves(codes, d), max(1, _ENTRIES // max(1, constraints.n))
    while boxes := list(islice(leaves, at_once)):
        low, high = _ranges(parts[0] @ T / root, np.array(boxes), slack)  # (leaves, n)
        if len(parts) > 1:
            less, more = _ranges(parts[1] @ T / root, np.array(boxes), slack)
            low, high = low - more, high - less
        # An upper bound is violated at thresholds below its least value, a lower one above its largest.
        flip = np.where(sign > 0, low, high)
        later = np.where(sign > 0, flip > smallest, flip >= smallest)
        start = ((sign > 0) == later) @ w  # violated at the smallest threshold
        order = np.argsort(flip, axis=1, kind="stable")
        steps = np.where(later, -sign * w, 0.0)
        costs = start[:, None] + np.cumsum(np.take_along_axis(steps, order, axis=1), axis=1)
        proven = min(proven, float(start.min()), float(costs.min(initial=np.inf)))
    return proven


def _are_long(T: Floats, exponents: Ints) -> bool:
    """Whether no vector is shorter in coordinates T than in features divided by these powers of two."""
    lengths = np.linalg.svd(np.ldexp(T, exponents[:, None]), compute_uv=False)
    return bool(lengths.min() > 1.0 - 1e-9 and lengths.max() < 1e6)  # further apart, rounding would count


def _leaves(codes: NDArray[np.int8], d: int) -> Iterator[tuple[list[float], list[float]]]:
    """The least and largest entries of G in each leaf."""
    row, column = np.triu_indices(d)
    cells = []
    for k in range(len(row)):  # the largest entry is the k-th, and 1
        low = np.where((row == column) & (row != row[k]), 0.0, -1.0)
        low[k] = 1.0
        cells.append((low.tolist(), [1.0] * len(row)))
    cells.reverse()
    for axis in codes.tolist():
        if not cells or axis >= len(row):
            raise CertificateError("the tree of cells is damaged")
        low, high = cells.pop()
        if axis < 0:
            yield low, high
            continue
        middle = 0.5 * (low[axis] + high[axis])
        if not low[axis] < middle < high[axis]:
            raise CertificateError("a cell is cut that has no inside")
        cells.append(([*low[:axis], middle, *low[axis + 1 :]], high))
        cells.append((low, [*high[:axis], middle, *high[axis + 1 :]]))
    if cells:
        raise CertificateError("the tree of cells does not contain all metrics")


def _ranges(u: Floats, boxes: Floats, slack: Floats) -> tuple[Floats, Floats]:
    """The least and largest |G u|^2 in boxes (leaves, 2, D): (leaves, n) each."""
    d = u.shape[1]
    middle, half = boxes.mean(axis=1), (boxes[:, 1] - boxes[:, 0]) / 2
    low, high = np.zeros((2, len(boxes), len(u)))
    first = 0
    for r in range(d):
        entries = slice(first, first + d - r)  # of row r of G
        first += d - r
        centre = np.abs(middle[:, entries] @ u[:, r:].T)
        radius = half[:, entries] @ np.abs(u[:, r:].T) + slack
        low += np.maximum(centre - radius, 0.0) ** 2
        high += (centre + radius) ** 2
    return low * (1.0 - 1e-14), high * (1.0 + 1e-14)


def least_weight_of_packing(
    constraints: ConstraintSet, starts: Ints, members: Ints, multipliers: Floats, shares: Floats
) -> float:
    """What every metric pays at least, by a packing of contradictions.

    Parameters
    ----------
    constraints : ConstraintSet
    starts, members, multipliers : arrays
        Members of contradiction k, and their multipliers, are those from starts[k] to starts[k + 1].
    shares : array
        How much of the weight of its members each contradiction uses.

    Raises
    ------
    CertificateError
        If a set is no contradiction, or a constraint has more shares than its weight.

    Examples
    --------
    >>> clash = ConstraintSet.from_differences([[1.0], [1.0], [1.0]], [1, -1, -1], bounds=(1.0, 2.0))
    >>> starts, members, halves = np.array([0, 2, 4]), np.array([0, 1, 0, 2]), np.array([0.5, 0.5])
    >>> least_weight_of_packing(clash, starts, members, np.ones(4), halves)
    1.0
    """
    if len(shares) != len(starts) - 1 or not (shares >= 0).all():
        raise CertificateError("the packing is damaged")
    load = [Fraction(0)] * constraints.n
    for those, share in zip(_contradictions(constraints, starts, members, multipliers), shares.tolist()):
        for i in set(those):
            load[i] += Fraction(share)
    if any(used > Fraction(w) for used, w in zip(load, constraints.weight.tolist())):
        raise CertificateError("the packing uses more of a constraint than its weight")
    return rounded_up(sum(map(Fraction, shares.tolist()), Fraction(0)), constraints.weight)


def least_number_of_points(
    constraints: ConstraintSet, points: Ints, starts: Ints, members: Ints, multipliers: Floats
) -> float:
    """How many points must be given up, as every contradiction has to lose one: by exhaustive search.

    ``points`` (n, 2) are those of the constraints; the rest is as in ``least_weight_of_packing``. It can take
    long, and ends early inside ``lptml._limits.until``.
    """
    sets = [
        sum(1 << point for point in set(points[those].ravel().tolist()))
        for those in _contradictions(constraints, starts, members, multipliers)
    ]
    number = 0
    while not _can_hit(sorted(sets, key=int.bit_count), number):
        number += 1
    return float(number)


def _can_hit(sets: list[int], number: int) -> bool:
    """Whether so few points are in all sets, given as bits, smallest sets first."""
    look()
    left, used = number, 0
    for each in sets:  # disjoint sets need a point each
        if not each & used:
            used, left = used | each, left - 1
            if left < 0:
                return False
    if not sets:
        return True
    smallest = min(sets, key=int.bit_count)
    while smallest:
        point = smallest & -smallest
        rest = [each for each in sets if not each & point]
        if _can_hit(rest, number - 1):
            return True
        sets = [each & ~point for each in sets]  # from here on without this point
        smallest &= ~point
        if 0 in sets:
            return False
    return False


def _contradictions(
    constraints: ConstraintSet, starts: Ints, members: Ints, multipliers: Floats
) -> Iterator[list[int]]:
    """The members of each contradiction, after it was checked."""
    whole = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(members) == len(multipliers)
    if not whole or (np.diff(starts) < 1).any() or not (members >= 0).all():
        raise CertificateError("the list of contradictions is damaged")
    if (members >= constraints.n).any():
        raise CertificateError("a contradiction names constraints that are not there")
    exponents = feature_exponents(constraints)
    for start, stop in pairwise(starts.tolist()):
        those = members[start:stop]
        if not contradicts(constraints.take(those), multipliers[start:stop], exponents):
            raise CertificateError(f"constraints {those.tolist()} are not shown to contradict each other")
        yield those.tolist()


def rounded_up(bound: Fraction, weight: Floats) -> float:
    """The least sum of weights that is not below a bound, as far as their common measure tells.

    Examples
    --------
    >>> rounded_up(Fraction(5, 2), np.full(9, 0.75))
    3.0
    >>> rounded_up(Fraction(5, 2), np.array([1.0, 0.5]))
    2.5
    """
    measure = Fraction(float(weight[0])) if len(weight) else Fraction(1)
    if len(weight) and not (weight == weight[0]).all():
        measure = Fraction(1, max(Fraction(w).denominator for w in weight.tolist()))
    return float(ceil(bound / measure) * measure)


def feature_exponents(constraints: ConstraintSet) -> Ints:
    """Powers of two that features have to be divided by, to have sizes between 1 and 2 in units of bounds.

    The size of a feature is the median of what is not zero, or the root mean square if that is smaller: a few
    points that are very far away do not decide which metrics keep the distances of all others.

    Examples
    --------
    >>> V = [[3.0], [0.0], [0.0], [-5.0], [1e12]]
    >>> feature_exponents(ConstraintSet.from_differences(V, [1, 1, 1, 1, -1], bounds=(1.0, 1.0)))
    array([2])
    """
    parts = [part for part in (constraints.V, constraints.W) if part is not None]
    entries = np.concatenate([np.abs(part) / np.sqrt(constraints.bound)[:, None] for part in parts])
    sizes = [
        min(np.median(column[column > 0]), np.sqrt(np.mean(column**2))) if column.any() else 0.0
        for column in entries.T
    ]
    return np.frexp(sizes)[1].astype(np.int64) - 1


def contradicts(constraints: ConstraintSet, y: Floats, exponents: Ints) -> bool:
    """Whether multipliers y >= 0 show that the constraints cannot all hold.

    Examples
    --------
    >>> clash = ConstraintSet.from_differences([[1.0], [1.0]], [1, -1], bounds=(1.0, 2.0))
    >>> contradicts(clash, np.array([1.0, 1.0]), feature_exponents(clash))
    True
    >>> contradicts(clash, np.array([1.0, 0.2]), feature_exponents(clash))
    False
    """
    if not np.isfinite(y).all() or not (y >= 0).all():
        return False
    s, b = constraints.sign.astype(float), constraints.bound
    total = float(b @ y)
    gap = float(-(s * b) @ y) - LEAST_GAP * total
    if not gap > 1e-12 * total:
        return False
    rows = np.ldexp(constraints.V, -exponents)
    S, size = (rows.T * (s * y)) @ rows, float(y @ (rows**2).sum(axis=1))
    if constraints.W is not None:
        rows = np.ldexp(constraints.W, -exponents)
        S, size = S - (rows.T * (s * y)) @ rows, size + float(y @ (rows**2).sum(axis=1))
    if not np.isfinite(size):
        return False
    rounding = 8 * (constraints.n + constraints.d) * 2.0**-53 * size
    if np.linalg.eigvalsh(S)[0] > rounding:
        return True
    return constraints.d <= _EXACT and _contradicts_exactly(constraints, y, exponents)


def _contradicts_exactly(constraints: ConstraintSet, y: Floats, exponents: Ints) -> bool:
    s = constraints.sign.tolist()
    by = [Fraction(b) * Fraction(m) for b, m in zip(constraints.bound.tolist(), y.tolist())]
    gap = -sum(i * v for i, v in zip(s, by)) - Fraction(LEAST_GAP) * sum(by)
    if gap <= 0:
        return False
    parts = [part for part in (constraints.V, constraints.W) if part is not None]
    rows, digits = _whole([x for part in parts for x in np.ldexp(part, -exponents).ravel().tolist()])
    factors, more = _whole([*y.tolist(), _FINEST])  # so fine that the gap is not rounded away
    d, n = constraints.d, constraints.n
    one = 2 ** (2 * digits + more)
    extra = int(gap * one / Fraction(RADIUS))  # rounded down
    M = [[extra if p == q else 0 for q in range(d)] for p in range(d)]
    for k in range(len(parts) * n):
        v = rows[k * d : (k + 1) * d]
        factor = factors[k % n] * s[k % n] * (1 if k < n else -1)
        for p in range(d):
            for q in range(p + 1):
                M[p][q] += factor * v[p] * v[q]
    return _is_positive_definite(M)


def _whole(values: list[float]) -> tuple[list[int], int]:
    """Whole numbers that are the values times two to the power of the second result."""
    ratios = [value.as_integer_ratio() for value in values]
    digits = max((below.bit_length() - 1 for _, below in ratios), default=0)
    return [above << (digits - below.bit_length() + 1) for above, below in ratios], digits


def _is_positive_definite(M: list[list[int]]) -> bool:
    """Elimination without fractions (Bareiss) on the lower triangle: pivots are the leading minors."""
    before = 1
    for k in range(len(M)):
        pivot = M[k][k]
        if pivot <= 0:
            return False
        for p in range(k + 1, len(M)):
            for q in range(k + 1, p + 1):
                M[p][q] = (M[p][q] * pivot - M[p][k] * M[q][k]) // before
        before = pivot
    return True
