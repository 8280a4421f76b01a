"""(H, w) is an LP-type problem: monotonicity, locality and what follows from them, on random families."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lptml.constraints import ConstraintSet
from lptml.constraints.scaling import feature_scale
from lptml.exact import exact_lptml, make_objective
from lptml.exact.sdp import solve_basis
from lptml.exact.solution import Solution, Status

quick = settings(max_examples=60, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(["pairs", "noisy", "integer", "triplets"])


def family(seed: int, kind: str, largest: int = 14) -> tuple[ConstraintSet, np.ndarray]:
    """A few constraints in one to four dimensions, and the objective of a w."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    n = int(rng.integers(2, largest))
    C0 = make_objective("random", d, rng).matrix
    if kind == "triplets":
        return ConstraintSet.from_triplets(rng.standard_normal((n, 3, d))), C0
    V = rng.integers(-3, 4, (n, d)).astype(float) if kind == "integer" else rng.standard_normal((n, d))
    squared = ((V @ rng.standard_normal((d, d))) ** 2).sum(axis=1)
    threshold = np.sqrt(max(np.median(squared), 0.1))
    y = np.where(squared <= threshold**2, 1, -1)
    if kind == "noisy":
        y = np.where(rng.random(n) < 0.2, -y, y)
    return ConstraintSet.from_differences(V, y, bounds=(1.2 * threshold, threshold)), C0


def w(F: ConstraintSet, C0: np.ndarray) -> Solution:
    solution = solve_basis(F, C0)
    assert solution.status is not Status.FAILED
    return solution


@quick
@given(seeds, kinds)
def test_monotonicity(seed, kind):
    """(A1): w(F) <= w(G) for F within G."""
    G, C0 = family(seed, kind)
    inside = np.random.default_rng(seed).random(G.n) < 0.6
    assert w(G.take(inside), C0).objective <= w(G, C0).objective * (1 + 1e-6) + 1e-9


@quick
@given(seeds, kinds)
def test_locality(seed, kind):
    """(A2): if w(F) = w(G) for F within G, a constraint that raises w(G) raises w(F)."""
    H, C0 = family(seed, kind)
    G, h = H.take(slice(1, None)), H.take(slice(0, 1))
    whole = w(G, C0)
    assume(whole.status is Status.OPTIMAL)
    F = G.take(whole.support)
    part = w(F, C0)
    assert abs(part.objective - whole.objective) <= 1e-6 * (1 + whole.objective)
    with_h = w(H, C0).objective
    if with_h > whole.objective * (1 + 1e-4) + 1e-6:
        joined = H.take(np.concatenate([[0], 1 + whole.support]))
        assert w(joined, C0).objective > part.objective * (1 + 1e-6)
        assert h.violated(part.A).any()


@quick
@given(seeds, kinds)
def test_violation_is_what_raises_w(seed, kind):
    """B1 by one product instead of two programs: w(B + h) > w(B) if and only if B's optimum violates h."""
    H, C0 = family(seed, kind)
    rest = w(H.take(slice(1, None)), C0)
    assume(rest.status is Status.OPTIMAL)
    together = w(H, C0).objective
    if H.take(slice(0, 1)).violated(rest.A).any():
        assert together >= rest.objective * (1 - 1e-7)
    else:
        assert together <= rest.objective * (1 + 1e-5) + 1e-7


@quick
@given(seeds, kinds)
def test_basis(seed, kind):
    """At most D constraints, w(basis) = w(F), and every one of them counts."""
    F, _ = family(seed, kind)
    objective = make_objective("random", F.d, seed)
    C0 = objective.linear_part(F, feature_scale(F))
    result = exact_lptml(F, objective, rng=seed)
    assert result.status is not Status.FAILED
    if result.status is Status.OPTIMAL:
        assert len(result.basis) <= F.D
        value = w(F.take(result.basis), C0).objective
        assert abs(value - result.objective) <= 1e-6 * (1 + value)
        for b in result.basis:
            assert w(F.take(result.basis[result.basis != b]), C0).objective < value
    else:
        core = result.infeasible_subsystem
        assert len(core) <= F.D + 1
        assert w(F.take(core), C0).status is Status.INFEASIBLE
        for b in core:
            assert w(F.take(core[core != b]), C0).status is Status.OPTIMAL


@quick
@given(seeds, kinds)
def test_order_and_heuristics_do_not_change_w(seed, kind):
    F, _ = family(seed, kind, largest=30)
    objective = make_objective("trace" if seed % 2 else "random", F.d, seed)
    values = [
        exact_lptml(F, objective, rng=seed + turn, strategy=strategy, batch=3, minimal=False)
        for turn, strategy in enumerate(["multi", "multi", "pivot", "mtf", "plain"])
    ]
    turned = F.take(np.random.default_rng(seed).permutation(F.n))
    values.append(exact_lptml(turned, objective, rng=seed))
    assert len({value.status for value in values}) == 1
    if values[0].status is Status.OPTIMAL:
        best = [value.objective for value in values]
        assert max(best) - min(best) <= 1e-6 * (1 + max(best))


@quick
@given(seeds, st.sampled_from(["pairs", "noisy", "triplets"]), st.floats(-6, 6))
def test_scaling_invariance(seed, kind, power):
    """Larger points, the same metric up to the scale; and a scale common to bounds and metric."""
    F, C0 = family(seed, kind)
    factor = 10.0**power
    before = w(F, C0)
    W = None if F.W is None else factor * F.W
    after = w(ConstraintSet(factor * F.V, W, F.sign, F.bound, F.weight), C0)
    assert after.status is before.status
    bounded = w(ConstraintSet(F.V, F.W, F.sign, factor * F.bound, F.weight), C0)
    assert bounded.status is before.status
    if before.status is Status.OPTIMAL:
        assert np.isclose(after.objective * factor**2, before.objective, rtol=1e-5)
        assert np.isclose(bounded.objective / factor, before.objective, rtol=1e-5)


@quick
@given(seeds, st.sampled_from(["pairs", "noisy", "triplets"]))
def test_rotation_invariance(seed, kind):
    F, C0 = family(seed, kind)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((F.d, F.d)))
    W = None if F.W is None else F.W @ Q
    before = w(F, C0)
    after = w(ConstraintSet(F.V @ Q, W, F.sign, F.bound, F.weight), Q.T @ C0 @ Q)
    assert after.status is before.status
    if before.status is Status.OPTIMAL:
        assert np.isclose(after.objective, before.objective, rtol=1e-5)
