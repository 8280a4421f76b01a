"""Every command on every malformed file: a line and an exit code, no traceback, no hang, no file harmed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.corpus import CSV, PAIRS, QUICK, malformed

from lptml.cli.app import cli
from lptml.cli.errors import INPUT, USAGE

FILES = malformed()
COLUMNS = ["--label", "label", "--key", "id"]
CHOOSING = ["--max-trials", "1", "--n-repeats", "1", "--cv", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sound files beside which the malformed ones are tried."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "good.csv").write_text(CSV)
    (folder / "pairs.csv").write_text(PAIRS)
    arguments = ["fit", str(folder / "good.csv"), *COLUMNS, "-o", str(folder / "good.npz"), *QUICK]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    return folder


def commands(bad: str, folder: Path, out: str) -> list[list[str]]:
    """Every command that reads a file, with the bad file in every place where a file can stand."""
    good, model, pairs = (str(folder / name) for name in ("good.csv", "good.npz", "pairs.csv"))
    to = ["-o", out, "--force"]
    fit = [*QUICK, *to]
    return [
        ["fit", bad, *COLUMNS, *CHOOSING, *to],
        ["fit", good, "--key", "id", "--drop", "label", "--pairs", bad, *CHOOSING, *to],
        ["fit", bad, *COLUMNS, *fit],
        ["fit", bad, "--key", "id", "--drop", "label", "--pairs", pairs, *QUICK, *to],
        ["fit", good, "--key", "id", "--drop", "label", "--pairs", bad, *QUICK, *to],
        ["fit", good, *COLUMNS, "--regularization", "1", "--regularizer", bad, *fit],
        ["fit", good, *COLUMNS, "--checkpoint", bad, *fit],
        ["transform", model, bad, *to],
        ["transform", bad, good, *to],
        ["distance", model, bad, "--key", "id", "--pairs", pairs, *to],
        ["distance", model, good, "--key", "id", "--pairs", bad, *to],
        ["distance", bad, good, "--key", "id", "--pairs", pairs, *to],
        ["score", model, bad, *COLUMNS],
        ["score", bad, good, *COLUMNS],
        ["score", model, good, "--key", "id", "--pairs", bad],
        ["suspects", bad, *COLUMNS, *to],
        ["check", bad, *COLUMNS],
        ["suspects", good, "--key", "id", "--drop", "label", "--pairs", bad, *to],
        ["report", bad, *COLUMNS, "--repeats", "0", *fit],
        ["report", good, *COLUMNS, "--repeats", "0", "--model", bad, *to],
    ]


def test_the_corpus_is_large_and_always_the_same() -> None:
    assert len(FILES) >= 200
    assert len({name for name, _ in FILES}) == len(FILES)
    assert malformed() == FILES


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "content"), FILES, ids=[name for name, _ in FILES])
def test_no_command_breaks(folder: Path, tmp_path: Path, name: str, content: bytes) -> None:
    bad, out = tmp_path / name, tmp_path / "out"
    sound = {path: path.read_bytes() for path in folder.iterdir()}
    for arguments in commands(str(bad), folder, str(out)):
        bad.write_bytes(content)
        out.write_bytes(b"precious")
        result = CliRunner().invoke(cli, arguments)
        shown = f"{' '.join(arguments)}\n{result.output}"
        assert result.exit_code in (0, USAGE, INPUT), shown
        assert result.exception is None or isinstance(result.exception, SystemExit), shown
        if result.exit_code and not (arguments[0] == "check" and result.stdout):  # which says it there
            lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
            assert lines[0].startswith("lptml: "), shown
            assert len(lines) == 1 or lines[-1].startswith("try: lptml "), shown
            assert max(map(len, lines)) < 600, shown
            assert all(line.isprintable() for line in lines), shown
            assert out.read_bytes() == b"precious", shown
        if "--checkpoint" not in arguments:
            assert bad.read_bytes() == content, shown
        assert {path: path.read_bytes() for path in folder.iterdir()} == sound, shown
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "out"])
