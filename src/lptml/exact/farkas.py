"""From multipliers of the elastic problem to multipliers that prove infeasibility.

At an elastic optimum C0 + sum y_i s_i C_i is semidefinite, and the multipliers are a million times larger
than C0. A certificate needs S = sum y_i s_i C_i itself to be semidefinite, so the last millionth has to be
repaired. There are two ways, for the two ways in which S can be close to the boundary of the cone:

- ``lifted``: a little more weight on the upper bounds among them, whose matrices are semidefinite, lifts all
  eigenvalues. Lower bounds that reach outside the span of those can have no weight at all.
- ``facial``: S and X are complementary, so S should vanish on the range of X. Project the multipliers onto
  those for which it does; what remains is positive definite on the other directions. Contradictory triplets,
  whose matrices add up to exactly zero, need this one.

All is in the kernel's coordinates, and whoever uses the result checks it anew.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import Floats


def repairs(U: Floats, s: Floats, R: Floats, y: Floats, X: Floats) -> Iterator[Floats]:
    """Candidates for a certificate near the multipliers y of an elastic optimum X.

    There are none where no multiplier counts, or where units were so far apart that something overflowed.
    """
    total = float(y.sum())
    if not total > 0 or not np.isfinite(total + np.abs(U).sum() + np.abs(R).sum() + np.abs(X).sum()):
        return
    y = y / total
    upper = (s > 0) & (y[: len(s)] > 0)
    bounded = len(R) > 0 and y[-1] > 0 and bool(np.linalg.eigvalsh(R[0])[0] >= 0)
    if len(U) == len(s) and (upper.any() or bounded):
        yield lifted(U, s, R, y, upper, bounded)
    yield facial(U, s, R, y, X)


def lifted(U: Floats, s: Floats, R: Floats, y: Floats, upper: NDArray[np.bool_], bounded: bool) -> Floats:
    """More weight on semidefinite matrices: the upper bounds, and R if it is one."""
    m, d = U.shape
    y = y.copy()
    share = np.append(upper, bounded)[: len(y)] / (upper.sum() + bounded)
    P = (U.T * share[:m]) @ U + (share[m] * R[0] if len(R) else 0.0)
    values, Q = np.linalg.eigh(P)
    inside = values > 1e-12 * values[-1]
    if not inside.any():  # points that coincide
        return y
    Q, values = Q[:, inside], values[inside]  # (d, rank)
    if Q.shape[1] < d:
        outside = np.abs(U - (U @ Q) @ Q.T).max(axis=1)
        y[:m][outside > 1e-9 * np.abs(U).max(axis=1)] = 0.0
    root = Q / np.sqrt(values)  # root' P root = I
    S = (U.T * (s * y[:m])) @ U + (y[m] * R[0] if len(R) else 0.0)
    low = np.linalg.eigvalsh(root.T @ S @ root)[0]
    if low < 1e-14:
        y += share * (1e-12 - 1.001 * min(low, 0.0))
    return y


def facial(U: Floats, s: Floats, R: Floats, y: Floats, X: Floats) -> Floats:
    """The nearest multipliers whose matrix vanishes on the range of X."""
    m = len(s)
    C = s[:, None, None] * U[:m, :, None] * U[:m, None, :]  # (m, d, d)
    if len(U) > m:
        C -= s[:, None, None] * U[m:, :, None] * U[m:, None, :]
    C = np.concatenate([C, R])
    values, Q = np.linalg.eigh(X)
    rotated = Q.T @ C @ Q  # (n, d, d)
    S = np.einsum("i,ijk->jk", y, rotated)
    support = np.flatnonzero(y > 0)
    out = np.zeros_like(y)
    for _ in range(3):
        if len(support) == 0:  # nothing is left to vanish with
            break
        alive = values > np.diag(S)  # strict complementarity: the range of X
        rows = rotated[support][:, alive, :].reshape(len(support), -1).T  # vanishing rows of S
        weights = y[support]
        weights = weights - np.linalg.lstsq(rows, rows @ weights, rcond=1e-12)[0] if rows.size else weights
        if (weights > 0).all():
            out[support] = weights
            break
        support = support[weights > 0]
    return out
