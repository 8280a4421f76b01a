"""Tables of points: one reader for CSV, TSV, Parquet, ARFF and npz, from a file or from standard input.

A :class:`Table` keeps every cell as it was written and where, so that an error can name file, row and column.
What a cell means is decided later, in :mod:`lptml.cli.prepare`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lptml.cli.errors import InputError, quoted

FORMATS = ("auto", "csv", "tsv", "parquet", "arff", "npz")
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
    ".npz": "npz",
}


@dataclass(frozen=True)
class Column:
    """One column as it was written.

    Attributes
    ----------
    name : str
    cells : ndarray or list of str
        Numbers in the type they were stored in, or text; ``None`` in a list marks a missing cell.
    """

    name: str
    cells: np.ndarray[Any, Any] | list[str | None]

    def text(self) -> list[str | None]:
        """The cells as text; whole numbers lose the point, so that key 7 in Parquet is key 7 in a CSV.

        Integers keep all their digits: as float64, 2**53 + 1 would be the key or the label 2**53.
        """
        if isinstance(self.cells, list):
            return self.cells
        if self.cells.dtype.kind in "biu":
            return [str(int(x)) for x in self.cells.tolist()]
        return [
            None
            if np.isnan(x)
            else (str(int(x)) if x == int(x) else repr(float(x)))
            if np.isfinite(x)
            else str(x)
            for x in self.cells
        ]

    def numbers(self) -> tuple[np.ndarray[Any, Any], list[int]]:
        """The cells as float64, NaN where missing, and the positions of those that are no numbers."""
        if not isinstance(self.cells, list):
            return np.asarray(self.cells, dtype=np.float64), []
        out = np.full(len(self.cells), np.nan)  # (n,)
        bad: list[int] = []
        for i, cell in enumerate(self.cells):
            if cell is None:
                continue
            try:
                if "_" in cell:  # float("1_2") is 12, an identifier is not
                    raise ValueError
                out[i] = float(cell)
            except ValueError:
                bad.append(i)
        return out, bad


@dataclass(frozen=True)
class Table:
    """A table and where it came from.

    Attributes
    ----------
    source : str
        The file's name, for messages.
    columns : tuple of Column
    lines : sequence of int
        The place of each row: a line of the file, or a row counted from 1.
    unit : str
        "line" or "row".
    roles : dict
        Columns whose meaning the file itself states (the label of an npz file: ``{"label": "y"}``).
    """

    source: str
    columns: tuple[Column, ...]
    lines: Sequence[int]
    unit: str = "line"
    roles: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]

    @property
    def n_rows(self) -> int:
        return len(self.lines)

    def column(self, name: str, option: str) -> Column:
        """The column of that name, or an error that lists what there is."""
        for c in self.columns:
            if c.name == name:
                return c
        shown = ", ".join(quoted(n, 24) for n in self.names[:12]) + (", …" if len(self.names) > 12 else "")
        raise InputError(
            f"there is no column {quoted(name)} ({option}); the columns are {shown}", self.source
        )

    def place(self, row: int, column: str | None = None) -> str:
        """``file, line 7, column 'x'``: where an error message points."""
        tail = f", column {quoted(column)}" if column is not None else ""
        return f"{self.source}, {self.unit} {self.lines[row]}{tail}"

    def rows(self, keep: np.ndarray[Any, Any]) -> Table:
        """The rows at the given positions."""
        index = [int(i) for i in keep]

        def pick(cells: np.ndarray[Any, Any] | list[str | None]) -> np.ndarray[Any, Any] | list[str | None]:
            return [cells[i] for i in index] if isinstance(cells, list) else cells[index]

        columns = tuple(Column(c.name, pick(c.cells)) for c in self.columns)
        return replace(self, columns=columns, lines=[self.lines[i] for i in index])


def check_unique(source: str, names: Iterable[str]) -> None:
    """Refuse a column name that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"the column name {quoted(name)} occurs twice; rename one", source)
        seen.add(name)


def read_bytes(path: str) -> tuple[str, bytes]:
    """The name to show and the bytes of a file, or of standard input for ``-``."""
    if path == "-":
        return "<stdin>", sys.stdin.buffer.read()
    try:
        return path, Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("no such file; check the path", path) from None
    except IsADirectoryError:
        raise InputError("is a folder; name a file inside it", path) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"cannot be read: {reason}", path) from None


def guess_format(name: str, data: bytes) -> str:
    """The format by the first bytes, then by the file's name; CSV when neither tells."""
    if data[:4] == b"PAR1":
        return "parquet"
    if data[:4] == b"PK\x03\x04":
        return "npz"
    by_name = SUFFIXES.get(Path(name).suffix.lower())
    if by_name:
        return by_name
    start = data[:4096].lstrip().lower()
    return "arff" if start.startswith((b"@relation", b"%")) else "csv"


def read_table(
    path: str,
    *,
    format: str = "auto",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool = True,
    missing: Iterable[str] = (),
) -> Table:
    """Read a table of points.

    Parameters
    ----------
    path : str
        A file, or ``-`` for standard input.
    format : {"auto", "csv", "tsv", "parquet", "arff", "npz"}
    delimiter : str, optional
        Between the cells of a CSV file; guessed from its first line among ``, ; tab |`` if not given.
    encoding : str
        Of text files.
    header : bool
        Whether the first line of a CSV file names the columns; else they are called 1, 2, 3, ...
    missing : iterable of str
        Texts that mean "no value", besides the empty cell, NA, N/A, NaN, null, None and ?.

    Returns
    -------
    Table
    """
    name, data = read_bytes(path)
    if not data.strip():
        raise InputError("the file is empty; it needs a header line and rows of values", name)
    kind = guess_format(name, data) if format == "auto" else format
    if kind == "parquet":
        from lptml.cli.binary import parse_parquet

        table = parse_parquet(name, data)
    elif kind == "npz":
        from lptml.cli.binary import parse_npz

        table = parse_npz(name, data)
    elif kind == "arff":
        from lptml.cli.arff import parse_arff

        table = parse_arff(name, decode(name, data, encoding))
    else:
        from lptml.cli.delimited import parse_delimited

        sep = "\t" if kind == "tsv" and delimiter is None else delimiter
        table = parse_delimited(name, decode(name, data, encoding), delimiter=sep, header=header)
    return _mark_missing(table, MISSING | {m.strip().lower() for m in missing})


def decode(name: str, data: bytes, encoding: str) -> str:
    """The text of a file; a byte that does not fit is an error that names its line."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif data[:3] == b"\xef\xbb\xbf":
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except LookupError:
        raise InputError(f"unknown encoding {quoted(encoding)}; try utf-8 or latin-1", "--encoding") from None
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        byte = data[problem.start] if problem.start < len(data) else 0
        what = f"byte 0x{byte:02x} is not {encoding}; name the encoding, for example --encoding latin-1"
        raise InputError(what, f"{name}, line {line}") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(
            "holds NUL characters, so it is not a text table; check the file, or name its --format",
            f"{name}, line {line}",
        )
    return text


def _mark_missing(table: Table, tokens: frozenset[str] | set[str]) -> Table:
    def mark(column: Column) -> Column:
        if not isinstance(column.cells, list):
            return column
        return Column(
            column.name,
            [None if c is None or c.strip().lower() in tokens else c.strip() for c in column.cells],
        )

    return replace(table, columns=tuple(mark(c) for c in table.columns))
