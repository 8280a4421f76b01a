"""The basis problem through Clarabel: an independent reference, and the fallback of the compiled kernel.

The problem is handed over in normalised units (bounds 1, features of equal root mean square, objective of
trace d), without which Clarabel reports false infeasibility on badly scaled data. Symmetric matrices become
vectors of their upper triangles with off-diagonal entries times sqrt(2), Clarabel's order for its
semidefinite cone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from lptml.constraints import Floats
from lptml.exact.farkas import repairs
from lptml.exact.solution import (
    ACCEPT,
    BasisProblem,
    Solution,
    Status,
    certificate,
    conclude,
    failure,
    infeasible,
)
from lptml.exact.verify import check_optimum


def solve_clarabel(problem: BasisProblem, tol: float) -> Solution:
    """Solve with Clarabel and check the answer as that of the kernel is checked."""
    scaled = _normalised(problem)
    plain = _run(scaled, 1.0, tol, elastic=False)
    if plain is None:
        return failure(problem, "clarabel")
    multipliers = np.maximum(np.array(plain.z[: len(scaled.rhs)]), 0.0)
    X = _metric(plain, problem)
    A = X / scaled.scale[:, None] / scaled.scale
    dual = multipliers * scaled.size / scaled.units
    tight = multipliers > np.array(plain.s[: len(scaled.rhs)])
    checked = check_optimum(problem, A, dual)
    solution = conclude(problem, A, dual, checked, tight, plain.iterations, "clarabel", 0.0)
    if solution.status is Status.OPTIMAL:
        return solution
    elastic = _run(scaled, 1e-6, tol, elastic=True)
    if elastic is None:
        return solution
    t = float(elastic.x[-1])
    if t > 0.01 * ACCEPT:
        X = _metric(elastic, problem)
        A = X / scaled.scale[:, None] / scaled.scale
        for y in (multipliers, np.maximum(np.array(elastic.z[: len(scaled.rhs)]), 0.0)):
            for candidate in (y, *repairs(scaled.U, problem.sign, scaled.R, y, X)):
                proof = certificate(problem, candidate / scaled.units)
                if proof is not None:
                    return infeasible(problem, A, proof, plain.iterations, "clarabel", t)
    return solution


@dataclass(frozen=True)
class _Scaled:
    """A problem in normalised units, and what undoes the scaling."""

    U: Floats  # (m, d) or (2m, d)
    R: Floats  # (0, d, d) or (1, d, d)
    rows: Floats  # (n, D): s_i svec(C_i)
    rhs: Floats  # (n,)
    cost: Floats  # (D,): svec(C0)
    c: float
    scale: Floats  # (d,)
    size: float
    units: Floats  # (n,)


def _normalised(problem: BasisProblem) -> _Scaled:
    p = problem
    d = len(p.C0)
    U = np.vstack([p.V, p.W]) / np.sqrt(np.resize(p.bound, len(p.V) + len(p.W)))[:, None]
    largest = np.abs(U).max(axis=0, initial=0.0)
    largest[largest == 0] = 1.0
    scale = largest * np.sqrt(d * np.mean((U / largest) ** 2, axis=0)) if len(U) else np.ones(d)
    scale[scale == 0] = 1.0
    U = U / scale
    matrices = U[: p.m, :, None] * U[: p.m, None, :]
    if len(p.W):
        matrices = matrices - U[p.m :, :, None] * U[p.m :, None, :]
    matrices = p.sign[:, None, None] * matrices
    R = p.R / scale[:, None] / scale
    unit = abs(p.rho) or float(np.abs(R).max(initial=0.0)) or 1.0
    R = R / unit
    C0 = p.C0 / scale[:, None] / scale
    size = float(np.trace(C0)) / d
    return _Scaled(
        U=U,
        R=R,
        rows=_svec(np.concatenate([matrices, R])),
        rhs=np.append(p.sign, p.rho / unit) if len(R) else p.sign,
        cost=_svec(C0[None])[0] / size,
        c=p.c / size,
        scale=scale,
        size=size,
        units=np.append(p.bound, unit) if len(R) else p.bound,
    )


def _run(scaled: _Scaled, weight: float, tol: float, *, elastic: bool) -> Any:
    """Clarabel on min weight cost'x (+ t), rows x (- t) <= rhs, x in the semidefinite cone (t >= 0).

    None where Clarabel panics, as it does when its iterates leave the numbers that have eigenvalues. Its
    panic is no ``Exception``, so that nothing but its name tells it from an interrupt.
    """
    D = len(scaled.cost)
    d = len(scaled.scale)
    n = len(scaled.rows)
    extra = int(elastic)
    A = sparse.vstack(
        [
            sparse.csc_matrix(np.hstack([scaled.rows, -np.ones((n, extra))])),
            sparse.csc_matrix(([-1.0] * extra, ([0] * extra, [D] * extra)), shape=(extra, D + extra)),
            sparse.hstack([-sparse.identity(D), sparse.csc_matrix((D, extra))]),
        ],
        format="csc",
    )
    b = np.concatenate([scaled.rhs, np.zeros(extra + D)])
    q = np.append(weight * scaled.cost, np.ones(extra))
    cones = [clarabel.NonnegativeConeT(n + extra), clarabel.PSDTriangleConeT(d)]
    if scaled.c > 0:
        A, b, q, cones = _with_log_det(A, b, q, cones, d, weight * scaled.c)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    P = sparse.csc_matrix((len(q), len(q)))
    try:
        return clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


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


def _metric(run: Any, problem: BasisProblem) -> Floats:
    """The scaled metric of a run, projected onto the semidefinite cone."""
    d = len(problem.C0)
    D = d * (d + 1) // 2
    start = D + d if problem.c > 0 else 0
    i, j = np.tril_indices(d)
    X = np.zeros((d, d))
    X[i, j] = np.array(run.x)[start : start + D] / np.where(i == j, 1.0, np.sqrt(2.0))
    values, Q = np.linalg.eigh(X)  # which reads the lower triangle only
    return (Q * np.maximum(values, 0.0)) @ Q.T


def _svec(matrices: Floats) -> Floats:
    """Upper triangles column by column, which is lower triangles row by row, off-diagonal times sqrt(2)."""
    i, j = np.tril_indices(matrices.shape[-1])
    return matrices[:, i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
