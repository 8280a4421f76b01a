"""CSV, TSV and ARFF, strictly: a row of another length, an open quote or a huge field is an error.

Rows are split by Python's own csv module and stay text, each with its line. The readers of pandas and SciPy
are oracles for sound files in the tests, no more, because they make something of malformed ones: pandas fills
up a short row, takes the first cells of long rows for an index, glues text to a closed quote and knows no
lines. SciPy's ARFF has no texts and no sparse rows, and makes floats of integers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lptml._cells import is_number
from lptml.cli.errors import InputError, one_line, quoted
from lptml.cli.tables import Table, check_unique, make_frame

FIELD_LIMIT = 1 << 20  # characters; the csv module stops there, so an open quote cannot swallow a large file
DELIMITERS = (",", ";", "\t", "|")
MAX_COLUMNS = 100_000
ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s+(.+)""", re.IGNORECASE
)
NUMERIC = ("numeric", "real", "integer")


def guess_delimiter(first_line: str) -> str:
    """The most frequent separator of the first line; a comma when there is none.

    >>> guess_delimiter("a;b;c")
    ';'
    """
    counts = {d: first_line.count(d) for d in DELIMITERS}
    return max(DELIMITERS, key=lambda d: counts[d])


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


def parse_delimited(
    name: str,
    text: str,
    *,
    delimiter: str | None,
    header: bool,
    problems: list[InputError] | None = None,
) -> Table:
    """The table in a delimited text.

    With a list of ``problems``, rows of another length are left out and bad names replaced, each with its
    error in the list; without, the first one is raised.
    """
    complain = _raised if problems is None else problems.append
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
        names = _checked_names(name, line, names, complain)
        if not rows:
            raise InputError("the file holds a header line and no rows", name)
    else:
        names = [str(j + 1) for j in range(width)]
    for line, row in rows:
        if len(row) != width:
            what = f"{len(row)} cells where the first line has {width}; mend the row" + (
                " or name the --delimiter" if width == 1 or len(row) == 1 else ""
            )
            complain(InputError(what, f"{name}, line {line}"))
    rows = [each for each in rows if len(each[1]) == width]
    if not rows:
        raise InputError("no row has as many cells as the first line; name the --delimiter", name)
    return _table(name, names, rows)


def _raised(problem: InputError) -> None:
    raise problem


def _table(source: str, names: list[str], rows: Sequence[tuple[int, Sequence[str | None]]]) -> Table:
    columns = dict(zip(names, zip(*(row for _, row in rows))))
    return Table(source, make_frame(columns), [line for line, _ in rows])


def _checked_names(
    source: str, line: int, names: list[str], complain: Callable[[InputError], None]
) -> list[str]:
    """The names of the columns, each once; what is wrong with them goes to ``complain``."""
    where = f"{source}, line {line}"
    if all(is_number(cell) for cell in names):
        raise InputError(
            "the first line holds numbers, not column names; add names, or pass --no-header", where
        )
    found: dict[str, None] = {}  # in order
    for j, cell in enumerate(names):
        name = cell
        if not cell:
            if j:  # the first one is the index of a data frame, which pandas writes without a name
                complain(InputError(f"column {j + 1} has no name; name it, or pass --no-header", where))
            name = f"column {j + 1}"
        elif cell in found:
            complain(InputError(f"the column name {quoted(cell)} occurs twice; rename one", where))
        while name in found:
            name += "'"
        found[name] = None
    return [*found]


@dataclass(frozen=True)
class Attribute:
    """A column of the header; ``unstated`` is what a sparse row means when it leaves the column out."""

    name: str
    numeric: bool
    unstated: str | None


def parse_arff(name: str, text: str) -> Table:
    """The table in an ARFF text."""
    attributes: list[Attribute] = []
    lines = text.splitlines()
    start = len(lines)
    for i, raw in enumerate(lines):
        stripped = raw.strip()
        if not stripped or stripped.startswith("%"):
            continue
        keyword = stripped.split(None, 1)[0].lower()
        if keyword == "@attribute":
            attributes.append(_attribute(name, i + 1, stripped))
            if len(attributes) > MAX_COLUMNS:
                raise InputError(f"more than {MAX_COLUMNS} attributes", f"{name}, line {i + 1}")
        elif keyword == "@data":
            start = i + 1
            break
        elif keyword != "@relation":
            raise InputError(
                f"{quoted(stripped)} where @relation, @attribute or @data belongs; is this an ARFF file?",
                f"{name}, line {i + 1}",
            )
    if not attributes or start == len(lines):
        raise InputError("the ARFF header has no @attribute or no @data line; is the file whole?", name)
    names = [a.name for a in attributes]
    check_unique(name, names)
    rows = _rows(name, lines, start, attributes)
    if not rows:
        raise InputError("the ARFF file holds no rows after @data", name)
    for line, row in rows:
        for attribute, cell in zip(attributes, row):
            if attribute.numeric and cell not in (None, "", "?") and not is_number(str(cell)):
                raise InputError(
                    f"{quoted(cell)} is no number; correct it, or write ? for a missing value",
                    f"{name}, line {line}, column {quoted(attribute.name)}",
                )
    return _table(name, names, rows)


def _attribute(source: str, line: int, text: str) -> Attribute:
    match = ATTRIBUTE.match(text)
    if not match:
        raise InputError(f"{quoted(text)} is not '@attribute name type'", f"{source}, line {line}")
    label = next(g for g in match.groups()[:3] if g is not None).replace("\\", "")
    kind = match.group(4).strip()
    if kind.lower().startswith("relational"):
        raise InputError(
            "relational attributes cannot be used; flatten the table first", f"{source}, line {line}"
        )
    if kind.startswith("{"):
        return Attribute(label, False, kind[1:].partition(",")[0].strip(" '\"}"))
    numeric = kind.split()[0].lower() in NUMERIC
    return Attribute(label, numeric, "0" if numeric else None)


def _rows(
    name: str, lines: list[str], start: int, attributes: list[Attribute]
) -> list[tuple[int, list[str | None]]]:
    width = len(attributes)
    body = "\n".join(
        "" if line.lstrip().startswith("%") else line.replace("\t", " ") for line in lines[start:]
    )
    quote = "'" if "'" in body else '"'
    out: list[tuple[int, list[str | None]]] = []
    for line, row in split_rows(name, body, ",", quote, first=start + 1):
        if row[0].lstrip().startswith("{"):
            out.append((line, _sparse(name, line, row, attributes)))
            continue
        if len(row) != width:
            raise InputError(
                f"{len(row)} cells where the header names {width} attributes; mend the row",
                f"{name}, line {line}",
            )
        out.append((line, [cell.strip() for cell in row]))
    return out


def _sparse(name: str, line: int, row: list[str], attributes: list[Attribute]) -> list[str | None]:
    """A sparse row ``{1 5.0, 3 red}``: what is not named is zero, or the first category."""
    cells = [a.unstated for a in attributes]
    inner = ",".join(row).strip()
    if not inner.endswith("}"):
        raise InputError("a sparse row must end with }", f"{name}, line {line}")
    for item in inner[1:-1].split(","):
        if not item.strip():
            continue
        index, _, value = item.strip().partition(" ")
        if not index.isascii() or not index.isdigit() or int(index) >= len(attributes) or not value.strip():
            raise InputError(
                f"{quoted(one_line(item))} is not 'index value' in a sparse row", f"{name}, line {line}"
            )
        cells[int(index)] = value.strip()
    return cells
