"""Attacks on pairs: labels reversed, and pairs pulled apart that are called similar."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.constraints.scaling import root_mean_square
from lptml.noise._common import (
    Flipped,
    Floats,
    Ints,
    Planted,
    Seed,
    check_distance,
    check_pair_labels,
    check_pairs,
    count,
    direction,
)
from lptml.noise.labels import by_class


class _Kind(StrEnum):
    UNIFORM = "uniform"
    CLASS = "class"
    ADVERSARIAL = "adversarial"


def flip_pairs(
    y: ArrayLike,
    share: float,
    *,
    kind: str = "uniform",
    pairs: ArrayLike | None = None,
    random_state: Seed = None,
) -> Flipped:
    """Reverse the label of a share of the pairs.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels: +1 similar, -1 dissimilar.
    share : float in [0, 1]
        Share of the labels to reverse; exactly ``round(share * n)`` are.
    kind : {"uniform", "class", "adversarial"}
        ``"uniform"``: any pair; ``"class"``: a similar pair is hit twice as often as a dissimilar one;
        ``"adversarial"``: the pairs whose reversal misleads most, that is the farthest dissimilar and the
        closest similar ones.
    pairs : array-like of shape (n, 2, d), optional
        The pairs; required by ``"adversarial"``.
    random_state : int, Generator or None
        The same seed gives the same flips.

    Returns
    -------
    Flipped
        The noisy labels and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import flip_pairs
    >>> noisy = flip_pairs([1, 1, -1, -1], 0.5, random_state=0)
    >>> noisy.n_flipped
    2
    """
    labels = check_pair_labels(y)
    n_flips = count(share, labels.size)
    try:
        how = _Kind(kind)
    except ValueError:
        raise ValueError(f"kind must be one of {[k.value for k in _Kind]}, got {kind!r}") from None
    rng = np.random.default_rng(random_state)
    if how is _Kind.UNIFORM:
        chosen = rng.choice(labels.size, n_flips, replace=False)
    elif how is _Kind.CLASS:
        chosen = by_class((labels == 1).astype(np.intp), 2, n_flips, rng)
    else:
        if pairs is None:
            raise ValueError("adversarial noise needs the pairs, to find the most misleading ones")
        points = check_pairs(pairs, labels.size)
        chosen = _misleading(points[:, 0] - points[:, 1], labels, n_flips, rng)
    flipped = np.zeros(labels.size, dtype=bool)
    flipped[chosen] = True
    return Flipped(np.where(flipped, -labels, labels), flipped)


def plant_pairs(
    pairs: ArrayLike,
    y: ArrayLike,
    share: float,
    *,
    distance: float = 30.0,
    along: ArrayLike | None = None,
    random_state: Seed = None,
) -> Planted:
    """Pull a share of the pairs apart along one direction and call them similar.

    To satisfy them, a metric has to give that direction up. Where they are many compared with the pairs that
    need it, giving it up violates the fewest constraints, and even a count is misled.

    Parameters
    ----------
    pairs : array-like of shape (n, 2, d)
        The pairs.
    y : array-like of shape (n,)
        Labels: +1 similar, -1 dissimilar.
    share : float in [0, 1]
        Share of the pairs to plant; exactly ``round(share * n)`` are.
    distance : float
        How far their points are moved apart, in root mean squares of the features' differences.
    along : array-like of shape (d,), optional
        The direction, in the same unit; a random one if not given.
    random_state : int, Generator or None
        The same seed gives the same pairs and direction.

    Returns
    -------
    Planted
        Pairs and labels, and the mask of the planted ones.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise import plant_pairs
    >>> pairs, y = np.random.default_rng(0).standard_normal((20, 2, 3)), np.repeat([-1, 1], 10)
    >>> poisoned = plant_pairs(pairs, y, 0.1, along=[0, 0, 1], random_state=0)
    >>> poisoned.labels[poisoned.planted].tolist()
    [1, 1]
    >>> bool((np.abs(np.diff(poisoned.points[poisoned.planted], axis=1))[..., 2] > 20).all())
    True
    """
    labels = check_pair_labels(y)
    n_planted = count(share, labels.size)
    points = check_pairs(pairs, labels.size).copy()
    check_distance(distance)
    rng = np.random.default_rng(random_state)
    u = direction(points.shape[2], rng) if along is None else _unit(along, points.shape[2])
    planted = np.zeros(labels.size, dtype=bool)
    planted[rng.choice(labels.size, n_planted, replace=False)] = True
    unit = np.sqrt(((points[:, 1] - points[:, 0]) ** 2).mean(axis=0))  # (d,)
    points[planted, 1] += distance * unit * u
    return Planted(points, np.where(planted, np.ones_like(labels), labels), planted)


def _unit(along: ArrayLike, d: int) -> Floats:
    u = np.asarray(along, dtype=np.float64)
    length = float(np.linalg.norm(u))
    if u.shape != (d,) or not (np.isfinite(length) and length > 0):
        raise ValueError(f"along must be a direction of {d} finite numbers, not all 0, got {along!r}")
    return u / length


def _misleading(V: Floats, labels: NDArray[Any], n_flips: int, rng: np.random.Generator) -> Ints:
    """Indices of the pairs that mislead most when reversed: extreme in distance for their kind."""
    length = ((V / root_mean_square(V)) ** 2).sum(axis=1)  # (n,)
    misleading = np.empty(length.size)
    for label in (-1, 1):
        kind = np.flatnonzero(labels == label)
        order = np.lexsort((rng.random(kind.size), label * length[kind]))  # ties at random
        misleading[kind[order]] = np.arange(kind.size) / max(kind.size, 1)
    return np.argsort(misleading, kind="stable")[:n_flips]
