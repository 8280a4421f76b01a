"""From rows to means and errors: an execution is the mean over its folds, statistics are over executions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

Row = dict[str, Any]


def executions(rows: Iterable[Row], value: str, *by: str) -> dict[tuple[Any, ...], dict[int, float]]:
    """The mean over the folds of each repeat, by the given columns: {(key, ...): {repeat: mean}}."""
    found: dict[tuple[Any, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        number = row.get(value)
        if number is not None and number != "" and np.isfinite(number):
            found[tuple(row[column] for column in by)][row["repeat"]].append(float(number))
    return {
        key: {repeat: float(np.mean(each)) for repeat, each in runs.items()} for key, runs in found.items()
    }


def statistics(runs: dict[int, float]) -> dict[str, float]:
    """Mean, standard deviation (as the paper prints) and standard error over executions."""
    values = np.array(list(runs.values()))
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": float(values.mean()),
        "deviation": deviation,
        "error": deviation / np.sqrt(len(values)),
        "executions": len(values),
    }


def paired(ours: dict[int, float], theirs: dict[int, float]) -> dict[str, float]:
    """Mean difference over the executions that both have, and its standard error."""
    shared = sorted(set(ours) & set(theirs))
    return statistics({repeat: ours[repeat] - theirs[repeat] for repeat in shared})
