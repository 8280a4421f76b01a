from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from lptml import LPTML
from lptml.engines import make_engine
from lptml.engines.dask import DaskEngine
from lptml.engines.errors import EngineLost, PartitionError
from lptml.engines.partitioned import from_arrays, from_dask, from_parquet
from lptml.search import search
from lptml.search.engine import Engine


def frames(pairs: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = pd.DataFrame(pairs.indices, columns=["left", "right"])
    rows["label"] = pairs.y
    return rows, pd.DataFrame(pairs.X, columns=["a", "b", "c"])


def test_same_metric_as_the_local_engine(pairs: Any, expected: Any, client: Any) -> None:
    found = search(pairs.source(), max_trials=150, random_state=5, engine=client)
    np.testing.assert_array_equal(found.A, expected.A)
    assert (found.cost, found.n_trials, found.n_infeasible) == (
        expected.cost,
        expected.n_trials,
        expected.n_infeasible,
    )


def test_same_metric_from_partitions(pairs: Any, expected: Any, client: Any) -> None:
    source = from_arrays(pairs.X, pairs.indices, pairs.y, bounds=pairs.bounds, n_parts=4)
    found = search(source, max_trials=150, random_state=5, engine=client)
    np.testing.assert_array_equal(found.A, expected.A)
    assert found.cost == expected.cost


@pytest.mark.parametrize("npartitions", [1, 5])
def test_same_metric_from_a_dask_dataframe(pairs: Any, expected: Any, client: Any, npartitions: int) -> None:
    rows, points = frames(pairs)
    source = from_dask(
        dd.from_pandas(rows, npartitions=npartitions), points, bounds=pairs.bounds, client=client
    )
    assert len(source.parts) == npartitions
    found = search(source, max_trials=150, random_state=5, engine=client)
    np.testing.assert_array_equal(found.A, expected.A)


def test_dask_arrays_of_difference_vectors(pairs: Any, client: Any) -> None:
    here = pairs.source(weighted=True)
    V = here.take(np.arange(here.n)).V
    source = from_dask(
        da.from_array(V, chunks=(1500, 2)),
        y=da.from_array(pairs.y, chunks=2000),
        weight=da.from_array(pairs.weight, chunks=1500),
        bounds=pairs.bounds,
        client=client,
    )
    A = np.diag([1.0, 0.1, 0.2])
    assert source.cost(A) == here.cost(A)
    assert source.total_weight == here.total_weight
    with pytest.raises(ValueError, match="labels y"):
        from_dask(da.from_array(V), client=client)


def test_parquet_is_read_by_the_workers(pairs: Any, expected: Any, client: Any, tmp_path: Path) -> None:
    rows, points = frames(pairs)
    (tmp_path / "pairs").mkdir()
    points.to_parquet(tmp_path / "points.parquet")
    rows.to_parquet(tmp_path / "pairs" / "0.parquet", row_group_size=700)
    source = from_parquet(str(tmp_path), bounds=pairs.bounds, engine=client, part_rows=1000)
    found = search(source, max_trials=150, random_state=5, engine=client)
    np.testing.assert_array_equal(found.A, expected.A)


def test_errors_of_a_pass_arrive_as_what_they_are(pairs: Any, client: Any) -> None:
    rows, points = frames(pairs)
    rows = rows.copy()  # the frame may share the memory of the pairs
    rows.loc[4000, "left"] = 900
    with pytest.raises(PartitionError, match="names point 900"):
        from_dask(dd.from_pandas(rows, npartitions=3), points, client=client)


def test_engines_by_name_address_and_object(client: Any) -> None:
    assert isinstance(make_engine(client), DaskEngine)
    assert isinstance(make_engine(client), Engine)
    by_address = make_engine(client.scheduler.address)
    assert isinstance(by_address, DaskEngine)
    assert by_address.client.scheduler.address == client.scheduler.address
    with client.as_current():
        assert DaskEngine().client is client
    with pytest.raises(ValueError, match="engine must be one of"):
        make_engine("hadoop")
    soon = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with soon, pytest.raises(EngineLost, match="no Dask scheduler at"):
        DaskEngine("tcp://127.0.0.1:1").client.nthreads()


def test_an_estimator_runs_on_an_engine_and_can_be_cloned(pairs: Any, client: Any) -> None:
    points = pairs.X[pairs.indices[:800]]
    learner = LPTML(engine=DaskEngine(client), max_trials=20, refine=False, random_state=0)
    found = clone(learner).fit(points, pairs.y[:800])
    local = LPTML(max_trials=20, refine=False, random_state=0).fit(points, pairs.y[:800])
    np.testing.assert_array_equal(found.components_, local.components_)


def _raise_once(dask_worker: Any) -> None:
    """In a worker: the next unit raises, the others do not."""
    from lptml.engines import _worker

    honest = _worker.run_unit

    def once(*arguments: Any) -> Any:
        _worker.run_unit = honest
        raise MemoryError("just this once")

    _worker.run_unit = once


def _raise_always(dask_worker: Any) -> None:
    from lptml.engines import _worker

    dask_worker.honest = _worker.run_unit

    def always(*arguments: Any) -> Any:
        raise ZeroDivisionError("in every unit")

    _worker.run_unit = always


def _restore(dask_worker: Any) -> None:
    from lptml.engines import _worker

    _worker.run_unit = dask_worker.honest


def test_a_unit_that_raises_runs_again(pairs: Any, expected: Any, client: Any) -> None:
    client.run(_raise_once)
    found = search(pairs.source(), max_trials=150, random_state=5, engine=client)
    np.testing.assert_array_equal(found.A, expected.A)


def test_a_unit_that_always_raises_ends_the_search_with_its_error(pairs: Any, client: Any) -> None:
    client.run(_raise_always)
    try:
        with pytest.raises(ZeroDivisionError, match="in every unit"):
            search(pairs.source(), max_trials=30, random_state=5, engine=client)
    finally:
        client.run(_restore)


def test_a_worker_that_joins_gets_units(pairs: Any, client: Any) -> None:
    trials = 6000  # enough that units are left when the worker is there
    alone = search(pairs.source(), max_trials=trials, random_state=5)
    cluster = client.cluster
    before = set(client.nthreads())

    def grow(progress: Any) -> None:
        if progress.n_trials < 60 and len(client.nthreads()) == len(before):
            cluster.scale(len(before) + 1)
            client.wait_for_workers(len(before) + 1, timeout=60)

    try:
        found = search(pairs.source(), max_trials=trials, random_state=5, engine=client, callback=grow)
        np.testing.assert_array_equal(found.A, alone.A)
        [new] = set(client.nthreads()) - before
        done = client.run(lambda dask_worker: dask_worker.state.executed_count, workers=[new])
        assert done[new] > 0
    finally:
        cluster.scale(len(before))
