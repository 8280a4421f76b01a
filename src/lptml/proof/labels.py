"""How many labels must be wrong: the least number of points without which some metric satisfies all pairs.

A wrong label explains every pair of its point, so points are given up here, not pairs. Every contradiction
among pairs names points of which one must go: the least set of points that hits all known contradictions is a
lower bound. Contradictions are then looked for among the points that are not in that set (an implicit hitting
set, Chandrasekaran, Karp, Moreno-Centeno and Vempala 2011); if there are none, the bound is the answer. Who
checks the proof searches all smaller sets of points, so this is done whenever the bound has grown, within the
time limit. From above, a metric comes with points that cover all pairs it violates; two of them are put back
for a third as long as that is possible.

References
----------
K. Chandrasekaran, R. Karp, E. Moreno-Centeno, S. Vempala, "Algorithms for implicit hitting set problems",
ACM-SIAM Symposium on Discrete Algorithms, 2011.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from lptml._limits import OutOfTime, until
from lptml._threads import share_out
from lptml.constraints import Floats, Ints, LabelledPairs
from lptml.proof.certificate import Certified, LabelCertificate
from lptml.proof.certification import (
    CertificationInterruptedWarning,
    compile_now,
    contradictions_of,
    in_a_row,
    same,
)
from lptml.proof.contradictions import Contradiction, Separation
from lptml.refine import refine

_REFINED = 0.1  # of the time limit, for a first metric
_MOST = 1500  # points: a million pairs
_AT_ONCE = 3  # contradictions between two hitting sets
_TO_THE_END = 8  # rounds from one that looks for contradictions until none is left to the next


def certify_labels(
    X: ArrayLike,
    y: ArrayLike,
    *,
    bounds: tuple[float, float] = (1.0, 1.0),
    A: Floats | None = None,
    time_limit: float = 60.0,
    random_state: int | None = 0,
    callback: Callable[[float, float], object] | None = None,
    resume: Certified | None = None,
) -> Certified:
    """Bounds on the least number of labels that must be wrong for one metric to satisfy all other pairs.

    Parameters
    ----------
    X : array-like of shape (n, d)
        At most 1,500 points.
    y : array-like of shape (n,)
        Their classes.
    bounds : (u, l)
        Points of a class shall be at most u apart, others at least l; just the ratio counts.
    A : array of shape (d, d), optional
        A metric to start from.
    time_limit : float
        Seconds after which to stop with what is proven.
    random_state : int, optional
    callback : callable, optional
        Called as ``callback(lower_bound, cost)`` now and then; a true result stops.
    resume : Certified, optional
        An earlier result for the same points and labels, to go on from. It is verified before the time
        limit begins.

    Returns
    -------
    Certified
        ``lower_bound`` labels must be wrong; without the ``cost`` points in ``given_up`` A satisfies all.

    Examples
    --------
    Two points at one place with different labels: one of them is wrong.

    >>> found = certify_labels([[0.0], [0.1], [5.0], [5.1], [5.1]], [0, 0, 1, 1, 0])
    >>> found.lower_bound, found.cost, found.given_up.tolist()
    (1.0, 1.0, [4])
    """
    if not time_limit >= 0:
        raise ValueError(f"time_limit must not be negative, got {time_limit}")
    pairs = LabelledPairs.from_labels(X, y, bounds=bounds)
    if len(pairs.X) > _MOST:
        raise ValueError(f"X must have at most {_MOST} points, got {len(pairs.X)}")
    compile_now()
    run = _Run(pairs, random_state)
    if resume is not None:
        run.take_up(resume)
    began = time.monotonic()
    run.deadline = began + time_limit
    try:
        run.offer([np.zeros((pairs.d, pairs.d)) if A is None else np.asarray(A, dtype=np.float64)])
        if resume is None:
            run.offer(refine(run.constraints, time_limit=_REFINED * time_limit).candidates)
        while run.proven < len(run.given_up) and time.monotonic() < run.deadline:
            if callback is not None and callback(run.proven, float(len(run.given_up))):
                break
            if not run.go_on():
                break
    except KeyboardInterrupt:
        message = "certification interrupted; the bound proven so far is returned"
        warnings.warn(message, CertificationInterruptedWarning, stacklevel=2)
        return replace(run.result(began), interrupted=True)
    return run.result(began)


class _Run:
    """Contradictions by their points, the least set of points that hits them, the best metric."""

    def __init__(self, pairs: LabelledPairs, random_state: int | None) -> None:
        every = np.arange(pairs.n)
        self.constraints = pairs.take(every)
        self.points = np.stack(pairs.pairs(every), axis=1)  # (pairs, 2)
        self.N = len(pairs.X)
        self.separation = Separation(self.constraints, random_state)
        self.deadline = np.inf
        self.found: dict[bytes, Contradiction] = {}
        self.sets: list[Ints] = []
        self.hit = np.empty(0, dtype=np.int64)
        self.rounds = 0
        self.proven, self.certificate = 0.0, self._certificate()
        self.A, self.given_up = np.zeros((pairs.d, pairs.d)), np.arange(self.N)

    def offer(self, metrics: Iterable[Floats]) -> None:
        """Take metrics into account, as they are and at the scale that violates least."""
        for metric in metrics:
            for A in (metric, metric * (self.constraints.best_scale(metric).scale or 1.0)):
                wrong = self.points[self.constraints.violated(A)]
                for needed in (cover(wrong, self.N), self.hit):
                    if len(needed) < len(self.given_up) and np.isin(wrong, needed).any(axis=1).all():
                        self.A, self.given_up = A, needed

    def go_on(self) -> bool:
        """Find contradictions among points that are not hit, and hit them, too; whether there were any."""
        self.rounds += 1
        results = share_out(self._collect, self.separation.rng.spawn(2))
        new = 0
        for found, A in results:
            self.offer([] if A is None else [A])
            new += self._add(found)
        return new > 0 and self._hit() and self._prove()

    def take_up(self, earlier: Certified) -> None:
        """Go on from an earlier result."""
        if not isinstance(earlier.certificate, LabelCertificate) or not same(
            self.constraints, earlier.constraints
        ):
            raise ValueError("resume was made for other points or labels")
        self.proven, self.certificate = earlier.verify(), earlier.certificate  # it may come from a file
        self._add(contradictions_of(earlier.certificate))
        self._hit()
        self.offer([earlier.A])

    def _certificate(self) -> LabelCertificate:
        return LabelCertificate(*in_a_row(list(self.found.values())), self.points)

    def _prove(self) -> bool:
        """Have it checked that no smaller set of points hits all contradictions; whether there was time."""
        if len(self.hit) <= self.proven:
            return True
        certificate = self._certificate()
        try:
            with until(self.deadline):
                proven = certificate.proven(self.constraints)
        except OutOfTime:
            return False
        self.certificate, self.proven = certificate, proven
        return True

    def _add(self, found: Iterable[Contradiction]) -> int:
        """Keep those that name other points than any so far; how many."""
        before = len(self.sets)
        for each in found:
            points = np.unique(self.points[each.members])
            if points.tobytes() not in self.found:
                self.found[points.tobytes()] = each
                self.sets.append(points)
        return len(self.sets) - before

    def _hit(self) -> bool:
        """The least set of points that hits all contradictions; whether it was found in time."""
        if not self.sets:
            return True
        M = np.zeros((len(self.sets), self.N))
        for row, points in zip(M, self.sets):
            row[points] = 1.0
        answer = milp(
            np.ones(self.N),
            constraints=LinearConstraint(M, lb=1.0),
            integrality=np.ones(self.N),
            bounds=Bounds(0.0, 1.0),
            options={"time_limit": max(0.05, self.deadline - time.monotonic()), "mip_rel_gap": 0.0},
        )
        if answer.status != 0:
            return False
        self.hit = np.flatnonzero(answer.x > 0.5)
        return True

    def _collect(self, rng: np.random.Generator) -> tuple[list[Contradiction], Floats | None]:
        """Contradictions of points that are not hit, until none is left, and the metric that is left then."""
        began = time.monotonic()
        removed = np.zeros(self.N, dtype=bool)
        removed[self.hit] = True
        found: list[Contradiction] = []
        named = np.bincount(np.concatenate([self.hit, *self.sets]), minlength=self.N) + rng.random(self.N)
        # Now and then to the end, for the metric; else the new contradictions move the hitting set first.
        most = np.inf if self.rounds % _TO_THE_END == 0 else _AT_ONCE
        while len(found) < most and self.separation.has_time(self.deadline):
            each, A = self._without(removed, rng)
            if each is None:
                return found, A if A is None else self._put_back(removed, A, rng, began)
            each = self._with_fewer(each, rng)
            found.append(each)
            points = np.unique(self.points[each.members])
            removed[rng.choice(points, p=named[points] / named[points].sum())] = True
        return found, None

    def _put_back(
        self, removed: NDArray[np.bool_], A: Floats, rng: np.random.Generator, began: float
    ) -> Floats:
        """The metric that is left when every point that need not be removed is put back."""
        for point in rng.permutation(np.flatnonzero(removed)):
            if self.separation.has_time(self.deadline):
                removed[point] = False
                _, metric = self._without(removed, rng)
                removed[point] = metric is None
                A = A if metric is None else metric
        now = time.monotonic()
        deadline = min(self.deadline, now + (now - began))  # as long again as it took to get here
        better: Floats | None = A
        while better is not None:
            A, better = better, self._exchange(removed, rng, deadline)
        return A

    def _exchange(
        self, removed: NDArray[np.bool_], rng: np.random.Generator, deadline: float
    ) -> Floats | None:
        """The metric that is left when two points are put back for a third, if there are such points."""
        for two in rng.permutation(list(combinations(np.flatnonzero(removed), 2))):
            removed[two] = False
            candidates = ~removed
            candidates[two] = False
            third = two[:0]
            while self.separation.has_time(deadline):
                removed[third] = True
                each, metric = self._without(removed, rng)
                if metric is not None:
                    return metric
                removed[third] = False
                candidates[third] = False
                if each is None:
                    break
                # The third point has to be in every contradiction that is left.
                candidates &= np.bincount(self.points[each.members].ravel(), minlength=self.N) > 0
                if not candidates.any():
                    break
                third = rng.choice(np.flatnonzero(candidates), 1)
            removed[two] = True
        return None

    def _without(
        self, removed: NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Contradiction | None, Floats | None]:
        """A contradiction among the pairs of the points that are left, or a metric for them."""
        left = np.flatnonzero(~removed[self.points].any(axis=1))
        return self.separation.among(left, rng, self.deadline)

    def _with_fewer(self, found: Contradiction, rng: np.random.Generator) -> Contradiction:
        """A contradiction of fewer points: each is left out if the pairs of the others still contradict."""
        points = np.unique(self.points[found.members])
        for point in rng.permutation(points):
            if point not in points or not self.separation.has_time(self.deadline):
                continue
            others = np.isin(self.points, points[points != point]).all(axis=1)
            smaller, _ = self.separation.among(np.flatnonzero(others), rng, self.deadline)
            if smaller is not None:
                found, points = smaller, np.unique(self.points[smaller.members])
        return found

    def result(self, began: float) -> Certified:
        return Certified(
            lower_bound=self.proven,
            A=self.A,
            cost=float(len(self.given_up)),
            constraints=self.constraints,
            total_weight=float(self.N),
            certificate=self.certificate,
            seconds=time.monotonic() - began,
            given_up=self.given_up,
        )


def cover(pairs: Ints, N: int) -> NDArray[np.int64]:
    """Points, few of them, one of which is in every pair: each time the one in most, then without idle ones.

    Examples
    --------
    >>> cover(np.array([[0, 1], [0, 2], [3, 0], [4, 5]]), 6)
    array([0, 4])
    """
    degree = np.bincount(pairs.ravel(), minlength=N)
    left, chosen = pairs, []
    while len(left):
        point = int(degree.argmax())
        chosen.append(point)
        gone = (left == point).any(axis=1)
        degree -= np.bincount(left[gone].ravel(), minlength=N)
        left = left[~gone]
    for point in chosen[::-1]:
        rest = [other for other in chosen if other != point]
        if np.isin(pairs, rest).any(axis=1).all():
            chosen = rest
    return np.array(sorted(chosen), dtype=np.int64)
