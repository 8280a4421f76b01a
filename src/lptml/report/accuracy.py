"""Accuracy before and after, on halves of the data that the metric has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lptml._threads import share_out, single_threaded
from lptml.constraints.scaling import standard_deviation
from lptml.points.nearest import majority, nearest
from lptml.report.views import FloatArray
from lptml.select.cross_validation import deal

Progress = Callable[[int, int], None]
MOST_ROWS = 4000  # of the accuracy: its standard error is half a percent by then
_FEW_ROWS = 400  # below this, threads wait for each other inside the interpreter
T = TypeVar("T")
KINDS = ("Euclidean", "standardised", "learned metric")


@dataclass(frozen=True)
class Accuracy:
    """Mean of one distance and its standard error; ``ours`` marks the learned one."""

    name: str
    mean: float
    error: float
    ours: bool = False


def neighbour_accuracy(
    estimator: Any,
    X: FloatArray,
    y: NDArray[Any],
    *,
    k: int = 4,
    repeats: int = 1,
    random_state: int = 0,
    progress: Progress | None = None,
) -> tuple[list[Accuracy], int]:
    """Accuracy of k-NN with the Euclidean, the standardised and the learned distance; the number of splits.

    Two-fold cross-validation, repeated; the metric is learned anew on each training half, so the test half is
    never seen.  The standard error is that over the rows.  A class with a single member counts as an error
    where it is tested.  Of many rows ``MOST_ROWS`` are drawn.
    """
    from sklearn.base import clone

    rows = some_rows(len(X), MOST_ROWS, random_state)
    X, y = X[rows], y[rows]
    codes = np.unique(y, return_inverse=True)[1]

    def verdicts(train: NDArray[Any], test: NDArray[Any]) -> list[NDArray[np.bool_]]:
        """Whether each kind of distance is right about each row of a test half."""
        learned = clone(estimator).fit(X[train], y[train])
        centred = X - X[train].mean(axis=0)
        found = []
        scaled = centred / standard_deviation(X[train])
        for Z in (centred, scaled, centred @ learned.components_.T):
            near = nearest(Z[train], Z[test], min(k, len(train)))
            found.append(majority(codes[train], near) == codes[test])
        return found

    halves = [each for each in _halves(y, repeats, random_state) if len(np.unique(y[each[0]])) > 1]
    right = np.zeros((len(KINDS), len(y)))  # how often each row was
    tested = np.zeros(len(y))
    for test, found in zip((test for _, test in halves), _at_once(verdicts, halves, progress)):
        right[:, test] += found
        tested[test] += 1
    splits = len(halves)
    if splits == 0:
        return [], 0
    shares = right[:, tested > 0] / tested[tested > 0]  # (kinds, rows)
    errors = shares.std(axis=1) / np.sqrt(shares.shape[1])
    rows_of_table = zip(KINDS, shares.mean(axis=1).tolist(), errors.tolist())
    return [Accuracy(name, mean, error, name == KINDS[-1]) for name, mean, error in rows_of_table], splits


def some_rows(n: int, most: int, random_state: int) -> NDArray[np.int64]:
    """All rows, or a sample in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))


def verdict_auc(
    estimator: Any,
    X: FloatArray,
    index: NDArray[Any],
    verdicts: NDArray[Any],
    *,
    repeats: int = 1,
    random_state: int = 0,
    progress: Progress | None = None,
) -> tuple[list[Accuracy], int]:
    """ROC AUC of held-out verdicts by the Euclidean, the standardised and the learned distance."""
    from sklearn.base import clone
    from sklearn.metrics import roc_auc_score

    V = X[index[:, 0]] - X[index[:, 1]]  # (m, d)
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)

    def areas(train: NDArray[Any], test: NDArray[Any]) -> list[float]:
        learned = clone(estimator).fit(X[index[train]], verdicts[train])
        apart = (np.linalg.norm(W[test], axis=1) for W in (V, V / scale, V @ learned.components_.T))
        return [float(roc_auc_score(verdicts[test], -far)) for far in apart]

    halves = [
        (train, test)
        for train, test in _halves(verdicts, repeats, random_state)
        if min(len(np.unique(verdicts[train])), len(np.unique(verdicts[test]))) > 1
    ]
    found = _at_once(areas, halves, progress)
    return _means({name: [each[k] for each in found] for k, name in enumerate(KINDS)})


def _halves(y: NDArray[Any], repeats: int, random_state: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Halves of the rows and of every class, each once for training and once for testing."""
    rng = np.random.default_rng(random_state)
    codes = np.unique(y, return_inverse=True)[1]
    for _ in range(repeats):
        half = deal(codes, 2, rng)
        one, other = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
        yield one, other
        yield other, one


def _at_once(
    work: Callable[[NDArray[Any], NDArray[Any]], T],
    halves: list[tuple[NDArray[Any], NDArray[Any]]],
    progress: Progress | None,
) -> list[T]:
    """What ``work`` finds on each split, in their order; several at a time unless they are small."""
    tell = progress or (lambda done, total: None)
    done, lock = count(1), Lock()
    tell(0, len(halves))

    def counted(each: tuple[NDArray[Any], NDArray[Any]]) -> T:
        found = work(*each)
        with lock:
            tell(next(done), len(halves))
        return found

    if not halves:
        return []
    if sum(map(len, halves[0])) >= _FEW_ROWS:
        return share_out(counted, halves)
    with single_threaded():
        return [counted(each) for each in halves]


def _means(values: dict[str, list[float]]) -> tuple[list[Accuracy], int]:
    splits = len(values["learned metric"])
    if splits == 0:
        return [], 0

    def error(v: list[float]) -> float:
        return float(np.std(v) / np.sqrt(max(1, splits - 1)))

    rows = [
        Accuracy(name, float(np.mean(v)), error(v), name == "learned metric") for name, v in values.items()
    ]
    return rows, splits
