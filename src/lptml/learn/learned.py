"""What learning returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lptml.constraints import Floats, Ints

if TYPE_CHECKING:
    from lptml.search.result import SearchStatus


@dataclass(frozen=True, eq=False)
class Learned:
    """A metric and how it was found.

    Attributes
    ----------
    A : array of shape (d, d)
        The metric, positive semidefinite.
    cost : float
        The weight of the constraints that A violates, counted exactly.
    penalty : float
        eta * <R, A>; 0 without regularisation.
    total_weight : float
        The weight of all constraints.
    trivial_cost : float
        The cost of the better of the two trivial metrics: A = 0, and one without limit.
    canonical : array of shape (d, d) or None
        The metric of least trace that satisfies what A satisfies; None where it was not solved for.
    support : array of int
        Numbers of the constraints that hold the canonical metric in place; empty where it was not solved for.
    history : tuple of (seconds, cost, trials)
        After each improvement.
    n_trials, n_infeasible : int
        Samples that the search solved, and how many of them were infeasible.
    status : SearchStatus
        Why learning ended.
    lower_bound : float or None
        A proven lower bound on the cost of every metric; None when it was not asked for.
    candidates : tuple of arrays of shape (d, d)
        The best few metrics met, cheapest first.
    """

    A: Floats
    cost: float
    penalty: float
    total_weight: float
    trivial_cost: float
    canonical: Floats | None
    support: Ints
    history: tuple[tuple[float, float, int], ...]
    n_trials: int
    n_infeasible: int
    status: SearchStatus
    lower_bound: float | None
    candidates: tuple[Floats, ...]

    @property
    def violation_rate(self) -> float:
        """The share of the weight that A violates."""
        return self.cost / self.total_weight if self.total_weight > 0 else 0.0

    @property
    def trivial_rate(self) -> float:
        """The share of the weight that the better trivial metric violates."""
        return self.trivial_cost / self.total_weight if self.total_weight > 0 else 0.0
