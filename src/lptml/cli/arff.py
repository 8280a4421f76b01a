"""ARFF (Weka, OpenML): dense and sparse rows of numeric, nominal, string and date attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lptml.cli.delimited import MAX_COLUMNS, split_rows
from lptml.cli.errors import InputError, one_line, quoted
from lptml.cli.tables import Column, Table, check_unique

ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s+(.+)""", re.IGNORECASE
)
NUMERIC = ("numeric", "real", "integer")


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
            if attribute.numeric and cell is not None and not _number(cell):
                raise InputError(
                    f"{quoted(cell)} is no number; correct it, or write ? for a missing value",
                    f"{name}, line {line}, column {quoted(attribute.name)}",
                )
    columns = tuple(Column(a, list(cells)) for a, cells in zip(names, zip(*(row for _, row in rows))))
    return Table(name, columns, [line for line, _ in rows])


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


def _number(cell: str) -> bool:
    if cell.strip() in ("?", ""):
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True
