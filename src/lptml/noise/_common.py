"""What the attacks return, and the checks they share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.constraints.checks import as_floats
from lptml.constraints.scaling import standard_deviation

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Seed = int | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class Flipped:
    """Labels after an attack on labels.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The labels with the wrong ones among them, of the same type as the input.
    flipped : ndarray of bool of shape (n,)
        Which of them are wrong.
    """

    labels: NDArray[Any]
    flipped: NDArray[np.bool_]

    @property
    def n_flipped(self) -> int:
        """Number of wrong labels."""
        return int(self.flipped.sum())


@dataclass(frozen=True, eq=False)
class Planted:
    """Points or pairs after an attack that plants some.

    Attributes
    ----------
    points : ndarray of shape (n, d), or (n, 2, d) for pairs
        All points or pairs, the planted ones among them.
    labels : ndarray of shape (n,)
        Their labels, of the same type as the input.
    planted : ndarray of bool of shape (n,)
        Which of them are planted.
    """

    points: Floats
    labels: NDArray[Any]
    planted: NDArray[np.bool_]

    @property
    def n_planted(self) -> int:
        """Number of planted points or pairs."""
        return int(self.planted.sum())


@dataclass(frozen=True, eq=False)
class Coded:
    """Labels as numbers of classes, and how many of them to attack."""

    classes: NDArray[Any]  # (K,) sorted
    codes: Ints  # (n,) in 0..K-1
    n_attacked: int

    @property
    def n(self) -> int:
        return self.codes.size

    def flipped(self, chosen: Ints, wrong: Ints) -> Flipped:
        """The labels with some replaced by other classes."""
        noisy = self.codes.copy()
        noisy[chosen] = wrong
        return Flipped(self.classes[noisy], noisy != self.codes)

    def any_other(self, chosen: Ints, rng: np.random.Generator) -> Ints:
        """A class other than its own for each of these, uniformly."""
        shift = rng.integers(1, max(self.classes.size, 2), size=chosen.size)
        return (self.codes[chosen] + shift) % self.classes.size


def check_labels(y: ArrayLike, share: float) -> Coded:
    """Labels of at least two classes, unless none is to be made wrong."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"y must be a non-empty 1-D array of labels, got shape {labels.shape}")
    n_attacked = count(share, labels.size)
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size < 2 and n_attacked:
        raise ValueError("y holds one class only: there is no wrong label to give")
    return Coded(classes, codes, n_attacked)


def check_pair_labels(y: ArrayLike) -> NDArray[Any]:
    """Labels of pairs."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0 or not np.isin(labels, (-1, 1)).all():
        raise ValueError("y must be a non-empty 1-D array of -1 (dissimilar) and +1 (similar)")
    return labels


def check_points(X: ArrayLike, n: int, name: str = "X") -> Floats:
    """n points, finite."""
    points = as_floats(X, name)
    if points.ndim != 2 or points.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n}, d), got {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name} must be finite")
    return points


def check_pairs(pairs: ArrayLike, n: int) -> Floats:
    """n pairs of points, finite."""
    points = as_floats(pairs, "pairs")
    if points.ndim != 3 or points.shape[:2] != (n, 2):
        raise ValueError(f"pairs must have shape ({n}, 2, d), got {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("pairs must be finite")
    return points


def check_distance(distance: float) -> None:
    if not (math.isfinite(distance) and distance > 0):
        raise ValueError(f"distance must be positive and finite, got {distance!r}")


def check_whole(value: int, least: int, name: str) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def count(share: float, n: int) -> int:
    """How many of n a share is."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must lie in [0, 1], got {share!r}")
    return round(share * n)


def standardised(X: Floats) -> Floats:
    """Features of mean 0 and standard deviation 1; those that never vary are 0."""
    return (X - X.mean(axis=0)) / standard_deviation(X)


def direction(d: int, rng: np.random.Generator) -> Floats:
    """A direction, uniformly."""
    u = rng.standard_normal(d)
    return u / np.linalg.norm(u)
