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

#: Called with (steps done, steps in all).
OnStep = Callable[[int, int], None]
MOST_ROWS = 2000  # of the accuracy: its standard error is below one percent by then
_FEW_ROWS = 400  # below this, threads wait for each other inside the interpreter
T = TypeVar("T")
KINDS = ("Euclidean", "standardised", "learned metric")
AFTER = "after correction"  # the learned metric once more, with the labels that are suggested


@dataclass(frozen=True)
class Accuracy:
    """How often one distance is right, with an interval of 95%; ``ours`` marks the learned one.

    ``against`` says what it is compared with: "given" labels, those we "trust", or the "pairs".
    """

    name: str
    mean: float
    low: float
    high: float
    ours: bool = False
    against: str = "given"


def neighbour_accuracy(
    estimator: Any,
    X: FloatArray,
    y: NDArray[Any],
    *,
    trust: FloatArray | None = None,
    corrected: NDArray[Any] | None = None,
    k: int = 4,
    repeats: int = 1,
    random_state: int = 0,
    progress: OnStep | None = None,
) -> tuple[list[Accuracy], int]:
    """Accuracy of k-NN with the Euclidean, the standardised and the learned distance; the number of splits.

    Two-fold cross-validation, repeated; the metric is learned anew on each training half, so the test half is
    never seen.  A class with a single member counts as an error where it is tested.  Of many rows
    ``MOST_ROWS`` are drawn.

    Each distance is compared with the labels as they are given, wrong ones included, and with ``trust``, (n,)
    the probability that each label is right, also with the labels we trust: each row counts as far as it is
    trusted. With ``corrected`` labels the metric is learned, and the neighbours vote, once more with those.
    """
    from sklearn.base import clone

    rows = some_rows(len(X), MOST_ROWS, random_state)
    X, y = X[rows], y[rows]
    mended = y if corrected is None else corrected[rows]
    both = np.unique(np.concatenate([y, mended]), return_inverse=True)[1]
    codes = both[: len(y)]
    names = [*KINDS, AFTER] if (mended != y).any() else [*KINDS]

    def hits(train: NDArray[Any], test: NDArray[Any], after: bool) -> list[NDArray[np.bool_]]:
        """Whether each kind of distance is right about each row of a test half."""
        labels, votes = (mended, both[len(y) :]) if after else (y, codes)
        learned = clone(estimator).fit(X[train], labels[train])
        centred = X - X[train].mean(axis=0)
        mapped = centred @ learned.components_.T
        spaces = [mapped] if after else [centred, centred / standard_deviation(X[train]), mapped]
        found = []
        for Z in spaces:
            near = nearest(Z[train], Z[test], min(k, len(train)))
            found.append(majority(votes[train], near) == codes[test])
        return found

    halves = [
        (train, test, after)
        for train, test in _halves(y, repeats, random_state)
        for after in (False, True)[: len(names) - len(KINDS) + 1]
        if len(np.unique((mended if after else y)[train])) > 1
    ]
    right = np.zeros((len(names), len(y)))  # how often each row was
    tested = np.zeros((len(names), len(y)))
    for (_, test, after), found in zip(halves, _at_once(hits, halves, progress)):
        for kind, each in enumerate(found, start=len(KINDS) * after):
            right[kind, test] += each
            tested[kind, test] += 1
    if not tested.any():
        return [], 0
    weights = {"given": np.ones(len(y))} | ({} if trust is None else {"trust": trust[rows]})
    rows_of_table = []
    for against, weight in weights.items():
        for kind, name in enumerate(names):
            seen = tested[kind] > 0
            if seen.any():
                mean, low, high = interval(right[kind, seen] / tested[kind, seen], weight[seen])
                rows_of_table.append(Accuracy(name, mean, low, high, kind >= len(KINDS) - 1, against))
    return rows_of_table, sum(not after for _, _, after in halves)


def interval(right: FloatArray, weight: FloatArray) -> tuple[float, float, float]:
    """The weighted share of right answers and its interval of 95% (Wilson 1927).

    >>> [round(v, 3) for v in interval(np.array([1.0] * 9 + [0.0]), np.ones(10))]
    [0.9, 0.596, 0.982]
    """
    total = max(float(weight.sum()), 1e-12)
    n = total**2 / max(float((weight**2).sum()), 1e-12)  # as many equal rows tell as much
    mean, z = float(weight @ right) / total, 1.959964
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * float(np.sqrt(mean * (1 - mean) / n + z**2 / (4 * n**2)))
    return mean, max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))


def some_rows(n: int, most: int, random_state: int) -> NDArray[np.int64]:
    """All rows, or a sample in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))


def pair_auc(
    estimator: Any,
    X: FloatArray,
    index: NDArray[Any],
    labels: NDArray[Any],
    *,
    repeats: int = 1,
    random_state: int = 0,
    progress: OnStep | None = None,
) -> tuple[list[Accuracy], int]:
    """ROC AUC of held-out labels by the Euclidean, the standardised and the learned distance."""
    from sklearn.base import clone
    from sklearn.metrics import roc_auc_score

    V = X[index[:, 0]] - X[index[:, 1]]  # (m, d)
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)

    def areas(train: NDArray[Any], test: NDArray[Any]) -> list[float]:
        learned = clone(estimator).fit(X[index[train]], labels[train])
        apart = (np.linalg.norm(W[test], axis=1) for W in (V, V / scale, V @ learned.components_.T))
        return [float(roc_auc_score(labels[test], -far)) for far in apart]

    halves: list[tuple[Any, ...]] = [
        (train, test)
        for train, test in _halves(labels, repeats, random_state)
        if min(len(np.unique(labels[train])), len(np.unique(labels[test]))) > 1
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
    work: Callable[..., T],
    halves: list[tuple[Any, ...]],
    progress: OnStep | None,
) -> list[T]:
    """What ``work`` finds on each split, in their order; several at a time unless they are small."""
    tell = progress or (lambda done, total: None)
    done, lock = count(1), Lock()
    tell(0, len(halves))

    def counted(each: tuple[Any, ...]) -> T:
        found = work(*each)
        with lock:
            tell(next(done), len(halves))
        return found

    if not halves:
        return []
    if len(halves[0][0]) + len(halves[0][1]) >= _FEW_ROWS:
        return share_out(counted, halves)
    with single_threaded():
        return [counted(each) for each in halves]


def _means(values: dict[str, list[float]]) -> tuple[list[Accuracy], int]:
    splits = len(values["learned metric"])
    if splits == 0:
        return [], 0
    found = []
    for name, v in values.items():
        mean, error = float(np.mean(v)), 1.96 * float(np.std(v) / np.sqrt(max(1, splits - 1)))
        ends = max(0.0, mean - error), min(1.0, mean + error)
        found.append(Accuracy(name, mean, *ends, name == "learned metric", "pairs"))
    return found, splits
