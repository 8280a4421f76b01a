"""Partitions in files: Parquet, and one JSON constraint a line.

A partition is named by file and place, so that any worker can read it, now or again after another one died.
The order of constraints is that of the file names and of the rows in each file, however the files are cut
into partitions.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lptml.engines._blocks import ROWS, Block, Layout, PointTable
from lptml.engines.errors import PartitionError

_READ_ROWS = 1 << 20  # rows in memory at a time
_LINES = 1 << 12


def open_path(path: str) -> tuple[Any, str]:
    """The file system of a path or URI (file, s3, gs, hdfs) and the path on it."""
    if "://" in path:
        filesystem, inside = pafs.FileSystem.from_uri(path)
        return filesystem, inside
    return pafs.LocalFileSystem(), path


def list_files(path: str, endings: tuple[str, ...]) -> list[str]:
    """The files of a folder (or the file itself), by name; those that begin with '.' or '_' are not data."""
    filesystem, inside = open_path(path)
    prefix = path[: len(path) - len(inside)] if path.endswith(inside) else ""
    kind = filesystem.get_file_info(inside)
    if kind.type == pafs.FileType.NotFound:
        raise PartitionError(f"there is no file or folder {path}")
    if kind.type == pafs.FileType.File:
        return [path]
    found = filesystem.get_file_info(pafs.FileSelector(inside, recursive=True))
    files = [
        prefix + entry.path
        for entry in found
        if entry.type == pafs.FileType.File
        and entry.base_name.endswith(endings)
        and not any(piece.startswith((".", "_")) for piece in entry.path[len(inside) :].split("/"))
    ]
    if not files:
        raise PartitionError(f"{path} holds no file that ends in {' or '.join(endings)}")
    return sorted(files)


def slices(columns: Mapping[str, NDArray[Any]], layout: Layout, table: PointTable | None) -> Iterator[Block]:
    """Blocks of rows held in memory."""
    n = len(columns["label"])
    for start in range(0, n, ROWS):
        yield layout.block({name: column[start : start + ROWS] for name, column in columns.items()}, table)


def arrow_columns(batch: Any, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Columns of an Arrow batch or table as arrays, without missing values."""
    columns = {}
    for name in names:
        column = batch.column(name)
        if column.null_count:
            raise PartitionError(f"column {name!r} has missing values")
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        columns[name] = column.to_numpy(zero_copy_only=False)
    return columns


def frame_columns(frame: Any, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Columns of a pandas DataFrame as arrays, without missing values."""
    columns = {}
    for name in names:
        column = frame[name]
        if column.isna().any():
            raise PartitionError(f"column {name!r} has missing values")
        columns[name] = column.to_numpy()
    return columns


@dataclass(frozen=True, eq=False)
class MemoryPart:
    """Rows at hand: a pandas DataFrame or a mapping of arrays."""

    rows: Any

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        if not isinstance(self.rows, Mapping):
            return slices(frame_columns(self.rows, layout.columns), layout, table)
        return slices(self.rows, layout, table)


@dataclass(frozen=True)
class ParquetPart:
    """Some row groups of a Parquet file."""

    path: str
    row_groups: tuple[int, ...]

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        filesystem, inside = open_path(self.path)
        with filesystem.open_input_file(inside) as raw, pq.ParquetFile(raw) as file:
            batches = file.iter_batches(
                batch_size=_READ_ROWS, row_groups=list(self.row_groups), columns=list(layout.columns)
            )
            for batch in batches:
                yield from slices(arrow_columns(batch, layout.columns), layout, table)


def parquet_parts(files: Sequence[str], rows: int) -> tuple[list[ParquetPart], list[str]]:
    """Partitions of about so many rows, and the columns; only the files' footers are read."""
    parts = []
    columns: list[str] | None = None
    for path in files:
        filesystem, inside = open_path(path)
        with filesystem.open_input_file(inside) as raw:
            metadata = pq.read_metadata(raw)
        names = metadata.schema.to_arrow_schema().names
        if columns is None:
            columns = names
        elif set(names) != set(columns):
            raise PartitionError(f"{path} has the columns {names}, {files[0]} has {columns}")
        group: list[int] = []
        held = 0
        for k in range(metadata.num_row_groups):
            size = metadata.row_group(k).num_rows
            if group and held + size > rows:
                parts.append(ParquetPart(path, tuple(group)))
                group, held = [], 0
            group.append(k)
            held += size
        if group:
            parts.append(ParquetPart(path, tuple(group)))
    return parts, columns or []


@dataclass(frozen=True)
class JsonPart:
    """The lines that begin within a range of bytes of a file.

    A line is [p, q, "S"] or [p, q, "D"], p and q being points, as the paper's own MapReduce program reads
    them; a fourth entry is a weight.
    """

    path: str
    start: int
    stop: int

    def lines(self) -> Iterator[bytes]:
        filesystem, inside = open_path(self.path)
        with io.BufferedReader(filesystem.open_input_file(inside)) as file:
            if self.start:
                file.seek(self.start - 1)
                file.readline()  # this line begins in the range before, unless the byte before is its end
            while file.tell() < self.stop:
                line = file.readline()
                if not line:
                    return
                if line.strip():
                    yield line

    def columns(self) -> Iterator[dict[str, NDArray[Any]]]:
        batch: list[bytes] = []
        for line in self.lines():
            batch.append(line)
            if len(batch) == _LINES:
                yield self._parse(batch)
                batch = []
        if batch:
            yield self._parse(batch)

    def _parse(self, lines: list[bytes]) -> dict[str, NDArray[Any]]:
        vectors, labels, weights = [], [], []
        for line in lines:
            try:
                p, q, kind, *weight = json.loads(line)
                vectors.append([a - b for a, b in zip(p, q, strict=True)])
                labels.append({"S": 1, "D": -1}[kind])
                weights.append(float(weight[0]) if weight else 1.0)
            except (ValueError, TypeError, KeyError) as error:
                raise PartitionError(
                    f'{self.path}: expected [point, point, "S" or "D"] on a line, got {line[:80]!r} ({error})'
                ) from None
        widths = {len(vector) for vector in vectors}
        if len(widths) > 1:
            raise PartitionError(f"{self.path}: points of {sorted(widths)} features in one file")
        V = np.array(vectors, dtype=np.float64)  # (lines, d)
        columns: dict[str, NDArray[Any]] = {f"v{k}": V[:, k] for k in range(V.shape[1])}
        columns["label"] = np.array(labels, dtype=np.int8)
        columns["weight"] = np.array(weights)
        return columns

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        for columns in self.columns():
            missing = [name for name in layout.columns if name not in columns]
            if missing or len(columns) != len(layout.features) + 2:
                found = len(columns) - 2
                raise PartitionError(f"{self.path}: expected {len(layout.features)} features, found {found}")
            yield layout.block(columns, table)


@dataclass(frozen=True)
class JsonToParquet:
    """A partition that is written to a Parquet file as it is read."""

    source: JsonPart
    target: str

    def blocks(self, layout: Layout, table: PointTable | None) -> Iterator[Block]:
        writer = None
        filesystem, inside = open_path(self.target)
        # Written under another name first: a worker that dies leaves no half file, and two may run at once.
        beside = f"{inside}.{uuid.uuid4().hex}.tmp"
        try:
            for columns in self.source.columns():
                batch = pa.table(columns)
                if writer is None:
                    writer = pq.ParquetWriter(beside, batch.schema, filesystem=filesystem)
                writer.write_table(batch)
                features = tuple(name for name in columns if name not in ("label", "weight"))
                yield Layout(features=features, weighted=True).block(columns, table)
        finally:
            if writer is not None:
                writer.close()
        if writer is not None:
            filesystem.move(beside, inside)


def json_parts(files: Sequence[str], size: int) -> list[JsonPart]:
    """Partitions of about so many bytes."""
    parts = []
    for path in files:
        filesystem, inside = open_path(path)
        length = filesystem.get_file_info(inside).size
        parts += [JsonPart(path, start, min(start + size, length)) for start in range(0, length, size)]
    return parts


def read_points(path: str) -> PointTable:
    """The table of points: numeric columns, and ``key`` if pairs refer to points by key."""
    tables = []
    for name in list_files(path, (".parquet",)):
        filesystem, inside = open_path(name)
        with filesystem.open_input_file(inside) as raw:
            tables.append(pq.read_table(raw))
    points = pa.concat_tables(tables)
    return points_table(arrow_columns(points, points.column_names))


def points_table(columns: Mapping[str, NDArray[Any]]) -> PointTable:
    """The table of points from its columns."""
    features = [name for name in columns if name != "key"]
    if not features:
        raise PartitionError("the table of points has no feature")
    wrong = [name for name in features if columns[name].dtype.kind not in "fiub"]
    if wrong:
        raise PartitionError(f"points must hold numbers; column {wrong[0]!r} does not")
    X = np.column_stack([np.asarray(columns[name], dtype=np.float64) for name in features])
    return PointTable.from_points(X, columns.get("key"))
