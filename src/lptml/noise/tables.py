"""Results as tables for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Reasons:
    """Why a label is suspected."""

    neighbors: tuple[int, ...]
    """The nearest points, or pairs, whose labels are trusted; the nearest first."""
    features: tuple[int, ...]
    """The features that speak most for the suggested label."""


def as_table(columns: dict[str, NDArray[Any]], index: Any = None) -> Any:
    """A pandas DataFrame of these columns; a structured array where pandas is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.tables import as_table
    >>> as_table({"row": np.array([4, 2])})["row"].tolist()
    [4, 2]
    """
    try:
        import pandas as pd
    except ImportError:
        kinds: list[tuple[str, Any]] = [(name, column.dtype) for name, column in columns.items()]
        table = np.empty(len(next(iter(columns.values()))), dtype=kinds)
        for name, column in columns.items():
            table[name] = column
        return table
    return pd.DataFrame(columns, index=index)
