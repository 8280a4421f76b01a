"""Commands that write, killed at any moment: the old file or the new one, never a part, inputs as they were.

The command runs in a forked process that kills itself with SIGKILL: at the k-th time it touches a file of the
folder, for every k, or at a random time. What it may leave behind is its temporary file, whose name begins
with a dot. A file that a command appends to holds the beginning of the whole one, and the command goes on
with it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from tests.cli.corpus import CSV, PAIRS, QUICK

from lptml._cells import fingerprint
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
    "fit from pairs": ["fit", "data.csv", "--key", "id", "--drop", "label", "--pairs", "pairs.csv", *QUICK],
    "transform": ["transform", "model.npz", "data.csv"],
    "distance": ["distance", "model.npz", "data.csv", "--key", "id", "--pairs", "pairs.csv"],
    "suspects": ["suspects", "data.csv", *COLUMNS],
    "report": ["report", "data.csv", *COLUMNS, "--repeats", "0", *QUICK],
    "datasets": ["datasets", "iris"],
    "apply": ["apply", "data.csv", "fixed.csv"],
    "certify": ["certify", "data.csv", *COLUMNS],
    "certify an earlier proof": ["certify", "data.csv", *COLUMNS, "--resume", "proof"],
}
COMMANDS = {name: [*arguments, "-o", "out", "--force"] for name, arguments in COMMANDS.items()}
# These append to what is there: nothing old is in their way.
COMMANDS |= {
    "review": ["review", "wrong.csv", *COLUMNS, "--accept", "-o", "decisions.csv"],
    "reproduce": [
        *("reproduce", "table1", "--quick", "-o", ".", "--document", "page.md"),
        *("--dataset", "iris", "--method", "RCA", "--n-jobs", "1"),
    ],
}
APPENDED = ("decisions.csv", "table1.rows.jsonl")
INPUTS = ("data.csv", "pairs.csv", "model.npz", "fixed.csv", "wrong.csv", "proof")


def wrong_labels() -> str:
    """Two clear classes, a few labels of each exchanged."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 8.0 * kind[:, None]
    label = np.where(np.arange(60) % 15 == 0, 1 - kind, kind)
    rows = [f"r{i},{x},{z},{'pq'[k]}\n" for i, ((x, z), k) in enumerate(zip(X, label))]
    return "id,x,z,label\n" + "".join(rows)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the commands read; made once, by commands where they make it."""
    place = tmp_path_factory.mktemp("inputs")
    data = place / "data.csv"
    data.write_text(CSV)
    (place / "pairs.csv").write_text(PAIRS)
    (place / "wrong.csv").write_text(wrong_labels())
    header = "row,key,column,given,decision,label,data\n"
    (place / "fixed.csv").write_text(f"{header}1,a,label,p,change,q,{fingerprint(CSV.encode())}\n")
    for made in (
        ["fit", str(data), *COLUMNS, *QUICK, "-o", str(place / "model.npz")],
        ["certify", str(data), *COLUMNS, "-o", str(place / "proof")],
    ):
        result = CliRunner().invoke(cli, made)
        assert result.exit_code == 0, result.output
    return {name: (place / name).read_bytes() for name in INPUTS}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: dict[str, bytes]) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in inputs.items():
        (tmp_path / name).write_bytes(content)
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
            if (
                event not in TOUCHES
                or not arguments
                or not isinstance(arguments[0], str | bytes | os.PathLike)
            ):
                return
            if Path(os.path.abspath(os.fsdecode(arguments[0]))).parent == folder:
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


def reset(folder: Path, name: str) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in INPUTS:
            path.unlink()
    if "out" in COMMANDS[name]:
        (folder / "out").write_text(OLD)


def files(folder: Path) -> dict[str, bytes]:
    """What is in the folder by name, but for temporary files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def completed(folder: Path, name: str) -> tuple[dict[str, bytes], float]:
    """The files of a run that nothing ends, and how long it takes.

    Whatever is imported or compiled once is, before the run that is timed: a child inherits it.
    """
    for _ in range(2):
        reset(folder, name)
        result = CliRunner().invoke(cli, COMMANDS[name])
        assert result.exit_code == 0, result.output
    reset(folder, name)
    began = time.monotonic()
    assert run(COMMANDS[name], lambda: None) == 0
    return files(folder), time.monotonic() - began


def unharmed(folder: Path, name: str, inputs: dict[str, bytes], whole: dict[str, bytes]) -> None:
    """Inputs are as they were, outputs old or whole, and the same command then does what it always did."""
    left = files(folder)
    assert {each: left.pop(each) for each in INPUTS} == inputs
    for each, content in left.items():
        if each in APPENDED:
            assert_begins(content, whole[each], each)
        elif content != OLD.encode():
            assert_whole(content, whole[each], (name, each))
    again = CliRunner().invoke(cli, COMMANDS[name])
    assert again.exit_code == 0, again.output
    ended = files(folder)
    assert ended.keys() == whole.keys()
    for each in set(whole) - set(INPUTS):
        assert_whole(ended[each], whole[each], (name, each, "again"))


def assert_whole(content: bytes, whole: bytes, what: tuple[str, ...]) -> None:
    """As long as a whole one but for the times that it tells, and with the same end."""
    assert abs(len(content) - len(whole)) < 0.02 * len(whole) + 40, what
    assert content[-2:] == whole[-2:], what


def assert_begins(content: bytes, whole: bytes, name: str) -> None:
    """Lines of the whole one in their order; the last may be cut off."""
    *lines, last = content.split(b"\n")
    expected = whole.split(b"\n")
    assert len(lines) < len(expected)
    if name == "decisions.csv":  # the other file tells times
        assert whole.startswith(content)
    assert all(len(mine) > 0.9 * len(line) for mine, line in zip(lines, expected)), name
    assert len(last) <= len(expected[len(lines)]) + 10


def test_every_command_that_writes_is_killed() -> None:
    places = {"output", "corrections", "report", "page", "checkpoint"}
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    writers = {name for name, command in commands.items() if places & {p.name for p in command.params}}
    assert writers == {arguments[0] for arguments in COMMANDS.values()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "reproduce" else name for name in COMMANDS]
)
def test_killed_at_every_touch_of_a_file(folder: Path, name: str, inputs: dict[str, bytes]) -> None:
    whole, _ = completed(folder, name)
    for k in range(1, 100):
        reset(folder, name)
        ended = run(COMMANDS[name], die_at(k, folder))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        unharmed(folder, name, inputs, whole)
    assert 2 < k < 99


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_moments(folder: Path, name: str, kills: int, inputs: dict[str, bytes]) -> None:
    whole, seconds = completed(folder, name)
    chance = random.Random(name)
    killed = 0
    for _ in range(20 * kills):  # the moments are drawn until enough of them come before the end
        reset(folder, name)
        ended = run(COMMANDS[name], die_after(chance.uniform(0.001, seconds)))
        assert ended in (0, -signal.SIGALRM)
        unharmed(folder, name, inputs, whole)
        killed += ended != 0
        if killed == kills:
            return
    pytest.fail(f"only {killed} kills fell before the end of {name}")
