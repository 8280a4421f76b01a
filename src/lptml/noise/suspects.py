"""Suspects: which labels of points are likely wrong, and why; :mod:`lptml.noise.pair_suspects` for pairs.

What is computed stands in :mod:`lptml.noise.trust`; here the input is checked and the results are put into
words: a table with a row for each label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.constraints import Floats, Ints
from lptml.constraints.checks import as_labels, check_points, check_weight
from lptml.constraints.span import span_of_points
from lptml.noise.evidence import Advance
from lptml.noise.pair_suspects import (
    PairTrust,
    judge_pairs,
    pair_suspects,
    pair_suspicion,
)
from lptml.noise.tables import Reasons, as_table
from lptml.noise.trust import Trust, trust_labels
from lptml.points.nearest import nearest
from lptml.points.scatter import clipped, whitening, within_class

__all__ = [
    "COLUMNS",
    "PairTrust",
    "explain",
    "judge",
    "judge_pairs",
    "pair_suspects",
    "pair_suspicion",
    "suspect_columns",
    "suspects",
    "suspicion",
]

#: The columns of the table that :func:`suspects` returns.
COLUMNS = (
    "row",
    "label",
    "suggested",
    "suspicion",
    "ambiguity",
    "outlyingness",
    "verdict",
    "neighbors",
    "features",
)
_NEIGHBORS = 3
_FEATURES = 3


def suspicion(
    X: ArrayLike,
    y: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
    progress: Advance | None = None,
) -> Floats:
    """The probability that the label of each point is wrong, judged by all other points.

    Two models that have not seen the label give class probabilities: a random forest (out of bag), and a
    discriminant under the within-class metric (each point left out). Their average is calibrated together
    with the share of wrong labels by the likelihood of the given labels, so that a point between two classes
    is not taken for a wrong label; Bayes' rule gives the probability. See :mod:`lptml.noise.trust`.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Points.
    y : array-like of shape (N,)
        Labels of any type; the number -1 marks an unlabelled point, of which nothing is claimed.
    probabilities : array-like of shape (N, K), optional
        Class probabilities of a model of your own, for the classes in sorted order; for every point from a
        fit that has not seen it (as ``cross_val_predict(..., method="predict_proba")`` gives them). They then
        stand in the place of both models; they are calibrated all the same.
    trusted : array-like of bool of shape (N,), optional
        Labels that are known to be right: their suspicion is 0.
    sample_weight : array-like of shape (N,), optional
        How much each point counts when others are judged.
    random_state : int, optional
        Draws the trees of the forest; None is 0.
    progress : callable, optional
        Told ``(done, total)`` steps.

    Returns
    -------
    array of shape (N,)
        In [0, 1]; above one half the label is more likely wrong than right.

    See Also
    --------
    suspects : A table for people, with suggestions and reasons.
    judge : The same with class probabilities and the estimated share of wrong labels.
    lptml.LabelCleaner : Drop or correct what is found.

    References
    ----------
    C. Scott, G. Blanchard, G. Handy, "Classification with asymmetric label noise: consistency and maximal
    denoising", Conference on Learning Theory, 2013 (what can be told about the share of wrong labels).

    Examples
    --------
    >>> import lptml
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[3, 80, 120]] = [1, 2, 0]
    >>> sorted(lptml.suspicion(X, y).argsort()[-3:].tolist())
    [3, 80, 120]
    """
    labels = as_labels(y)
    found = judge(
        X,
        labels,
        probabilities=probabilities,
        trusted=trusted,
        sample_weight=sample_weight,
        random_state=random_state,
        progress=progress,
    )
    out = np.zeros(len(labels))
    out[_labelled(labels)] = found.suspicion
    return out


def judge(
    X: ArrayLike,
    y: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
    progress: Advance | None = None,
) -> Trust:
    """Like :func:`suspicion`, but returns all that is known about the labelled points, in their order."""
    points, labels = check_points(X, "X", ndim=2), as_labels(y)
    if labels.shape != (len(points),):
        raise ValueError(
            f"y must have one label for each point: expected {len(points)}, got shape {labels.shape}"
        )
    known = _labelled(labels)
    if not known.any():
        raise ValueError("y labels no point: every label is -1")
    try:
        classes, inverse = np.unique(labels[known], return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y mixes labels of several types: {error}") from None
    codes = inverse.astype(np.int64)
    given = None
    if sample_weight is not None:
        given = check_weight(sample_weight, len(points), "sample_weight")[known]
        idle = np.flatnonzero(np.bincount(codes, weights=given) == 0)
        if len(idle):
            label = classes[idle[0]]
            raise ValueError(
                f"sample_weight leaves no weight to the label {label!r}, of which nothing is known"
            )
    P = None if probabilities is None else _checked(probabilities, len(points), len(classes))[known]
    sure = None if trusted is None else _mask(trusted, len(points))[known]
    rng = np.random.default_rng(0 if random_state is None else random_state)
    return trust_labels(
        points[known],
        codes,
        len(classes),
        weight=given,
        probabilities=P,
        trusted=sure,
        rng=rng,
        progress=progress,
    )


def suspects(
    X: Any,
    y: ArrayLike,
    *,
    top: int | None = None,
    n_reasons: int = 500,
    feature_names: Sequence[str] | None = None,
    probabilities: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
    progress: Advance | None = None,
) -> Any:
    """A table of all labels, the most suspicious first, with what they should be and why.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Points; of a pandas DataFrame the index and the names of the columns are kept.
    y : array-like of shape (N,)
        Labels; the number -1 marks an unlabelled point, which has no row in the table.
    top : int, optional
        Just this many rows; all by default.
    n_reasons : int
        How many rows, from the top, have reasons: they take more time than the rest.
    feature_names : sequence of str, optional
        Names of the features, by default those of the DataFrame or "feature 0" and so on.
    probabilities, trusted, sample_weight, random_state, progress
        See :func:`suspicion`.

    Returns
    -------
    pandas.DataFrame, or a structured array where pandas is not installed
        Its columns:

        - ``row``: number of the point in X.
        - ``label``, ``suggested``: the given label, and the most likely other one.
        - ``suspicion``: probability that the label is wrong.
        - ``ambiguity``: probability that the class which the features suggest most is not the point's.
        - ``outlyingness``: how many times as far out as usual the point lies, whatever its label.
        - ``verdict``: "likely wrong", "ambiguous", "fine" or "cannot judge"; see
          :class:`~lptml.noise.trust.Trust`.
        - ``neighbors``: rows of the nearest points under the within-class metric whose labels are trusted.
        - ``features``: names of those that separate the point most from its label's class and towards the
          suggested one.

    See Also
    --------
    judge : The estimated share of wrong labels, its interval, and whether labels can be judged at all.

    References
    ----------
    C. Scott, G. Blanchard, G. Handy, "Classification with asymmetric label noise: consistency and maximal
    denoising", Conference on Learning Theory, 2013 (what can be told about the share of wrong labels).

    Examples
    --------
    >>> from lptml.noise.suspects import suspects
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> y[[3, 80, 120]] = [1, 2, 0]
    >>> table = suspects(X, y, top=3)
    >>> print(table[["label", "suggested", "verdict"]].sort_index())
         label  suggested       verdict
    3        1          0  likely wrong
    80       2          1  likely wrong
    120      0          2  likely wrong
    >>> y[list(table.neighbors[3])].tolist()  # row 3 has neighbours of class 0
    [0, 0, 0]
    """
    if top is not None and top < 0:
        raise ValueError(f"top must not be negative, got {top}")
    if n_reasons < 0:
        raise ValueError(f"n_reasons must not be negative, got {n_reasons}")
    points = check_points(X, "X", ndim=2)
    names = _names(X, points.shape[1], feature_names)
    found = judge(
        X,
        y,
        probabilities=probabilities,
        trusted=trusted,
        sample_weight=sample_weight,
        random_state=random_state,
        progress=progress,
    )
    columns = suspect_columns(found, points, y, names, top, n_reasons)
    return as_table(columns, X.index[columns["row"]] if hasattr(X, "iloc") else None)


def suspect_columns(
    found: Trust,
    X: Floats,
    y: ArrayLike,
    feature_names: Sequence[str],
    top: int | None = None,
    n_reasons: int = 500,
) -> dict[str, NDArray[Any]]:
    """The columns of the table of :func:`suspects`, from what :func:`judge` found for the same X and y."""
    labels = np.asarray(y)
    rows = np.flatnonzero(_labelled(labels))  # numbers in X of what was judged
    classes = np.unique(labels[rows])
    order = np.argsort(-found.suspicion, kind="stable")[:top]
    reasons = explain(X[rows], found, order[:n_reasons])
    return {
        "row": rows[order],
        "label": classes[found.codes[order]],
        "suggested": classes[found.suggested[order]],
        "suspicion": found.suspicion[order],
        "ambiguity": found.ambiguity[order],
        "outlyingness": found.outlyingness[order],
        "verdict": np.array([str(each) for each in found.verdicts[order]], dtype=object),
        "neighbors": _filled([tuple(rows[list(r.neighbors)].tolist()) for r in reasons], len(order)),
        "features": _filled([tuple(feature_names[j] for j in r.features) for r in reasons], len(order)),
    }


def explain(X: Floats, found: Trust, rows: Ints) -> list[Reasons]:
    """Why these labels are suspected: the nearest trusted points, and the features that speak against them.

    Neighbours are those under the within-class metric, of the points whose label is more likely right than
    wrong. By how much the centre of the suggested class is nearer than that of the given one, in squared
    distances under that metric, is a sum over features; those named have the largest terms, if positive.
    """
    K = found.probability.shape[1]
    if not len(rows) or len(np.unique(found.codes)) < K or K < 2:
        return [Reasons((), ()) for _ in rows]
    features = clipped(X)
    span = span_of_points(features, np.ones(features.shape[1]))
    Z = span.coordinates(features)
    weight = np.maximum(found.trust, 1e-3)
    fit = within_class(Z, found.codes, K, weight)
    whiten = whitening(fit.scatter)
    sure = np.flatnonzero(~found.suspects)
    place = np.full(len(X), -1)
    place[sure] = np.arange(len(sure))
    points = Z @ whiten.T
    k = min(_NEIGHBORS + 1, len(sure))
    near = sure[nearest(points[sure], points[rows], k)] if k else np.empty((len(rows), 0), dtype=np.int64)
    given, other = fit.centres[found.codes[rows]], fit.centres[found.suggested[rows]]  # (m, d)
    slope = span.map_outside((other - given) @ whiten.T @ whiten)  # (m, d)
    terms = slope * (2.0 * features[rows] - span.points_outside(other) - span.points_outside(given))
    largest = np.argsort(-terms, axis=1, kind="stable")[:, :_FEATURES]
    return [
        Reasons(
            tuple(int(i) for i in near[m] if i != row)[:_NEIGHBORS],
            tuple(int(j) for j in largest[m] if terms[m, j] > 0),
        )
        for m, row in enumerate(rows)
    ]


def _labelled(labels: NDArray[np.generic]) -> NDArray[np.bool_]:
    return np.asarray(labels != -1) if labels.dtype.kind in "if" else np.ones(len(labels), dtype=bool)


def _checked(probabilities: ArrayLike, N: int, K: int) -> Floats:
    """Class probabilities that are."""
    P = check_points(probabilities, "probabilities", ndim=2)
    if P.shape != (N, K):
        raise ValueError(
            f"probabilities must have a row for each point and a column for each class, ({N}, {K}); "
            f"got {P.shape}"
        )
    if P.min() < 0 or not np.allclose(P.sum(axis=1), 1.0, atol=1e-3):
        raise ValueError("probabilities must not be negative, and each row must sum to 1")
    return P


def _mask(trusted: ArrayLike, N: int) -> NDArray[np.bool_]:
    mask = np.asarray(trusted)
    if mask.shape != (N,) or mask.dtype != bool:
        raise ValueError(f"trusted must be {N} booleans, got {mask.dtype} of shape {mask.shape}")
    return mask


def _names(X: Any, d: int, feature_names: Sequence[str] | None) -> list[str]:
    if feature_names is None:
        columns = getattr(X, "columns", None)
        return [f"feature {j}" for j in range(d)] if columns is None else [str(name) for name in columns]
    if len(feature_names) != d:
        raise ValueError(
            f"feature_names must have one name for each of {d} features, got {len(feature_names)}"
        )
    return [str(name) for name in feature_names]


def _filled(values: list[tuple[Any, ...]], n: int) -> NDArray[np.object_]:
    """An array of tuples, empty ones at the end."""
    out = np.empty(n, dtype=object)
    for i in range(n):
        out[i] = values[i] if i < len(values) else ()
    return out
