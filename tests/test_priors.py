"""Closed forms of starting metrics."""

from __future__ import annotations

import numpy as np
import pytest

from lptml.priors import discriminant
from lptml.scatter import WithinClass


@pytest.mark.parametrize("classes", [3, 4, 5, 500])
def test_directions_that_separate_classes_are_stretched_alike(classes):
    rng = np.random.default_rng(0)
    centres = np.zeros((classes, 4))
    centres[:, 1:3] = rng.normal(size=(classes, 2)) * [1.0, 50.0]
    spread = np.array([1.0, 4.0, 9.0, 16.0])
    L = discriminant(
        WithinClass(centres, np.diag(spread), np.ones(1)),
        np.array([1.0, 1.0, 1.0, 2.0]),
        np.full(classes, 1.0 / classes),
        rest=0.4,
    )
    expected = np.diag((np.array([0.0, 0.5, 0.5, 0.0]) + 0.1) / spread / [1.0, 1.0, 1.0, 4.0])
    np.testing.assert_allclose(L.T @ L, expected, rtol=1e-9, atol=1e-12)
