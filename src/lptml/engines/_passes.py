"""One pass over a partition: what is computed where the constraints lie.

Each pass is a function of the blocks of a partition and an argument that the driver sent; what it returns
is small and is merged by the driver in the order of partitions. A pass holds one block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.constraints.ray import flip_places
from lptml.constraints.violation import excess, is_violated
from lptml.engines._blocks import Block, Layout, PointTable
from lptml.engines.errors import PartitionError
from lptml.search.sampling import Sample
from lptml.search.trial import join

Pass = Callable[[Iterator[tuple[int, Block]], Any], Any]
#: Numbers, excesses and rows of the worst constraints of a partition.
Worst = tuple[Ints, Floats, ConstraintSet]


class Part(Protocol):
    """A partition, or where to find one."""

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        """Its constraints, in their order, the same at every call."""


@dataclass(frozen=True, eq=False)
class Task:
    """A pass over one partition: everything but the partition itself and the points."""

    layout: Layout
    function: Pass
    argument: Any
    first: int  # the number of the partition's first constraint
    rows: int | None = None  # how many constraints it had when they were numbered

    def run(self, part: Part, table: PointTable | None) -> Any:
        """The result of the pass; PartitionError when the partition is not what it was."""
        return self.function(self._numbered(part.blocks(self.layout, table)), self.argument)

    def _numbered(self, blocks: Iterator[Block]) -> Iterator[tuple[int, Block]]:
        seen = 0
        for block in blocks:
            yield self.first + seen, block
            seen += block.n
        if self.rows is not None and seen != self.rows:
            raise PartitionError(
                f"the partition from constraint {self.first} on had {self.rows} rows and now has {seen}: "
                "partitions must hold the same rows in the same order at every pass"
            )


@dataclass(frozen=True)
class Survey:
    """What is to know about a partition before the first trial."""

    n: int
    weight: float
    at_zero: float  # the weight that A = 0 violates
    at_infinity: float  # the weight that an endless multiple of the identity violates


def survey(blocks: Iterator[tuple[int, Block]], argument: None) -> Survey:
    """Count a partition, and check all of it."""
    n, weight, zero, infinity = 0, 0.0, 0.0, 0.0
    for _, block in blocks:
        n += block.n
        weight += float(block.weight.sum())
        zero += float(block.weight[block.sign < 0].sum())
        grows = block.differs()
        infinity += float(block.weight[grows == (block.sign > 0)].sum())
    return Survey(n, weight, zero, infinity)


def count_rows(blocks: Iterator[tuple[int, Block]], argument: None) -> int:
    """How many constraints a partition has."""
    return sum(block.n for _, block in blocks)


def take(blocks: Iterator[tuple[int, Block]], wanted: Ints) -> ConstraintSet | None:
    """The constraints with these ascending numbers."""
    found = []
    for first, block in blocks:
        a, b = np.searchsorted(wanted, [first, first + block.n])
        if a < b:
            found.append(block.take(wanted[a:b] - first))
    return join(*found) if found else None


def cost(blocks: Iterator[tuple[int, Block]], stack: Floats) -> Floats:
    """The weight that each metric violates: (k,)."""
    total = np.zeros(len(stack))
    for _, block in blocks:
        for k, A in enumerate(stack):
            total[k] += is_violated(block.values(A), block.sign, block.bound) @ block.weight
    return total


def broken(blocks: Iterator[tuple[int, Block]], argument: tuple[Floats, Floats]) -> Floats:
    """Weights by kind and place among the ascending scales: (2, k + 1); see ``ray.broken_from_places``."""
    A, scales = argument
    places = np.zeros((2, len(scales) + 1))
    for _, block in blocks:
        places += flip_places(block.values(A), block.sign, block.bound, block.weight, scales)
    return places


def worst(
    blocks: Iterator[tuple[int, Block]], argument: tuple[Sequence[tuple[Floats, Sample]], int]
) -> list[Worst | None]:
    """For each metric and sample, the most violated constraints of the sample; None where there are none."""
    requests, count = argument
    found: list[Worst | None] = [None] * len(requests)
    for first, block in blocks:
        for k, (A, sample) in enumerate(requests):
            found[k] = _worse(found[k], first, block, A, sample, count)
    return found


def _worse(
    known: Worst | None, first: int, block: Block, A: Floats, sample: Sample, count: int
) -> Worst | None:
    """The worst of those known and those of a block."""
    values = block.values(A)
    by = excess(values, block.sign, block.bound)
    wrong = is_violated(values, block.sign, block.bound)
    if known is not None and len(known[0]) == count:
        wrong &= by > known[1][-1]  # a tie would lose: its number is higher
    rows = np.flatnonzero(wrong)
    rows = rows[np.argsort(-by[rows], kind="stable")]
    members = _first_members(rows, first, sample, count)
    if not len(members):
        return known
    new = members + first, by[members], block.take(members)
    if known is None:
        return new
    return merge_worst([known, new], count)


def _first_members(rows: Ints, first: int, sample: Sample, count: int) -> Ints:
    """The first ``count`` of these rows that are in the sample, looking no further than need be."""
    found: list[Ints] = []
    start, size = 0, int(count * sample.n / max(1, sample.size)) + count
    while start < len(rows) and sum(map(len, found)) < count:
        some = rows[start : start + size]
        found.append(some[sample.contains(some + first)])
        start, size = start + size, 2 * size
    return np.concatenate(found)[:count] if found else np.empty(0, dtype=np.int64)


def merge_worst(parts: Sequence[Worst | None], count: int) -> Worst | None:
    """The worst of several partitions, worst first, ties to the lower number."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    index = np.concatenate([part[0] for part in known])
    excess = np.concatenate([part[1] for part in known])
    order = np.lexsort((index, -excess))[:count]
    rows = join(*(part[2] for part in known)).take(order)
    return index[order], excess[order], rows
