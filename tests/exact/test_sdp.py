"""The basis problem against Clarabel's own API, brute force, closed forms and degenerate instances."""

from __future__ import annotations

import importlib.util
import inspect
import itertools

import clarabel
import numpy as np
import pytest
from scipy import sparse

from lptml.constraints import ConstraintSet
from lptml.exact import attempt as _sdp_attempt
from lptml.exact import sdp
from lptml.exact.sdp import solve_basis
from lptml.exact.solution import Status
from lptml.exact.verify import verify_certificate, verify_solution


def random_objective(rng, d):
    r = rng.standard_normal(d)
    r /= np.linalg.norm(r)
    return np.outer(r, r) + 1e-3 * np.eye(d)


def random_pairs(rng, d, m, *, wrong=0.0, ratio=1.0):
    """Pairs split by a random metric at the median, a share of them with the wrong label."""
    G = rng.standard_normal((d, d))
    V = rng.standard_normal((m, d))
    squared = ((V @ G) ** 2).sum(axis=1)
    threshold = np.sqrt(np.median(squared))
    y = np.where(squared <= threshold**2, 1, -1)
    y = np.where(rng.random(m) < wrong, -y, y)
    return ConstraintSet.from_differences(V, y, bounds=(ratio * threshold, threshold))


def random_instance(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    m = int(rng.integers(1, d * (d + 1) // 2 + 10))
    F = random_pairs(rng, d, m, wrong=(0.0, 0.1, 0.5)[seed % 3], ratio=(1.0, 0.5, 2.0, 0.1)[seed % 4])
    return F, (np.eye(d), random_objective(rng, d))[seed % 2]


def clarabel_directly(F, C0):
    """(status, objective) from Clarabel, with nothing of ours in between."""
    d = F.d
    j, i = np.tril_indices(d)
    root = np.where(i == j, 1.0, np.sqrt(2.0))
    rows = F.sign[:, None] * F.V[:, i] * F.V[:, j] * root / F.bound[:, None]
    if F.W is not None:
        rows -= F.sign[:, None] * F.W[:, i] * F.W[:, j] * root / F.bound[:, None]
    q = C0[i, j] * root
    A = sparse.csc_matrix(np.vstack([rows, -np.eye(len(q))]))
    b = np.concatenate([F.sign.astype(float), np.zeros(len(q))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    cones = [clarabel.NonnegativeConeT(F.n), clarabel.PSDTriangleConeT(d)]
    size = float(np.abs(q).max())
    run = clarabel.DefaultSolver(sparse.csc_matrix((len(q),) * 2), q / size, A, b, cones, settings).solve()
    return str(run.status), run.obj_val * size


def check(F, C0, solution, **options):
    """Every answer carries its own proof."""
    log_det = options.pop("log_det", 0.0)
    dual = solution.dual
    if options:
        dual = np.append(dual, solution.regularizer_dual)
    if solution.status is Status.OPTIMAL:
        residuals = verify_solution(F, C0, solution.A, dual, log_det=log_det, **options)
        assert residuals.largest <= 1e-7
        assert not F.violated(solution.A).any()
    else:
        assert solution.status is Status.INFEASIBLE
        proof = solution.certificate
        y = np.append(proof.y, proof.regularizer_multiplier) if options else proof.y
        assert verify_certificate(F, y, **options).valid


def test_agrees_with_clarabel_on_many_instances():
    compared = infeasible = 0
    for seed in range(620):
        F, C0 = random_instance(seed)
        solution = solve_basis(F, C0)
        check(F, C0, solution)
        status, objective = clarabel_directly(F, C0)
        if status == "Solved":
            compared += 1
            assert solution.status is Status.OPTIMAL, seed
            if solution.objective == 0:  # A = 0 is optimal, which Clarabel only comes close to
                assert abs(objective) < 1e-5
            else:
                assert solution.objective == pytest.approx(objective, rel=1e-6), seed
        elif status == "PrimalInfeasible":
            infeasible += 1
            assert solution.status is Status.INFEASIBLE, seed
    # Clarabel stops at reduced accuracy on the few that barely have a solution.
    assert compared + infeasible >= 500
    assert min(compared, infeasible) >= 100


@pytest.mark.parametrize("kind", ["triplets", "quadruplets"])
def test_comparisons_agree_with_clarabel(kind):
    solved = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 6))
        points = rng.standard_normal((int(rng.integers(1, 15)), 3 if kind == "triplets" else 4, d))
        F = getattr(ConstraintSet, f"from_{kind}")(points)
        C0 = random_objective(rng, d)
        solution = solve_basis(F, C0)
        check(F, C0, solution)
        status, objective = clarabel_directly(F, C0)
        if status == "Solved":
            solved += 1
            assert solution.objective == pytest.approx(objective, rel=1e-6)
        elif status == "PrimalInfeasible":
            assert solution.status is Status.INFEASIBLE
    assert solved >= 20


@pytest.mark.parametrize("change", ["spread", "tiny", "huge", "mixed"])
def test_units_do_not_matter(change):
    for seed in range(60):
        F, C0 = random_instance(seed)
        rng = np.random.default_rng(seed)
        M = {
            "spread": np.diag(10.0 ** rng.uniform(-3, 3, F.d)),
            "tiny": 1e-6 * np.eye(F.d),
            "huge": 1e6 * np.eye(F.d),
            "mixed": np.linalg.qr(rng.standard_normal((F.d, F.d)))[0] * 10.0 ** rng.uniform(-1, 1, F.d),
        }[change]
        changed = ConstraintSet(F.V @ M, None, F.sign, F.bound, F.weight)
        before, after = solve_basis(F, C0), solve_basis(changed, M.T @ C0 @ M)
        check(changed, M.T @ C0 @ M, after)
        assert after.status is before.status
        if before.status is Status.OPTIMAL:
            assert after.objective == pytest.approx(before.objective, rel=1e-6, abs=1e-9)
            assert after.residuals.largest <= 1e-7


def test_objective_in_other_units_than_the_features():
    for seed in range(60):
        F, C0 = random_instance(seed)
        scale = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, F.d)
        changed = ConstraintSet(F.V * scale, None, F.sign, F.bound, F.weight)
        check(changed, C0, solve_basis(changed, C0))


def brute_force_line(F, c):
    """d = 1: the smallest number in an interval."""
    square = F.V[:, 0] ** 2
    low = max([0.0, *(F.bound / square)[F.sign < 0]])
    high = min([np.inf, *(F.bound / square)[F.sign > 0]])
    return c * low if low <= high * (1 + 1e-9) else np.inf


def brute_force_plane(F, C0):
    """d = 2: the best feasible one of all metrics that can be optimal.

    Those are A = 0; the rank-one metrics gg' with two tight constraints, or with one and C0 g parallel to its
    v; and the metrics with three tight constraints.
    """
    candidates = [np.zeros((2, 2))]
    V, b = F.V, F.bound
    for i in range(F.n):
        g = np.linalg.solve(C0, V[i])
        g *= np.sqrt(b[i]) / abs(g @ V[i])
        candidates.append(np.outer(g, g))
    for i, j in itertools.combinations(range(F.n), 2):
        for turn in (1.0, -1.0):
            g = np.linalg.solve(V[[i, j]], [np.sqrt(b[i]), turn * np.sqrt(b[j])])
            candidates.append(np.outer(g, g))
    for index in itertools.combinations(range(F.n), 3):
        v = V[list(index)]
        x = np.linalg.solve(
            np.column_stack([v[:, 0] ** 2, 2 * v[:, 0] * v[:, 1], v[:, 1] ** 2]), b[list(index)]
        )
        candidates.append(np.array([[x[0], x[1]], [x[1], x[2]]]))
    values = [
        np.vdot(C0, A)
        for A in candidates
        if np.linalg.eigvalsh(A)[0] >= -1e-12 * np.abs(A).max()
        and (F.sign * (F.values(A) / F.bound - 1) < 1e-11).all()
    ]
    return min(values, default=np.inf)


@pytest.mark.parametrize("d", [1, 2])
def test_agrees_with_brute_force(d):
    outcomes = set()
    for seed in range(150):
        rng = np.random.default_rng(seed)
        F = random_pairs(
            rng, d, int(rng.integers(1, 9)), wrong=0.2 * (seed % 2), ratio=(1.0, 0.7, 1.5)[seed % 3]
        )
        C0 = random_objective(rng, d)
        solution = solve_basis(F, C0)
        check(F, C0, solution)
        expected = brute_force_line(F, C0[0, 0]) if d == 1 else brute_force_plane(F, C0)
        assert solution.objective == pytest.approx(expected, rel=1e-7, abs=1e-9)
        outcomes.add(solution.status)
    assert outcomes == {Status.OPTIMAL, Status.INFEASIBLE}


def pairs(V, y, bounds=(1.0, 1.0)):
    return ConstraintSet.from_differences(np.atleast_2d(np.asarray(V, dtype=float)), y, bounds=bounds)


DEGENERATE = {
    # name: (constraints, the minimum of the trace or None if infeasible)
    "nothing": (pairs(np.empty((0, 2)), []), 0.0),
    "similar only": (pairs(np.eye(3), [1, 1, 1]), 0.0),
    "dissimilar only": (pairs(np.eye(3), [-1, -1, -1]), 3.0),
    "fewer constraints than features": (pairs(np.eye(5)[:2], [-1, 1]), 1.0),
    "one feature": (pairs([[2.0], [1.0]], [-1, 1]), 0.25),
    "one feature, contradiction": (pairs([[1.0], [2.0]], [-1, 1]), None),
    "duplicates": (pairs(np.repeat(np.eye(2), 5, axis=0), [-1] * 5 + [1] * 5), 1.0),
    "parallel": (pairs([[1, 1], [2, 2], [-3, -3]], [-1, -1, -1]), 0.5),
    "tight as an equality": (pairs([[1, 2], [1, 2]], [-1, 1]), 0.2),
    "tight in every direction": (pairs([[1, 0], [1, 0], [0, 1], [0, 1]], [-1, 1, -1, 1]), 2.0),
    "zero vector, similar": (pairs([[0, 0], [1, 0]], [1, -1]), 1.0),
    "zero vector, dissimilar": (pairs([[0, 0], [1, 0]], [-1, -1]), None),
    "feature that never varies": (pairs([[1, 0], [2, 0]], [-1, -1]), 1.0),
    "contradicting duplicates": (pairs([[1, 0], [1, 0]], [-1, 1], bounds=(1.0, 1.01)), None),
    "nearly contradicting": (pairs([[1, 0], [1, 1e-3]], [1, -1], bounds=(1.0, 1.1)), None.__class__),
    "minimum on a line of metrics": (pairs([[1, 0], [0, 1], [1, 1]], [-1, -1, -1], bounds=(1.0, 1.0)), 2.0),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_instances_have_a_defined_answer(name):
    F, trace = DEGENERATE[name]
    C0 = np.eye(F.d)
    for solver in ("numba", "clarabel"):
        solution = solve_basis(F, C0, solver=solver)
        if F.n:
            check(F, C0, solution)
        if trace is None:
            assert solution.status is Status.INFEASIBLE
            assert solution.objective == np.inf
        elif isinstance(trace, float):
            assert solution.status is Status.OPTIMAL
            assert solution.objective == pytest.approx(trace, rel=1e-7, abs=1e-7)


def test_nearly_contradicting_pairs_need_a_large_metric():
    F, _ = DEGENERATE["nearly contradicting"]
    solution = solve_basis(F, np.eye(2))
    check(F, np.eye(2), solution)
    # a = 1, then (1 + 1e-3 x)^2 ... the smallest trace has rank one: g = (1, 100).
    assert solution.objective == pytest.approx(1 + 100**2, rel=1e-6)


def test_feasible_metrics_without_interior():
    """v1 + v2 shall be 2 long, v1 and v2 at most 1: tight in the triangle inequality."""
    V = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 1.0], [4.0, 3.0, 1.0]])
    F = ConstraintSet.from_differences(V, [1, 1, -1], bounds=(1.0, 2.0))
    solution = solve_basis(F, np.eye(3))
    assert solution.status is Status.OPTIMAL
    assert not F.violated(solution.A).any()
    assert solution.residuals.largest <= sdp.ACCEPT_DEGENERATE
    # The metric maps v1 and v2 to the same unit vector, so it is gg' with g'v1 = g'v2 = 1.
    g = np.linalg.lstsq(V[:2], np.ones(2), rcond=None)[0]
    assert solution.objective == pytest.approx(g @ g, rel=1e-3)


def test_contradicting_triplets():
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    triplets = np.array([[x[0], x[1], x[2]], [x[0], x[2], x[1]]])
    F = ConstraintSet.from_triplets(triplets)
    solution = solve_basis(F, np.eye(2))
    assert solution.status is Status.INFEASIBLE
    assert solution.certificate.radius == np.inf
    assert solution.elastic == pytest.approx(1.0, abs=1e-6)
    check(F, np.eye(2), solution)


def test_regulariser_bounds_the_metric():
    rng = np.random.default_rng(3)
    F = random_pairs(rng, 3, 10)
    C0 = random_objective(rng, 3)
    free = solve_basis(F, C0)
    trace = np.trace(free.A)
    loose = solve_basis(F, C0, regularizer=np.eye(3), rho=2 * trace)
    assert loose.objective == pytest.approx(free.objective, rel=1e-6)
    assert loose.regularizer_dual == 0.0
    least = np.trace(solve_basis(F, np.eye(3)).A)
    tight = solve_basis(F, C0, regularizer=np.eye(3), rho=(least + trace) / 2)
    check(F, C0, tight, regularizer=np.eye(3), rho=(least + trace) / 2)
    assert np.trace(tight.A) == pytest.approx((least + trace) / 2, rel=1e-7)
    assert tight.objective > free.objective
    assert tight.regularizer_dual > 0
    none = solve_basis(F, C0, regularizer=np.eye(3), rho=0.9 * least)
    assert none.status is Status.INFEASIBLE
    check(F, C0, none, regularizer=np.eye(3), rho=0.9 * least)


@pytest.mark.parametrize("rho", [1.5, 0.0, -1.5])
def test_regulariser_may_be_any_symmetric_matrix(rho):
    outcomes = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 5))
        F = random_pairs(rng, d, int(rng.integers(1, 10)), wrong=0.1)
        C0 = random_objective(rng, d)
        R = rng.standard_normal((d, d))
        R = R + R.T
        ours = solve_basis(F, C0, regularizer=R, rho=rho)
        check(F, C0, ours, regularizer=R, rho=rho)
        theirs = solve_basis(F, C0, regularizer=R, rho=rho, solver="clarabel")
        if theirs.status is not Status.FAILED:
            assert ours.status is theirs.status
            outcomes.add(ours.status)
            if ours.status is Status.OPTIMAL:
                assert ours.objective == pytest.approx(theirs.objective, rel=1e-6, abs=1e-7)
    assert outcomes == {Status.OPTIMAL, Status.INFEASIBLE}


def test_a_regulariser_without_constraints():
    """Only <-I, A> <= -1, that is trace A >= 1; or nothing but a bound on the prior."""
    nothing = pairs(np.empty((0, 2)), [])
    solution = solve_basis(nothing, np.diag([1.0, 2.0]), regularizer=-np.eye(2), rho=-1.0)
    assert solution.status is Status.OPTIMAL
    np.testing.assert_allclose(solution.A, np.diag([1.0, 0.0]), atol=1e-7)
    bounded = solve_basis(nothing, np.eye(2), log_det=1.0, regularizer=np.eye(2), rho=1.0)
    np.testing.assert_allclose(bounded.A, 0.5 * np.eye(2), atol=1e-7)
    impossible = solve_basis(nothing, np.eye(2), regularizer=np.eye(2), rho=-1.0)
    assert impossible.status is Status.INFEASIBLE


def test_log_det_without_active_constraints_is_the_prior():
    prior = np.array([[2.0, 0.5], [0.5, 1.0]])
    F = pairs([[0.1, 0.0], [10.0, 3.0]], [1, -1])
    solution = solve_basis(F, np.linalg.inv(prior), log_det=1.0)
    np.testing.assert_allclose(solution.A, prior, atol=1e-7)
    assert len(solution.support) == 0
    empty = solve_basis(pairs(np.empty((0, 2)), []), np.linalg.inv(prior), log_det=1.0)
    np.testing.assert_allclose(empty.A, prior)


def test_log_det_agrees_with_clarabel():
    solved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 5))
        F = random_pairs(rng, d, int(rng.integers(1, 12)), wrong=0.1 * (seed % 2))
        C0 = random_objective(rng, d) + 0.1 * np.eye(d)
        ours, theirs = (solve_basis(F, C0, log_det=0.5, solver=solver) for solver in ("numba", "clarabel"))
        check(F, C0, ours, log_det=0.5)
        assert ours.solver == "numba"
        if theirs.status is not Status.FAILED:
            assert ours.status is theirs.status
        if ours.status is theirs.status is Status.OPTIMAL:
            solved += 1
            assert ours.objective == pytest.approx(theirs.objective, rel=1e-6, abs=1e-7)
    assert solved >= 25


def test_multipliers_are_sensitivities():
    rng = np.random.default_rng(11)
    F = random_pairs(rng, 3, 9)
    C0 = np.eye(3)
    solution = solve_basis(F, C0, tol=1e-10)
    h = 1e-5
    for i in solution.support:
        bound = F.bound.copy()
        bound[i] *= 1 + h
        changed = solve_basis(ConstraintSet(F.V, None, F.sign, bound, F.weight), C0, tol=1e-10)
        slope = (changed.objective - solution.objective) / (h * F.bound[i])
        assert slope == pytest.approx(-F.sign[i] * solution.dual[i], rel=1e-2)


def test_infeasible_metric_violates_least():
    F = pairs([[1.0], [1.0]], [1, -1], bounds=(1.0, 2.0))
    solution = solve_basis(F, np.eye(1))
    # a <= 1 + t and a / 4 >= 1 - t meet at a = 1.6.
    assert solution.A[0, 0] == pytest.approx(1.6, abs=1e-5)
    assert solution.elastic == pytest.approx(0.6, abs=1e-5)
    assert solution.certificate.gap == pytest.approx(0.6, abs=1e-5)


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_a_wrong_kernel_is_found_out(monkeypatch, value):
    F, C0 = random_instance(7)
    right = solve_basis(F, C0)
    names = inspect.signature(_sdp_attempt.solve.py_func)

    def wrong_answer(*arguments):
        named = names.bind(*arguments).arguments
        for out in ("A", "best_X", "best_y", "best_z"):
            named[out][...] = value
        return 1, 0.0

    monkeypatch.setattr(_sdp_attempt, "solve", wrong_answer)
    monkeypatch.setattr(sdp, "attempt", _sdp_attempt.attempt.py_func)
    rescued = solve_basis(F, C0)
    assert rescued.solver == "clarabel"
    assert rescued.status is right.status
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert solve_basis(F, C0).status is Status.FAILED


def test_clarabel_missing_is_said(monkeypatch):
    F, C0 = random_instance(7)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"lptml\[clarabel\]"):
        solve_basis(F, C0, solver="clarabel")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": np.eye(3)}, "shape"),
        ({"objective": np.array([[1.0, 0.0], [1.0, 1.0]])}, "symmetric"),
        ({"objective": np.diag([1.0, -1.0])}, "positive definite"),
        ({"objective": np.full((2, 2), np.nan)}, "finite"),
        ({"log_det": -1.0}, "log_det"),
        ({"regularizer": np.eye(2)}, "go together"),
        ({"rho": 1.0}, "go together"),
        ({"regularizer": np.zeros((2, 2)), "rho": 1.0}, "not zero"),
        ({"regularizer": np.eye(2), "rho": np.inf}, "finite"),
        ({"solver": "mosek"}, "solver"),
        ({"tol": 1.0}, "tol"),
    ],
)
def test_invalid_arguments(options, message):
    F = pairs([[1.0, 0.0]], [-1])
    options = {"objective": np.eye(2), **options}
    with pytest.raises(ValueError, match=message):
        solve_basis(F, **options)


def test_many_constraints_that_ask_for_nothing_need_no_square_matrix():
    n = 300_000
    near = ConstraintSet.from_differences(np.ones((n, 2)), np.ones(n, dtype=int), bounds=(1.0, 1.0))
    solution = solve_basis(near, np.eye(2))
    assert solution.status is Status.OPTIMAL
    assert not solution.A.any()
