"""The LPTML estimators: what their options do, and what their attributes say."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from lptml import (
    LPTML,
    LPTMLCV,
    LPTML_Quadruplets,
    LPTML_Supervised,
    LPTML_SupervisedCV,
    LPTML_Triplets,
    suspicion,
)
from lptml.constraints import ConstraintSet, LabelledPairs

FAST = {"max_trials": 5, "random_state": 0}


@pytest.fixture(scope="module")
def pairs():
    return np.random.default_rng(0).normal(size=(120, 2, 3))


@pytest.fixture(scope="module")
def y(pairs):
    """The first feature decides, and a tenth of the labels are wrong."""
    label = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    return np.where(np.arange(120) % 10 == 3, -label, label)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).normal(size=(60, 3))


@pytest.fixture(scope="module")
def labels(X):
    clean = (X[:, 0] > 0).astype(int)
    return np.where(np.arange(60) % 12 == 5, 1 - clean, clean)


@pytest.fixture(scope="module")
def model(pairs, y):
    return LPTML(**FAST).fit(pairs, y)


def violated(A, pairs, y, bounds):
    v = pairs[:, 0] - pairs[:, 1]
    squares = np.einsum("ni,ij,nj->n", v, A, v)
    return np.where(y == 1, squares > bounds[0] ** 2 * (1 + 1e-7), squares < bounds[1] ** 2 * (1 - 1e-7))


def test_attributes_are_what_they_say(model, pairs, y):
    wrong = violated(model.get_mahalanobis_matrix(), pairs, y, model.bounds_)
    assert model.n_violations_ == wrong.sum()
    assert model.violation_rate_ == pytest.approx(wrong.mean())
    assert model.trivial_rate_ == min((y == 1).mean(), (y == -1).mean())
    assert 0 <= (model.lower_bound_ or 0.0) <= model.violation_rate_ < 0.16 < model.trivial_rate_
    assert model.n_trials_ == model.n_iter_ == 5
    assert 0 <= model.n_infeasible_ <= 5
    assert isinstance(model.status_, str)
    rates = [rate for _, rate, _ in model.history_]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(model.violation_rate_)
    assert model.components_.shape == (3, 3)
    assert model.n_features_in_ == 3
    assert model.threshold_ > 0
    assert model.score(pairs, y) > 0.85


def test_the_support_holds_the_metric_in_place(model, pairs):
    assert len(model.support_) <= 6  # d (d + 1) / 2
    assert ((model.support_ >= 0) & (model.support_ < len(pairs))).all()


def test_weighted_rates(pairs, y):
    weight = np.random.default_rng(0).random(120)
    fitted = LPTML(**FAST).fit(pairs, y, sample_weight=weight)
    wrong = violated(fitted.get_mahalanobis_matrix(), pairs, y, fitted.bounds_)
    assert fitted.violation_rate_ == pytest.approx(weight[wrong].sum() / weight.sum())
    assert fitted.n_violations_ == wrong.sum()


@pytest.mark.parametrize(
    "kind", ["pairs", "supervised", "all pairs", "supervised cv", "pairs cv", "triplets", "quadruplets"]
)
def test_weights_are_copies_order_does_not_matter_and_units_are_free(kind, pairs, y, X, labels):
    rng = np.random.default_rng(2)
    learner, data, target = {
        "pairs": (LPTML(**FAST), pairs, y),
        "supervised": (LPTML_Supervised(**FAST), X, labels),
        "all pairs": (
            LPTML_Supervised(**FAST, constraints="all", temperature=0.0, shrinkage=0.0),
            X,
            labels,
        ),
        "supervised cv": (LPTML_SupervisedCV(**FAST), X, labels),
        "pairs cv": (LPTMLCV(**FAST), pairs, y),
        "triplets": (LPTML_Triplets(**FAST), rng.normal(size=(40, 3, 2)), None),
        "quadruplets": (LPTML_Quadruplets(**FAST), rng.normal(size=(40, 4, 2)), None),
    }[kind]

    def fit(index, scale=1.0, **kwargs):
        given = () if target is None else (target[index],)
        return clone(learner).fit(scale * data[index], *given, **kwargs).components_

    n = len(data)
    weight = rng.integers(0, 3, n)
    weight[:20] = 1
    weighted = fit(np.arange(n), sample_weight=weight)
    np.testing.assert_array_equal(weighted, fit(np.repeat(np.arange(n), weight)))
    plain = fit(np.arange(n))
    np.testing.assert_array_equal(plain, fit(rng.permutation(n)))
    np.testing.assert_array_equal(plain, fit(np.arange(n)))
    # 1024 times the numbers: for pairs the bounds follow, for orders the margin does not
    factor = 1.0 if kind in ("pairs", "pairs cv", "all pairs") else 1 / 1024
    np.testing.assert_array_equal(factor * plain, fit(np.arange(n), scale=1024.0))


def test_a_pair_may_be_given_in_either_direction(model, pairs, y):
    turned = LPTML(**FAST).fit(pairs[:, ::-1], y)
    np.testing.assert_array_equal(turned.components_, model.components_)


def test_the_number_of_jobs_does_not_matter(model, pairs, y):
    np.testing.assert_array_equal(LPTML(**FAST, n_jobs=2).fit(pairs, y).components_, model.components_)


def test_random_states(pairs, y):
    def fit(random_state):
        return LPTML(max_trials=3, random_state=random_state).fit(pairs, y).components_

    np.testing.assert_array_equal(fit(np.random.RandomState(7)), fit(np.random.RandomState(7)))
    assert np.isfinite(fit(None)).all()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((1.5, 2.0), (1.5, 2.0)),
        ([1.5, 2.0], (1.5, 2.0)),
    ],
)
def test_bounds_as_distances(pairs, y, given, expected):
    assert LPTML(**FAST, bounds=given).fit(pairs, y).bounds_ == expected


def test_bounds_as_ratio_and_percentiles(pairs, y):
    u, l = LPTML(**FAST, bounds=0.5).fit(pairs, y).bounds_
    assert u == pytest.approx(0.5 * l)
    u, l = LPTML(**FAST).fit(pairs, y).bounds_
    assert u == l
    distances = np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)
    fitted = LPTML(**FAST, bounds=("percentile", 10, 90)).fit(pairs, y)
    assert fitted.bounds_ == pytest.approx(tuple(np.percentile(distances, [10, 90])))


def test_an_initial_metric_is_never_worse(pairs, y):
    first = LPTML(max_trials=20, random_state=3).fit(pairs, y)
    start = first.get_mahalanobis_matrix()
    again = LPTML(max_trials=1, refine=False, random_state=0).fit(pairs, y, initial_metric=start)
    assert again.violation_rate_ <= first.violation_rate_


def test_few_components(pairs, y):
    fitted = LPTML(**FAST, n_components=1).fit(pairs, y)
    assert fitted.components_.shape == (1, 3)
    assert fitted.transform(pairs[:, 0]).shape == (120, 1)
    assert fitted.violation_rate_ < 0.2
    assert list(fitted.get_feature_names_out()) == ["lptml0"]


def test_plain_search_and_no_search(pairs, y):
    plain = LPTML(**FAST, refine=False).fit(pairs, y)
    assert plain.violation_rate_ <= plain.trivial_rate_
    alone = LPTML(max_trials=0, random_state=0).fit(pairs, y)
    assert alone.n_trials_ == 0
    assert alone.violation_rate_ < 0.16
    with pytest.raises(ValueError, match="max_trials"):
        LPTML(max_trials=0, refine=False).fit(pairs, y)


@pytest.mark.parametrize("objective", ["trace", "random", "prior"])
def test_objectives(pairs, y, objective):
    fitted = LPTML(**FAST, objective=objective, refine=False).fit(pairs, y)
    assert np.isfinite(fitted.components_).all()


def test_regularization_shrinks(pairs, y):
    def trace(eta, R=None):
        return np.trace(
            LPTML(**FAST, regularization=eta, regularizer=R).fit(pairs, y).get_mahalanobis_matrix()
        )

    assert trace(1e4) < 0.1 * trace(1e-3)
    assert trace(1e4, np.eye(3)) == pytest.approx(trace(1e4))


def test_class_weight(pairs, y):
    mostly = np.where(np.arange(120) % 6, -1, 1)
    balanced = LPTML(**FAST, class_weight="balanced").fit(pairs, mostly)
    assert balanced.trivial_rate_ == pytest.approx(0.5)
    heavy = LPTML(**FAST, class_weight={1: 100.0, -1: 1.0}).fit(pairs, mostly)
    wrong = violated(heavy.get_mahalanobis_matrix(), pairs, mostly, heavy.bounds_)
    assert wrong[mostly == 1].sum() <= wrong[mostly == -1].sum()


def test_time_limit(pairs, y):
    fitted = LPTML(max_trials=10**6, time_limit=0.5, random_state=0).fit(pairs, y)
    assert 0 < fitted.n_trials_ < 10**6
    assert "time" in fitted.status_


def test_callback_sees_metrics_and_can_stop(pairs, y):
    seen = []
    fitted = LPTML(
        max_trials=10_000, random_state=0, callback=lambda *news: seen.append(news) or len(seen) > 2
    )
    fitted.fit(pairs, y)
    assert len(seen) >= 3
    assert fitted.n_trials_ < 10_000
    cost, A = seen[-1][:2]
    assert A.shape == (3, 3)
    assert violated(A, pairs, y, fitted.bounds_).sum() == pytest.approx(cost, abs=1)


CTRL_C = """
import signal
import numpy as np
from lptml import LPTML

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run may ignore it
pressed = []

def press_once(cost, A):
    if not pressed:
        pressed.append(True)
        signal.raise_signal(signal.SIGINT)

pairs = np.random.default_rng(0).normal(size=(60, 2, 3))
y = np.where(np.arange(60) % 2, 1, -1)
model = LPTML(max_trials=10**6, random_state=0, callback=press_once).fit(pairs, y)
assert model.predict(pairs).shape == (60,)
assert model.violation_rate_ <= model.trivial_rate_
print(model.status_, model.n_trials_)
"""


def test_ctrl_c_keeps_the_best_so_far():
    """In a process of its own, where a signal that goes astray ends nothing else."""
    done = subprocess.run([sys.executable, "-c", CTRL_C], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    *status, trials = done.stdout.split()
    assert "interrupted" in status
    assert 0 < int(trials) < 10**6
    assert "InterruptedWarning" in done.stderr


def test_checkpoint(pairs, y, tmp_path):
    path = tmp_path / "state.npz"
    first = LPTML(**FAST, checkpoint=path).fit(pairs, y)
    assert path.exists()
    again = LPTML(**FAST, checkpoint=str(path)).fit(pairs, y)
    np.testing.assert_array_equal(again.components_, first.components_)


def test_approximate_counting(pairs, y, model):
    fitted = LPTML(**FAST, approximate_counting=True).fit(pairs, y)
    wrong = violated(fitted.get_mahalanobis_matrix(), pairs, y, fitted.bounds_)
    assert fitted.violation_rate_ == pytest.approx(wrong.mean())  # exact in any case


def test_calibration_at_the_end_of_fit(pairs, y):
    distances = LPTML(**FAST).fit(pairs, y).pair_distance(pairs)
    fitted = LPTML(**FAST).fit(pairs, y, calibration_params={"strategy": "max_tpr", "min_rate": 1.0})
    assert fitted.threshold_ <= distances[y == -1].min()


def test_the_threshold_is_the_bound_where_there_is_one(pairs, y):
    assert (fitted := LPTML(**FAST).fit(pairs, y)).threshold_ == fitted.bounds_[0] == fitted.bounds_[1]
    gap = LPTML(**FAST, bounds=(1.0, 2.0)).fit(pairs, y)
    right = [np.mean(np.where(gap.pair_distance(pairs) <= t, 1, -1) == y) for t in (gap.threshold_, 1.0, 2.0)]
    assert right[0] == max(right)


def test_suspicion(pairs, y):
    clean = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    fitted = LPTML(**FAST).fit(pairs, y)
    assert fitted.suspicion_.shape == (120,)
    assert ((fitted.suspicion_ >= 0) & (fitted.suspicion_ <= 1)).all()
    assert roc_auc_score(clean != y, fitted.suspicion_) > 0.95
    ranked = fitted.suspects(12)
    assert (clean != y)[ranked].mean() > 0.7
    assert (fitted.suspicion_[fitted.suspects()] > 0.5).all()
    again = pickle.loads(pickle.dumps(LPTML(**FAST).fit(pairs, y)))
    np.testing.assert_array_equal(again.suspicion_, fitted.suspicion_)
    with pytest.raises(ValueError, match="n_suspects"):
        fitted.suspects(-1)
    with pytest.raises(NotFittedError):
        _ = LPTML().suspicion_


def test_suspicion_of_orders():
    rng = np.random.default_rng(3)
    triplets = rng.normal(size=(150, 3, 2))
    near, far = (np.abs(triplets[:, 0, 0] - triplets[:, k, 0]) for k in (1, 2))
    triplets[near > far] = triplets[near > far][:, [0, 2, 1]]
    flipped = np.arange(150) % 15 == 4
    fitted = LPTML_Triplets(**FAST).fit(triplets, np.where(flipped, -1, 1))
    assert roc_auc_score(flipped, fitted.suspicion_) > 0.9
    assert fitted.score(triplets) > 0.9
    quadruplets = triplets[:, [0, 1, 0, 2]]
    quadruplets[flipped] = quadruplets[flipped][:, [2, 3, 0, 1]]
    fitted = LPTML_Quadruplets(**FAST).fit(quadruplets)
    assert roc_auc_score(flipped, fitted.suspicion_) > 0.9


def test_labels_of_triplets_turn_them_round():
    triplets = np.random.default_rng(4).normal(size=(40, 3, 2))
    y = np.where(np.arange(40) % 2, 1, -1)
    turned = triplets.copy()
    turned[y == -1] = turned[y == -1][:, [0, 2, 1]]
    np.testing.assert_array_equal(
        LPTML_Triplets(**FAST).fit(triplets, y).components_, LPTML_Triplets(**FAST).fit(turned).components_
    )


def test_weights_of_quadruplets_have_two_names():
    quadruplets = np.random.default_rng(5).normal(size=(40, 4, 2))
    weights = np.arange(40.0)
    np.testing.assert_array_equal(
        LPTML_Quadruplets(**FAST).fit(quadruplets, weights).components_,
        LPTML_Quadruplets(**FAST).fit(quadruplets, sample_weight=weights).components_,
    )


def test_orders_count_as_the_core_does():
    quadruplets = np.random.default_rng(6).normal(size=(50, 4, 3))
    fitted = LPTML_Quadruplets(**FAST).fit(quadruplets)
    core = ConstraintSet.from_quadruplets(quadruplets)
    assert fitted.n_violations_ == core.cost(fitted.get_mahalanobis_matrix())


@pytest.mark.parametrize("constraints", ["all", "neighbors", "triplets"])
def test_constraints_from_labels(X, labels, constraints):
    fitted = LPTML_Supervised(**FAST, constraints=constraints, temperature=0.0, shrinkage=0.0).fit(X, labels)
    assert fitted.violation_rate_ < fitted.trivial_rate_
    assert fitted.support_.shape[1] == (3 if constraints == "triplets" else 2)
    if len(fitted.support_):
        assert fitted.support_.max() < len(X)
    some = LPTML_Supervised(**FAST, constraints=constraints, temperature=0.0, shrinkage=0.0, n_constraints=40)
    assert some.fit(X, labels).n_violations_ <= 80


def test_all_pairs_count_as_the_core_does(X, labels):
    fitted = LPTML_Supervised(**FAST, constraints="all", temperature=0.0, shrinkage=0.0).fit(X, labels)
    core = LabelledPairs.from_labels(X, labels, bounds=fitted.bounds_)
    cost = core.cost(fitted.get_mahalanobis_matrix())
    assert fitted.n_violations_ == cost
    assert fitted.violation_rate_ == pytest.approx(cost / core.n)


def test_unlabelled_points_are_left_out(X, labels):
    some = np.where(np.arange(60) % 4 == 0, -1, labels)
    known = some != -1
    fitted = LPTML_Supervised(**FAST, constraints="all", temperature=0.0, shrinkage=0.0).fit(X, some)
    without = LPTML_Supervised(**FAST, constraints="all", temperature=0.0, shrinkage=0.0).fit(
        X[known], some[known]
    )
    np.testing.assert_array_equal(fitted.components_, without.components_)
    assert fitted.suspicion_.shape == (60,)
    assert not fitted.suspicion_[~known].any()
    assert np.isin(fitted.support_, np.flatnonzero(known)).all()


def test_names_of_classes_do_not_matter(X, labels):
    numbers = LPTML_Supervised(**FAST, constraints="all", temperature=0.0, shrinkage=0.0).fit(X, labels)
    words = LPTML_Supervised(**FAST, constraints="all", temperature=0.0, shrinkage=0.0).fit(
        X, np.array(["no", "yes"])[labels]
    )
    np.testing.assert_array_equal(numbers.components_, words.components_)
    assert list(words.classes_) == ["no", "yes"]


def test_clone_params_and_pickle(model, pairs):
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(pairs), model.predict(pairs))


@pytest.mark.parametrize("scoring", [None, "roc_auc", "average_precision", "accuracy", "f1"])
def test_cross_validation(pairs, y, scoring):
    learner = LPTML(max_trials=2, random_state=0)
    scores = cross_val_score(learner, pairs, y, cv=2, scoring=scoring, error_score="raise")
    assert scores.mean() > 0.6


def test_grid_search(pairs, y):
    grid = {"bounds": [1.0, ("percentile", 10, 90)], "n_components": [1, None]}
    search = GridSearchCV(LPTML(max_trials=2, random_state=0), grid, cv=2, error_score="raise").fit(pairs, y)
    assert search.best_score_ > 0.6
    assert search.predict(pairs).shape == (120,)
    for learner, data in (
        (LPTML_Triplets(**FAST), np.random.default_rng(0).normal(size=(20, 3, 2))),
        (LPTML_Quadruplets(**FAST), np.random.default_rng(0).normal(size=(20, 4, 2))),
    ):
        found = GridSearchCV(learner, {"max_trials": [1, 2]}, cv=2, error_score="raise").fit(data)
        assert 0 <= found.best_score_ <= 1


def test_metadata_routing(pairs, y):
    weight = np.where(np.arange(120) % 10 == 3, 0.0, 1.0)  # the wrong labels count nothing
    with config_context(enable_metadata_routing=True):
        learner = LPTML(max_trials=2, random_state=0)
        learner.set_fit_request(sample_weight=True, initial_metric=True).set_score_request(sample_weight=True)
        search = GridSearchCV(learner, {"bounds": [1.0]}, cv=2, error_score="raise")
        search.fit(pairs, y, sample_weight=weight, initial_metric=np.eye(3))
    assert search.best_score_ > 0.9
    assert search.best_estimator_.violation_rate_ < 0.05


def test_the_default_searches_and_reports_about_its_own_constraints(X, labels):
    fitted = LPTML_Supervised(random_state=0).fit(X, labels)
    assert fitted.n_trials_ == 100
    assert fitted.bounds_ is None
    A = fitted.get_mahalanobis_matrix()
    # The triplets by hand: three targets and ten impostors under the prior.
    prior = LPTML_Supervised(random_state=0, shrinkage=1.0, max_trials=0).fit(X, labels).components_
    trust = np.maximum(1 - suspicion(X, labels), 1e-3)
    Z, count, violated, total = X @ prior.T, 0, 0.0, 0.0
    for i in range(60):
        squares = ((Z - Z[i]) ** 2).sum(axis=1)
        order = np.argsort(squares)
        same = [j for j in order if labels[j] == labels[i] and j != i][:3]
        other = [j for j in order if labels[j] != labels[i]][:10]
        for j in same:
            for k in other:
                near, far = X[i] - X[j], X[i] - X[k]
                fails, weight = far @ A @ far - near @ A @ near < 1 - 1e-7, trust[i] * trust[j] * trust[k]
                count, violated, total = count + fails, violated + weight * fails, total + weight
    assert fitted.n_violations_ == count
    assert fitted.violation_rate_ == pytest.approx(violated / total)
    assert fitted.history_[-1][1] == pytest.approx(fitted.violation_rate_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": (1.0, 2.0)}, "bounds is about pairs"),
        ({"class_weight": "balanced"}, "class_weight is about pairs"),
        ({"refine": False}, "set temperature=0"),
        ({"prior": "whatever"}, "prior"),
        ({"prior": np.eye(2)}, "prior"),
        ({"shrinkage": 2.0}, "shrinkage"),
        ({"constraints": "auto"}, "constraints"),
        ({"max_trials": "auto"}, "max_trials"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(X, labels, options, message):
    with pytest.raises(ValueError, match=message):
        LPTML_Supervised(random_state=0, **options).fit(X, labels)


def test_trust_in_labels(X, labels):
    labels = labels.copy()
    labels[[3, 40]] = 1 - labels[[3, 40]]
    found = LPTML_Supervised(**FAST).fit(X, labels).components_
    estimate = np.maximum(1 - suspicion(X, labels), 1e-3)
    given = LPTML_Supervised(**FAST).fit(X, labels, trust=estimate).components_
    np.testing.assert_allclose(found, given, rtol=1e-12, atol=1e-12)
    ones = LPTML_Supervised(**FAST).fit(X, labels, trust=np.ones(60))
    assert ones.violation_rate_ == pytest.approx(ones.n_violations_ / 1800)
    halves = LPTML_Supervised(**FAST).fit(X, labels, trust=np.full(60, 0.5))
    np.testing.assert_allclose(halves.components_, ones.components_, rtol=1e-4)
    weighed = LPTML_Supervised(**FAST).fit(X, labels, trust=np.ones(60), sample_weight=estimate)
    np.testing.assert_allclose(weighed.components_, found, rtol=1e-4)
    # Rows that are alike are one point, trusted as they are on average.
    twice = LPTML_Supervised(**FAST).fit(
        np.vstack([X, X[:1]]), np.append(labels, labels[0]), trust=np.append(np.ones(60), 0.0)
    )
    once = LPTML_Supervised(**FAST).fit(
        X, labels, trust=np.r_[0.5, np.ones(59)], sample_weight=np.r_[2.0, np.ones(59)]
    )
    np.testing.assert_allclose(twice.components_, once.components_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", [LPTML_Supervised, LPTML_SupervisedCV])
@pytest.mark.parametrize(
    ("trust", "options", "message"),
    [
        (np.ones(5), {}, "trust must be 60 numbers"),
        (np.full(60, 1.5), {}, "trust must be 60 numbers from 0 to 1"),
        (np.full(60, np.nan), {}, "trust must be 60 numbers from 0 to 1"),
        (np.ones(60), {"constraints": "all"}, "trust is about triplets"),
    ],
)
def test_bad_trust_is_met_at_the_door(X, labels, learner, trust, options, message):
    with pytest.raises(ValueError, match=message):
        learner(max_trials=0, **options).fit(X, labels, trust=trust)
