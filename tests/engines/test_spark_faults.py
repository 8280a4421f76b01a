"""Executors, masters and drivers of real Spark clusters, killed in mid-run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lptml.engines.errors import EngineLost
from lptml.engines.partitioned import from_arrays
from lptml.search import search

psutil = pytest.importorskip("psutil")
pytestmark = [pytest.mark.spark, pytest.mark.faults]

_CONFIG = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.excludeOnFailure.enabled": "false",
}


def start(master: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("lptml-faults")
    for name, value in _CONFIG.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A standalone master and two workers, from PySpark's own package; the master's address and pid."""
    pyspark = pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("spark")
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable,
    }
    started: list[subprocess.Popen[bytes]] = []

    def launch(name: str, *arguments: str) -> Path:
        log = folder / f"{len(started)}.log"
        with log.open("wb") as file:
            command = [str(script), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
            started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=file))
        return log

    log = launch("master.Master", "--port", "0", "--webui-port", "0")
    address = None
    for _ in range(600):
        match = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
        if match:
            address = match[1]
            break
        time.sleep(0.2)
    assert address is not None, log.read_text()
    for _ in range(2):
        launch("worker.Worker", "--webui-port", "0", "--cores", "1", "--memory", "1g", address)
    yield {"address": address, "master": started[0].pid}
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="module")
def cluster(processes: dict[str, Any]) -> Iterator[Any]:
    session = start(processes["address"])
    yield session
    session.stop()


def executors(session: Any) -> list[int]:
    """Process ids of the executors: the nearest Java ancestors of the processes that run tasks."""

    def ancestor(_: Any) -> Iterator[int]:
        import psutil

        yield next(p.pid for p in psutil.Process().parents() if p.name() == "java")

    context = session.sparkContext
    return sorted(set(context.parallelize(range(8), 8).mapPartitions(ancestor).collect()))


def kill_at(trial: int, pids: list[int]) -> Callable[[Any], None]:
    killed: list[int] = []

    def callback(progress: Any) -> None:
        if progress.n_trials >= trial and not killed:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            killed.extend(pids)

    return callback


@pytest.mark.parametrize("run", range(10))
def test_a_killed_executor_costs_nothing(pairs: Any, expected: Any, cluster: Any, run: int) -> None:
    callback = kill_at(5 + 12 * run, executors(cluster)[:1])
    found = search(pairs.source(), max_trials=150, random_state=5, engine=cluster, callback=callback)
    np.testing.assert_array_equal(found.A, expected.A)
    assert found.n_trials == 150


def test_an_executor_killed_before_a_pass_over_partitions(pairs: Any, expected: Any, cluster: Any) -> None:
    source = from_arrays(pairs.X, pairs.indices, pairs.y, bounds=pairs.bounds, n_parts=4)
    callback = kill_at(1, executors(cluster)[:1])
    found = search(source, max_trials=150, random_state=5, engine=cluster, callback=callback)
    np.testing.assert_array_equal(found.A, expected.A)


def test_a_master_that_goes_away_leaves_the_application_running(
    pairs: Any, expected: Any, cluster: Any, processes: dict[str, Any]
) -> None:
    """Executors talk to the driver: a standalone master is needed to give out new ones only."""
    callback = kill_at(20, [processes["master"]])
    found = search(pairs.source(), max_trials=150, random_state=5, engine=cluster, callback=callback)
    np.testing.assert_array_equal(found.A, expected.A)


_DRIVER_DIES = """
import os, signal, sys, time
import numpy as np
sys.path.insert(0, {here!r})
import conftest
from lptml.engines.errors import EngineLost
from lptml.search import search

session = conftest.start_spark("local[2,4]")
gateway = session.sparkContext._gateway.proc.pid
checkpoint = {checkpoint!r}
seen = []

def callback(progress):
    if progress.n_trials >= 20 and not seen:
        time.sleep(1.1)
        seen.append(1)
    elif seen and os.path.exists(checkpoint):
        os.kill(gateway, signal.SIGKILL)

try:
    search(conftest.make_pairs().source(), max_trials=150, random_state=5, engine=session, callback=callback,
           checkpoint=checkpoint)
except EngineLost as error:
    print("lost:", error)
    sys.exit(7)
sys.exit(0)
"""


def test_a_driver_that_dies_is_named_and_the_checkpoint_goes_on(
    pairs: Any, expected: Any, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark")
    checkpoint = tmp_path / "search.npz"
    code = _DRIVER_DIES.format(here=str(Path(__file__).parent), checkpoint=str(checkpoint))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert done.returncode == 7, done.stdout + done.stderr[-2000:]
    assert "the Spark application at local[2,4] went away" in done.stdout
    found = search(pairs.source(), max_trials=150, random_state=5, checkpoint=checkpoint)
    np.testing.assert_array_equal(found.A, expected.A)
    assert issubclass(EngineLost, RuntimeError)
