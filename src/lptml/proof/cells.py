"""The least cost of any metric by branch and bound over cells of metrics: for two and three features.

Every metric is A = T G'G T' / t with an upper triangular G (Cholesky), a fixed regular matrix T, and a
threshold t. Multiplying G changes nothing that t cannot undo, so its largest entry may be 1; and the sign
of a row of G is free, so that entry is positive and the diagonals of the other rows are not negative. One
*box* of such G for each place of the largest entry contains all metrics: D = d (d + 1) / 2 boxes of D - 1
dimensions each. T is orthogonal in units in which features have sizes between 1 and 2, and thresholds are at
least 1 / RADIUS: metrics of a larger trace are left out, as in ``lptml.exact.verify``, since under those no
distance would keep a digit.

Over a box of G the value |G u|^2 of a pair ranges over an interval that is known exactly, because the rows of
G have no entry in common. So an upper bound of the pair is violated throughout the box while t is below the
least value, a lower bound while t is above the largest; sorting these values gives the least cost over all
thresholds (``kernels.cheapest_threshold``), which no metric of the box beats. A box that costs less than the
target is cut in two. Constraints that are decided in a box, for every threshold at which the box is below the
target, are folded into a count and not looked at in its parts: a small box looks at few.

The boxes that were cut form a tree, whose leaves cover all metrics. It is the certificate: whoever recomputes
the leaves' bounds (``lptml.proof.verify``) need not trust how they were found. It is also the state of the
search, which goes on from the leaves that are below the next target.

References
----------
Breuel (2003), "Implementation techniques for geometric branch-and-bound matching methods", Computer Vision
and Image Understanding 90: lists of what is not decided, handed down from cell to cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lptml._threads import share_out
from lptml.constraints import ConstraintSet, Floats
from lptml.exact.verify import LEAST_GAP
from lptml.proof.kernels import LEAF, boxes_of_leaves, explore
from lptml.proof.verify import feature_exponents

_WORK = 500_000  # ranges between two looks at the clock: about a hundredth of a second
_BATCH = 64  # cells that a thread takes at a time


class Explored(NamedTuple):
    """What ``kernels.explore`` returns."""

    codes: NDArray[np.int8]
    bounds: Floats
    x: Floats
    t: float
    cost: float


@dataclass(frozen=True, eq=False)
class Cells:
    """A tree of cells that contain all metrics, in preorder, root after root."""

    T: Floats
    """The coordinates: metrics are T G'G T' / t."""
    codes: NDArray[np.int8]
    """The axis that a cell is cut along, or that it is a leaf: -1, or -2 where it is too small to be cut."""
    bounds: Floats
    """What no metric in a leaf costs less than, leaf by leaf."""

    @property
    def lower_bound(self) -> float:
        """What no metric costs less than."""
        return float(self.bounds.min())


def roots(d: int) -> Floats:
    """The boxes of upper triangular matrices with largest entry 1, row by row: (D, 2, D).

    Examples
    --------
    >>> roots(1)
    array([[[1.],
            [1.]]])
    >>> roots(2)[1]  # where the largest entry is the one above the diagonal
    array([[-1.,  1.,  0.],
           [ 1.,  1.,  1.]])
    """
    row, column = np.triu_indices(d)
    boxes = np.ones((len(row), 2, len(row)))
    for k, box in enumerate(boxes):
        free_sign = (row != column) | (row == row[k])
        box[0] = np.where(free_sign, -1.0, 0.0)
        box[0, k] = 1.0
    return boxes


def coordinates(constraints: ConstraintSet, A: Floats) -> Floats:
    """T for the search near a metric A: features of sizes between 1 and 2, turned to the eigenvectors of A.

    Directions come by how far A stretches them, so that G is nearly diagonal with falling entries there.

    Examples
    --------
    >>> pairs = ConstraintSet.from_differences([[2.0, 0.0], [0.0, 1.0]], [1, -1], bounds=(1.0, 1.0))
    >>> abs(coordinates(pairs, np.diag([0.0, 1.0]))).round(2)
    array([[0., 1.],
           [2., 0.]])
    """
    size = np.ldexp(1.0, feature_exponents(constraints))
    _, Q = np.linalg.eigh(A * size[:, None] * size)
    return Q[:, ::-1] / size[:, None]


class CellSearch:
    """Branch and bound, from a tree to a finer one.

    Parameters
    ----------
    constraints : ConstraintSet
        Without weights of zero.
    cells : Cells
        Where to go on from; see ``start``.
    """

    def __init__(self, constraints: ConstraintSet, cells: Cells) -> None:
        _check_trees(cells.codes, constraints.D)
        self.cells = cells
        self.roots = roots(constraints.d)
        T = cells.T
        limits = np.sqrt(constraints.bound * (1.0 + LEAST_GAP * constraints.sign))[:, None]
        parts = [constraints.V] if constraints.W is None else [constraints.V, constraints.W]
        vectors = [part @ T / limits for part in parts]
        # Twice what bounds the rounding of these vectors and of their products with rows of G (verify.py).
        rounding = 8 * (constraints.d + 2) * 2.0**-53
        slack = rounding * sum((np.abs(part) @ np.abs(T) / limits).sum(axis=1) for part in parts)
        self._arrays = (
            vectors[0],
            vectors[1] if len(vectors) > 1 else np.empty((0, constraints.d)),
            slack,
            constraints.sign.astype(np.float64),
            np.array(constraints.weight),
        )

    @classmethod
    def start(cls, constraints: ConstraintSet, A: Floats) -> CellSearch:
        """A search that begins with the roots, in coordinates made for a metric A."""
        D = constraints.D
        cells = Cells(coordinates(constraints, A), np.full(D, LEAF, dtype=np.int8), np.zeros(D))
        return cls(constraints, cells)

    def below(self, target: float) -> NDArray[np.intp]:
        """The leaves that cost less than the target and can be cut, by what they cost."""
        codes, bounds = self.cells.codes, self.cells.bounds
        leaves = np.flatnonzero((bounds < target) & (codes[codes < 0] == LEAF))
        return leaves[np.argsort(bounds[leaves], kind="stable")]

    def step(self, target: float, guess: bool = True) -> Floats | None:
        """Cut some of the cells below a target, those first that decide the bound.

        Parameters
        ----------
        target : float
            What cells have to cost, above the lower bound.
        guess : bool
            Whether to look for cheaper metrics in the cells.

        Returns
        -------
        A : array of shape (d, d) or None
            A metric that costs less than the target, up to rounding.
        """
        chosen = np.zeros(len(self.cells.bounds), dtype=bool)
        chosen[self.below(target)[: _BATCH * 2]] = True
        boxes = boxes_of_leaves(self.roots, self.cells.codes, chosen)
        # Putting the results in their places takes as long as the tree is.
        limit = max(_WORK, 10 * len(self.cells.codes))

        known = self.cells.bounds[chosen]

        def work(part: NDArray[np.intp]) -> Explored:
            return Explored(*explore(*self._arrays, boxes[part], known[part], target, limit, guess))

        results = share_out(work, np.array_split(np.arange(len(boxes)), min(2, len(boxes))))
        self._replace(chosen, results)
        best = min(results, key=lambda result: result.cost)
        if not best.cost < target:
            return None
        G = np.zeros_like(self.cells.T)
        G[np.triu_indices(len(G))] = best.x
        L = G @ self.cells.T.T / np.sqrt(best.t)
        return L.T @ L

    def _replace(self, chosen: NDArray[np.bool_], results: list[Explored]) -> None:
        """Put the trees of the chosen leaves in their places."""
        codes = np.concatenate([result.codes for result in results])
        bounds = np.concatenate([result.bounds for result in results])
        old = self.cells
        tree = _trees(codes)  # the tree, of the chosen ones, that each code belongs to
        sizes = np.ones(len(old.codes), dtype=np.int64)
        leaves = np.ones(len(old.bounds), dtype=np.int64)
        places = np.flatnonzero(old.codes < 0)[chosen]
        sizes[places] = np.bincount(tree)
        leaves[chosen] = np.bincount(tree[codes < 0])
        is_new = np.zeros(len(old.codes), dtype=bool)
        is_new[places] = True
        new_codes = np.repeat(old.codes, sizes)
        new_codes[np.repeat(is_new, sizes)] = codes
        new_bounds = np.repeat(old.bounds, leaves)
        new_bounds[np.repeat(chosen, leaves)] = bounds
        self.cells = Cells(old.T, new_codes, new_bounds)


def _check_trees(codes: NDArray[np.int8], D: int) -> None:
    """Refuse what compiled code cannot follow: trees that are not whole, or too deep."""
    waiting = D + np.cumsum(np.where(codes < 0, -1, 1))  # cells, after each code
    whole = len(codes) > 0 and waiting[-1] == 0 and (waiting[:-1] > 0).all()
    if not whole or waiting.max() > 64 * D or codes.max() >= D:
        raise ValueError("the tree of cells is damaged")


def _trees(codes: NDArray[np.int8]) -> NDArray[np.int64]:
    """The number of the tree that each code of a forest in preorder belongs to.

    Examples
    --------
    >>> _trees(np.array([LEAF, 0, LEAF, LEAF, LEAF], dtype=np.int8))
    array([0, 1, 1, 1, 2])
    """
    # After a whole tree there is one leaf more than there are cuts.
    surplus = np.cumsum(np.where(codes < 0, 1, -1))
    ends = np.maximum.accumulate(np.concatenate([[0], surplus]))
    return ends[:-1]
