"""The reduction of Algorithm 2: of all candidates, the one that violates least.

``Leaderboard`` takes candidates in the order of trials and keeps those that may still win. It is a function
of that order alone, so every engine and every number of workers ends with the same list.

With exact costs these are the best few. With approximate counting they are the candidates that no sequential
test has yet abandoned: each was compared with the leader on the first ``rows[0]`` scored constraints. When
they become too many, and at the end, the survivors are compared on four times as many constraints, and so
on up to all scored ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import ConstraintSet, Floats
from lptml.constraints.counting import best_multiple, cannot_beat, violations
from lptml.exact import Status
from lptml.search.trial import Candidate, by_cost

_CROWD = 64  # undecided candidates before they are compared on more constraints


class Leaderboard:
    """The candidates that may still win.

    Parameters
    ----------
    n : int
        The number of all constraints.
    scoring : ConstraintSet
        The scored constraints, in random order unless they are all.
    rows : sequence of int
        How many of them each level of the sequential test looks at; empty when costs are exact.
    keep : int
        How many candidates to keep when costs are exact.
    delta : float
        The probability of ever abandoning the best candidate.
    """

    def __init__(self, n: int, scoring: ConstraintSet, rows: list[int], keep: int, delta: float) -> None:
        self.n = n
        self.scoring = scoring
        self.rows = rows
        self.keep = keep
        self.delta = delta
        self.entries: list[Candidate] = []
        self.identity: Candidate
        self.crowned: Candidate | None = None  # proven to be as good as was asked for
        self.looked = 0
        self._levels = [scoring.take(slice(0, m)) for m in rows]

    @property
    def leader(self) -> Candidate:
        return min(self.entries, key=by_cost)

    @property
    def limit(self) -> float:
        """Candidates of this cost or more have no place on the board."""
        return np.inf if self.rows or len(self.entries) < self.keep else self.entries[-1].cost

    @property
    def finalists(self) -> list[Candidate]:
        """The entries, and the identity in any case."""
        return self.entries if self.identity in self.entries else [*self.entries, self.identity]

    def start(self, identity: Candidate) -> None:
        """The first entry: the best multiple of the identity."""
        self.identity = identity
        self.entries = [identity]

    def add(self, entry: Candidate) -> bool:
        """Put a candidate on the board; True when it leads."""
        if not entry.cost < self.limit:
            return False
        leader = self.leader
        leads = entry.cost < leader.cost
        if not self.rows:
            self._insert(entry)
        elif leads or not self._loses(entry, leader):
            self.entries.append(entry)
            if len(self.entries) > _CROWD:
                self.settle(_CROWD // 2)
        return leads

    def _insert(self, entry: Candidate) -> None:
        if any(other.cost == entry.cost and _same_metric(other.A, entry.A) for other in self.entries):
            return
        self.entries.append(entry)
        self.entries.sort(key=by_cost)
        del self.entries[self.keep :]

    def _loses(self, entry: Candidate, leader: Candidate) -> bool:
        """The sequential test, on the constraints that both have been counted on."""
        level = min(entry.level, leader.level)
        weight = self._levels[level].weight
        # The best candidate may meet any other as leader, on any level: each of these has its share of delta,
        # that of the k-th trial in proportion to 1 / (k log^2 k), whose sum over k >= 2 is below 2.11.
        k = leader.trial + 3
        share = self.delta / (2.11 * k * math.log(k) ** 2 * len(self.rows))
        handicap = entry.penalty - leader.penalty
        return cannot_beat(entry.masks[level], leader.masks[level], weight, self.n, handicap, share)

    def settle(self, enough: int) -> None:
        """Compare the candidates on more and more scored constraints until at most ``enough`` are left."""
        for level in range(1, len(self.rows)):
            self._drop_losers()
            if len(self.entries) <= enough:
                return
            for entry in self.entries:
                if entry.level < level:
                    self._raise(entry, level)
        self._drop_losers()
        self.entries.sort(key=by_cost)
        del self.entries[enough:]

    def raise_finalists(self) -> None:
        """Give the finalists the scales that are best on all scored constraints."""
        for entry in self.finalists:
            if entry.level + 1 < len(self.rows):
                self._raise(entry, len(self.rows) - 1)

    def _drop_losers(self) -> None:
        if self.rows:
            leader = self.leader
            self.entries = [e for e in self.entries if e is leader or not self._loses(e, leader)]

    def _raise(self, entry: Candidate, level: int) -> None:
        constraints = self._levels[level]
        share = constraints.n / self.n
        best = best_multiple(constraints, entry.A, entry.rate * share)
        while entry.level < level:
            rows = self._levels[entry.level + 1]
            entry.masks.append(violations(rows, best.scale * entry.A))
        entry.scale = best.scale
        entry.cost = best.cost / share
        self.looked += constraints.n

    def state(self) -> dict[str, NDArray[Any]]:
        """The board as arrays, for a checkpoint."""
        entries = [self.identity, *self.entries]  # the identity stays known when it has left the board
        out: dict[str, NDArray[Any]] = {
            "trial": np.array([e.trial for e in entries], dtype=np.int64),
            "A": np.array([e.A for e in entries]),
            "scale": np.array([e.scale for e in entries]),
            "cost": np.array([e.cost for e in entries]),
            "rate": np.array([e.rate for e in entries]),
            "level": np.array([len(e.masks) for e in entries], dtype=np.int64),
            "looked": np.array(self.looked),
        }
        for level, rows in enumerate(self.rows):
            masks = [e.masks[level] for e in entries if len(e.masks) > level]
            out[f"masks{level}"] = np.array(masks, dtype=np.uint8).reshape(len(masks), -(-rows // 8))
        return out

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """The opposite of ``state``."""
        masks = [iter(state[f"masks{level}"]) for level in range(len(self.rows))]
        columns = (state[name] for name in ("trial", "A", "scale", "cost", "rate", "level"))
        self.identity, *self.entries = [
            Candidate(
                trial=int(trial),
                status=Status.OPTIMAL,  # or infeasible: nobody asks any more
                A=A,
                scale=float(scale),
                cost=float(cost),
                rate=float(rate),
                masks=[next(masks[k]) for k in range(level)],
            )
            for trial, A, scale, cost, rate, level in zip(*columns)
        ]
        self.entries = [self.identity if entry.trial == -1 else entry for entry in self.entries]
        self.looked = int(state["looked"])


def _same_metric(A: Floats, B: Floats) -> bool:
    """Whether two metrics differ by their scale alone."""
    size = max(np.abs(A).max(), 1e-300), max(np.abs(B).max(), 1e-300)
    return bool(np.abs(A / size[0] - B / size[1]).max() < 1e-6)
