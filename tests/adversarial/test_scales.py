"""Features, bounds, weights and penalties in any units: a metric of finite numbers, or a ValueError."""

from __future__ import annotations

import numpy as np
import pytest

from lptml import LPTML, LPTML_Quadruplets, LPTML_Triplets
from lptml.constraints import ConstraintSet
from lptml.lower_bounds import certify

UNITS = np.array([1e-6, 1e-2, 1e2, 1e6])
FAST = {"max_trials": 20, "random_state": 0}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("learner", "size"), [(LPTML, 2), (LPTML_Triplets, 3), (LPTML_Quadruplets, 4)])
def test_features_in_different_units(learner, size, seed):
    rng = np.random.default_rng(seed)
    tuples = rng.normal(size=(40, size, 4)) * UNITS
    y = [rng.choice([-1, 1], 40)] if size == 2 else []
    fitted = learner(**FAST).fit(tuples, *y)
    assert np.isfinite(fitted.components_).all()
    assert 0 <= fitted.violation_rate_ <= 1


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_features_in_different_units(seed):
    rng = np.random.default_rng(seed)
    triplets = ConstraintSet.from_triplets(rng.normal(size=(40, 3, 4)) * UNITS)
    found = certify(triplets, time_limit=0.2)
    assert 0 <= found.lower_bound <= found.cost


@pytest.mark.parametrize("bounds", [(1e-200, 1e-200), (1e-100, 1e-100), (1e100, 1e100), (1e200, 1.0)])
def test_bounds_of_any_size(bounds):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(30, 2, 2)), rng.choice([-1, 1], 30)
    if min(bounds) < 1e-100 or max(bounds) > 1e100:
        with pytest.raises(ValueError, match="bounds"):
            LPTML(bounds=bounds, **FAST).fit(pairs, y)
    else:
        assert np.isfinite(LPTML(bounds=bounds, **FAST).fit(pairs, y).components_).all()


@pytest.mark.parametrize("regularization", [1e-300, 1e-100, 1e100, 1e150])
def test_penalties_of_any_size(regularization):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(30, 2, 2)), rng.choice([-1, 1], 30)
    fitted = LPTML(regularization=regularization, **FAST).fit(pairs, y)
    assert np.isfinite(fitted.components_).all()
    with pytest.raises(ValueError, match="regularization"):
        LPTML(regularization=1e300, **FAST).fit(pairs, y)
