"""A table of points as it was read: a data frame, and the place of every row for messages.

Cells are what the file says: text (``None`` where a value is missing) or numbers in the type they were stored
in. What a cell means is decided later, in :mod:`lptml.cli.prepare`, which asks for a column as text
or as numbers.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lptml.cli.errors import InputError, quoted

if TYPE_CHECKING:  # takes half a second, which `lptml fit --help` need not wait for
    import pandas as pd

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Table:
    """A table and where it came from.

    Attributes
    ----------
    source : str
        The file's name, for messages.
    frame : DataFrame
        Columns of text (object, ``None`` is missing) and of numbers.
    lines : sequence of int
        The place of each row: a line of the file, or a row counted from 1.
    unit : str
        "line" or "row".
    roles : dict
        Columns whose meaning the file itself states (the label of an npz file: ``{"label": "y"}``).
    digest : str
        The fingerprint of the file's bytes.
    """

    source: str
    frame: pd.DataFrame
    lines: Sequence[int]
    unit: str = "line"
    roles: dict[str, str] = field(default_factory=dict)
    digest: str = ""

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    @property
    def n_rows(self) -> int:
        return len(self.lines)

    @property
    def row_numbers(self) -> Values:
        """The number of each row in the file, from 1, whatever rows were left out."""
        return self.frame.index.to_numpy() + 1

    def column(self, name: str, option: str) -> pd.Series[Any]:
        """The column of that name, or an error that lists what there is."""
        if name in self.frame.columns:
            return self.frame[name]
        near = nearest_name(name, self.names)
        shown = ", ".join(quoted(n, 24) for n in self.names[:12]) + (", …" if len(self.names) > 12 else "")
        meant = f"did you mean {quoted(near)}?" if near else f"the columns are {shown}"
        raise InputError(f"there is no column {quoted(name)} ({option}); {meant}", self.source)

    def text(self, name: str, option: str = "") -> list[str | None]:
        """The cells as text; whole numbers lose the point, so that key 7 in Parquet is key 7 in a CSV.

        Integers keep all their digits: as float64, 2**53 + 1 would be the key or the label 2**53.

        >>> Table("t", make_frame({"id": np.array([2**53 + 1])}), [1]).text("id")
        ['9007199254740993']
        """
        column = self.column(name, option)
        if column.dtype == object:
            return list(column)
        if column.dtype.kind in "biu":
            return [str(int(x)) for x in column]
        return [None if np.isnan(x) else _shortest(x) for x in column]

    def numbers(self, name: str, option: str = "") -> tuple[Values, list[int]]:
        """The cells as float64, NaN where missing, and the positions of those that are no numbers."""
        column = self.column(name, option)
        if column.dtype != object:
            return column.to_numpy(dtype=np.float64), []
        out = np.full(len(column), np.nan)  # (n,)
        bad: list[int] = []
        for i, cell in enumerate(column):
            try:
                if cell is not None:
                    out[i] = _number(cell)
            except ValueError:
                bad.append(i)
        return out, bad

    def place(self, row: int, column: object = None) -> str:
        """``file, line 7, column 'x'``: where an error message points."""
        tail = f", column {quoted(column)}" if column is not None else ""
        return f"{self.source}, {self.unit} {self.lines[row]}{tail}"

    def rows(self, keep: Values) -> Table:
        """The rows at the given positions."""
        return replace(self, frame=self.frame.iloc[keep], lines=[self.lines[int(i)] for i in keep])


def make_frame(columns: Mapping[str, Values | Sequence[str | None]]) -> pd.DataFrame:
    """A frame of arrays of numbers and of sequences of text."""
    import pandas as pd

    def series(cells: Values | Sequence[str | None]) -> pd.Series[Any]:
        if isinstance(cells, np.ndarray):
            return pd.Series(cells)
        # Text stays in objects, None where a cell is empty: pandas 3 would make a type of its own of it.
        return pd.Series(list(cells), dtype=object)

    if any(isinstance(cells, np.ndarray) for cells in columns.values()):
        return pd.DataFrame({name: series(cells) for name, cells in columns.items()})
    text = np.array([*columns.values()], dtype=object).T  # a series for each of 20,000 columns takes seconds
    return pd.DataFrame(text, columns=[*columns], dtype=object)


def _shortest(x: float) -> str:
    return str(int(x)) if np.isfinite(x) and x == int(x) else repr(float(x))


def _number(cell: str) -> float:
    if "_" in cell:  # float("1_2") is 12, an identifier is not
        raise ValueError
    return float(cell)


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The one of the names that was probably meant: the same but for upper case, or nearly the same.

    >>> nearest_name("Grower", ["ash", "grower"]), nearest_name("q", ["ash", "grower"])
    ('grower', None)
    """
    known = {each.casefold(): each for each in names}
    found = difflib.get_close_matches(name.strip().casefold(), known, n=1, cutoff=0.7)
    return known[found[0]] if found else None


def check_unique(source: str, names: Iterable[str]) -> None:
    """Refuse a column name that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"the column name {quoted(name)} occurs twice; rename one", source)
        seen.add(name)
