"""Lower bounds: never above the optimum, proven by certificates that hold, tight on small instances."""

import time
from dataclasses import replace

import numpy as np
import pytest
from tests import oracle

from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.refine.lower_bounds import Proof, certify
from lptml.refine.polish import enumerate_metrics


def instances(d, seeds):
    known = oracle.cached()
    for seed in seeds:
        V, y, bounds, name = oracle.instance(d, seed)
        if name in known:
            yield ConstraintSet.from_differences(V, y, bounds=bounds), known[name]


@pytest.mark.parametrize(("d", "seeds"), [(2, range(1, 120, 12)), (3, range(1, 50, 8))])
def test_bounds_at_ten_percent_flipped_labels(d, seeds):
    """At least half of the optimum on average is asked for; the covers prove nearly all of it."""
    shares = []
    for pairs, optimum in instances(d, seeds):
        certified = certify(pairs, time_limit=20.0)
        assert certified.lower_bound <= optimum <= certified.cost
        assert certified.cost == pairs.cost(certified.A)
        assert certified.verify(pairs) == pytest.approx(certified.packing_bound)
        assert certified.packing_bound <= optimum + 1e-9
        shares.append(1.0 if optimum == 0 else certified.lower_bound / optimum)
    assert len(shares) >= 5
    assert np.mean(shares) >= 0.9


def test_optimality_is_proven_when_bound_and_cost_meet():
    pairs, optimum = next(instances(2, [1]))
    certified = certify(pairs, enumerate_metrics(pairs, np.zeros((2, 2))))
    assert certified.proof is Proof.OPTIMAL
    assert certified.lower_bound == certified.cost == optimum
    assert certified.gap == 0.0


def test_subsystems_contradict_themselves():
    pairs, _ = next(instances(2, [10]))
    certified = certify(pairs, time_limit=1.0)
    for subsystem in certified.subsystems:
        assert 2 <= len(subsystem.constraints) <= pairs.D + 1
        assert subsystem.gap > 0
        members = pairs.take(subsystem.constraints)
        best = enumerate_metrics(members, np.zeros((2, 2))) if members.n >= 3 else np.zeros((2, 2))
        assert members.cost(best) >= 1.0


def test_weights_count():
    V = np.array([[1.0], [1.0], [1.0]])
    pairs = ConstraintSet.from_differences(V, [1, -1, -1], bounds=(1.0, 2.0), weight=[2.5, 1.0, 1.0])
    certified = certify(pairs)
    assert certified.lower_bound == pytest.approx(2.0)
    assert certified.cost == pytest.approx(2.0)


def test_constraints_without_weight_prove_nothing():
    V = np.array([[1.0], [1.0], [1.0]])
    pairs = ConstraintSet.from_differences(V, [1, -1, -1], bounds=(1.0, 2.0), weight=[1.0, 0.0, 0.5])
    certified = certify(pairs)
    assert certified.lower_bound == pytest.approx(0.5)
    assert all(1 not in subsystem.constraints for subsystem in certified.subsystems)


def test_feasible_constraints_have_no_bound():
    pairs = ConstraintSet.from_differences([[1.0, 0.0], [0.0, 1.0]], [1, -1], bounds=(1.0, 2.0))
    certified = certify(pairs, np.eye(2))
    assert (certified.lower_bound, certified.cost, certified.subsystems) == (0.0, 0.0, ())
    assert certified.proof is Proof.OPTIMAL


def test_more_constraints_than_one_program_takes():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(400, 2))
    y = np.where(np.abs(V[:, 0]) < 0.7, 1, -1)
    y[:10] *= -1
    pairs = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
    certified = certify(pairs, time_limit=20.0)
    assert 3 <= certified.lower_bound <= min(certified.cost, 10)  # ten verdicts were turned round
    certified.verify(pairs)


def test_time_limit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    pairs = LabelledPairs.from_labels(X, rng.integers(2, size=60), bounds=(1.0, 1.0))
    certify(pairs, time_limit=0.0)
    began = time.monotonic()
    certified = certify(pairs, time_limit=0.5)
    assert time.monotonic() - began < 5.0
    assert certified.proof is Proof.BOUNDED
    assert 0 < certified.lower_bound < certified.cost


def test_false_proofs_are_found_out():
    pairs, _ = next(instances(2, [1]))
    certified = certify(pairs)
    with pytest.raises(ValueError, match="packing"):
        replace(certified, packing=2 * certified.packing).verify(pairs)
    wrong = replace(certified.subsystems[0], multipliers=-certified.subsystems[0].multipliers)
    with pytest.raises(ValueError, match="certificate"):
        replace(certified, subsystems=(wrong, *certified.subsystems[1:])).verify(pairs)


def test_callback_stops():
    pairs, _ = next(instances(2, [10]))
    seen = []
    certify(pairs, time_limit=5.0, callback=lambda bound, cost: seen.append((bound, cost)) or True)
    assert len(seen) == 1


@pytest.mark.parametrize("options", [{"time_limit": -1.0}])
def test_bad_options_are_named(options):
    pairs, _ = next(instances(2, [1]))
    with pytest.raises(ValueError, match="time_limit"):
        certify(pairs, **options)


def test_large_sources_are_bounded_by_a_sample_of_them(monkeypatch):
    monkeypatch.setattr("lptml.refine.lower_bounds._LISTED", 60)
    rng = np.random.default_rng(0)
    V = rng.normal(size=(400, 2))
    y = np.where(np.abs(V[:, 0]) < 0.7, 1, -1)
    y[::5] *= -1
    pairs = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
    certified = certify(pairs, time_limit=1.0)
    assert 1 <= certified.lower_bound <= certified.cost == pairs.cost(certified.A)
    assert certified.verify(pairs) == pytest.approx(certified.packing_bound)


def test_random_quadruplets_are_certified_within_the_time_limit():
    """Their matrices have rank two and no definite sign: once this took minutes."""
    rng = np.random.default_rng(3)
    four = rng.normal(size=(60, 4, 3))
    constraints = ConstraintSet.from_quadruplets(four, margin=0.5)
    found = certify(constraints, np.eye(3), time_limit=1.0, random_state=0)
    assert 0 <= found.lower_bound <= constraints.cost(np.eye(3))
    assert found.seconds < 30
