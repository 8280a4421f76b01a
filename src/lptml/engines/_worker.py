"""What runs in the processes of a cluster."""

from __future__ import annotations

from typing import Any

from lptml._threads import single_threaded
from lptml.engines._blocks import PointTable
from lptml.engines._passes import Part, Task
from lptml.search.trial import SearchProblem, Unit, UnitResult, run_unit


def on_one_core(problem: SearchProblem, unit: Unit) -> UnitResult:
    """Run a unit with the linear algebra library held to one thread: the other cores have their own units."""
    with single_threaded():
        return run_unit(problem, unit)


def pass_on_one_core(part: Part, task: Task, table: PointTable | None) -> Any:
    """Run a pass over a partition, on one thread as well."""
    with single_threaded():
        return task.run(part, table)
