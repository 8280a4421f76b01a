"""What Exact-LPTML minimises does not depend on the units of features and bounds."""

import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.exact import exact_lptml, make_objective

V = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(abs(V[:, 0]) < 0.7, 1, -1)


def learned(kind, size=1.0, scale=1.0, **options):
    pairs = ConstraintSet.from_differences(V * scale, Y, bounds=(1.2 * size, 0.3 * size))
    return exact_lptml(pairs, make_objective(kind, 3, **options), rng=0).A


@pytest.mark.parametrize("kind", ["trace", "prior"])
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_larger_bounds_give_a_larger_metric(kind, size):
    np.testing.assert_allclose(learned(kind, size) / size**2, learned(kind), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["trace", "prior"])
def test_units_of_features_do_not_matter(kind):
    scale = np.array([1e-2, 1.0, 1e3])
    A = learned(kind, scale=scale) * scale[:, None] * scale
    np.testing.assert_allclose(A, learned(kind), rtol=1e-4, atol=1e-6)


def test_without_constraints_that_bind_the_prior_is_the_answer():
    P = np.diag([1.0, 2.0, 3.0]) * 1e-3
    pairs = ConstraintSet.from_differences(V, np.ones(40), bounds=(1e3, 1e3))
    A = exact_lptml(pairs, make_objective("prior", 3, prior=P), rng=0).A
    np.testing.assert_allclose(A / A[0, 0], np.diag([1.0, 2.0, 3.0]), rtol=1e-6, atol=1e-9)
