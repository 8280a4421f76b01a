"""Checks of certificates, by a few lines each that share no code with the search for them.

A tree of cells (``lptml.proof.cells``) proves a bound if its cells contain all metrics and no metric in a
leaf costs less. The first holds by construction: the roots contain every upper triangular matrix with
nonnegative diagonal up to multiples and signs of rows, and a cell is cut in two. The second is recomputed
here for every leaf on all constraints, without what the search has folded away.

Rounding. Ends of cells are dyadic numbers, so cutting is exact. A computed u = T'v / sqrt(limit) differs from
the true one by at most (d + 3) eps m with m = |T|'|v| / sqrt(limit) and eps = 2^-53; entries of G are at most
1, so a row of G times u is off by (d + 3) eps sum(m) for that, by d eps sum(m) for the product itself, and
its radius by (d + 1) eps sum(m): 4 (d + 2) eps sum(m) is more than all three. Squares and their sums lose (d
+ 2) eps of themselves, less than 1e-14. Limits are the bounds with ``LEAST_GAP`` added, a hundredth more than
the tolerance of counting, as in ``lptml.exact.verify``. Weights are multiples of a grid on which their sums
are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import ConstraintSet, Floats
from lptml.exact.verify import LEAST_GAP, RADIUS

_ENTRIES = 2_000_000  # ranges that are computed at a time


class CertificateError(ValueError):
    """A certificate that does not prove what it says."""


def least_cost_of_cells(constraints: ConstraintSet, T: Floats, codes: NDArray[np.int8]) -> float:
    """What no metric costs less than, by the leaves of a tree of cells.

    Parameters
    ----------
    constraints : ConstraintSet
    T : array of shape (d, d)
        The coordinates, regular: metrics are T G'G T' / t with G upper triangular.
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
    if T.shape != (d, d) or not np.isfinite(T).all() or not _is_regular(T):
        raise CertificateError("the coordinates of the cells are singular")
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
        later = np.where(sign > 0, flip > 1.0 / RADIUS, flip >= 1.0 / RADIUS)
        start = ((sign > 0) == later) @ w  # violated at the smallest threshold
        order = np.argsort(flip, axis=1, kind="stable")
        steps = np.where(later, -sign * w, 0.0)
        costs = start[:, None] + np.cumsum(np.take_along_axis(steps, order, axis=1), axis=1)
        proven = min(proven, float(start.min()), float(costs.min(initial=np.inf)))
    return proven


def _is_regular(T: Floats) -> bool:
    """Whether T times a matrix is so close to the identity that it cannot be singular."""
    try:
        return bool(np.abs(T @ np.linalg.inv(T) - np.eye(len(T))).max() * len(T) < 0.5)
    except np.linalg.LinAlgError:
        return False


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
