"""Constraints on a Mahalanobis metric, in the one linear form that everything else works on.

A metric is a positive semidefinite matrix A; the squared distance of two points is v'Av with v their
difference. A constraint (Section 2.2 of the paper, equations (3) and (4), and the triplets of its
conclusion) is

    sign * (<C, A> - bound) <= 0,    C = vv'  or  C = vv' - ww'

with sign = +1 for an upper bound (a similar pair: v'Av <= u^2) and sign = -1 for a lower one (a
dissimilar pair: v'Av >= l^2; a triplet (x, y, z), where d2(x, z) - d2(x, y) >= margin; a quadruplet
(a, b, c, d), where d2(c, d) - d2(a, b) >= margin). Bounds are positive, so A = 0 satisfies every upper
bound and violates every lower one.

The cost of A is the total weight of the constraints it violates. Weights are rounded to a grid on which
every sum is exact, so a cost does not depend on the order of summation: not on blocks, threads or the
partitions of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.constraints.checks import Floats as Floats
from lptml.constraints.checks import Ints as Ints
from lptml.constraints.checks import (
    check_bounds,
    check_margin,
    check_pair_labels,
    check_points,
    check_spread,
    check_tuples,
    check_weight,
    spread_of_differences,
)
from lptml.constraints.single_precision import lengths, squares, violated_weight
from lptml.constraints.violation import TOLERANCE as TOLERANCE
from lptml.constraints.violation import Scaled as Scaled
from lptml.constraints.violation import is_violated

_SINGLE = 1_000_000  # entries from which counting in single precision pays
_FEW = 12  # features below which it never does
_BLOCK_BYTES = 1 << 21  # transformed rows of one block stay in the second-level cache


class Source(Protocol):
    """Where constraints come from: in memory, implicit in labels, or spread over a cluster."""

    @property
    def n(self) -> int:
        """The number of constraints."""

    @property
    def d(self) -> int:
        """The number of features."""

    @property
    def total_weight(self) -> float:
        """The weight of all constraints."""

    def take(self, index: Ints) -> ConstraintSet:
        """The constraints with these numbers."""

    def cost(self, A: Floats) -> Any:
        """The weight that a metric, or each of a stack of metrics, violates."""

    def best_scale(self, A: Floats, slope: float = 0.0) -> Scaled:
        """The multiple c A that violates least; with a slope the one of least cost + slope * c."""

    def best_identity(self) -> Scaled:
        """The multiple of the identity that violates least."""

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""


class InMemory(Source, Protocol):
    """What every source in memory has in common."""

    @property
    def D(self) -> int:
        """The dimension of the space of metrics, which bounds the size of a basis."""
        return self.d * (self.d + 1) // 2

    def __len__(self) -> int:
        return self.n

    def best_identity(self) -> Scaled:
        """The multiple of the identity that violates least: the best metric without learning."""
        return self.best_scale(np.eye(self.d))


@dataclass(frozen=True, eq=False)
class ConstraintSet(InMemory):
    """An immutable set of constraints held in arrays.

    Use the constructors ``from_pairs``, ``from_differences``, ``from_triplets``, ``from_quadruplets`` and
    ``from_labels``; they validate their input.

    Parameters
    ----------
    V : array of shape (n, d)
        First difference vectors.
    W : array of shape (n, d) or None
        Second difference vectors; None when all constraints are pairs.
    sign : array of shape (n,)
        +1 for an upper bound, -1 for a lower one.
    bound : array of shape (n,)
        The right-hand sides, positive.
    weight : array of shape (n,)
        What violating each constraint costs.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> pairs = np.array([[[0.0, 0.0], [0.0, 3.0]], [[0.0, 0.0], [1.0, 0.0]]])
    >>> constraints = ConstraintSet.from_pairs(pairs, [+1, -1], bounds=(1.0, 1.0))
    >>> constraints.cost(np.eye(2))  # the similar pair is 3 apart
    1.0
    >>> constraints.cost(np.diag([1.0, 0.0]))
    0.0
    """

    V: Floats
    W: Floats | None
    sign: NDArray[np.int8]
    bound: Floats
    weight: Floats

    def __post_init__(self) -> None:
        for array in (self.V, self.W, self.sign, self.bound, self.weight):
            if array is not None:
                array.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle forgets the flag, and compiled kernels would be compiled again for writable arrays.
        self.__dict__.update(state)
        self.__post_init__()

    @classmethod
    def from_differences(
        cls, V: ArrayLike, y: ArrayLike, *, bounds: tuple[float, float], weight: ArrayLike | None = None
    ) -> ConstraintSet:
        """Pairs given by their difference vectors.

        Parameters
        ----------
        V : array-like of shape (n, d)
            One difference vector for each pair. A float64 array is used as it is, without a copy.
        y : array-like of shape (n,)
            +1 for similar, -1 for dissimilar.
        bounds : (u, l)
            Similar pairs shall be at most u apart, dissimilar ones at least l.
        weight : array-like of shape (n,), optional
            What violating each pair costs; 1 each by default.
        """
        V = check_points(V, "V", ndim=2)
        check_spread(spread_of_differences(V), "V")
        y = check_pair_labels(y, len(V))
        u, l = check_bounds(bounds)
        return cls(
            V=V.view(),
            W=None,
            sign=y.astype(np.int8),
            bound=np.where(y > 0, u * u, l * l),
            weight=check_weight(weight, len(V)),
        )

    @classmethod
    def from_pairs(
        cls, pairs: ArrayLike, y: ArrayLike, *, bounds: tuple[float, float], weight: ArrayLike | None = None
    ) -> ConstraintSet:
        """Pairs of points, shape (n, 2, d); the other parameters are those of ``from_differences``."""
        pairs = check_tuples(pairs, "pairs", 2)
        return cls.from_differences(pairs[:, 0] - pairs[:, 1], y, bounds=bounds, weight=weight)

    @classmethod
    def from_triplets(
        cls, triplets: ArrayLike, *, margin: float = 1.0, weight: ArrayLike | None = None
    ) -> ConstraintSet:
        """Triplets (x, y, z), shape (n, 3, d): x is closer to y than to z, by ``margin``, squared."""
        triplets = check_tuples(triplets, "triplets", 3)
        x, y, z = triplets.transpose(1, 0, 2)
        return cls._comparisons(near=x - y, far=x - z, margin=margin, weight=weight)

    @classmethod
    def from_quadruplets(
        cls, quadruplets: ArrayLike, *, margin: float = 1.0, weight: ArrayLike | None = None
    ) -> ConstraintSet:
        """Quadruplets (a, b, c, d), shape (n, 4, d): a and b are closer than c and d, by ``margin``."""
        quadruplets = check_tuples(quadruplets, "quadruplets", 4)
        a, b, c, d = quadruplets.transpose(1, 0, 2)
        return cls._comparisons(near=a - b, far=c - d, margin=margin, weight=weight)

    @classmethod
    def _comparisons(
        cls, near: Floats, far: Floats, margin: float, weight: ArrayLike | None
    ) -> ConstraintSet:
        n = len(near)
        check_spread(np.maximum(spread_of_differences(near), spread_of_differences(far)), "the comparisons")
        return cls(
            V=np.ascontiguousarray(far),
            W=np.ascontiguousarray(near),
            sign=np.full(n, -1, dtype=np.int8),
            bound=np.full(n, check_margin(margin)),
            weight=check_weight(weight, n),
        )

    @property
    def n(self) -> int:
        return len(self.V)

    @property
    def d(self) -> int:
        return self.V.shape[1]

    @cached_property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    def take(self, index: NDArray[Any] | slice) -> ConstraintSet:
        """The constraints with these numbers, in this order (a boolean mask or a slice will do)."""
        return ConstraintSet(
            V=rows_at(self.V, index),
            W=None if self.W is None else rows_at(self.W, index),
            sign=rows_at(self.sign, index),
            bound=rows_at(self.bound, index),
            weight=rows_at(self.weight, index),
        )

    def scaled(self, scale: Floats) -> ConstraintSet:
        """The same constraints with every feature divided by its entry of ``scale``."""
        return self.mapped(lambda V: V / scale)

    def projected(self, P: Floats) -> ConstraintSet:
        """The same constraints with every vector v mapped to P v, for P of shape (r, d)."""
        return self.mapped(lambda V: V @ P.T)

    def mapped(self, f: Callable[[Floats], Floats]) -> ConstraintSet:
        """The same constraints on other vectors: f of an array of them, a row each."""
        return replace(self, V=f(self.V), W=None if self.W is None else f(self.W))

    def values(self, A: Floats) -> Floats:
        """<C_i, A> for every constraint: shape (n,), or (k, n) for a stack of k symmetric matrices."""
        stack = np.atleast_3d(A.T).T  # (k, d, d)
        out = np.empty((len(stack), self.n))
        for start, stop, block in self._blocks(stack):
            out[:, start:stop] = block
        return out[0] if A.ndim == 2 else out

    def violated(self, A: Floats) -> NDArray[np.bool_]:
        """Which constraints A violates: shape (n,), or (k, n) for a stack."""
        return is_violated(self.values(A), self.sign, self.bound)

    def cost(self, A: Floats) -> Any:
        """The weight of the constraints that A violates: a float, or shape (k,) for a stack."""
        stack = np.atleast_3d(A.T).T  # (k, d, d)
        factors = self._factors(stack) if self.n * self.d >= _SINGLE and self.d >= _FEW else None
        if factors is not None:
            total = self._single_cost(*factors)
        else:
            total = np.zeros(len(stack))
            for start, stop, block in self._blocks(stack):
                rows = slice(start, stop)
                total += is_violated(block, self.sign[rows], self.bound[rows]) @ self.weight[rows]
        return float(total[0]) if A.ndim == 2 else total

    def _single_cost(self, L: Floats, edges: Ints) -> Floats:
        """The same count through single precision, twice as fast."""

        def exactly(rows: Ints) -> NDArray[np.bool_]:
            values = squares(self.V[rows] @ L.T, edges)
            if self.W is not None:
                values -= squares(self.W[rows] @ L.T, edges)
            return is_violated(values, self.sign[rows], self.bound[rows])

        parts = [self.V] if self.W is None else [self.V, self.W]
        return violated_weight(
            parts, *self._lengths, self.sign, self.bound, TOLERANCE, self.weight, L, edges, exactly
        )

    @cached_property
    def _lengths(self) -> tuple[Floats, list[NDArray[np.float32]]]:
        return lengths([self.V] if self.W is None else [self.V, self.W])

    @staticmethod
    def _factors(stack: Floats) -> tuple[Floats, Ints] | None:
        """The factors of all metrics below each other, and where each begins; None if one is indefinite."""
        factors = []
        for A in stack:
            L = factor(A)
            if L is None:
                return None
            factors.append(L)
        return np.concatenate(factors), np.cumsum([0, *map(len, factors)])

    def _blocks(self, stack: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Row blocks of ``values``: (start, stop, (k, stop - start)), through one matrix product each."""
        factors = self._factors(stack)
        if factors is None:
            yield from self._indefinite_blocks(stack)
            return
        L, edges = factors
        rows = max(64, _BLOCK_BYTES // (8 * max(1, len(L))))
        for start in range(0, self.n, rows):
            stop = min(start + rows, self.n)
            block = squares(self.V[start:stop] @ L.T, edges)
            if self.W is not None:
                block -= squares(self.W[start:stop] @ L.T, edges)
            yield start, stop, block

    def _indefinite_blocks(self, stack: Floats) -> Iterator[tuple[int, int, Floats]]:
        rows = max(64, _BLOCK_BYTES // (8 * self.d))
        for start in range(0, self.n, rows):
            stop = min(start + rows, self.n)
            V = self.V[start:stop]
            block = np.stack([np.einsum("ij,ij->i", V @ A, V) for A in stack])
            if self.W is not None:
                W = self.W[start:stop]
                block -= np.stack([np.einsum("ij,ij->i", W @ A, W) for A in stack])
            yield start, stop, block

    def best_scale(self, A: Floats, slope: float = 0.0) -> Scaled:
        """The multiple of A that violates least, exactly: each constraint flips at one scale.

        With a slope, the scale c that minimises cost(c A) + slope * c.

        Examples
        --------
        >>> import numpy as np
        >>> from lptml.constraints import ConstraintSet
        >>> constraints = ConstraintSet.from_differences([[1.0], [2.0]], [+1, -1], bounds=(1.0, 3.0))
        >>> constraints.best_scale(np.eye(1)).cost  # at most 1 and at least 3 cannot both hold
        1.0
        >>> constraints = ConstraintSet.from_differences([[1.0], [4.0]], [+1, -1], bounds=(1.0, 3.0))
        >>> constraints.best_scale(np.eye(1))
        Scaled(scale=0.7..., cost=0.0)
        """
        from lptml.constraints.ray import best_on_ray  # compiled code is loaded where it is needed

        return best_on_ray(self.values(A), self.sign, self.bound, self.weight, slope)

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""
        zero = float(self.weight[self.sign < 0].sum())
        whole = np.array([0, self.d])
        length = squares(self.V, whole)[0]
        grows = length > (0 if self.W is None else squares(self.W, whole)[0])
        infinity = float(self.weight[grows == (self.sign > 0)].sum())
        return zero, infinity


def factor(A: Floats) -> Floats | None:
    """L with L'L = A, of shape (rank, d); None when A is not positive semidefinite.

    A is brought to unit diagonal first, so features of very different scale keep their relative accuracy.
    """
    diagonal = A.diagonal()
    if np.count_nonzero(A) == np.count_nonzero(
        diagonal
    ):  # an answer at once, also where a time limit is over
        return np.diag(np.sqrt(diagonal))[diagonal > 0] if diagonal.min() >= 0 else None
    scale = np.sqrt(np.abs(diagonal))
    scale = np.where(scale > 0, scale, 1.0)
    eigenvalues, Q = np.linalg.eigh(A / scale[:, None] / scale)
    largest = max(abs(eigenvalues[0]), abs(eigenvalues[-1]))
    if eigenvalues[0] < -1e-10 * largest:
        return None
    keep = eigenvalues > 1e-15 * largest
    return np.ascontiguousarray(np.sqrt(eigenvalues[keep])[:, None] * Q[:, keep].T * scale)


def psd_factor(A: Floats) -> Floats:
    """``factor`` of a matrix that has to be a metric: ValueError when it is not positive semidefinite."""
    L = factor(A)
    if L is None:
        raise ValueError("A must be positive semidefinite")
    return L


def rows_at(array: NDArray[Any], index: NDArray[Any] | slice) -> NDArray[Any]:
    """The rows with these numbers, or of a mask or a slice."""
    if isinstance(index, np.ndarray) and index.dtype.kind in "iu":
        return array.take(index, axis=0)  # twice as fast as indexing
    return array[index]
