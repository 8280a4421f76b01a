"""Results to files and to the terminal.

A file is written beside its place and moved there when it is whole, so whatever interrupts the work leaves
the old file or the new one.  Results go to standard output; messages and progress go to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from lptml import _files
from lptml.cli.errors import OutputError

Cells = list[Any] | np.ndarray[Any, Any]


def check_target(path: str) -> Path:
    """Where ``path`` leads, or an error: known before long work, not after it."""
    final = Path(os.path.realpath(path))
    if final.is_dir():
        raise OutputError(f"{path}: is a folder; name a file inside it")
    if not final.parent.is_dir():
        raise OutputError(f"{path}: cannot be written: there is no folder {final.parent}; make it first")
    if not os.access(final.parent, os.W_OK):
        raise OutputError(f"{path}: cannot be written: the folder {final.parent} is read-only")
    return final


@contextlib.contextmanager
def replacing(path: str) -> Iterator[Path]:
    """A temporary path in the folder of ``path`` that takes its place when the block ends well."""
    final = check_target(path)
    try:
        with _files.replacing(final) as temporary:
            yield temporary
    except OSError as problem:
        reason = problem.strerror or problem
        raise OutputError(f"{path}: cannot be written: {reason}; choose another place") from None


def write_text(path: str, text: str) -> None:
    """Write a text file atomically; ``-`` is standard output."""
    if path == "-":
        click.echo(text, nl=False)
        return
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def csv_text(header: Sequence[str], columns: Sequence[Cells]) -> str:
    """Columns as CSV; floats keep every digit they need and no more."""
    import csv
    import io

    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*(_cells(c) for c in columns)))
    return stream.getvalue()


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
        text = csv_text(header, columns)
        write_text(path, text if suffix not in (".tsv", ".tab") else _tabs(header, columns))


def _tabs(header: Sequence[str], columns: Sequence[Cells]) -> str:
    rows = [header, *zip(*(_cells(c) for c in columns))]
    return "".join("\t".join(str(cell).replace("\t", " ") for cell in row) + "\n" for row in rows)


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


def emit(result: dict[str, Any], *, as_json: bool, text: Callable[[], str]) -> None:
    """The result of a command: JSON for machines, otherwise text for people."""
    if as_json:
        click.echo(json.dumps(plain(result), ensure_ascii=False, allow_nan=False))
    else:
        click.echo(text())


def note(message: str, *, quiet: bool = False) -> None:
    """A message to the person at the terminal, on standard error."""
    if not quiet:
        click.echo(message, err=True)


@contextlib.contextmanager
def progress(label: str, *, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """A bar with the time left on a terminal; nothing elsewhere.  Yields ``advance(done, total)``."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        yield lambda done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def advance(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
