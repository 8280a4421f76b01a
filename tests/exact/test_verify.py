"""The independent checks: they accept what is right, refuse what is not, and agree with exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.exact import exact_lptml, make_objective
from lptml.exact.sdp import solve_basis
from lptml.exact.solution import Status
from lptml.exact.verify import RADIUS, verify_certificate, verify_solution


def pairs(V, y, bounds=(1.0, 1.0)):
    return ConstraintSet.from_differences(np.atleast_2d(np.asarray(V, dtype=float)), y, bounds=bounds)


@pytest.fixture
def optimum():
    """min trace A, v'Av >= 1 for v = (2, 0): A = diag(1/4, 0), y = 1/4, Z = diag(0, 1)."""
    return pairs([[2.0, 0.0], [0.0, 1.0]], [-1, 1]), np.diag([0.25, 0.0]), np.array([0.25, 0.0])


def test_an_exact_optimum_has_no_error(optimum):
    F, A, y = optimum
    assert verify_solution(F, np.eye(2), A, y).largest == 0.0


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_each_error_is_seen_in_any_unit(optimum, unit):
    F, A, y = optimum
    F = ConstraintSet(F.V * unit, None, F.sign, F.bound, F.weight)
    A, C0 = A / unit**2, np.eye(2)
    y = y / unit**2
    assert verify_solution(F, C0, A, y).largest < 1e-12
    assert verify_solution(F, C0, 0.9 * A, y).primal == pytest.approx(0.1)
    assert verify_solution(F, C0, 1.1 * A, y).gap == pytest.approx(0.1 / 2.1)
    assert verify_solution(F, C0, A + np.diag([0, -0.01]) / unit**2, y).psd > 1e-3
    assert verify_solution(F, C0, A, 1.1 * y).dual > 1e-2
    assert verify_solution(F, C0, A, y - np.array([0, 0.01]) / unit**2).dual > 1e-3
    assert verify_solution(F, C0, A, 0.9 * y).gap == pytest.approx(0.1 / 1.9)


def test_regulariser_and_log_det_are_checked(optimum):
    F, A, y = optimum
    with_r = {"regularizer": np.eye(2), "rho": 0.2}
    assert verify_solution(F, np.eye(2), A, np.append(y, 0.0), **with_r).primal == pytest.approx(0.25)
    solution = solve_basis(F, np.eye(2), log_det=0.1)
    good = verify_solution(F, np.eye(2), solution.A, solution.dual, log_det=0.1)
    assert good.largest < 1e-7
    assert verify_solution(F, np.eye(2), solution.A, solution.dual, log_det=0.2).gap > 1e-2


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_not_a_number_never_passes(optimum, broken):
    F, A, y = optimum
    assert verify_solution(F, np.eye(2), np.full((2, 2), broken), y).largest > 1
    assert not verify_solution(F, np.eye(2), A, np.array([0.25, broken])).largest < 1
    assert not verify_certificate(F, np.array([1.0, broken])).valid


def test_certificates_that_prove_nothing():
    F = pairs([[1.0, 0.0], [1.0, 0.0]], [1, -1], bounds=(1.0, 2.0))
    assert verify_certificate(F, np.array([1.0, 1.0])).valid
    for y in ([0.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [1.0, 1.5]):
        assert not verify_certificate(F, np.array(y)).valid
    almost = pairs([[1.0, 0.0], [1.0, 1e-4]], [1, -1], bounds=(1.0, 2.0))
    check = verify_certificate(almost, np.array([1.0, 1.0]))
    assert check.gap > 0  # yet a metric of a large trace satisfies both
    assert check.radius < RADIUS
    assert not check.valid
    assert solve_basis(almost, np.eye(2)).status is Status.OPTIMAL


def semidefinite(S):
    """Whether a symmetric matrix of fractions is positive semidefinite: exact elimination."""
    S = [row[:] for row in S]
    while S:
        k = next((i for i in range(len(S)) if S[i][i] != 0), None)
        if k is None:
            return all(x == 0 for row in S for x in row)
        if S[k][k] < 0:
            return False
        S = [
            [S[i][j] - S[i][k] * S[k][j] / S[k][k] for j in range(len(S)) if j != k]
            for i in range(len(S))
            if i != k
        ]
    return True


def proves_infeasibility(V, W, sign, bound, y):
    """Farkas in rational arithmetic."""
    d = len(V[0])
    S = [[Fraction(0)] * d for _ in range(d)]
    total = Fraction(0)
    for i, weight in enumerate(y):
        if weight < 0:
            return False
        total += weight * sign[i] * bound[i]
        for p in range(d):
            for q in range(d):
                S[p][q] += weight * sign[i] * V[i][p] * V[i][q]
                if W is not None:
                    S[p][q] -= weight * sign[i] * W[i][p] * W[i][q]
    return total < 0 and semidefinite(S)


def exactly_certified(F, proof):
    """The certificate itself as fractions, or the simple fractions it is the floating-point image of."""
    V = [[Fraction(x) for x in row] for row in F.V.tolist()]
    W = None if F.W is None else [[Fraction(x) for x in row] for row in F.W.tolist()]
    sign, bound = F.sign.tolist(), [Fraction(x) for x in F.bound.tolist()]
    if proves_infeasibility(V, W, sign, bound, [Fraction(x) for x in proof.y.tolist()]):
        return True
    relative = proof.y / proof.y.max()
    return any(
        proves_infeasibility(V, W, sign, bound, [Fraction(x).limit_denominator(limit) for x in relative])
        for limit in (10, 100, 1000, 10**4)
    )


def test_certificates_hold_in_rational_arithmetic():
    found = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(1, 5)), int(rng.integers(2, 12))
        V = rng.integers(-3, 4, size=(m, d)).astype(float)
        F = pairs(V, rng.choice([-1, 1], m), bounds=(1.0, float(rng.integers(1, 3))))
        solution = solve_basis(F, np.eye(d))
        assert solution.status is not Status.FAILED
        if solution.status is Status.INFEASIBLE:
            found += 1
            assert exactly_certified(F, solution.certificate), seed
    assert found >= 100


def test_certificates_of_triplets_hold_in_rational_arithmetic():
    found = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(1, 3)), int(rng.integers(2, 8))
        F = ConstraintSet.from_triplets(rng.integers(0, 4, size=(m, 3, d)).astype(float))
        # Of a minimal subsystem the multipliers are unique, so they are simple fractions.
        result = exact_lptml(F, make_objective("trace", d), rng=0)
        assert result.status is not Status.FAILED
        if result.status is Status.INFEASIBLE:
            found += 1
            assert exactly_certified(F.take(result.infeasible_subsystem), result.certificate), seed
    assert found >= 50


def test_optima_hold_in_extended_precision():
    """Primal feasibility and the gap, recomputed with long doubles."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        F = pairs(rng.integers(-3, 4, size=(m, d)), rng.choice([-1, 1], m), bounds=(2.0, 1.0))
        C0 = np.eye(d) + np.ones((d, d))
        solution = solve_basis(F, C0)
        if solution.status is not Status.OPTIMAL:
            continue
        A, V, y = (x.astype(np.longdouble) for x in (solution.A, F.V, solution.dual))
        values = ((V @ A) * V).sum(axis=1)
        assert (F.sign * (values - F.bound) <= 1e-8 * F.bound).all()
        primal, dual = (C0 * A).sum(), -(F.sign * F.bound * y).sum()
        assert abs(primal - dual) <= 1e-7 * (primal + dual)
