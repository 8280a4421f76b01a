"""The data sets of the paper, its synthetic and poisoned sets, and a few that go further."""

from lptml.datasets.tables import (
    LOADERS,
    load,
    load_breast_cancer,
    load_digits,
    load_ionosphere,
    load_iris,
    load_soybean,
    load_wine,
    make_poisoned,
    make_rotated_poisoned,
    make_scattered_poison,
    make_synthetic,
)
from lptml.datasets.uci import DatasetNotFound

__all__ = [
    "LOADERS",
    "DatasetNotFound",
    "load",
    "load_breast_cancer",
    "load_digits",
    "load_ionosphere",
    "load_iris",
    "load_soybean",
    "load_wine",
    "make_poisoned",
    "make_rotated_poisoned",
    "make_scattered_poison",
    "make_synthetic",
]
