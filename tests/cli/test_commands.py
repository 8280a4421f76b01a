"""The commands on sound files: what they write, what they print, and that the pieces fit together."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from sklearn.datasets import load_iris

from lptml import LPTMLCV, CertifiedKNeighborsClassifier, LPTML_Supervised, LPTML_SupervisedCV, load, save
from lptml.cli.app import cli

X, codes = load_iris(return_X_y=True)
NAMES = ["setosa", "versicolor", "virginica"]
FAST = ["--max-trials", "3", "--n-repeats", "1"]
SINGLE = ["--max-trials", "3", "--no-cross-validate"]
COUNT = ["--constraints", "all", "--temperature", "0", "--shrinkage", "0"]


def run(*arguments: str, code: int = 0, **extra: object) -> Result:
    result = CliRunner().invoke(cli, list(arguments), **extra)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Iris with keys, a few wrong labels and a file of pairs; and models fitted on both."""
    folder = tmp_path_factory.mktemp("iris")
    labels = [NAMES[c] for c in codes]
    for wrong in (3, 60, 120):
        labels[wrong] = NAMES[(codes[wrong] + 1) % 3]
    rows = [f"f{i:03d},{','.join(map(str, x))},{label}" for i, (x, label) in enumerate(zip(X, labels))]
    (folder / "iris.csv").write_text("id,sl,sw,pl,pw,species\n" + "\n".join(rows) + "\n")
    rng = np.random.default_rng(0)
    pairs = rng.permuted(np.tile(np.arange(150), (150, 1)), axis=1)[:, :2]
    pair_labels = ["same" if codes[i] == codes[j] else "different" for i, j in pairs]
    lines = [f"f{i:03d},f{j:03d},{v}" for (i, j), v in zip(pairs, pair_labels)]
    (folder / "pairs.csv").write_text("\n".join(lines) + "\n")
    data, model = str(folder / "iris.csv"), str(folder / "iris.npz")
    run("fit", data, "--label", "species", "--key", "id", "-o", model, *FAST)
    pairs_model = str(folder / "pairs.npz")
    arguments = ["--key", "id", "--drop", "species", "--pairs", str(folder / "pairs.csv"), "-o", pairs_model]
    run("fit", data, *arguments, "--max-trials", "3")
    run("fit", data, "--label", "species", "--key", "id", "-o", str(folder / "all.npz"), *SINGLE, *COUNT)
    return folder


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_fit_reports_what_it_found(folder: Path) -> None:
    out = str(folder / "again.npz")
    arguments = ["fit", str(folder / "iris.csv"), "--label", "species", "--key", "id", "-o", out, *FAST]
    result = json.loads(run(*arguments, "--json").stdout)
    assert (result["rows"], result["features"], result["classes"], result["pairs"]) == (150, 4, 3, None)
    assert 0 <= (result["lower_bound"] or 0.0) <= result["violation_rate"] < result["trivial_rate"] < 1
    assert result["n_trials"] == 3
    assert (result["constraints"], result["bounds"]) == ("triplets", None)
    model = load(out)
    averaged = int(model.cv_results_["averaged"].sum())
    assert (result["n_settings"], result["n_averaged"]) == (9, averaged)
    assert (result["best_params"], result["best_score"]) == (model.best_params_, model.best_score_)
    text = run(*arguments).stdout
    assert (
        f"violated   {result['violation_rate']:.2%} of the weight of the triplets ({result['n_violations']})"
        in text
    )
    assert f"Euclidean  {result['trivial_rate']:.2%} are violated by the Euclidean distance" in text
    prior, shrinkage = (model.best_params_[name] for name in ("prior", "shrinkage"))
    assert f"9 settings, {averaged} averaged; best: prior {prior}, shrinkage {shrinkage:g} (score" in text
    assert f"search     3 trials, {model.n_infeasible_} infeasible" in text
    assert "bounds" not in text
    again, first = (load(folder / name).components_ for name in ("again.npz", "iris.npz"))
    np.testing.assert_array_equal(again, first)  # the same seed, the same metric


def test_fit_of_one_setting_tells_of_no_others(folder: Path) -> None:
    arguments = ["fit", str(folder / "iris.csv"), "--label", "species", "--key", "id"]
    arguments += ["-o", str(folder / "one.npz"), *SINGLE, *COUNT]
    result = json.loads(run(*arguments, "--json").stdout)
    assert result["constraints"] == "all"
    assert not {"n_settings", "best_params"} & set(result)
    text = run(*arguments).stdout
    assert f"{result['violation_rate']:.2%} of the pairs" in text
    assert f"trivial    {result['trivial_rate']:.2%} are violated by the trivial metric" in text
    assert f"similar within u = {result['bounds'][0]:.4g}" in text
    assert "settings" not in text


def test_fit_is_the_estimator(folder: Path) -> None:
    labels = [row["species"] for row in rows_of((folder / "iris.csv").read_text())]
    lines = [line.split(",") for line in (folder / "pairs.csv").read_text().splitlines()]
    index = np.array([[int(key[1:]) for key in line[:2]] for line in lines])
    pair_labels = np.array([1 if line[2] == "same" else -1 for line in lines])
    count = {"constraints": "all", "temperature": 0.0, "shrinkage": 0.0}
    fast = {"max_trials": 3, "random_state": 0}
    for name, model in {
        "iris": LPTML_SupervisedCV(**fast, n_repeats=1).fit(X, labels),
        "all": LPTML_Supervised(**fast, **count).fit(X, labels),
        "pairs": LPTMLCV(**fast).fit(X[index], pair_labels),
    }.items():
        stored = load(folder / f"{name}.npz")
        assert type(stored) is type(model)
        np.testing.assert_array_equal(stored.components_, model.components_)
        assert stored.feature_names_in_.tolist() == ["sl", "sw", "pl", "pw"]


def test_the_grid_is_what_is_given(folder: Path) -> None:
    out = str(folder / "grid.npz")
    data = ["fit", str(folder / "iris.csv"), "--label", "species", "--key", "id", "-o", out]
    run(
        *[*data, "--prior", "within", "--shrinkage", "0.25", "--temperature", "0.1", "--temperature", "0.2"],
        *["--constraints", "neighbors", "--n-components", "2", "--n-neighbors", "7", "--cv", "2", *FAST],
    )
    model = load(out)
    settings = {"map": "linear", "constraints": "neighbors", "n_components": 2}
    settings |= {"prior": "within", "shrinkage": 0.25}
    assert model.cv_results_["params"] == [settings | {"temperature": T} for T in (0.1, 0.2)]
    assert (model.n_neighbors, model.cv, model.n_repeats, model.max_trials) == (7, 2, 1, 3)
    pairs = ["--key", "id", "--drop", "species", "--pairs", str(folder / "pairs.csv")]
    run(*data[:2], *pairs, "-o", out, "--prior", "within", "--temperature", "0.1", *FAST)
    assert [s["prior"] for s in load(out).cv_results_["params"]] == ["within"]


def test_options_reach_the_estimator(folder: Path) -> None:
    out = str(folder / "options.npz")
    (folder / "R.csv").write_text("1,0\n0,2\n")
    run(
        *["fit", str(folder / "iris.csv"), "--label", "species", "--features", "pl, pw", "-o", out],
        *["--bounds", "percentile:20:80", "--no-refine", "--epsilon", "0.7", "--objective", "random"],
        *["--regularization", "0.5", "--regularizer", str(folder / "R.csv"), "--n-components", "1"],
        *[
            "--class-weight",
            "balanced",
            "--no-approximate-counting",
            "--time-limit",
            "60",
            "--engine",
            "local",
        ],
        *["--n-jobs", "1", "--random-state", "7", "--n-constraints", "50", *SINGLE, *COUNT],
        *["--prior", "within", "--search-components", "2"],
    )
    model = load(out)
    expected = {
        "bounds": ("percentile", 20.0, 80.0),
        "refine": False,
        "epsilon": 0.7,
        "objective": "random",
        "regularization": 0.5,
        "n_components": 1,
        "class_weight": "balanced",
        "approximate_counting": False,
        "time_limit": 60.0,
        "random_state": 7,
        "constraints": "all",
        "n_constraints": 50,
        "temperature": 0.0,
        "shrinkage": 0.0,
        "prior": "within",
        "search_components": 2,
        "max_trials": 3,
    }
    parameters = model.get_params()
    assert {name: parameters[name] for name in expected} == expected
    np.testing.assert_array_equal(model.regularizer, [[1, 0], [0, 2]])
    assert model.components_.shape == (1, 2)


def test_transform(folder: Path) -> None:
    Z = X @ load(folder / "iris.npz").components_.T
    arguments = ["transform", str(folder / "iris.npz"), str(folder / "iris.csv")]
    rows = rows_of(run(*arguments, "--key", "id").stdout)
    assert rows[7]["id"] == "f007"
    np.testing.assert_array_equal([float(rows[7][f"z{j + 1}"]) for j in range(Z.shape[1])], Z[7])
    run(*arguments, "-o", str(folder / "z.npz"))
    with np.load(folder / "z.npz") as stored:
        np.testing.assert_array_equal(stored["z1"], Z[:, 0])
    assert json.loads(run(*arguments, "--json").stdout)["rows"][7] == Z[7].tolist()


def test_transform_reads_standard_input_and_columns_by_name(folder: Path) -> None:
    text = "pw,extra,pl,sw,sl\n0.2,x,1.4,3.5,5.1\n"
    row = rows_of(run("transform", str(folder / "iris.npz"), "-", input=text).stdout)[0]
    whole = rows_of(run("transform", str(folder / "iris.npz"), str(folder / "iris.csv")).stdout)[0]
    assert list(row) == list(whole)
    np.testing.assert_allclose([float(v) for v in row.values()], [float(v) for v in whole.values()])
    missing = run("transform", str(folder / "iris.npz"), "-", input="pl,pw\n1,2\n", code=3)
    assert "<stdin>: there is no column 'sl' (a feature of the model)" in missing.stderr


def test_distance(folder: Path) -> None:
    arguments = [str(folder / "pairs.npz"), str(folder / "iris.csv"), "--key", "id"]
    rows = rows_of(run("distance", *arguments, "--pairs", str(folder / "pairs.csv")).stdout)
    assert len(rows) == 150
    model = load(folder / "pairs.npz")
    i, j = int(rows[0]["first"][1:]), int(rows[0]["second"][1:])
    assert float(rows[0]["distance"]) == pytest.approx(float(model.pair_distance(X[[[i, j]]])[0]))
    assert {row["similar"] for row in rows} == {"yes", "no"}
    by_number = run("distance", *arguments[:2], "--pairs", "-", input="1,2\n3,150\n").stdout
    assert [row["first"] for row in rows_of(by_number)] == ["1", "3"]


def test_score(folder: Path) -> None:
    for name in ("iris", "all"):
        of_labels = ["score", str(folder / f"{name}.npz"), str(folder / "iris.csv"), "--label", "species"]
        result = json.loads(run(*of_labels, "--json").stdout)
        assert result["accuracy"] > 0.85
        assert ("violation_rate" in result) == (name == "all")  # of pairs; triplets are of the training rows
    assert 0 < result["violation_rate"] < 0.2
    of_pairs = ["score", str(folder / "pairs.npz"), str(folder / "iris.csv"), "--key", "id"]
    result = json.loads(run(*of_pairs, "--pairs", str(folder / "pairs.csv"), "--json").stdout)
    assert result["roc_auc"] > result["euclidean_roc_auc"] - 0.02
    assert result["accuracy"] > 0.8


def test_score_certifies_answers(folder: Path, tmp_path: Path) -> None:
    table = [str(folder / "iris.csv"), "--label", "species"]
    halves = json.loads(run("score", str(folder / "iris.npz"), *table, "--certify", "--json").stdout)
    assert halves["certified_at_0%"] > 0.85
    assert halves["certified_at_10%"] <= halves["certified_at_1%"] <= halves["certified_at_0%"]
    assert halves["of_training_labels"] == 75
    text = run("score", str(folder / "iris.npz"), *table, "--certify").stdout
    assert f"median flips survived        {halves['median_flips_survived']}\n" in text
    with open(folder / "iris.csv", newline="") as lines:
        species = [row["species"] for row in csv.DictReader(lines)]
    prepared = load(folder / "iris.npz")
    model = CertifiedKNeighborsClassifier().fit(X, species)
    model.feature_names_in_, model.preparation_ = prepared.feature_names_in_, prepared.preparation_
    save(model, tmp_path / "certified.npz")
    own = json.loads(run("score", str(tmp_path / "certified.npz"), *table, "--certify", "--json").stdout)
    assert own["certified_at_0%"] == pytest.approx(model.score(X, species))
    assert own["of_training_labels"] == len(X)
    of_pairs = ["score", str(folder / "pairs.npz"), str(folder / "iris.csv"), "--key", "id"]
    refused = run(*of_pairs, "--pairs", str(folder / "pairs.csv"), "--certify", code=2)
    assert "--certify is for labels" in refused.stderr


def test_suspects_finds_the_wrong_labels(folder: Path) -> None:
    arguments = ["suspects", str(folder / "iris.csv"), "--label", "species", "--key", "id"]
    result = json.loads(run(*arguments, "--top", "10", "--json").stdout)
    first = [row["row"] for row in result["suspects"]]
    assert {"f003", "f060", "f120"} <= set(first)
    wrong = next(row for row in result["suspects"] if row["row"] == "f003")
    assert (wrong["label"], wrong["suggested"]) == ("versicolor", "setosa")
    text = run(*arguments, "-o", str(folder / "ranked.csv")).stdout
    assert "of the 150 labels" in text
    ranked = rows_of((folder / "ranked.csv").read_text())
    doubt = [float(row["suspicion"]) for row in ranked]
    assert len(ranked) == 150
    assert doubt == sorted(doubt, reverse=True)
    assert len(rows_of(run(*arguments, "-o", "-").stdout)) == 150


def test_suspects_among_pairs(folder: Path) -> None:
    text = (folder / "pairs.csv").read_text().splitlines()
    species = [[codes[int(key[1:])] for key in line.split(",")[:2]] for line in text]
    clear = [k for k, (a, b) in enumerate(species) if (a == 0) != (b == 0)]  # setosa is far from the others
    wrong = [clear[k] for k in (2, 11, 25)]
    for k in wrong:
        text[k] = text[k].replace("different", "same")
    (folder / "spoiled.csv").write_text("\n".join(text) + "\n")
    arguments = ["--key", "id", "--drop", "species", "--pairs", str(folder / "spoiled.csv")]
    result = json.loads(run("suspects", str(folder / "iris.csv"), *arguments, "--top", "3", "--json").stdout)
    listed = {(row["first"], row["second"]) for row in result["suspects"]}
    assert listed == {tuple(text[k].split(",")[:2]) for k in wrong}
    assert {row["suggested"] for row in result["suspects"]} == {"dissimilar"}


def test_report(folder: Path) -> None:
    page = folder / "iris.html"
    arguments = ["report", str(folder / "iris.csv"), "--label", "species", "--key", "id", "-o", str(page)]
    result = run(
        *arguments, "--model", str(folder / "iris.npz"), "--repeats", "0", "--title", "<Iris>", "--json"
    )
    html = page.read_text()
    assert json.loads(result.stdout)["bytes"] == page.stat().st_size
    assert "<title>&lt;Iris&gt; · lptml report</title>" in html
    assert "f003" in html
    other = run(*arguments, "--model", str(folder / "iris.npz"), "--repeats", "0", "--drop", "sl", code=3)
    assert "was fitted on other columns" in other.stderr


def test_the_page_shows_the_search_of_the_model(folder: Path) -> None:
    page = folder / "search.html"
    arguments = ["report", str(folder / "iris.csv"), "--label", "species", "--key", "id", "-o", str(page)]
    run(*arguments, "--repeats", "0", "--model", str(folder / "iris.npz"))
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.S)
    assert found is not None
    history, model = json.loads(found.group(1))["history"], load(folder / "iris.npz")
    assert history["final"] == pytest.approx(model.violation_rate_, abs=1e-6)
    assert history["best"][-1] == pytest.approx(min(rate for _, rate, _ in model.history_), abs=1e-6)


def test_fit_writes_the_page_as_well(folder: Path) -> None:
    model, page = folder / "both.npz", folder / "both.html"
    arguments = ["fit", str(folder / "iris.csv"), "--label", "species", "--key", "id", *FAST]
    result = json.loads(run(*arguments, "-o", str(model), "--report", str(page), "--json").stdout)
    assert (result["model"], result["report"]) == (str(model), str(page))
    assert result["bytes"] == page.stat().st_size
    assert "f003" in page.read_text()
    assert "name the page" in run(*arguments, "-o", "a.npz", "--report", "-", code=2).stderr


def test_report_on_pairs(folder: Path) -> None:
    page = folder / "pairs.html"
    arguments = [
        "--key",
        "id",
        "--drop",
        "species",
        "--pairs",
        str(folder / "pairs.csv"),
        "--max-trials",
        "3",
    ]
    run("report", str(folder / "iris.csv"), *arguments, "-o", str(page), "--repeats", "1")
    assert "Labels to distrust" in page.read_text()


def test_default_names_of_outputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run("fit", "iris.csv", "--label", "species", "--key", "id", *FAST)
    assert (folder / "iris.model.npz").exists()
    run("report", "iris.csv", "--label", "species", "--key", "id", "--repeats", "0", *FAST)
    assert (folder / "iris.html").exists()


def test_one_hot_and_impute_travel_with_the_model(folder: Path) -> None:
    rows = ["size,colour,group"]
    rows += [f"{i % 7 if i % 5 else ''},{['red', 'blue', ''][i % 3]},{'ab'[i % 2]}" for i in range(40)]
    (folder / "mixed.csv").write_text("\n".join(rows) + "\n")
    data, model = str(folder / "mixed.csv"), str(folder / "mixed.npz")
    refused = run("fit", data, "--label", "group", "-o", model, *FAST, code=3)
    assert "3 problems" in refused.stderr
    assert "column 'colour' holds 2 categories ('red', 'blue'); turn them into 0/1" in refused.stderr
    assert refused.stderr.endswith("--label group --impute median --one-hot\n")
    run("fit", data, "--label", "group", "-o", model, "--one-hot", "--impute", "median", *FAST)
    new = run("transform", model, "-", input="colour,size\nblue,\n,3\n")
    assert len(rows_of(new.stdout)) == 2
    strange = run("transform", model, "-", input="colour,size\ngreen,1\n", code=3)
    assert "the category 'green' is new to the model" in strange.stderr


def test_datasets_feed_the_other_commands(folder: Path) -> None:
    listing = json.loads(run("datasets", "--json").stdout)["datasets"]
    assert {"iris", "wine", "poisoned"} <= set(listing)
    text = run("datasets", "poisoned").stdout
    assert text.splitlines()[0].endswith(",class")
    found = run("suspects", "-", "--label", "class", input=text).stdout
    assert "of the 105 labels" in found
    run("datasets", "iris", "-o", str(folder / "i.parquet"))
    result = run("suspects", str(folder / "i.parquet"), "--label", "class", "--json").stdout
    assert json.loads(result)["rows"] == 150


def test_bench() -> None:
    result = json.loads(run("bench", "synthetic", "--repeat", "1", "--max-trials", "2", "--json").stdout)
    (row,) = result["rows"]
    assert (row["data"], row["rows"], row["features"]) == ("synthetic", 100, 2)
    assert row["lower_bound"] <= row["violation_rate"] < row["trivial_rate"]
    assert isinstance(row["cpu_seconds"], float)
    assert "CPU s" in run("bench", "synthetic", "--repeat", "1", "--max-trials", "2").stdout


def test_a_damaged_model_is_refused(folder: Path) -> None:
    whole = (folder / "iris.npz").read_bytes()
    bad = folder / "bad.npz"
    for content in (
        b"",
        whole[:100],
        whole[:-50],
        whole.replace(b"LPTML_SupervisedCV", b"LPTML_Superfluous2"),
    ):
        bad.write_bytes(content)
        result = run("transform", str(bad), str(folder / "iris.csv"), code=3)
        assert result.stderr.startswith(f"lptml: {bad}: ")
        assert result.stderr.count("\n") == 1


def test_an_engine_is_a_name_or_an_address(folder: Path) -> None:
    arguments = ["fit", str(folder / "iris.csv"), "--label", "species", "--engine"]
    wrong = run(*arguments, "bogus", code=2)
    assert "a cluster's address" in wrong.output


def test_a_lost_cluster_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lptml.engines.dask import DaskEngine
    from lptml.engines.errors import EngineLost

    def nobody(*_: object) -> None:
        raise EngineLost("there is no Dask scheduler at tcp://127.0.0.1:1")

    monkeypatch.setattr(DaskEngine, "__init__", nobody)
    arguments = ["fit", str(folder / "iris.csv"), "--label", "species", "--key", "id"]
    arguments += ["--engine", "tcp://127.0.0.1:1"]
    assert "no Dask scheduler" in run(*arguments, *FAST, code=3).output


@pytest.mark.parametrize(("rows", "columns", "blamed"), [(4, 9, "fewer columns"), (9, 4, "fewer rows")])
def test_memory_that_runs_out_is_blamed_on_what_there_is_more_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, blamed: str
) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(LPTML_SupervisedCV, "fit", too_large)
    lines = [",".join([*(f"{i + j}" for j in range(columns)), "ab"[i % 2]]) for i in range(rows)]
    head = ",".join([*(f"x{j}" for j in range(columns)), "class"])
    (tmp_path / "table.csv").write_text("\n".join([head, *lines]) + "\n")
    arguments = ["fit", str(tmp_path / "table.csv"), "--label", "class", "-o", str(tmp_path / "model.npz")]
    said = run(*arguments, code=3).output
    assert f"{rows} rows of {columns} features" in said
    assert blamed in said


def test_a_table_with_more_columns_than_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 300)) + 2.0 * (np.arange(12) % 2)[:, None]
    lines = [",".join([*(f"{x:.3f}" for x in row), "ab"[i % 2]]) for i, row in enumerate(values)]
    (tmp_path / "wide.csv").write_text(
        "\n".join([",".join([f"x{j}" for j in range(300)] + ["class"]), *lines])
    )
    data, model, page = (str(tmp_path / name) for name in ("wide.csv", "wide.npz", "wide.html"))
    run("fit", data, "--label", "class", "-o", model, "--report", page, *FAST)
    assert load(model).components_.shape == (11, 300)
    assert "accuracy" in run("score", model, data, "--label", "class").output
    assert len(rows_of(run("transform", model, data).output)[0]) == 11


def test_models_with_a_map_are_applied_and_not_shown(folder: Path) -> None:
    points = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    model = LPTML_Supervised(map="relu", max_trials=1, random_state=0).fit(points, codes)
    path = folder / "relu.npz"
    save(model, path)
    table = folder / "points.csv"
    points.to_csv(table, index=False)
    run("transform", str(path), str(table), "-o", str(folder / "mapped.csv"))
    mapped = pd.read_csv(folder / "mapped.csv").to_numpy()
    np.testing.assert_allclose(mapped, model.transform(points), rtol=1e-12)
    points.assign(species=codes).to_csv(table, index=False)
    page = ["report", str(table), "--label", "species", "--model", str(path), "-o", str(folder / "page.html")]
    assert "not linear" in run(*page, code=3).stderr
    assert not (folder / "page.html").exists()
