from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lptml.engines import submit


def write_lines(path: Path, pairs: Any) -> None:
    with path.open("w") as file:
        for (i, j), y in zip(pairs.indices, pairs.y):
            file.write(json.dumps([pairs.X[i].tolist(), pairs.X[j].tolist(), "S" if y > 0 else "D"]) + "\n")


def test_lines_of_json_to_a_metric(pairs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(tmp_path / "pairs.jsonl", pairs)
    found = {}
    for name, extra in {"lines": [], "table": ["--convert", str(tmp_path / "table")]}.items():
        output = tmp_path / f"{name}.json"
        arguments = ["--input", str(tmp_path / "pairs.jsonl"), "--output", str(output), "--json", *extra]
        options = ["--engine", "local", "--bounds", "1", "1", "--trials", "30", "--no-refine", "--seed", "3"]
        assert submit.main([*arguments, *options]) == 0
        found[name] = json.loads(output.read_text())
        shown = json.loads(capsys.readouterr().out)
        assert shown["cost"] == found[name]["cost"]
    assert found["lines"]["metric"] == found["table"]["metric"]
    assert found["lines"]["cost"] == pairs.source().cost(np.array(found["lines"]["metric"]))


def test_what_cannot_be_used_ends_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--input", str(tmp_path), "--output", str(tmp_path / "x"), "--engine", "local"]
    assert submit.main(arguments) == 2
    assert "must hold points and pairs" in capsys.readouterr().err
    assert submit.main(["--input", "x"]) == 2
    assert submit.main(["--where"]) == 0
    assert capsys.readouterr().out.strip() == os.path.abspath(submit.__file__)


@pytest.mark.spark
def test_spark_submit(pairs: Any, tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    write_lines(tmp_path / "pairs.jsonl", pairs)
    output = tmp_path / "metric.json"
    arguments = [
        "--input",
        f"file://{tmp_path}/pairs.jsonl",
        "--json",
        "--bounds",
        "1",
        "1",
        "--trials",
        "30",
    ]
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        "--master",
        "local[2,4]",
        submit.__file__,
        *arguments,
        "--output",
        str(output),
    ]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    local = tmp_path / "local.json"
    assert submit.main([*arguments, "--output", str(local), "--engine", "local"]) == 0
    assert json.loads(output.read_text()) == json.loads(local.read_text())
