"""CSV and TSV, strictly: a row of another length, an open quote or a huge field is an error with its line."""

from __future__ import annotations

import csv
import io
from typing import Any

from lptml.cli.errors import InputError, one_line
from lptml.cli.tables import Column, Table, check_unique

FIELD_LIMIT = 1 << 20  # characters; the csv module stops there, so an open quote cannot swallow a large file
DELIMITERS = (",", ";", "\t", "|")
FORMULA = frozenset("=+-@＝＋－＠")  # what a spreadsheet takes for the start of a formula
MAX_COLUMNS = 100_000


def guess_delimiter(first_line: str) -> str:
    """The most frequent separator of the first line; a comma when there is none.

    >>> guess_delimiter("a;b;c")
    ';'
    """
    counts = {d: first_line.count(d) for d in DELIMITERS}
    return max(DELIMITERS, key=lambda d: counts[d])


def defused(cell: Any) -> Any:
    """A cell to write: text that a spreadsheet would execute stands behind an apostrophe, as text does there.

    >>> defused("=1+1"), defused("-5"), defused(-5.0)
    ("'=1+1", '-5', -5.0)
    """
    if not isinstance(cell, str) or cell.lstrip()[:1] not in FORMULA or is_number(cell):
        return cell
    return f"'{cell}"


def restored(cell: str) -> str:
    """The text that :func:`defused` was given."""
    return cell[1:] if cell.startswith("'") and defused(cell[1:]) == cell else cell


def split_rows(
    name: str, text: str, delimiter: str, quote: str = '"', first: int = 1
) -> list[tuple[int, list[str]]]:
    """The non-empty rows of a text with the line each ends at; ``first`` is the number of the first line."""
    csv.field_size_limit(FIELD_LIMIT)
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quotechar=quote,
        strict=True,
        skipinitialspace=True,
    )
    rows = []
    try:
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                rows.append((reader.line_num + first - 1, row))
    except csv.Error as problem:
        what = f"cannot be split into cells ({one_line(problem)}); check the quotes and the --delimiter"
        raise InputError(what, f"{name}, line {reader.line_num + first - 1}") from None
    return rows


def parse_delimited(name: str, text: str, *, delimiter: str | None, header: bool) -> Table:
    """The table in a delimited text."""
    if delimiter is None:
        delimiter = guess_delimiter(text.lstrip().partition("\n")[0])
    rows = split_rows(name, text, delimiter)
    if not rows:
        raise InputError("the file holds no rows", name)
    width = len(rows[0][1])
    if width > MAX_COLUMNS:
        raise InputError(f"{width} columns; at most {MAX_COLUMNS} are read", f"{name}, line {rows[0][0]}")
    if header:
        line, names = rows.pop(0)
        names = [cell.strip() for cell in names]
        _check_names(name, line, names)
        if not rows:
            raise InputError("the file holds a header line and no rows", name)
    else:
        names = [str(j + 1) for j in range(width)]
    for line, row in rows:
        if len(row) != width:
            what = f"{len(row)} cells where the first line has {width}; mend the row" + (
                " or name the --delimiter" if width == 1 or len(row) == 1 else ""
            )
            raise InputError(what, f"{name}, line {line}")
    columns = tuple(Column(names[j], list(cells)) for j, cells in enumerate(zip(*(row for _, row in rows))))
    return Table(name, columns, [line for line, _ in rows])


def _check_names(source: str, line: int, names: list[str]) -> None:
    where = f"{source}, line {line}"
    if all(is_number(cell) for cell in names):
        raise InputError(
            "the first line holds numbers, not column names; add names, or pass --no-header", where
        )
    for j, cell in enumerate(names):
        if not cell:
            raise InputError(f"column {j + 1} has no name; name it, or pass --no-header", where)
    check_unique(where, names)


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
