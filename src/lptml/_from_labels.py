"""Constraints from labelled points: which pairs or triplets of points shall hold.

- ``all``: every pair of points is similar or dissimilar. Pairs are counted without being made.
- ``neighbors``: just the pairs of a point with its nearest neighbours in its own class and in the others, so
  that a class may consist of several far clusters.
- ``triplets``: a point is closer to each of its nearest neighbours of its class (targets) than to each of its
  nearest neighbours of other classes (impostors).

Neighbours are those under the standardised metric: every feature divided by its root mean square difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.labels import LabelledPairs

__all__ = ["KINDS", "N_NEIGHBORS", "Chosen", "constraints_from_labels", "nearest_of_each_kind"]

#: Neighbours of each kind that a point gets constraints with.
N_NEIGHBORS = 5
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class Chosen:
    """Constraints and the points that each of them is about."""

    source: ConstraintSet | LabelledPairs
    points: Callable[[Ints], Ints]
    """Maps numbers of constraints to the rows of their points, shape (k, 2) or (k, 3)."""


def constraints_from_labels(
    kind: str,
    everything: LabelledPairs,
    n_constraints: int | None,
    rng: np.random.Generator,
) -> Chosen:
    """Choose constraints among labelled points.

    Parameters
    ----------
    kind : {"all", "neighbors", "triplets"}
    everything : LabelledPairs
        All pairs of the points, with bounds and weights.
    n_constraints : int or None
        Pairs of each kind, or triplets, to draw; None for all of them.
    rng : Generator
        For ``n_constraints``.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> everything = LabelledPairs.from_labels(X, [0, 0, 1, 1], bounds=(2.0, 2.0))
    >>> chosen = constraints_from_labels("triplets", everything, None, np.random.default_rng(0))
    >>> chosen.source.n, chosen.points(np.array([0]))
    (8, array([[0, 1, 2]]))
    """
    return KINDS[kind](everything, n_constraints, rng)


def _all(everything: LabelledPairs, n_constraints: int | None, rng: np.random.Generator) -> Chosen:
    def points(numbers: Ints) -> Ints:
        return np.stack(everything.pairs(numbers), axis=1)

    if n_constraints is None:
        return Chosen(everything, points)
    drawn = everything.draw_each(n_constraints, rng)
    return Chosen(everything.take(drawn), lambda numbers: points(drawn[numbers]))


def _neighbors(everything: LabelledPairs, n_constraints: int | None, rng: np.random.Generator) -> Chosen:
    kept = []
    for nearest in nearest_of_each_kind(everything.X, everything.y, N_NEIGHBORS):
        i, rank = np.nonzero(nearest >= 0)
        pairs = np.unique(np.sort(np.stack([i, nearest[i, rank]], axis=1), axis=1), axis=0)
        kept.append(pairs[_some(len(pairs), n_constraints, rng)])
    pairs = np.concatenate(kept)  # (n, 2)
    return Chosen(everything.between(pairs[:, 0], pairs[:, 1]), lambda numbers: pairs[numbers])


def _triplets(everything: LabelledPairs, n_constraints: int | None, rng: np.random.Generator) -> Chosen:
    X, w = everything.X, everything.point_weight
    targets, impostors = nearest_of_each_kind(X, everything.y, N_NEIGHBORS)  # (N, k), -1 where there is none
    i, a, b = np.nonzero((targets[:, :, None] >= 0) & (impostors[:, None, :] >= 0))
    triplets = np.stack([i, targets[i, a], impostors[i, b]], axis=1)  # (n, 3)
    if not len(triplets):
        raise ValueError('constraints="triplets" needs a class of at least two points, and another class')
    triplets = triplets[_some(len(triplets), n_constraints, rng)]
    weight = None if w is None else w[triplets].prod(axis=1)
    return Chosen(ConstraintSet.from_triplets(X[triplets], weight=weight), lambda numbers: triplets[numbers])


KINDS: dict[str, Callable[[LabelledPairs, int | None, np.random.Generator], Chosen]] = {
    "all": _all,
    "neighbors": _neighbors,
    "triplets": _triplets,
}


def _some(n: int, count: int | None, rng: np.random.Generator) -> Ints:
    """Return all numbers below n, or ``count`` random ones, ascending."""
    return np.arange(n) if count is None or count >= n else np.sort(rng.permutation(n)[:count])


def nearest_of_each_kind(X: Floats, y: Ints, k: int) -> tuple[Ints, Ints]:
    """Return each point's k nearest neighbours in its class and in the others, -1 where there are fewer.

    Examples
    --------
    >>> same, other = nearest_of_each_kind(np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1]), 1)
    >>> same.ravel(), other.ravel()
    (array([ 1,  0, -1]), array([2, 2, 1]))
    """
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    norms = np.einsum("ij,ij->i", Z, Z)
    N = len(X)
    same, other = np.full((N, k), -1), np.full((N, k), -1)
    rows = max(1, _BLOCK_BYTES // (8 * N))
    for start in range(0, N, rows):
        block = np.arange(start, min(start + rows, N))
        squares = norms[block, None] - 2.0 * Z[block] @ Z.T + norms  # (rows, N)
        squares[np.arange(len(block)), block] = np.inf
        alike = y[block, None] == y
        for out, allowed in ((same, alike), (other, ~alike)):
            distances = np.where(allowed, squares, np.inf)
            count = min(k, N - 1)
            nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
            found = np.take_along_axis(distances, nearest, axis=1)
            order = np.lexsort((nearest, found), axis=1)
            nearest, found = (np.take_along_axis(part, order, axis=1) for part in (nearest, found))
            out[block, :count] = np.where(np.isfinite(found), nearest, -1)
    return same, other
