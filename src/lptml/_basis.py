"""From the support of an optimum to a minimal basis, and from a contradiction to a minimal one.

The constraints with positive multipliers have the same optimum as all of them. When the multipliers are the
only ones possible, none of those constraints is dispensable and they are a basis. The multipliers are
unique if no combination of the tight constraints' matrices lies in the face of the semidefinite cone that
is complementary to A (Alizadeh, Haeberly and Overton 1997): one rank computation. Otherwise (duplicates,
equal distances, and other degenerate sets) constraints are left out one by one, as in the proof of Lemma
2.2 of the paper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lptml.constraints import Ints
from lptml.sdp import Certificate, Solution, Status

Solve = Callable[[Ints], Solution]

#: w falls when a constraint is left out only if it falls by more than this, relative to 1 + |w|.
LOWER = 1e-8


def minimal_basis(solve: Solve, basis: Ints, solution: Solution, extra: int) -> Ints:
    """Leave out constraints while w stays the same."""
    if len(basis) <= 1:
        return basis
    multipliers = solution.dual[solution.support]
    w = solution.objective
    kept = basis
    for h in basis[np.argsort(multipliers)]:
        rest = kept[kept != h]
        without = solve(rest)
        if without.status is Status.OPTIMAL and without.objective >= w - LOWER * (1.0 + abs(w)):
            kept = rest
    return kept


def minimal_infeasible(solve: Solve, support: Ints, solution: Solution) -> tuple[Ints, Certificate | None]:
    """Leave out constraints while the rest is infeasible: every proper subset of what remains is feasible."""
    kept, proof = support, solution.certificate
    assert proof is not None
    kept_proof = Certificate(proof.y[solution.support], proof.regularizer_multiplier, proof.gap, proof.radius)
    for h in support[np.argsort(kept_proof.y)]:
        if h not in kept:
            continue
        rest = kept[kept != h]
        without = solve(rest)
        if without.status is Status.INFEASIBLE and without.certificate is not None:
            c = without.certificate
            kept = rest[without.support]
            kept_proof = Certificate(c.y[without.support], c.regularizer_multiplier, c.gap, c.radius)
    return kept, kept_proof
