"""Features, bounds, weights and penalties in any units: a metric of finite numbers, or a ValueError."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import lptml
from lptml import LPTML, LPTML_Quadruplets, LPTML_Supervised, LPTML_Triplets
from lptml.constraints import ConstraintSet
from lptml.constraints.indexed_pairs import IndexedPairs
from lptml.noise.suspects import pair_suspicion, suspicion
from lptml.proof import certify

UNITS = np.array([1e-6, 1e-2, 1e2, 1e6])
FAST = {"max_trials": 20, "random_state": 0}

#: Learners by the number of points of what they learn from; 1 stands for labelled points.
LEARNERS = {
    1: "LPTML_Supervised RobustKNeighborsClassifier ITML_Supervised MMC_Supervised RCA_Supervised LFDA LMNN "
    "MCML",
    2: "LPTML ITML MMC",
    3: "LPTML_Triplets",
    4: "LPTML_Quadruplets",
}
NAMES = [(name, size) for size, names in LEARNERS.items() for name in names.split()]


def fitted(name, size, factor=1.0, weight=None):
    """A learner fitted to random data times a factor."""
    rng = np.random.default_rng(0)
    learner = getattr(lptml, name)
    known = inspect.signature(learner).parameters
    options = {key: value for key, value in FAST.items() if key in known}
    data = [factor * rng.normal(size=(24, 2) if size == 1 else (24, size, 2))]
    if size < 3:
        data.append(np.repeat([-1, 1], 12) if size == 2 else np.repeat(["a", "b"], 12))
    weights = {} if weight is None else {"sample_weight": weight}
    return learner(**options).fit(*data, **weights)


@pytest.mark.filterwarnings("ignore", category=ConvergenceWarning)
@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e-98, 1e98, 1e160, 1e300])
@pytest.mark.parametrize(("name", "size"), NAMES)
def test_features_of_any_size(name, size, factor):
    if 1e-100 < factor < 1e100:
        learned = fitted(name, size, factor)
        points = factor * np.array([[0.0, 0.0], [1.0, 2.0]])
        apply = getattr(learned, "predict_proba", None) or learned.transform
        assert np.isfinite(apply(points)).all()
    else:
        with pytest.raises(ValueError, match="rescale the features"):
            fitted(name, size, factor)


@pytest.mark.parametrize("factor", [1e-300, 1e-165, 1e-50, 1e50, 1e100, 1e155, 1e300])
@pytest.mark.parametrize(
    ("name", "size"), [("LPTML", 2), ("LPTML_Triplets", 3), ("LPTML_Quadruplets", 4), ("LPTML_Supervised", 1)]
)
def test_weights_of_any_size(name, size, factor):
    weight = np.full(24, factor)
    if 1e-50 <= factor <= 1e50:
        learned = fitted(name, size, weight=weight)
        assert 0 <= learned.violation_rate_ <= 1
        assert np.isfinite(learned.components_).all()
    else:
        with pytest.raises(ValueError, match="largest sample_weight"):
            fitted(name, size, weight=weight)


@pytest.mark.parametrize(("name", "size"), [("LPTML", 2), ("LPTML_Triplets", 3), ("LPTML_Supervised", 1)])
def test_one_weight_beyond_all_others(name, size):
    weight = np.full(24, 1e-120)
    weight[[3, 5, 15]] = 1.0  # the others make no difference to any sum
    learned = fitted(name, size, weight=weight)
    assert 0 <= learned.violation_rate_ <= 1
    weight[3] = 1e300
    with pytest.raises(ValueError, match="largest sample_weight"):
        fitted(name, size, weight=weight)


def test_weights_that_leave_one_class():
    weight = np.where(np.arange(24) < 12, 1.0, 1e-120)
    with pytest.raises(ValueError, match="sample_weight leaves"):
        fitted("LPTML_Supervised", 1, weight=weight)
    X, y = np.random.default_rng(0).normal(size=(24, 2)), np.repeat(["a", "b"], 12)
    with pytest.raises(ValueError, match="sample_weight leaves no weight to the label"):
        suspicion(X, y, sample_weight=weight)


def test_one_feature_that_hardly_varies():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)) * [1.0, 1e-200, 1.0], np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="feature 1 of X"):
        LPTML_Supervised(**FAST).fit(X, y)
    with pytest.raises(ValueError, match="feature 1 of V"):
        ConstraintSet.from_differences(X, 2 * y - 1, bounds=(1.0, 1.0))
    with pytest.raises(ValueError, match="feature 1 of X"):
        IndexedPairs.from_indices(X, [[0, 1]], [1], bounds=(1.0, 1.0))
    X[:, 1] = 1e-200  # it does not vary at all: no harm
    assert np.isfinite(LPTML_Supervised(**FAST).fit(X, y).components_).all()


def test_points_are_transformed_whatever_their_spread():
    learned = fitted("LPTML", 2)
    assert learned.transform([[0.0, 0.0], [1e-200, 0.0]]).shape == (2, 2)


@pytest.mark.parametrize("entry", [1e-300, 1e300])
def test_metrics_to_start_from(entry):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(20, 2, 2)), np.repeat([-1, 1], 10)
    with pytest.raises(ValueError, match="initial_metric"):
        LPTML(**FAST).fit(pairs, y, initial_metric=entry * np.eye(2))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("learner", "size"), [(LPTML, 2), (LPTML_Triplets, 3), (LPTML_Quadruplets, 4)])
def test_features_in_different_units(learner, size, seed):
    rng = np.random.default_rng(seed)
    tuples = rng.normal(size=(40, size, 4)) * UNITS
    y = [rng.choice([-1, 1], 40)] if size == 2 else []
    fitted = learner(**FAST).fit(tuples, *y)
    assert np.isfinite(fitted.components_).all()
    assert 0 <= fitted.violation_rate_ <= 1


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_features_in_different_units(seed):
    rng = np.random.default_rng(seed)
    triplets = ConstraintSet.from_triplets(rng.normal(size=(40, 3, 4)) * UNITS)
    found = certify(triplets, time_limit=0.2)
    assert 0 <= found.lower_bound <= found.cost


@pytest.mark.parametrize("bounds", [(1e-200, 1e-200), (1e-100, 1e-100), (1e100, 1e100), (1e200, 1.0)])
def test_bounds_of_any_size(bounds):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(30, 2, 2)), rng.choice([-1, 1], 30)
    if min(bounds) < 1e-100 or max(bounds) > 1e100:
        with pytest.raises(ValueError, match="bounds"):
            LPTML(bounds=bounds, **FAST).fit(pairs, y)
    else:
        assert np.isfinite(LPTML(bounds=bounds, **FAST).fit(pairs, y).components_).all()


@pytest.mark.parametrize("regularization", [1e-300, 1e-100, 1e100, 1e150])
def test_penalties_of_any_size(regularization):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(30, 2, 2)), rng.choice([-1, 1], 30)
    fitted = LPTML(regularization=regularization, **FAST).fit(pairs, y)
    assert np.isfinite(fitted.components_).all()
    with pytest.raises(ValueError, match="regularization"):
        LPTML(regularization=1e300, **FAST).fit(pairs, y)


def test_bounds_of_constraints_whose_weights_are_far_apart():
    rng = np.random.default_rng(104)
    four = rng.normal(size=(37, 4, 3))
    weight = 10.0 ** np.random.default_rng(105).uniform(-40, 10, 37)
    found = certify(ConstraintSet.from_quadruplets(four, weight=weight), time_limit=0.5)
    assert 0 <= found.lower_bound <= found.cost


def test_pairs_of_which_one_kind_has_no_weight():
    rng = np.random.default_rng(0)
    V, y = rng.normal(size=(14, 3)), np.repeat([-1, 1], 7)
    assert (pair_suspicion(V, y, sample_weight=np.where(y > 0, 1.0, 0.0)) == 0).all()


def test_pairs_of_which_one_kind_has_no_weight_in_a_fold():
    rng = np.random.default_rng(0)
    V, y = rng.normal(size=(14, 3)), np.repeat([-1, 1], 7)
    weight = np.where(np.arange(14) < 1, 1.0, np.where(y > 0, 1.0, 0.0))
    judged = pair_suspicion(V, y, sample_weight=weight)
    assert np.isfinite(judged).all()


@pytest.mark.parametrize("factor", [1e-99, 1e99])
def test_suspicion_of_pairs_of_any_size(factor):
    rng = np.random.default_rng(0)
    V, y = np.rint(rng.normal(size=(34, 50))), rng.choice([-1, 1], 34)
    np.testing.assert_allclose(pair_suspicion(factor * V, y), pair_suspicion(V, y), atol=1e-4)
    assert (pair_suspicion(0.0 * V, y) == 0).all()


@pytest.mark.parametrize("learner", [lptml.RCA_Supervised, lptml.LFDA])
@pytest.mark.parametrize("value", [1e-138 / 3, 0.1, 0.0])
def test_points_that_differ_by_rounding_alone(learner, value):
    X = np.full((31, 3), value)
    learned = learner().fit(X, np.arange(31) % 4)
    assert np.isfinite(learned.components_).all()
