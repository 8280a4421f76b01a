"""Cross-validation over a visible grid, and the average of what it cannot tell apart.

The points (or pairs) are dealt into folds, several times over. Each setting of the grid is learned without a
fold and scored on it. The best setting is the one of largest mean score. A few hundred points cannot tell
settings apart that differ by a percent, and taking the one that happened to score best costs about that, so
every setting within one standard error of the best (of the paired difference, point by point) counts as good,
after the one-standard-error rule of Breiman et al. (1984), and the result is the plain average of their
metrics, each brought to the same median squared distance first. Nothing else enters: no odds, no weights.

References
----------
Breiman, L., Friedman, J., Olshen, R. and Stone, C. (1984). Classification and Regression Trees, 3.4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml._limits import OutOfTime, look
from lptml.constraints import Floats, Ints, psd_factor
from lptml.points.nearest import nearest

Setting = dict[str, Any]


def grid_of(**values: Sequence[Any]) -> list[Setting]:
    """All combinations, the last name varying fastest.

    Examples
    --------
    >>> grid_of(prior=["within"], shrinkage=[0.0, 1.0])
    [{'prior': 'within', 'shrinkage': 0.0}, {'prior': 'within', 'shrinkage': 1.0}]
    """
    return [dict(zip(values, combination)) for combination in product(*values.values())]


def deal(codes: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """The fold of every point; each class is dealt out evenly.

    Examples
    --------
    >>> fold = deal(np.array([0, 1, 0, 1]), 2, np.random.default_rng(0))
    >>> [sorted(np.array([0, 1, 0, 1])[fold == f].tolist()) for f in range(2)]
    [[0, 1], [0, 1]]
    """
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = np.arange(len(codes)) % folds
    return fold


def neighbour_share(
    L: Floats, X: Floats, codes: Ints, weight: Floats, train: Ints, test: Ints, k: int
) -> Floats:
    """The share of the k nearest training points that have a test point's own label, for each of them.

    It is the vote that a k-nearest-neighbours classifier gives the label, and varies less than whether the
    label wins.
    """
    Z = (X - X.mean(axis=0)) @ L.T
    near = train[nearest(Z[train], Z[test], min(k, len(train)))]  # (n, k)
    votes = weight[near]
    return np.asarray((votes * (codes[near] == codes[test, None])).sum(axis=1) / votes.sum(axis=1))


@dataclass(frozen=True, eq=False)
class Scores:
    """The outcome of a cross-validation."""

    settings: list[Setting]
    score: Floats  # (settings, points) mean over the deals
    weight: Floats  # (points,)
    deals: Floats  # (settings, deals x folds) mean score of every fold

    @property
    def mean(self) -> Floats:
        """(settings,) mean score; NaN where nothing was scored."""
        if not self.weight.any():
            return np.full(len(self.settings), np.nan)
        return np.asarray(self.score @ self.weight / self.weight.sum())

    @property
    def best(self) -> int:
        """The number of the best setting, of equals the first."""
        return int(self.mean.argmax())

    @property
    def error(self) -> Floats:
        """(settings,) standard error of the difference from the best."""
        if not self.weight.any():
            return np.full(len(self.settings), np.nan)
        behind = self.score[self.best] - self.score
        w = self.weight / self.weight.sum()
        centred = behind - (behind @ w)[:, None]
        return np.asarray(np.sqrt((centred**2) @ w**2))

    @property
    def good(self) -> NDArray[np.bool_]:
        """(settings,) which of them are within one standard error of the best."""
        near = np.asarray(self.mean[self.best] - self.mean <= self.error)
        near[self.best] = True
        return near

    def as_results(self) -> dict[str, Any]:
        """The table that ``cv_results_`` holds, with the names of scikit-learn's searches."""
        mean = self.mean
        order = np.argsort(-mean, kind="stable")
        rank = np.empty(len(mean), dtype=np.int64)
        rank[order] = 1 + np.searchsorted(-mean[order], -mean[order])
        results: dict[str, Any] = {"params": list(self.settings)}
        for name in self.settings[0]:
            column = np.empty(len(mean), dtype=object)
            column[:] = [setting[name] for setting in self.settings]
            results[f"param_{name}"] = column
        return results | {
            "mean_test_score": mean,
            "std_test_score": self.deals.std(axis=1) if self.deals.size else mean,
            "rank_test_score": rank,
            "standard_error": self.error,
            "averaged": self.good,
        }


def score_settings(
    settings: list[Setting],
    codes: Ints,
    weight: Floats,
    score_fold: Callable[[Ints, Ints], Iterator[Floats]],
    *,
    folds: int,
    repeats: int,
    rng: np.random.Generator,
    watch: Callable[[int], None] | None = None,
) -> Scores:
    """Deal the points and score every setting on each fold.

    Parameters
    ----------
    settings : list of dict
    codes : array of shape (n,)
        What is dealt out evenly: classes of points, kinds of pairs.
    weight : array of shape (n,)
        Weights of the points in the scores.
    score_fold : callable
        (training rows, test rows) -> for each setting in turn, the scores of the test rows.
    folds, repeats : int
        Folds of each deal, and how often to deal.
    rng : numpy Generator
    watch : callable, optional
        Called as ``watch(folds done)``.

    Returns
    -------
    Scores
        Of the folds that were done when the time was over (``lptml._limits``); of none, all are NaN.
    """
    total = np.zeros((len(settings), len(codes)))
    means = []
    times = np.zeros(len(codes))  # that each point was scored
    with suppress(OutOfTime):
        for repeat in range(repeats):
            fold = deal(codes, folds, rng)
            for f in range(folds):
                test, train = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
                if len(test):
                    look()
                    rows = np.array(list(score_fold(train, test)))
                    total[:, test] += rows
                    times[test] += 1
                    means.append(rows @ weight[test] / weight[test].sum())
                if watch is not None:
                    watch(repeat * folds + f + 1)
    return Scores(
        settings,
        total / np.maximum(times, 1),
        np.where(times > 0, weight, 0.0),
        np.array(means).reshape(-1, len(settings)).T,
    )


def mean_metric(V: Floats, metrics: Sequence[Floats]) -> Floats:
    """The plain average of metrics (d, d), each brought to a median squared length of one over vectors V.

    Examples
    --------
    >>> V = np.random.default_rng(0).normal(size=(50, 2))
    >>> A = mean_metric(V, [np.eye(2), 7.0 * np.eye(2)])
    >>> float(A[0, 1]), bool(np.isclose(A[0, 0], A[1, 1]))
    (0.0, True)
    """
    if len(metrics) == 1:
        return metrics[0]
    total = np.zeros_like(metrics[0])
    for A in metrics:
        squares = np.square(V @ psd_factor(A).T).sum(axis=1)
        total += A / (float(np.median(squares)) or float(squares.mean()) or 1.0)
    return (total + total.T) / (2 * len(metrics))
