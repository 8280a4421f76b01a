"""The report: one self-contained HTML page about a metric, its points and the labels to distrust.

:func:`labels_report` is for labelled points, :func:`pairs_report` for labels of pairs; both return a
page whose ``save`` writes the file.  It holds its own style, script and data, asks no network for anything,
and works on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml._cells import as_text
from lptml.estimators.certified import cross_certify
from lptml.noise.suspects import judge
from lptml.report import views, words
from lptml.report.accuracy import Accuracy, OnStep, neighbour_accuracy, pair_auc
from lptml.report.page import Page
from lptml.report.review import VERDICTS, Origin, confusion, review_data

__all__ = ["Origin", "Page", "labels_report", "pairs_report"]

CERTIFIED_ROWS = 1000  # drawn for the certificate: its time grows with their square
SUPPORT_ROWS = 200  # support constraints listed; there are at most d(d+1)/2 of them


def labels_report(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    judged: Any = None,
    names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    title: str = "lptml",
    repeats: int = 1,
    neighbors: int = 4,
    details: Sequence[tuple[str, str]] = (),
    noticed: Sequence[str] = (),
    origin: Origin | None = None,
    progress: OnStep | None = None,
) -> Page:
    """A report on labelled points, in which the labels that look wrong can be reviewed.

    Parameters
    ----------
    estimator : fitted estimator
        :class:`lptml.LPTML_SupervisedCV`, or any with ``components_``; what it does not tell is left out.
    X : array-like (n, d)
    y : array-like (n,)
        Labels.
    judged : Trust, optional
        What :func:`lptml.noise.suspects.judge` says about these labels; by default it is asked.
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
    noticed : sequence of str
        What else was noticed about the table: contradictions, duplicates, small classes.
    origin : Origin, optional
        Where the rows came from, so that the corrections fit the file; decisions that were made already.
    progress : callable, optional
        Called as ``progress(done, total)`` after each step: the fits of cross-validation, the certificate.

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
    >>> page = labels_report(model, X, y, repeats=0, title="Iris")
    >>> "Iris" in page.html()
    True
    """
    points = np.asarray(X, dtype=np.float64)
    given = np.asarray(y)
    if given.ndim != 1:
        raise ValueError(f"y must be one label for each point, got shape {given.shape}")
    classes, codes = np.unique([as_text(label) for label in given], return_inverse=True)
    _check(points, codes, None if judged is None else judged.suspicion, names)
    if judged is None:
        judged = judge(points, classes[codes])
    Z = points @ estimator.components_.T  # (n, k)
    doubt = judged.suspicion
    wrong = np.flatnonzero([str(each) == VERDICTS[0] for each in judged.verdicts])
    accuracy, splits = neighbour_accuracy(
        estimator,
        points,
        classes[codes],
        trust=1.0 - doubt,
        corrected=classes[np.where(np.isin(np.arange(len(codes)), wrong), judged.suggested, codes)],
        k=neighbors,
        repeats=repeats,
        progress=None if progress is None else lambda done, steps: progress(done, steps + 1),
    )
    certified = ""
    if accuracy:  # the last step of the progress
        certified = f" {cross_certify(points, codes, most=CERTIFIED_ROWS)}"
    if progress is not None:
        progress(1, 1)
    n, d, K = *points.shape, len(classes)
    L = estimator.components_
    features = views.feature_names(estimator, d, None if feature_names is None else list(feature_names))
    heaviest = np.argsort(-np.einsum("ij,ij->j", L, L) * points.var(axis=0), kind="stable")
    data = {
        "points": _scatter(points, Z, names, wrong)
        | {"label": codes.tolist(), "suspicion": _digits(doubt), "suggested": judged.suggested.tolist()},
        "table": {
            "n": n,
            "noun": "rows",
            "file": "suspects.csv",
            "point": list(range(n)),
            "suspect": _mask(n, wrong),
            "columns": [
                {"name": "#", "kind": "rank", "values": _ranks(doubt)},
                {"name": "Row", "kind": "row", "values": list(range(n))},
                {"name": "Given", "kind": "given", "values": codes.tolist(), "filter": True},
                {"name": "Looks like", "kind": "class", "values": judged.suggested.tolist()},
                {"name": "Suspicion", "kind": "suspicion", "values": _digits(doubt)},
                {"name": "Verdict", "kind": "text", "values": [str(each) for each in judged.verdicts]},
                {"name": "Decision", "kind": "decision", "values": [0] * n},
            ],
        },
        "review": review_data(points, judged, classes, features, heaviest.tolist(), origin or Origin()),
        "confusion": {"counts": confusion(judged, K), "members": np.bincount(codes, minlength=K).tolist()},
        "accuracy": _accuracy(accuracy),
        "distances": _histogram(views.label_distances(Z, codes), getattr(estimator, "bounds_", None)),
        **_metric(estimator, points, feature_names),
        "cross_validation": _cross_validation(estimator),
        "history": _history(estimator),
        "support": _support(estimator, points, codes, names),
    }
    tiles, summary = words.labels_headline(judged, accuracy)
    notes = words.for_labels(estimator, judged, neighbors, splits)
    if certified:
        notes["accuracy"] += certified
    return Page(
        meta=words.meta(title, f"{n:,} rows, {d} features, {K} classes", data, classes.tolist())
        | {"suspects_title": "Review", "accuracy_title": "Before and after", "noticed": list(noticed)},
        summary=summary,
        tiles=tiles,
        notes=words.notes(estimator, data, notes),
        details=[*details, *words.details(estimator)],
        data=data,
    )


def pairs_report(
    estimator: Any,
    X: ArrayLike,
    pairs: ArrayLike,
    labels: ArrayLike,
    *,
    suspicion: ArrayLike,
    n_suspects: int,
    names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    title: str = "lptml",
    repeats: int = 2,
    details: Sequence[tuple[str, str]] = (),
    progress: OnStep | None = None,
) -> Page:
    """A report on points with labels of pairs of them.

    Parameters
    ----------
    estimator : fitted estimator
        :class:`lptml.LPTML`, or any pairs learner with ``components_``.
    X : array-like (n, d)
        The points.
    pairs : array-like (m, 2) of int
        Positions of the two points of each pair.
    labels : array-like (m,)
        +1 similar, -1 dissimilar.
    suspicion : array-like (m,)
        Probability that each label is wrong, as ``suspicion_`` of the estimator gives it.
    n_suspects, names, feature_names, title, repeats, details, progress
        As for :func:`labels_report`; the accuracy is the ROC AUC of the labels by distance.

    Returns
    -------
    Page
    """
    points = np.asarray(X, dtype=np.float64)
    index = np.asarray(pairs, dtype=np.int64)
    says = np.asarray(labels)
    doubt = np.asarray(suspicion, dtype=np.float64)
    _check(points, None, None, names)
    if index.shape != (len(says), 2) or doubt.shape != says.shape:
        raise ValueError("pairs, labels and suspicion must have the same number of rows")
    Z = points @ estimator.components_.T
    apart = np.linalg.norm(Z[index[:, 0]] - Z[index[:, 1]], axis=1)  # (m,)
    m = len(says)
    suspects = np.sort(np.argsort(-doubt, kind="stable")[:n_suspects])
    accuracy, splits = pair_auc(estimator, points, index, says, repeats=repeats, progress=progress)
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
                {"name": "Label", "kind": "label", "values": kinds, "filter": True},
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
    tiles, summary = words.pairs_headline(accuracy, n_suspects, m)
    return Page(
        meta=words.meta(title, f"{len(points):,} rows, {points.shape[1]} features, {m:,} pairs", data, [])
        | {
            "suspects_title": "Labels to distrust",
            "accuracy_title": "Telling similar from dissimilar",
            "noticed": [],
        },
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


def _digits(suspicion: NDArray[Any]) -> list[float]:
    """Probabilities with as many digits as tell them from 0 and 1."""
    return [round(float(v), 4 if 1e-3 < v < 1 - 1e-3 else 7) for v in suspicion]


def _ranks(suspicion: NDArray[Any]) -> list[int]:
    ranks = np.empty(len(suspicion), dtype=np.int64)
    ranks[np.argsort(-suspicion, kind="stable")] = np.arange(1, len(suspicion) + 1)
    return ranks.tolist()


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
    return {"rows": [asdict(row) for row in rows]}


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
    pair_columns = ["First", "Second", "Label", "Distance"]
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
    return {"columns": ["First", "Second", "Label", "Distance"], "rows": rows, "of": len(support)}
