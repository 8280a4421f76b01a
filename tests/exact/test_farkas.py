"""Repairs of multipliers that are no certificate yet: what is empty or has overflowed has none."""

import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.exact.farkas import facial, repairs
from lptml.exact.sdp import solve_basis
from lptml.exact.solution import Status

U = np.array([[1.0, 0.0], [0.0, 1.0]])
SIGN = np.array([1.0, -1.0])
NONE = np.empty((0, 2, 2))


@pytest.mark.parametrize("y", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_multipliers_that_do_not_count_have_no_repair(y):
    assert list(repairs(U, SIGN, NONE, np.array(y), np.eye(2))) == []


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_what_overflowed_has_no_repair(broken):
    y = np.ones(2)
    assert list(repairs(U, SIGN, NONE, y, np.full((2, 2), broken))) == []
    assert list(repairs(np.full((2, 2), broken), SIGN, NONE, y, np.eye(2))) == []
    assert list(repairs(U, SIGN, np.full((1, 2, 2), broken), np.ones(3), np.eye(2))) == []


def test_an_empty_support_gives_no_multipliers():
    assert not facial(U, SIGN, NONE, np.zeros(2), np.eye(2)).any()


@pytest.mark.parametrize("seed", range(12))
def test_triplets_in_many_units_have_a_status(seed):
    rng = np.random.default_rng(seed)
    units = np.array([1e-6, 1e-2, 1e2, 1e6])
    triplets = ConstraintSet.from_triplets(rng.normal(size=(12, 3, 4)) * units)
    solution = solve_basis(triplets, np.eye(4))
    assert solution.status in Status
    assert np.isfinite(solution.A).all()
