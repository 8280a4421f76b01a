"""What certification returns: a bound, the best metric known, and the certificate that proves the bound."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.proof.verify import (
    CertificateError,
    least_cost_of_cells,
    least_number_of_points,
    least_weight_of_packing,
)

#: A bound that is closer to the cost than this share of it is the cost: weights are rounded to a grid.
EQUAL = 1e-9


class Proof(Enum):
    """How far a certification got."""

    OPTIMAL = "no metric costs less"
    BOUNDED = "stopped with a gap"


class Certificate(Protocol):
    """What proves a lower bound on the cost of every metric."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it consists of, for files."""

    def proven(self, constraints: ConstraintSet) -> float:
        """The bound, recomputed by code that shares nothing with the search.

        Raises
        ------
        CertificateError
            If it proves nothing.
        """


@dataclass(frozen=True, eq=False)
class CellCertificate:
    """Cells that contain all metrics (``lptml.proof.cells``), and of which none costs less than the bound."""

    T: Floats
    """The coordinates (d, d)."""
    codes: NDArray[np.int8]
    """Trees in preorder: the axis that a cell is cut along, negative for a leaf."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"T": self.T, "codes": self.codes}

    def proven(self, constraints: ConstraintSet) -> float:
        """The bound, recomputed for each leaf on all constraints."""
        return least_cost_of_cells(constraints, self.T, self.codes)


@dataclass(frozen=True, eq=False)
class PackingCertificate:
    """Contradictions that share the weight of what is violated (``lptml.proof.packing``)."""

    starts: Ints
    """Contradiction k has the members from starts[k] to starts[k + 1]."""
    members: Ints
    """Numbers of constraints."""
    multipliers: Floats
    """Farkas multipliers of the members."""
    shares: Floats
    """What each contradiction proves; all together prove their sum, rounded up to the next possible cost."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("starts", "members", "multipliers", "shares")}

    def proven(self, constraints: ConstraintSet) -> float:
        """The bound, with every contradiction checked anew."""
        return least_weight_of_packing(constraints, self.starts, self.members, self.multipliers, self.shares)


@dataclass(frozen=True, eq=False)
class LabelCertificate:
    """Contradictions of which each names a point that must go (``lptml.proof.labels``)."""

    starts: Ints
    members: Ints
    multipliers: Floats
    points: Ints
    """The two points of each constraint (n, 2)."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("starts", "members", "multipliers", "points")}

    def proven(self, constraints: ConstraintSet) -> float:
        """The least number of points that hits every contradiction, each of which is checked anew."""
        return least_number_of_points(constraints, self.points, self.starts, self.members, self.multipliers)


@dataclass(frozen=True, eq=False)
class Certified:
    """A lower bound with its proof, beside the best metric known.

    Attributes
    ----------
    lower_bound : float
        No metric violates less weight than this.
    A : array of shape (d, d)
        The cheapest metric known: the given one, or one that was met on the way.
    cost : float
        The weight that A violates.
    constraints : ConstraintSet
        What the certificate is about: all constraints, or a sample of very many.
    total_weight : float
        The weight of all constraints.
    certificate : Certificate
    seconds : float
    given_up : array of int or None
        Of a proof about labels: points without which A satisfies all constraints; ``cost`` is their number,
        ``total_weight`` that of all points.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    lower_bound: float
    A: Floats
    cost: float
    constraints: ConstraintSet
    total_weight: float
    certificate: Certificate
    seconds: float
    given_up: Ints | None = None
    interrupted: bool = False

    @property
    def proof(self) -> Proof:
        """Whether the bound meets the cost."""
        return Proof.OPTIMAL if self.lower_bound >= (1.0 - EQUAL) * self.cost else Proof.BOUNDED

    @property
    def is_whole(self) -> bool:
        """Whether the certificate is about all constraints, not a sample of very many."""
        return self.constraints.total_weight >= (1.0 - EQUAL) * self.total_weight

    @property
    def gap(self) -> float:
        """How much cheaper than A a metric might still be."""
        return max(0.0, self.cost - self.lower_bound)

    @property
    def ratio(self) -> float:
        """How many times the least possible cost that of A is at most; infinite where nothing is proven."""
        if self.cost <= self.lower_bound:
            return 1.0
        return self.cost / self.lower_bound if self.lower_bound > 0 else float("inf")

    @property
    def statement(self) -> str:
        """What is proven, in words: one or two sentences for a person."""
        total = self.total_weight or 1.0
        if self.given_up is not None:
            return (
                f"At least {self.lower_bound:g} of {self.total_weight:g} labels must be wrong for one metric "
                f"to satisfy the others; without {self.cost:g} of them one does."
            )
        violates = f"The metric violates {self.cost:g} of {self.total_weight:g} ({self.cost / total:.2%})"
        if not self.is_whole:
            violates += f", by a count of all constraints; the proof has {self.constraints.n} of them"
        if self.proof is Proof.OPTIMAL:
            return f"{violates}, and no metric violates less: it is the best possible."
        if self.lower_bound <= 0:
            return f"{violates}; how much less is possible could not be proven."
        return (
            f"{violates}; no metric violates less than {self.lower_bound:g} "
            f"({self.lower_bound / total:.2%}), so it is at most {self.ratio:.3g} times the least possible."
        )

    def verify(self) -> float:
        """The bound that the certificate proves, recomputed.

        Raises
        ------
        CertificateError
            If that is less than ``lower_bound``.
        """
        proven = self.certificate.proven(self.constraints)
        if proven < self.lower_bound:
            raise CertificateError(f"the certificate proves {proven:g}, not {self.lower_bound:g}")
        return proven
