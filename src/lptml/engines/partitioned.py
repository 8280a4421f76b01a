"""Constraints on a cluster, or in files larger than memory: where they come from.

Whatever they come from, ``search`` and ``learn`` take the result as their source. A folder of Parquet files
is laid out as

    folder/points.parquet (or points/*.parquet)    the features, and optionally ``key``
    folder/pairs/*.parquet (or pairs.parquet)      left, right, label, and optionally weight

with ``left`` and ``right`` row numbers of the points (or their keys) and ``label`` +1 or -1; or, without
points,

    folder/differences/*.parquet                   v0, v1, ..., label, and optionally weight
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml.engines import _passes
from lptml.engines._blocks import Layout, PointTable
from lptml.engines._partitions import Bounds, LocalMapper, PartitionedPairs, mapper_of, number
from lptml.engines._passes import Task
from lptml.engines.errors import PartitionError

__all__ = [
    "PartitionedPairs",
    "from_arrays",
    "from_dask",
    "from_json",
    "from_parquet",
    "from_spark",
    "json_to_parquet",
]

#: Rows of a partition: long enough to be worth a task, short enough to balance.
PART_ROWS = 1 << 21
_JSON_BYTES = 1 << 24


def from_parquet(
    folder: str, *, bounds: Bounds = "auto", engine: Any = "local", part_rows: int = PART_ROWS
) -> PartitionedPairs:
    """Pairs in a folder of Parquet files; the module's docstring says how it is laid out.

    Parameters
    ----------
    folder : path or URI
        On a file system that all workers see.
    bounds : "auto", float, (u, l) or ("percentile", a, b)
        See ``lptml.constraints.bounds.resolve_bounds``; percentiles are those of 131,072 sampled distances.
    engine : "local", "dask", "spark", a client, a session or an Engine
        Where the first passes, which count and check the rows, run.
    part_rows : int
        Rows of a partition, at least one row group. The result does not depend on it.
    """
    from lptml.engines import _readers

    base = str(folder).rstrip("/")
    names = {name: found for name in ("points", "pairs", "differences") if (found := _find(base, name))}
    if "pairs" in names and "points" in names:
        table: Callable[[], PointTable] | None = partial(_readers.read_points, names["points"])
        rows = names["pairs"]
    elif "differences" in names:
        table, rows = None, names["differences"]
    else:
        raise PartitionError(f"{base} must hold points and pairs, or differences; see from_parquet")
    parts, columns = _readers.parquet_parts(_readers.list_files(rows, (".parquet",)), part_rows)
    layout = _layout(columns, pairs=table is not None)
    return number(parts, layout, bounds, mapper_of(engine), table)


def _find(base: str, name: str) -> str | None:
    """A folder of this name, or the Parquet file."""
    from lptml.engines._readers import open_path

    for path in (f"{base}/{name}", f"{base}/{name}.parquet"):
        filesystem, inside = open_path(path)
        if filesystem.get_file_info(inside).type.name != "NotFound":
            return path
    return None


def _layout(columns: Sequence[str], pairs: bool) -> Layout:
    features: tuple[str, ...] = ()
    if not pairs:
        features = tuple(
            sorted((c for c in columns if c[:1] == "v" and c[1:].isdigit()), key=lambda c: int(c[1:]))
        )
        if not features:
            raise PartitionError(f"differences need columns v0, v1, ..., got {list(columns)}")
    layout = Layout(features=features, weighted="weight" in columns)
    missing = [name for name in layout.columns if name not in columns]
    if missing:
        raise PartitionError(f"column {missing[0]!r} is missing; there are {list(columns)}")
    return layout


def from_json(
    path: str, *, bounds: Bounds = "auto", engine: Any = "local", part_bytes: int = _JSON_BYTES
) -> PartitionedPairs:
    """Pairs in files of one JSON constraint a line: [point, point, "S" or "D"], optionally with a weight.

    Every pass parses the lines again; for more than a few million of them convert first
    (``json_to_parquet``).

    Parameters
    ----------
    path : file, folder or URI
        Files that end in .json, .jsonl or .txt.
    bounds, engine
        See ``from_parquet``.
    part_bytes : int
        Size of a partition. The result does not depend on it.
    """
    from lptml.engines import _readers

    parts = _readers.json_parts(_readers.list_files(str(path), (".json", ".jsonl", ".txt")), part_bytes)
    head = next((columns for part in parts for columns in part.columns()), None)
    if head is None:
        raise PartitionError(f"{path} holds no constraint")
    features = tuple(name for name in head if name[0] == "v" and name[1:].isdigit())
    return number(parts, Layout(features=features, weighted=True), bounds, mapper_of(engine))


def from_arrays(
    X: Any, indices: Any, y: Any, *, bounds: Bounds = "auto", weight: Any = None, n_parts: int = 1
) -> PartitionedPairs:
    """Pairs of rows of X in memory, cut into partitions: for tests, and to try things out."""
    from lptml.engines._readers import MemoryPart

    columns: Mapping[str, NDArray[Any]] = {
        "left": np.asarray(indices)[:, 0],
        "right": np.asarray(indices)[:, 1],
        "label": np.asarray(y),
    } | ({} if weight is None else {"weight": np.asarray(weight)})
    cuts = np.linspace(0, len(columns["label"]), n_parts + 1).astype(np.int64)
    parts = [MemoryPart({name: column[a:b] for name, column in columns.items()}) for a, b in pairwise(cuts)]
    layout = Layout(weighted=weight is not None)
    return number(parts, layout, bounds, LocalMapper(), _given_points(X))


def from_dask(
    rows: Any,
    points: Any = None,
    *,
    y: Any = None,
    weight: Any = None,
    bounds: Bounds = "auto",
    client: Any = None,
) -> PartitionedPairs:
    """Pairs in a Dask DataFrame or Array; their partitions stay on the cluster.

    Parameters
    ----------
    rows : dask.dataframe.DataFrame or dask.array.Array
        Columns left, right, label (and weight), with ``points``; or v0, v1, ..., label (and weight); or
        an array of difference vectors (n, d).
    points : DataFrame (pandas or Dask) or array of shape (N, d)
        The features, and optionally a column ``key``.
    y, weight : dask.array.Array
        Labels and weights when ``rows`` is an array.
    bounds
        See ``from_parquet``.
    client : distributed.Client or address
        The client that is current by default.
    """
    from lptml.engines import dask as cluster

    mapper = cluster.DaskMapper(cluster.DaskEngine(client))
    if hasattr(rows, "columns"):
        layout = _layout(list(rows.columns), pairs=points is not None)
        parts = cluster.frame_parts(rows[list(layout.columns)])
    elif y is None or points is not None or len(rows.shape) != 2:
        raise ValueError("an array must hold difference vectors, with their labels y and without points")
    else:
        features = tuple(f"v{k}" for k in range(int(rows.shape[1])))
        layout = Layout(features=features, weighted=weight is not None)
        parts = cluster.array_parts(rows, y, weight)
    table = None if points is None else _given_points(points)
    return number(parts, layout, bounds, mapper, table, moves=False)


def from_spark(rows: Any, points: Any = None, *, bounds: Bounds = "auto") -> PartitionedPairs:
    """Pairs in a Spark DataFrame, sorted once and then passed over by its own session.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        Columns left, right, label (and weight), with ``points``; or v0, v1, ..., label (and weight).
    points : DataFrame (pandas or Spark) or array of shape (N, d)
        The features, and optionally a column ``key``. Rows of a Spark DataFrame have no fixed order, so one
        needs the key.
    bounds
        See ``from_parquet``.
    """
    from lptml.engines.spark import FrameMapper

    layout = _layout(rows.columns, pairs=points is not None)
    if hasattr(points, "sparkSession"):
        if "key" not in points.columns:
            raise PartitionError("points in a Spark DataFrame need a column 'key'")
        points = points.orderBy("key").toPandas()
    table = None if points is None else _given_points(points)
    mapper = FrameMapper(rows, layout.columns)
    return number(mapper.parts, layout, bounds, mapper, table, moves=False)


def _given_points(points: Any) -> Callable[[], PointTable]:
    """A table that travels with the passes."""
    from lptml.engines._readers import frame_columns, points_table

    if hasattr(points, "compute"):
        points = points.compute()
    if hasattr(points, "columns"):
        return partial(_same, points_table(frame_columns(points, [str(name) for name in points.columns])))
    return partial(_same, PointTable.from_points(points))


def _same(table: PointTable) -> PointTable:
    return table


def json_to_parquet(path: str, folder: str, *, engine: Any = "local", part_bytes: int = _JSON_BYTES) -> int:
    """Write the constraints of ``from_json`` as a folder for ``from_parquet``; returns how many there are.

    Each partition becomes a file, written by the worker that parsed it; the order of constraints is kept.
    """
    from lptml.engines import _readers

    parts = _readers.json_parts(_readers.list_files(str(path), (".json", ".jsonl", ".txt")), part_bytes)
    target = f"{str(folder).rstrip('/')}/differences"
    filesystem, inside = _readers.open_path(target)
    filesystem.create_dir(inside, recursive=True)
    writers = [_readers.JsonToParquet(part, f"{target}/part-{k:06d}.parquet") for k, part in enumerate(parts)]
    task = Task(Layout(), _passes.count_rows, None, 0)
    return sum(mapper_of(engine).map([(writer, task) for writer in writers], None))
