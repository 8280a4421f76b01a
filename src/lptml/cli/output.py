"""Results to files and to the terminal.

A file is written beside its place and moved there when it is whole, so whatever interrupts the work leaves
the old file or the new one.  Results go to standard output; messages and progress go to standard error.
"""

from __future__ import annotations

import codecs
import contextlib
import enum
import itertools
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from lptml import _files
from lptml._cells import is_number, written
from lptml.cli.bar import say
from lptml.cli.delimited import guess_delimiter, split_rows
from lptml.cli.errors import InputError, OutputError, visible

NOT_WRITTEN = (".xlsx", ".xls", ".ods", ".json", ".html", ".pdf", ".gz", ".zip", ".feather", ".arff")
Cells = list[Any] | np.ndarray[Any, Any]


class FileKind(enum.Enum):
    """What a file holds, in words for messages; a result replaces only results of its own kind."""

    MODEL = "a model"
    PAGE = "a page of lptml report"
    CHECKPOINT = "the checkpoint of a search"
    PROOF = "a proof of lptml certify"
    TEXT = "a table of text"
    PARQUET = "a Parquet table"
    ARRAYS = "a table of arrays"
    OTHER = "something else"


def table_kind(path: str) -> FileKind:
    """The kind of table that is written to a file of that name."""
    suffix = Path(path).suffix.lower()
    if suffix in NOT_WRITTEN:
        raise OutputError(f"{path}: tables are written as .csv, .tsv, .parquet or .npz; choose such a name")
    return {".parquet": FileKind.PARQUET, ".pq": FileKind.PARQUET, ".npz": FileKind.ARRAYS}.get(
        suffix, FileKind.TEXT
    )


def check_outputs(*outputs: tuple[str, FileKind], inputs: Iterable[str | None], force: bool) -> None:
    """Refuse, before any work, to write where nothing can be written or where something would be lost.

    An output is no input of the same command, no two outputs are one file, and an existing file of another
    kind is replaced only with ``--force``. ``-`` is standard output, and as an input standard input.
    """
    files = [(path, kind) for path, kind in outputs if path != "-"]
    for path, kind in files:
        streams = _check_place(path)
        for source in inputs:
            if source is not None and _same_file(path, source):
                raise OutputError(f"{path}: this command reads that file; choose another name for the result")
        if not (force or streams or kind is FileKind.CHECKPOINT):  # which is read, and refused there
            found = kind_of(path)
            if found not in (None, kind):
                raise OutputError(
                    f"{path}: holds {found.value}, not {kind.value}; choose another name, or pass --force"
                )
    for (path, kind), (other, other_kind) in itertools.combinations(files, 2):
        if os.path.realpath(path) == os.path.realpath(other):
            raise click.UsageError(f"{path}: {kind.value} and {other_kind.value} cannot be the same file")


def _check_place(path: str) -> bool:
    """Whether the output is a pipe or a device; an error if nothing can be written there."""
    try:
        if _files.is_stream(path):
            return True
    except IsADirectoryError:
        raise OutputError(f"{path}: is a folder; name a file inside it") from None
    except (OSError, ValueError) as problem:
        raise OutputError(f"{path}: cannot be written: {_reason(problem)}") from None
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise OutputError(f"{path}: cannot be written: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: cannot be written: the folder {folder} is read-only")
    return False


def _same_file(output: str, source: str) -> bool:
    """Whether an input is the file that an output would replace, by whatever name or link."""
    try:
        read = os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
        written = os.stat(output)
    except (OSError, ValueError):  # one is not there yet, or is no file
        return source != "-" and os.path.realpath(output) == os.path.realpath(source)
    return stat.S_ISREG(written.st_mode) and os.path.samestat(read, written)


def kind_of(path: str) -> FileKind | None:
    """What an existing file holds, by its first bytes; None if there is none or it is empty."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(1 << 16)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise OutputError(f"{path}: cannot be read before it is replaced: {_reason(problem)}") from None
    return kind_of_bytes(head) if head else None


def kind_of_bytes(head: bytes) -> FileKind:
    """What a file holds that begins like this."""
    if head.startswith(b"PAR1"):
        return FileKind.PARQUET
    if head.startswith(b"PK\x03\x04"):
        first = head[30 : 30 + int.from_bytes(head[26:28], "little")]  # the name of the first member
        if first.startswith(b"header."):
            marks = {
                b'"lptml-model"': FileKind.MODEL,
                b'"lptml-search': FileKind.CHECKPOINT,
                b'"lptml-proof': FileKind.PROOF,
            }
            for mark, kind in marks.items():
                if mark in head:
                    return kind
        return FileKind.ARRAYS if first.endswith(b".npy") else FileKind.OTHER
    if b'<meta name="generator" content="lptml ' in head:
        return FileKind.PAGE
    return FileKind.TEXT if _holds_rows(head) else FileKind.OTHER


def _holds_rows(head: bytes) -> bool:
    """Whether the first lines of a file have equally many cells: several, or one number each below a name."""
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)  # may end amid a character
        lines = [line for line in text.splitlines(keepends=True) if line.strip()][:20]
        if len(lines) > 1 and not lines[-1].endswith("\n"):
            lines.pop()  # may end amid a line
        rows = split_rows("", "".join(lines), guess_delimiter(lines[0]) if lines else ",")
    except (UnicodeDecodeError, InputError):
        return False
    widths = {len(row) for _, row in rows}
    if widths == {1}:
        return len(rows) > 1 and all(is_number(row[0]) for _, row in rows[1:])
    return len(widths) == 1


def _reason(problem: Exception) -> object:
    return getattr(problem, "strerror", None) or problem


@contextlib.contextmanager
def replacing(path: str) -> Iterator[Path]:
    """A temporary path whose content ``path`` has when the block ends well."""
    try:
        with _files.replacing(path) as temporary:
            yield temporary
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {_reason(problem)}; choose another place") from None


def write_text(path: str, text: str) -> None:
    """Write a text file atomically; ``-`` is standard output."""
    if path == "-":
        sys.stdout.write(visible(text, keep="\n\t") if sys.stdout.isatty() else text)
        sys.stdout.flush()  # a pipe that was closed says so here
        return
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def delimited_text(header: Sequence[str], columns: Sequence[Cells], delimiter: str = ",") -> str:
    """Columns as text; floats keep every digit they need and no more, formulas are text.

    >>> print(delimited_text(["name", "x"], [["=1+1", "-5"], [0.1, -2.0]]), end="")
    name,x
    '=1+1,0.1
    -5,-2.0
    """
    rows = [header, *zip(*(_cells(column) for column in columns))]
    return "".join(delimiter.join(written(cell, delimiter) for cell in row) + "\n" for row in rows)


def write_columns(path: str, header: Sequence[str], columns: Sequence[Cells]) -> None:
    """Write columns as CSV, TSV, Parquet or npz, by the name of the file; ``-`` is CSV on standard output."""
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".pq"):
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise OutputError(f"{path}: Parquet needs pyarrow: pip install 'lptml[cli]'") from None
        with replacing(path) as temporary:
            pq.write_table(pa.table({h: pa.array(list(c)) for h, c in zip(header, columns)}), temporary)
    elif suffix == ".npz":
        with replacing(path) as temporary, temporary.open("wb") as stream:
            arrays: dict[str, Any] = {h: np.asarray(c) for h, c in zip(header, columns)}
            np.savez_compressed(stream, **arrays)
    else:
        write_text(path, delimited_text(header, columns, "\t" if suffix in (".tsv", ".tab") else ","))


def _cells(column: Cells) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def plain(value: Any) -> Any:
    """A value that JSON can hold: arrays become lists, NaN and infinities become null.

    >>> plain({"a": np.float64("nan"), "b": np.arange(2)})
    {'a': None, 'b': [0, 1]}
    """
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def emit(
    result: dict[str, Any], *, as_json: bool, text: Callable[[], str], strong: Sequence[str] = ()
) -> None:
    """The result of a command: JSON for machines, otherwise text for people with some words ``strong``.

    Names and labels come from files, so control characters in them are written out.
    """
    if as_json:
        click.echo(json_line(result))
        return
    shown = visible(text(), keep="\n")
    for words in map(visible, strong):
        shown = shown.replace(words, click.style(words, bold=True), 1)
    click.echo(shown)


def json_line(value: Any) -> str:
    """A value as one line of JSON without control characters."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def note(message: str, *, quiet: bool = False, keep: str = "") -> None:
    """A message to the person at the terminal, on standard error."""
    if not quiet:
        say(visible(message, keep))
