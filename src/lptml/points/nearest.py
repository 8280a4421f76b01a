"""Nearest neighbours among a few thousand points, and the votes of neighbours.

``sklearn.neighbors`` finds them among many points sooner, but to import it takes a second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lptml.constraints.checks import Floats, Ints
from lptml.points.scatter import squared_distances

_BLOCK = 1024


def nearest(points: Floats, queries: Floats, k: int, own: Ints | None = None) -> Ints:
    """(len(queries), k) numbers of the nearest points, nearest first, of equally near ones the first.

    Give points near the origin: squared distances are differences of squares. ``own`` is each query's own
    number among the points, which is then left out.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.points.nearest import nearest
    >>> Z = np.array([[0.0], [1.0], [3.0]])
    >>> nearest(Z, Z, 1, own=np.arange(3)).ravel()
    array([1, 0, 1])
    """
    found = np.empty((len(queries), k), dtype=np.int64)
    for start in range(0, len(queries), _BLOCK):
        block = slice(start, start + _BLOCK)
        squares = squared_distances(queries[block], points)
        if own is not None:
            squares[np.arange(len(squares)), own[block]] = np.inf
        part = np.argpartition(squares, k - 1, axis=1)[:, :k]
        part.sort(axis=1)
        order = np.argsort(np.take_along_axis(squares, part, axis=1), axis=1, kind="stable")
        found[block] = np.take_along_axis(part, order, axis=1)
    return found


def majority(codes: Ints, near: Ints, weight: Floats | None = None) -> NDArray[np.int64]:
    """(n,) the class that most of the neighbours ``near`` (n, k) have; of equals the first."""
    votes = np.zeros((len(near), int(codes.max()) + 1))
    rows = np.repeat(np.arange(len(near)), near.shape[1])
    np.add.at(votes, (rows, codes[near].ravel()), 1.0 if weight is None else weight[near].ravel())
    return np.asarray(votes.argmax(axis=1), dtype=np.int64)
