"""The pipeline: each option does what it says, and the result is never worse than what went in."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.constraints.indexed_pairs import IndexedPairs
from lptml.learn import learn
from lptml.search import SearchStatus, search


def iris(**options):
    X, y = load_iris(return_X_y=True)
    return LabelledPairs.from_labels(X[::3], y[::3], bounds=(1.0, 1.0), **options)


def test_everything_that_is_reported_is_true():
    pairs = iris()
    learned = learn(pairs, max_trials=20, random_state=0)
    assert learned.cost == pairs.cost(learned.A)
    assert learned.violation_rate == learned.cost / pairs.n
    assert learned.trivial_rate == min(pairs.trivial_costs()) / pairs.n
    assert learned.cost < pairs.best_identity().cost
    assert learned.n_trials == 20
    assert 0 <= learned.n_infeasible <= 20
    assert learned.status is SearchStatus.COMPLETED
    assert learned.lower_bound is None
    assert learned.penalty == 0.0
    costs = [step[1] for step in learned.history]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == learned.cost
    assert np.linalg.eigvalsh(learned.A)[0] >= -1e-12 * np.abs(learned.A).max()


def test_support_holds_the_canonical_metric():
    pairs = iris()
    learned = learn(pairs, max_trials=0, random_state=0)
    assert pairs.cost(learned.canonical) <= learned.cost
    assert 1 <= len(learned.support) <= pairs.D
    members = pairs.take(learned.support)
    tight = np.abs(members.values(learned.canonical) / members.bound - 1)
    assert tight.max() < 1e-5


def test_without_refinement_it_is_the_search():
    pairs = iris()
    learned = learn(pairs, max_trials=20, refine=False, random_state=4)
    found = search(pairs, max_trials=20, random_state=4)
    assert learned.cost <= found.cost
    assert learned.n_trials == found.n_trials
    assert learn(pairs, max_trials=20, random_state=4).cost <= learned.cost


def test_the_search_runs_whatever_the_number_of_features():
    X = np.random.default_rng(0).normal(size=(40, 40))
    wide = LabelledPairs.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.0))
    learned = learn(wide, max_trials=7, random_state=0)
    assert learned.n_trials == 7
    assert learned.cost < learned.trivial_cost
    alone = learn(wide, max_trials=7, refine=False, random_state=0)
    assert np.linalg.matrix_rank(alone.A, tol=1e-9 * np.trace(alone.A)) <= 6  # it looked in six directions
    assert float(wide.cost(alone.A)) == alone.cost


@pytest.mark.parametrize("kind", ["rows", "points", "indexed"])
def test_a_projected_source_counts_what_the_lifted_metric_counts(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 5)), rng.integers(2, size=20)
    pairs = LabelledPairs.from_labels(X, y, bounds=(2.0, 2.0))
    i, j = np.triu_indices(20, 1)
    source = {
        "points": pairs,
        "rows": pairs.take(np.arange(pairs.n)),
        "indexed": IndexedPairs.from_indices(
            X, np.stack([i, j], axis=1), np.where(y[i] == y[j], 1, -1), bounds=(2.0, 2.0)
        ),
    }[kind]
    P, B = rng.normal(size=(2, 5)), np.diag([1.0, 0.3])
    assert source.projected(P).cost(B) == source.cost(P.T @ B @ P)


def test_shrinkage_ends_at_the_prior():
    pairs, prior = iris(), np.diag([1.0, 2.0, 3.0, 4.0])
    A = learn(pairs, max_trials=0, prior=prior, shrinkage=1.0, random_state=0).A
    np.testing.assert_allclose(A / A[0, 0], prior, atol=1e-12)
    half = learn(pairs, max_trials=0, prior=prior, shrinkage=0.5, random_state=0).A
    none = learn(pairs, max_trials=0, prior=prior, random_state=0).A
    np.testing.assert_allclose(
        np.linalg.lstsq(np.stack([prior.ravel(), none.ravel()], axis=1), half.ravel(), rcond=None)[1],
        0,
        atol=1e-9,
    )


def test_a_warm_metric_has_clearer_margins_than_the_count():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(400, 3))
    flipped = rng.random(400) < 0.1
    y = np.where((np.abs(V[:, 0]) < 0.7) ^ flipped, 1, -1)
    pairs = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
    cold, warm = (learn(pairs, temperature=T, random_state=0) for T in (0.0, 0.1))
    assert cold.cost <= warm.cost < warm.trivial_cost
    W = rng.normal(size=(5000, 3))
    truth = ConstraintSet.from_differences(W, np.where(np.abs(W[:, 0]) < 0.7, 1, -1), bounds=(1.0, 1.0))
    assert float(truth.cost(warm.A)) / truth.n < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature must be"),
        ({"temperature": 0.1, "refine": False}, "with refine=False it must be 0"),
        ({"shrinkage": 1.5}, "shrinkage must lie"),
        ({"prior": np.eye(3)}, "prior must have shape"),
        ({"search_components": 0}, "search_components must be"),
        ({"max_trials": "auto"}, "max_trials must be a whole number"),
    ],
)
def test_options_are_checked_at_the_door(options, message):
    with pytest.raises(ValueError, match=message):
        learn(iris(), **options)


@pytest.mark.parametrize("refine", [True, False])
def test_never_worse_than_the_initial_metric(refine):
    pairs = iris()
    good = learn(pairs, max_trials=0, random_state=0)
    again = learn(pairs, max_trials=1, refine=refine, initial_metric=good.A, random_state=1)
    assert again.cost <= good.cost


@pytest.mark.parametrize("refine", [True, False])
def test_components_limit_the_rank(refine):
    pairs = iris()
    learned = learn(pairs, max_trials=10, refine=refine, n_components=2, random_state=0)
    assert np.linalg.matrix_rank(learned.A, tol=1e-9 * np.abs(learned.A).max()) <= 2
    assert learned.cost == pairs.cost(learned.A)


def test_regularisation_lowers_the_penalised_cost():
    pairs = iris()
    free = learn(pairs, max_trials=20, random_state=0)
    eta = 0.1 * pairs.n / np.trace(free.A)
    held = learn(pairs, max_trials=20, regularization=eta, random_state=0)
    assert held.penalty == pytest.approx(eta * np.trace(held.A))
    assert held.cost + held.penalty <= free.cost + eta * np.trace(free.A) + 1e-9
    assert np.trace(held.A) < np.trace(free.A)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_seed_same_metric_whatever_the_workers(n_jobs):
    pairs = iris()
    first = learn(pairs, max_trials=12, random_state=7)
    second = learn(pairs, max_trials=12, random_state=7, n_jobs=n_jobs)
    np.testing.assert_array_equal(first.A, second.A)


def test_every_source_is_learned_from():
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    i, j = np.triu_indices(len(X), 1)
    sign = np.where(y[i] == y[j], 1, -1)
    T = np.stack([X[i[sign > 0]][:80], X[j[sign > 0]][:80], X[j[sign < 0]][:80]], axis=1)
    sources = [
        ConstraintSet.from_differences(X[i] - X[j], sign, bounds=(1.0, 1.0)),
        IndexedPairs.from_indices(X, np.stack([i, j], axis=1), sign, bounds=(1.0, 1.0)),
        ConstraintSet.from_triplets(T),
        ConstraintSet.from_quadruplets(T[:, [0, 1, 0, 2]]),
    ]
    for source in sources:
        learned = learn(source, max_trials=3, random_state=0)
        assert learned.cost <= source.best_identity().cost


def test_time_limit():
    pairs = iris()
    learned = learn(pairs, max_trials=10**9, time_limit=0.5, random_state=0)  # would never end by itself
    assert learned.status is SearchStatus.TIME_LIMIT
    assert learned.cost <= pairs.best_identity().cost


@pytest.mark.parametrize("max_trials", [0, 10**6])
def test_callback_hears_and_stops(max_trials):
    pairs = iris()
    heard = []

    def stop(cost, A):
        heard.append((cost, A.shape))
        return len(heard) >= 2

    learned = learn(pairs, max_trials=max_trials, callback=stop, random_state=0)
    assert learned.status is SearchStatus.STOPPED
    assert len(heard) == 2
    assert heard[0][1] == (4, 4)
    assert learned.cost == pairs.cost(learned.A)


def test_lower_bound_on_request():
    pairs = iris().take(np.arange(0, 1225, 12))
    learned = learn(pairs, max_trials=5, lower_bound_seconds=1.0, random_state=0)
    assert 0 <= learned.lower_bound <= learned.cost


def test_weights_change_the_metric():
    light, heavy = (iris(class_weight={1: w, -1: 1.0}) for w in (0.05, 20.0))
    plain = iris()
    similar = np.flatnonzero(plain.take(np.arange(plain.n)).sign > 0)
    broken = [
        plain.take(similar).cost(learn(source, max_trials=0, random_state=0).A) for source in (light, heavy)
    ]
    assert broken[1] <= broken[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_trials": 0, "refine": False}, "nothing to do"),
        ({"max_trials": "many"}, "max_trials"),
        ({"epsilon": 1e-9}, "epsilon = 1e-09 makes a grid"),
        ({"epsilon": 1.5e-4, "regularization": 1e-6}, "epsilon = 0.00015 makes a grid"),
        ({"regularization": -1.0}, "regularization"),
        ({"n_components": 5}, "n_components"),
        ({"initial_metric": np.eye(2)}, "initial_metric"),
        ({"engine": "abacus"}, "engine"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        learn(iris(), **options)


def degenerate():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(60, 3))
    y = np.where(np.abs(V[:, 0]) < 0.7, 1, -1)
    y[:6] *= -1
    return {
        "one feature": ([[1.0], [2.0], [3.0]], [1, -1, 1], (1.0, 1.0)),
        "one similar pair": ([[1.0, 2.0]], [1], (1.0, 1.0)),
        "one dissimilar pair": ([[1.0, 2.0]], [-1], (1.0, 1.0)),
        "all points alike": (np.zeros((6, 2)), [1, -1] * 3, (1.0, 1.0)),
        "a constant feature": (np.c_[V, np.zeros(60)], y, (1.0, 1.0)),
        "a repeated feature": (np.c_[V, V], y, (1.0, 1.0)),
        "scales apart": (V * [1e-6, 1.0, 1e6], y, (1.0, 1.0)),
        "bounds apart": (V, y, (1e-3, 1.0)),
        "bounds crossed": (V, y, (1e3, 1.0)),
        "more features than pairs": (rng.normal(size=(5, 12)), [1, -1, 1, -1, 1], (1.0, 1.0)),
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", degenerate())
def test_degenerate_constraints(name):
    V, y, bounds = degenerate()[name]
    pairs = ConstraintSet.from_differences(np.asarray(V, dtype=float), y, bounds=bounds)
    learned = learn(pairs, max_trials=3, random_state=0)
    assert np.isfinite(learned.A).all()
    assert learned.cost == pairs.cost(learned.A) <= min(pairs.best_identity().cost, *pairs.trivial_costs())
