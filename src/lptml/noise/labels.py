"""Attacks that change labels and leave the points where they are."""

from __future__ import annotations

from enum import StrEnum

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

_FOLDS = 3  # of the cross-validation that tells which labels are the most obvious


class NoiseKind(StrEnum):
    """How wrong labels are placed; see :func:`flip_labels`."""

    UNIFORM = "uniform"
    CLASS = "class"
    CLUSTERS = "clusters"
    NEIGHBORHOOD = "neighborhood"
    CONFIDENT = "confident"

    @classmethod
    def _missing_(cls, value: object) -> NoiseKind | None:
        return cls.CLUSTERS if value == "adversarial" else None  # what clusters were called first


def flip_labels(
    y: ArrayLike,
    share: float,
    *,
    kind: str = "uniform",
    X: ArrayLike | None = None,
    cluster_size: int = 5,
    random_state: Seed = None,
) -> Flipped:
    """Give a share of the points a wrong label, in a way chosen by name.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels: numbers or strings, at least two classes.
    share : float in [0, 1]
        Share of the labels to make wrong; exactly ``round(share * n)`` are.
    kind : {"uniform", "class", "clusters", "neighborhood", "confident"}
        :func:`flip_uniform`, :func:`flip_by_class`, :func:`flip_clusters` (also called "adversarial"),
        :func:`relabel_neighborhood` (whose points may have had the label already) or
        :func:`flip_confident`.
    X : array-like of shape (n, d), optional
        The points; the last three kinds need them.
    cluster_size : int
        Points in each flipped neighbourhood (``"clusters"``).
    random_state : int, Generator or None
        The same seed gives the same flips.

    Returns
    -------
    Flipped
        The noisy labels and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import flip_labels
    >>> noisy = flip_labels(["a", "a", "b", "b", "c"], 0.4, random_state=0)
    >>> noisy.n_flipped
    2
    >>> [str(label) for label in noisy.labels[~noisy.flipped]]
    ['a', 'a', 'b']
    """
    try:
        how = NoiseKind(kind)
    except ValueError:
        raise ValueError(f"kind must be one of {[k.value for k in NoiseKind]}, got {kind!r}") from None
    if how is NoiseKind.UNIFORM:
        return flip_uniform(y, share, random_state=random_state)
    if how is NoiseKind.CLASS:
        return flip_by_class(y, share, random_state=random_state)
    if X is None:
        raise ValueError(f"noise of kind {kind!r} needs the points X")
    if how is NoiseKind.CLUSTERS:
        return flip_clusters(X, y, share, cluster_size=cluster_size, random_state=random_state)
    if how is NoiseKind.NEIGHBORHOOD:
        return relabel_neighborhood(X, y, share, random_state=random_state)
    return flip_confident(X, y, share, random_state=random_state)


def flip_uniform(y: ArrayLike, share: float, *, random_state: Seed = None) -> Flipped:
    """Give points that are drawn uniformly one of the other classes, uniformly.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels, at least two classes.
    share : float in [0, 1]
        Share of the labels to make wrong; exactly ``round(share * n)`` are.
    random_state : int, Generator or None
        The same seed gives the same flips.

    Returns
    -------
    Flipped
        The noisy labels and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import flip_uniform
    >>> flip_uniform([0, 0, 1, 1, 2], 0.6, random_state=0).n_flipped
    3
    """
    given, rng = check_labels(y, share), np.random.default_rng(random_state)
    chosen = rng.choice(given.n, given.n_attacked, replace=False)
    return given.flipped(chosen, given.any_other(chosen, rng))


def flip_by_class(y: ArrayLike, share: float, *, random_state: Seed = None) -> Flipped:
    """Give points the next class, those of some classes more often than others: a systematic annotator.

    The last class in sorted order is hit twice as often as the first, the rates rising linearly between them.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels, at least two classes.
    share : float in [0, 1]
        Share of the labels to make wrong; exactly ``round(share * n)`` are.
    random_state : int, Generator or None
        The same seed gives the same flips.

    Returns
    -------
    Flipped
        The noisy labels and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import flip_by_class
    >>> noisy = flip_by_class(["a"] * 6 + ["b"] * 6, 0.5, random_state=0)
    >>> [str(label) for label in noisy.labels[noisy.flipped]]
    ['b', 'b', 'a', 'a', 'a', 'a']
    """
    given, rng = check_labels(y, share), np.random.default_rng(random_state)
    chosen = by_class(given.codes, given.classes.size, given.n_attacked, rng)
    return given.flipped(chosen, (given.codes[chosen] + 1) % given.classes.size)


def flip_clusters(
    X: ArrayLike, y: ArrayLike, share: float, *, cluster_size: int = 5, random_state: Seed = None
) -> Flipped:
    """Give small neighbourhoods of one class the label of the closest other class.

    Each is a random point and its nearest points of the same class, on standardised features. Neighbours
    confirm each other's wrong label, which is what defeats a vote.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The points.
    y : array-like of shape (n,)
        True labels, at least two classes.
    share : float in [0, 1]
        Share of the labels to make wrong; exactly ``round(share * n)`` are.
    cluster_size : int
        Points in each neighbourhood.
    random_state : int, Generator or None
        The same seed gives the same flips.

    Returns
    -------
    Flipped
        The noisy labels and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import flip_clusters
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> flip_clusters(X, [0, 0, 0, 1, 1, 1], 0.5, cluster_size=3, random_state=0).labels.tolist()
    [0, 0, 0, 0, 0, 0]
    """
    given, rng = check_labels(y, share), np.random.default_rng(random_state)
    Z = standardised(check_points(X, given.n))
    check_whole(cluster_size, 1, "cluster_size")
    return given.flipped(*_clustered(Z, given.codes, given.n_attacked, cluster_size, rng))


def relabel_neighborhood(X: ArrayLike, y: ArrayLike, share: float, *, random_state: Seed = None) -> Flipped:
    """Give a random point and all points around it one class, other than the one most of them have.

    A whole region changes hands, so that no vote within it shows that anything is wrong.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The points; near is near on standardised features.
    y : array-like of shape (n,)
        True labels, at least two classes.
    share : float in [0, 1]
        Share of the points to relabel: exactly ``round(share * n)`` get the label. Some of them may have had
        it already; those are not among the wrong ones.
    random_state : int, Generator or None
        The same seed gives the same flips.

    Returns
    -------
    Flipped
        The noisy labels and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import relabel_neighborhood
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> relabel_neighborhood(X, [0, 0, 0, 1, 1, 1], 0.5, random_state=0).labels.tolist()
    [0, 0, 0, 0, 0, 0]
    """
    given, rng = check_labels(y, share), np.random.default_rng(random_state)
    Z = standardised(check_points(X, given.n))
    nearest = around(Z, int(rng.integers(given.n)))[: given.n_attacked]
    K = given.classes.size
    most = int(np.bincount(given.codes[nearest], minlength=K).argmax())
    other = (most + int(rng.integers(1, max(K, 2)))) % K
    return given.flipped(nearest, np.full(nearest.size, other))


def flip_confident(X: ArrayLike, y: ArrayLike, share: float, *, random_state: Seed = None) -> Flipped:
    """Give the points whose labels are the most obvious one of the other classes, uniformly.

    These are the points of largest out-of-sample probability of their own label under logistic regression on
    standardised features (3 folds): deep inside their class, where a wrong label contradicts the most.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The points.
    y : array-like of shape (n,)
        True labels, at least two classes.
    share : float in [0, 1]
        Share of the labels to make wrong; exactly ``round(share * n)`` are.
    random_state : int, Generator or None
        Deals the folds and draws the wrong labels.

    Returns
    -------
    Flipped
        The noisy labels and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import flip_confident
    >>> X = [[-9.0], [-8.0], [-1.0], [1.0], [8.0], [9.0]]
    >>> flip_confident(X, [0, 0, 0, 1, 1, 1], 0.4, random_state=0).flipped.tolist()
    [True, False, False, False, False, True]
    """
    given, rng = check_labels(y, share), np.random.default_rng(random_state)
    Z = standardised(check_points(X, given.n))
    if not given.n_attacked:
        return given.flipped(np.empty(0, np.intp), np.empty(0, np.intp))
    chosen = most_confident(Z, given, rng)[: given.n_attacked]
    return given.flipped(chosen, given.any_other(chosen, rng))


def around(Z: Floats, centre: int) -> Ints:
    """All points, the nearest to one of them first, which is that one."""
    squared = ((Z - Z[centre]) ** 2).sum(axis=1)  # (n,)
    squared[centre] = -1.0  # before others at the same place
    return np.argsort(squared, kind="stable")


def by_class(codes: Ints, n_classes: int, n_flips: int, rng: np.random.Generator) -> Ints:
    """Indices to flip: the rate of class c is proportional to 1 + c / (n_classes - 1)."""
    sizes = np.bincount(codes, minlength=n_classes)
    rate = 1.0 + np.arange(n_classes) / max(n_classes - 1, 1)
    wanted = n_flips * rate * sizes / (rate @ sizes)
    counts = np.minimum(np.floor(wanted).astype(np.intp), sizes)
    while counts.sum() < n_flips:  # the largest remainder among classes that have points left
        counts[np.where(counts < sizes, wanted - counts, -np.inf).argmax()] += 1
    return np.concatenate(
        [rng.choice(np.flatnonzero(codes == c), counts[c], replace=False) for c in range(n_classes)]
    )


def most_confident(Z: Floats, given: Coded, rng: np.random.Generator) -> Ints:
    """All points, those first whose own label a model that has not seen them finds the most probable."""
    from sklearn.linear_model import LogisticRegression

    probability = np.zeros(given.n)  # stays 0 where the model has met no other point of the class
    fold = np.empty(given.n, dtype=np.intp)
    fold[np.lexsort((rng.random(given.n), given.codes))] = np.arange(given.n) % _FOLDS
    for k in range(_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not test.size or np.unique(given.codes[train]).size < 2:
            continue
        model = LogisticRegression(max_iter=1000).fit(Z[train], given.codes[train])
        known = np.isin(given.codes[test], model.classes_)
        column = np.searchsorted(model.classes_, given.codes[test[known]])
        probability[test[known]] = model.predict_proba(Z[test[known]])[np.arange(column.size), column]
    return np.argsort(-probability, kind="stable")


def _clustered(
    Z: Floats, codes: Ints, n_flips: int, cluster_size: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Indices and wrong codes: neighbourhoods of ``cluster_size`` same-class points around random centres."""
    free = np.ones(codes.size, dtype=bool)
    chosen: list[Ints] = [np.empty(0, dtype=np.intp)]
    wrong: list[Ints] = [np.empty(0, dtype=np.intp)]
    left = n_flips
    while left > 0:
        centre = rng.choice(np.flatnonzero(free))
        squared = ((Z - Z[centre]) ** 2).sum(axis=1)  # (n,)
        same = np.flatnonzero(free & (codes == codes[centre]))
        cluster = same[np.argsort(squared[same], kind="stable")[: min(cluster_size, left)]]
        other = np.flatnonzero(codes != codes[centre])
        chosen.append(cluster)
        wrong.append(np.full(cluster.size, codes[other[squared[other].argmin()]]))
        free[cluster] = False
        left -= cluster.size
    return np.concatenate(chosen), np.concatenate(wrong)
