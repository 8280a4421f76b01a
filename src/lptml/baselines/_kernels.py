"""Compiled inner loops of ITML and LMNN; imported only when one of them is fitted."""

from __future__ import annotations

import numpy as np

from lptml._jit import kernel
from lptml.baselines._common import Floats, Ints


@kernel
def itml_sweeps(
    A: Floats, V: Floats, sign: Floats, xi: Floats, dual: Floats, gamma: float, max_iter: int, tol: float
) -> tuple[int, float]:
    """Cyclic Bregman projections (Davis et al. 2007, algorithm 1), in place; return sweeps and last change.

    The change is that of the duals in a sweep, relative to their size.
    """
    n, d = V.shape
    Av = np.empty(d)
    change = np.inf
    for sweep in range(1, max_iter + 1):
        moved = 0.0
        size = 0.0
        for i in range(n):
            p = 0.0
            for a in range(d):
                total = 0.0
                for b in range(d):
                    total += A[a, b] * V[i, b]
                Av[a] = total
                p += total * V[i, a]
            if p <= 0.0:  # rounding has made A singular along v: nothing to project
                continue
            delta = sign[i]
            # Equalises 1/p - delta alpha and 1/xi + delta alpha / gamma. The algorithm as printed has
            # delta (1/p - gamma/xi) / 2 instead, which is the projection for gamma = 1 only.
            alpha = min(dual[i], delta * gamma / (gamma + 1.0) * (1.0 / p - 1.0 / xi[i]))
            beta = delta * alpha / (1.0 - delta * alpha * p)
            xi[i] = gamma * xi[i] / (gamma + delta * alpha * xi[i])
            dual[i] -= alpha
            moved += abs(alpha)
            size += dual[i]
            for a in range(d):
                scaled = beta * Av[a]
                for b in range(d):
                    A[a, b] += scaled * Av[b]
        change = moved / size if size > 0.0 else moved
        if change <= tol:
            return sweep, change
    return max_iter, change


@kernel
def lmnn_push(
    D: Floats,
    first: int,
    targets: Ints,
    codes: Ints,
    smooth: float,
    W: Floats,
) -> float:
    """Hinge loss of the impostors of one block of points, and its derivative by every squared distance.

    D (b, n) are the squared distances of points first..first+b to all; W (b, n) receives d loss / d D. The
    hinge max(z, 0) is replaced by its Huber form of width ``smooth``: z^2 / (2 smooth) on (0, smooth).
    """
    b, n = D.shape
    loss = 0.0
    for r in range(b):
        i = first + r
        reach = -1.0
        for m in range(targets.shape[1]):
            if targets[i, m] >= 0:
                reach = max(reach, 1.0 + D[r, targets[i, m]])
        for l in range(n):
            if D[r, l] >= reach or codes[l] == codes[i]:
                continue
            for m in range(targets.shape[1]):
                j = targets[i, m]
                if j < 0:
                    continue
                z = 1.0 + D[r, j] - D[r, l]
                if z <= 0.0:
                    continue
                if z < smooth:
                    loss += z * z / (2.0 * smooth)
                    slope = z / smooth
                else:
                    loss += z - smooth / 2.0
                    slope = 1.0
                W[r, j] += slope
                W[r, l] -= slope
    return loss
