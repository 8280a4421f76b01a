"""Exact-LPTML: all strategies agree, bases and infeasible subsystems are minimal, large sets are sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.constraints.scaling import feature_scale
from lptml.exact import (
    ExactResult,
    Instance,
    basis_computation,
    exact_lptml,
    initial_basis,
    make_objective,
    violation_test,
)
from lptml.exact import algorithm1 as exact
from lptml.exact.sdp import solve_basis
from lptml.exact.solution import Status
from lptml.exact.verify import verify_certificate

STRATEGIES = ("multi", "pivot", "mtf", "plain")


def split_pairs(seed, d, n, *, wrong=0.0, ratio=1.0):
    """Pairs told apart by a random metric, a share of them with the wrong label."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((d, d))
    V = rng.standard_normal((n, d))
    squared = ((V @ G) ** 2).sum(axis=1)
    threshold = np.sqrt(np.median(squared))
    y = np.where(squared <= threshold**2, 1, -1)
    y = np.where(rng.random(n) < wrong, -y, y)
    return ConstraintSet.from_differences(V, y, bounds=(ratio * threshold, threshold))


def check_result(F: ConstraintSet, result: ExactResult, extra: int = 0) -> None:
    if result.status is Status.OPTIMAL:
        assert not F.violated(result.A).any()
        assert len(result.basis) <= F.D + extra
        assert len(result.infeasible_subsystem) == 0
    else:
        assert result.status is Status.INFEASIBLE
        assert result.objective == np.inf
        assert len(result.basis) == 0
        assert 1 <= len(result.infeasible_subsystem) <= F.D + 1 + extra
        if not extra:
            assert verify_certificate(F.take(result.infeasible_subsystem), result.certificate.y).valid


@pytest.mark.parametrize("kind", ["random", "trace", "prior"])
@pytest.mark.parametrize("wrong", [0.0, 0.05])
def test_all_strategies_find_the_same_optimum(kind, wrong):
    for seed in range(4):
        d = 2 + seed % 3
        F = split_pairs(seed, d, 150, wrong=wrong, ratio=1.1)
        objective = make_objective(kind, d, seed)
        results = [exact_lptml(F, objective, rng=seed, strategy=strategy) for strategy in STRATEGIES]
        for result in results:
            check_result(F, result)
            assert result.status is results[0].status
            assert result.objective == pytest.approx(results[0].objective, rel=1e-6)
        if results[0].status is Status.OPTIMAL:
            everything = solve_basis(F, objective.linear_part(F, feature_scale(F)), log_det=objective.log_det)
            assert results[0].objective == pytest.approx(everything.objective, rel=1e-6)


def test_the_basis_alone_has_the_optimum_and_no_part_of_it_has():
    for seed in range(12):
        d = 1 + seed % 4
        F = split_pairs(seed, d, 60)
        objective = make_objective("random", d, seed)
        result = exact_lptml(F, objective, rng=seed)
        C0 = objective.linear_part(F, feature_scale(F))
        w = solve_basis(F.take(result.basis), C0).objective
        assert w == pytest.approx(result.objective, rel=1e-6)
        for h in result.basis:
            rest = F.take(result.basis[result.basis != h])
            assert solve_basis(rest, C0).objective < w * (1 - 1e-9)


def test_a_degenerate_basis_is_made_minimal():
    V = np.repeat(np.eye(3), 4, axis=0)
    F = ConstraintSet.from_differences(V, [-1] * 12, bounds=(1.0, 1.0))
    result = exact_lptml(F, make_objective("trace", 3), rng=0)
    assert len(result.basis) == 3
    assert sorted(result.basis // 4) == [0, 1, 2]
    loose = exact_lptml(F, make_objective("trace", 3), rng=0, minimal=False)
    assert loose.objective == pytest.approx(result.objective)
    assert loose.counts.solves == 1
    assert result.counts.solves > 1


def test_an_infeasible_subsystem_is_irreducible():
    for seed in range(10):
        d = 1 + seed % 4
        F = split_pairs(seed, d, 40, wrong=0.5)
        result = exact_lptml(F, make_objective("trace", d), rng=seed)
        check_result(F, result)
        core = result.infeasible_subsystem
        for h in core:
            assert solve_basis(F.take(core[core != h]), np.eye(d)).status is Status.OPTIMAL


def test_quick_mode_still_proves_infeasibility():
    F = split_pairs(1, 4, 200, wrong=0.3)
    result = exact_lptml(F, make_objective("random", 4, 0), rng=0, minimal=False)
    assert result.status is Status.INFEASIBLE
    assert verify_certificate(F.take(result.infeasible_subsystem), result.certificate.y).valid


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_regulariser(strategy):
    F = split_pairs(5, 3, 80, ratio=1.5)
    objective = make_objective("random", 3, 1)
    free = exact_lptml(F, objective, rng=0, strategy=strategy)
    least = exact_lptml(F, make_objective("random", 3, 1, tau=1e3), rng=0)
    R = np.eye(3)
    rho = 0.5 * (np.trace(free.A) + np.trace(least.A))
    result = exact_lptml(F, objective, rng=0, strategy=strategy, regularizer=R, rho=rho)
    check_result(F, result, extra=1)
    assert np.trace(result.A) <= rho * (1 + 1e-7)
    assert result.objective >= free.objective
    tiny = exact_lptml(F, objective, rng=0, strategy=strategy, regularizer=R, rho=1e-3 * rho)
    assert tiny.status is Status.INFEASIBLE
    check_result(F, tiny, extra=1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_triplets(strategy):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((120, 3, 3))
    G = rng.standard_normal((3, 3))
    near = (((points[:, 0] - points[:, 1]) @ G) ** 2).sum(axis=1)
    far = (((points[:, 0] - points[:, 2]) @ G) ** 2).sum(axis=1)
    points[near > far] = points[near > far][:, [0, 2, 1]]
    F = ConstraintSet.from_triplets(points)
    result = exact_lptml(F, make_objective("trace", 3), rng=0, strategy=strategy)
    check_result(F, result)
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_small_and_empty_sets(strategy):
    objective = make_objective("trace", 2)
    empty = ConstraintSet.from_differences(np.empty((0, 2)), [], bounds=(1.0, 1.0))
    result = exact_lptml(empty, objective, rng=0, strategy=strategy)
    assert result.status is Status.OPTIMAL
    np.testing.assert_array_equal(result.A, np.zeros((2, 2)))
    similar = ConstraintSet.from_differences(np.eye(2), [1, 1], bounds=(1.0, 1.0))
    assert exact_lptml(similar, objective, rng=0, strategy=strategy).objective == 0
    one = ConstraintSet.from_differences([[1.0, 0.0]], [-1], bounds=(1.0, 1.0))
    assert exact_lptml(one, objective, rng=0, strategy=strategy).basis.tolist() == [0]


def test_large_sets_are_sampled_first():
    F = split_pairs(3, 3, 100_000)
    objective = make_objective("random", 3, 0)
    result = exact_lptml(F, objective, rng=0)
    check_result(F, result)
    assert result.counts.violation_tests <= 8 * F.n
    again = exact_lptml(F, objective, rng=1)
    assert again.objective == pytest.approx(result.objective, rel=1e-6)


def test_the_same_generator_gives_the_same_bits():
    F = split_pairs(3, 4, 3000)
    objective = make_objective("random", 4, 0)
    first, second = (exact_lptml(F, objective, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.A, second.A)
    np.testing.assert_array_equal(first.basis, second.basis)
    assert first.counts == second.counts


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_ends_even_if_w_never_rises(monkeypatch, strategy):
    """A solver that forgets constraints would go round in circles: after a while none are dropped."""
    F = split_pairs(2, 3, 60)
    objective = make_objective("trace", 3)
    right = exact_lptml(F, objective, rng=0, strategy=strategy)
    monkeypatch.setattr(exact, "_PATIENCE", -1)
    result = exact_lptml(F, objective, rng=0, strategy=strategy, batch=3)
    assert result.objective == pytest.approx(right.objective, rel=1e-6)
    assert result.basis.tolist() == right.basis.tolist()


def test_plain_counts_the_tests_up_to_the_first_violated_constraint():
    F = split_pairs(3, 2, 700)
    trace = replace(make_objective("trace", 2), original_units=True)
    counts = exact_lptml(F, trace, rng=5, strategy="plain", minimal=False).counts
    instance = Instance(F, trace.matrix, 0.0, np.empty((0, 2, 2)), 0.0, "numba", 1e-9)
    order = np.random.default_rng(5).permutation(F.n)
    basis, solution = initial_basis(instance)
    one_by_one = 0
    while True:
        violated = F.violated(solution.A)[order]
        one_by_one += int(violated.argmax()) + 1 if violated.any() else F.n
        if not violated.any():
            break
        basis, solution = basis_computation(instance, basis, order[[violated.argmax()]])
    assert counts.violation_tests == one_by_one
    assert counts.basis_computations == instance.counts.basis_computations > 2


def test_heuristics_save_work():
    F = split_pairs(8, 4, 2000)
    objective = make_objective("trace", 4)
    solves = {
        strategy: exact_lptml(F, objective, rng=2, strategy=strategy, minimal=False).counts.solves
        for strategy in STRATEGIES
    }
    assert solves["multi"] < solves["pivot"] < solves["plain"]


def test_the_basic_operations_by_hand():
    F = ConstraintSet.from_differences([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [-1, -1, 1], bounds=(1.0, 1.0))
    instance = Instance(F, np.eye(2), 0.0, np.empty((0, 2, 2)), 0.0, "numba", 1e-9)
    basis, solution = initial_basis(instance)
    assert len(basis) == 0
    np.testing.assert_array_equal(violation_test(instance, solution.A), [1.0, 1.0, -1.0])
    basis, solution = basis_computation(instance, basis, np.array([0]))
    assert basis.tolist() == [0]
    assert violation_test(instance, solution.A, np.array([1])) == pytest.approx([0.75])
    basis, solution = basis_computation(instance, basis, np.array([1]))
    assert basis.tolist() == [1]  # the old basis is slack now
    assert instance.counts.basis_computations == 2
    assert instance.counts.violation_tests == 4


def test_prior_without_active_constraints_is_the_prior():
    prior = np.array([[2.0, 0.3], [0.3, 1.0]])
    F = ConstraintSet.from_differences([[0.1, 0.0], [9.0, 9.0]], [1, -1], bounds=(1.0, 1.0))
    result = exact_lptml(F, make_objective("prior", 2, prior=prior), rng=0)
    np.testing.assert_allclose(result.A, prior, rtol=1e-6)
    assert len(result.basis) == 0


def test_objectives_do_not_depend_on_units():
    F = split_pairs(4, 3, 50)
    scale = np.array([1e-3, 1.0, 1e3])
    G = ConstraintSet(F.V * scale, None, F.sign, F.bound, F.weight)
    for kind in ("random", "trace", "prior"):
        objective = make_objective(kind, 3, 0)
        A = exact_lptml(F, objective, rng=0).A
        B = exact_lptml(G, objective, rng=0).A
        np.testing.assert_allclose(B * scale[:, None] * scale, A, rtol=1e-4, atol=1e-6 * np.abs(A).max())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "simplex"}, "strategy"),
        ({"batch": 0}, "batch"),
        ({"regularizer": np.eye(2)}, "go together"),
        ({"regularizer": np.eye(3), "rho": 1.0}, "shape"),
        ({"objective": make_objective("trace", 3)}, "3 features"),
        ({"solver": "mosek"}, "solver"),
    ],
)
def test_invalid_arguments(options, message):
    F = ConstraintSet.from_differences([[1.0, 0.0]], [-1], bounds=(1.0, 1.0))
    options = {"objective": make_objective("trace", 2), **options}
    with pytest.raises(ValueError, match=message):
        exact_lptml(F, **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("volume", 2), "one of"),
        (("random", 2, 0, np.eye(2)), "prior"),
        (("prior", 2, 0, np.diag([1.0, 0.0])), "positive definite"),
        (("prior", 2, 0, np.eye(3)), "shape"),
        (("random", 2, 0, None, 0.0), "tau"),
    ],
)
def test_invalid_objectives(arguments, message):
    kind, d, *rest = arguments
    rng, prior, tau = [*rest, None, None, None][:3]
    options = {} if tau is None else {"tau": tau}
    with pytest.raises(ValueError, match=message):
        make_objective(kind, d, rng, prior=prior, **options)
