"""Files of pairs: two keys and a label on each line, joined to the points by key.

::

    first,second,label
    bottle-12,bottle-31,similar
    bottle-12,bottle-7,dissimilar

The header may be missing.  A fourth cell, if there is one, is the weight of the pair. Files of triplets and
of quadruplets have three and four keys a line: a is nearer to b than to c; a and b are nearer than c and d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lptml._cells import restored
from lptml.cli.delimited import guess_delimiter, split_rows
from lptml.cli.errors import InputError, quoted
from lptml.cli.readers import decode, read_bytes
from lptml.constraints.checks import pair_label


@dataclass(frozen=True)
class Pairs:
    """Pairs of points.

    Attributes
    ----------
    index : ndarray (m, 2)
        Positions of the two points.
    y : ndarray (m,) or None
        +1 similar, -1 dissimilar; None when the file gives no labels.
    weight : ndarray (m,) or None
    """

    index: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any] | None
    weight: np.ndarray[Any, Any] | None


@dataclass(frozen=True)
class Tuples:
    """Comparisons of points: a is nearer to b than to c, or a and b are nearer than c and d.

    Attributes
    ----------
    index : ndarray (m, 3) or (m, 4)
        Positions of the points.
    weight : ndarray (m,) or None
    """

    index: np.ndarray[Any, Any]
    weight: np.ndarray[Any, Any] | None

    @property
    def kind(self) -> str:
        return "triplets" if self.index.shape[1] == 3 else "quadruplets"


def read_tuples(path: str, keys: list[str], *, key: str | None, width: int) -> Tuples:
    """Read a file of triplets (``width`` 3) or quadruplets (4): so many keys a line, perhaps a weight."""
    name, rows = _rows(path)
    position = {k: i for i, k in enumerate(keys)}
    if rows and not any(_known(cell, position) for cell in rows[0][1][:width]):
        rows = rows[1:]  # a header
    example = "a,b,c" if width == 3 else "a,b,c,d"
    if not rows:
        raise InputError(f"holds no lines of {width} keys: {example}", name)
    cells = len(rows[0][1])
    if cells not in (width, width + 1):
        message = f"{cells} cells; each line is {width} keys, and if you like a weight: {example}"
        raise InputError(message, f"{name}, line {rows[0][0]}")
    index = np.empty((len(rows), width), dtype=np.int64)  # (m, width)
    weight = np.empty(len(rows)) if cells > width else None
    for i, (line, row) in enumerate(rows):
        where = f"{name}, line {line}"
        if len(row) != cells:
            raise InputError(f"{len(row)} cells where the first line has {cells}; mend the line", where)
        index[i] = [_find(cell.strip(), position, key, where) for cell in row[:width]]
        near, far = index[i, :2], index[i, [0, 2]] if width == 3 else index[i, 2:]
        if set(near) == set(far):
            raise InputError("compares a pair with itself; remove the line", where)
        if weight is not None:
            weight[i] = _weight(row[width], where)
    return Tuples(index, weight)


def _rows(path: str) -> tuple[str, list[tuple[int, list[str]]]]:
    name, data = read_bytes(path)
    text = decode(name, data, "utf-8")
    return name, split_rows(name, text, guess_delimiter(text.lstrip().partition("\n")[0]))


def _known(cell: str, position: dict[str, int]) -> bool:
    return cell.strip() in position or restored(cell.strip()) in position


def read_pairs(path: str, keys: list[str], *, key: str | None, need_label: bool = True) -> Pairs:
    """Read a file of pairs and join it to the points.

    Parameters
    ----------
    path : str
    keys : list of str
        The name of each point.
    key : str, optional
        The column the keys came from, for messages; None: they are row numbers.
    need_label : bool
        Whether a file of two cells a line is an error.
    """
    name, rows = _rows(path)
    position = {k: i for i, k in enumerate(keys)}
    if rows and _is_header(rows[0][1], position):
        rows = rows[1:]
    if not rows:
        raise InputError("holds no pairs; each line is two keys and a label: a,b,similar", name)
    width = len(rows[0][1])
    if width not in ((3, 4) if need_label else (2, 3, 4)):
        raise InputError(
            f"{width} cells; each line is two keys and a label, and if you like a weight: a,b,similar,1.0",
            f"{name}, line {rows[0][0]}",
        )
    index = np.empty((len(rows), 2), dtype=np.int64)  # (m, 2)
    y = np.empty(len(rows), dtype=np.int64) if width > 2 else None
    weight = np.empty(len(rows)) if width > 3 else None
    for i, (line, row) in enumerate(rows):
        where = f"{name}, line {line}"
        if len(row) != width:
            raise InputError(f"{len(row)} cells where the first pair has {width}; mend the line", where)
        for side in (0, 1):
            index[i, side] = _find(row[side].strip(), position, key, where)
        if index[i, 0] == index[i, 1]:
            raise InputError(f"pairs {quoted(row[0])} with itself; remove the line", where)
        if y is not None:
            v = pair_label(row[2])
            if v is None:
                raise InputError(
                    f"{quoted(row[2])} is no label of a pair; write similar or dissimilar (or 1 and -1)",
                    where,
                )
            y[i] = v
        if weight is not None:
            weight[i] = _weight(row[3], where)
    return Pairs(index, y, weight)


def _is_header(row: list[str], position: dict[str, int]) -> bool:
    """A first line that names neither two points nor a label is a header."""
    known = [_known(cell, position) for cell in row[:2]]
    if len(row) > 2:
        return pair_label(row[2]) is None and not all(known)
    return not any(known)


def _find(cell: str, position: dict[str, int], key: str | None, where: str) -> int:
    found = position.get(cell, position.get(restored(cell)))  # as lptml writes it, and as it is
    if found is None:
        source = f"column {quoted(key)} of the data" if key else f"the row numbers 1 to {len(position)}"
        hint = "check the key" if key else "check it, or name the column of keys with --key"
        raise InputError(f"the key {quoted(cell)} is not among {source}; {hint}", where)
    return found


def _weight(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value > 0):
        raise InputError(f"{quoted(cell)} is no weight; write a number above 0", where)
    return value
