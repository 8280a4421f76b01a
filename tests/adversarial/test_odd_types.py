"""What NumPy makes numbers of that nobody meant, or nothing at all: a ValueError, whoever is asked.

A missing date is -9.2e18 as a float, a complex number loses half of itself, what is under a mask comes to
light, and an integer beyond all floats is an OverflowError.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.neighbors import KNeighborsClassifier

import lptml
from lptml.noise.suspects import pair_suspicion

N = 12
rng = np.random.default_rng(0)
POINTS, PAIRS = rng.normal(size=(N, 3)), rng.normal(size=(N, 2, 3))
CLASSES, SIGNS = np.arange(N) % 2, np.where(np.arange(N) % 2, 1, -1)
QUICK = {"max_trials": 2, "random_state": 0}


def of_points(make: Callable[[], Any]) -> Any:
    return POINTS, CLASSES, lambda X, y, **w: make().fit(X, y, **w)


#: What learns or judges: points, their labels, and what takes both.
TAKERS: dict[str, Any] = {
    "LPTML_Supervised": of_points(lambda: lptml.LPTML_Supervised(**QUICK)),
    "LPTML_SupervisedCV": of_points(lambda: lptml.LPTML_SupervisedCV(**QUICK)),
    "RobustKNeighborsClassifier": of_points(lambda: lptml.RobustKNeighborsClassifier()),
    "CertifiedKNeighborsClassifier": of_points(lambda: lptml.CertifiedKNeighborsClassifier()),
    "LabelCleaner": of_points(lambda: lptml.LabelCleaner(KNeighborsClassifier(1))),
    "LMNN": of_points(lambda: lptml.LMNN()),
    "RCA": of_points(lambda: lptml.RCA()),
    "suspicion": (POINTS, CLASSES, lptml.suspicion),
    "outlyingness": (POINTS, CLASSES, lambda X, y: lptml.outlyingness(X)),
    "LPTML": (PAIRS, SIGNS, lambda X, y, **w: lptml.LPTML(**QUICK).fit(X, y, **w)),
    "LPTMLCV": (PAIRS, SIGNS, lambda X, y, **w: lptml.LPTMLCV(**QUICK).fit(X, y, **w)),
    "MMC": (PAIRS, SIGNS, lambda X, y: lptml.MMC().fit(X, y)),
    "pair_suspicion": (PAIRS, SIGNS, pair_suspicion),
    "ConstraintSet": (
        PAIRS,
        SIGNS,
        lambda X, y: lptml.ConstraintSet.from_pairs(X, y, bounds=(1.0, 1.0)),
    ),
    "LPTML_Triplets": (
        rng.normal(size=(N, 3, 3)),
        SIGNS,
        lambda X, y, **w: lptml.LPTML_Triplets(**QUICK).fit(X, y, **w),
    ),
    "LPTML_Quadruplets": (
        rng.normal(size=(N, 4, 3)),
        SIGNS,
        lambda X, y, **w: lptml.LPTML_Quadruplets(**QUICK).fit(X, y, **w),
    ),
}
WEIGHED = [
    "LPTML_Supervised",
    "LPTML",
    "LPTML_Triplets",
    "LPTML_Quadruplets",
    "suspicion",
    "pair_suspicion",
]


def masked(array: np.ndarray) -> np.ndarray:
    return np.ma.array(array, mask=np.arange(array.size).reshape(array.shape) == 5)


def frame(array: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(array.reshape(len(array), -1))


NO_NUMBERS: dict[str, Callable[[np.ndarray], Any]] = {
    "dates": lambda a: (1e9 * a).astype("datetime64[ns]"),
    "missing dates": lambda a: np.full(a.shape, np.datetime64("NaT")),
    "times": lambda a: (1e9 * a).astype("timedelta64[ns]"),
    "complex": lambda a: a + 1j,
    "a list of complex": lambda a: (a + 1j).tolist(),
    "masked": masked,
    "huge integers": lambda a: np.full(a.shape, 10**400, dtype=object),
    "huge floats": lambda a: np.full(a.shape, np.longdouble("1e4000")),
    "missing": lambda a: np.full(a.shape, pd.NA, dtype=object),
    "objects": lambda a: np.full(a.shape, object(), dtype=object),
    "a frame of dates": lambda a: frame((1e9 * a).astype("datetime64[ns]")),
    "a frame of Polars of days": lambda a: pl.DataFrame({"x": [date(2020, 1, 1)] * len(a)}),
    "a generator": lambda a: (row for row in a),
    "nothing": lambda a: a[:0],
}


@pytest.mark.parametrize("form", NO_NUMBERS)
@pytest.mark.parametrize("name", TAKERS)
def test_points_that_are_no_numbers(name: str, form: str) -> None:
    X, y, take = TAKERS[name]
    with pytest.raises(ValueError):
        take(NO_NUMBERS[form](X), y)


@pytest.mark.parametrize("form", [form for form in NO_NUMBERS if "frame" not in form])
@pytest.mark.parametrize("name", WEIGHED)
def test_weights_that_are_no_numbers(name: str, form: str) -> None:
    X, y, take = TAKERS[name]
    with pytest.raises(ValueError, match="sample_weight"):
        take(X, y, sample_weight=NO_NUMBERS[form](np.ones(N)))


#: Labels that are none, and one that scikit-learn alone does not know.
NO_LABELS: dict[str, Callable[[np.ndarray], Any]] = {
    "a number": lambda y: 3,
    "a word": lambda y: "similar",
    "a generator": lambda y: (label for label in y),
    "missing": lambda y: np.full(N, pd.NA, dtype=object),
    "masked": masked,
    "huge": lambda y: np.full(N, 10**400, dtype=object),
    "bytes": lambda y: np.full(N, b"xyz"),
}


@pytest.mark.parametrize("form", NO_LABELS)
@pytest.mark.parametrize(
    "name",
    [n for n in TAKERS if n not in ("suspicion", "outlyingness", "RCA", "LPTML_Quadruplets")],  # any; weights
)
def test_labels_that_are_none(name: str, form: str) -> None:
    X, y, take = TAKERS[name]
    with pytest.raises(ValueError):
        take(X, NO_LABELS[form](y))


@pytest.mark.parametrize("form", ["masked", "NaN", "NaN among objects"])
@pytest.mark.parametrize("name", ["suspicion", "LPTML_Supervised", "RobustKNeighborsClassifier"])
def test_labels_of_which_one_is_missing(name: str, form: str) -> None:
    X, y, take = TAKERS[name]
    missing = np.where(np.arange(N) == 3, np.nan, y)
    spoilt = {"masked": masked(y), "NaN": missing, "NaN among objects": missing.astype(object)}[form]
    with pytest.raises(ValueError, match=r"NaN|masked"):
        take(X, spoilt)


@pytest.mark.parametrize("name", ["LPTML_Supervised", "RobustKNeighborsClassifier", "LabelCleaner"])
def test_strings_of_numpy_are_labels(name: str) -> None:
    X, y, take = TAKERS[name]
    texts = np.where(y > 0, "a", "b").astype(np.dtypes.StringDType())
    assert [*take(X, texts).classes_] == ["a", "b"]


def test_arrow_tables_are_cleaned() -> None:
    table = pl.DataFrame(POINTS).to_arrow()
    assert lptml.LabelCleaner(KNeighborsClassifier(1)).fit(table, CLASSES).predict(table).shape == (N,)


def test_answers_are_met_at_the_door_too() -> None:
    model = lptml.RobustKNeighborsClassifier().fit(POINTS, CLASSES)
    with pytest.raises(ValueError, match="rescale"):
        model.predict(1e200 * POINTS)
    with pytest.raises(ValueError, match="masked"):
        model.predict(masked(POINTS))
