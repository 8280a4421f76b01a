"""Decisions about labels: the file they are kept in, and what they do to a table.

``corrections.csv`` has one line for each decision. It is only ever appended to, so that whatever interrupts a
review loses nothing; the last decision about a row counts. ::

    row,key,column,given,decision,label,data
    17,bottle-17,grower,north,change,south,5ce860bd9c91a4e7
    23,bottle-23,grower,south,keep,,5ce860bd9c91a4e7

``row`` counts the rows of the data from 1; ``key`` is empty where rows have no names; ``label`` is the new
label of a change; ``data`` is the fingerprint of the file that was looked at. A decision is ``keep``,
``change``, ``unsure``, or ``undo``, which takes the last one back. Texts that a spreadsheet would execute
stand behind an apostrophe.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import enum
import io
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lptml._cells import as_text, fingerprint, restored, written

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("row", "key", "column", "given", "decision", "label", "data")
_FINGERPRINT = len(fingerprint(b""))


class Decision(enum.Enum):
    """What a person says about a label."""

    KEEP = "keep"
    CHANGE = "change"
    UNSURE = "unsure"
    UNDO = "undo"


@dataclass(frozen=True)
class Correction:
    """One decision about one label.

    Attributes
    ----------
    row : int
        The row of the data, from 1.
    column : str
        The column of labels.
    given : str
        The label that it has.
    decision : Decision
    label : str
        The new label, of a change.
    key : str
        The name of the row, if rows have names.
    data : str
        The fingerprint of the data; empty where they came from memory.
    """

    row: int
    column: str
    given: str
    decision: Decision
    label: str = ""
    key: str = ""
    data: str = ""

    @classmethod
    def from_cells(cls, cells: Mapping[str, Any]) -> Correction:
        """From the cells of a line, or the fields of a request; anything malformed is a ValueError."""
        missing = {"row", "given", "decision"} - set(cells)
        if missing:
            raise ValueError(f"a correction has no {' and no '.join(sorted(missing))}")
        text = {name: str(cells.get(name) or "") for name in COLUMNS}
        if not text["row"].isascii() or not text["row"].isdigit() or int(text["row"]) < 1:
            raise ValueError(f"row must be a number from 1, got {text['row']!r}")
        try:
            decision = Decision(text["decision"])
        except ValueError:
            known = ", ".join(each.value for each in Decision)
            raise ValueError(f"decision must be one of {known}, got {text['decision']!r}") from None
        if (decision is Decision.CHANGE) != bool(text["label"]):
            raise ValueError(f"row {text['row']}: a change, and nothing else, has a new label")
        names = ("column", "given", "label", "key", "data")
        return cls(int(text["row"]), decision=decision, **{name: text[name] for name in names})

    def line(self) -> str:
        """The line of the file, with its end."""
        cells = (self.row, self.key, self.column, self.given, self.decision.value, self.label, self.data)
        return ",".join(written(cell) if cell != "" else "" for cell in cells) + "\n"


@dataclass(frozen=True)
class CorrectionsFile:
    """What a corrections file holds.

    Attributes
    ----------
    header : tuple of str
        The names of its columns.
    decisions : list of Correction
        All of them in their order, taken back or not.
    torn : bytes
        Its last line, where that has no end and is not a whole decision.
    """

    header: tuple[str, ...]
    decisions: list[Correction]
    torn: bytes = b""

    @property
    def warning(self) -> str:
        """What is left out, in words; empty if nothing is."""
        shown = self.torn.decode("utf-8", "replace")
        return f"the last line is not whole and is left out: {shown!r}" if self.torn else ""


def parse_corrections(content: bytes) -> CorrectionsFile:
    """Read a corrections file; anything malformed but the last line is a ValueError.

    A last line without an end counts if nothing of it can be missing: editors leave the end out, and a crash
    of the machine may tear a line anywhere.
    """
    end = content.rfind(b"\n") + 1
    body, last = _decoded(content[:end]), content[end:]
    if last.strip():
        with contextlib.suppress(UnicodeDecodeError, ValueError):
            whole = _parsed(body + _decoded(last))
            if _is_whole(last, whole):
                return whole
    return replace(_parsed(body), torn=last.strip() and last)


def _is_whole(last: bytes, file: CorrectionsFile) -> bool:
    """Whether a last line without an end has all its columns, and the last of them in full."""
    if not file.decisions:
        return not ",".join(COLUMNS).startswith(last.decode())
    cells = _records(last.decode())[-1][1]
    return len(cells) >= len(file.header) and len(file.decisions[-1].data) in (0, _FINGERPRINT)


def _decoded(content: bytes) -> str:
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise ValueError(f"line {line}: byte 0x{content[problem.start]:02x} is not utf-8") from None


def _records(text: str) -> list[tuple[int, list[str]]]:
    """The cells of each line that has any, with the number of the line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as problem:
        raise ValueError(f"line {reader.line_num}: {problem}") from None


def _parsed(text: str) -> CorrectionsFile:
    """The first line has the names of the columns, each other line a correction."""
    records = _records(text)
    header = tuple(cell.strip() for cell in records[0][1]) if records else ()
    if header and (missing := {"row", "given", "decision"} - {*header}):
        raise ValueError(f"its first line does not name the columns {', '.join(sorted(missing))}")
    found = []
    for line, cells in records[1:]:
        try:
            found.append(Correction.from_cells(dict(zip(header, map(restored, cells)))))
        except ValueError as problem:
            raise ValueError(f"line {line}: {problem}") from None
    return CorrectionsFile(header, found)


def read_corrections(path: str | os.PathLike[str]) -> list[Correction]:
    """The decisions that count: the last about each row, in the order of rows, without those taken back.

    Parameters
    ----------
    path : str or path
        A ``corrections.csv`` of the page, of ``lptml review`` or of your own.

    Returns
    -------
    list of Correction

    Warns
    -----
    UserWarning
        Where the last line was torn, as by a crash of the machine, and is left out.
    """
    file = parse_corrections(Path(path).read_bytes())
    if file.warning:
        warnings.warn(f"{path}: {file.warning}", UserWarning, stacklevel=2)
    return standing(file.decisions)


def standing(decisions: Iterable[Correction]) -> list[Correction]:
    """The last decision about each row, in the order of rows, without those taken back."""
    last = {each.row: each for each in decisions}
    return [last[row] for row in sorted(last) if last[row].decision is not Decision.UNDO]


def trusted_rows(corrections: Iterable[Correction], n: int) -> NDArray[np.bool_]:
    """Which of n rows a person has kept or changed: their labels are known.

    Examples
    --------
    >>> from lptml.report.corrections import Correction, Decision, trusted_rows
    >>> trusted_rows([Correction(2, "y", "a", Decision.KEEP), Correction(3, "y", "a", Decision.UNSURE)], 3)
    array([False,  True, False])
    """
    mask = np.zeros(n, dtype=bool)
    for each in corrections:
        if each.decision in (Decision.KEEP, Decision.CHANGE) and each.row <= n:
            mask[each.row - 1] = True
    return mask


def apply_corrections(
    df: pd.DataFrame, corrections: str | os.PathLike[str] | Iterable[Correction], *, label: str | None = None
) -> pd.DataFrame:
    """A copy of a data frame with the labels that were changed in a review.

    Parameters
    ----------
    df : DataFrame
        The data that were reviewed, in the same order of rows.
    corrections : path or iterable of Correction
        As :func:`read_corrections` reads them.
    label : str, optional
        The column of labels; by default the one that the corrections name.

    Returns
    -------
    DataFrame

    Raises
    ------
    ValueError
        Where a row is not there, or has another label than the one that was looked at.

    See Also
    --------
    lptml.report.corrections.trusted_rows : Which rows the next fit can trust.

    Examples
    --------
    >>> import pandas as pd
    >>> from lptml import apply_corrections
    >>> from lptml.report.corrections import Correction, Decision
    >>> df = pd.DataFrame({"x": [1.0, 2.0], "kind": ["red", "red"]})
    >>> apply_corrections(df, [Correction(2, "kind", "red", Decision.CHANGE, "blue")])["kind"].tolist()
    ['red', 'blue']
    """
    if isinstance(corrections, (str, os.PathLike)):
        corrections = read_corrections(corrections)
    found = standing(corrections)
    changed = df.copy()
    for name in {label or each.column for each in found}:
        if name not in df.columns:
            raise ValueError(f"df has no column {name!r}, which the corrections are about")
        mine = [each for each in found if (label or each.column) == name]
        cells = df[name].tolist()
        kind = df[name].dtype
        for row, value in new_labels(cells, mine).items():
            cells[row] = value
        import pandas as pd

        categories = getattr(kind, "categories", None)
        if categories is not None and not set(cells) <= {*categories}:
            kind = pd.CategoricalDtype([*categories, *sorted({*cells} - {*categories})])
        changed[name] = pd.Series(cells, index=df.index, dtype=kind)
    return changed


def new_labels(cells: Sequence[Any], corrections: Iterable[Correction]) -> dict[int, Any]:
    """The new value of each position that changes, in the type of the column, once all corrections fit it."""
    known = {as_text(cell): cell for cell in cells if cell is not None}
    changes: dict[int, Any] = {}
    for each in corrections:
        if each.row > len(cells):
            raise ValueError(f"the corrections are about row {each.row}, and the data have {len(cells)} rows")
        cell = cells[each.row - 1]
        if (as_text(cell) if cell is not None else "") != each.given:
            raise ValueError(
                f"row {each.row} has the label {as_text(cell)!r} where the corrections saw {each.given!r}: "
                "the data changed since the review"
            )
        if each.decision is Decision.CHANGE:
            changes[each.row - 1] = known[each.label] if each.label in known else _typed(each.label, cell)
    return changes


def _typed(label: str, example: Any) -> Any:
    """A label that the column has not had, in the type of one that it has."""
    if isinstance(example, str) or example is None:
        return label
    try:
        return type(example)(float(label)) if not isinstance(example, bool) else bool(int(label))
    except (TypeError, ValueError):
        raise ValueError(f"the label {label!r} does not fit a column of {type(example).__name__}") from None


class Journal:
    """A corrections file that is appended to, each decision on the disk before :meth:`add` returns.

    A line goes out in one write to a file opened for appending, so a kill leaves it whole or leaves it out; a
    torn last line, as after a crash of the machine, is cut off when the file is opened again.

    Parameters
    ----------
    path : str or path
        Made if it is not there.
    data : str
        The fingerprint of the data. A file about other data is refused with a ValueError.
    """

    def __init__(self, path: str | os.PathLike[str], data: str) -> None:
        self.path = Path(path)
        self.data = data
        content = self.path.read_bytes() if self.path.exists() else b""
        file = parse_corrections(content)
        self.decisions = file.decisions
        if file.header and file.header != COLUMNS:
            raise ValueError(
                f"{path}: has other columns than a review writes ({','.join(COLUMNS)}); choose another name"
            )
        for each in self.decisions:
            if each.data and data and each.data != data:
                raise ValueError(
                    f"{path}: was made for other data (the file changed since); choose another name, or "
                    "start anew without it"
                )
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        if file.torn:
            os.ftruncate(self._file, len(content) - len(file.torn))
        elif content and not content.endswith(b"\n"):
            self._write("\n")
        if os.fstat(self._file).st_size == 0:
            self._write(",".join(COLUMNS) + "\n")

    def add(self, correction: Correction) -> None:
        """Append a decision; when this returns it is on the disk."""
        self._write(correction.line())
        self.decisions.append(correction)

    def standing(self) -> list[Correction]:
        """The decisions that count."""
        return standing(self.decisions)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, line: str) -> None:
        data = line.encode()
        if os.write(self._file, data) != len(data):
            raise OSError(f"{self.path}: the disk is full")
        os.fsync(self._file)
