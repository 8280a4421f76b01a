from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lptml.constraints.counting import broken_weights, worst_rows
from lptml.engines import _readers
from lptml.engines.errors import PartitionError
from lptml.engines.partitioned import from_arrays, from_json, from_parquet, json_to_parquet
from lptml.learn import learn
from lptml.search import search
from lptml.search.engine import PartitionedSource
from lptml.search.sampling import Sample


def metrics(d: int, count: int = 3, seed: int = 1) -> Any:
    G = np.random.default_rng(seed).normal(size=(count, d, d))
    return np.einsum("kij,kil->kjl", G, G) / d


def write_folder(folder: Path, pairs: Any, *, files: int = 3, rows: int = 500, weighted: bool = False) -> str:
    """Points and pairs as Parquet, in several files of several row groups."""
    (folder / "pairs").mkdir(parents=True)
    d = pairs.X.shape[1]
    pq.write_table(pa.table({f"x{k}": pairs.X[:, k] for k in range(d)}), folder / "points.parquet")
    for k, part in enumerate(np.array_split(np.arange(len(pairs.y)), files)):
        columns = {
            "left": pairs.indices[part, 0].astype(np.int32),
            "right": pairs.indices[part, 1].astype(np.int32),
            "label": pairs.y[part].astype(np.int8),
        }
        if weighted:
            columns["weight"] = pairs.weight[part]
        pq.write_table(pa.table(columns), folder / "pairs" / f"part-{k}.parquet", row_group_size=rows)
    return str(folder)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_parts", [1, 7])
def test_every_count_is_that_of_the_pairs_in_memory(pairs: Any, weighted: bool, n_parts: int) -> None:
    here = pairs.source(weighted)
    parts = from_arrays(
        pairs.X,
        pairs.indices,
        pairs.y,
        bounds=pairs.bounds,
        weight=pairs.weight if weighted else None,
        n_parts=n_parts,
    )
    assert isinstance(parts, PartitionedSource)
    assert (parts.n, parts.d, parts.total_weight) == (here.n, here.d, here.total_weight)
    assert parts.trivial_costs() == here.trivial_costs()
    stack = metrics(here.d)
    np.testing.assert_array_equal(parts.cost(stack), here.cost(stack))
    assert parts.cost(stack[0]) == here.cost(stack[0])
    everything = here.take(np.arange(here.n))
    scales = np.geomspace(1e-3, 1e3, 40)[::-1]
    np.testing.assert_array_equal(
        parts.broken_weights(stack[0], scales), broken_weights(everything, stack[0], scales)
    )
    assert parts.best_scale(stack[0]).cost == pytest.approx(here.best_scale(stack[0]).cost, abs=0)
    assert parts.best_identity().cost == here.best_identity().cost
    index = np.random.default_rng(2).integers(0, here.n, 50)
    taken, empty = parts.take_batch([index, np.empty(0, dtype=np.int64)])
    for name in ("V", "sign", "bound", "weight"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(here.take(index), name))
    assert empty.n == 0


@pytest.mark.parametrize("size", [40, 900, 6000])
def test_the_worst_of_a_sample(pairs: Any, size: int) -> None:
    parts = from_arrays(pairs.X, pairs.indices, pairs.y, bounds=pairs.bounds, n_parts=5)
    here = pairs.source()
    A, B = metrics(here.d, 2)
    sample = Sample(here.n, size, key=11)
    found = parts.worst([(A, sample), (B, sample), (1e-9 * np.eye(here.d), sample)], 25)
    members = sample.indices()
    for metric, (index, rows) in zip((A, B, 1e-9 * np.eye(here.d)), found):
        worst, _ = worst_rows(here.take(members), metric, 25)
        np.testing.assert_array_equal(index, members[worst])
        np.testing.assert_array_equal(rows.V, here.take(index).V)
    [(index, rows)] = parts.worst([(1e12 * np.eye(here.d), Sample(here.n, 0, key=1))], 5)
    assert len(index) == rows.n == 0


@pytest.mark.parametrize("part_rows", [1, 1100, 10**6])
def test_a_folder_of_parquet_finds_the_metric_of_the_pairs_in_memory(
    pairs: Any, expected: Any, tmp_path: Path, part_rows: int
) -> None:
    folder = write_folder(tmp_path / "data", pairs)
    source = from_parquet(folder, bounds=pairs.bounds, part_rows=part_rows)
    found = search(source, max_trials=150, random_state=5, n_jobs=2)
    assert found.cost == expected.cost
    np.testing.assert_array_equal(found.A, expected.A)


def test_learning_from_partitions_refines_and_counts_all_of_them(pairs: Any) -> None:
    one, many = (
        learn(
            from_arrays(pairs.X, pairs.indices, pairs.y, bounds=pairs.bounds, n_parts=parts),
            max_trials=20,
            random_state=0,
        )
        for parts in (1, 6)
    )
    np.testing.assert_array_equal(one.A, many.A)
    assert many.cost == pairs.source().cost(many.A) < many.trivial_cost


def test_weights_and_bounds_by_percentile_from_parquet(pairs: Any, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", pairs, weighted=True)
    source = from_parquet(folder, bounds=("percentile", 10, 90))
    V = pairs.source().take(np.arange(len(pairs.y))).V
    u, l = np.percentile(np.sqrt(np.einsum("ij,ij->i", V, V)), [10, 90])
    assert source.bounds == pytest.approx((u, l))
    assert source.total_weight == pairs.source(weighted=True).total_weight


@pytest.mark.parametrize("keys", [np.arange(200) * 7 + 3, np.array([f"point {k}" for k in range(200)])])
def test_points_by_key(pairs: Any, tmp_path: Path, keys: Any) -> None:
    (tmp_path / "pairs").mkdir()
    order = np.random.default_rng(0).permutation(len(keys))
    points = pd.DataFrame(pairs.X[order], columns=["a", "b", "c"])
    points["key"] = keys[order]
    points.to_parquet(tmp_path / "points.parquet")
    rows = pd.DataFrame({"left": keys[pairs.indices[:, 0]], "right": keys[pairs.indices[:, 1]]})
    rows["label"] = pairs.y > 0
    rows.to_parquet(tmp_path / "pairs" / "0.parquet")
    source = from_parquet(str(tmp_path), bounds=pairs.bounds)
    stack = metrics(3)
    np.testing.assert_array_equal(source.cost(stack), pairs.source().cost(stack))


def write_lines(path: Path, pairs: Any, weighted: bool = False) -> None:
    with path.open("w") as file:
        for (i, j), y, weight in zip(pairs.indices, pairs.y, pairs.weight):
            line = [pairs.X[i].tolist(), pairs.X[j].tolist(), "S" if y > 0 else "D"]
            file.write(json.dumps([*line, weight] if weighted else line) + "\n")


@pytest.mark.parametrize("part_bytes", [9000, 77_777, 1 << 24])
def test_one_json_constraint_a_line(pairs: Any, tmp_path: Path, part_bytes: int) -> None:
    write_lines(tmp_path / "pairs.jsonl", pairs, weighted=True)
    source = from_json(str(tmp_path), bounds=pairs.bounds, part_bytes=part_bytes)
    here = pairs.source(weighted=True)
    stack = metrics(3)
    assert source.n == here.n
    np.testing.assert_array_equal(source.cost(stack), here.cost(stack))
    np.testing.assert_allclose(source.take(np.arange(9)).V, here.take(np.arange(9)).V, atol=1e-12)


def test_lines_become_parquet_and_stay_in_order(pairs: Any, tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.jsonl", pairs)
    lines = from_json(str(tmp_path / "pairs.jsonl"), bounds=pairs.bounds)
    count = json_to_parquet(str(tmp_path / "pairs.jsonl"), str(tmp_path / "table"), part_bytes=50_000)
    files = from_parquet(str(tmp_path / "table"), bounds=pairs.bounds)
    assert count == files.n == lines.n
    assert len(files.parts) > 3
    assert not list((tmp_path / "table").rglob("*.tmp"))
    found = [search(source, max_trials=30, random_state=1).A for source in (lines, files)]
    np.testing.assert_array_equal(*found)


def test_duplicated_constraints_tie_the_same_way_in_every_partition() -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    indices = rng.integers(0, 40, size=(5000, 2))
    y = rng.choice([-1, 1], 5000)
    found = [
        search(from_arrays(X, indices, y, bounds=(1.0, 1.0), n_parts=parts), max_trials=40, random_state=0).A
        for parts in (1, 2, 33)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_values_do_not_depend_on_the_block(pairs: Any) -> None:
    A = metrics(3, 1)[0]
    for features in (False, True):
        columns = {"label": pairs.y, "left": pairs.indices[:, 0], "right": pairs.indices[:, 1]}
        layout = _readers.Layout()
        table = _readers.PointTable.from_points(pairs.X)
        if features:
            V = pairs.source().take(np.arange(len(pairs.y))).V
            columns = {"label": pairs.y} | {f"v{k}": V[:, k] for k in range(3)}
            layout = _readers.Layout(features=("v0", "v1", "v2"))
        whole = layout.block(columns, table).values(A)
        for size in (1, 3, 64):
            pieces = [
                layout.block({name: c[k : k + size] for name, c in columns.items()}, table).values(A)
                for k in range(0, 200, size)
            ]
            np.testing.assert_array_equal(np.concatenate(pieces)[:200], whole[:200])


class Shrinking:
    """A partition that loses a row after it was numbered."""

    def __init__(self, rows: dict[str, Any]) -> None:
        self.rows, self.reads = rows, 0

    def blocks(self, layout: Any, table: Any) -> Any:
        self.reads += 1
        rows = {name: column[self.reads > 2 :] for name, column in self.rows.items()}
        return _readers.slices(rows, layout, table)


def test_a_partition_that_changes_is_noticed(pairs: Any) -> None:
    from lptml.engines._partitions import LocalMapper, number

    part = Shrinking({"left": pairs.indices[:, 0], "right": pairs.indices[:, 1], "label": pairs.y})
    table = _readers.PointTable.from_points(pairs.X)
    source = number([part], _readers.Layout(), (1.0, 1.0), LocalMapper(), lambda: table)
    with pytest.raises(PartitionError, match="had 6000 rows and now has 5999"):
        source.cost(np.eye(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": [0, 200]}, "names point 200, but there are points 0 to 199"),
        ({"left": [0, -1]}, "names point -1"),
        ({"left": [0.5, 1.0]}, "must hold row numbers"),
        ({"label": [1, 0]}, r"\+1 \(similar\) and -1 \(dissimilar\) only, found .*0"),
        ({"weight": [1.0, -2.0]}, "not negative"),
        ({"weight": [1.0, np.inf]}, "not negative"),
        ({"weight": [1.0, np.nan]}, "column .weight. has missing values"),
        ({"weight": [0.0, 0.0]}, "zero everywhere"),
        ({"left": pd.array([0, None], dtype="Int64")}, "column 'left' has missing values"),
        ({"label": None}, "column 'label' is missing"),
    ],
)
def test_what_cannot_be_used_is_named(pairs: Any, tmp_path: Path, change: Any, message: str) -> None:
    rows: dict[str, Any] = {"left": [0, 1], "right": [2, 3], "label": [1, -1]} | change
    (tmp_path / "pairs").mkdir()
    frame = pd.DataFrame({name: column for name, column in rows.items() if column is not None})
    frame.to_parquet(tmp_path / "pairs" / "0.parquet")
    pd.DataFrame(pairs.X, columns=list("abc")).to_parquet(tmp_path / "points.parquet")
    with pytest.raises(PartitionError, match=message):
        from_parquet(str(tmp_path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[[1, 2], [3], 'S']", "expected"),
        ('[[1, 2], [3], "S"]', "expected"),
        ('[[1, 2], [3, 4], "X"]', "expected"),
        ('[[1], [3], "S"]', "features"),
        ('{"left": 1}', "expected"),
        ('[[1, 2], [NaN, 4], "S"]', "NaN"),
    ],
)
def test_lines_that_are_no_constraint(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "x.jsonl").write_text(f'[[0, 1], [1, 0], "D"]\n\n{line}\n')
    with pytest.raises(PartitionError, match=message):
        from_json(str(tmp_path / "x.jsonl"))


def test_folders_without_data(tmp_path: Path) -> None:
    with pytest.raises(PartitionError, match="must hold points and pairs"):
        from_parquet(str(tmp_path))
    with pytest.raises(PartitionError, match="no file or folder"):
        from_json(str(tmp_path / "nowhere"))
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(PartitionError, match="holds no constraint"):
        from_json(str(tmp_path))
