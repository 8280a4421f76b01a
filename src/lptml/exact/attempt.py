"""One attempt at a basis problem in one compiled call: scale, solve, undo, check.

At d = 2 a solve takes 20 microseconds, and each crossing between Python and compiled code, with the arrays it
needs, a few more. What Python does, besides, only one thread at a time can do.
"""

import numpy as np

from lptml._dense import cholesky, inner, product, sandwich, transpose, triangular_inverse
from lptml._jit import kernel
from lptml.constraints import Floats, Ints
from lptml.exact.coordinates import scale_problem
from lptml.exact.kernel import solve
from lptml.exact.verify import (
    LEAST_GAP,
    RADIUS,
    check_certificate_arrays,
    check_optimum_arrays,
    eigenvalues,
)

UNSETTLED = 0  # neither of the others could be verified
OPTIMAL = 1
INFEASIBLE = 2
NOTHING_ASKED = 3  # no lower bound, no log det: A = 0


@kernel
def attempt(
    V: Floats,
    W: Floats,
    sign: Floats,
    bound: Floats,
    R: Floats,
    rho: float,
    C0: Floats,
    c: float,
    lower: float,
    cost: float,
    elastic: float,
    tol: float,
    loose: float,
    max_iter: int,
    accept: float,
    metrics: Floats,
    multipliers: Floats,
    support: Ints,
) -> tuple[int, int, int, float, float, float, float, float, float]:
    """Solve an instance; returns outcome, iterations, size of the support, elastic variable, <C0, A>, and
    four numbers.

    These are the residuals of (A, dual) of an optimum, or gap and radius of the certificate ``dual``.
    ``lower``, ``cost`` and ``elastic`` are those of ``sdp.Attempt``. A and the solution X in the kernel's
    coordinates go to ``metrics`` (2, d, d); ``dual`` and the kernel's y and z to ``multipliers`` (3, n), both
    zero before; the tight constraints to the first places of ``support``.

    Of a multiplier and its slack one is of the order of the tolerance (strict complementarity): such
    multipliers are set to zero, unless an optimum then fails its check.
    """
    m, d = V.shape
    k, n = m + W.shape[0], m + R.shape[0]
    A, X, dual, y, z = metrics[0], metrics[1], multipliers[0], multipliers[1], multipliers[2]
    # The room that the functions below work in.
    mats, vecs, rows = np.empty((18, d, d)), np.empty((10, n)), np.empty((3, k, d))
    work, spare = rows[0], vecs[0]
    lowers = 0
    for i in range(m):
        if sign[i] < 0.0:
            lowers += 1
    if lowers == 0 and c == 0.0 and rho >= 0.0:
        primal, psd, slack, gap = check_optimum_arrays(
            V, W, sign, bound, R, rho, C0, c, A, dual, work, spare, mats
        )
        return NOTHING_ASKED, 0, 0, 0.0, 0.0, primal, psd, slack, gap
    squares, M, Ut = np.empty((2, k, k)), np.empty((n, n)), np.empty((d, k))
    Cs, T, h, units, U, Rs = mats[16], mats[17], vecs[8], vecs[9], rows[2], np.empty(R.shape)
    size = scale_problem(V, W, sign, bound, R, rho, C0, lower, cost, U, h, Rs, Cs, T, units, work, Ut, mats)
    iterations, t = solve(
        U, m, sign, h, Rs, Cs, c / size, elastic, tol, loose, max_iter, T, A, X, y, z,
        mats, vecs, rows, squares, M, Ut,
    )  # fmt: skip
    tight = 0
    for i in range(m):
        if y[i] > z[i]:
            support[tight] = i
            tight += 1
    linear = inner(C0, A)
    if t < accept:
        for everything in range(2):
            for i in range(n):
                dual[i] = y[i] / units[i] if y[i] > z[i] or everything == 1 else 0.0
            primal, psd, slack, gap = check_optimum_arrays(
                V, W, sign, bound, R, rho, C0, c, A, dual, work, spare, mats
            )
            if max(primal, psd, slack, gap) <= accept and primal <= accept / 3:
                return OPTIMAL, iterations, tight, t, linear, primal, psd, slack, gap
    elif n == k:
        for i in range(n):
            dual[i] = y[i] if y[i] > z[i] else 0.0
        if _lift(U, sign, dual, work, Ut, mats):
            total = 0.0
            for i in range(n):
                dual[i] /= units[i]
                total += dual[i] * bound[i]
            for i in range(n):
                dual[i] /= total
            gap, radius = check_certificate_arrays(V, W, sign, bound, R, rho, dual, work, spare, mats)
            if gap > LEAST_GAP and radius >= RADIUS:
                return INFEASIBLE, iterations, tight, t, linear, gap, radius, 0.0, 0.0
    for i in range(n):
        dual[i] = y[i] / units[i]
    return UNSETTLED, iterations, tight, t, linear, np.inf, np.inf, np.inf, np.inf


@kernel
def _lift(U: Floats, sign: Floats, y: Floats, weighted: Floats, Ut: Floats, mats: Floats) -> bool:
    """``farkas.lifted`` for pairs whose upper bounds span the space; False where they do not.

    Multipliers y with sum y_i s_i u_i u_i' almost semidefinite get it wholly, by more weight on the upper
    bounds among them. The last three are room to work in: (m, d), (d, m) and (7, d, d).
    """
    m, d = U.shape
    total = 0.0
    count = 0
    for i in range(m):
        total += y[i]
        if sign[i] > 0.0 and y[i] > 0.0:
            count += 1
    if count < d:
        return False
    P, S, Li, Lit, work, M, eigen = mats[0], mats[1], mats[2], mats[3], mats[4], mats[5], mats[6, 0]
    transpose(U, Ut)
    for which in range(2):
        for i in range(m):
            y[i] /= total if which == 0 else 1.0
            factor = sign[i] * y[i]
            if which == 0:
                factor = 1.0 / count if factor > 0.0 else 0.0
            for p in range(d):
                weighted[i, p] = factor * U[i, p]
        product(Ut, weighted, P if which == 0 else S)
    if not cholesky(P):
        return False
    smallest, largest = np.inf, 0.0
    for p in range(d):
        smallest = min(smallest, P[p, p])
        largest = max(largest, P[p, p])
    if not smallest > 1e-4 * largest:
        return False
    triangular_inverse(P, Li)
    transpose(Li, Lit)
    sandwich(Li, S, Lit, work, M)
    eigenvalues(M, eigen)
    low = eigen[0]
    if low < 1e-14:
        more = (1e-12 - 1.001 * min(low, 0.0)) / count
        for i in range(m):
            if sign[i] > 0.0 and y[i] > 0.0:
                y[i] += more
    return True
