"""Exact-LPTML, the paper's Algorithm 1: satisfy every constraint of a sample, or prove that no metric does.

The second step of the flow, between the constraints and the search. ``algorithm1`` is the algorithm,
``sdp`` solves its basis problem, ``verify`` is the independent check of every answer.
"""

from lptml.exact.algorithm1 import (
    ExactResult,
    Instance,
    basis_computation,
    exact_lptml,
    initial_basis,
    violation_test,
)
from lptml.exact.objectives import Objective, make_objective
from lptml.exact.solution import Status

__all__ = [
    "ExactResult",
    "Instance",
    "Objective",
    "Status",
    "basis_computation",
    "exact_lptml",
    "initial_basis",
    "make_objective",
    "violation_test",
]
