"""The basis problem: the compiled kernel against Clarabel and SCS called directly, and its accuracy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import clarabel
import numpy as np
import scs
from scipy import sparse
from threadpoolctl import threadpool_limits

from lptml._jit import kernel as compiled
from lptml.constraints import ConstraintSet, Floats
from lptml.exact.attempt import attempt
from lptml.exact.coordinates import scale_problem
from lptml.exact.kernel import solve
from lptml.exact.sdp import ATTEMPTS, solve_basis, solve_problem
from lptml.exact.solution import ACCEPT, BasisProblem, Status

TOLERANCE = 1e-8
DIMENSIONS = ((2, 200), (5, 100), (13, 30), (34, 3))


def instance(d: int, m: int, seed: int) -> tuple[ConstraintSet, np.ndarray]:
    """Pairs told apart by a random metric at the median distance, u = l, and the paper's objective."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((d, d))
    V = rng.standard_normal((m, d))
    squared = ((V @ G) ** 2).sum(axis=1)
    threshold = float(np.sqrt(np.median(squared)))
    y = np.where(squared <= threshold**2, 1, -1)
    r = rng.standard_normal(d)
    r /= np.linalg.norm(r)
    C0 = np.outer(r, r) + 1e-3 * np.eye(d)
    return ConstraintSet.from_differences(V, y, bounds=(threshold, threshold)), C0


def columns(F: ConstraintSet, C0: np.ndarray) -> tuple[sparse.csc_matrix, np.ndarray, np.ndarray]:
    """The cone program of both solvers, bounds scaled to 1: rows s_i svec(C_i) / b_i, then A."""
    j, i = np.tril_indices(F.d)
    root = np.where(i == j, 1.0, np.sqrt(2.0))
    rows = F.sign[:, None] * F.V[:, i] * F.V[:, j] * root / F.bound[:, None]
    A = sparse.csc_matrix(np.vstack([rows, -np.eye(len(i))]))
    return A, np.concatenate([F.sign.astype(float), np.zeros(len(i))]), C0[i, j] * root


def clarabel_seconds(F: ConstraintSet, C0: np.ndarray, tol: float = TOLERANCE) -> tuple[float, float]:
    """(CPU seconds, objective) of setting up and solving, the matrices being there already."""
    A, b, q = columns(F, C0)
    P = sparse.csc_matrix((len(q), len(q)))
    cones = [clarabel.NonnegativeConeT(F.n), clarabel.PSDTriangleConeT(F.d)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    run = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    return seconds(lambda: clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()), float(run.obj_val)


def scs_seconds(F: ConstraintSet, C0: np.ndarray) -> tuple[float, float]:
    """The same for SCS, which wants lower triangles column by column."""
    d = F.d
    A, b, q = columns(F, C0)
    j, i = np.tril_indices(d)
    order = np.lexsort((j, i))  # upper triangle by rows = lower triangle by columns
    A = sparse.csc_matrix(sparse.vstack([A[: F.n][:, order], -sparse.identity(len(q))]))
    data = {"A": A, "b": b, "c": q[order]}
    options = {"verbose": False, "eps_abs": TOLERANCE, "eps_rel": TOLERANCE, "max_iters": 200_000}
    cone = {"l": F.n, "s": [d]}
    run = scs.SCS(data, cone, **options).solve()
    return seconds(lambda: scs.SCS(data, cone, **options).solve()), float(run["info"]["pobj"])


def plain(F: ConstraintSet, C0: np.ndarray) -> BasisProblem:
    return BasisProblem(
        np.array(F.V),
        np.empty((0, F.d)),
        F.sign.astype(float),
        np.array(F.bound),
        np.empty((0, F.d, F.d)),
        0.0,
        C0,
        0.0,
    )


def seconds(run: Callable[[], Any]) -> float:
    """CPU seconds of one call; of many calls on average where one is too short for the clock."""
    start = time.process_time()
    run()
    once = time.process_time() - start
    repeats = min(20, int(2e-3 / max(once, 1e-6)))
    if repeats < 2:
        return once
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats


@compiled
def kernel(U: Floats, sign: Floats, h: Floats, R: Floats, elastic: float, mats: Floats, vecs: Floats) -> int:
    """The interior-point method alone."""
    C0, T, A, X = mats[0], mats[1], mats[2], mats[3]
    m, d = U.shape
    return solve(
        U, m, sign, h, R, C0, 0.0, elastic, TOLERANCE, TOLERANCE, 80, T, A, X, vecs[0], vecs[1],
        np.empty((16, d, d)), np.empty((8, m)), np.empty((2, m, d)), np.empty((2, m, m)), np.empty((m, m)),
        np.empty((d, m)),
    )[0]  # fmt: skip


def kernel_seconds(p: BasisProblem) -> float:
    (m, d), first = p.V.shape, ATTEMPTS[0]
    U, h, R = np.empty((m, d)), np.empty(m), np.empty((0, d, d))
    mats, vecs, units = np.empty((4, d, d)), np.empty((2, m)), np.empty(m)
    C0, T = mats[:2]
    problem = (p.V, p.W, p.sign, p.bound, p.R, 0.0, p.C0)
    room = np.empty((m, d)), np.empty((d, m)), np.empty((5, d, d))
    scale_problem(*problem, first.lower, first.cost, U, h, R, C0, T, units, *room)
    return seconds(lambda: kernel(U, p.sign, h, R, first.elastic, mats, vecs))


def compiled_seconds(p: BasisProblem) -> float:
    """Scaling, interior-point method and independent check: the one compiled call."""
    (m, d), first = p.V.shape, ATTEMPTS[0]
    results = np.zeros((2, d, d)), np.zeros((3, m)), np.empty(m, dtype=np.int64)
    problem = (p.V, p.W, p.sign, p.bound, p.R, p.rho, p.C0, p.c)
    settings = (first.lower, first.cost, first.elastic, TOLERANCE, TOLERANCE, 80, ACCEPT)
    return seconds(lambda: attempt(*problem, *settings, *results))


def speed() -> None:
    print(f"CPU ms a solve, median, tolerance {TOLERANCE:g}, m = D + 5. 'kernel': the interior-point method;")
    print("'compiled': with scaling and independent check; 'function': with the result for Python callers.")
    print("Others: setup and solve, matrices assembled beforehand. Ratios of 'compiled' and 'function'.\n")
    print("| d | m | instances | kernel | compiled | function | Clarabel | SCS | faster by | needed |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (d, count), needed in zip(DIMENSIONS, (3, 3, 6, 10)):
        m = d * (d + 1) // 2 + 5
        names = ("kernel", "compiled", "function", "clarabel", "scs")
        times: dict[str, list[float]] = {name: [] for name in names}
        for seed in range(count):
            F, C0 = instance(d, m, seed)
            problem = plain(F, C0)
            solution = solve_problem(problem, tol=TOLERANCE)
            assert solution.status is Status.OPTIMAL
            times["kernel"].append(kernel_seconds(problem))
            times["compiled"].append(compiled_seconds(problem))
            times["function"].append(seconds(partial(solve_problem, problem, tol=TOLERANCE)))
            times["clarabel"].append(clarabel_seconds(F, C0)[0])
            if seed < (count if d < 13 else 10 if d < 34 else 1):
                times["scs"].append(scs_seconds(F, C0)[0])
        ms = {name: 1e3 * statistics.median(values) for name, values in times.items()}
        best = min(ms["clarabel"], ms["scs"])
        print(
            f"| {d} | {m} | {count} | {ms['kernel']:.3g} | {ms['compiled']:.3g} | {ms['function']:.3g} "
            f"| {ms['clarabel']:.3g} | {ms['scs']:.3g} "
            f"| {best / ms['compiled']:.1f}x, {best / ms['function']:.1f}x | {needed}x |",
            flush=True,
        )


def accuracy() -> None:
    print("\nLargest error (certify.Residuals) and statuses of 400 instances, d = 1..8, tolerance 1e-9:\n")
    print("| features | optimal | infeasible, proved | failed | largest error | by Clarabel |")
    print("|---|---|---|---|---|---|")
    changes: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
        "well scaled": lambda rng, d: np.ones(d),
        "spanning 1e-3..1e3": lambda rng, d: 10.0 ** rng.uniform(-3, 3, d),
        "times 1e-6": lambda rng, d: np.full(d, 1e-6),
        "times 1e6": lambda rng, d: np.full(d, 1e6),
    }
    for name, change in changes.items():
        counts = dict.fromkeys(Status, 0)
        worst, rescued = 0.0, 0
        for seed in range(400):
            rng = np.random.default_rng(seed)
            d = int(rng.integers(1, 9))
            F, C0 = instance(d, int(rng.integers(1, d * (d + 1) // 2 + 10)), seed)
            flip = rng.random(F.n) < (0.0, 0.2)[seed % 2]
            scale = change(rng, d)
            sign = np.where(flip, -F.sign, F.sign).astype(np.int8)
            G = ConstraintSet(F.V * scale, None, sign, F.bound, F.weight)
            solution = solve_basis(G, C0 * scale[:, None] * scale)
            counts[solution.status] += 1
            rescued += solution.solver == "clarabel"
            if solution.status is Status.OPTIMAL:
                worst = max(worst, solution.residuals.largest)
        optimal, infeasible, failed = (counts[status] for status in Status)
        print(f"| {name} | {optimal} | {infeasible} | {failed} | {worst:.1e} | {rescued} |", flush=True)


def main() -> None:
    with threadpool_limits(limits=1, user_api="blas"):  # else waiting threads count as CPU time
        speed()
        accuracy()


if __name__ == "__main__":
    main()
