"""Clarabel behind our interface: a panic is a failed solve, an interrupt is an interrupt."""

import clarabel
import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.exact.sdp import solve_basis
from lptml.exact.solution import Status

PAIRS = ConstraintSet.from_differences([[1.0, 0.0], [0.0, 1.0]], [1, -1], bounds=(1.0, 2.0))


class PanicException(BaseException):
    """As pyo3 raises it: no ``Exception``."""


def solver_that_raises(error, after=0):
    """A stand-in for Clarabel's solver that answers a few times first."""
    real, calls = clarabel.DefaultSolver, []

    def build(*arguments):
        calls.append(arguments)
        if len(calls) > after:
            raise error
        return real(*arguments)

    return build


@pytest.mark.parametrize("after", [0, 1])
def test_a_panic_is_a_failed_solve(monkeypatch, after):
    clash = ConstraintSet.from_differences([[1.0], [1.0]], [1, -1], bounds=(1.0, 2.0))
    monkeypatch.setattr(clarabel, "DefaultSolver", solver_that_raises(PanicException("Eigval"), after))
    solution = solve_basis(clash, np.eye(1), solver="clarabel")
    assert solution.status is Status.FAILED
    assert solution.certificate is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_everything_else_is_passed_on(monkeypatch, error):
    monkeypatch.setattr(clarabel, "DefaultSolver", solver_that_raises(error()))
    with pytest.raises(error):
        solve_basis(PAIRS, np.eye(2), solver="clarabel")


@pytest.mark.parametrize("seed", [24, 25, 27])
def test_pairs_that_make_clarabel_panic_have_a_status(seed):
    """Thirty pairs, tight under a metric of rank three up to 1e-8, features in different units."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(30, 4)) * 10.0 ** rng.uniform(-3, 3, 4)
    V /= np.sqrt(((V @ rng.normal(size=(3, 4)).T) ** 2).sum(axis=1))[:, None]
    V *= 1 + 1e-8 * rng.normal(size=(30, 1))
    tight = ConstraintSet.from_differences(V, rng.choice([-1, 1], 30), bounds=(1.0, 1.0))
    assert solve_basis(tight, np.eye(4), solver="clarabel").status in Status
