"""No bound lies above the cost of a metric: systems that a planted metric meets with equality, or nearly.

Each constraint is made tight under a metric that is known, then moved by up to a few tolerances, so that
what contradicts what is decided within the tolerance by which violations are counted.
"""

from __future__ import annotations

import numpy as np
import pytest

from lptml.constraints import TOLERANCE, ConstraintSet, Floats
from lptml.proof import Certified, certify
from lptml.refine.polish import polish

KINDS = ("pairs", "triplets", "quadruplets")


def planted(seed: int) -> tuple[ConstraintSet, Floats]:
    """A tight system and its metric: one to four features, any rank, condition numbers up to 1e6."""
    rng = np.random.default_rng([22, seed])
    d = int(rng.integers(1, 5))
    n = int(rng.integers(2, 3 * d * (d + 1) // 2 + 6))
    G = rng.normal(size=(int(rng.integers(1, d + 1)), d)) * 10.0 ** rng.uniform(-1.5, 1.5, d)
    if seed % 2:
        G = G @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    # Off its bound by this: not at all, less than the tolerance, around it, or clearly.
    off = rng.uniform(-1, 1, n) * (0.0, 0.9 * TOLERANCE, 3 * TOLERANCE)[int(rng.integers(3))]
    off = np.where(rng.random(n) < (seed % 3) * 0.1, rng.uniform(-0.5, 0.5, n), off)
    weight = rng.integers(1, 4, n).astype(float) if seed % 5 == 0 else None
    near, far = rng.normal(size=(2, n, d))
    kind = KINDS[int(rng.integers(3))]
    if kind == "pairs":
        y = rng.choice([-1, 1], n)
        u, l = 1.0, float(rng.choice([1.0, 1.0 + 4e-8, 1.0 + 2e-7]))
        target = np.where(y > 0, u * u, l * l) * (1 + off)
        V = near * np.sqrt(target / ((near @ G.T) ** 2).sum(axis=1))[:, None]
        return ConstraintSet.from_differences(V, y, bounds=(u, l), weight=weight), G.T @ G
    squares = ((near @ G.T) ** 2).sum(axis=1)
    far *= np.sqrt((squares + 1 + off) / ((far @ G.T) ** 2).sum(axis=1))[:, None]
    zero = np.zeros((n, d))
    if kind == "triplets":
        return ConstraintSet.from_triplets(np.stack([zero, near, far], axis=1), weight=weight), G.T @ G
    four = np.stack([zero, near, zero, far], axis=1)
    return ConstraintSet.from_quadruplets(four, weight=weight), G.T @ G


def certified(seed: int) -> Certified:
    """The bound of a planted system, after it was compared with every metric at hand."""
    constraints, A = planted(seed)
    found = certify(constraints, np.zeros_like(A), time_limit=1.0)
    metrics = [A, found.A, polish(constraints, A, rounds=3)]
    assert found.lower_bound <= min(constraints.cost(metric) for metric in metrics)
    assert found.verify() >= found.lower_bound
    return found


def test_no_bound_above_the_cost_of_a_planted_metric():
    bounds = [certified(seed).lower_bound for seed in range(30, 60)]
    assert sum(bound > 0 for bound in bounds) >= 2  # systems that contradict themselves clearly are bounded


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_no_bound_above_the_cost_of_a_thousand_planted_metrics(first):
    for seed in range(first, first + 50):
        certified(seed)


@pytest.mark.parametrize(
    ("l", "bound"), [(1.0 + 4e-8, 0.0), (1.0 + 0.9e-7, 0.0), (1.0 + 1.1e-7, 1.0), (1.01, 1.0)]
)
def test_a_contradiction_within_the_tolerance_is_none(l, bound):
    constraints = ConstraintSet.from_differences([[1.0], [1.0]], [+1, -1], bounds=(1.0, l))
    found = certify(constraints)
    assert found.lower_bound == bound == found.cost
