"""Where to cut the distance: a pair is called similar when its distance is at most the threshold.

Every cut between two neighbouring distinct distances (and the two that accept nothing and everything) is
scored in one pass over the sorted distances: ties are never torn apart, the optimum is exact. The threshold
lies half-way between the two distances, so that rounding of a distance cannot change a prediction.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml.estimators._inputs import FloatArray

#: strategy -> the option that it needs, if any
STRATEGIES: dict[str, str | None] = {
    "accuracy": None,
    "f_beta": "beta",
    "max_tpr": "min_rate",
    "max_tnr": "min_rate",
}


def check_calibration(strategy: str = "accuracy", min_rate: float | None = None, beta: float = 1.0) -> None:
    """Refuse calibration options that are unknown, out of their domain, or of no use to the strategy.

    Examples
    --------
    >>> check_calibration("max_tpr", min_rate=0.9)
    >>> check_calibration("accuracy", min_rate=0.9)
    Traceback (most recent call last):
        ...
    ValueError: min_rate has no effect with strategy 'accuracy': it belongs to 'max_tpr' and 'max_tnr'
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(map(repr, STRATEGIES))}, got {strategy!r}")
    needs = STRATEGIES[strategy]
    if needs == "min_rate":
        if min_rate is None or not _is_real(min_rate) or not 0 <= min_rate <= 1:
            raise ValueError(
                f"min_rate must be a number in [0, 1] with strategy {strategy!r}, got {min_rate!r}"
            )
    elif min_rate is not None:
        raise ValueError(
            f"min_rate has no effect with strategy {strategy!r}: it belongs to 'max_tpr' and 'max_tnr'"
        )
    if not _is_real(beta):
        raise ValueError(f"beta must be a finite real number, got {beta!r}")
    if needs != "beta" and beta != 1:
        raise ValueError(f"beta has no effect with strategy {strategy!r}: it belongs to 'f_beta'")


def _is_real(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def best_threshold(
    distances: FloatArray,
    y: NDArray[np.int8],
    *,
    strategy: str = "accuracy",
    min_rate: float | None = None,
    beta: float = 1.0,
    weight: FloatArray | None = None,
) -> float:
    """Return the threshold on the distance that is best for the strategy on the given pairs.

    Parameters
    ----------
    distances : array (n,)
        Distances of the pairs.
    y : array (n,)
        +1 for similar, -1 for dissimilar pairs.
    strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
        What to maximise: accuracy; the F-beta score of the similar pairs; the true positive rate with a true
        negative rate of at least ``min_rate``; or the true negative rate with a true positive rate of at
        least ``min_rate``.
    min_rate : float, optional
        See ``strategy``.
    beta : float, default 1
        See ``strategy``.
    weight : array (n,), optional
        Weights of the pairs.

    Examples
    --------
    >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, -1, -1], dtype=np.int8))
    2.5
    """
    order = np.argsort(distances, kind="stable")
    sorted_distances = distances[order]
    w = np.ones(len(order)) if weight is None else weight[order]
    similar = np.concatenate(([0.0], np.cumsum(w * (y[order] == 1))))  # weight of similar pairs accepted
    dissimilar = np.concatenate(([0.0], np.cumsum(w * (y[order] == -1))))
    # a cut is possible before the first distance, between distinct distances, and after the last
    cuts = np.concatenate(([0], 1 + np.flatnonzero(np.diff(sorted_distances)), [len(order)]))
    tp, fp = similar[cuts], dissimilar[cuts]
    positives, negatives = similar[-1], dissimilar[-1]
    tpr = tp / positives if positives > 0 else np.ones_like(tp)
    tnr = 1 - fp / negatives if negatives > 0 else np.ones_like(fp)
    if strategy == "accuracy":
        merit = tp + negatives - fp
    elif strategy == "f_beta":
        # F = (1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP)
        denominator = tp + fp + beta**2 * positives
        merit = np.divide((1 + beta**2) * tp, denominator, out=np.zeros_like(tp), where=denominator > 0)
    else:
        assert min_rate is not None
        merit, held = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        merit = np.where(held >= min_rate - 1e-12, merit, -1.0)
    return _between(sorted_distances, int(cuts[np.argmax(merit)]))


def _between(distances: FloatArray, cut: int) -> float:
    """Return a number above the first ``cut`` of the sorted distances and below the rest."""
    if cut == 0:
        return float(distances[0] / 2) if distances[0] > 0 else -1.0
    if cut == len(distances):
        return float(distances[-1] * (1 + 1e-6))
    return float(distances[cut - 1] + (distances[cut] - distances[cut - 1]) / 2)
