"""Workers and schedulers of real clusters, killed in mid-run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

from lptml.engines.errors import EngineLost
from lptml.engines.partitioned import from_arrays
from lptml.search import SearchStatus, search

pytestmark = pytest.mark.faults


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two worker processes, for one test: a killed one may need longer to come back than a test takes."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def kill_at(client: Any, trial: int, victims: int = 1) -> Callable[[Any], None]:
    """A callback that kills workers with SIGKILL once the search has come to a trial."""
    killed: list[int] = []

    def callback(progress: Any) -> None:
        if progress.n_trials >= trial and not killed:
            killed.extend(list(client.run(os.getpid).values())[:victims])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    return callback


@pytest.mark.parametrize("run", range(10))
def test_a_killed_worker_costs_nothing(pairs: Any, expected: Any, cluster: Any, run: int) -> None:
    callback = kill_at(cluster, 10 + 12 * run)
    found = search(pairs.source(), max_trials=150, random_state=5, engine=cluster, callback=callback)
    np.testing.assert_array_equal(found.A, expected.A)
    assert found.n_trials == 150


def test_all_workers_killed_at_once(pairs: Any, expected: Any, cluster: Any) -> None:
    callback = kill_at(cluster, 60, victims=2)
    found = search(pairs.source(), max_trials=150, random_state=5, engine=cluster, callback=callback)
    np.testing.assert_array_equal(found.A, expected.A)


def test_a_worker_killed_during_a_pass_over_partitions(pairs: Any, expected: Any, cluster: Any) -> None:
    source = from_arrays(pairs.X, pairs.indices, pairs.y, bounds=pairs.bounds, n_parts=12)
    callback = kill_at(cluster, 30)
    found = search(source, max_trials=150, random_state=5, engine=cluster, callback=callback)
    np.testing.assert_array_equal(found.A, expected.A)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A scheduler and two workers as processes of their own: the scheduler's address and its process id."""
    place = tmp_path / "scheduler.json"
    started = []

    def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        with (tmp_path / f"{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path))
        return started[-1]

    scheduler = start(
        "dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--scheduler-file",
        str(place),
    )
    for _ in range(2):
        start("dask_worker", "--scheduler-file", str(place), "--nthreads", "1", "--no-dashboard")
    while not place.exists():
        time.sleep(0.1)
    with distributed.Client(scheduler_file=str(place), set_as_default=False) as client:
        client.wait_for_workers(2, timeout=120)
        address = client.scheduler.address
    yield address, scheduler.pid
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def test_a_scheduler_that_goes_away_is_named_and_the_checkpoint_goes_on(
    pairs: Any, expected: Any, processes: tuple[str, int], tmp_path: Path
) -> None:
    address, pid = processes
    checkpoint = tmp_path / "search.npz"
    reached = []

    def callback(progress: Any) -> None:
        if not reached:  # the first units are small: most trials are still to be sent out
            time.sleep(1.1)  # a checkpoint is written about once a second, after the callback
            reached.append(progress.n_trials)
        elif reached and checkpoint.exists():
            os.kill(pid, signal.SIGKILL)

    arguments = {"max_trials": 150, "random_state": 5, "checkpoint": checkpoint}
    with pytest.raises(EngineLost, match=f"the Dask scheduler at {address} went away"):
        search(pairs.source(), engine=address, callback=callback, **arguments)
    found = search(pairs.source(), **arguments)
    np.testing.assert_array_equal(found.A, expected.A)
    assert found.n_trials == 150


DRIVER = """
import sys, warnings
import numpy as np
from lptml.constraints import ConstraintSet
from lptml.search import SearchStatus, search
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    V = rng.normal(size=(4000, 4))
    pairs = ConstraintSet.from_differences(V, rng.choice([-1, 1], 4000), bounds=(1.0, 1.0))
    search(pairs, max_trials=1)  # Python loses a Ctrl-C that comes while Numba clears up after compiling
    print("begun", flush=True)
    said = lambda progress: print(progress.n_trials, flush=True)
    found = search(pairs, max_trials=100_000, random_state=0, engine="dask", callback=said)
    print("ended", found.status.name, flush=True)
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("after", [0.0, 0.3, 1.0, 2.0, 3.0, None])
@pytest.mark.parametrize("run", range(2))
def test_ctrl_c_at_any_moment_ends_a_search(tmp_path: Path, after: float | None, run: int) -> None:
    """Ctrl-C reaches the whole group of processes, as in a terminal; start-up and running alike."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    with (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, str(script)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    try:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "begun\n"
        if after is None:
            driver.stdout.readline()  # the first trials are done
        else:
            time.sleep(after)
        os.killpg(driver.pid, signal.SIGINT)
        said, _ = driver.communicate(timeout=240)
        log_text = (tmp_path / "log").read_text()
        begun = "ended INTERRUPTED" in said  # else it came before the search listened
        assert begun or (after is not None and log_text.rstrip().endswith("KeyboardInterrupt")), log_text
        assert "Nanny failed" not in log_text
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", range(5))
def test_a_time_limit_holds_when_all_workers_are_killed(pairs: Any, cluster: Any, run: int) -> None:
    pids = list(cluster.run(os.getpid).values())

    def kill() -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(1.0 + 1.2 * run, kill)
    timer.start()
    found = search(pairs.source(), max_trials=10**7, random_state=5, engine=cluster, time_limit=8)
    assert not timer.is_alive()
    assert found.status is SearchStatus.TIME_LIMIT
