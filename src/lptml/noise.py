"""Wrong labels on purpose: the injectors behind every experiment on label noise.

Each injector changes exactly ``round(share * n)`` labels, so that a share is a share and not an expectation,
and says which ones. Three kinds:

``"uniform"``
    Points are drawn uniformly; each gets one of the other classes, uniformly.
``"class"``
    The rate depends on the class (the last class in sorted order is hit twice as often as the first, the
    rates rising linearly between them) and so does the wrong label: always the next class. A systematic
    annotator.
``"adversarial"``
    Whole neighbourhoods: a random point and its nearest points of the same class are all given the label of
    the closest other class. Neighbours confirm each other's wrong label, which is what defeats a vote.

:func:`flip_pairs` does the same to the verdicts of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Flipped", "NoiseKind", "flip_labels", "flip_pairs"]


class NoiseKind(StrEnum):
    """How wrong labels are placed; see the module's docstring."""

    UNIFORM = "uniform"
    CLASS = "class"
    ADVERSARIAL = "adversarial"


@dataclass(frozen=True, eq=False)
class Flipped:
    """Labels after an injection.

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


def flip_labels(
    y: ArrayLike,
    share: float,
    *,
    kind: str = "uniform",
    X: ArrayLike | None = None,
    cluster_size: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> Flipped:
    """Give a share of the points a wrong label.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels: numbers or strings, at least two classes.
    share : float in [0, 1]
        Share of the labels to make wrong; exactly ``round(share * n)`` are.
    kind : {"uniform", "class", "adversarial"}
        How they are placed, see the module's docstring.
    X : array-like of shape (n, d), optional
        The points; required by ``"adversarial"``, which measures nearness on standardised features.
    cluster_size : int
        Points in each flipped neighbourhood (``"adversarial"``).
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
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"y must be a non-empty 1-D array of labels, got shape {labels.shape}")
    how, n_flips = _kind(kind), _n_flips(share, labels.size)
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size < 2 and n_flips:
        raise ValueError("y holds one class only: there is no wrong label to give")
    rng = np.random.default_rng(random_state)
    if how is NoiseKind.UNIFORM:
        chosen = rng.choice(labels.size, n_flips, replace=False)
        shift = rng.integers(1, max(classes.size, 2), size=n_flips)
        wrong = (codes[chosen] + shift) % classes.size
    elif how is NoiseKind.CLASS:
        chosen = _class_dependent(codes, classes.size, n_flips, rng)
        wrong = (codes[chosen] + 1) % classes.size
    else:
        if X is None:
            raise ValueError("adversarial noise needs the points X, to find neighbourhoods")
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[0] != labels.size:
            raise ValueError(f"X must have shape ({labels.size}, d), got {points.shape}")
        if cluster_size < 1:
            raise ValueError(f"cluster_size must be at least 1, got {cluster_size}")
        chosen, wrong = _clustered(points, codes, n_flips, cluster_size, rng)
    noisy = codes.copy()
    noisy[chosen] = wrong
    return Flipped(classes[noisy], noisy != codes)


def flip_pairs(
    y: ArrayLike,
    share: float,
    *,
    kind: str = "uniform",
    pairs: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Flipped:
    """Reverse the verdict of a share of the pairs.

    Parameters
    ----------
    y : array-like of shape (n,)
        Verdicts: +1 similar, -1 dissimilar.
    share : float in [0, 1]
        Share of the verdicts to reverse; exactly ``round(share * n)`` are.
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
        The noisy verdicts and the mask of the wrong ones.

    Examples
    --------
    >>> from lptml.noise import flip_pairs
    >>> noisy = flip_pairs([1, 1, -1, -1], 0.5, random_state=0)
    >>> noisy.n_flipped
    2
    """
    verdicts = np.asarray(y)
    if verdicts.ndim != 1 or verdicts.size == 0 or not np.isin(verdicts, (-1, 1)).all():
        raise ValueError("y must be a non-empty 1-D array of -1 (dissimilar) and +1 (similar)")
    how, n_flips = _kind(kind), _n_flips(share, verdicts.size)
    rng = np.random.default_rng(random_state)
    if how is NoiseKind.UNIFORM:
        chosen = rng.choice(verdicts.size, n_flips, replace=False)
    elif how is NoiseKind.CLASS:
        chosen = _class_dependent((verdicts == 1).astype(np.intp), 2, n_flips, rng)
    else:
        if pairs is None:
            raise ValueError("adversarial noise needs the pairs, to find the most misleading ones")
        points = np.asarray(pairs, dtype=np.float64)
        if points.ndim != 3 or points.shape[:2] != (verdicts.size, 2):
            raise ValueError(f"pairs must have shape ({verdicts.size}, 2, d), got {points.shape}")
        chosen = _misleading(points[:, 0] - points[:, 1], verdicts, n_flips, rng)
    flipped = np.zeros(verdicts.size, dtype=bool)
    flipped[chosen] = True
    return Flipped(np.where(flipped, -verdicts, verdicts), flipped)


def _kind(kind: str) -> NoiseKind:
    try:
        return NoiseKind(kind)
    except ValueError:
        raise ValueError(f"kind must be one of {[k.value for k in NoiseKind]}, got {kind!r}") from None


def _n_flips(share: float, n: int) -> int:
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must lie in [0, 1], got {share!r}")
    return round(share * n)


def _class_dependent(
    codes: NDArray[np.intp], n_classes: int, n_flips: int, rng: np.random.Generator
) -> NDArray[np.intp]:
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


def _clustered(
    X: NDArray[np.float64],
    codes: NDArray[np.intp],
    n_flips: int,
    cluster_size: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices and wrong codes: neighbourhoods of ``cluster_size`` same-class points around random centres."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    free = np.ones(codes.size, dtype=bool)
    chosen: list[NDArray[np.intp]] = []
    wrong: list[NDArray[np.intp]] = []
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
    if not chosen:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    return np.concatenate(chosen), np.concatenate(wrong)


def _misleading(
    V: NDArray[np.float64], verdicts: NDArray[Any], n_flips: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Indices of the pairs that mislead most when reversed: extreme in distance for their kind."""
    rms = np.sqrt((V**2).mean(axis=0))
    length = ((V / np.where(rms > 0, rms, 1.0)) ** 2).sum(axis=1)  # (n,)
    misleading = np.empty(length.size)
    for verdict in (-1, 1):
        kind = np.flatnonzero(verdicts == verdict)
        order = np.lexsort((rng.random(kind.size), verdict * length[kind]))  # ties at random
        misleading[kind[order]] = np.arange(kind.size) / max(kind.size, 1)
    return np.argsort(misleading, kind="stable")[:n_flips]
