"""An attacker that knows the learner: label flips that hurt it most, found by refitting it.

The attacker may make a given number of labels wrong and sees everything: the points, the true labels, the
learner and the points it will be judged on. An attack is scored by the metric alone: the learner is fitted to
the wrong labels, then held-out points are classified by their nearest training points under its metric, which
vote with their *true* labels. So nothing is counted against a metric but how it was bent.

The search is a bounded one. It starts from the attacks that need no knowledge (:mod:`lptml.noise.labels`)
and from whole regions that change hands, then replaces parts of the worst attack found so far, by flips of a
region or of another attack that was tried, and keeps what hurts at least as much.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lptml.noise._common import (
    Coded,
    Flipped,
    Floats,
    Ints,
    Seed,
    check_labels,
    check_points,
    check_whole,
    standardised,
)
from lptml.noise.labels import around, flip_by_class, flip_clusters, flip_confident, flip_uniform

_TRIES = 20  # proposals in a row that have all been tried before: then there is nothing left to try

Score = tuple[float, float]  # accuracy, then the share of neighbours of the right class, which breaks ties
_FAILED: Score = (np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class AdaptiveFlips(Flipped):
    """The worst labels that an attacker found for a learner.

    Attributes
    ----------
    labels, flipped : ndarray of shape (n,)
        As in :class:`Flipped`.
    accuracy : float
        Held-out accuracy, with voters whose labels are true, of the metric learned from these labels.
    clean_accuracy : float
        The same, learned from the true labels.
    n_fits : int
        Fits to wrong labels that the search took.
    n_failed : int
        How many of them raised an error; they do not count as attacks.
    """

    accuracy: float
    clean_accuracy: float
    n_fits: int
    n_failed: int


def adaptive_flips(
    learner: Any,
    X: ArrayLike,
    y: ArrayLike,
    share: float,
    X_val: ArrayLike | None = None,
    y_val: ArrayLike | None = None,
    *,
    n_fits: int = 60,
    n_neighbors: int = 4,
    random_state: Seed = None,
) -> AdaptiveFlips:
    """Search for the wrong labels that hurt a metric learner most.

    Parameters
    ----------
    learner : estimator with fit and transform
        A fresh clone of it is fitted to each attack. With a fixed ``random_state`` of its own the attack can
        be repeated.
    X : array-like of shape (n, d)
        Training points.
    y : array-like of shape (n,)
        Their true labels, at least two classes.
    share : float in [0, 1]
        Share of the labels to make wrong; exactly ``round(share * n)`` are (none, if every fit fails).
    X_val, y_val : array-like of shape (m, d) and (m,), optional
        Points that the metric is judged on, with their true labels. If not given, each training point is
        judged by the others.
    n_fits : int
        Fits to wrong labels at most.
    n_neighbors : int
        Voters of each point; they vote with their true labels.
    random_state : int, Generator or None
        The same seed gives the same attack.

    Returns
    -------
    AdaptiveFlips
        The noisy labels, the mask of the wrong ones and the accuracy they leave.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lptml import LFDA
    >>> from lptml.noise import adaptive_flips
    >>> X, y = load_iris(return_X_y=True)
    >>> attack = adaptive_flips(LFDA(), X[::2], y[::2], 0.1, X[1::2], y[1::2], n_fits=20, random_state=0)
    >>> attack.n_flipped, attack.accuracy < attack.clean_accuracy
    (8, True)
    """
    given, rng = check_labels(y, share), np.random.default_rng(random_state)
    points = check_points(X, given.n)
    check_whole(n_fits, 1, "n_fits")
    check_whole(n_neighbors, 1, "n_neighbors")
    for method in ("fit", "transform"):
        if not callable(getattr(learner, method, None)):
            raise ValueError(f"learner must have the method {method}: {learner!r} has none")
    judge = _judge(learner, points, given, X_val, y_val, n_neighbors)
    clean = judge(given.codes)
    tried: list[_Attack] = []
    for codes in _proposals(points, given, n_fits, tried, rng) if given.n_attacked else ():
        try:
            tried.append(_Attack(codes, judge(codes)))
        except ValueError:  # numpy.linalg.LinAlgError is one
            tried.append(_Attack(codes, _FAILED))
    n_failed = sum(attack.score == _FAILED for attack in tried)
    worst = _worst(tried) if len(tried) > n_failed else _Attack(given.codes, clean)
    labels, flipped = given.classes[worst.codes], worst.codes != given.codes
    return AdaptiveFlips(labels, flipped, worst.score[0], clean[0], len(tried), n_failed)


@dataclass(frozen=True, eq=False)
class _Attack:
    """Codes with the wrong ones among them, and what they leave of the learner."""

    codes: Ints
    score: Score


def _worst(tried: list[_Attack]) -> _Attack:
    """The attack that hurts most, the latest of equals, so that the search moves on."""
    return min(reversed(tried), key=lambda attack: attack.score)


def _judge(
    learner: Any,
    X: Floats,
    given: Coded,
    X_val: ArrayLike | None,
    y_val: ArrayLike | None,
    n_neighbors: int,
) -> Callable[[Ints], Score]:
    """The score of the metric that the learner makes of some codes."""
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neighbors import NearestNeighbors

    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val belong together: give both or none")
    held_out, truth = None, given.codes
    if X_val is not None and y_val is not None:
        labels = np.asarray(y_val)
        if labels.ndim != 1 or labels.size == 0:
            raise ValueError(f"y_val must be a non-empty 1-D array of labels, got shape {labels.shape}")
        held_out = check_points(X_val, labels.size, "X_val")
        if held_out.shape[1] != X.shape[1]:
            raise ValueError(f"X_val must have {X.shape[1]} features like X, got {held_out.shape[1]}")
        known = np.isin(labels, given.classes)
        truth = np.where(known, np.searchsorted(given.classes, labels), -1)  # -1: nobody can be right
    others = given.n - (held_out is None)
    one_hot = np.eye(given.classes.size)[given.codes]  # (n, K)

    def judge(codes: Ints) -> Score:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = clone(learner).fit(X, given.classes[codes])
        finder = NearestNeighbors(n_neighbors=min(n_neighbors, others)).fit(model.transform(X))
        query = None if held_out is None else model.transform(held_out)
        votes = one_hot[finder.kneighbors(query, return_distance=False)].mean(axis=1)  # (m, K)
        right = np.where(truth >= 0, votes[np.arange(len(votes)), truth], 0.0)
        return float((votes.argmax(axis=1) == truth).mean()), float(right.mean())

    return judge


def _proposals(
    X: Floats, given: Coded, n_fits: int, tried: list[_Attack], rng: np.random.Generator
) -> Iterator[Ints]:
    """Attacks to try, the next one knowing the scores of all before; each one once."""
    k, Z = given.n_attacked, standardised(X)
    share = k / given.n
    for blind in (
        flip_confident(X, given.codes, share, random_state=rng),
        flip_clusters(X, given.codes, share, random_state=rng),
        flip_by_class(given.codes, share, random_state=rng),
        flip_uniform(given.codes, share, random_state=rng),
    ):
        if len(tried) < n_fits and not _among(tried, blind.labels):
            yield blind.labels
    # a fourth of what is left goes to regions, the rest to making the worst one worse
    regions = len(tried) + (n_fits - len(tried)) // 4
    while len(tried) < n_fits:
        for _ in range(_TRIES):
            if len(tried) < regions:
                codes = _add_region(Z, given, given.codes, k, rng)
            else:
                other = tried[int(rng.integers(len(tried)))]
                codes = _vary(Z, given, _worst(tried).codes, other.codes, rng)
            if not _among(tried, codes):
                yield codes
                break
        else:
            return


def _among(tried: list[_Attack], codes: Ints) -> bool:
    return any(np.array_equal(attack.codes, codes) for attack in tried)


def _vary(Z: Floats, given: Coded, worst: Ints, other: Ints, rng: np.random.Generator) -> Ints:
    """Replace a random part of the flips, at most half of them, by those of a region or another attack."""
    flips = np.flatnonzero(worst != given.codes)
    size = round(2.0 ** rng.uniform(0.0, np.log2(max(flips.size / 2, 1.0))))
    dropped = rng.choice(flips, size, replace=False)
    codes = worst.copy()
    codes[dropped] = given.codes[dropped]
    missing = np.flatnonzero((other != given.codes) & (codes == given.codes) & (worst == given.codes))
    if missing.size >= size and rng.random() < 0.5:
        taken = rng.choice(missing, size, replace=False)
        codes[taken] = other[taken]
        return codes
    return _add_region(Z, given, codes, size, rng)


def _add_region(Z: Floats, given: Coded, codes: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Give the right labels nearest to a random point one class; where they run out, any others."""
    codes = codes.copy()
    target = int(rng.integers(given.classes.size))
    order = around(Z, int(rng.integers(given.n)))
    right = order[codes[order] == given.codes[order]]
    region = right[given.codes[right] != target][:size]
    codes[region] = target
    left = np.flatnonzero(codes == given.codes)
    rest = rng.choice(left, size - region.size, replace=False)
    codes[rest] = given.any_other(rest, rng)
    return codes
