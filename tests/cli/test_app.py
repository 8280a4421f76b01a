"""The command line as a whole: help, errors of one line, exit codes, files that are never half written."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from lptml.cli.app import COMMANDS, cli
from lptml.cli.errors import BUG, INPUT, OUTPUT, USAGE
from lptml.cli.learner import COMMON, SUPERVISED, parameter_name, parse_bounds
from lptml.cli.output import plain

ROWS = "x,z,label\n" + "".join(f"{i % 5},{i % 3},{'ab'[i % 2]}\n" for i in range(12))


def run(*arguments: str, **extra: object) -> Result:
    return CliRunner().invoke(cli, list(arguments), **extra)


def command(*arguments: str, **extra: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from lptml.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        **extra,
    )


def test_help_lists_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", result.output, re.M)


def imported(code: str, *names: str) -> list[str]:
    """Which of these modules a fresh Python has after running the code."""
    code = f"import sys\n{code}\nprint([name for name in {names!r} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return ast.literal_eval(out.stdout.splitlines()[-1])


def test_the_root_needs_only_click() -> None:
    heavy = ("numpy", "scipy", "sklearn", "numba", "pandas", "pyarrow", "rich", "jinja2")
    assert imported("import lptml.cli.app", *heavy) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_loads_no_learner(name: str) -> None:
    code = (
        "from lptml.cli.app import cli\n"
        "try:\n"
        f"    cli([{name!r}, '--help'])\n"
        "except SystemExit as leaving:\n"
        "    assert leaving.code == 0\n"
    )
    assert imported(code, "scipy", "sklearn", "numba", "pandas", "pyarrow", "matplotlib") == []


@pytest.mark.parametrize("name", [n for n in COMMANDS if n != "reproduce"])
def test_every_command_has_help_with_examples(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"lptml {name}" in result.output.partition("Usage:")[2].partition("\n")[2]
    assert "--json" in result.output
    assert "--debug" in result.output


def test_every_option_has_help() -> None:
    with click.Context(cli) as context:
        for name in COMMANDS:
            if name == "reproduce":
                continue
            found = cli.get_command(context, name)
            assert found is not None
            assert found.help
            for parameter in found.params:
                if isinstance(parameter, click.Option):
                    assert parameter.help, f"{name} {parameter.name}"


def test_learner_options_are_the_parameters_of_the_estimators() -> None:
    from lptml import LPTML, LPTML_Supervised

    left_out = {"callback", "preprocessor", "verbose"}  # objects of a process; progress follows the terminal
    common = {parameter_name(option) for option, _, _ in COMMON}
    both = common | {parameter_name(option) for option, _, _ in SUPERVISED}
    assert common == set(inspect.signature(LPTML).parameters) - left_out
    assert both == set(inspect.signature(LPTML_Supervised).parameters) - left_out


# Defaults that the help says in other words than Python.
IN_WORDS: dict[str, object] = {
    "all features": None,
    "as they are": None,
    "none": None,
    "all": None,
    "the identity": None,
    "where there are many constraints": "auto",
    "refine": True,
    "100, fewer above 10 features": "auto",
}


@pytest.mark.parametrize(("option", "text"), [(option, text) for option, _, text in COMMON + SUPERVISED])
def test_defaults_in_the_help_are_those_of_the_estimators(option: str, text: str) -> None:
    from lptml import LPTML_Supervised

    found = re.search(r"\[default: (.*)\]$", text)
    assert found, option
    stated, name = found.group(1), parameter_name(option)
    default = inspect.signature(LPTML_Supervised).parameters[name].default
    if name == "random_state":
        assert (stated, default) == ("0", None)  # the command line is reproducible by default
    elif name == "n_jobs":
        assert (stated, default) == ("1", None)  # joblib's word for one
    elif stated in IN_WORDS:
        assert IN_WORDS[stated] == default
    else:
        assert stated == (f"{default:g}" if isinstance(default, float) else str(default))


def test_the_help_tells_the_number_of_trials_that_the_estimators_do() -> None:
    from lptml import LPTML

    stated = next(text for option, _, text in COMMON if option == "--max-trials")
    trials, features = re.search(r"\[default: (\d+), fewer above (\d+) features\]", stated).groups()
    assert f'"auto" is {trials} up to {features} features' in LPTML.__doc__


def test_bounds() -> None:
    assert parse_bounds("auto") == "auto"
    assert parse_bounds("0.8") == 0.8
    assert parse_bounds("1.5,3") == (1.5, 3.0)
    assert parse_bounds("percentile:10:90") == ("percentile", 10.0, 90.0)
    for wrong in ("x", "1,2,3", "percentile:1", "percentile:a:b", ""):
        with pytest.raises(click.BadParameter, match="is not auto"):
            parse_bounds(wrong)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit"], USAGE, "Missing argument 'DATA'"),
        (["fit", "none.csv", "--label", "y"], INPUT, "none.csv: no such file"),
        (["fit", "t.csv"], USAGE, "say what to learn from: --label COLUMN, or --pairs FILE"),
        (["fit", "t.csv", "--label", "q"], INPUT, "there is no column 'q'"),
        (["fit", "t.csv", "--label", "label", "--pairs", "p.csv"], USAGE, "not both"),
        (["fit", "t.csv", "--label", "label", "--bounds", "often"], USAGE, "'often' is not auto"),
        (["fit", "t.csv", "--label", "label", "--max-trials", "-1"], USAGE, "--max-trials"),
        (["fit", "t.csv", "--label", "label", "--delimiter", "ab"], USAGE, "--delimiter"),
        (["fit", "t.csv", "--label", "label", "--encoding", "klingon"], INPUT, "unknown encoding 'klingon'"),
        (["fit", "t.csv", "--label", "label", "-o", "-"], USAGE, "a model is a binary file"),
        (["fit", "t.csv", "--label", "label", "-o", "none/m.npz"], OUTPUT, "none/m.npz: cannot be written"),
        (["fit", "-", "--label", "label"], USAGE, "name the model with -o"),
        (["fit", "t.csv", "--label", "label", "--n-components", "9"], INPUT, "n_components must be at most"),
        (["transform", "m.npz", "t.csv"], INPUT, "m.npz: no such model; make one with lptml fit"),
        (["transform", "t.csv", "t.csv"], INPUT, "t.csv: is not a"),
        (["transform", ".", "t.csv"], INPUT, ".: is"),
        (["distance", "m.npz", "t.csv"], USAGE, "Missing option '--pairs'"),
        (["datasets", "mars"], INPUT, "there is no data set 'mars'"),
        (["bench", "mars"], INPUT, "there is no data set 'mars'"),
        (["unknown"], USAGE, "No such command 'unknown'"),
        (["fit", "--no-such-option"], USAGE, "No such option"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(ROWS)
    Path("p.csv").write_text("1,2,similar\n")
    result = run(*arguments, input=ROWS)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert result.stderr.startswith("lptml: ")
    assert result.stderr.count("\n") == 1
    as_json = json.loads(run(*arguments, "--json", input=ROWS).stderr)
    assert as_json["code"] == code
    assert message in as_json["error"]


def test_an_error_of_ours_is_one_line_and_a_traceback_with_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, object]:
        raise RuntimeError("a bug\nin two lines")

    monkeypatch.setattr("lptml.cli.tools.versions", broken)
    result = run("version")
    assert result.exit_code == BUG
    assert result.stderr == (
        "lptml: unexpected RuntimeError: a bug in two lines; run again with --debug, and report it\n"
    )
    assert isinstance(run("version", "--debug").exception, RuntimeError)


def test_without_click_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise ModuleNotFoundError('no click', name='click')\n")
    result = command("version", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert result.returncode == 1
    assert result.stderr == "lptml: the command line needs click: pip install 'lptml[cli]'\n"


def test_version_and_completion() -> None:
    found = json.loads(run("version", "--json").stdout)
    assert found["numpy"].count(".") >= 1
    assert run("--version").stdout.startswith("lptml ")
    for shell in ("bash", "zsh", "fish"):
        assert "_LPTML_COMPLETE" in run("completion", shell).stdout
    completed = command(
        env=os.environ | {"_LPTML_COMPLETE": "bash_complete", "COMP_WORDS": "lptml re", "COMP_CWORD": "1"},
    )
    assert completed.stdout.split() == ["plain,report", "plain,reproduce"]


def test_no_colours_in_a_pipe() -> None:
    assert "\x1b" not in run("bench", "mars").stderr


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    code = f"{sys.executable} -c 'from lptml.cli import main; main()' datasets digits | head -1"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert result.stdout.startswith("pixel_0_0")
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


def test_plain_values_are_json() -> None:
    import numpy as np

    value = {"a": np.int64(3), "b": [np.inf, np.float32(0.5)], 7: (True, None), "c": Path("x")}
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == {
        "a": 3,
        "b": [None, 0.5],
        "7": [True, None],
        "c": "x",
    }
