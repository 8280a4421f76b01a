"""lptml check: damaged tables, every planted problem named in one run, and a command that handles it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from lptml.cli.app import cli
from lptml.cli.errors import INPUT, USAGE
from lptml.cli.findings import Asked, FindingKind, look
from lptml.cli.tables import Table, make_frame

N = 60


def sound() -> pd.DataFrame:
    """A table without a problem: two measurements and two overlapping classes."""
    rng = np.random.default_rng(0)
    grower = np.where(np.arange(N) % 2, "north", "south")
    x = rng.normal(size=(N, 2)).round(3) + (np.arange(N) % 2)[:, None]
    return pd.DataFrame({"ash": x[:, 0], "hue": x[:, 1], "grower": grower})


def put(column: str, values: object) -> Callable[[pd.DataFrame], None]:
    def damage(frame: pd.DataFrame) -> None:
        frame.insert(0, column, values)

    return damage


def cells(column: str, rows: object, value: object) -> Callable[[pd.DataFrame], None]:
    def damage(frame: pd.DataFrame) -> None:
        frame[column] = frame[column].astype(object)
        frame.loc[rows, column] = value

    return damage


def copied(rows: list[int], label: str | None = None) -> Callable[[pd.DataFrame], None]:
    def damage(frame: pd.DataFrame) -> None:
        for row in rows:
            frame.loc[len(frame)] = frame.loc[row]
            if label:
                frame.loc[len(frame) - 1, "grower"] = label

    return damage


COLOURS = np.resize(["red", "white", "rosé"], N)
NOTES = [f"note {i % 50} and {i % 7}" for i in range(N)]
DAYS = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
ANSWER = np.where(np.arange(N) % 2, 1.0, 0.0) + np.random.default_rng(1).normal(0, 0.05, N).round(4)
P = FindingKind
TABLES: dict[str, tuple[list[Callable[[pd.DataFrame], None]], set[tuple[FindingKind, str | None]]]] = {
    "customer numbers": ([put("customer_id", range(10001, 10001 + N))], {(P.IDENTIFIER, "customer_id")}),
    "keys of text": ([put("bottle", [f"b{i:03d}" for i in range(N)])], {(P.IDENTIFIER, "bottle")}),
    "unordered whole numbers": (
        [put("bar", np.random.default_rng(2).permutation(10_000)[:N])],
        {(P.UNIQUE, "bar")},
    ),
    "constant": ([put("site", 7)], {(P.CONSTANT, "site")}),
    "constant text": ([put("site", "north")], {(P.CONSTANT, "site")}),
    "the index of pandas": ([put("", range(N))], {(P.IDENTIFIER, "column 1")}),
    "empty column": ([put("remark", "")], {(P.EMPTY, "remark")}),
    "dates": ([put("day", DAYS)], {(P.DATE, "day")}),
    "dates as numbers": (
        [put("day", [int(d.replace("-", "")) for d in DAYS])],
        {(P.DATE, "day")},
    ),
    "missing labels": ([cells("grower", [3, 9], "")], {(P.NO_LABEL, "grower")}),
    "missing values": ([cells("ash", [1, 2], "NA")], {(P.MISSING, "ash")}),
    "categories": ([put("colour", COLOURS)], {(P.CATEGORY, "colour")}),
    "free text": ([put("note", [*NOTES[:-1], NOTES[0]])], {(P.TEXT, "note")}),
    "stray text": ([cells("hue", [5, 8], "n.m.")], {(P.NO_NUMBER, "hue")}),
    "decimal commas": (
        [put("acid", [f"{i % 9},{i % 10}" for i in range(N)])],
        {(P.NO_NUMBER, "acid")},
    ),
    "infinity": ([cells("hue", [5], "inf")], {(P.TOO_LARGE, "hue")}),
    "duplicates": ([copied([4, 9])], {(P.DUPLICATE, None)}),
    "contradictions": ([copied([4], "north")], {(P.CONTRADICTION, "grower")}),
    "class of one": ([cells("grower", [7], "islands")], {(P.SMALL_CLASS, "grower")}),
    "two spellings": ([cells("grower", list(range(0, 20, 2)), "South")], {(P.SPELLING, "grower")}),
    "the answer": ([put("paid", ANSWER)], {(P.LEAK, "paid")}),
    "a column twice": (
        [lambda frame: frame.insert(0, "ash2", frame["ash"])],
        {(P.SAME_COLUMN, "ash")},
    ),
    "everything": (
        [
            put("customer_id", range(10001, 10001 + N)),
            put("site", 7),
            put("day", DAYS),
            put("colour", COLOURS),
            put("paid", ANSWER),
            cells("hue", [5, 8], "n.m."),
            cells("ash", [1, 2], ""),
            cells("grower", [7], "islands"),
            cells("grower", [12], ""),
        ],
        {
            (P.IDENTIFIER, "customer_id"),
            (P.CONSTANT, "site"),
            (P.DATE, "day"),
            (P.CATEGORY, "colour"),
            (P.LEAK, "paid"),
            (P.NO_NUMBER, "hue"),
            (P.MISSING, "ash"),
            (P.SMALL_CLASS, "grower"),
            (P.NO_LABEL, "grower"),
        },
    ),
}


def run(*arguments: str, **extra: object) -> Result:
    return CliRunner().invoke(cli, list(arguments), **extra)


def problems(path: Path, *arguments: str) -> tuple[set[tuple[str, str | None]], dict[str, object]]:
    result = run("check", str(path), "--label", "grower", "--json", *arguments)
    assert result.exit_code in (0, INPUT), result.output
    answer = json.loads(result.stdout)
    assert (result.exit_code == INPUT) == any(each["stops"] for each in answer["problems"])
    return {(each["problem"], each["column"]) for each in answer["problems"]}, answer


def test_a_sound_table_has_no_problem(tmp_path: Path) -> None:
    sound().to_csv(tmp_path / "t.csv", index=False)
    assert problems(tmp_path / "t.csv")[0] == set()
    assert "No problem was found" in run("check", str(tmp_path / "t.csv"), "--label", "grower").stdout


@pytest.mark.parametrize("name", TABLES)
def test_every_planted_problem_is_named_in_one_run(tmp_path: Path, name: str) -> None:
    damages, planted = TABLES[name]
    frame = sound()
    for damage in damages:
        damage(frame)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    found, answer = problems(path)
    assert found == {(problem.value, column) for problem, column in planted}
    text = run("check", str(path), "--label", "grower").stdout
    for each in answer["problems"]:
        assert each["advice"] in text
    # The command that is named next leaves nothing that stops.
    words = shlex.split(str(answer["next"]))
    assert words[:2] == ["lptml", "suspects"]
    again = run("check", *words[2:], "--json")
    assert again.exit_code == 0, again.output


def test_rows_and_names_of_a_broken_file_come_in_one_answer(tmp_path: Path) -> None:
    lines = sound().to_csv(index=False).splitlines()
    lines[0] = "ash,ash,grower"
    lines[5] += ",9"
    lines[9] = "1.0,north"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    text = run("check", str(path), "--label", "grower").stdout
    assert "'ash' occurs twice" in text
    assert "line 6: 4 cells" in text
    assert "line 10: 2 cells" in text


def test_a_command_that_leaves_no_feature_is_not_the_answer(tmp_path: Path) -> None:
    sound().to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    text = run("check", str(tmp_path / "t.csv"), "--label", "grower").stdout
    assert "writes numbers with commas" in text
    assert "Next, once the file is mended:" in text


def test_an_identifier_is_never_silently_a_feature(tmp_path: Path) -> None:
    frame = sound()
    put("customer_id", range(10001, 10001 + N))(frame)
    path = str(tmp_path / "t.csv")
    frame.to_csv(path, index=False)
    refused = run("suspects", path, "--label", "grower")
    assert refused.exit_code == INPUT
    assert "column 'customer_id' looks like an identifier" in refused.stderr
    assert "--key customer_id" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert run("suspects", path, "--label", "grower", "--key", "customer_id").exit_code == 0
    wanted = ["--features", "customer_id,ash"]  # who names it wants it
    assert run("suspects", path, "--label", "grower", *wanted).exit_code == 0


def test_a_command_refuses_all_problems_at_once(tmp_path: Path) -> None:
    frame = sound()
    put("day", DAYS)(frame)
    cells("ash", [1], "")(frame)
    path = str(tmp_path / "t.csv")
    frame.to_csv(path, index=False)
    result = run("fit", path, "--label", "grower")
    assert result.exit_code == INPUT
    assert "2 problems" in result.stderr
    assert "--drop day" in result.stderr
    assert "--impute median" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("try: lptml fit ")
    answer = json.loads(run("fit", path, "--label", "grower", "--json").stderr)
    assert len(answer["problems"]) == 3


def test_misspelt_columns_and_commands_get_a_suggestion(tmp_path: Path) -> None:
    path = str(tmp_path / "t.csv")
    sound().to_csv(path, index=False)
    for command in ("check", "fit", "suspects"):
        assert "did you mean 'grower'?" in run(command, path, "--label", "Grower").stderr
    result = run("suspect", path)
    assert result.exit_code == USAGE
    assert "did you mean 'suspects'?" in result.stderr


def test_without_a_label_columns_are_suggested(tmp_path: Path) -> None:
    sound().to_csv(tmp_path / "t.csv", index=False)
    said = run("check", str(tmp_path / "t.csv")).stdout
    assert "--label, perhaps --label grower" in said
    assert "No problem was found" in said  # labels are no categories to handle


def test_row_numbers_are_those_of_the_file(tmp_path: Path) -> None:
    frame = sound()
    cells("grower", [0, 1, 2], "")(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["--label", "grower", "--drop-unlabelled", "--top", "99", "--json"]
    answer = json.loads(run("suspects", str(tmp_path / "t.csv"), *arguments).stdout)
    assert {int(each["row"]) for each in answer["suspects"]} == set(range(4, N + 1))


CELLS = st.one_of(st.none(), st.text(max_size=6), st.floats(width=32).map(str), st.integers().map(str))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=30), st.booleans())
def test_looking_never_fails(rows: list[tuple[str | None, ...]], one_hot: bool) -> None:
    columns = {name: list(column) for name, column in zip("abc", zip(*rows))}
    table = Table("t.csv", make_frame(columns), range(2, len(rows) + 2))
    for found in look(table, Asked("c", one_hot=one_hot)):
        assert found.what
        assert found.advice
        assert set(found.options) <= {"drop", "key", "na", "impute", "one_hot"} | {
            "drop_unlabelled",
            "drop_duplicates",
        }
