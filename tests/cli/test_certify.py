"""lptml certify and lptml verify: a proof goes into a file, and comes out again on another machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from lptml.cli.app import cli
from lptml.cli.errors import INPUT, INTERRUPTED


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def data(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    rows = [f"{a},{b},{'x' if a + 0.3 * b > 0 else 'y'}" for a, b in X]
    (tmp_path / "points.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
    return str(tmp_path / "points.csv")


def test_a_proof_is_written_and_verified(data: str, tmp_path: Path) -> None:
    out = str(tmp_path / "points.proof.npz")
    made = json.loads(run("certify", data, "--label", "label", "-o", out, "--json"))
    assert made["optimal"]
    assert made["cost"] == made["lower_bound"] > 0
    checked = json.loads(run("verify", out, "--json"))
    assert checked["verified"]
    assert checked["proven"] == made["lower_bound"]
    assert "best possible" in run("verify", out)
    again = run("certify", data, "--label", "label", "--resume", out, "-o", out)  # a proof replaces a proof
    assert "best possible" in again


def test_more_features_than_rows_prove_what_their_span_does(data: str, tmp_path: Path) -> None:
    narrow = json.loads(run("certify", data, "--label", "label", "--json"))
    rng = np.random.default_rng(1)
    lines = Path(data).read_text().splitlines()
    mixes = rng.normal(size=(2, 60))  # 62 features, all of them sums of the same two
    wide = [lines[0] + "".join(f",m{i}" for i in range(60))]
    for line in lines[1:]:
        a, b, _ = line.split(",")
        wide.append(line + "".join(f",{value}" for value in np.array([float(a), float(b)]) @ mixes))
    (tmp_path / "wide.csv").write_text("\n".join(wide) + "\n")
    found = json.loads(run("certify", str(tmp_path / "wide.csv"), "--label", "label", "--json"))
    assert found["optimal"]
    assert (found["cost"], found["lower_bound"]) == (narrow["cost"], narrow["lower_bound"])


def test_wrong_labels(data: str, tmp_path: Path) -> None:
    out = str(tmp_path / "labels.proof.npz")
    ask = ("certify", data, "--label", "label", "--wrong-labels", "--json")
    made = json.loads(run(*ask, "-o", out))
    assert 0 < made["lower_bound"] <= made["cost"] < 15
    assert "labels must be wrong" in made["statement"]
    assert json.loads(run("verify", out, "--json"))["proven"] == made["lower_bound"]
    again = json.loads(run(*ask, "--resume", out, "--time-limit", "0"))
    assert (again["lower_bound"], again["cost"]) == (made["lower_bound"], made["cost"])


def test_labels_on_pairs(data: str, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("1,2,same\n3,4,different\n1,5,same\n6,7,different\n2,5,different\n")
    made = json.loads(run("certify", data, "--drop", "label", "--pairs", str(pairs), "--json"))
    assert made["total"] == 5


def test_what_is_no_proof_is_refused(data: str) -> None:
    result = CliRunner().invoke(cli, ["verify", data])
    assert result.exit_code == INPUT


def test_a_proof_with_a_false_claim_is_refused(data: str, tmp_path: Path) -> None:
    from dataclasses import replace

    from lptml.proof import read_proof, write_proof

    out = tmp_path / "points.proof.npz"
    run("certify", data, "--label", "label", "-o", str(out))
    found = read_proof(out)
    write_proof(out, replace(found, lower_bound=found.lower_bound + 1))
    result = CliRunner().invoke(cli, ["verify", str(out)])
    assert result.exit_code == INPUT
    assert "proves" in result.stderr


def test_an_interrupt_keeps_what_is_proven(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lptml.proof.cells import CellSearch

    calls = []
    step = CellSearch.step

    def interrupted(self: CellSearch, *arguments: Any) -> object:
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr("lptml.proof.certification._CLOSE", 0.0)  # towards the goal in many steps
    monkeypatch.setattr(CellSearch, "step", interrupted)
    out = str(tmp_path / "points.proof.npz")
    run("certify", data, "--label", "label", "-o", out, code=INTERRUPTED)
    monkeypatch.undo()
    assert json.loads(run("verify", out, "--json"))["verified"]


def test_usage() -> None:
    for arguments in (
        ["certify", "x.csv", "--wrong-labels", "--pairs", "p.csv"],
        ["certify", "x.csv", "-o", "-"],
    ):
        assert CliRunner().invoke(cli, arguments).exit_code == 2
