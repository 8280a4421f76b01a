"""The experiments themselves, on a thimbleful of data, and the page written from them."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from lptml.experiments import Options, paper, run
from lptml.experiments.command import reproduce
from lptml.experiments.document import _outcome, write_page
from lptml.experiments.protocol import evaluate, folds, prepare, seed_for
from lptml.experiments.summaries import executions, paired, statistics
from lptml.noise import NoiseKind

FAST = ("Euclidean", "RobustScaler", "RCA", "LPTML plain")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    options = Options.quick(
        folder=folder,
        n_jobs=1,
        trials=10,
        most_points=40,
        methods=FAST,
        datasets=("iris", "synthetic", "poisoned", "wine"),
    )
    return folder, {name: run(name, options)[name] for name in ("table1", "figure-poisoning", "noise")}


def test_accuracies_are_sane(results):
    _, records = results
    table = records["table1"]["summary"]["table"]
    assert set(table) == {"iris", "synthetic", "wine"}
    assert table["synthetic"]["RCA"]["mean"] > 0.9 > table["synthetic"]["Euclidean"]["mean"]
    assert table["iris"]["LPTML plain"]["paper"] == paper.TABLE["iris"]["LPTML plain"][0]
    assert records["table1"]["failures"] == []


def test_noise_is_reported_three_ways(results):
    _, records = results
    summary = records["noise"]["summary"]
    cell = summary["accuracy"]["uniform"]["synthetic"]["RCA"]["0.2"]
    assert cell["clean"] >= cell["as_it_is"] - 0.1
    assert {"as_it_is", "cleaned", "clean"} <= set(cell)
    assert 0.4 < summary["suspects"]["uniform"]["synthetic"]["RCA"]["0.2"]["mean"] <= 1.0


def test_every_attack_on_labels_is_measured(results, tmp_path):
    folder, records = results
    accuracy = records["noise"]["summary"]["accuracy"]
    assert {*NoiseKind, "planted", "adaptive", "planted pairs"} == set(accuracy)
    for kind, by_data in accuracy.items():
        assert "iris" in by_data, kind
        learners = {"LPTML plain"} if kind == "planted pairs" else set(FAST)
        assert all(set(by_method) == learners for by_method in by_data.values()), kind
    assert records["noise"]["failures"] == []
    attacked, without = (accuracy[kind]["iris"]["RobustScaler"] for kind in ("adaptive", "uniform"))
    assert attacked["0.05"]["clean"] == without["0.0"]["clean"]  # it never looks at labels
    text = write_page(folder, tmp_path / "page.md").read_text()
    for column in (
        "clusters 20%",
        "class 20%",
        "neighborhood 10%",
        "confident 10%",
        "planted 5%",
        "adaptive 5%",
        "planted pairs 5%",
    ):
        assert f"| {column} |" in text


def test_figures_exist_as_png_and_svg(results):
    folder, records = results
    figures = [name for record in records.values() for name in record["summary"]["figures"]]
    assert len(figures) == 2 + 4 + 2
    for name in figures:
        content = (folder / name).read_bytes()
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")


def test_the_page_has_the_numbers(results, tmp_path):
    folder, records = results
    page = write_page(folder, tmp_path / "reproduction.md")
    text = page.read_text()
    mean = records["table1"]["summary"]["table"]["iris"]["RCA"]["mean"]
    assert f"{100 * mean:.1f} ±" in text
    assert "{" not in text
    for image in re.findall(r"\]\((reproduction-figures/[^)]+)\)", text):
        assert (tmp_path / image).is_file()
    with pytest.raises(FileNotFoundError, match="lptml reproduce all"):
        write_page(tmp_path / "nothing", page)


@pytest.mark.slow
def test_curves_and_times(tmp_path):
    options = Options.quick(folder=tmp_path, n_jobs=1)
    curves = run("figure-violations", options)["figure-violations"]["summary"]["curves"]
    for reading in curves.values():
        for curve in reading.values():
            for entry in curve.values():
                assert entry["violated"]["mean"] <= entry["trivial"]["mean"] + 1e-9
            assert curve["refined"]["violated"]["mean"] <= curve["50"]["violated"]["mean"] + 0.01
    seconds = run("figure-dimension", options)["figure-dimension"]["summary"]["seconds"]
    assert all(entry["mean"] < entry["paper"] for by in seconds.values() for entry in by.values())
    options = Options.quick(folder=tmp_path, n_jobs=1, datasets=("wine",))
    parallel = run("figure-parallel", options)["figure-parallel"]["summary"]
    assert parallel["same_result_for_any_number_of_workers"]
    assert "Where the paper's text" in write_page(tmp_path, tmp_path / "page.md").read_text()


def test_planted_points_are_learned_from_and_never_tested():
    options = Options()
    X, y, planted = prepare("poisoned", 0, options)
    for fold in folds(X, y, planted, options, 0):
        assert (fold.X_test[:, 0] > -50).all()
        assert (fold.X[:, 0] < -50).sum() in (2, 3)


def test_executions_are_reproducible_and_differ():
    options = Options(most_points=60)
    one, two, other = (prepare("digits", repeat, options)[0] for repeat in (0, 0, 1))
    assert one.shape == (60, 20)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert seed_for(0, "a", 1) == seed_for(0, "a", 1) != seed_for(0, "a", 2)


def test_a_failure_is_a_row_that_says_why():
    options = Options(methods=("LMNN",))
    X, y, planted = prepare("synthetic", 0, options)
    fold = next(folds(X, y, planted, options, 0))
    broken = type(fold)(np.zeros_like(fold.X), fold.y, fold.X_test, fold.y_test)
    row = evaluate("LMNN", broken, options, 0)
    assert "identical" in row["error"]
    assert np.isnan(row["accuracy"])


def test_statistics_are_over_executions():
    rows = [
        {"repeat": r, "m": "a", "value": v}
        for r, v in [(0, 1.0), (0, 3.0), (1, 4.0), (1, 6.0), (2, float("nan"))]
    ]
    runs = executions(rows, "value", "m")
    assert runs == {("a",): {0: 2.0, 1: 5.0}}
    found = statistics(runs["a",])
    assert found["mean"] == 3.5
    assert found["error"] == pytest.approx(1.5)
    assert paired({0: 1.0, 1: 2.0, 2: 9.0}, {0: 0.0, 1: 1.0})["mean"] == 1.0


def test_the_command(tmp_path):
    arguments = [
        "table1",
        "--quick",
        "-o",
        str(tmp_path),
        "--dataset",
        "iris",
        "--method",
        "RCA",
        "--n-jobs",
        "1",
    ]
    answer = CliRunner().invoke(reproduce, [*arguments, "--document", str(tmp_path / "page.md")])
    assert answer.exit_code == 0, answer.output
    assert "table1: 2 rows" in answer.output
    assert json.loads((tmp_path / "table1.json").read_text())["options"]["methods"] == ["RCA"]
    again = CliRunner().invoke(
        reproduce, ["document", "-o", str(tmp_path), "--document", str(tmp_path / "b" / "page.md")]
    )
    assert again.exit_code == 0
    assert (tmp_path / "b" / "page.md").read_text() == (tmp_path / "page.md").read_text()
    assert CliRunner().invoke(reproduce, ["figure-9"]).exit_code == 2


def test_missing_data_is_said_not_hidden(tmp_path, monkeypatch):
    from lptml.datasets import uci as _uci

    monkeypatch.delenv("LPTML_DATA", raising=False)
    monkeypatch.setenv("LPTML_CACHE", str(tmp_path / "cache"))

    def offline(url, timeout):
        raise OSError("no network")

    monkeypatch.setattr(_uci.urllib.request, "urlopen", offline)
    options = Options.quick(folder=tmp_path, n_jobs=1, datasets=("soybean", "iris"), methods=("Euclidean",))
    record = run("table1", options)["table1"]
    assert list(record["summary"]["table"]) == ["iris"]
    assert "soybean is left out" in record["notes"][0]


@pytest.mark.parametrize(
    ("differences", "outcome"),
    [
        ([0.0] * 49 + [-0.01], "within one standard error"),  # mean and error are equal
        ([0.0] * 48 + [-0.01] * 2, "below"),
        ([0.0] * 48 + [0.01] * 2, "above"),
        ([0.0] * 50, "within one standard error"),
    ],
)
def test_outcomes_are_not_decided_by_rounding(differences, outcome):
    assert _outcome(statistics(dict(enumerate(differences)))) == outcome
