"""Constraints from labelled points: which pairs or triplets of points shall hold.

- ``all``: every pair of points is similar or dissimilar. Pairs are counted without being made.
- ``neighbors``: just the pairs of a point with its nearest neighbours in its own class and in the others, so
  that a class may consist of several far clusters.
- ``triplets``: a point is closer to each of its nearest neighbours of its class (targets) than to each of its
  nearest neighbours of other classes (impostors).

Neighbours are those under a given metric, the prior of the learner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lptml.constraints.constraint_set import ConstraintSet, Floats, Ints
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.labelled_triplets import LabelledTriplets

#: Targets of a point: three, as in LMNN. On the 13 development sets of docs/generalisation.md 3 and 10, 5
#: and 5, 3 and 3, 3 and 20 are within .3 points of each other.
TARGETS = 3
#: Impostors of a point, of which a wrong label costs a tenth.
IMPOSTORS = 10
#: Neighbours of each kind that a point is paired with.
PAIRED = 5
#: Points that get triplets, at most; of more points these are drawn. Neighbours are looked for among all.
ANCHORS = 4000
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class Chosen:
    """Constraints and the points that each of them is about."""

    source: ConstraintSet | LabelledPairs | LabelledTriplets
    points: Callable[[Ints], Ints]
    """Maps numbers of constraints to the rows of their points, shape (k, 2) or (k, 3)."""


def constraints_from_labels(
    kind: str,
    everything: LabelledPairs,
    n_constraints: int | None,
    rng: np.random.Generator,
    metric: Floats,
) -> Chosen:
    """Choose constraints among labelled points.

    Parameters
    ----------
    kind : {"all", "neighbors", "triplets"}
    everything : LabelledPairs
        All pairs of the points, with bounds and weights.
    n_constraints : int or None
        Pairs of each kind, or triplets, to draw; None for all of them (triplets: of 4,000 points at most).
    rng : Generator
        For what is drawn.
    metric : array of shape (k, d)
        L; neighbours are those at the least distance |L (x - y)|.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> everything = LabelledPairs.from_labels(X, [0, 0, 1, 1], bounds=(2.0, 2.0))
    >>> chosen = constraints_from_labels("triplets", everything, None, np.random.default_rng(0), np.eye(1))
    >>> chosen.source.n, chosen.points(np.array([0]))
    (8, array([[0, 1, 2]]))
    """
    return KINDS[kind](everything, n_constraints, rng, metric)


def _all(
    everything: LabelledPairs, n_constraints: int | None, rng: np.random.Generator, metric: Floats
) -> Chosen:
    def points(numbers: Ints) -> Ints:
        return np.stack(everything.pairs(numbers), axis=1)

    if n_constraints is None:
        return Chosen(everything, points)
    drawn = everything.draw_each(n_constraints, rng)
    return Chosen(everything.take(drawn), lambda numbers: points(drawn[numbers]))


def _neighbors(
    everything: LabelledPairs, n_constraints: int | None, rng: np.random.Generator, metric: Floats
) -> Chosen:
    kept = []
    rows = np.arange(len(everything.X))
    for nearest in nearest_of_each_kind(everything.X @ metric.T, everything.y, rows, PAIRED, PAIRED):
        i, rank = np.nonzero(nearest >= 0)
        pairs = np.unique(np.sort(np.stack([i, nearest[i, rank]], axis=1), axis=1), axis=0)
        kept.append(pairs[_some(len(pairs), n_constraints, rng)])
    pairs = np.concatenate(kept)  # (n, 2)
    return Chosen(everything.between(pairs[:, 0], pairs[:, 1]), lambda numbers: pairs[numbers])


def _triplets(
    everything: LabelledPairs, n_constraints: int | None, rng: np.random.Generator, metric: Floats
) -> Chosen:
    X, y = everything.X, everything.y
    sizes = np.bincount(y)
    anchors = np.flatnonzero(sizes[y] > 1)  # the others have no target
    anchors = anchors[_some(len(anchors), ANCHORS, rng)]
    targets, impostors = nearest_of_each_kind(X @ metric.T, y, anchors, TARGETS, IMPOSTORS)
    triplets = LabelledTriplets(X, anchors, targets, impostors, everything.point_weight)
    if n_constraints is None or n_constraints >= triplets.n:
        return Chosen(triplets, triplets.points)
    drawn = _some(triplets.n, n_constraints, rng)
    return Chosen(triplets.take(drawn), lambda numbers: triplets.points(drawn[numbers]))


KINDS: dict[str, Callable[[LabelledPairs, int | None, np.random.Generator, Floats], Chosen]] = {
    "all": _all,
    "neighbors": _neighbors,
    "triplets": _triplets,
}


def _some(n: int, count: int | None, rng: np.random.Generator) -> Ints:
    """Return all numbers below n, or ``count`` random ones, ascending."""
    return np.arange(n) if count is None or count >= n else np.sort(rng.permutation(n)[:count])


def nearest_of_each_kind(Z: Floats, y: Ints, rows: Ints, same: int, other: int) -> tuple[Ints, Ints]:
    """Return the nearest neighbours of these rows in their class and in the others, -1 where there are fewer.

    Examples
    --------
    >>> Z, y = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1])
    >>> near, far = nearest_of_each_kind(Z, y, np.arange(3), 1, 1)
    >>> near.ravel(), far.ravel()
    (array([ 1,  0, -1]), array([2, 2, 1]))
    """
    N = len(Z)
    Z = Z - Z.mean(axis=0)
    norms = np.einsum("ij,ij->i", Z, Z)
    found = np.full((len(rows), same), -1), np.full((len(rows), other), -1)
    height = max(1, _BLOCK_BYTES // (8 * N))
    for start in range(0, len(rows), height):
        block = rows[start : start + height]
        squares = norms[block, None] - 2.0 * Z[block] @ Z.T + norms  # (height, N)
        squares[np.arange(len(block)), block] = np.inf
        alike = y[block, None] == y
        for out, allowed in zip(found, (alike, ~alike)):
            distances = np.where(allowed, squares, np.inf)
            count = min(out.shape[1], N - 1)
            nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
            length = np.take_along_axis(distances, nearest, axis=1)
            order = np.lexsort((nearest, length), axis=1)
            nearest, length = (np.take_along_axis(part, order, axis=1) for part in (nearest, length))
            out[start : start + len(block), :count] = np.where(np.isfinite(length), nearest, -1)
    return found
