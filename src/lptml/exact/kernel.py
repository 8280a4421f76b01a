"""The compiled interior-point method for the basis problem, in scaled units.

It solves, for matrices C_i = u_i u_i' or u_i u_i' - w_i w_i' and at most one general matrix R,

    minimise    <C0, X> - c log det X + K t
    subject to  s_i <C_i, X> + z_i - t = h_i    (the last row: <R, X> + z - t = rho)
                X >= 0 (semidefinite), z >= 0, t >= 0

with the multipliers y >= 0 and the dual slacks Z = C0 + sum_i y_i s_i C_i and tau = K - sum_i y_i. The
elastic variable t makes both problems strictly feasible, so there is always an optimum; t > 0 there means
that the constraints contradict each other. c = 0 is the linear problem, c > 0 the log-determinant
divergence, whose optimum has XZ = cI instead of XZ = 0: a central path that is stopped half-way in one
block.

The method is the primal-dual predictor-corrector of Mehrotra with the HKM direction (Helmberg, Rendl,
Vanderbei and Wolkowicz 1996; Kojima, Shindoh and Hara 1997; Monteiro 1997). Because the C_i have rank one,
the Schur complement needs no matrix product per constraint: with X = LL' and Z = NN',

    M_ij = s_i s_j <C_i, X C_j Z^-1> = s_i s_j (u_i'X u_j) (u_i'Z^-1 u_j),

the elementwise product of two Gram matrices, those of UL and of UN^-T. Both are positive semidefinite as
computed, so M keeps its sign in floating point too. Rank two is the same with U and W stacked and then
folded.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on Optimization 2,
1992.

C. Helmberg, F. Rendl, R. J. Vanderbei, H. Wolkowicz, "An interior-point method for semidefinite programming",
SIAM Journal on Optimization 6, 1996.

M. Kojima, S. Shindoh, S. Hara, "Interior-point methods for the monotone semidefinite linear complementarity
problem in symmetric matrices", SIAM Journal on Optimization 7, 1997.

R. D. C. Monteiro, "Primal-dual path-following algorithms for semidefinite programming", SIAM Journal on
Optimization 7, 1997.
"""

import numpy as np

from lptml._dense import (
    BLAS_FROM,
    cholesky,
    cholesky_solve,
    combine,
    gram,
    inner,
    multiply,
    product,
    sandwich,
    smallest_eigenvalue,
    smallest_of_two,
    transpose,
    triangular_inverse,
)
from lptml._jit import kernel
from lptml.constraints import Floats

_ROWS = 128  # of the Schur complement at a time: two blocks stay in the cache

WELL_POSED = 1e-4  # the error down to which the Schur complement is conditioned well enough


# A function that calls no other costs next to nothing to call, one that does 10 nanoseconds for every array
# (Numba counts references): what an iteration at d = 2 needs is of the first kind, and ``solve`` chooses
# between loops and BLAS.


@kernel
def _values(U: Floats, m: int, sign: Floats, UT: Floats, out: Floats) -> None:
    """out_i <- s_i <C_i, T> for every constraint but the general one, given the product UT."""
    k, d = U.shape
    for i in range(m):
        total = 0.0
        for p in range(d):
            total += UT[i, p] * U[i, p]
        if k > m:
            for p in range(d):
                total -= UT[m + i, p] * U[m + i, p]
        out[i] = sign[i] * total


@kernel
def _weighted(U: Floats, m: int, sign: Floats, y: Floats, out: Floats) -> None:
    """out <- W with U'W = sum_i y_i s_i C_i, without the general constraint."""
    k, d = U.shape
    for i in range(m):
        factor = y[i] * sign[i]
        for p in range(d):
            out[i, p] = factor * U[i, p]
        if k > m:
            for p in range(d):
                out[m + i, p] = -factor * U[m + i, p]


@kernel
def _schur(m: int, sign: Floats, G: Floats, H: Floats, elastic: float, M: Floats) -> None:
    """Lower triangle of M <- the Schur complement without its diagonal term, from the two Gram matrices."""
    for i in range(m):
        si = sign[i]
        for j in range(i + 1):
            M[i, j] = si * sign[j] * G[i, j] * H[i, j] + elastic
        if G.shape[0] > m:
            for j in range(i + 1):
                total = G[m + i, m + j] * H[m + i, m + j] - G[m + i, j] * H[m + i, j]
                M[i, j] += si * sign[j] * (total - G[m + j, i] * H[m + j, i])


@kernel
def _large_schur(m: int, sign: Floats, UL: Floats, UN: Floats, elastic: float, M: Floats) -> None:
    """The same by blocks of rows, from what the Gram matrices are the products of."""
    halves = UL.shape[0] // m
    for i in range(m):
        for j in range(i + 1):
            M[i, j] = elastic
    for start in range(0, m, _ROWS):
        stop = min(start + _ROWS, m)
        for first in range(halves):
            rows = slice(first * m + start, first * m + stop)
            for second in range(halves):
                columns = slice(second * m, second * m + stop)
                G, H = np.dot(UL[rows], UL[columns].T), np.dot(UN[rows], UN[columns].T)
                factor = 1.0 if first == second else -1.0
                for i in range(start, stop):
                    for j in range(i + 1):
                        M[i, j] += factor * sign[i] * sign[j] * G[i - start, j] * H[i - start, j]


@kernel
def _add_diagonal(m: int, row: Floats, z: Floats, y: Floats, elastic: float, shift: float, M: Floats) -> None:
    """Complete the Schur complement: ``row`` of the general constraint, slacks, and a shift."""
    n = M.shape[0]
    if n > m:
        for j in range(n):
            M[m, j] = row[j] + elastic
    for i in range(n):
        M[i, i] = (1.0 + shift) * (M[i, i] + z[i] / y[i])


@kernel
def _invert(L: Floats, Li: Floats, Lit: Floats) -> None:
    """Li and Lit <- the inverse of a Cholesky factor and the transpose of that; the rest of L <- 0."""
    for i in range(L.shape[0]):
        for j in range(i + 1, L.shape[0]):
            L[i, j] = 0.0
    triangular_inverse(L, Li)
    transpose(Li, Lit)


@kernel
def _longest_step(low: float, reach: float, x: Floats, dx: Floats, t: float, dt: float) -> float:
    """The longest step along which a matrix X, the vector x and the number t stay nonnegative.

    ``low`` is the smallest eigenvalue of L^-1 dX L^-T for X = LL'. Only a fraction ``reach`` of the way of
    the matrix to its boundary counts.
    """
    step = np.inf if low >= 0.0 else -reach / low
    if dt < 0.0:
        step = min(step, -t / dt)
    for i in range(x.shape[0]):
        if dx[i] < 0.0:
            step = min(step, -x[i] / dx[i])
    return step


@kernel
def _start(X: Floats, Z: Floats, y: Floats, z: Floats, multiplier: float, slack: float) -> None:
    """A start with every complementarity product near the same value; Z has the size that y gives it."""
    for i in range(X.shape[0]):
        for j in range(X.shape[0]):
            X[i, j] = 0.0
            Z[i, j] = 0.0
        X[i, i] = 1.0
        Z[i, i] = multiplier * slack
    for i in range(y.shape[0]):
        y[i] = multiplier
        z[i] = 1.0


@kernel
def _log_determinant(L: Floats) -> float:
    """log det LL'."""
    total = 0.0
    for i in range(L.shape[0]):
        total += np.log(L[i, i])
    return 2.0 * total


@kernel
def solve(
    U: Floats,
    m: int,
    sign: Floats,
    h: Floats,
    R: Floats,
    C0: Floats,
    c: float,
    K: float,
    tol: float,
    loose: float,
    max_iter: int,
    coordinates: Floats,
    A: Floats,
    best_X: Floats,
    best_y: Floats,
    best_z: Floats,
    mats: Floats,
    vecs: Floats,
    rows: Floats,
    squares: Floats,
    M: Floats,
    Ut: Floats,
) -> tuple[int, float]:
    """Solve the problem above; returns (iterations, t).

    It stops at errors below ``tol``, or below ``loose`` where the constraints clearly contradict each other.

    X, y and z of the best iterate go to the arguments with their names, and T'XT for the ``coordinates`` T to
    A. The last six are room to work in: (16, d, d), (8, n), (2, k, d), (2, k, k), (n, n) and (d, k).
    """
    k, d = U.shape
    n = h.shape[0]
    large = k >= BLAS_FROM
    X, Z, L, N, Li, Ni = mats[0], mats[1], mats[2], mats[3], mats[4], mats[5]
    Lit, Nit, Zi, Rd, base, dX = mats[6], mats[7], mats[8], mats[9], mats[10], mats[11]
    dZ, dXa, T, S = mats[12], mats[13], mats[14], mats[15]
    y, z, dy, dz, dza, rp = vecs[0], vecs[1], vecs[2], vecs[3], vecs[4], vecs[5]
    val, rhs = vecs[6], vecs[7]
    B, work, G, H = rows[0], rows[1], squares[0], squares[1]
    transpose(U, Ut)
    _start(X, Z, y, z, 1.0, 1.0 + n / d)
    t, tau = 10.0 / K, K
    best, best_t = np.inf, t
    # With a log det the optimum is inside the cone: do not go near its boundary.
    reach = 0.7 if c > 0.0 else 1.0
    restarted = False
    iteration = 0
    while True:
        combine(1.0, X, 0.0, X, L)
        combine(1.0, Z, 0.0, Z, N)
        if not (cholesky(L) and cholesky(N)):
            break
        _invert(L, Li, Lit)
        _invert(N, Ni, Nit)
        # Residuals of the two feasibility conditions, and the gap.
        if large:
            np.dot(U, X, work)
        else:
            multiply(U, X, work)
        _values(U, m, sign, work, val)
        _weighted(U, m, sign, y, work)
        if large:
            np.dot(Ut, work, Rd)
        else:
            multiply(Ut, work, Rd)
        if n > m:
            val[m] = inner(R[0], X)
            combine(1.0, Rd, y[m], R[0], Rd)
        primal = inner(C0, X) + K * t
        dual = 0.0
        comp = t * tau
        rt = K - tau
        worst_p = 0.0
        for i in range(n):
            rp[i] = h[i] + t - z[i] - val[i]
            worst_p = max(worst_p, abs(rp[i]))
            comp += z[i] * y[i]
            dual -= h[i] * y[i]
            rt -= y[i]
        worst_d = 0.0
        trace = 0.0
        for i in range(d):
            trace += X[i, i]
            for j in range(d):
                Rd[i, j] += C0[i, j] - Z[i, j]
                worst_d = max(worst_d, abs(Rd[i, j]))
        xz = inner(X, Z)
        gap = comp + xz
        if c > 0.0:
            log_x, log_z = _log_determinant(L), _log_determinant(N)
            primal -= c * log_x
            dual += c * (log_z + d * (1.0 - np.log(c)))
            gap -= c * (d + log_x + log_z - d * np.log(c))
        comp += max(0.0, xz - c * d)
        mu = comp / (n + d + 1)
        # The objective is its own yardstick: it is positive wherever some distance is asked for.
        yardstick = abs(primal) + abs(dual) if c == 0.0 else c * d + inner(C0, X) + K * t
        worst = max(worst_p, max(abs(rt) / K, max(gap, worst_d * trace) / yardstick))
        if worst < best:
            best, best_t = worst, t
            combine(1.0, X, 0.0, X, best_X)
            for i in range(n):
                best_y[i] = y[i]
                best_z[i] = z[i]
        if worst <= (loose if t > 0.01 else tol):
            break
        if iteration == max_iter or not worst < 1e6 * best:
            break
        product(Nit, Ni, Zi)
        elastic = t / tau
        shift = 0.0
        if n > m:
            sandwich(X, R[0], Zi, T, S)
            product(U, S, work)
            _values(U, m, sign, work, val)
            val[m] = inner(R[0], S)
        if large:
            np.dot(U, L, B)
            np.dot(U, Nit, work)
        else:
            multiply(U, L, B)
            multiply(U, Nit, work)
            gram(B, G)
            gram(work, H)
        while True:
            if large:
                _large_schur(m, sign, B, work, elastic, M)
            else:
                _schur(m, sign, G, H, elastic, M)
            _add_diagonal(m, val, z, y, elastic, shift, M)
            if cholesky(M) or shift > 1e-6:
                break
            shift = max(100.0 * shift, 1e-14)
        if shift > 1e-6:
            break
        sandwich(X, Rd, Zi, T, base)  # what the dual residual contributes to dX
        ap = ad = target = dt = dtau = 0.0
        for phase in range(2):
            if phase == 1:
                # The corrector: aim at the target on the central path, less the predictor's second-order
                # term.
                sandwich(dXa, dZ, Zi, T, S)
                combine(1.0, base, 1.0, S, base)
            combine(c + target, Zi, -1.0, X, dX)
            combine(1.0, dX, -1.0, base, dX)
            if large:
                np.dot(U, dX, work)
            else:
                multiply(U, dX, work)
            _values(U, m, sign, work, val)
            if n > m:
                val[m] = inner(R[0], dX)
            base_t = (target - dt * dtau) / tau - t
            for i in range(n):
                dz[i] = (target - dza[i] * dy[i]) / y[i] - z[i] if phase == 1 else -z[i]
                rhs[i] = val[i] + dz[i] - base_t + elastic * rt - rp[i]
                dy[i] = rhs[i]
            cholesky_solve(M, dy)
            for attempt in range(2):
                _weighted(U, m, sign, dy, work)
                if large:
                    np.dot(Ut, work, dZ)
                else:
                    multiply(Ut, work, dZ)
                if n > m:
                    combine(1.0, dZ, dy[m], R[0], dZ)
                sandwich(X, dZ, Zi, T, S)
                if phase == 0 or attempt == 1 or worst > WELL_POSED:
                    break
                # One round of iterative refinement against the operator itself: M was only formed to be
                # factored.
                if large:
                    np.dot(U, S, work)
                else:
                    multiply(U, S, work)
                _values(U, m, sign, work, val)
                if n > m:
                    val[m] = inner(R[0], S)
                total = 0.0
                worst_r = 0.0
                for i in range(n):
                    total += dy[i]
                for i in range(n):
                    rhs[i] -= val[i] + z[i] / y[i] * dy[i] + elastic * total
                    worst_r = max(worst_r, abs(rhs[i]))
                if worst_r <= 1e-3 * max(worst_p, 1e-10):
                    break
                cholesky_solve(M, rhs)
                for i in range(n):
                    dy[i] += rhs[i]
            combine(1.0, dX, -1.0, S, dX)
            combine(1.0, dZ, 1.0, Rd, dZ)
            dtau = rt
            for i in range(n):
                dtau -= dy[i]
                dz[i] -= z[i] / y[i] * dy[i]
            dt = base_t - elastic * dtau
            sandwich(Li, dX, Lit, T, S)
            low = smallest_of_two(S) if d == 2 else smallest_eigenvalue(S, T)
            ap = _longest_step(low, reach, z, dz, t, dt)
            sandwich(Ni, dZ, Nit, T, S)
            low = smallest_of_two(S) if d == 2 else smallest_eigenvalue(S, T)
            ad = _longest_step(low, reach, y, dy, tau, dtau)
            if phase == 0:
                ap = min(1.0, 0.98 * ap)
                ad = min(1.0, 0.98 * ad)
                after = (t + ap * dt) * (tau + ad * dtau)
                for i in range(n):
                    after += (z[i] + ap * dz[i]) * (y[i] + ad * dy[i])
                    dza[i] = dz[i]
                combine(1.0, dX, 0.0, dX, dXa)
                reduced = xz + ap * inner(dX, Z) + ad * inner(X, dZ) + ap * ad * inner(dX, dZ)
                after += max(0.0, reduced - c * d)
                # Mehrotra's sigma; the power as in SDPT3, at least 2.
                target = mu * min(1.0, max(0.0, after / comp) ** max(2.0, 3.0 * min(ap, ad) * min(ap, ad)))
        iteration += 1
        if max(ap, ad) < 0.1 and worst_p > 1e-3 and not restarted:
            # Short steps towards feasibility: probably there is none. Start where the elastic variable leads.
            restarted = True
            _start(X, Z, y, z, K / (n + 1), 1.0 + n / d)
            t, tau = 1.0, K / (n + 1)
            best = np.inf
            continue
        if max(ap, ad) < 1e-7:
            break
        gamma = 0.9 + 0.09 * min(1.0, min(ap, ad))
        ap = min(1.0, gamma * ap)
        ad = min(1.0, gamma * ad)
        combine(1.0, X, ap, dX, X)
        combine(1.0, Z, ad, dZ, Z)
        for i in range(n):
            z[i] += ap * dz[i]
            y[i] += ad * dy[i]
        t += ap * dt
        tau += ad * dtau
    transpose(coordinates, L)
    sandwich(L, best_X, coordinates, T, A)
    return iteration, best_t
