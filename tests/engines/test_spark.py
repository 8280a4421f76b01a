from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lptml.engines.errors import PartitionError
from lptml.engines.partitioned import from_arrays, from_json, from_parquet, from_spark
from lptml.search import search

pytestmark = pytest.mark.spark


def rows_of(pairs: Any) -> pd.DataFrame:
    rows = pd.DataFrame(pairs.indices, columns=["left", "right"])
    rows["label"] = pairs.y
    return rows


def test_same_metric_as_the_local_engine(pairs: Any, expected: Any, spark: Any) -> None:
    found = search(pairs.source(), max_trials=150, random_state=5, engine=spark)
    np.testing.assert_array_equal(found.A, expected.A)
    assert (found.cost, found.n_trials, found.n_infeasible) == (
        expected.cost,
        expected.n_trials,
        expected.n_infeasible,
    )


def test_same_metric_from_partitions_that_executors_read(
    pairs: Any, expected: Any, spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "pairs").mkdir()
    pd.DataFrame(pairs.X, columns=["a", "b", "c"]).to_parquet(tmp_path / "points.parquet")
    rows_of(pairs).to_parquet(tmp_path / "pairs" / "0.parquet", row_group_size=700)
    source = from_parquet(f"file://{tmp_path}", bounds=pairs.bounds, engine=spark, part_rows=1500)
    found = search(source, max_trials=150, random_state=5, engine=spark)
    np.testing.assert_array_equal(found.A, expected.A)


def test_a_spark_dataframe_gives_one_metric_however_it_is_cut(pairs: Any, spark: Any) -> None:
    rows = rows_of(pairs)
    points = pd.DataFrame(pairs.X, columns=["a", "b", "c"])
    ordered = rows.sort_values(["left", "right", "label"]).to_numpy()
    local = from_arrays(pairs.X, ordered[:, :2], ordered[:, 2], bounds=pairs.bounds)
    expected = search(local, max_trials=60, random_state=5)
    for cut in (1, 4):
        source = from_spark(spark.createDataFrame(rows).repartition(cut), points, bounds=pairs.bounds)
        assert source.n == len(rows)
        np.testing.assert_array_equal(source.take(np.arange(500)).V, local.take(np.arange(500)).V)
        found = search(source, max_trials=60, random_state=5, engine=spark)
        np.testing.assert_array_equal(found.A, expected.A)


def test_points_in_a_spark_dataframe_go_by_key(pairs: Any, spark: Any) -> None:
    points = pd.DataFrame(pairs.X, columns=["a", "b", "c"])
    with pytest.raises(PartitionError, match="need a column 'key'"):
        from_spark(spark.createDataFrame(rows_of(pairs)), spark.createDataFrame(points))
    points["key"] = np.arange(len(points))
    source = from_spark(
        spark.createDataFrame(rows_of(pairs)), spark.createDataFrame(points), bounds=pairs.bounds
    )
    A = np.diag([1.0, 0.1, 0.2])
    assert source.cost(A) == pairs.source().cost(A)


def test_errors_of_a_pass_arrive_as_what_they_are(pairs: Any, spark: Any, tmp_path: Path) -> None:
    rows = rows_of(pairs)
    rows.loc[4000, "left"] = 900
    with pytest.raises(PartitionError, match="names point 900"):
        from_spark(spark.createDataFrame(rows), pairs.X)
    (tmp_path / "bad.jsonl").write_text('[[0, 1], [1, 0], "D"]\n[[0, 1], [1, 0], "E"]\n')
    with pytest.raises(PartitionError, match="expected"):
        from_json(str(tmp_path), engine=spark)


def test_a_unit_that_raises_runs_again_and_at_last_ends_the_search(
    pairs: Any, expected: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lptml.engines import spark as module

    honest = module.on_one_core
    marks = tmp_path / "raised"
    marks.mkdir()

    def sometimes(problem: Any, unit: Any) -> Any:
        mark = marks / str(unit.first)
        if unit.first % 3 == 0 and not mark.exists():
            mark.touch()
            raise MemoryError("just this once")
        return honest(problem, unit)

    monkeypatch.setattr(module, "on_one_core", sometimes)
    found = search(pairs.source(), max_trials=150, random_state=5, engine=spark)
    np.testing.assert_array_equal(found.A, expected.A)
    assert list(marks.iterdir())

    def always(problem: Any, unit: Any) -> Any:
        raise ZeroDivisionError("in every unit")

    monkeypatch.setattr(module, "on_one_core", always)
    with pytest.raises(ZeroDivisionError, match="in every unit"):
        search(pairs.source(), max_trials=30, random_state=5, engine=spark)
