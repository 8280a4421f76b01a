"""Cells of text tables: numbers, and texts that a spreadsheet would take for a formula."""

from __future__ import annotations

import hashlib
from typing import Any

FORMULA = frozenset("=+-@＝＋－＠")  # what a spreadsheet takes for the start of a formula


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def defused(cell: Any) -> Any:
    """A cell to write: text that a spreadsheet would execute stands behind an apostrophe, as text does there.

    What already stands behind one gets another, so that :func:`restored` always knows what was meant.

    >>> defused("=1+1"), defused("'=1+1"), defused("-5"), defused(-5.0)
    ("'=1+1", "''=1+1", '-5', -5.0)
    """
    if not isinstance(cell, str):
        return cell
    bare = cell.lstrip("'")
    return f"'{cell}" if bare.lstrip()[:1] in FORMULA and not is_number(bare) else cell


def restored(cell: str) -> str:
    """The text that :func:`defused` was given."""
    return cell[1:] if cell.startswith("'") and defused(cell[1:]) == cell else cell


def written(cell: Any, delimiter: str = ",") -> str:
    """A cell of a text table; Python's own writer leaves a carriage return bare, which ends a row.

    >>> written("-"), written("a,b")
    ("'-", '"a,b"')
    """
    text = "" if cell is None else str(defused(cell))
    if not text or any(mark in text for mark in (delimiter, '"', "\n", "\r")):
        return '"' + text.replace('"', '""') + '"'
    return text


def as_text(value: Any) -> str:
    """A label as text; a whole number has no point, so that class 7.0 of a float column is class 7.

    >>> as_text(7.0), as_text(True), as_text("7.0"), as_text(2.5)
    ('7', '1', '7.0', '2.5')
    """
    if isinstance(value, str):
        return value
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool) or (isinstance(plain, float) and plain.is_integer()):
        plain = int(plain)
    return str(plain)


def fingerprint(data: bytes) -> str:
    """Sixteen characters that stand for the content of a file.

    >>> fingerprint(b"x,label")
    '5ce860bd9c91a4e7'
    """
    return hashlib.sha256(data).hexdigest()[:16]
