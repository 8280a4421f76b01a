"""Bad and extreme inputs: each gives a sound fit, or a ValueError that names the cause."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from lptml import LPTML, LPTML_Quadruplets, LPTML_Supervised, LPTML_SupervisedCV, LPTML_Triplets

FAST = {"max_trials": 3, "random_state": 0}
rng = np.random.default_rng(0)
PAIRS = rng.normal(size=(40, 2, 3))
Y = np.where(np.abs(PAIRS[:, 0, 0] - PAIRS[:, 1, 0]) < 1.0, 1, -1)
X = rng.normal(size=(30, 3))
LABELS = (X[:, 0] > 0).astype(int)
TRIPLETS = rng.normal(size=(30, 3, 3))
QUADRUPLETS = rng.normal(size=(30, 4, 3))


def with_value(array, value, *index):
    changed = array.copy().astype(float)
    changed[index] = value
    return changed


def scaled(array, *factors):
    return array * np.array(factors)


TUPLES = np.empty(30, object)
TUPLES[:] = [(label, 0) for label in LABELS]

# name -> (estimator, arguments of fit, keyword arguments of fit, what the ValueError must name)
REFUSED = {
    "pairs with NaN": (LPTML(), (with_value(PAIRS, np.nan, 3, 1, 2), Y), {}, r"pairs contains NaN"),
    "pairs with inf": (LPTML(), (with_value(PAIRS, np.inf, 3, 1, 2), Y), {}, r"pairs contains infinity"),
    "pairs whose squares overflow": (LPTML(), (PAIRS * 1e160, Y), {}, r"pairs holds a value of magnitude"),
    "no pairs": (LPTML(), (np.empty((0, 2, 3)), []), {}, r"pairs is empty"),
    "no features": (LPTML(), (np.empty((4, 2, 0)), [1, -1, 1, -1]), {}, r"0 feature"),
    "pairs of three": (LPTML(), (TRIPLETS, np.ones(30)), {}, r"pairs must hold 2 points"),
    "pairs in two dimensions": (LPTML(), (X, LABELS), {}, r"pairs must be an array of shape"),
    "pairs in one dimension": (LPTML(), (X[0], LABELS[:3]), {}, r"pairs must be an array of shape"),
    "pairs in four dimensions": (LPTML(), (PAIRS[None], Y), {}, r"pairs must be an array of shape"),
    "a number for pairs": (LPTML(), (3.0, Y), {}, r"pairs must be an array of shape"),
    "ragged pairs": (LPTML(), ([[[1.0, 2.0], [3.0]]], [1]), {}, r"differ in length"),
    "pairs of strings": (LPTML(), (np.full((4, 2, 3), "x"), [1, -1, 1, -1]), {}, r"could not convert"),
    "pairs of objects": (
        LPTML(),
        (np.full((4, 2, 3), object()), [1, -1, 1, -1]),
        {},
        r"pairs must hold numbers",
    ),
    "complex pairs": (LPTML(), (PAIRS + 1j, Y), {}, r"Complex data not supported"),
    "sparse pairs": (LPTML(), (sparse.csr_array(X), LABELS), {}, r"sparse"),
    "no y": (LPTML(), (PAIRS, None), {}, r"requires y"),
    "y of another length": (LPTML(), (PAIRS, Y[:-1]), {}, r"y has 39 labels for 40"),
    "y with 0 and 1": (LPTML(), (PAIRS, (Y + 1) // 2), {}, r"0/1 labels: pass 2 \* y - 1"),
    "y with three values": (LPTML(), (PAIRS, np.arange(40) % 3 - 1), {}, r"y must be \+1"),
    "y of strings": (LPTML(), (PAIRS, np.where(Y > 0, "same", "other")), {}, r"y must hold the numbers"),
    "y with NaN": (LPTML(), (PAIRS, with_value(Y, np.nan, 2)), {}, r"y contains NaN"),
    "y in two dimensions": (LPTML(), (PAIRS, np.stack([Y, Y], 1)), {}, r"1d array"),
    "only similar pairs": (LPTML(), (PAIRS, np.ones(40)), {}, r"just one class, similar"),
    "only dissimilar pairs": (LPTML(), (PAIRS, -np.ones(40)), {}, r"just one class, dissimilar"),
    "negative weights": (LPTML(), (PAIRS, Y), {"sample_weight": -np.ones(40)}, r"sample_weight .*negative"),
    "NaN weights": (
        LPTML(),
        (PAIRS, Y),
        {"sample_weight": np.full(40, np.nan)},
        r"sample_weight contains NaN",
    ),
    "infinite weights": (
        LPTML(),
        (PAIRS, Y),
        {"sample_weight": np.full(40, np.inf)},
        r"sample_weight contains inf",
    ),
    "zero weights": (LPTML(), (PAIRS, Y), {"sample_weight": np.zeros(40)}, r"sample_weight is zero"),
    "weights of one kind only": (
        LPTML(),
        (PAIRS, Y),
        {"sample_weight": (Y > 0).astype(float)},
        r"sample_weight leaves just one class",
    ),
    "too few weights": (LPTML(), (PAIRS, Y), {"sample_weight": np.ones(3)}, r"sample_weight.shape"),
    "weights in two dimensions": (
        LPTML(),
        (PAIRS, Y),
        {"sample_weight": np.ones((40, 2))},
        r"sample_weight must be 1-D",
    ),
    "weights of strings": (
        LPTML(),
        (PAIRS, Y),
        {"sample_weight": ["a"] * 40},
        r"sample_weight must hold numbers",
    ),
    "initial metric of another size": (LPTML(), (PAIRS, Y), {"initial_metric": np.eye(2)}, r"initial_metric"),
    "initial metric not symmetric": (
        LPTML(),
        (PAIRS, Y),
        {"initial_metric": np.triu(np.ones((3, 3)))},
        r"initial_metric must be symmetric",
    ),
    "initial metric not positive": (
        LPTML(),
        (PAIRS, Y),
        {"initial_metric": np.diag([1.0, 1.0, -1.0])},
        r"initial_metric must be positive semidefinite",
    ),
    "initial metric with NaN": (
        LPTML(),
        (PAIRS, Y),
        {"initial_metric": np.full((3, 3), np.nan)},
        r"initial_metric contains NaN",
    ),
    "negative bounds": (LPTML(bounds=(-1.0, 1.0)), (PAIRS, Y), {}, r"bounds"),
    "zero bounds": (LPTML(bounds=(0.0, 1.0)), (PAIRS, Y), {}, r"bounds"),
    "infinite bounds": (LPTML(bounds=(1.0, np.inf)), (PAIRS, Y), {}, r"bounds"),
    "NaN bounds": (LPTML(bounds=(np.nan, 1.0)), (PAIRS, Y), {}, r"bounds"),
    "three bounds": (LPTML(bounds=(1.0, 2.0, 3.0)), (PAIRS, Y), {}, r"bounds"),
    "bounds of strings": (LPTML(bounds=("a", "b")), (PAIRS, Y), {}, r"bounds"),
    "unknown bounds": (LPTML(bounds="best"), (PAIRS, Y), {}, r"bounds"),
    "negative ratio": (LPTML(bounds=-0.5), (PAIRS, Y), {}, r"bounds"),
    "percentiles out of range": (LPTML(bounds=("percentile", -5, 200)), (PAIRS, Y), {}, r"bounds|percentile"),
    "no trials": (LPTML(max_trials=-1), (PAIRS, Y), {}, r"max_trials"),
    "trials not whole": (LPTML(max_trials=2.5), (PAIRS, Y), {}, r"max_trials"),
    "epsilon zero": (LPTML(epsilon=0.0), (PAIRS, Y), {}, r"epsilon"),
    "unknown objective": (LPTML(objective="best"), (PAIRS, Y), {}, r"objective"),
    "unknown engine": (LPTML(engine="cloud"), (PAIRS, Y), {}, r"engine"),
    "too many components": (LPTML(n_components=4), (PAIRS, Y), {}, r"n_components"),
    "no components": (LPTML(n_components=0), (PAIRS, Y), {}, r"n_components"),
    "negative regularization": (LPTML(regularization=-1.0), (PAIRS, Y), {}, r"regularization"),
    "regularizer of another size": (
        LPTML(regularization=1.0, regularizer=np.eye(2)),
        (PAIRS, Y),
        {},
        r"regularizer",
    ),
    "regularizer without regularization": (LPTML(regularizer=np.eye(3)), (PAIRS, Y), {}, r"regulariz"),
    "unknown class weight": (LPTML(class_weight="fair"), (PAIRS, Y), {}, r"class_weight"),
    "negative class weight": (LPTML(class_weight={1: -1.0, -1: 1.0}), (PAIRS, Y), {}, r"class_weight"),
    "class weight of one kind": (LPTML(class_weight={1: 1.0}), (PAIRS, Y), {}, r"class_weight"),
    "no time": (LPTML(time_limit=0.0), (PAIRS, Y), {}, r"time_limit"),
    "no jobs": (LPTML(n_jobs=0), (PAIRS, Y), {}, r"n_jobs"),
    "callback not callable": (LPTML(callback=3), (PAIRS, Y), {}, r"callback"),
    "random state a text": (LPTML(random_state="seed"), (PAIRS, Y), {}, r"random_state"),
    "points with NaN": (LPTML_Supervised(), (with_value(X, np.nan, 2, 1), LABELS), {}, r"X contains NaN"),
    "points with inf": (
        LPTML_Supervised(),
        (with_value(X, -np.inf, 2, 1), LABELS),
        {},
        r"X contains infinity",
    ),
    "points of objects": (LPTML_Supervised(), (np.full((4, 2), {}), [0, 1] * 2), {}, r"X must hold numbers"),
    "points in three dimensions": (LPTML_Supervised(), (PAIRS, Y), {}, r"dim"),
    "points in one dimension": (LPTML_Supervised(), (X[:, 0], LABELS), {}, r"Reshape your data"),
    "points of strings": (LPTML_Supervised(), (np.full((4, 2), "x"), [0, 1, 0, 1]), {}, r"could not convert"),
    "sparse points": (LPTML_Supervised(), (sparse.csr_array(X), LABELS), {}, r"sparse"),
    "complex points": (LPTML_Supervised(), (X + 1j, LABELS), {}, r"Complex data not supported"),
    "one point": (LPTML_Supervised(), (X[:1], [1]), {}, r"1 sample"),
    "no points": (LPTML_Supervised(), (np.empty((0, 3)), []), {}, r"0 sample"),
    "one class": (LPTML_Supervised(), (X, np.zeros(30)), {}, r"at least two classes"),
    "all unlabelled": (LPTML_Supervised(), (X, np.full(30, -1)), {}, r"unlabelled"),
    "labels -1 and 1": (LPTML_Supervised(), (X, 2 * LABELS - 1), {}, r"-1, which means unlabelled"),
    "continuous labels": (LPTML_Supervised(), (X, X[:, 0]), {}, r"continuous|Unknown label type"),
    "labels with NaN": (LPTML_Supervised(), (X, with_value(LABELS, np.nan, 2)), {}, r"y contains NaN"),
    "tuples as labels": (LPTML_Supervised(), (X, TUPLES), {}, "y holds tuples or lists"),
    "mixed labels": (LPTML_Supervised(), (X, np.array(["a", 1] * 15, object)), {}, r"y mixes|type"),
    "labels of another length": (LPTML_Supervised(), (X, LABELS[:-1]), {}, r"inconsistent"),
    "several labels a point": (LPTML_Supervised(), (X, np.stack([LABELS, LABELS], 1)), {}, r"1d array"),
    "no labels": (LPTML_Supervised(), (X, None), {}, r"requires y"),
    "unknown constraints": (LPTML_Supervised(constraints="some"), (X, LABELS), {}, r"constraints"),
    "no constraints": (LPTML_Supervised(n_constraints=0), (X, LABELS), {}, r"n_constraints"),
    "unknown prior": (LPTML_Supervised(prior="guess"), (X, LABELS), {}, r"prior"),
    "triplets of two": (LPTML_Triplets(), (PAIRS,), {}, r"triplets must hold 3 points"),
    "triplets with NaN": (
        LPTML_Triplets(),
        (with_value(TRIPLETS, np.nan, 0, 0, 0),),
        {},
        r"triplets contains NaN",
    ),
    "triplet labels of 0": (LPTML_Triplets(), (TRIPLETS, np.zeros(30)), {}, r"y must be \+1"),
    "quadruplets of three": (LPTML_Quadruplets(), (TRIPLETS,), {}, r"quadruplets must hold 4 points"),
    "quadruplets with inf": (
        LPTML_Quadruplets(),
        (with_value(QUADRUPLETS, np.inf, 0, 0, 0),),
        {},
        r"quadruplets contains infinity",
    ),
    "negative weights of quadruplets": (
        LPTML_Quadruplets(),
        (QUADRUPLETS, -np.ones(30)),
        {},
        r"weights .*negative",
    ),
    "weights of quadruplets twice": (
        LPTML_Quadruplets(),
        (QUADRUPLETS, np.ones(30)),
        {"sample_weight": np.ones(30)},
        r"weights",
    ),
}

FITTED = {
    "feature that never changes": (LPTML(), (with_value(PAIRS, 1.0, slice(None), slice(None), 1), Y), {}),
    "all features constant but one": (LPTML(), (scaled(PAIRS, 1, 0, 0), Y), {}),
    "huge features": (LPTML(), (PAIRS * 1e60, Y), {}),
    "tiny features": (LPTML(), (PAIRS * 1e-60, Y), {}),
    "features of very different scale": (LPTML(), (scaled(PAIRS, 1e-8, 1.0, 1e8), Y), {}),
    "far from the origin": (LPTML(), (PAIRS + 1e6, Y), {}),
    "identical pairs": (LPTML(), (np.repeat(PAIRS[:4], 10, axis=0), np.repeat([1, -1, 1, -1], 10)), {}),
    "contradictory pairs": (LPTML(), (np.repeat(PAIRS[:2], 20, axis=0), np.tile([1, -1], 20)), {}),
    "collapsed pairs": (LPTML(), (np.stack([PAIRS[:, 0]] * 2, axis=1), Y), {}),
    "some collapsed pairs": (LPTML(), (with_value(PAIRS, 0.0, slice(0, 10)), Y), {}),
    "one pair of each kind": (LPTML(), (PAIRS[:2], [1, -1]), {}),
    "one feature": (LPTML(), (PAIRS[:, :, :1], Y), {}),
    "more features than pairs": (LPTML(), (rng.normal(size=(6, 2, 20)), [1, -1] * 3), {}),
    "integers": (LPTML(), ((PAIRS * 10).astype(int), Y), {}),
    "small integers": (LPTML(), ((PAIRS * 10).astype(np.int8), Y.astype(np.int8)), {}),
    "unsigned integers": (LPTML(), (np.abs(PAIRS * 10).astype(np.uint8), Y), {}),
    "half precision": (LPTML(), (PAIRS.astype(np.float16), Y), {}),
    "booleans as features": (LPTML(), (PAIRS > 0, Y), {}),
    "numbers in objects": (LPTML(), (PAIRS.astype(object), Y.astype(object)), {}),
    "nested lists": (LPTML(), (PAIRS.tolist(), Y.tolist()), {}),
    "fortran order": (LPTML(), (np.asfortranarray(PAIRS), Y), {}),
    "read-only memory": (LPTML(), (np.broadcast_to(PAIRS[:, :1], PAIRS.shape) + 0 * PAIRS, Y), {}),
    "y as floats": (LPTML(), (PAIRS, Y.astype(float)), {}),
    "y as a column": (LPTML(), (PAIRS, Y[:, None]), {}),
    "reversed bounds": (LPTML(bounds=(2.0, 1.0)), (PAIRS, Y), {}),
    "bounds far apart": (LPTML(bounds=(1e-6, 1e6)), (PAIRS, Y), {}),
    "ratio above one": (LPTML(bounds=3.0), (PAIRS, Y), {}),
    "some zero weights": (LPTML(), (PAIRS, Y), {"sample_weight": (np.arange(40) % 2).astype(float)}),
    "weights of very different size": (
        LPTML(),
        (PAIRS, Y),
        {"sample_weight": 10.0 ** (np.arange(40) % 13 - 6)},
    ),
    "an initial metric of zeros": (LPTML(), (PAIRS, Y), {"initial_metric": np.zeros((3, 3))}),
    "a single component": (LPTML(n_components=1), (PAIRS, Y), {}),
    "plain search": (LPTML(refine=False), (PAIRS, Y), {}),
    "all flipped": (LPTML(), (PAIRS, -Y), {}),
    "random labels": (LPTML(), (PAIRS, rng.choice([-1, 1], 40)), {}),
    "identical points": (LPTML_Supervised(), (np.ones((10, 3)), [0, 1] * 5), {}),
    "points twice with different labels": (LPTML_Supervised(), (np.repeat(X, 2, axis=0), [0, 1] * 30), {}),
    "two points": (LPTML_Supervised(), (X[:2], [0, 1]), {}),
    "each point its own class": (LPTML_Supervised(), (X, np.arange(30)), {}),
    "one point in a class": (LPTML_Supervised(), (X, [1] + [0] * 29), {}),
    "string labels": (LPTML_Supervised(), (X, np.where(LABELS, "yes", "no")), {}),
    "boolean labels": (LPTML_Supervised(), (X, LABELS > 0), {}),
    "labels in objects": (LPTML_Supervised(), (X, LABELS.astype(object)), {}),
    "some unlabelled": (LPTML_Supervised(), (X, np.where(np.arange(30) % 3, LABELS, -1)), {}),
    "a data frame": (LPTML_Supervised(), (pd.DataFrame(X, columns=list("abc")), pd.Series(LABELS)), {}),
    "one feature of points": (LPTML_Supervised(), (X[:, :1], LABELS), {}),
    "more features than points": (LPTML_Supervised(), (rng.normal(size=(8, 30)), [0, 1] * 4), {}),
    "huge points": (LPTML_Supervised(), (X * 1e80, LABELS), {}),
    "tiny points": (LPTML_Supervised(), (X * 1e-80, LABELS), {}),
    "more constraints than pairs": (LPTML_Supervised(n_constraints=10_000), (X, LABELS), {}),
    "one triplet": (LPTML_Triplets(), (TRIPLETS[:1],), {}),
    "collapsed triplets": (LPTML_Triplets(), (np.zeros((5, 3, 2)),), {}),
    "contradictory triplets": (
        LPTML_Triplets(),
        (np.concatenate([TRIPLETS, TRIPLETS[:, [0, 2, 1]]]),),
        {},
    ),
    "reversed triplets": (LPTML_Triplets(), (TRIPLETS, np.where(np.arange(30) % 2, 1, -1)), {}),
    "tiny quadruplets": (LPTML_Quadruplets(), (QUADRUPLETS * 1e-50,), {}),
    "weights of quadruplets": (LPTML_Quadruplets(), (QUADRUPLETS, np.arange(30.0)), {}),
}


def test_there_are_enough_of_them():
    assert len(REFUSED) + len(FITTED) >= 140


def quick(estimator):
    given = {
        name: value
        for name, value in FAST.items()
        if estimator.get_params()[name] == type(estimator)().get_params()[name]
    }
    return estimator.set_params(**given)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_cause(name):
    estimator, arguments, keywords, cause = REFUSED[name]
    with pytest.raises(ValueError, match=cause):
        quick(estimator).fit(*arguments, **keywords)


LABELLED = [name for name, (estimator, *_) in FITTED.items() if isinstance(estimator, LPTML_Supervised)]


@pytest.mark.parametrize(
    ("name", "chosen"), [(name, False) for name in FITTED] + [(name, True) for name in LABELLED]
)
def test_fitted_soundly(name, chosen):
    estimator, arguments, keywords = FITTED[name]
    # LPTML_SupervisedCV takes what LPTML_Supervised does
    estimator = LPTML_SupervisedCV(max_trials=3, random_state=0) if chosen else quick(clone(estimator))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # no overflow or division behind the scenes
        warnings.filterwarnings("ignore", message="A column-vector y was passed")
        warnings.filterwarnings("ignore", message="The number of unique classes")
        fitted = estimator.fit(*arguments, **keywords)
        suspicion = fitted.suspicion_
    L = fitted.components_
    assert L.ndim == 2
    assert np.isfinite(L).all()
    assert 0.0 <= fitted.violation_rate_ <= 1.0
    assert (fitted.lower_bound_ or 0.0) <= fitted.violation_rate_ + 1e-12
    assert suspicion.shape == (len(arguments[0]),)
    assert ((suspicion >= 0) & (suspicion <= 1)).all()
    points = np.asarray(arguments[0], dtype=float)
    points = points.reshape(-1, points.shape[-1])
    if isinstance(arguments[0], pd.DataFrame):
        points = arguments[0]
    assert np.isfinite(np.asarray(fitted.transform(points))).all()
    if hasattr(fitted, "predict"):
        assert np.isin(fitted.predict(np.asarray(arguments[0], dtype=float)), (-1, 0, 1)).all()


def test_mixed_labels_are_a_value_error() -> None:
    from lptml import suspicion

    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="y mixes labels"):
        suspicion(X, np.array([1, "a", None] * 10, dtype=object))
