"""Commands that write, killed at any moment: the old file or the new one, never a part, inputs as they were.

The command runs in a forked process that kills itself with SIGKILL: at the k-th time it touches a file of the
folder, for every k, or at a random time. What it may leave behind is its temporary file, whose name begins
with a dot.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.corpus import CSV, PAIRS, QUICK

from lptml.cli.app import cli

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # a fork beside threads that sleep
    pytest.mark.timeout(600),
]
TOUCHES = ("open", "os.rename", "os.remove", "os.chmod", "os.truncate", "shutil.move", "shutil.copyfile")
COLUMNS = ["--label", "label", "--key", "id"]
OLD = "precious"

COMMANDS = {
    "fit": ["fit", "data.csv", *COLUMNS, *QUICK],
    "fit with a checkpoint": ["fit", "data.csv", *COLUMNS, *QUICK, "--checkpoint", "state"],
    "fit with a report": ["fit", "data.csv", *COLUMNS, *QUICK, "--report", "page.html"],
    "transform": ["transform", "model.npz", "data.csv"],
    "distance": ["distance", "model.npz", "data.csv", "--key", "id", "--pairs", "pairs.csv"],
    "suspects": ["suspects", "data.csv", *COLUMNS],
    "report": ["report", "data.csv", *COLUMNS, "--repeats", "0", *QUICK],
    "datasets": ["datasets", "iris"],
}
COMMANDS = {name: [*arguments, "-o", "out", "--force"] for name, arguments in COMMANDS.items()}
INPUTS = ("data.csv", "pairs.csv", "model.npz")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(CSV)
    Path("pairs.csv").write_text(PAIRS)
    made = CliRunner().invoke(cli, ["fit", "data.csv", *COLUMNS, *QUICK, "-o", "model.npz"])
    assert made.exit_code == 0, made.output
    return tmp_path


def run(arguments: list[str], begin: Callable[[], object]) -> int:
    """Run a command in a process of its own that calls ``begin`` first: its status, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            begin()
            code = CliRunner().invoke(cli, arguments).exit_code
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die_at(k: int, folder: Path) -> Callable[[], None]:
    """Kill the process as it touches a file of the folder for the k-th time."""

    def begin() -> None:
        touched = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal touched
            if event not in TOUCHES or not arguments or isinstance(arguments[0], int):
                return
            if Path(os.path.abspath(os.fsdecode(arguments[0]))).parent == folder:  # type: ignore[arg-type]
                touched += 1
                if touched == k:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    return begin


def die_after(seconds: float) -> Callable[[], None]:
    def begin() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    return begin


def reset(folder: Path) -> dict[str, bytes]:
    for path in folder.iterdir():
        if path.name not in INPUTS:
            path.unlink()
    (folder / "out").write_text(OLD)
    return {name: (folder / name).read_bytes() for name in INPUTS}


def unharmed(folder: Path, before: dict[str, bytes], name: str, sizes: dict[str, int]) -> None:
    """Inputs are as they were; what is there of the outputs is old, or about as long as a whole one."""
    assert {name: (folder / name).read_bytes() for name in INPUTS} == before
    for path in folder.iterdir():
        if path.name in INPUTS or path.name.startswith("."):
            continue
        content = path.read_bytes()
        old = path.name == "out" and content == OLD.encode()
        assert old or abs(len(content) - sizes[path.name]) < 0.02 * sizes[path.name] + 40, (name, path.name)
    again = CliRunner().invoke(cli, COMMANDS[name])
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_every_touch_of_a_file(folder: Path, name: str) -> None:
    before = reset(folder)
    assert run(COMMANDS[name], lambda: None) == 0
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    for k in range(1, 100):
        reset(folder)
        ended = run(COMMANDS[name], die_at(k, folder))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        unharmed(folder, before, name, sizes)
    assert 3 < k < 99


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_moments(folder: Path, name: str) -> None:
    before = reset(folder)
    began = time.monotonic()
    assert run(COMMANDS[name], lambda: None) == 0
    whole = time.monotonic() - began
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    chance = random.Random(name)
    killed = 0
    for _ in range(25):
        reset(folder)
        killed += run(COMMANDS[name], die_after(chance.uniform(0.001, 1.2 * whole))) != 0
        unharmed(folder, before, name, sizes)
    assert killed
