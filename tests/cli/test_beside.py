"""A function in a process of its own: its result, its end, and what becomes of its failures."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from lptml.cli import least_cost
from lptml.cli.beside import _interrupts_wait, beside

PARENT = int(os.environ.setdefault("LPTML_TEST_PARENT", str(os.getpid())))


def twice(value):
    return 2 * value, os.getpid()


def fail_there(error):
    if os.getpid() != PARENT:
        raise error
    return "here"


def die_there():
    if os.getpid() != PARENT:
        os._exit(1)
    return "here"


def test_the_result_comes_from_another_process():
    with beside(twice, np.arange(3)) as result:
        doubled, process = result()
    np.testing.assert_array_equal(doubled, [0, 2, 4])
    assert process != os.getpid()


@pytest.mark.parametrize(("function", "arguments"), [(fail_there, (ValueError("there"),)), (die_there, ())])
def test_what_fails_there_is_done_here(function, arguments):
    with beside(function, *arguments) as result:
        assert result() == "here"


def test_an_error_is_the_callers():
    with beside(int, "seven") as result, pytest.raises(ValueError, match="seven"):
        result()


def test_nothing_is_left_when_the_block_ends_early():
    with beside(time.sleep, 600):
        (process,) = multiprocessing.active_children()
        assert process.is_alive()
    assert not process.is_alive()
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads")
def test_ctrl_c_amid_the_start_waits_for_its_end():
    go, done = threading.Event(), []

    def press() -> None:  # the signal comes to a thread that does not hold it back
        go.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def start() -> None:
        with _interrupts_wait():
            go.set()
            thread.join()
            done.append("the block")

    thread = threading.Thread(target=press)
    thread.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["the block"]


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wine")
    for command in (
        ["datasets", "wine", "-o", "wine.csv"],
        ["fit", "wine.csv", "--label", "class", "-o", "wine.npz"],
    ):
        subprocess.run([sys.executable, "-m", "lptml", *command], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    "command",
    [["report", "wine.csv", "--model", "wine.npz", "-o"], ["fit", "wine.csv", "-o", "again.npz", "--report"]],
    ids=["report", "fit"],
)
def test_the_commands_search_beside_and_show_it(wine, command):
    page = wine / "page.html"
    subprocess.run(
        [sys.executable, "-m", "lptml", *command, page.name, "--label", "class"], cwd=wine, check=True
    )
    text = page.read_text()
    assert re.search(r"a search for the least cost alone, on pairs of rows: \d+ trials", text)
    assert 'id="support-table"' in text


def test_the_search_is_the_same_here_as_beside(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2)) + np.repeat([[0.0, 0.0], [9.0, 0.0]], 15, axis=0)
    y = np.repeat(["a", "b"], 15)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(least_cost, "processors", lambda: 2)
    with least_cost.searching(X, y, 60.0, seed=1) as there:
        found = there()
    monkeypatch.undo()
    with least_cost.searching(X, y, 60.0, seed=1) as here:
        again = here()
    assert found.n_trials_ == again.n_trials_
    np.testing.assert_array_equal(found.components_, again.components_)
    assert found.lower_bound_ == again.lower_bound_


@pytest.mark.parametrize(
    ("y", "seconds"),
    [(None, 1.0), (np.zeros(5), 1.0), (np.arange(5), 0.0)],
    ids=["pairs", "one class", "off"],
)
def test_nothing_to_search(y, seconds):
    with least_cost.searching(np.eye(5), y, seconds, seed=0) as search:
        assert search is None


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
@pytest.mark.parametrize("seconds", [0.3, 0.4, 0.6, 1.0])
def test_ctrl_c_says_one_line_and_leaves_no_page(wine, seconds):
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a test run may ignore it
        "print('listening', flush=True)\n"
        "sys.argv = ['lptml', *sys.argv[1:]]\n"
        "from lptml.cli import main\n"
        "main()\n"
    )
    arguments = ["report", "wine.csv", "--label", "class", "-o", "never.html", "--repeats", "500"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=wine,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "listening\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
    _, said = process.communicate(timeout=60)
    if "KeyboardInterrupt" in said and process.returncode == -signal.SIGINT:
        pytest.skip("came before the command had begun")
    assert process.returncode == 130
    assert said.count("Traceback") == 0
    assert "interrupted" in said
    assert not Path(wine, "never.html").exists()
