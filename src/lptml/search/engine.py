"""The contract between the search and what runs it: small Protocols and the messages between them.

The driver (search.py) numbers the trials of Algorithm 2, cuts them into units of consecutive trials, hands
the units to an engine's session and reduces the results in the order of trials. A unit is idempotent: its
result depends on the problem and the trial numbers alone, so an engine may run it anywhere, twice, or again
after a worker's death, and the search ends with the same metric, bit for bit.

An engine is where trials run: ``Engine.open`` sends the problem to the workers once, ``Session.run`` maps
units. A source is where constraints are. In memory it travels inside the problem and a unit's worker takes
the rows of its samples itself. A partitioned source stays where it is: the driver asks it, a batch of
trials a pass, for the rows of the samples, and sends them along in the units. Everything else the driver
needs from constraints is a count: ``PartitionedSource`` is these operations.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.sampling import Sample

if TYPE_CHECKING:
    from lptml._trial import Problem


@dataclass(frozen=True, eq=False)
class Unit:
    """Consecutive trials: the task that an engine maps.

    ``samples`` holds the head of each trial's sample when the source is partitioned; with a source in memory
    it is None and the worker takes the rows.
    """

    first: int
    count: int
    samples: tuple[ConstraintSet, ...] | None = None


@dataclass(frozen=True, eq=False)
class Pending:
    """A trial whose head is feasible while its sample goes on; the driver continues it on the partitions."""

    trial: int
    A: Floats
    active: ConstraintSet


@dataclass(frozen=True, eq=False)
class UnitResult:
    """What the trials of a unit found, one entry a trial."""

    first: int
    status: NDArray[np.int8]  # (k,) TrialStatus
    A: Floats  # (k, d, d) the candidates before scaling
    scale: Floats  # (k,) the best multiple on the scored constraints
    cost: Floats  # (k,) what it costs there, or everywhere when counting is exact; inf: no candidate
    violated: NDArray[np.uint8]  # (k, bytes) packed bits over the scored constraints, for the sequential test
    looked: Ints  # (k,) constraints whose value was computed to count
    solves: Ints  # (k,) basis problems solved
    seconds: float
    pending: tuple[Pending, ...] = field(default=())

    @property
    def count(self) -> int:
        return len(self.status)


class Session(Protocol):
    """A problem on its workers."""

    #: How long a unit should take, in seconds: long against the engine's overhead for a task.
    unit_seconds: float
    #: How many units run at the same time.
    workers: int

    def run(self, units: Iterable[Unit]) -> Generator[UnitResult | None, None, None]:
        """Map units to workers; yield results in any order, and None every 0.1 s while there are none.

        Units are to be taken from the iterable as workers come free (a few ahead), because their size follows
        the time that trials are found to take, and because taking one may cost a pass over the data. Closing
        the iterator abandons what has not finished.
        """


@runtime_checkable
class Engine(Protocol):
    """Something that runs units of trials."""

    name: str

    def open(self, problem: Problem) -> AbstractContextManager[Session]:
        """Send the problem to the workers, once."""


@runtime_checkable
class PartitionedSource(Protocol):
    """Constraints that are never collected. Constraints are numbered 0..n-1 across the partitions.

    Weights must lie on the exact-sum grid of ``validation.exact_sum_grid``, so that sums over partitions do
    not depend on how many there are; values of a constraint must not depend on the partition it is in.
    """

    @property
    def n(self) -> int:
        """The number of constraints."""

    @property
    def d(self) -> int:
        """The number of features."""

    @property
    def total_weight(self) -> float:
        """The weight of all constraints."""

    def take_batch(self, indices: Sequence[Ints]) -> list[ConstraintSet]:
        """The rows with these numbers, in the order given, for each of several arrays: one pass for all."""

    def cost(self, A: Floats) -> Floats:
        """The weight that each of a stack of metrics (k, d, d) violates: (k,)."""

    def broken_weights(self, A: Floats, scales: Floats) -> Floats:
        """``counting.broken_weights`` summed over the partitions: (2, k)."""

    def worst(
        self, requests: Sequence[tuple[Floats, Sample]], count: int
    ) -> list[tuple[Ints, ConstraintSet]]:
        """For each metric and sample: numbers and rows of the sample's ``count`` most violated constraints.

        Worst first as in ``counting.worst_rows``, ties to the lower number; fewer when fewer are violated.
        One pass for all requests. ``Sample.contains`` tells which rows of a partition a sample holds.
        """

    def trivial_costs(self) -> tuple[float, float]:
        """The costs of A = 0 and of a multiple of the identity that grows without limit."""
