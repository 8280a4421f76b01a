"""Data and clusters that the tests of the engines share. All clusters run on this machine's loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lptml.constraints.indexed_pairs import IndexedPairs


@dataclass(frozen=True)
class Pairs:
    """Pairs of labelled points of which 5% have the wrong label."""

    X: NDArray[np.float64]
    indices: NDArray[np.int64]
    y: NDArray[np.int64]
    weight: NDArray[np.float64]
    bounds: tuple[float, float] = (1.0, 1.0)

    def source(self, weighted: bool = False) -> IndexedPairs:
        weight = self.weight if weighted else None
        return IndexedPairs.from_indices(self.X, self.indices, self.y, bounds=self.bounds, weight=weight)


def make_pairs(n: int = 6000, d: int = 3, seed: int = 0) -> Pairs:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, d)) * np.linspace(1.0, 5.0, d)
    similar = X[:, 0] > 0
    indices = rng.integers(0, len(X), size=(n, 2))
    agree = similar[indices[:, 0]] == similar[indices[:, 1]]
    y = np.where(agree ^ (rng.random(n) < 0.05), 1, -1)
    return Pairs(X, indices, y, rng.random(n) + 0.1)


@pytest.fixture(scope="session")
def pairs() -> Pairs:
    return make_pairs()


@pytest.fixture(scope="session")
def expected(pairs: Pairs) -> Any:
    """What the local engine finds."""
    from lptml.search import algorithm2, search

    found = search(pairs.source(), max_trials=150, random_state=5)
    np.testing.assert_array_equal(found.A, algorithm2(pairs.source(), t=150, seed=5).metric)
    return found


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """Two worker processes of one thread each."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")  # a process has one session at a time, and other modules start others
def spark() -> Iterator[Any]:
    """A session on two cores of this machine, which runs a failed task again."""
    session = start_spark("local[2,4]")
    yield session
    session.stop()


def start_spark(master: str) -> Any:
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("lptml-tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
