"""The report: one self-contained HTML page about a metric, its points and the labels to distrust.

:func:`labels_report` is for labelled points, :func:`pairs_report` for verdicts on pairs; both return a
page whose ``save`` writes the file.  It holds its own style, script and data, asks no network for anything,
and works on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.estimators.certified import cross_certify
from lptml.report import views, words
from lptml.report.accuracy import Accuracy, Progress, neighbour_accuracy, verdict_auc
from lptml.report.page import Page

__all__ = ["Page", "labels_report", "pairs_report"]

SUPPORT_ROWS = 200  # support constraints listed; there are at most d(d+1)/2 of them


def labels_report(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    suspicion: ArrayLike,
    n_suspects: int,
    likely: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    title: str = "lptml",
    repeats: int = 1,
    neighbors: int = 4,
    details: Sequence[tuple[str, str]] = (),
    progress: Progress | None = None,
) -> Page:
    """A report on labelled points.

    Parameters
    ----------
    estimator : fitted estimator
        :class:`lptml.LPTML_SupervisedCV`, or any with ``components_``; what it does not tell is left out.
    X : array-like (n, d)
    y : array-like (n,)
        Labels.
    suspicion : array-like (n,)
        Probability that each label is wrong, as :func:`lptml.suspicion` gives it.
    n_suspects : int
        How many of them are taken for wrong.
    likely : array-like (n,), optional
        The label each row looks like; by default that of its trusted neighbours under the metric.
    names : sequence of str, optional
        Names of the rows; numbers from 1 by default.
    feature_names : sequence of str, optional
    title : str
    repeats : int, default=1
        Repetitions of the two-fold cross-validation of the accuracy; each fits the estimator twice, and 0
        leaves the accuracy out.
    neighbors : int, default=4
        Votes of the k-NN rule.
    details : sequence of (str, str)
        More lines for the last section.
    progress : callable, optional
        Called as ``progress(done, total)`` before each fit of the cross-validation.

    Returns
    -------
    Page

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lptml import LPTML_Supervised
    >>> from lptml.report import labels_report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LPTML_Supervised(max_trials=5, random_state=0).fit(X, y)
    >>> page = labels_report(model, X, y, suspicion=[0.1] * 150, n_suspects=0, repeats=0, title="Iris")
    >>> "Iris" in page.html()
    True
    """
    points = np.asarray(X, dtype=np.float64)
    given = np.asarray(y)
    if given.ndim != 1:
        raise ValueError(f"y must be one label for each point, got shape {given.shape}")
    classes, codes = np.unique(given.astype(str), return_inverse=True)
    doubt = np.asarray(suspicion, dtype=np.float64)
    _check(points, codes, doubt, names)
    Z = points @ estimator.components_.T  # (n, k)
    suspects = np.sort(np.argsort(-doubt, kind="stable")[:n_suspects])
    if likely is None:
        seems = views.likely_labels(Z, codes, doubt)
    else:
        seems = np.searchsorted(classes, np.asarray(likely).astype(str))
    accuracy, splits = neighbour_accuracy(
        estimator, points, given, k=neighbors, repeats=repeats, progress=progress
    )
    n = len(points)
    table = {
        "n": n,
        "noun": "rows",
        "file": "suspects.csv",
        "point": list(range(n)),
        "suspect": _mask(n, suspects),
        "columns": [
            {"name": "Row", "kind": "row", "values": list(range(n))},
            {"name": "Label", "kind": "class", "values": codes.tolist(), "filter": True},
            {"name": "Suspicion", "kind": "suspicion", "values": _rounded(doubt)},
            {"name": "Looks like", "kind": "class", "values": seems.tolist()},
        ],
    }
    data = {
        "points": _scatter(points, Z, names, suspects)
        | {"label": codes.tolist(), "suspicion": _rounded(doubt, 3), "suggested": seems.tolist()},
        "table": table,
        "accuracy": _accuracy(accuracy),
        "distances": _histogram(views.label_distances(Z, codes), getattr(estimator, "bounds_", None)),
        **_metric(estimator, points, feature_names),
        "cross_validation": _cross_validation(estimator),
        "history": _history(estimator),
        "support": _support(estimator, points, codes, names),
    }
    tiles, summary = words.headline(estimator, accuracy, n_suspects, n, "labels", neighbors)
    if accuracy:
        summary += f" {cross_certify(points, codes)}"
    d, k = points.shape[1], len(classes)
    return Page(
        meta=words.meta(title, f"{n:,} rows, {d} features, {k} classes", data, classes.tolist())
        | {
            "suspects_title": "Labels to distrust",
            "accuracy_title": "Accuracy before and after",
        },
        summary=summary,
        tiles=tiles,
        notes=words.notes(estimator, data, words.for_labels(estimator, neighbors, splits, n, likely is None)),
        details=[*details, *words.details(estimator)],
        data=data,
    )


def pairs_report(
    estimator: Any,
    X: ArrayLike,
    pairs: ArrayLike,
    verdicts: ArrayLike,
    *,
    suspicion: ArrayLike,
    n_suspects: int,
    names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    title: str = "lptml",
    repeats: int = 2,
    details: Sequence[tuple[str, str]] = (),
    progress: Progress | None = None,
) -> Page:
    """A report on points with verdicts on pairs of them.

    Parameters
    ----------
    estimator : fitted estimator
        :class:`lptml.LPTML`, or any pairs learner with ``components_``.
    X : array-like (n, d)
        The points.
    pairs : array-like (m, 2) of int
        Positions of the two points of each pair.
    verdicts : array-like (m,)
        +1 similar, -1 dissimilar.
    suspicion : array-like (m,)
        Probability that each verdict is wrong, as ``suspicion_`` of the estimator gives it.
    n_suspects, names, feature_names, title, repeats, details, progress
        As for :func:`labels_report`; the accuracy is the ROC AUC of the verdicts by distance.

    Returns
    -------
    Page
    """
    points = np.asarray(X, dtype=np.float64)
    index = np.asarray(pairs, dtype=np.int64)
    says = np.asarray(verdicts)
    doubt = np.asarray(suspicion, dtype=np.float64)
    _check(points, None, None, names)
    if index.shape != (len(says), 2) or doubt.shape != says.shape:
        raise ValueError("pairs, verdicts and suspicion must have the same number of rows")
    Z = points @ estimator.components_.T
    apart = np.linalg.norm(Z[index[:, 0]] - Z[index[:, 1]], axis=1)  # (m,)
    m = len(says)
    suspects = np.sort(np.argsort(-doubt, kind="stable")[:n_suspects])
    accuracy, splits = verdict_auc(estimator, points, index, says, repeats=repeats, progress=progress)
    kinds = ["similar" if s > 0 else "dissimilar" for s in says]
    data = {
        "points": _scatter(points, Z, names, np.unique(index[suspects])) | {"label": None, "suspicion": None},
        "table": {
            "n": m,
            "noun": "pairs",
            "file": "suspects.csv",
            "point": index[:, 0].tolist(),
            "suspect": _mask(m, suspects),
            "columns": [
                {"name": "First", "kind": "row", "values": index[:, 0].tolist()},
                {"name": "Second", "kind": "row", "values": index[:, 1].tolist()},
                {"name": "Verdict", "kind": "text", "values": kinds, "filter": True},
                {"name": "Suspicion", "kind": "suspicion", "values": _rounded(doubt)},
                {"name": "Distance", "kind": "real", "values": _rounded(apart)},
            ],
        },
        "accuracy": _accuracy(accuracy),
        "distances": _histogram(
            views.PairDistances(apart[says > 0], apart[says < 0]), getattr(estimator, "bounds_", None)
        ),
        **_metric(estimator, points, feature_names),
        "cross_validation": _cross_validation(estimator),
        "history": _history(estimator),
        "support": _pair_support(estimator, index, kinds, apart, names),
    }
    tiles, summary = words.headline(estimator, accuracy, n_suspects, m, "verdicts", 0)
    return Page(
        meta=words.meta(title, f"{len(points):,} rows, {points.shape[1]} features, {m:,} pairs", data, [])
        | {"suspects_title": "Verdicts to distrust", "accuracy_title": "Telling similar from dissimilar"},
        summary=summary,
        tiles=tiles,
        notes=words.notes(estimator, data, words.for_pairs(splits)),
        details=[*details, *words.details(estimator)],
        data=data,
    )


def _check(
    points: NDArray[Any], codes: NDArray[Any] | None, doubt: NDArray[Any] | None, names: Sequence[str] | None
) -> None:
    n = len(points)
    if points.ndim != 2 or n < 2:
        raise ValueError(f"X must be a table of at least two points, got shape {points.shape}")
    for name, value in (("y", codes), ("suspicion", doubt), ("names", names)):
        if value is not None and len(value) != n:
            raise ValueError(f"{name} has {len(value)} entries where X has {n} rows")


def _mask(n: int, chosen: NDArray[Any]) -> list[int]:
    mask = np.zeros(n, dtype=np.int64)
    mask[chosen] = 1
    return mask.tolist()


def _rounded(values: NDArray[Any], digits: int = 4) -> list[float]:
    return [float(v) for v in np.round(values, digits)]


def _scatter(
    points: NDArray[Any], Z: NDArray[Any], names: Sequence[str] | None, suspects: NDArray[Any]
) -> dict[str, Any]:
    before = views.plane(points)
    after = views.turned(views.plane(Z), before)
    return {
        "n": len(points),
        "names": None if names is None else [str(name) for name in names],
        "before": views.quantised(before),
        "after": views.quantised(after),
        "line": [views.first_axis_share(before), views.first_axis_share(after)],
        "suspects": suspects.tolist(),
        "suggested": None,
    }


def _accuracy(rows: list[Accuracy]) -> dict[str, Any] | None:
    if not rows:
        return None
    return {"rows": [{"name": r.name, "mean": r.mean, "error": r.error, "ours": r.ours} for r in rows]}


def _histogram(distances: views.PairDistances, bounds: tuple[float, float] | None) -> dict[str, Any]:
    edges, similar, dissimilar = distances.histogram()
    u, l = (None, None) if bounds is None else (float(bounds[0]), float(bounds[1]))
    return {
        "edges": [float(f"{e:.6g}") for e in edges],
        "similar": _rounded(similar, 6),
        "dissimilar": _rounded(dissimilar, 6),
        "u": u,
        "l": l,
    }


def _metric(estimator: Any, points: NDArray[Any], feature_names: Sequence[str] | None) -> dict[str, Any]:
    L = estimator.components_
    given = None if feature_names is None else list(feature_names)
    weights = views.feature_weights(L, points, views.feature_names(estimator, L.shape[1], given))
    return {
        "weights": {
            "names": weights.names,
            "values": _rounded(weights.share, 5),
            "correlation": [_rounded(row, 3) for row in weights.correlation],
            "left_out": weights.left_out,
        },
    }


def _cross_validation(estimator: Any) -> dict[str, Any] | None:
    found = views.cross_validation(estimator)
    if found is None:
        return None
    return {
        "parameters": found.parameters,
        "values": found.values,
        "score": _rounded(found.score, 6),
        "error": _rounded(found.error, 6),
        "averaged": found.averaged.tolist(),
    }


def _history(estimator: Any) -> dict[str, Any] | None:
    if not getattr(estimator, "history_", ()):
        return None
    h = views.search_history(estimator)
    return {
        "seconds": _rounded(h.seconds),
        "trial": h.trial.tolist(),
        "best": _rounded(h.rate, 6),
        "end": {"seconds": round(h.end[0], 4), "trial": h.end[1]},
        "final": h.final,
        "trivial": h.trivial,
        "trivial_name": h.trivial_name,
        "lower": h.lower if h.lower > 0 else None,
    }


def _called(i: int, names: Sequence[str] | None) -> str:
    return str(i + 1) if names is None else str(names[i])


def _support(
    estimator: Any, X: NDArray[Any], codes: NDArray[Any], names: Sequence[str] | None
) -> dict[str, Any] | None:
    support = np.asarray(getattr(estimator, "support_", ()))
    if support.size == 0 or support.ndim != 2 or support.max() >= len(X):
        return None
    Z = X @ estimator.components_.T
    rows: list[list[Any]] = []
    for chosen in support[:SUPPORT_ROWS]:
        near = float(np.linalg.norm(Z[chosen[0]] - Z[chosen[1]]))
        if support.shape[1] == 2:
            kind = "similar" if codes[chosen[0]] == codes[chosen[1]] else "dissimilar"
            rows.append([*(_called(i, names) for i in chosen), kind, near])
        else:
            far = float(np.linalg.norm(Z[chosen[0]] - Z[chosen[2]]))
            rows.append([*(_called(i, names) for i in chosen), near, far])
    pair_columns = ["First", "Second", "Verdict", "Distance"]
    triplet_columns = ["Row", "Nearer", "Farther", "Distance to nearer", "to farther"]
    return {
        "columns": pair_columns if support.shape[1] == 2 else triplet_columns,
        "rows": rows,
        "of": len(support),
    }


def _pair_support(
    estimator: Any, index: NDArray[Any], kinds: list[str], apart: NDArray[Any], names: Sequence[str] | None
) -> dict[str, Any] | None:
    support = np.asarray(getattr(estimator, "support_", ()), dtype=np.int64)
    if support.size == 0 or support.ndim != 1 or support.max() >= len(index):
        return None
    rows = [
        [*(_called(int(i), names) for i in index[s]), kinds[s], float(apart[s])]
        for s in support[:SUPPORT_ROWS]
    ]
    return {"columns": ["First", "Second", "Verdict", "Distance"], "rows": rows, "of": len(support)}
