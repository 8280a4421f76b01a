"""One reader for tables: CSV, TSV, ARFF, Parquet and npz, from a file or from standard input.

Nothing in a file is trusted: no pickle, no bomb, no type that is not a plain column.
"""

from __future__ import annotations

import contextlib
import io
import sys
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lptml._cells import fingerprint
from lptml.cli.delimited import parse_arff, parse_delimited
from lptml.cli.errors import InputError, one_line, quoted
from lptml.cli.output import FileKind, kind_of_bytes
from lptml.cli.tables import Table, Values, check_unique, make_frame, nearest_name

if TYPE_CHECKING:
    import pandas as pd

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
FOREIGN = {  # the first bytes of files that people take for tables, in lower case
    b"\x1f\x8b": "compressed data: unpack it with gunzip",
    b"\xd0\xcf\x11\xe0": "an Excel workbook: save the sheet as CSV",
    b"%pdf": "a PDF document",
    b"\x89png": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"sqlite format 3": "a database: export the table as CSV",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"[{": "JSON: pandas.read_json(...).to_csv(...) in Python makes a table of it",
    b'{"': "JSON: pandas.read_json(...).to_csv(...) in Python makes a table of it",
}
UNPACKED_LIMIT = 1 << 30  # bytes: below this any compression ratio is harmless
RATIO_LIMIT = 200


def read_table(
    path: str,
    *,
    format: str = "auto",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool = True,
    missing: Iterable[str] = (),
    problems: list[InputError] | None = None,
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
    problems : list, optional
        Collects the rows and names of a CSV file that cannot be used, instead of raising the first.

    Returns
    -------
    Table
    """
    name, data = read_bytes(path)
    if not data.strip():
        raise InputError("the file is empty; it needs a header line and rows of values", name)
    kind = guess_format(name, data) if format == "auto" else format
    if format == "auto" and kind != "parquet":
        _refuse_foreign(name, data)
    if kind == "parquet":
        table = parse_parquet(name, data)
    elif kind == "npz":
        table = parse_npz(name, data)
    elif kind == "arff":
        table = parse_arff(name, decode(name, data, encoding))
    else:
        sep = "\t" if kind == "tsv" and delimiter is None else delimiter
        text = decode(name, data, encoding)
        table = parse_delimited(name, text, delimiter=sep, header=header, problems=problems)
    table = replace(table, digest=fingerprint(data))
    return _mark_missing(table, MISSING | {m.strip().lower() for m in missing})


def read_bytes(path: str) -> tuple[str, bytes]:
    """The name to show and the bytes of a file, or of standard input for ``-``."""
    if path == "-":
        return "<stdin>", sys.stdin.buffer.read()
    try:
        return path, Path(path).read_bytes()
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            there = (each.name for each in Path(path).parent.iterdir() if each.is_file())
            if near := nearest_name(Path(path).name, there):
                meant = quoted(Path(path).with_name(near), 200)
                raise InputError(f"no such file; did you mean {meant}?", path) from None
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


def _refuse_foreign(name: str, data: bytes) -> None:
    """Say what a file is that people take for a table, or that can be saved as one."""
    head = data[: 1 << 16]
    start, kind = head.lstrip().lower(), kind_of_bytes(head)
    found = [what for mark, what in FOREIGN.items() if start.startswith(mark)]
    if kind in (FileKind.MODEL, FileKind.PAGE, FileKind.CHECKPOINT, FileKind.PROOF):
        found = [kind.value]
    elif head[:4] == b"PK\x03\x04" and (b"xl/" in head or b"opendocument" in head):
        found = ["a spreadsheet: save it as CSV"]
    if found:
        raise InputError(f"holds {found[0]}; tables are CSV, TSV, Parquet, ARFF or npz", name)


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
        if b"\0" in data[:4096]:
            what = "holds bytes that no text has, so it is not a text table; check the file"
        raise InputError(what, f"{name}, line {line}") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(
            "holds NUL characters, so it is not a text table; check the file, or name its --format",
            f"{name}, line {line}",
        )
    return text


def _mark_missing(table: Table, tokens: frozenset[str]) -> Table:
    def marked(column: pd.Series[Any]) -> Values | list[str | None]:
        if column.dtype != object:
            return column.to_numpy()
        return [None if c is None or c.strip().lower() in tokens else c.strip() for c in column]

    return replace(table, frame=make_frame({name: marked(table.frame[name]) for name in table.names}))


def parse_parquet(name: str, data: bytes) -> Table:
    """The table in a Parquet file: numbers, booleans, text and categories."""
    import pandas as pd

    try:
        _check_size(name, data)
        frame = pd.read_parquet(io.BytesIO(data), engine="pyarrow", dtype_backend="numpy_nullable")
    except InputError:
        raise
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'lptml[cli]'", name) from None
    except Exception as problem:  # damaged bytes raise whatever they happen to be taken for
        raise InputError(
            f"is not a readable Parquet file ({one_line(problem, 120)}); is it whole?", name
        ) from None
    named = [level for level in frame.index.names if level is not None]
    if named:  # a frame's own names of its rows; without a name they are its numbers
        frame = frame.reset_index(named)
    if len(frame) == 0:
        raise InputError("the file holds no rows", name)
    labels = [str(label) for label in frame.columns]
    check_unique(name, labels)
    columns = {label: _plain_column(name, label, frame.iloc[:, j]) for j, label in enumerate(labels)}
    return Table(name, make_frame(columns), range(1, len(frame) + 1), unit="row")


def _check_size(name: str, data: bytes) -> None:
    """Refuse a Parquet file that would unpack to much more than it is, before it does."""
    import pyarrow.parquet as pq

    stored = pq.read_metadata(io.BytesIO(data))
    _check_ratio(name, 8 * stored.num_rows * stored.num_columns, len(data))


def _check_ratio(name: str, unpacked: int, size: int) -> None:
    if unpacked > UNPACKED_LIMIT and unpacked > RATIO_LIMIT * size:
        raise InputError(f"would unpack to {unpacked >> 20} MB from {size >> 10} kB; refused", name)


def _plain_column(source: str, label: str, column: pd.Series[Any]) -> Values | Sequence[str | None]:
    """Numbers in their own type, or text; integers beside missing values are text, with all their digits."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object).convert_dtypes()
    gone = column.isna().to_numpy()
    if pd.api.types.is_float_dtype(column.dtype):
        return np.where(gone, np.nan, column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_integer_dtype(column.dtype):
        if not gone.any():
            return np.array(column.tolist())
        column = column.astype(object)
    cells = [None if missing else cell for missing, cell in zip(gone, column)]
    kinds = {type(cell) for cell in cells} - {type(None)}
    if kinds <= {str}:
        return cells
    if kinds <= {int, bool, Decimal, np.int64, np.uint64}:
        return [_digits(cell) for cell in cells]
    kind = column.dtype if column.dtype != object else kinds.pop().__name__
    raise InputError(
        f"its type {kind} cannot be used; store numbers or text", f"{source}, column {quoted(label)}"
    )


def _digits(value: int | Decimal | None) -> str | None:
    """A number as text with all its digits and no more."""
    if value is None:
        return None
    text = f"{value:f}" if isinstance(value, Decimal) else str(int(value))
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_npz(name: str, data: bytes) -> Table:
    """The table in an npz file: ``X`` (n, d), ``y`` (n,), ``feature_names`` (d,), or 1-D columns by name."""
    arrays = _load_npz(name, data)
    X = arrays.pop("X", None)
    columns: list[tuple[str, Values | list[str | None]]] = []
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
        columns += zip(labels, _native(X).T)
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
        columns.append((label, [str(v) for v in values] if values.dtype.kind == "U" else _native(values)))
    if not columns or not n:
        raise InputError("holds no rows; store X (n, d) and y (n,)", name)
    check_unique(name, [label for label, _ in columns])
    return Table(name, make_frame(dict(columns)), range(1, n + 1), unit="row", roles=roles)


def _native(values: Values) -> Values:
    """Numbers in this machine's order of bytes, floats in double precision."""
    return values.astype(np.float64 if values.dtype.kind == "f" else values.dtype.newbyteorder("="))


def _load_npz(name: str, data: bytes) -> dict[str, Values]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        _check_ratio(name, unpacked, len(data))
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
