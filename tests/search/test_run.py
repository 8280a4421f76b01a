"""Algorithm 2: optimal where enumeration can tell, never worse than the identity, the same everywhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.constraints.counting import broken_weights, worst_rows
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.exact.sdp import solve_basis
from lptml.exact.solution import Status
from lptml.search import SearchStatus, search
from lptml.search.guarantees import achieved_confidence, theoretical_trials
from lptml.search.sampling import Sample


def pairs(seed, n=400, d=3, noise=0.1, bounds=(1.0, 1.0), weight=None):
    """Pairs judged by their first feature, a share of the labels wrong."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, d)) * (1.0 + 9.0 * np.arange(d))
    y = np.where(abs(V[:, 0]) < 0.7, 1, -1)
    y = np.where(rng.random(n) < noise, -y, y)
    return ConstraintSet.from_differences(V, y, bounds=bounds, weight=weight)


class Partitions:
    """A partitioned source made of a set in memory: what the search may ask of a cluster, and no more."""

    def __init__(self, constraints, count):
        self.whole = constraints
        self.edges = np.linspace(0, constraints.n, count + 1).astype(int)
        self.parts = [constraints.take(slice(a, b)) for a, b in itertools.pairwise(self.edges)]
        self.n, self.d, self.total_weight = constraints.n, constraints.d, constraints.total_weight
        self.passes = 0

    def take_batch(self, indices):
        self.passes += 1
        return [self.whole.take(index) for index in indices]

    def cost(self, A):
        self.passes += 1
        return sum(part.cost(A) for part in self.parts)

    def broken_weights(self, A, scales):
        return sum(broken_weights(part, A, scales) for part in self.parts)

    def worst(self, requests, count):
        self.passes += 1
        out = []
        for A, sample in requests:
            found = []
            for part, start in zip(self.parts, self.edges):
                index = np.arange(start, start + part.n)
                index = index[sample.contains(index)]
                rows, excess = worst_rows(self.whole.take(index), A, count)
                found += [(-e, i) for e, i in zip(excess, index[rows])]
            index = np.array([i for _, i in sorted(found)[:count]], dtype=np.int64)
            out.append((index, self.whole.take(index)))
        return out

    def trivial_costs(self):
        return self.whole.trivial_costs()


def enumerate_optimum(constraints, eta=0.0, R=None):
    """min cost(A) + eta <R, A> by enumeration: the best metric is w(B) for at most D constraints B."""
    d = constraints.d
    R = np.eye(d) if R is None else R
    best = constraints.cost(np.zeros((d, d)))
    for size in range(1, constraints.D + 1):
        for B in itertools.combinations(range(constraints.n), size):
            solution = solve_basis(constraints.take(np.array(B)), R)
            if solution.status is Status.OPTIMAL:
                best = min(best, constraints.cost(solution.A) + eta * float(np.sum(R * solution.A)))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_finds_the_optimum_of_small_problems(seed):
    constraints = pairs(seed, n=14, d=2, noise=0.3)
    result = search(constraints, max_trials=400, random_state=seed)
    assert result.cost == enumerate_optimum(constraints)
    assert constraints.cost(result.A) == result.cost
    assert np.linalg.eigvalsh(result.A)[0] >= -1e-9 * np.abs(result.A).max()


@pytest.mark.parametrize(("seed", "eta"), [(0, 0.05), (1, 0.5), (2, 2.0), (3, 0.2)])
def test_finds_the_regularised_optimum(seed, eta):
    constraints = pairs(seed, n=12, d=2, noise=0.2)
    R = np.array([[2.0, 0.3], [0.3, 0.5]])
    epsilon = 0.2
    result = search(
        constraints,
        max_trials=1500,
        epsilon=epsilon,
        eta=eta,
        regularizer=R,
        objective="random",
        random_state=0,
    )
    optimum = enumerate_optimum(constraints, eta, R)
    total = constraints.cost(result.A) + eta * float(np.sum(R * result.A))
    assert total == pytest.approx(result.cost + result.penalty)
    assert optimum * (1 - 1e-6) <= total <= optimum * (1 + epsilon)  # Theorem 2.4
    assert result.penalty == pytest.approx(eta * float(np.sum(R * result.A)))


def test_a_heavy_regulariser_leaves_nothing_but_zero():
    constraints = pairs(0, n=50, d=2)
    result = search(constraints, max_trials=30, eta=1e9, random_state=0)
    assert not result.A.any()
    assert result.cost == constraints.trivial_costs()[0]


@pytest.mark.parametrize("objective", ["trace", "random", "prior"])
@pytest.mark.parametrize("bounds", [(1.0, 1.0), (0.1, 3.0)])
def test_never_worse_than_the_best_multiple_of_the_identity(objective, bounds):
    constraints = pairs(5, n=300, d=4, noise=0.4, bounds=bounds)
    result = search(constraints, max_trials=10, objective=objective, random_state=1)
    assert result.cost <= constraints.best_identity().cost <= min(constraints.trivial_costs())
    none = search(constraints, max_trials=0, random_state=1)
    assert none.trial == -1
    assert none.cost == constraints.best_identity().cost


def test_counts_add_up():
    constraints = pairs(2, n=300, d=3, noise=0.2)
    result = search(constraints, max_trials=60, random_state=0)
    assert result.status is SearchStatus.COMPLETED
    assert result.n_trials == 60 == result.n_feasible + result.n_infeasible + result.n_empty + result.n_failed
    assert result.n_infeasible > 0
    assert result.n_failed == 0
    assert result.n_solves >= 60 - result.n_empty
    costs = [found.cost for found in result.candidates]
    assert costs == sorted(costs)
    assert costs[0] == result.cost
    for found in result.candidates:
        assert constraints.cost(found.metric) == found.cost


def test_history_follows_the_best_cost():
    constraints = pairs(2, n=300, d=3, noise=0.2)
    seen = []
    result = search(constraints, max_trials=80, random_state=0, callback=lambda p: seen.append(p))
    history = result.history
    assert history.trial[0] == -1
    assert (np.diff(history.cost) < 0).all()
    assert (np.diff(history.trial) > 0).all()
    assert (np.diff(history.seconds) >= 0).all()
    assert history.after_trials(80) == history.after_seconds(np.inf) == result.cost
    assert history.after_trials(0) == constraints.best_identity().cost
    for progress in seen:
        assert progress.best_cost == history.after_trials(progress.n_trials)
    assert seen[-1].n_trials == progress.max_trials == 80


def test_trials_per_level_is_algorithm_2_as_written():
    constraints = pairs(0, n=100, d=2)
    result = search(constraints, trials_per_level=3, epsilon=1.0, random_state=0)
    assert result.n_trials == 3 * (math.floor(math.log2(100)) + 1)


def test_a_separable_problem_is_solved_in_the_first_trial():
    constraints = pairs(0, n=5000, d=3, noise=0.0, bounds=(0.7, 0.7))
    result = search(constraints, max_trials=100, random_state=0)
    assert (result.status, result.cost, result.n_trials) == (SearchStatus.OPTIMAL, 0.0, 1)
    assert result.confidence == 1.0


def test_target_time_and_callback_stop_the_search():
    constraints = pairs(3, n=300, d=3, noise=0.2)
    best = search(constraints, max_trials=200, random_state=0)
    target = search(constraints, max_trials=200, random_state=0, target_cost=best.cost)
    assert target.status is SearchStatus.TARGET_REACHED
    assert target.n_trials == best.trial + 1
    np.testing.assert_array_equal(target.A, best.A)
    stopped = search(constraints, max_trials=10**6, random_state=0, callback=lambda p: p.n_trials > 20)
    assert stopped.status is SearchStatus.STOPPED
    late = search(constraints, max_trials=10**6, random_state=0, time_limit=0.3)
    assert late.status is SearchStatus.TIME_LIMIT
    assert 0 < late.n_trials < 10**6


@pytest.mark.parametrize(
    "options", [{}, {"approximate_counting": True}, {"objective": "random"}, {"eta": 0.3}]
)
def test_the_same_for_every_number_of_jobs(options):
    constraints = pairs(4, n=6000, d=3, noise=0.15)
    results = [
        search(constraints, max_trials=60, random_state=3, n_jobs=jobs, **options) for jobs in (1, 2, 5)
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result.A, results[0].A)
        assert result.trial == results[0].trial
        assert result.counted == results[0].counted
        for a, b in zip(result.candidates, results[0].candidates):
            np.testing.assert_array_equal(a.metric, b.metric)


@pytest.mark.parametrize("noise", [0.15, 0.0003])
@pytest.mark.parametrize("approximate", [True, False])
def test_partitions_never_collected_give_the_same_metric(monkeypatch, approximate, noise):
    # Small limits, so that samples go on beyond their heads and not all constraints are scored.
    for name, rows in (("SCORED_ROWS", 2048), ("FIRST_ROWS", 512), ("HEAD_ROWS", 100)):
        monkeypatch.setattr(f"lptml.search.setup.{name}", rows)
    constraints = pairs(4, n=5000, d=3, noise=noise, bounds=(0.7, 0.7))
    options = {"max_trials": 40, "random_state": 3, "approximate_counting": approximate}
    expected = search(constraints, **options)
    for count in (1, 3, 8):
        result = search(Partitions(constraints, count), **options)
        np.testing.assert_array_equal(result.A, expected.A)
        assert (result.cost, result.trial) == (expected.cost, expected.trial)
        assert (result.n_feasible, result.n_infeasible) == (expected.n_feasible, expected.n_infeasible)
    assert expected.cost == constraints.cost(expected.A) <= constraints.best_identity().cost


def test_one_pass_serves_a_batch_of_trials():
    source = Partitions(pairs(4, n=5000, d=3, noise=0.2), 4)
    search(source, max_trials=100, random_state=0)
    assert source.passes < 20


def test_labels_and_their_explicit_pairs_give_the_same_metric():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    labelled = LabelledPairs.from_labels(X, y, bounds=(1.0, 1.0))
    assert isinstance(labelled, LabelledPairs)
    explicit = labelled.take(np.arange(labelled.n))
    results = [search(source, max_trials=40, random_state=0) for source in (labelled, explicit)]
    np.testing.assert_array_equal(results[0].A, results[1].A)


def test_approximate_counting_finds_the_same_winner_and_looks_at_less():
    constraints = pairs(6, n=200_000, d=3, noise=0.2)
    options = {"max_trials": 40, "random_state": 0}
    full = search(constraints, approximate_counting=False, **options)
    quick = search(constraints, approximate_counting=True, **options)
    assert quick.trial == full.trial
    assert quick.exact
    assert quick.cost == constraints.cost(quick.A)
    assert quick.counted.share < 0.35  # of 40 trials; five finalists over all constraints alone are an eighth


def test_weights_change_what_is_best():
    constraints = pairs(1, n=200, d=2, noise=0.3)
    heavy = constraints.violated(search(constraints, max_trials=50, random_state=0).A)
    weighted = ConstraintSet.from_differences(
        constraints.V, constraints.sign, bounds=(1.0, 1.0), weight=np.where(heavy, 1000.0, 1.0)
    )
    result = search(weighted, max_trials=50, random_state=0)
    assert result.cost == weighted.cost(result.A)
    assert result.confidence is None  # it is counted in constraints, not in weights


def test_triplets():
    rng = np.random.default_rng(0)
    triplets = rng.normal(size=(300, 3, 3)) * [1.0, 5.0, 5.0]
    near = abs(triplets[:, 0, 0] - triplets[:, 1, 0]) < abs(triplets[:, 0, 0] - triplets[:, 2, 0])
    triplets = np.where(near[:, None, None], triplets, triplets[:, [0, 2, 1]])
    constraints = ConstraintSet.from_triplets(triplets)
    result = search(constraints, max_trials=60, random_state=0)
    assert result.cost == constraints.cost(result.A) < 0.5 * constraints.best_identity().cost


def test_confidence_is_reported_for_few_features_only():
    few = search(pairs(0, n=20, d=2, noise=0.2), max_trials=300, random_state=0)
    assert 0.0 < few.confidence <= 1.0
    many = search(pairs(0, n=50, d=4, noise=0.3), max_trials=5, random_state=0)
    assert many.confidence is None


def test_confidence_is_earned():
    """Searches stopped at 50% confidence find the optimum in at least about half of the runs."""
    constraints = pairs(1, n=14, d=2, noise=0.3)
    optimum = enumerate_optimum(constraints)
    hits, claims = 0, []
    for seed in range(40):
        result = search(constraints, max_trials=30, random_state=seed)
        hits += result.cost == optimum
        claims.append(result.confidence)
    assert hits / 40 >= np.mean(claims) - 0.15


def test_theoretical_trials():
    counts = [theoretical_trials(1000, 2, 0.5, delta) for delta in (0.1, 0.01)]
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.01)
    assert theoretical_trials(1000, 3, 0.5, 0.1) > counts[0]
    assert theoretical_trials(1, 1, 0.5, 0.1) >= 1
    few = theoretical_trials(20, 1, 0.5, 0.1)
    assert achieved_confidence([1.0], [1], 2, 0) == 1.0
    result = search(pairs(0, n=20, d=1, noise=0.3), max_trials=few, random_state=0)
    assert result.confidence > 0.9
    with pytest.raises(ValueError, match="delta"):
        theoretical_trials(10, 2, 0.5, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_trials": -1}, "max_trials"),
        ({"max_trials": 1.5}, "max_trials"),
        ({"trials_per_level": 0}, "trials_per_level"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"objective": "nothing"}, "objective"),
        ({"prior": np.eye(3)}, "prior"),
        ({"objective": "prior", "prior": np.eye(2)}, "prior"),
        ({"eta": -1.0}, "eta"),
        ({"regularizer": np.eye(3)}, "eta"),
        ({"regularizer": -np.eye(3), "eta": 1.0}, "regularizer"),
        ({"engine": "hadoop"}, "engine"),
        ({"engine": object()}, "engine"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": -1}, "random_state"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"target_cost": float("nan")}, "target_cost"),
        ({"approximate_counting": "maybe"}, "approximate_counting"),
        ({"delta": 0.0}, "delta"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"strategy": "guess"}, "strategy"),
        ({"solver": "abacus"}, "solver"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        search(pairs(0, n=30), **{"max_trials": 3, **options})


def test_no_constraints():
    with pytest.raises(ValueError, match="no constraints"):
        search(pairs(0).take(slice(0, 0)))


def test_random_states():
    constraints = pairs(0, n=100, noise=0.3)
    fixed = [search(constraints, max_trials=20, random_state=np.random.default_rng(5)) for _ in range(2)]
    np.testing.assert_array_equal(fixed[0].A, fixed[1].A)
    old = search(constraints, max_trials=20, random_state=np.random.RandomState(5))
    again = search(constraints, max_trials=20, random_state=old.entropy)
    np.testing.assert_array_equal(old.A, again.A)
    fresh = {search(constraints, max_trials=1).entropy for _ in range(2)}
    assert len(fresh) == 2


def test_a_sample_of_everything_is_everything():
    assert Sample(10, 10, 1).contains(np.arange(10)).all()
