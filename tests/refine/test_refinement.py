"""Refinement: optimal on small instances, never worse than given, and as good as measured on Wine."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from tests import oracle

from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.exact.solution import Status
from lptml.refine import RefinementInterruptedWarning, default_starts, refine
from lptml.refine.canonical import canonical
from lptml.search import SearchStatus


def wine(split, percentiles=False):
    X, y = load_wine(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
    bounds = (1.0, 1.0)
    if percentiles:
        i, j = np.triu_indices(len(X), 1)
        u, l = np.percentile(np.linalg.norm(X[i] - X[j], axis=1), [10, 90])
        bounds = (float(u), float(l))
    return LabelledPairs.from_labels(X, y, bounds=bounds)


def noisy(N=60, d=4, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d)) * np.arange(1, d + 1)
    y = (X[:, 0] > 0) ^ (rng.random(N) < 0.1)
    return LabelledPairs.from_labels(X, y, bounds=(1.0, 1.0), **options)


def optima(d, seeds):
    known = oracle.cached()
    for seed in seeds:
        V, y, bounds, name = oracle.instance(d, seed)
        if name in known:
            yield ConstraintSet.from_differences(V, y, bounds=bounds), known[name], name


def shares(d, seeds):
    """Shares of instances solved to the optimum, and to within one constraint of it."""
    excess = np.array([refine(pairs).cost - optimum for pairs, optimum, _ in optima(d, seeds)])
    assert (excess >= 0).all(), "below the optimum: the oracle or a count is wrong"
    return (excess == 0).mean(), (excess <= 1).mean(), len(excess)


def test_small_instances_are_solved_to_the_optimum():
    optimal, close, count = shares(2, range(0, 300, 5))
    assert count == 60
    assert optimal >= 0.95
    assert close == 1.0
    optimal, _, count = shares(3, range(0, 50, 5))
    assert count == 10
    assert optimal >= 0.9


@pytest.mark.slow
def test_all_small_instances_are_solved_to_the_optimum():
    optimal, close, count = shares(2, range(300))
    assert (count, close) == (300, 1.0)
    assert optimal >= 0.95
    optimal, _, count = shares(3, range(50))
    assert count == 50
    assert optimal >= 0.9


def test_the_oracle_agrees_with_its_cache():
    known = oracle.cached()
    for seed in (0, 2, 29):
        V, y, bounds, name = oracle.instance(2, seed)
        assert oracle.least_cost(V, y, bounds) == known[name]


def test_wine_at_equal_bounds():
    rates = [refine(pairs).cost / pairs.n for pairs in map(wine, range(4))]
    assert np.mean(rates) <= 0.0225


def test_wine_at_percentiles():
    rates = [refine(pairs).cost / pairs.n for pairs in (wine(split, True) for split in range(4))]
    assert np.mean(rates) <= 0.312


def test_never_worse_than_any_start_nor_than_the_trivial_metrics():
    pairs = noisy()
    good = refine(pairs).A
    again = refine(pairs, [np.eye(4), good], n_starts=0, n_hops=0, steps=1)
    assert again.cost <= pairs.cost(good) == again.start_cost
    assert again.cost <= min(pairs.best_identity().cost, *pairs.trivial_costs())
    assert again.cost == pairs.cost(again.A)


def test_explicit_and_implicit_pairs_agree():
    pairs = noisy()
    listed = pairs.take(np.arange(pairs.n))
    assert refine(listed).cost == pytest.approx(refine(pairs).cost, rel=0.1)


@pytest.mark.parametrize("rank", [1, 2])
def test_rank_is_limited(rank):
    pairs = noisy()
    refined = refine(pairs, [np.eye(4)], rank=rank)
    assert np.linalg.matrix_rank(refined.A, tol=1e-9 * np.abs(refined.A).max()) <= rank
    assert refined.cost < min(pairs.trivial_costs())


def test_a_penalty_lowers_what_it_penalises():
    pairs = noisy()
    free = refine(pairs).A
    P = 2.0 * pairs.n * np.diag([0.0, 1.0, 1.0, 1.0]) / np.trace(free)
    held = refine(pairs, [free], penalty=P)
    assert held.cost == pytest.approx(pairs.cost(held.A) + np.vdot(P, held.A))
    assert held.cost <= pairs.cost(free) + np.vdot(P, free) + 1e-9
    assert np.vdot(P, held.A) < 0.9 * np.vdot(P, free)


def test_same_seed_same_metric():
    pairs = noisy(N=700)  # more points than a minibatch
    first, second = (refine(pairs, random_state=3, steps=30, n_hops=2) for _ in range(2))
    np.testing.assert_array_equal(first.A, second.A)


def test_time_limit_and_callback():
    pairs = noisy(N=400)
    refined = refine(pairs, time_limit=0.2, n_hops=10**9)  # would never end by itself
    assert refined.status is SearchStatus.TIME_LIMIT
    assert refined.cost <= pairs.best_identity().cost
    costs = []
    stopped = refine(pairs, callback=lambda cost, A: costs.append(cost) or len(costs) == 3)
    assert stopped.status is SearchStatus.STOPPED
    assert costs == [step.cost for step in stopped.history]
    assert costs == sorted(costs, reverse=True)


def test_interruption_keeps_the_best_so_far():
    pairs = noisy()

    def interrupt(cost, A):
        if cost < pairs.best_identity().cost:
            raise KeyboardInterrupt

    with pytest.warns(RefinementInterruptedWarning, match="best metric so far"):
        refined = refine(pairs, callback=interrupt)
    assert refined.status is SearchStatus.INTERRUPTED
    assert refined.cost == pairs.cost(refined.A) < pairs.best_identity().cost


def test_feasible_instances_stop_at_zero():
    X = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 5.0)]) + np.random.default_rng(0).normal(
        size=(40, 2)
    )
    pairs = LabelledPairs.from_labels(X, np.repeat([0, 1], 20), bounds=(4.0, 4.0))
    refined = refine(pairs)
    if refined.cost == 0:
        assert refined.status is SearchStatus.OPTIMAL


def test_large_sources_are_judged_by_a_sample_and_counted_exactly(monkeypatch):
    monkeypatch.setattr("lptml.refine.refinement._EXACT_WORK", 1e3)
    monkeypatch.setattr("lptml.refine.refinement._JUDGES", 1)
    pairs = noisy(N=300)
    identity = pairs.best_identity().scale * np.eye(4)
    refined = refine(pairs, [identity], steps=100)
    assert refined.cost == pairs.cost(refined.A) <= pairs.cost(identity) == refined.start_cost


def test_partitioned_sources_are_refined_where_they_lie():
    pairs = noisy(N=300)

    class Far:
        """Only what a partitioned source promises."""

        n, d, total_weight = pairs.n, pairs.d, pairs.total_weight
        trivial_costs = staticmethod(pairs.trivial_costs)
        broken_weights = worst = staticmethod(lambda *_: pytest.fail("not needed"))

        def take_batch(self, indices):
            return [pairs.take(index) for index in indices]

        def cost(self, A):
            assert A.ndim == 3
            return pairs.cost(A)

    refined = refine(Far(), steps=100)
    assert refined.cost == pairs.cost(refined.A) < pairs.best_identity().cost


def test_triplets_are_refined():
    T = np.random.default_rng(0).normal(size=(300, 3, 4))
    triplets = ConstraintSet.from_triplets(T, margin=0.5)
    assert refine(triplets).cost < 0.8 * triplets.best_identity().cost


def test_starts_are_positive_definite_and_independent_of_units():
    pairs = noisy()
    sample = pairs.take(np.arange(pairs.n))
    scale = np.array([1e-5, 1.0, 1e5, 3.0])
    for A, B in zip(default_starts(sample), default_starts(sample.scaled(scale)), strict=True):
        assert np.linalg.eigvalsh(A)[0] > 0
        if not np.array_equal(A, np.eye(4)):
            np.testing.assert_allclose(B / scale[:, None] / scale, A, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rank": 9}, "rank"), ({"starts": [np.eye(2)]}, "starts must have shape")],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        refine(noisy(), **options)


def test_canonical_metric_is_carried_by_its_support():
    pairs = noisy()
    refined = refine(pairs)
    solved = canonical(pairs, refined.A)
    assert solved.cost <= refined.cost
    assert len(solved.support) <= pairs.D
    assert not pairs.take(solved.support).violated(solved.A).any()
    from lptml.constraints.scaling import feature_scale
    from lptml.exact import exact_lptml, make_objective

    satisfied = pairs.take(np.flatnonzero(~pairs.take(np.arange(pairs.n)).violated(refined.A)))
    scale = feature_scale(satisfied)
    again = exact_lptml(pairs.take(solved.support).scaled(scale), make_objective("trace", 4), rng=0)
    assert again.status is Status.OPTIMAL
