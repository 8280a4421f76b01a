"""A table with some labels changed and every other byte as it was.

In a text file the cells of the label column are replaced where they stand: quotes, spaces, line ends, byte
order marks and comments stay. Parquet and npz files are written anew with the other columns untouched.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from lptml.cli.delimited import ATTRIBUTE, guess_delimiter, split_rows
from lptml.cli.errors import InputError, quoted
from lptml.cli.readers import decode, guess_format
from lptml.cli.tables import Table
from lptml.report.corrections import Correction, Decision, new_labels

Span = tuple[int, int]


def rewritten(
    name: str,
    data: bytes,
    table: Table,
    label: str,
    corrections: Iterable[Correction],
    *,
    format: str = "auto",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool = True,
) -> bytes:
    """The bytes of a file with the labels that the corrections change; as for :func:`read_table`."""
    found = list(corrections)
    try:
        changes = new_labels(table.text(label, "--label"), found)
    except ValueError as problem:
        raise InputError(str(problem), name) from None
    kind = guess_format(name, data) if format == "auto" else format
    if kind == "parquet":
        return _parquet(data, label, found)
    if kind == "npz":
        return _npz(data, label, found)
    text = decode(name, data, encoding)
    mark, codec = _codec(data, encoding)
    if mark + text.encode(codec) != data:
        raise InputError(f"does not survive being read and written in {codec}; convert it to utf-8", name)
    if kind == "arff":
        edits = _arff_edits(name, text, table, label, changes)
    else:
        sep = "\t" if kind == "tsv" and delimiter is None else delimiter
        sep = sep or guess_delimiter(text.lstrip().partition("\n")[0])
        edits = _delimited_edits(name, text, sep, header, table.names.index(label), changes)
    pieces, at = [], 0
    for (start, end), new in sorted(edits):
        pieces += [text[at:start], new]
        at = end
    return mark + "".join([*pieces, text[at:]]).encode(codec)


def _codec(data: bytes, encoding: str) -> tuple[bytes, str]:
    """The byte order mark of a file and the codec of what follows it."""
    marks = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}
    for mark, codec in marks.items():
        if data.startswith(mark):
            return mark, codec
    return b"", encoding


def spans(text: str, delimiter: str, quote: str = '"') -> list[list[Span]]:
    r"""Where the cells of each row stand, quotes included and spaces before them not; blank rows left out.

    >>> text = 'a,"b,c"\n\nd, e\n'
    >>> [[text[i:j] for i, j in row] for row in spans(text, ",")]
    [['a', '"b,c"'], ['d', 'e']]
    """
    q, sep = re.escape(quote), re.escape(delimiter)
    cell = re.compile(rf" *({q}(?:[^{q}]|{q}{q})*{q}|[^{sep}\r\n]*)({sep}|\r\n|\n|\r|\Z)")
    rows: list[list[Span]] = []
    row: list[Span] = []
    at = 0
    while at < len(text):
        found = cell.match(text, at)
        if found is None:  # text glued to a closed quote: the reader refuses it
            raise ValueError(f"cannot be split at character {at}")
        row.append(found.span(1))
        at = found.end()
        if found.group(2) != delimiter:
            if len(row) > 1 or text[slice(*row[0])].strip():
                rows.append(row)
            row = []
        elif at == len(text):
            row.append((at, at))
    return [*rows, row] if row else rows


def _delimited_edits(
    name: str, text: str, delimiter: str, header: bool, column: int, changes: dict[int, Any]
) -> list[tuple[Span, str]]:
    places = spans(text, delimiter)
    read = [cells for _, cells in split_rows(name, text, delimiter)]
    if [[_content(text[i:j]) for i, j in row] for row in places] != read:
        raise InputError("is quoted in a way that cannot be rewritten; save it anew as CSV", name)
    edits = []
    for row, new in changes.items():
        place = places[row + header][column]
        edits.append((place, _cell(text[slice(*place)], str(new), delimiter, '"')))
    return edits


def _content(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


def _cell(old: str, new: str, delimiter: str, quote: str, special: str = "\n\r") -> str:
    """The new label, quoted as the old one was or where it must be; spaces after the old one stay."""
    must = any(mark in new for mark in (delimiter, quote, *special)) or new != new.strip()
    if old.startswith(quote) or must:
        return quote + new.replace(quote, quote * 2) + quote
    return new + old[len(old.rstrip()) :]


def _arff_edits(
    name: str, text: str, table: Table, label: str, changes: dict[int, Any]
) -> list[tuple[Span, str]]:
    lines = text.splitlines(keepends=True)
    starts = np.cumsum([0, *map(len, lines)])
    for line in lines:
        found = ATTRIBUTE.match(line.strip())
        if found and label in found.groups()[:3] and found.group(4).strip().startswith("{"):
            declared = {cell.strip(" '\"{}") for cell in found.group(4).strip().split(",")}
            for new in {*changes.values()} - declared:
                raise InputError(f"the header does not declare the label {quoted(new)}; add it there", name)
    quote = "'" if "'" in "".join(lines[table.lines[0] - 1 :]) else '"'
    edits = []
    for row, new in changes.items():
        number = table.lines[row] - 1
        line = lines[number].replace("\t", " ")
        if line.lstrip().startswith("{"):
            raise InputError("sparse rows cannot be rewritten; save it as CSV", f"{name}, line {number + 1}")
        i, j = spans(line, ",", quote)[0][table.names.index(label)]
        new_cell = _cell(line[i:j], str(new), ",", quote, "\n\r %{}\"'")
        edits.append(((starts[number] + i, starts[number] + j), new_cell))
    return edits


def _parquet(data: bytes, label: str, corrections: list[Correction]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = pq.read_table(io.BytesIO(data))
    column = stored.column(label)
    cells = column.to_pylist()
    for row, value in new_labels(cells, corrections).items():
        cells[row] = value
    place = stored.schema.get_field_index(label)
    changed = stored.set_column(place, stored.schema.field(place), pa.array(cells, type=column.type))
    stream = io.BytesIO()
    pq.write_table(changed, stream)
    return stream.getvalue()


def _npz(data: bytes, label: str, corrections: list[Correction]) -> bytes:
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    cells = arrays[label].tolist()
    for row, value in new_labels(cells, corrections).items():
        cells[row] = value
    kind = None if arrays[label].dtype.kind == "U" else arrays[label].dtype  # texts may get longer
    arrays[label] = np.array(cells, dtype=kind)
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def count(corrections: Iterable[Correction], decision: Decision) -> int:
    """How many decisions are of a kind."""
    return sum(each.decision is decision for each in corrections)
