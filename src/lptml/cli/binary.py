"""Parquet and npz, read without trusting them: no pickle, no bomb, no type that is not a plain column."""

from __future__ import annotations

import io
import zipfile
import zlib
from decimal import Decimal
from typing import Any

import numpy as np

from lptml.cli.errors import InputError, one_line, quoted
from lptml.cli.tables import Column, Table, check_unique

UNPACKED_LIMIT = 1 << 30  # bytes: below this any compression ratio is harmless
RATIO_LIMIT = 200


def parse_parquet(name: str, data: bytes) -> Table:
    """The table in a Parquet file: numbers, booleans, text and categories."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'lptml[cli]'", name) from None
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError, MemoryError) as problem:
        raise InputError(
            f"is not a readable Parquet file ({one_line(problem, 120)}); is it whole?", name
        ) from None
    if table.num_rows == 0:
        raise InputError("the file holds no rows", name)
    columns = []
    for label, values in zip(table.column_names, table.columns):
        kind = values.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
            values = values.cast(kind)
        cells: Any
        if pa.types.is_floating(kind):
            cells = np.asarray(values.cast(pa.float64()).to_numpy(), dtype=np.float64)
        elif pa.types.is_boolean(kind) or pa.types.is_integer(kind):
            whole = values.null_count == 0
            cells = values.to_numpy() if whole else [_digits(v) for v in values.to_pylist()]
        elif pa.types.is_decimal(kind):
            cells = [_digits(v) for v in values.to_pylist()]
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
            cells = values.to_pylist()
        else:
            raise InputError(
                f"its type {kind} cannot be used; store numbers or text", f"{name}, column {quoted(label)}"
            )
        columns.append(Column(str(label), cells))
    check_unique(name, [c.name for c in columns])
    return Table(name, tuple(columns), range(1, table.num_rows + 1), unit="row")


def _digits(value: int | Decimal | None) -> str | None:
    """A number as text with all its digits and no more."""
    if value is None:
        return None
    text = f"{Decimal(value):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_npz(name: str, data: bytes) -> Table:
    """The table in an npz file: ``X`` (n, d), ``y`` (n,), ``feature_names`` (d,), or 1-D columns by name."""
    arrays = _load_npz(name, data)
    X = arrays.pop("X", None)
    columns: list[Column] = []
    roles: dict[str, str] = {}
    if X is not None:
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise InputError(
                f"X has shape {X.shape} and type {X.dtype}; it must be a 2-D array of numbers", name
            )
        given = arrays.pop("feature_names", None)
        if given is not None and (given.shape != (X.shape[1],) or given.dtype.kind not in "UT"):
            raise InputError(f"feature_names has shape {given.shape}; it must be {X.shape[1]} texts", name)
        labels = [f"x{j}" for j in range(X.shape[1])] if given is None else [str(g) for g in given]
        columns += [Column(a, np.ascontiguousarray(X[:, j])) for j, a in enumerate(labels)]
        if "y" in arrays:
            roles["label"] = "y"
    n = X.shape[0] if X is not None else None
    for label, values in arrays.items():
        if values.ndim != 1 or values.dtype.kind not in "biufU":
            raise InputError(
                f"has shape {values.shape} and type {values.dtype}; store X (n, d), y (n,) and 1-D columns",
                f"{name}, array {quoted(label)}",
            )
        n = values.shape[0] if n is None else n
        if values.shape[0] != n:
            raise InputError(
                f"{values.shape[0]} values where the others have {n}", f"{name}, array {quoted(label)}"
            )
        text = values.dtype.kind == "U"
        columns.append(Column(label, [str(v) for v in values] if text else values))
    if not columns or not n:
        raise InputError("holds no rows; store X (n, d) and y (n,)", name)
    check_unique(name, [c.name for c in columns])
    return Table(name, tuple(columns), range(1, n + 1), unit="row", roles=roles)


def _load_npz(name: str, data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > UNPACKED_LIMIT and unpacked > RATIO_LIMIT * len(data):
            raise InputError(f"would unpack to {unpacked >> 20} MB from {len(data) >> 10} kB; refused", name)
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return {key: np.asarray(stored[key]) for key in stored.files}
    except InputError:
        raise
    except (
        ValueError,
        OSError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        MemoryError,
        RuntimeError,
        SyntaxError,
        TypeError,
    ) as problem:
        reason = one_line(problem, 120)
        what = f"is not a readable npz file of plain arrays ({reason}); write it with numpy.savez"
        raise InputError(what, name) from None
