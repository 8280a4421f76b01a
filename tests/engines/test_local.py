"""Threads and processes of this machine: same result, prompt to stop, not upset by a dead worker."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from joblib.externals.loky import reusable_executor
from threadpoolctl import threadpool_info

from lptml import _progress
from lptml.constraints import ConstraintSet
from lptml.engines import make_engine
from lptml.engines.local import LocalEngine
from lptml.search import search
from lptml.search.engine import Engine


def constraints(n=3000, d=3):
    rng = np.random.default_rng(0)
    V = rng.normal(size=(n, d))
    y = np.where(abs(V[:, 0]) < 0.7, 1, -1) * np.where(rng.random(n) < 0.2, -1, 1)
    return ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))


def test_processes_give_the_same_metric_as_threads():
    F = constraints()
    threads = search(F, max_trials=60, random_state=0, engine=LocalEngine(2))
    processes = search(F, max_trials=60, random_state=0, engine=LocalEngine(2, backend="processes"))
    np.testing.assert_array_equal(threads.A, processes.A)
    assert threads.trial == processes.trial


def killing(killed, at):
    """A callback that kills a worker process each time the next of these trials is reached."""

    def callback(progress):
        workers = list(reusable_executor._executor._processes)  # process numbers
        if workers and len(killed) < len(at) and progress.n_trials > at[len(killed)]:
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])

    return callback


def test_a_killed_worker_process_is_replaced(caplog):
    F = constraints()
    expected = search(F, max_trials=300, random_state=0)
    killed = []
    with caplog.at_level(logging.WARNING, logger="lptml.engines.local"):
        engine = LocalEngine(2, backend="processes")
        result = search(F, max_trials=300, random_state=0, engine=engine, callback=killing(killed, (0, 10)))
    assert len(killed) == 2
    assert "died" in caplog.text
    np.testing.assert_array_equal(result.A, expected.A)
    assert result.n_trials == 300


@pytest.mark.faults
@pytest.mark.parametrize("run", range(10))
def test_a_killed_worker_process_costs_nothing(run):
    F = constraints()
    expected = search(F, max_trials=300, random_state=run)
    killed = []
    engine = LocalEngine(2, backend="processes")
    callback = killing(killed, (8 * run,))
    result = search(F, max_trials=300, random_state=run, engine=engine, callback=callback)
    assert len(killed) == 1
    np.testing.assert_array_equal(result.A, expected.A)
    assert result.n_trials == 300


def test_an_error_in_a_trial_is_raised(monkeypatch):
    def broken(problem, trial, head=None):
        raise ZeroDivisionError("in a trial")

    monkeypatch.setattr("lptml.search.trial.solve", broken)
    with pytest.raises(ZeroDivisionError, match="in a trial"):
        search(constraints(), max_trials=10, random_state=0, n_jobs=2)


def test_linear_algebra_is_held_to_one_thread(monkeypatch):
    seen = []
    search(
        constraints(),
        max_trials=10,
        random_state=0,
        callback=lambda p: seen.append(
            {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
        ),
    )
    assert seen
    assert all(threads == {1} for threads in seen)


PROGRAM = """
import os, signal, warnings
import numpy as np
from lptml.constraints import ConstraintSet
from lptml.search import search
rng = np.random.default_rng(0)
V = rng.normal(size=(N, 6))
y = np.where(abs(V[:, 0]) < 0.7, 1, -1) * np.where(rng.random(N) < 0.2, -1, 1)
F = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
search(F, max_trials=20, random_state=0)  # compiled
told = []
def tell(progress):
    if progress.n_trials and not told:
        told.append(progress)
        os.killpg(os.getpgrp(), signal.SIGINT)  # as a terminal does
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result = search(
        F, max_trials=10**7, random_state=0, engine=ENGINE,
        callback=tell,
    )
print(len(caught), caught[0].category.__name__, result.status.name, result.n_trials, flush=True)
print(result.cost == F.cost(result.A) or not result.exact, result.cost <= F.best_identity().cost, flush=True)
"""


@pytest.mark.parametrize(
    ("engine", "n"),
    [("LocalEngine(1)", 3000), ("LocalEngine(2)", 300_000), ("LocalEngine(2, 'processes')", 3000)],
)
def test_ctrl_c_returns_the_best_so_far_at_once(engine, n):
    program = "from lptml.engines.local import LocalEngine\n" + PROGRAM.replace("ENGINE", engine)
    process = subprocess.Popen(
        [sys.executable, "-c", program.replace("(N", f"({n}")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    line, *rest = process.communicate(timeout=120)[0].splitlines()
    warned, category, status, n_trials = line.split()
    assert (warned, category, status) == ("1", "SearchInterruptedWarning", "INTERRUPTED")
    assert int(n_trials) > 0
    assert rest == ["True True"]
    assert process.returncode == 0


def test_a_search_outside_the_main_thread():
    found = []
    F = constraints()
    thread = threading.Thread(target=lambda: found.append(search(F, max_trials=10, random_state=0)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0].A, search(F, max_trials=10, random_state=0).A)


@pytest.mark.parametrize("missing", [(), ("tqdm",), ("tqdm", "rich")])
def test_progress_is_shown(monkeypatch, caplog, capfd, missing):
    find = _progress.importlib.util.find_spec
    monkeypatch.setattr(
        _progress.importlib.util, "find_spec", lambda name, *a: None if name in missing else find(name, *a)
    )
    with caplog.at_level(logging.INFO, logger="lptml.search"):
        search(constraints(), max_trials=20, random_state=0, verbose=1)
    out, err = capfd.readouterr()
    shown = caplog.text if len(missing) == 2 else out + err
    assert "20/20" in shown or "100%" in shown or "20 of 20" in shown
    assert "best" in shown
    search(constraints(), max_trials=5, random_state=0)
    assert capfd.readouterr() == ("", "")


def test_engines_by_name():
    assert isinstance(make_engine("local", n_jobs=2), LocalEngine)
    engine = LocalEngine(3)
    assert make_engine(engine) is engine
    assert isinstance(engine, Engine)
    with pytest.raises(ValueError, match="backend"):
        LocalEngine(backend="fibres")


def test_a_missing_engine_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "lptml.engines.dask", None)
    with pytest.raises(ImportError, match=r"lptml\[dask\]"):
        make_engine("dask")
