"""The basis problem through Clarabel: an independent reference, and the fallback of the compiled kernel.

The problem is handed over in normalised units (bounds 1, features of equal root mean square, objective of
trace d), without which Clarabel reports false infeasibility on badly scaled data. Symmetric matrices become
vectors of their upper triangles with off-diagonal entries times sqrt(2), Clarabel's order for its
semidefinite cone.
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from lptml.constraints import Floats
from lptml.sdp import Problem, Solution, Status, certificate, conclude, infeasible


def solve_clarabel(problem: Problem, tol: float) -> Solution:
    """Solve with Clarabel and check the answer as that of the kernel is checked."""
    rows, rhs, cost, scale, size, units = _normalised(problem)
    plain = _run(problem, rows, rhs, cost, tol, size, elastic=False)
    multipliers = np.maximum(np.array(plain.z[: len(rhs)]), 0.0)
    A = _metric(plain, scale)
    solution = conclude(problem, A, multipliers * size / units, plain.iterations, "clarabel", 0.0)
    if solution.status is Status.OPTIMAL:
        return solution
    elastic = _run(problem, rows, rhs, cost * 1e-6, tol, 1e6 * size, elastic=True)
    A, t = _metric(elastic, scale), float(elastic.x[-1])
    for weights in (multipliers, np.maximum(np.array(elastic.z[: len(rhs)]), 0.0)):
        proof = certificate(problem, weights / units)
        if proof is not None:
            return infeasible(problem, A, proof, plain.iterations, "clarabel", t)
    return solution


def _normalised(problem: Problem) -> tuple[Floats, Floats, Floats, Floats, float, Floats]:
    """Rows s_i svec(C_i), right-hand sides, svec(C0), and what undoes the scaling."""
    p = problem
    d = len(p.C0)
    stacked = np.vstack([p.V, p.W]) / np.sqrt(np.resize(p.bound, len(p.V) + len(p.W)))[:, None]
    largest = np.abs(stacked).max(axis=0, initial=0.0)
    largest[largest == 0] = 1.0
    scale = largest * np.sqrt(d * np.mean((stacked / largest) ** 2, axis=0)) if len(stacked) else np.ones(d)
    scale[scale == 0] = 1.0
    stacked = stacked / scale
    matrices = stacked[: p.m, :, None] * stacked[: p.m, None, :]
    if len(p.W):
        matrices = matrices - stacked[p.m :, :, None] * stacked[p.m :, None, :]
    matrices = p.sign[:, None, None] * matrices
    rhs = p.sign.copy()
    units = p.bound
    if len(p.R):
        R = p.R[0] / scale[:, None] / scale
        unit = abs(p.rho) or np.abs(R).max()
        matrices = np.concatenate([matrices, R[None] / unit])
        rhs = np.append(rhs, p.rho / unit)
        units = np.append(units, unit)
    C0 = p.C0 / scale[:, None] / scale
    size = float(np.trace(C0)) / d
    return _svec(matrices), rhs, _svec(C0[None])[0] / size, scale, size, units


def _run(
    problem: Problem, rows: Floats, rhs: Floats, cost: Floats, tol: float, size: float, *, elastic: bool
) -> Any:
    """Clarabel on min cost'x (+ t), rows x (- t) <= rhs, x in the semidefinite cone (t >= 0)."""
    D = len(cost)
    d = len(problem.C0)
    extra = int(elastic)
    A = sparse.vstack(
        [
            sparse.csc_matrix(np.hstack([rows, -np.ones((len(rows), extra))])),
            sparse.csc_matrix(([-1.0] * extra, ([0] * extra, [D] * extra)), shape=(extra, D + extra)),
            sparse.hstack([-sparse.identity(D), sparse.csc_matrix((D, extra))]),
        ],
        format="csc",
    )
    b = np.concatenate([rhs, np.zeros(extra + D)])
    q = np.append(cost, np.ones(extra))
    cones = [clarabel.NonnegativeConeT(len(rhs) + extra), clarabel.PSDTriangleConeT(d)]
    if problem.c > 0:
        A, b, q, cones = _with_log_det(A, b, q, cones, d, problem.c / size)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    n = len(q)
    return clarabel.DefaultSolver(sparse.csc_matrix((n, n)), q, A, b, cones, settings).solve()


def _with_log_det(A: Any, b: Floats, q: Floats, cones: list[Any], d: int, c: float) -> Any:
    """Add -c log det X: log det X >= sum_i log L_ii for lower triangular L with [[X, L], [L', diag(L)]] >= 0.

    New variables, placed first so that the caller's stay last: the entries of L and the d logarithms.
    """
    D = d * (d + 1) // 2
    lower = {(i, j): i * (i + 1) // 2 + j for i in range(d) for j in range(i + 1)}
    shift = D + d  # the caller's variables start here
    entries: list[tuple[int, int, float]] = []
    row = 0
    for j in range(2 * d):  # upper triangle of the block matrix, column by column
        for i in range(j + 1):
            root = 1.0 if i == j else np.sqrt(2.0)
            if j < d:
                entries.append((row, shift + j * (j + 1) // 2 + i, -1.0))
            elif i < d and (i, j - d) in lower:
                entries.append((row, lower[i, j - d], -root))
            elif i == j:
                entries.append((row, lower[i - d, i - d], -root))
            row += 1
    exponential = row
    for i in range(d):  # (log, 1, L_ii) in the exponential cone
        entries.append((row, D + i, -1.0))
        entries.append((row + 2, lower[i, i], -1.0))
        row += 3
    where, column, value = zip(*entries)
    block = sparse.csc_matrix((value, (where, column)), shape=(row, shift + len(q)))
    rhs = np.zeros(row)
    rhs[exponential + 1 :: 3] = 1.0
    wide = sparse.hstack([sparse.csc_matrix((A.shape[0], shift)), A])
    costs = np.concatenate([np.zeros(D), np.full(d, -c), q])
    added = [clarabel.PSDTriangleConeT(2 * d), *[clarabel.ExponentialConeT() for _ in range(d)]]
    return sparse.vstack([wide, block], format="csc"), np.concatenate([b, rhs]), costs, [*cones, *added]


def _metric(run: Any, scale: Floats) -> Floats:
    """The metric in original units from a run's variables, projected onto the semidefinite cone."""
    d = len(scale)
    D = d * (d + 1) // 2
    x = np.array(run.x)
    start = D + d if len(x) > D + 1 else 0
    i, j = np.tril_indices(d)
    X = np.zeros((d, d))
    X[i, j] = x[start : start + D] / np.where(i == j, 1.0, np.sqrt(2.0))
    X = X + np.tril(X, -1).T
    values, Q = np.linalg.eigh(X)
    X = (Q * np.maximum(values, 0.0)) @ Q.T
    return X / scale[:, None] / scale


def _svec(matrices: Floats) -> Floats:
    """Upper triangles column by column, which is lower triangles row by row, off-diagonal times sqrt(2)."""
    i, j = np.tril_indices(matrices.shape[-1])
    return matrices[:, i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
