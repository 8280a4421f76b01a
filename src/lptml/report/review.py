"""What the page needs so that a person can decide about each suspect without opening the file.

For every row that is worth a look: its values beside the typical ones of the class it is in and the class it
looks like, its nearest trusted neighbours, and the features that decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml.noise.suspects import explain
from lptml.report.corrections import Correction, Decision
from lptml.report.views import FloatArray

MOST_OPEN = 500  # rows that open to their reasons, the most suspicious first
MOST_FEATURES = 40  # features whose values are shown: those that decide somewhere, then the heaviest
VERDICTS = ("likely wrong", "ambiguous", "fine", "cannot judge")


@dataclass(frozen=True)
class Origin:
    """Where the rows came from, for the corrections.

    Attributes
    ----------
    column : str
        The column of labels.
    digest : str
        The fingerprint of the file; empty for data from memory.
    rows : sequence of int or None
        The number of each row in the file, from 1; by default 1, 2, 3, ...
    decisions : list of Correction
        Decisions that were made already.
    given : dict
        The labels of the file, of those rows whose label a decision changed; by position.
    command : str
        The command that applies the corrections.
    """

    column: str = "label"
    digest: str = ""
    rows: Sequence[int] | None = None
    decisions: list[Correction] = field(default_factory=list)
    given: dict[int, str] = field(default_factory=dict)
    command: str = ""


def review_data(
    X: FloatArray,
    judged: Any,
    classes: NDArray[Any],
    feature_names: list[str],
    heaviest: Sequence[int],
    origin: Origin,
) -> dict[str, Any]:
    """The data of the review; ``judged`` is what :func:`lptml.noise.suspects.judge` returns.

    ``heaviest`` are the features in the order of their weight in the metric.
    """
    doubt = judged.suspicion
    verdicts = [VERDICTS.index(str(each)) for each in judged.verdicts]
    order = np.argsort(-doubt, kind="stable")
    worth = [int(i) for i in order if verdicts[i] != 2 or doubt[i] > 0.1][:MOST_OPEN]
    reasons = explain(X, judged, np.array(worth, dtype=np.int64))
    deciding = [j for each in reasons for j in each.features]
    by_use = sorted(set(deciding), key=lambda j: (-deciding.count(j), j))
    shown = list(dict.fromkeys([*by_use, *map(int, heaviest)]))[:MOST_FEATURES]
    place = {j: k for k, j in enumerate(shown)}
    needed = sorted({*worth, *(i for each in reasons for i in each.neighbors)})
    numbers = None if origin.rows is None else [int(row) for row in origin.rows]
    at = {row: i for i, row in enumerate(numbers or range(1, len(X) + 1))}
    return {
        "column": origin.column,
        "digest": origin.digest,
        "command": origin.command,
        "given": {str(i): label for i, label in origin.given.items()},
        "rows": numbers,
        "suggested": judged.suggested.tolist(),
        "verdict": verdicts,
        "verdicts": list(VERDICTS),
        "outlying": [_short(v) for v in judged.outlyingness],
        "features": [feature_names[j] for j in shown],
        "typical": _typical(X[:, shown], judged.codes, doubt, len(classes)),
        "open": {
            str(i): {
                "near": list(each.neighbors),
                "by": [place[j] for j in each.features if j in place],
            }
            for i, each in zip(worth, reasons)
        },
        "values": {str(i): [_short(v) for v in X[i, shown]] for i in needed},
        "decisions": [
            [at[each.row], each.decision.value, each.label]
            for each in origin.decisions
            if each.decision is not Decision.UNDO and each.row in at
        ],
    }


def _typical(X: FloatArray, codes: NDArray[Any], doubt: FloatArray, K: int) -> list[list[list[float]]]:
    """For each class the quartiles of each feature over its trusted members, (K, 3, features)."""
    found = []
    for k in range(K):
        members = X[(codes == k) & (doubt < 0.5)]
        rows = members if len(members) else X[codes == k]
        found.append([[_short(v) for v in q] for q in np.quantile(rows, [0.25, 0.5, 0.75], axis=0)])
    return found


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def confusion(judged: Any, K: int) -> list[list[int]]:
    """How many labels that look wrong are given as one class and look like another, (K, K)."""
    wrong = np.array([str(each) == VERDICTS[0] for each in judged.verdicts], dtype=bool)
    table = np.zeros((K, K), dtype=np.int64)
    np.add.at(table, (judged.codes[wrong], judged.suggested[wrong]), 1)
    return table.tolist()
