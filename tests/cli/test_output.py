"""What the commands write, and what they refuse to write over."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.cli.corpus import QUICK

from lptml.cli.app import cli
from lptml.cli.errors import OUTPUT, USAGE
from lptml.cli.output import FileKind, delimited_text, kind_of, write_columns

unix = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of Unix")
ROWS = "id,x,z,label\n" + "".join(f"r{i},{i % 5},{i % 3},{'ab'[i % 2]}\n" for i in range(12))
LABEL = ["--label", "label", "--key", "id"]


def run(*arguments: str, code: int = 0, **extra: object) -> Result:
    result = CliRunner().invoke(cli, list(arguments), **extra)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(ROWS)
    Path("pairs.csv").write_text("r1,r2,same\nr3,r4,different\nr5,r6,same\nr7,r2,different\n")
    Path("R.csv").write_text("1,0\n0,2\n")
    run("fit", "data.csv", *LABEL, *QUICK, "-o", "m.npz")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["fit", "data.csv", *LABEL, *QUICK, "-o", "data.csv"], "data.csv"),
        (["fit", "data.csv", *LABEL, *QUICK, "-o", "m2.npz", "--report", "data.csv"], "data.csv"),
        (["fit", "data.csv", *LABEL, *QUICK, "-o", "m2.npz", "--checkpoint", "data.csv"], "data.csv"),
        (["fit", "data.csv", *LABEL, *QUICK, "--regularizer", "R.csv", "-o", "R.csv"], "R.csv"),
        (["fit", "data.csv", "--pairs", "pairs.csv", *QUICK, "-o", "pairs.csv"], "pairs.csv"),
        (["report", "data.csv", *LABEL, *QUICK, "-o", "data.csv"], "data.csv"),
        (["report", "data.csv", *LABEL, "--model", "m.npz", "-o", "m.npz"], "m.npz"),
        (["suspects", "data.csv", *LABEL, "-o", "data.csv"], "data.csv"),
        (["suspects", "data.csv", "--key", "id", "--pairs", "pairs.csv", "-o", "pairs.csv"], "pairs.csv"),
        (["transform", "m.npz", "data.csv", "-o", "data.csv"], "data.csv"),
        (["transform", "m.npz", "data.csv", "-o", "m.npz"], "m.npz"),
        (["distance", "m.npz", "data.csv", "--pairs", "pairs.csv", "-o", "pairs.csv"], "pairs.csv"),
    ],
)
def test_no_command_writes_over_what_it_reads(folder: Path, arguments: list[str], target: str) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for force in ([], ["--force"]):
        said = run(*arguments, *force, code=OUTPUT).stderr
        assert f"lptml: {target}: this command reads that file" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@unix
def test_a_link_to_an_input_is_that_input(folder: Path) -> None:
    Path("soft.csv").symlink_to("data.csv")
    os.link("data.csv", "hard.csv")
    for name in ("soft.csv", "hard.csv", "./data.csv"):
        assert "reads that file" in run("suspects", "data.csv", *LABEL, "-o", name, code=OUTPUT).stderr
        assert "reads that file" in run("suspects", name, *LABEL, "-o", "data.csv", code=OUTPUT).stderr


@unix
def test_standard_input_from_a_file_is_that_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lptml.cli.errors import OutputError
    from lptml.cli.output import check_outputs

    with open("data.csv") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(OutputError, match="reads that file"):
            check_outputs(("data.csv", FileKind.TEXT), inputs=("-",), force=False)
        check_outputs(("new.csv", FileKind.TEXT), inputs=("-",), force=False)


def test_two_outputs_are_two_files(folder: Path) -> None:
    for arguments in (
        ["-o", "a.npz", "--report", "a.npz"],
        ["-o", "a.npz", "--report", "./a.npz"],
        ["-o", "a.npz", "--checkpoint", "a.npz"],
    ):
        said = run("fit", "data.csv", *LABEL, *QUICK, *arguments, code=USAGE).stderr
        assert "cannot be the same file" in said
    assert not Path("a.npz").exists()


def results(name: str) -> dict[str, list[str]]:
    """The command that writes a result of each kind to ``name``."""
    return {
        "model": ["fit", "data.csv", *LABEL, *QUICK, "-o", name],
        "page": ["report", "data.csv", *LABEL, "--model", "m.npz", "--repeats", "0", "-o", name],
        "table": ["suspects", "data.csv", *LABEL, "-o", name],
    }


@pytest.mark.parametrize("name", ["old", "old.csv", "old.npz", "old.tsv", "old.parquet"])
@pytest.mark.parametrize("content", [b"dear diary,\n\nit rained.\n", b"\x89PNG\r\n", b"<html></html>\n"])
def test_what_is_no_result_is_replaced_only_by_force(folder: Path, name: str, content: bytes) -> None:
    old = Path(name)
    for command in results(name).values():
        old.write_bytes(content)
        said = run(*command, code=OUTPUT).stderr
        assert said.startswith(f"lptml: {name}: holds something else, not a")
        assert "--force" in said
        assert old.read_bytes() == content
        run(*command, "--force")
        assert old.read_bytes() != content


@pytest.mark.parametrize("name", ["old", "old.csv", "old.tsv", "old.npz", "old.parquet"])
def test_a_result_replaces_a_result_of_its_kind_and_no_other(folder: Path, name: str) -> None:
    commands = results(name)
    for first in commands:
        Path(name).unlink(missing_ok=True)
        run(*commands[first])
        for second in commands:
            run(*commands[second], code=0 if first == second else OUTPUT)


def test_an_empty_file_is_nothing_to_lose(folder: Path) -> None:
    Path("new").touch()
    run(*results("new")["model"])
    assert kind_of("new") is FileKind.MODEL


def test_kinds_by_content(folder: Path) -> None:
    def kind(content: bytes) -> FileKind | None:
        Path("f").write_bytes(content)
        return kind_of("f")

    assert kind(b"a,b\n1,2\n") is FileKind.TEXT
    assert kind("ä;b\n1;2\n".encode() * 20_000) is FileKind.TEXT  # cut amid a line, perhaps amid a letter
    assert kind(b"z1\n0.5\n-1e3\n") is FileKind.TEXT
    assert kind(b"import os\nimport sys\n") is FileKind.OTHER
    assert kind(b"a,b\n1\n") is FileKind.OTHER
    assert kind(b'a,b\n1,"2\n') is FileKind.OTHER
    assert kind(b"a,\xff\n1,2\n") is FileKind.OTHER
    assert kind(b"") is None
    assert kind_of("none") is None
    np.savez("arrays.npz", X=np.eye(2))
    assert kind_of("arrays.npz") is FileKind.ARRAYS
    run("fit", "data.csv", *LABEL, *QUICK, "-o", "n.npz", "--checkpoint", "c.npz")
    assert kind_of("c.npz") is FileKind.CHECKPOINT


@unix
@pytest.mark.parametrize("result", ["model", "page", "table"])
def test_a_pipe_stays_a_pipe(folder: Path, result: str) -> None:
    os.mkfifo("pipe")
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(Path("pipe").read_bytes()))
    reader.start()
    run(*results("pipe")[result])
    reader.join()
    Path("copy").write_bytes(heard[0])
    assert kind_of("copy") is {"model": FileKind.MODEL, "page": FileKind.PAGE, "table": FileKind.TEXT}[result]
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@unix
@pytest.mark.parametrize(
    ("result", "number"),
    [
        ("model", signal.SIGINT),
        ("model", signal.SIGTERM),
        ("page", signal.SIGINT),
        ("table", signal.SIGTERM),
    ],
)
def test_a_signal_leaves_the_old_file(folder: Path, result: str, number: int) -> None:
    run(*results("old")[result])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a test run may ignore it
        # when the new file is whole, and not yet in its place
        f"os.fsync = lambda number: signal.raise_signal({int(number)})\n"
        "from lptml.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *results("old")[result]], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 128 + number, done.stderr
    assert done.stderr.splitlines()[-1].endswith("ed; no file was changed half-way")
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
def test_columns_are_written_and_read_again(tmp_path: Path, suffix: str) -> None:
    from lptml.cli.readers import read_table

    path = str(tmp_path / f"t{suffix}")
    write_columns(path, ["name", "x"], [["a,b", 'q"r', "tab\tand\nline"], [0.1, 1e-300, -2.0]])
    table = read_table(path)
    assert table.names == ["name", "x"]
    assert table.text("name") == ["a,b", 'q"r', "tab\tand\nline"]
    assert table.numbers("x")[0].tolist() == [0.1, 1e-300, -2.0]


HOSTILE = [
    "=1+1",
    '=HYPERLINK("http://evil","here")',
    "+cmd|'/C calc'!A0",
    "-2+3",
    "@SUM(1,2)",
    " =1",
    "\t=1",
    "\r=1",
    "＝1+1",
]
HARMLESS = ["-5", "+1.5e3", "a=b", "", "'quoted'", "3-4", "x@y", '"', "two\nlines"]


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_no_cell_is_a_formula(delimiter: str) -> None:
    text = delimited_text(HOSTILE, [[cell, *HARMLESS] for cell in HOSTILE], delimiter)
    first, second, *rest = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    assert first == second == [f"'{cell}" for cell in HOSTILE]
    assert rest == [[cell] * len(HOSTILE) for cell in HARMLESS]
    numbers = delimited_text(["x"], [np.array([-1.5, -np.inf])], delimiter)
    assert numbers == "x\n-1.5\n-inf\n"


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "-"])
def test_the_commands_write_no_formula(folder: Path, name: str) -> None:
    Path("evil.csv").write_text(ROWS.replace("r1,", "=1+1,").replace(",a\n", ",@SUM\n"))
    arguments = ["suspects", "evil.csv", *LABEL, "-o", name]
    said = run(*arguments).stdout
    text = said if name == "-" else Path(name).read_text()
    cells = [cell for line in text.splitlines() for cell in line.replace("\t", ",").split(",")]
    assert {"'=1+1", "'@SUM"} <= set(cells)
    assert not {"=1+1", "@SUM"} & set(cells)


def test_keys_are_found_as_they_are_and_as_they_were_written(folder: Path) -> None:
    Path("evil.csv").write_text(ROWS.replace("r1,", "=1+1,"))
    model = ["distance", "m.npz", "evil.csv", "--key", "id", "--pairs"]
    Path("asked.csv").write_text("=1+1,r2\n")
    run(*model, "asked.csv", "-o", "answer.csv")
    assert Path("answer.csv").read_text().splitlines()[1].startswith("'=1+1,r2,")
    Path("again.csv").write_text("'=1+1,r2\n")
    assert run(*model, "again.csv").stdout == Path("answer.csv").read_text()


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the page's script outside of a browser")
def test_the_page_downloads_what_the_command_writes() -> None:
    from importlib import resources

    rows = [HOSTILE, *([cell] * len(HOSTILE) for cell in HARMLESS)]
    script = (resources.files("lptml.report") / "csv.js").read_text("utf-8")
    script += f"process.stdout.write(csvText({json.dumps(rows)}));"
    done = subprocess.run(["node", "-e", script], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode() == delimited_text(rows[0], list(zip(*rows[1:])))


ESCAPES = "\x1b]0;title\x07\x1b[31m\x9b2J\u202e\r"


def test_no_escape_sequence_of_a_file_reaches_the_terminal(folder: Path) -> None:
    evil = f'"a{ESCAPES}\nb"'
    Path("evil.csv").write_text(ROWS.replace("r1,", f"{evil},").replace(",a\n", f",{evil}\n"), newline="")
    every = ["suspects", "evil.csv", *LABEL, "--top", "12"]
    for said in (run(*every).stdout, run(*every, "--json").stdout, run(*every, color=True).stdout):
        text = said.replace("\x1b[1m", "").replace("\x1b[0m", "")  # of ours
        assert all(c.isprintable() for c in text.replace("\n", ""))
    assert r"\x1b[31m\x9b2J\u202e" in run(*every).stdout
    assert json.loads(run(*every, "--json").stdout)["suspects"][0]["label"].startswith("a\x1b]0;")
    assert run(*every).stdout.count("\n") == 15  # a label stays on its line


@unix
def test_a_table_on_a_terminal_shows_escape_sequences(folder: Path) -> None:
    Path("evil.csv").write_text(ROWS.replace("r1,", "r\x1b[31m1,"))
    arguments = ["transform", "m.npz", "evil.csv", "--key", "id"]
    assert "\nr\x1b[31m1," in run(*arguments).stdout  # to a file or a program: as it is
    primary, secondary = os.openpty()
    code = "from lptml.cli import main; main()"
    try:
        done = subprocess.run([sys.executable, "-c", code, *arguments], stdout=secondary, timeout=120)
        os.set_blocking(primary, False)
        heard = os.read(primary, 1 << 16).decode()
    finally:
        os.close(primary)
        os.close(secondary)
    assert done.returncode == 0
    assert "\\x1b[31m1," in heard
    assert "\x1b" not in heard


def test_names_of_files_are_written_out(folder: Path) -> None:
    name = "out\x1b[31m.csv"
    said = run("transform", "m.npz", "data.csv", "-o", name).stderr
    assert said.startswith(r"out\x1b[31m.csv: 12 rows")


def test_strong_words_are_bold_on_a_terminal_only(folder: Path) -> None:
    model = ["fit", "data.csv", *LABEL, *QUICK, "-o", "m.npz"]
    assert "\x1b[1mm.npz\x1b[0m" in run(*model, color=True).stdout
    assert "\x1b" not in run(*model).stdout
