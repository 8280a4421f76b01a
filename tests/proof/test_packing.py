"""Packings of contradictions: bounds for four features and more, and for labels of points."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from tests.proof.test_certification import instances, noisy
from tests.property.test_planted_bounds import planted

from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.proof import CertificateError, Proof, certify
from lptml.proof.certification import packed
from lptml.proof.contradictions import Contradiction, Separation
from lptml.proof.packing import PackingSearch
from lptml.proof.verify import contradicts, feature_exponents, rounded_up
from lptml.refine import refine


def pack(constraints, rounds=30):
    """A packing of any number of features, cells or not."""
    search = PackingSearch(constraints)
    metrics = [A for _ in range(rounds) for A in search.step(np.inf)[0]]
    return search, metrics


@pytest.mark.parametrize(("d", "seeds"), [(2, range(1, 40, 4)), (3, range(1, 50, 8))])
def test_no_bound_above_the_optimum_of_enumeration(d, seeds):
    shares = []
    for pairs, optimum in instances(d, seeds):
        search, metrics = pack(pairs, 15)
        assert search.lower_bound <= optimum
        assert packed(*search.best).proven(pairs) >= search.lower_bound
        assert optimum <= min((pairs.best_scale(A).cost for A in metrics), default=np.inf) or d == 3
        shares.append(search.lower_bound / optimum if optimum else 1.0)
    assert np.mean(shares) >= 0.8


@pytest.mark.parametrize("seed", range(3))
def test_few_wrong_pairs_of_four_features_are_proven(seed):
    pairs = noisy(200, 4, share=0.04, seed=seed)
    certified = certify(pairs, time_limit=60.0)
    assert certified.proof is Proof.OPTIMAL
    assert 4 < certified.lower_bound == certified.cost == pairs.cost(certified.A) <= 8
    assert certified.verify() >= certified.lower_bound


def test_no_bound_above_the_cost_of_any_metric_that_is_met():
    pairs = noisy(300, 5, share=0.2)
    costs = []
    certified = certify(pairs, np.eye(5), time_limit=2.0, callback=lambda bound, cost: costs.append(cost))
    refine(pairs, callback=lambda cost, A: costs.append(pairs.cost(A)))
    assert 5 < certified.lower_bound <= min(costs)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_no_bound_above_the_cost_of_a_planted_metric(seed):
    constraints, A = planted(seed)
    search, _ = pack(constraints, 3)
    assert search.lower_bound <= constraints.cost(A)
    assert packed(*search.best).proven(constraints) >= search.lower_bound


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_contradictions_of_one_lower_bound_are_points_inside_a_hull(seed):
    """Against Qhull: w contradicts upper bounds just if it lies inside the hull of their vectors."""
    rng = np.random.default_rng(seed)
    V, w = rng.normal(size=(6, 3)), rng.normal(size=3) * 0.5
    faces = ConvexHull(np.vstack([V, -V])).equations
    inside = (faces[:, :3] @ w + faces[:, 3]).max()
    pairs = ConstraintSet.from_differences(np.vstack([V, w]), [1] * 6 + [-1], bounds=(1.0, 1.0))
    found = list(Separation(pairs, 0).in_hulls(np.zeros(7), np.inf))
    if abs(inside) > 1e-3:
        assert bool(found) == (inside < 0)
    for each in found:
        assert 6 in each.members
        assert len(each.members) <= 4


def test_exact_and_rounded_checks_agree():
    pairs = noisy(150, 4, share=0.1)
    exponents = feature_exponents(pairs)
    search, _ = pack(pairs, 5)
    for each in search.found:
        members = pairs.take(each.members)
        assert contradicts(members, each.multipliers, exponents)
        assert not contradicts(members, np.where(members.sign > 0, 0.0, each.multipliers), exponents)
        gap = float(-(members.sign * members.bound) @ each.multipliers)
        upper = members.sign > 0
        more = each.multipliers + np.where(upper, 1.01 * gap / (upper.sum() * members.bound), 0.0)
        assert not contradicts(members, more, exponents)  # nothing is left of the gap


def test_rounding_decides_nothing():
    """w = a + b up to its last bit: whether l is above 2 decides, not the bit."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3))
    for l, expected in ((2.001, True), (1.999, False)):
        pairs = ConstraintSet.from_differences([a, b, a + b], [1, 1, -1], bounds=(1.0, l))
        found = list(Separation(pairs, 0).in_hulls(np.zeros(3), np.inf))
        assert bool(found) is expected


def test_points_that_coincide_contradict_by_themselves():
    V = np.vstack([np.zeros((2, 4)), np.eye(4)])
    pairs = ConstraintSet.from_differences(V, [-1, 1, 1, -1, 1, -1], bounds=(1.0, 1.0))
    certified = certify(pairs)
    assert certified.lower_bound == certified.cost == 1.0


def test_triplets_that_contradict_each_other():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3, 4))
    both = np.concatenate([points, points[:5, [0, 2, 1]]])
    triplets = ConstraintSet.from_triplets(both)
    certified = certify(triplets, time_limit=3.0)
    assert 5 <= certified.lower_bound <= certified.cost
    assert certified.verify() >= certified.lower_bound


def test_weights_are_shared():
    V = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    pairs = ConstraintSet.from_differences(V, [1, -1, -1], bounds=(1.0, 2.0), weight=[2.5, 1.0, 1.0])
    certified = certify(pairs)
    assert certified.lower_bound == certified.cost == 2.0


def test_resuming_keeps_what_was_proven():
    pairs = noisy(400, 4, share=0.1)
    first = certify(pairs, np.eye(4), callback=lambda bound, cost: bound > 10)
    again = certify(pairs, resume=first, time_limit=0.5)
    assert again.lower_bound >= first.lower_bound > 10


def test_false_packings_are_found_out():
    pairs = noisy(200, 4, share=0.05)
    certified = certify(pairs, time_limit=5.0)
    true = certified.certificate
    for change in (
        {"shares": 2 * true.shares},
        {"multipliers": np.ones_like(true.multipliers)},
        {"multipliers": -true.multipliers},
        {"members": true.members[::-1].copy()},
        {"members": true.members + pairs.n},
        {"starts": true.starts[:-1]},
        {"shares": -true.shares},
    ):
        with pytest.raises(CertificateError):
            replace(certified, certificate=replace(true, **change)).verify()


def test_sums_are_rounded_to_what_can_be_paid():
    assert rounded_up(Fraction(0), np.ones(3)) == 0.0
    assert rounded_up(Fraction(10, 3), np.ones(3)) == 4.0
    assert rounded_up(Fraction(0.3), np.full(9, 0.25)) == 0.5


def test_an_empty_packing_proves_nothing():
    assert packed([], np.zeros(0)).proven(noisy(20, 4)) == 0.0


def test_a_contradiction_needs_all_its_members():
    search, _ = pack(noisy(150, 4, share=0.1), 5)
    pairs = search.separation.constraints
    irreducible = 0
    for each in search.found[:20]:
        assert isinstance(each, Contradiction)
        rest = each.members[1:]
        irreducible += pairs.take(rest).cost(refine(pairs.take(rest), steps=50).A) == 0
    assert irreducible >= 15


def test_time_limits_of_many_features():
    """No clock is asserted: with a limit that exact solves do not fit in, none is begun."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 45))
    pairs = LabelledPairs.from_labels(X, rng.integers(2, size=60), bounds=(1.0, 1.0))
    separation = Separation(pairs.take(np.arange(pairs.n)), 0)
    assert separation.solve_seconds > 1.0
    certified = certify(pairs, np.eye(45), time_limit=0.2)
    assert certified.verify() >= certified.lower_bound >= 0


def test_an_exact_solve_ends_at_the_deadline():
    pairs = noisy(150, 4, share=0.1)
    separation, every = Separation(pairs, 0), np.arange(pairs.n)
    assert separation.among(every, np.random.default_rng(0), np.inf)[0] is not None
    assert separation.among(every, np.random.default_rng(0), 0.0) == (None, None)
