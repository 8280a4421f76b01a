"""The runner: rows survive an interruption, options decide what may be resumed, files are complete."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from lptml.experiments import EXPERIMENTS, Options, run, runner
from lptml.experiments.methods import chosen
from lptml.experiments.runner import Rows, load_experiment

calls = []


def work(task, options):
    calls.append(task["repeat"])
    return [
        {"value": 10 * task["repeat"] + fold, "error": "odd" if task["repeat"] % 2 else ""} for fold in (0, 1)
    ]


def tasks(options):
    return [{"repeat": repeat} for repeat in range(options.repeats)], ["a note"]


def finish(rows, options, folder):
    return {"sum": sum(row["value"] for row in rows), "figures": []}


@pytest.fixture
def toy(monkeypatch):
    module = SimpleNamespace(NAME="table1", TITLE="toy", ALONE=True, tasks=tasks, work=work, finish=finish)
    monkeypatch.setattr(runner, "load_experiment", lambda name: module)
    calls.clear()
    return module


def test_everything_is_written(toy, tmp_path):
    said = []
    options = Options(folder=tmp_path / "out", repeats=3)
    record = run("table1", options, lambda *news: said.append(news))["table1"]
    assert record["summary"]["sum"] == 0 + 1 + 10 + 11 + 20 + 21
    assert record["failures"] == ["odd"]
    assert record["notes"] == ["a note"]
    assert record["pieces_not_run"] == 0
    assert said[-1][1:3] == (3, 3)
    with (tmp_path / "out" / "table1.csv").open() as file:
        assert [int(row["value"]) for row in csv.DictReader(file)] == [0, 1, 10, 11, 20, 21]
    stored = json.loads((tmp_path / "out" / "table1.json").read_text())
    assert stored["options"]["seed"] == 0
    assert stored["versions"]["numpy"]


@pytest.mark.parametrize("end", ["\n", ""])
def test_an_interrupted_run_goes_on(toy, tmp_path, end):
    options = Options(folder=tmp_path, repeats=4)
    run("table1", options)
    path = tmp_path / "table1.rows.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], lines[3][: len(lines[3]) // 2]]) + end)  # killed while writing
    calls.clear()
    record = run("table1", options)["table1"]
    assert sorted(calls) == [2, 3]
    assert record["pieces_kept_from_earlier_runs"] == 2
    assert record["summary"]["sum"] == sum(20 * repeat + 1 for repeat in range(4))
    calls.clear()
    run("table1", options)
    assert calls == []  # the line after the one that was cut off is whole


@pytest.mark.parametrize("change", [{"seed": 1}, {"neighbors": 3}, {"resume": False}])
def test_other_options_begin_again(toy, tmp_path, change):
    run("table1", Options(folder=tmp_path, repeats=2))
    calls.clear()
    run("table1", Options(folder=tmp_path, repeats=2, **change))
    assert sorted(calls) == [0, 1]


def test_the_time_limit_leaves_pieces_for_later(toy, tmp_path):
    record = run("table1", Options(folder=tmp_path, repeats=5, minutes=1e-9))["table1"]
    assert calls == [0]
    assert record["pieces_not_run"] == 4
    calls.clear()
    assert run("table1", Options(folder=tmp_path, repeats=5))["table1"]["pieces_not_run"] == 0
    assert sorted(calls) == [1, 2, 3, 4]


def test_rows_come_in_the_order_of_the_tasks(tmp_path):
    rows = Rows(tmp_path / "rows", Options())
    for repeat in (2, 0, 1):
        rows.add({"repeat": repeat}, [{"value": repeat}], 0.1)
    assert [row["value"] for row in rows.in_order({"repeat": r} for r in range(3))] == [0, 1, 2]


def test_every_experiment_has_its_members():
    for name in EXPERIMENTS:
        module = load_experiment(name)
        assert name == module.NAME
        assert all(callable(getattr(module, member)) for member in ("tasks", "work", "finish"))


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="known are"):
        run("figure-9", Options(folder=tmp_path))
    with pytest.raises(ValueError, match="unknown methods"):
        chosen(Options(methods=("SVM",)))


@pytest.mark.parametrize(
    "change",
    [
        {"repeats": 0},
        {"folds": 1},
        {"pairs": -1},
        {"most_points": 5},
        {"workers": ()},
        {"minutes": 0.0},
    ],
)
def test_bad_options_are_named(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        Options(**change)


def test_the_plain_search_gets_fewer_trials_in_high_dimensions():
    options = Options(trials=2000, plain_dimension=8)
    assert options.plain_trials(4) == options.plain_trials(8) == 2000
    assert options.plain_trials(16) == 250
    assert options.plain_trials(64) == 20
    assert Path(options.folder).name == "reproduction"
