"""The compiled interior-point method for the basis problem, in scaled units.

It solves, for matrices C_i = u_i u_i' or u_i u_i' - w_i w_i' and at most one general matrix R,

    minimise    <C0, X> - c log det X + K t
    subject to  s_i <C_i, X> + z_i - t = h_i    (the last row: <R, X> + z - t = rho)
                X >= 0 (semidefinite), z >= 0, t >= 0

with the multipliers y >= 0 and the dual slacks Z = C0 + sum_i y_i s_i C_i and tau = K - sum_i y_i. The elastic
variable t makes both problems strictly feasible, so there is always an optimum; t > 0 there means that the
constraints contradict each other. c = 0 is the linear problem, c > 0 the log-determinant divergence, whose
optimum has XZ = cI instead of XZ = 0: a central path that is stopped half-way in one block.

The method is the primal-dual predictor-corrector of Mehrotra with the HKM direction (Helmberg, Rendl,
Vanderbei and Wolkowicz 1996; Kojima, Shindoh and Hara 1997; Monteiro 1997). Because the C_i have rank one, the
Schur complement needs no matrix product per constraint: with X = LL' and Z = NN',

    M_ij = s_i s_j <C_i, X C_j Z^-1> = s_i s_j (u_i'X u_j) (u_i'Z^-1 u_j),

the elementwise product of two Gram matrices, those of UL and of UN^-T. Both are positive semidefinite as
computed, so M keeps its sign in floating point too. Rank two is the same with U and W stacked and then folded.
"""

import numpy as np
from numba import njit

from lptml._sdp_dense import (
    cholesky,
    cholesky_solve,
    copy_matrix,
    gram,
    inner,
    product,
    smallest_eigenvalue,
    symmetric_part,
    transpose,
    triangular_inverse,
)

CONVERGED = 0
STALLED = 1
BROKEN = 2


@njit(cache=True, nogil=True)
def _values(U, m, sign, R, T, work, out):
    """out_i <- s_i <C_i, T> for every constraint, the general one last."""
    k, d = U.shape
    product(U, T, work)
    for i in range(m):
        total = 0.0
        for p in range(d):
            total += work[i, p] * U[i, p]
        if k > m:
            for p in range(d):
                total -= work[m + i, p] * U[m + i, p]
        out[i] = sign[i] * total
    for q in range(R.shape[0]):
        out[m + q] = inner(R[q], T)


@njit(cache=True, nogil=True)
def _combine(U, Ut, m, sign, R, y, work, out):
    """out <- sum_i y_i s_i C_i."""
    k, d = U.shape
    for i in range(m):
        factor = y[i] * sign[i]
        for p in range(d):
            work[i, p] = factor * U[i, p]
        if k > m:
            for p in range(d):
                work[m + i, p] = -factor * U[m + i, p]
    product(Ut, work, out)
    for q in range(R.shape[0]):
        for i in range(d):
            for j in range(d):
                out[i, j] += y[m + q] * R[q, i, j]


@njit(cache=True, nogil=True)
def _schur(U, m, sign, R, X, L, Zi, Nit, ratio, tratio, B, G, H, work, T, M):
    """Lower triangle of M <- the Schur complement; its strict upper triangle gets a copy, for refinement."""
    k, d = U.shape
    product(U, L, B)
    gram(B, G)
    product(U, Nit, B)
    gram(B, H)
    if k == m:
        for i in range(m):
            for j in range(i + 1):
                M[i, j] = sign[i] * sign[j] * G[i, j] * H[i, j] + tratio
    else:
        for i in range(m):
            for j in range(i + 1):
                total = G[i, j] * H[i, j] + G[m + i, m + j] * H[m + i, m + j]
                total -= G[m + i, j] * H[m + i, j] + G[m + j, i] * H[m + j, i]
                M[i, j] = sign[i] * sign[j] * total + tratio
    n = M.shape[0]
    if n > m:
        product(X, R[0], T)
        RT = np.empty((d, d))
        product(T, Zi, RT)
        symmetric_part(RT)
        row = np.empty(n)
        _values(U, m, sign, R, RT, work, row)
        for j in range(n):
            M[m, j] = row[j] + tratio
    for i in range(n):
        M[i, i] += ratio[i]
        for j in range(i):
            M[j, i] = M[i, j]


@njit(cache=True, nogil=True)
def _solve_refined(M, diagonal, rhs, x, residual, rounds):
    """x <- M^-1 rhs; the factor is in the lower triangle, M itself in the upper one and in diagonal."""
    n = rhs.shape[0]
    for i in range(n):
        x[i] = rhs[i]
    cholesky_solve(M, x)
    for _ in range(rounds):
        for i in range(n):
            residual[i] = rhs[i] - diagonal[i] * x[i]
        for i in range(n):
            xi = x[i]
            total = 0.0
            for j in range(i + 1, n):
                total += M[i, j] * x[j]
                residual[j] -= M[i, j] * xi
            residual[i] -= total
        cholesky_solve(M, residual)
        for i in range(n):
            x[i] += residual[i]


@njit(cache=True, nogil=True)
def _step_matrix(Li, Lit, dX, T, S, diagonal, off):
    """The longest step that keeps X + step dX semidefinite, where Li is the inverse Cholesky factor of X."""
    product(Li, dX, T)
    product(T, Lit, S)
    symmetric_part(S)
    low = smallest_eigenvalue(S, diagonal, off)
    return np.inf if low >= 0.0 else -1.0 / low


@njit(cache=True, nogil=True)
def _step_vector(x, dx):
    step = np.inf
    for i in range(x.shape[0]):
        if dx[i] < 0.0:
            step = min(step, -x[i] / dx[i])
    return step


@njit(cache=True, nogil=True)
def _start(X, Z, y, z, multiplier, slack):
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


@njit(cache=True, nogil=True)
def solve(U, m, sign, h, R, C0, c, K, tol, max_iter):
    """Solve the problem above; returns (code, iterations, X, y, z, t)."""
    k, d = U.shape
    n = h.shape[0]
    X = np.zeros((d, d))
    Z = np.zeros((d, d))
    y = np.empty(n)
    z = np.empty(n)
    _start(X, Z, y, z, 1.0, 1.0 + n / d)
    t = 10.0 / K
    tau = K
    restarted = False
    L = np.empty((d, d))
    Li = np.empty((d, d))
    N = np.empty((d, d))
    Ni = np.empty((d, d))
    Lit = np.empty((d, d))
    Nit = np.empty((d, d))
    Ut = np.empty((d, k))
    transpose(U, Ut)
    Zi = np.empty((d, d))
    Rd = np.empty((d, d))
    base = np.empty((d, d))
    dX = np.empty((d, d))
    dZ = np.empty((d, d))
    dXa = np.empty((d, d))
    T = np.empty((d, d))
    S = np.empty((d, d))
    diag = np.empty(d)
    off = np.empty(d)
    B = np.empty((k, d))
    work = np.empty((k, d))
    G = np.empty((k, k))
    H = np.empty((k, k))
    M = np.empty((n, n))
    mdiag = np.empty(n)
    rp = np.empty(n)
    val = np.empty(n)
    rhs = np.empty(n)
    dy = np.empty(n)
    dz = np.empty(n)
    dza = np.empty(n)
    ratio = np.empty(n)
    residual = np.empty(n)
    errors = np.empty(3)
    best = np.inf
    bX = np.empty((d, d))
    by = np.empty(n)
    bz = np.empty(n)
    bt = t
    code = STALLED
    iteration = 0
    norm0 = 0.0
    for i in range(d):
        norm0 = max(norm0, abs(C0[i, i]))
    for iteration in range(max_iter + 1):
        for i in range(d):
            for j in range(d):
                L[i, j] = X[i, j] if j <= i else 0.0
                N[i, j] = Z[i, j] if j <= i else 0.0
        if not cholesky(L) or not cholesky(N):
            code = BROKEN
            break
        triangular_inverse(L, Li)
        triangular_inverse(N, Ni)
        transpose(Li, Lit)
        transpose(Ni, Nit)
        # residuals
        _values(U, m, sign, R, X, work, val)
        _combine(U, Ut, m, sign, R, y, work, Rd)
        worst_p = 0.0
        primal = inner(C0, X) + K * t
        dual = 0.0
        comp = t * tau
        total_y = 0.0
        for i in range(n):
            rp[i] = h[i] + t - z[i] - val[i]
            worst_p = max(worst_p, abs(rp[i]))
            comp += z[i] * y[i]
            dual -= h[i] * y[i]
            total_y += y[i]
        rt = K - total_y - tau
        worst_d = abs(rt)
        for i in range(d):
            for j in range(d):
                Rd[i, j] += C0[i, j] - Z[i, j]
                worst_d = max(worst_d, abs(Rd[i, j]))
        xz = inner(X, Z)
        linear = comp
        if c > 0.0:
            logs = 0.0
            logx = 0.0
            for i in range(d):
                logs += np.log(L[i, i] * N[i, i])
                logx += np.log(L[i, i])
            logs *= 2.0
            primal -= 2.0 * c * logx
            dual += 2.0 * c * (0.5 * logs - logx) + c * d * (1.0 - np.log(c))
            gap = linear + xz - c * d - c * (logs - d * np.log(c))
            comp += max(0.0, xz - c * d)
        else:
            gap = linear + xz
            comp += xz
        mu = comp / (n + d + 1)
        errors[0] = worst_p
        errors[1] = worst_d / (1.0 + norm0 + K * (tau < t * K))
        errors[2] = gap / (1.0 + abs(primal) + abs(dual))
        worst = max(errors[0], max(errors[1], errors[2]))
        if worst < best:
            best = worst
            copy_matrix(X, bX)
            for i in range(n):
                by[i] = y[i]
                bz[i] = z[i]
            bt = t
        if worst <= tol:
            code = CONVERGED
            break
        if iteration == max_iter or not np.isfinite(worst) or worst > 1e6 * best:
            break
        product(Nit, Ni, Zi)
        for i in range(n):
            ratio[i] = z[i] / y[i]
        tratio = t / tau
        _schur(U, m, sign, R, X, L, Zi, Nit, ratio, tratio, B, G, H, work, T, M)
        for i in range(n):
            mdiag[i] = M[i, i]
        shift = 0.0
        factored = cholesky(M)
        while not factored and shift < 1e-6:
            shift = max(100.0 * shift, 1e-14)
            for i in range(n):
                M[i, i] = mdiag[i] * (1.0 + shift)
                for j in range(i):
                    M[i, j] = M[j, i]
            factored = cholesky(M)
        if not factored:
            code = BROKEN
            break
        # X Rd Z^-1, symmetrised: what the dual residual contributes to dX
        product(X, Rd, T)
        product(T, Zi, base)
        symmetric_part(base)
        ap = 0.0
        ad = 0.0
        sigma = 0.0
        dta = 0.0
        dtaua = 0.0
        for phase in range(2):
            if phase == 0:
                target = 0.0
            else:
                target = sigma * mu
                # second-order term of the predictor: dXa dZa Z^-1
                product(dXa, dZ, T)
                product(T, Zi, S)
                symmetric_part(S)
                for i in range(d):
                    for j in range(d):
                        base[i, j] += S[i, j]
            for i in range(d):
                for j in range(d):
                    dX[i, j] = (c + target) * Zi[i, j] - X[i, j] - base[i, j]
            _values(U, m, sign, R, dX, work, val)
            # the elastic variable, like a slack
            base_t = (target - dta * dtaua) / tau - t
            for i in range(n):
                dz[i] = (target - dza[i] * dy[i]) / y[i] - z[i] if phase == 1 else -z[i]
                rhs[i] = val[i] + dz[i] - base_t + tratio * rt - rp[i]
            _solve_refined(M, mdiag, rhs, dy, residual, 1)
            _combine(U, Ut, m, sign, R, dy, work, S)
            total_dy = 0.0
            for i in range(n):
                total_dy += dy[i]
                dz[i] -= ratio[i] * dy[i]
            dtau = rt - total_dy
            dt = base_t - tratio * dtau
            product(X, S, T)
            for i in range(d):
                for j in range(d):
                    dZ[i, j] = Rd[i, j] + S[i, j]
            product(T, Zi, S)
            symmetric_part(S)
            for i in range(d):
                for j in range(d):
                    dX[i, j] -= S[i, j]
            ap = min(_step_matrix(Li, Lit, dX, T, S, diag, off), _step_vector(z, dz))
            ad = min(_step_matrix(Ni, Nit, dZ, T, S, diag, off), _step_vector(y, dy))
            if dt < 0.0:
                ap = min(ap, -t / dt)
            if dtau < 0.0:
                ad = min(ad, -tau / dtau)
            if phase == 0:
                ap = min(1.0, 0.98 * ap)
                ad = min(1.0, 0.98 * ad)
                after = (t + ap * dt) * (tau + ad * dtau)
                for i in range(n):
                    after += (z[i] + ap * dz[i]) * (y[i] + ad * dy[i])
                    dza[i] = dz[i]
                xza = xz + ap * inner(dX, Z) + ad * inner(X, dZ) + ap * ad * inner(dX, dZ)
                after += max(0.0, xza - c * d)
                copy_matrix(dX, dXa)
                dta = dt
                dtaua = dtau
                power = max(2.0, 3.0 * min(ap, ad) ** 2)
                sigma = min(1.0, max(0.0, after / comp) ** power)
            else:
                gamma = 0.9 + 0.09 * min(1.0, min(ap, ad))
                ap = min(1.0, gamma * ap)
                ad = min(1.0, gamma * ad)
        if max(ap, ad) < 0.1 and errors[0] > 1e-3 and not restarted:
            # Short steps towards feasibility: probably there is none. Start where the elastic variable leads.
            restarted = True
            _start(X, Z, y, z, K / (n + 1), 1.0 + n / d)
            t = 1.0
            tau = K / (n + 1)
            best = np.inf
            continue
        if max(ap, ad) < 1e-7:
            break
        for i in range(d):
            for j in range(d):
                X[i, j] += ap * dX[i, j]
                Z[i, j] += ad * dZ[i, j]
        for i in range(n):
            z[i] += ap * dz[i]
            y[i] += ad * dy[i]
        t += ap * dt
        tau += ad * dtau
    return code, iteration, bX, by, bz, bt


@njit(cache=True, nogil=True)
def scale_problem(V, W, sign, bound, R, rho, C0):
    """The problem in units that suit one start and one elastic cost: returns (U, s, h, R, C0, scale, size, unit).

    Every bound becomes 1, every feature gets the same root mean square, the identity gets values near 1 and
    the objective trace d. Undo: A_ij = X_ij / (scale_i scale_j), multipliers times size / bound (unit for R).
    """
    m, d = V.shape
    k = m + W.shape[0]
    n = m + R.shape[0]
    U = np.empty((k, d))
    for i in range(k):
        root = np.sqrt(bound[i % m])
        for p in range(d):
            U[i, p] = (V[i, p] if i < m else W[i - m, p]) / root
    scale = np.empty(d)
    for p in range(d):
        largest = 0.0
        for i in range(k):
            largest = max(largest, abs(U[i, p]))
        scale[p] = 1.0
        if largest > 0.0:
            total = 0.0
            for i in range(k):
                ratio = U[i, p] / largest
                total += ratio * ratio
            scale[p] = largest * np.sqrt(d * total / k)
        for i in range(k):
            U[i, p] /= scale[p]
    Cs = np.empty((d, d))
    size = 0.0
    for i in range(d):
        for j in range(d):
            Cs[i, j] = C0[i, j] / (scale[i] * scale[j])
        size += Cs[i, i] / d
    s = np.empty(m)
    h = np.empty(n)
    for i in range(m):
        s[i] = sign[i]
        h[i] = s[i]
    Rs = np.empty(R.shape)
    unit = 1.0
    norm = 0.0
    for i in range(d):
        for j in range(d):
            Cs[i, j] /= size
            if n > m:
                Rs[0, i, j] = R[0, i, j] / (scale[i] * scale[j])
                norm = max(norm, abs(Rs[0, i, j]))
    if n > m:
        unit = abs(rho) if rho != 0.0 else norm
        h[m] = rho / unit
        for i in range(d):
            for j in range(d):
                Rs[0, i, j] /= unit
    return U, s, h, Rs, Cs, scale, size, unit
