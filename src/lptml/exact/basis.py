"""From the support of an optimum to a minimal basis, and from a contradiction to a minimal one.

The constraints with positive multipliers have the same optimum as all of them. When the multipliers are the
only ones possible, none of those constraints is dispensable and they are a basis. The multipliers are
unique if no combination of the tight constraints' matrices lies in the face of the semidefinite cone that
is complementary to A (Alizadeh, Haeberly and Overton 1997): one rank computation. Otherwise (duplicates,
equal distances, and other degenerate sets) constraints are left out one by one, as in the proof of Lemma
2.2 of the paper.

References
----------
F. Alizadeh, J.-P. A. Haeberly, M. L. Overton, "Complementarity and nondegeneracy in semidefinite
programming", Mathematical Programming 77, 1997.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lptml.constraints import Floats, Ints
from lptml.exact.solution import BasisProblem, FarkasCertificate, Solution, Status

Solve = Callable[[Ints], Solution]

#: w falls when a constraint is left out only if it falls by more than this, relative to 1 + |w|.
LOWER = 1e-8

_INDEPENDENT = 1e-6  # smallest singular value of unit rows that counts as full rank


def minimal_basis(solve: Solve, problem: BasisProblem, basis: Ints, solution: Solution) -> Ints:
    """Leave out constraints while w stays the same; ``problem`` holds just those of ``basis``."""
    dual = np.maximum(solution.dual[solution.support], 0.0)
    if len(basis) == 0 or unique_multipliers(problem, solution.A, dual, solution.regularizer_dual):
        return basis
    w = solution.objective
    kept = basis
    for h in basis[np.argsort(dual, kind="stable")]:
        rest = kept[kept != h]
        without = solve(rest)
        if without.status is Status.OPTIMAL and without.objective >= w - LOWER * (1.0 + abs(w)):
            kept = rest
    return kept


def unique_multipliers(problem: BasisProblem, A: Floats, dual: Floats, regularizer_dual: float) -> bool:
    """Whether these positive multipliers are the only ones, by a clear margin.

    Two sets of multipliers differ by a combination of the constraints' matrices that vanishes on the range of
    A. There is none if the parts that do not vanish are linearly independent.
    """
    p = problem
    root = np.sqrt(p.bound)[:, None]
    V, W = p.V / root, p.W / (root if len(p.W) else 1.0)
    scale = np.sqrt(np.mean(np.vstack([V, W]) ** 2, axis=0))
    scale[scale == 0] = 1.0
    V, W = V / scale, W / scale
    C = V[:, :, None] * V[:, None, :]  # (m, d, d)
    if len(W):
        C = C - W[:, :, None] * W[:, None, :]
    multipliers = p.sign * p.bound * dual
    if regularizer_dual > 0:
        C = np.concatenate([C, p.R / scale[:, None] / scale])
        multipliers = np.append(multipliers, regularizer_dual)
    C0 = p.C0 / scale[:, None] / scale
    Z = C0 + np.einsum("i,ijk->jk", multipliers, C)
    values, Q = np.linalg.eigh(A * scale[:, None] * scale)
    slack = np.einsum("ji,jk,ki->i", Q, Z, Q)
    # Strict complementarity: in each direction either A or Z is of the order of the tolerance.
    alive = values / max(values[-1], 1e-300) > slack / max(slack.max(), np.trace(C0))
    if p.c > 0:
        alive[:] = True
    rows = (Q[:, alive].T @ C @ Q).reshape(len(C), -1)  # (m, r d)
    norms = np.linalg.norm(rows, axis=1)
    if rows.shape[1] < len(rows) or not (norms > 0).all():
        return False
    return bool(np.linalg.svd(rows / norms[:, None], compute_uv=False)[-1] > _INDEPENDENT)


def minimal_infeasible(
    solve: Solve, support: Ints, solution: Solution
) -> tuple[Ints, FarkasCertificate | None]:
    """Leave out constraints while the rest is infeasible: every proper subset of what remains is feasible."""
    kept, proof = support, solution.certificate
    assert proof is not None
    kept_proof = FarkasCertificate(
        proof.y[solution.support], proof.regularizer_multiplier, proof.gap, proof.radius
    )
    for h in support[np.argsort(kept_proof.y)]:
        if h not in kept:
            continue
        rest = kept[kept != h]
        without = solve(rest)
        if without.status is Status.INFEASIBLE and without.certificate is not None:
            c = without.certificate
            kept = rest[without.support]
            kept_proof = FarkasCertificate(c.y[without.support], c.regularizer_multiplier, c.gap, c.radius)
    return kept, kept_proof
