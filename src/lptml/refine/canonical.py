"""The canonical metric of a cell: the exact solution on the constraints that a metric satisfies.

A metric found by refinement is some point of the cell of all metrics that satisfy the same constraints.
The paper's w picks one of them, the minimiser of the objective, together with a basis of at most D
constraints: the support, which alone determines it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lptml.constraints import ConstraintSet, Floats, Ints, Source
from lptml.exact import exact_lptml, make_objective
from lptml.exact.solution import Status

_ENTRIES = 20_000_000  # n d
_FEATURES = 16


@dataclass(frozen=True, eq=False)
class Canonical:
    """The metric of least trace among those that satisfy what a given metric satisfies.

    Attributes
    ----------
    A : array of shape (d, d)
    cost : float
        At most the cost of the given metric.
    support : array of int
        Numbers of the constraints that hold it in place, at most D.
    """

    A: Floats
    cost: float
    support: Ints


def in_memory(source: Source) -> ConstraintSet:
    """All constraints of a source, stored."""
    return source if isinstance(source, ConstraintSet) else source.take(np.arange(source.n))


def solved_quickly(source: Source) -> bool:
    """Whether the canonical metric takes a fraction of a second."""
    return source.n * source.d <= _ENTRIES and source.d <= _FEATURES


def canonical(
    source: Source, A: Floats, random_state: int | np.random.Generator | None = 0
) -> Canonical | None:
    """Solve exactly on the constraints that A satisfies (a feasible set by construction).

    Parameters
    ----------
    source : Source
        Constraints, as many as fit into memory.
    A : array of shape (d, d)
        A metric.
    random_state : int or Generator
        Of the order in which constraints enter.

    Returns
    -------
    Canonical, or None if no verified solution was reached

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.refine.canonical import canonical
    >>> pairs = ConstraintSet.from_differences([[2.0], [3.0], [0.1]], [-1, -1, -1], bounds=(1.0, 1.0))
    >>> solved = canonical(pairs, np.eye(1))
    >>> solved.A.round(6).tolist(), solved.support.tolist()
    ([[0.25]], [0])
    """
    constraints = in_memory(source)
    satisfied = np.flatnonzero(~constraints.violated(A))
    rng = np.random.default_rng(random_state)
    exact = exact_lptml(constraints.take(satisfied), make_objective("trace", constraints.d, rng), rng=rng)
    if exact.status is not Status.OPTIMAL:
        return None
    cost = float(constraints.cost(exact.A))
    return Canonical(exact.A, cost, satisfied[exact.basis])
