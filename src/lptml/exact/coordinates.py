"""The coordinates in which the interior-point kernel works."""

import numpy as np

from lptml._dense import cholesky, combine, product, sandwich, transpose, triangular_inverse
from lptml._jit import kernel
from lptml.constraints import Floats


@kernel
def scale_problem(
    V: Floats,
    W: Floats,
    sign: Floats,
    bound: Floats,
    R: Floats,
    rho: float,
    C0: Floats,
    lower: float,
    cost: float,
    U: Floats,
    h: Floats,
    Rs: Floats,
    Cs: Floats,
    T: Floats,
    units: Floats,
    B: Floats,
    Bt: Floats,
    mats: Floats,
) -> float:
    """The problem in coordinates that suit one start and one elastic cost.

    Bounds become 1, features get the same root mean square, and then the space is whitened: the average
    matrix of the upper bounds, plus ``lower`` times that of the lower bounds, plus ``cost`` times C0, becomes
    the identity. Upper bounds limit A in just these directions, so a feasible X is neither huge nor tiny,
    however correlated the features are.

    The vectors, right-hand sides, R, C0, the coordinates T and the units of the multipliers go to the
    arguments after ``cost``; returns the size of the objective. Undo: A = T'XT, multipliers divided by their
    units. The last three are room to work in: (k, d), (d, k) and (5, d, d).
    """
    m, d = V.shape
    k = m + W.shape[0]
    n = m + R.shape[0]
    P, Lit, work, C, scale = mats[0], mats[1], mats[2], mats[3], mats[4, 0]
    uppers = 0
    for i in range(m):
        if sign[i] > 0.0:
            uppers += 1
    for i in range(k):
        root = np.sqrt(bound[i % m])
        for p in range(d):
            B[i, p] = (V[i, p] if i < m else W[i - m, p]) / root
    for p in range(d):
        largest = 0.0
        for i in range(k):
            largest = max(largest, abs(B[i, p]))
        scale[p] = 1.0
        if largest > 0.0:
            total = 0.0
            for i in range(k):
                ratio = B[i, p] / largest
                total += ratio * ratio
            scale[p] = largest * np.sqrt(d * total / k)
        for i in range(k):
            B[i, p] /= scale[p]
            weight = 1.0 / uppers if sign[i % m] > 0.0 else lower / (m - uppers)
            Bt[p, i] = weight * B[i, p]
    size = 0.0
    for i in range(d):
        for j in range(d):
            C[i, j] = C0[i, j] / (scale[i] * scale[j])
        size += C[i, i] / d
    product(Bt, B, P)
    mean = 0.0
    for i in range(d):
        mean += P[i, i] / d
    if mean == 0.0:
        mean = 1.0
    for i in range(d):
        for j in range(d):
            P[i, j] = d * (P[i, j] + cost * mean * C[i, j] / size)
        P[i, i] += 1e-12 * d * mean
    cholesky(P)
    triangular_inverse(P, T)
    transpose(T, Lit)
    product(B, Lit, U)
    sandwich(T, C, Lit, work, Cs)
    whitened = 0.0
    for i in range(d):
        whitened += Cs[i, i] / d
    combine(1.0 / whitened, Cs, 0.0, Cs, Cs)
    for i in range(m):
        h[i] = sign[i]
        units[i] = bound[i] / whitened
    if n > m:
        for i in range(d):
            for j in range(d):
                C[i, j] = R[0, i, j] / (scale[i] * scale[j])
        sandwich(T, C, Lit, work, Rs[0])
        unit = abs(rho)
        if rho == 0.0:
            for i in range(d):
                for j in range(d):
                    unit = max(unit, abs(Rs[0, i, j]))
        combine(1.0 / unit, Rs[0], 0.0, Rs[0], Rs[0])
        h[m] = rho / unit
        units[m] = unit / whitened
    for i in range(d):
        for j in range(d):
            T[i, j] /= scale[j]
    return whitened
