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
from lptml.cli.output import plain
from lptml.cli.parameters import (
    CHOICE,
    COMMON,
    CROSS_VALIDATE,
    GRID,
    LABELS,
    LISTED,
    SINGLE,
    Option,
    parameter_name,
    parse_bounds,
)

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


def names(*tables: list[Option], choosing: bool) -> set[str]:
    """The parameters that options set."""
    found = [parameter_name(option) for table in tables for option, _, _ in table]
    return {f"{name}s" if choosing and name in LISTED else name for name in found}


def test_learner_options_are_the_parameters_of_the_estimators() -> None:
    from lptml import LPTML, LPTMLCV, LPTML_Supervised, LPTML_SupervisedCV

    # Objects of a process; progress follows the terminal; the page weighs features, which a map has none of.
    left_out = {"callback", "preprocessor", "verbose", "map", "maps"}
    for cls, tables in {
        LPTML: [GRID, COMMON, SINGLE],
        LPTML_Supervised: [GRID, COMMON, SINGLE, LABELS],
        LPTMLCV: [GRID, COMMON, CHOICE[:-1]],
        LPTML_SupervisedCV: [GRID, COMMON, CHOICE, LABELS],
    }.items():
        found = names(*tables, choosing=cls.__name__.endswith("CV"))
        assert found == set(inspect.signature(cls).parameters) - left_out, cls


# Defaults that the help says in other words than Python.
IN_WORDS: dict[str, object] = {
    "all features": None,
    "as they are": None,
    "none": None,
    "all": None,
    "the identity": None,
    "where there are many constraints": "auto",
    "refine": True,
}


def in_words(default: object) -> str:
    """A default as the help has it."""
    if isinstance(default, tuple):
        return ", ".join(in_words(value) for value in default)
    return f"{default:g}" if isinstance(default, float) else str(default)


EVERY = [(option, text) for table in (GRID, COMMON, LABELS, CHOICE, SINGLE) for option, _, text in table]


@pytest.mark.parametrize(("option", "text"), EVERY)
def test_defaults_in_the_help_are_those_of_the_estimators(option: str, text: str) -> None:
    from lptml import LPTMLCV, LPTML_Supervised, LPTML_SupervisedCV

    found = re.search(r"\[default: (.*?)(?:; pairs: (.*))?\]$", text)
    assert found, option
    of_labels, of_pairs = found.groups()
    name = parameter_name(option)
    choosing = (option, text) not in [(option, text) for option, _, text in SINGLE]
    (name,) = names([(option, {}, text)], choosing=choosing)
    signature = inspect.signature(LPTML_SupervisedCV if choosing else LPTML_Supervised).parameters
    default = signature[name].default
    pairs = inspect.signature(LPTMLCV).parameters
    if name == "random_state":
        assert (of_labels, default) == ("0", None)  # the command line is reproducible by default
    elif name == "n_jobs":
        assert (of_labels, default) == ("1", None)  # joblib's word for one
    elif of_labels in IN_WORDS:
        assert IN_WORDS[of_labels] == default
    else:
        assert of_labels == in_words(default)
    if name in pairs:
        same = pairs[name].default == default
        assert of_pairs == (None if same else in_words(pairs[name].default))


def test_the_help_tells_the_setting_that_is_fitted_alone() -> None:
    from lptml import LPTML, LPTML_Supervised

    labels, pairs = (
        [in_words(inspect.signature(cls).parameters[name].default) for name in LISTED]
        for cls in (LPTML_Supervised, LPTML)
    )
    told = ", ".join(f"{name} {value}" for name, value in zip(LISTED, labels))
    assert f"({told}; pairs: {', '.join(pairs)})" in CROSS_VALIDATE[-1]


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
        (["fit", "t.csv"], USAGE, "say where the labels are: --label COLUMN or --pairs FILE"),
        (["fit", "t.csv", "--label", "q"], INPUT, "there is no column 'q'"),
        (["fit", "t.csv", "--label", "label", "--pairs", "p.csv"], USAGE, "not both"),
        (["fit", "t.csv", "--label", "label", "--bounds", "often"], USAGE, "'often' is not auto"),
        (["fit", "t.csv", "--label", "label", "--max-trials", "-1"], USAGE, "--max-trials"),
        (["fit", "t.csv", "--label", "label", "--delimiter", "ab"], USAGE, "--delimiter"),
        (["fit", "t.csv", "--label", "label", "--encoding", "klingon"], INPUT, "unknown encoding 'klingon'"),
        (["fit", "t.csv", "--label", "label", "-o", "-"], USAGE, "a model is a binary file"),
        (["fit", "t.csv", "--label", "label", "-o", "none/m.npz"], OUTPUT, "none/m.npz: cannot be written"),
        (["fit", "-", "--label", "label"], USAGE, "name the model with -o"),
        (["fit", "t.csv", "--label", "label", "--n-components", "9"], INPUT, "n_components must be"),
        (["fit", "t.csv", "--label", "label", "--bounds", "0.8"], INPUT, "bounds is about pairs"),
        (["fit", "t.csv", "--label", "label", "--no-refine"], USAGE, "--no-refine is for one setting"),
        (["fit", "t.csv", "--label", "label", "--checkpoint", "c.npz"], USAGE, "add --no-cross-validate"),
        (["fit", "t.csv", "--label", "label", "--no-cross-validate", "--cv", "3"], USAGE, "--cv is about"),
        (
            ["fit", "t.csv", "--label", "label", "--no-cross-validate", "--n-neighbors", "3"],
            USAGE,
            "--n-neighbors has no use",
        ),
        (
            [
                "fit",
                "t.csv",
                "--label",
                "label",
                "--no-cross-validate",
                "--prior",
                "within",
                "--prior",
                "identity",
            ],
            USAGE,
            "--prior is given 2 times",
        ),
        (
            ["fit", "t.csv", "--pairs", "p.csv", "--constraints", "all", "--drop", "label"],
            USAGE,
            "is about labels",
        ),
        (
            ["fit", "t.csv", "--pairs", "p.csv", "--n-neighbors", "3", "--drop", "label"],
            USAGE,
            "is about labels",
        ),
        (["transform", "m.npz", "t.csv"], INPUT, "m.npz: no such model; make one with lptml fit"),
        (["transform", "t.csv", "t.csv"], INPUT, "t.csv: is not a"),
        (["transform", ".", "t.csv"], INPUT, ".: is"),
        (["distance", "m.npz", "t.csv"], USAGE, "Missing option '--pairs'"),
        (["datasets", "mars"], INPUT, "there is no data set 'mars'"),
        (["bench", "mars"], INPUT, "there is no data set 'mars'"),
        (["unknown"], USAGE, "No such command 'unknown'; there are check, suspects"),
        (["t.csv"], USAGE, "for a look at the file: lptml check t.csv"),
        (["check", "t.cvs"], INPUT, "t.cvs: no such file; did you mean 't.csv'?"),
        (["verify", "mars.npz"], INPUT, "mars.npz: no such file; check the path"),
        (
            ["suspects", "t.csv", "--label", "label", "-o", "t.xlsx"],
            OUTPUT,
            "t.xlsx: tables are written as .csv",
        ),
        (["review", "t.csv", "--label", "label", "-o", "no/c.csv"], OUTPUT, "there is no folder"),
        (["review", "t.csv"], USAGE, "say where the labels are: --label COLUMN (see"),
        (["apply", "t.csv", "p.csv", "-o", "c.csv"], INPUT, "does not name the columns decision, given, row"),
        (["apply", "t.csv", "p.csv", "-o", "c.npz"], OUTPUT, "the result is a table of text, as t.csv is"),
        (["datasets", "wine", "--wrong", "10%"], USAGE, "'10%' is not a number"),
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


def test_help_is_given_to_who_asks_in_any_way() -> None:
    whole = run("--help").stdout
    assert "From a doubtful table to a corrected one:" in whole
    assert run().stdout == run("help").stdout == whole
    assert run("help", "check").stdout == run("check", "--help").stdout


def test_an_error_of_ours_is_one_line_and_a_traceback_with_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*packages: str) -> dict[str, object]:
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
    assert completed.stdout.split() == ["plain,review", "plain,report", "plain,reproduce"]


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
