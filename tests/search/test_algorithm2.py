"""Algorithm 2 on one screen is what every engine runs: the same metric, bit for bit."""

import numpy as np
import pytest

from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.engines.local import LocalEngine
from lptml.search import algorithm2, search


def noisy_pairs(seed: int, d: int) -> ConstraintSet:
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(300, d)) * (1.0 + 9.0 * np.arange(d))
    y = np.where(abs(V[:, 0]) < 0.7, 1, -1) * np.where(rng.random(300) < 0.1, -1, 1)
    return ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))


@pytest.mark.parametrize("engine", [LocalEngine(1), LocalEngine(2), LocalEngine(2, backend="processes")])
@pytest.mark.parametrize("objective", ["trace", "random", "prior"])
def test_the_search_on_an_engine_is_algorithm2(engine: LocalEngine, objective: str) -> None:
    F = noisy_pairs(0, d=3)
    best = algorithm2(F, t=60, seed=7, objective=objective)
    found = search(F, max_trials=60, random_state=7, objective=objective, engine=engine)
    np.testing.assert_array_equal(found.A, best.metric)
    assert (found.cost, found.trial) == (best.cost, best.trial)


@pytest.mark.parametrize("eps", [0.2, 0.5, 2.0])
def test_every_grid_of_probabilities(eps: float) -> None:
    F = noisy_pairs(1, d=2)
    best = algorithm2(F, t=50, eps=eps)
    np.testing.assert_array_equal(search(F, max_trials=50, epsilon=eps, random_state=0).A, best.metric)


def test_its_cost_is_a_plain_count() -> None:
    F = noisy_pairs(2, d=3)
    best = algorithm2(F, t=80)
    distance = np.einsum("ij,jk,ik->i", F.V, best.metric, F.V)
    violated = np.where(F.sign > 0, distance > 1 + 1e-6, distance < 1 - 1e-6)
    assert violated.sum() == best.cost
    assert best.trial >= 0  # a trial beats every multiple of the identity here


def test_pairs_of_labelled_points_are_never_stored() -> None:
    X = np.random.default_rng(3).normal(size=(40, 2)) * [1.0, 30.0]
    y = X[:, 0] > 0
    stored = LabelledPairs.from_labels(X, y, bounds=(1.0, 1.0))
    implied = LabelledPairs.from_labels(X, y, bounds=(1.0, 1.0))
    assert algorithm2(stored, t=30).cost == algorithm2(implied, t=30).cost
