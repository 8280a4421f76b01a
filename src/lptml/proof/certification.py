"""Certification: how far a metric is from the best possible, with a proof."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from lptml.constraints import ConstraintSet, Floats, Ints, LabelledPairs, Source
from lptml.exact.sdp import compile_now as compile_solver
from lptml.proof.cells import Cells, CellSearch
from lptml.proof.certificate import (
    EQUAL,
    CellCertificate,
    Certificate,
    Certified,
    LabelCertificate,
    PackingCertificate,
)
from lptml.proof.contradictions import Contradiction
from lptml.proof.packing import PackingSearch
from lptml.refine import refine
from lptml.refine.canonical import in_memory
from lptml.search.engine import PartitionedSource
from lptml.search.remote import nearby

_LISTED = 1_000_000  # constraints that are looked at; what a part of them proves holds for all
_REFINED = 0.3  # of the time limit, for a metric where none is given
_SHORT = 1.0  # and at most these seconds where cells will find the best one
_CELLS = 3  # features up to which cells are cut; their number grows with the power of d (d + 1) / 2 - 1

#: Where bound and goal are closer than this, the goal is the next target; else the middle between the two.
_CLOSE = 0.1


class CertificationInterruptedWarning(UserWarning):
    """Certification was interrupted and returned what it had proven so far."""


def certify(
    source: Source | PartitionedSource,
    A: Floats | None = None,
    *,
    time_limit: float = 10.0,
    gap: float = 0.0,
    random_state: int | None = 0,
    callback: Callable[[float, float], object] | None = None,
    resume: Certified | None = None,
) -> Certified:
    """A lower bound on the cost of every metric, and how far the best known one is from it.

    Up to three features cells of metrics are cut until the best metric is proven to be the best
    (``lptml.proof.cells``); with more of them, contradictions are packed (``lptml.proof.packing``), which
    proves the optimum where few constraints are violated and leaves a gap where many are.

    Parameters
    ----------
    source : Source
        Constraints. Of more than a million a random million is looked at; what these prove holds for all.
    A : array of shape (d, d), optional
        The metric to compare with; by default one is learned by ``refine`` in a part of the time.
    time_limit : float
        Seconds after which to stop with what is proven.
    gap : float
        Stop when the bound is within this share of the cost; 0 asks for the optimum.
    random_state : int, optional
        For samples of very many constraints.
    callback : callable, optional
        Called as ``callback(lower_bound, cost)`` now and then; a true result stops.
    resume : Certified, optional
        An earlier result for the same constraints, to go on from. It is verified before the time limit
        begins.

    Returns
    -------
    Certified

    Examples
    --------
    Similar and dissimilar at the same place cannot both hold:

    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.proof import certify
    >>> V = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    >>> pairs = ConstraintSet.from_differences(V, [+1, -1, +1, -1], bounds=(1.0, 2.0))
    >>> certified = certify(pairs, np.eye(2))
    >>> certified.lower_bound, certified.cost, certified.proof.name
    (2.0, 2.0, 'OPTIMAL')
    >>> certified.verify()
    2.0
    """
    if source.n < 1:
        raise ValueError("there are no constraints to certify")
    if not time_limit >= 0:
        raise ValueError(f"time_limit must not be negative, got {time_limit}")
    if not 0 <= gap < 1:
        raise ValueError(f"gap must lie in [0, 1), got {gap}")
    compile_now()
    began = time.monotonic()
    near = nearby(source)
    constraints = _listed(near, random_state)
    if resume is not None:
        if not same(constraints, resume.constraints):
            raise ValueError("resume was made for other constraints")
        resume.verify()  # it may come from a file
        began = time.monotonic()
    if A is None:
        seconds = _REFINED * time_limit
        if near.d <= _CELLS:
            seconds = min(seconds, _SHORT)
        A = refine(near, time_limit=seconds).A if resume is None else resume.A
    run = _Run(near, constraints, np.asarray(A, dtype=np.float64), gap, began, time_limit, callback)
    if resume is not None:
        run.offer(resume.A)
    try:
        if constraints.d <= _CELLS:
            run.cut_cells(resume)
        else:
            run.pack(resume, random_state)
    except KeyboardInterrupt:
        message = "certification interrupted; the bound proven so far is returned"
        warnings.warn(message, CertificationInterruptedWarning, stacklevel=2)
        return replace(run.result(), interrupted=True)
    return run.result()


@cache
def compile_now() -> None:
    """Compile, or load from disk, before a clock starts: whatever certification calls, by calling it."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    points = LabelledPairs.from_labels(X, np.arange(12) % 2, bounds=(1.0, 1.0))
    pairs = in_memory(points)
    compile_solver()
    for source in (points, pairs):
        refine(source)
    CellSearch.start(pairs, np.eye(2)).step(1.0)
    packing = PackingSearch(pairs)
    for n in (2, pairs.n):  # feasible and infeasible
        packing.separation.among(np.arange(n), np.random.default_rng(0), np.inf)
    packing.step(time.monotonic() + 60.0)


def _listed(source: Source, random_state: int | None) -> ConstraintSet:
    """The constraints, or many of them, without those of no weight."""
    if source.n <= _LISTED:
        constraints = in_memory(source)
    else:
        rng = np.random.default_rng(random_state)
        constraints = source.take(np.unique(rng.integers(source.n, size=_LISTED)))
    # Rounded down to a grid on which every sum is exact, so that no bound is above a cost.
    grid = 2.0 ** max(np.ceil(np.log2(constraints.total_weight or 1.0)) - 50, -1022.0)
    constraints = replace(constraints, weight=np.floor(constraints.weight / grid) * grid)
    return constraints.take(np.flatnonzero(constraints.weight))  # the others prove nothing


def same(one: ConstraintSet, other: ConstraintSet) -> bool:
    """Whether two sets of constraints are equal, number by number."""
    names = ("V", "W", "sign", "bound", "weight")
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    return all((a is None and b is None) or np.array_equal(a, b) for a, b in pairs)


class _Run:
    """One certification: the best metric and the best bound so far."""

    def __init__(
        self,
        source: Source,
        constraints: ConstraintSet,
        A: Floats,
        gap: float,
        began: float,
        time_limit: float,
        callback: Callable[[float, float], object] | None,
    ) -> None:
        self.source = source
        self.constraints = constraints
        self.A, self.cost = A, float(source.cost(A))
        self.least = float(constraints.cost(A))  # of any metric met, on the constraints that are looked at
        self.gap = gap
        self.began, self.deadline = began, began + time_limit
        self.callback = callback
        self.lower_bound = 0.0
        self.certificate: Certificate = packed([], np.zeros(0))

    @property
    def goal(self) -> float:
        """The bound to reach."""
        return (1.0 - max(self.gap, EQUAL)) * self.least

    def offer(self, A: Floats) -> bool:
        """Take a metric into account at its best scale; whether it costs less than any so far."""
        A = self.constraints.best_scale(A).scale * A
        cost, listed = float(self.source.cost(A)), float(self.constraints.cost(A))
        if cost < self.cost:
            self.A, self.cost = A, cost
        better = listed < self.least
        self.least = min(self.least, listed)
        return better

    def cut_cells(self, resume: Certified | None) -> None:
        """Branch and bound over cells, towards targets between the bound and the goal."""
        search = CellSearch.start(self.constraints, self.A)
        if resume is not None and isinstance(resume.certificate, CellCertificate):
            T, codes = resume.certificate.T, resume.certificate.codes
            leaves = int((codes < 0).sum())
            search = CellSearch(self.constraints, Cells(T, codes, np.full(leaves, resume.lower_bound)))
        guess = True
        while True:
            self.lower_bound = min(search.cells.lower_bound, self.cost)
            self.certificate = CellCertificate(search.cells.T, search.cells.codes)
            if self.lower_bound >= self.goal or time.monotonic() >= self.deadline:
                return
            if self.callback is not None and self.callback(self.lower_bound, self.cost):
                return
            distance = self.goal - self.lower_bound
            target = self.goal if distance <= _CLOSE * self.goal else self.goal - distance / 2
            if not len(search.below(target)):
                return  # cells too small to be cut are in the way
            A = search.step(target, guess)
            if A is not None and not self.offer(A) and target >= self.goal:
                guess = False  # it costs less but for rounding, and would be met again and again

    def pack(self, resume: Certified | None, random_state: int | None) -> None:
        """Contradictions and their packing, round after round."""
        known = [] if resume is None else contradictions_of(resume.certificate)
        if not self.constraints.n:
            return
        search = PackingSearch(self.constraints, random_state, known)
        while self.lower_bound < self.goal and time.monotonic() < self.deadline:
            metrics, went_on = search.step(self.deadline)
            for A in metrics:
                self.offer(A)
            if search.lower_bound > self.lower_bound:
                self.lower_bound = min(search.lower_bound, self.cost)
                self.certificate = packed(*search.best)
            if self.callback is not None and self.callback(self.lower_bound, self.cost):
                return
            if not went_on:
                return

    def result(self) -> Certified:
        return Certified(
            lower_bound=self.lower_bound,
            A=self.A,
            cost=self.cost,
            constraints=self.constraints,
            total_weight=self.source.total_weight,
            certificate=self.certificate,
            seconds=time.monotonic() - self.began,
        )


def packed(found: list[Contradiction], shares: Floats) -> PackingCertificate:
    """The certificate of contradictions and their shares."""
    return PackingCertificate(*in_a_row(found), shares)


def in_a_row(found: list[Contradiction]) -> tuple[Ints, Ints, Floats]:
    """Contradictions as arrays: where each begins, all members, all multipliers."""
    starts = np.cumsum([0, *(len(each.members) for each in found)], dtype=np.int64)
    members = np.concatenate([np.empty(0, dtype=np.int64), *(each.members for each in found)])
    return starts, members, np.concatenate([np.empty(0), *(each.multipliers for each in found)])


def contradictions_of(certificate: Certificate) -> list[Contradiction]:
    """The contradictions of an earlier proof; none where cells were cut."""
    if not isinstance(certificate, PackingCertificate | LabelCertificate):
        return []
    ends = certificate.starts[1:-1]
    return [
        Contradiction(members, y)
        for members, y in zip(np.split(certificate.members, ends), np.split(certificate.multipliers, ends))
        if len(members)
    ]
