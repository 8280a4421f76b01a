"""From a CSV with wrong labels to a corrected one on the command line; what is refused on the way."""

from __future__ import annotations

import csv
import http.client
import itertools
import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from lptml.cli.app import cli
from lptml.cli.errors import INPUT, USAGE
from lptml.report.corrections import Correction, Decision, Journal, parse_corrections

FAST = ["--max-trials", "3", "--n-repeats", "1"]


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == code, result.output
    return result


def labels(path: Path | str) -> list[str]:
    with open(path, newline="") as stream:
        return [row["class"] for row in csv.DictReader(stream)]


@pytest.fixture
def wine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    run("datasets", "wine", "-o", "truth.csv")
    run("datasets", "wine", "--wrong", "0.1", "-o", "wine.csv")
    return labels("truth.csv")


def test_wine_in_four_commands(wine: list[str]) -> None:
    spoiled = labels("wine.csv")
    assert sum(a != b for a, b in zip(spoiled, wine)) == 18
    run("check", "wine.csv", "--label", "class")
    said = run("review", "wine.csv", "--label", "class", "--accept").stdout
    assert "Next: lptml apply wine.csv wine.corrections.csv -o wine-clean.csv" in said
    run("apply", "wine.csv", "wine.corrections.csv", "-o", "wine-clean.csv")
    clean = labels("wine-clean.csv")
    assert sum(a == b for a, b in zip(clean, wine)) >= 0.95 * len(wine)
    before, after = (Path(name).read_text().splitlines() for name in ("wine.csv", "wine-clean.csv"))
    changed = [k for k, (a, b) in enumerate(zip(before, after)) if a != b]
    assert len(changed) == sum(a != b for a, b in zip(spoiled, clean))
    again = run("review", "wine.csv", "--label", "class", "--accept").stdout  # nothing is decided twice
    assert again.splitlines()[0] == said.splitlines()[0]


def test_fit_and_report_take_corrections(wine: list[str]) -> None:
    run("review", "wine.csv", "--label", "class", "--accept")
    plain = json.loads(run("fit", "wine.csv", "--label", "class", *FAST, "--json").stdout)
    told = ["--corrections", "wine.corrections.csv"]
    again = json.loads(run("fit", "wine.csv", "--label", "class", *told, *FAST, "--json").stdout)
    assert plain["n_suspects"] >= 14
    assert again["n_suspects"] <= 3
    assert again["noise_rate"] < plain["noise_rate"]
    assert plain["next"] == "lptml review wine.csv --label class"
    run("report", "wine.csv", "--label", "class", *told, *FAST, "--repeats", "0")
    assert '"decisions":[[' in Path("wine.html").read_text()


def test_decisions_about_other_data_are_refused(wine: list[str]) -> None:
    run("review", "wine.csv", "--label", "class", "--accept")
    run("datasets", "wine", "--wrong", "0.2", "-o", "wine.csv")
    for command in ("review", "fit"):
        more = ["--accept"] if command == "review" else ["--corrections", "wine.corrections.csv"]
        refused = run(command, "wine.csv", "--label", "class", *more, code=INPUT)
        assert "changed since" in refused.stderr
    run("review", "-", "--label", "class", code=USAGE)


def test_rows_that_were_left_out_keep_their_numbers(wine: list[str]) -> None:
    text = Path("wine.csv").read_text().splitlines()
    for line in (1, 2, 3):
        text[line] = text[line].rpartition(",")[0] + ","
    Path("holes.csv").write_text("\n".join(text) + "\n")
    run("review", "holes.csv", "--label", "class", "--drop-unlabelled", "--accept")
    run("apply", "holes.csv", "holes.corrections.csv", "-o", "clean.csv")
    clean = labels("clean.csv")
    assert clean[:3] == ["", "", ""]
    assert sum(a == b for a, b in zip(clean[3:], wine[3:])) >= 0.95 * len(wine[3:])


def test_a_label_that_a_person_keeps_is_not_suspected_again(wine: list[str]) -> None:
    from lptml.cli.readers import read_table

    found = json.loads(run("suspects", "wine.csv", "--label", "class", "--json").stdout)["suspects"]
    row, given = int(found[0]["row"]), found[0]["label"]
    journal = Journal("c.csv", read_table("wine.csv").digest)
    journal.add(Correction(row, "class", given, Decision.KEEP, data=journal.data))
    journal.close()
    run("review", "wine.csv", "--label", "class", "-o", "c.csv", "--accept")
    text = Path("c.csv").read_text().splitlines()
    assert [line for line in text if line.startswith(f"{row},")] == [text[1]]


def killed_review(data: dict[int, str], digest: str, first: int, after: float) -> list[int]:
    """Run ``lptml review``, post decisions from ``first`` on, kill it so long after the first answer.

    With a negative ``after`` it is killed so long after its start instead, as it learns. The rows whose
    decision was acknowledged.
    """
    command = [sys.executable, "-m", "lptml", "review", "wine.csv", "--label", "class", "--no-browser"]
    command += ["--no-cross-validate", "--max-trials", "3"]
    done: list[int] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        timer = threading.Timer(abs(after), process.kill)
        if after < 0:
            timer.start()
        assert process.stderr is not None
        url = next((line.strip() for line in process.stderr if line.startswith("http://127.0.0.1:")), "")
        assert url or after < 0
        try:
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
            rows = itertools.count(first)
            while url:
                batch = list(itertools.islice(rows, 1 + first // 100_000 % 3))
                posted = [
                    {"row": 1 + row % len(data), "column": "class", "given": data[1 + row % len(data)]}
                    | {"decision": "keep", "key": str(row), "data": digest}
                    for row in batch
                ]
                body = json.dumps(posted)
                connection.request("POST", f"{urlsplit(url).path}decisions", body, {"X-Lptml": "1"})
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (200, str(len(batch)).encode())
                if not done and after >= 0:
                    timer.start()
                done += batch
        except (OSError, http.client.HTTPException):
            pass  # it is dead
        finally:
            timer.cancel()
            process.kill()
    return done


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_no_acknowledged_decision_is_lost_when_the_command_is_killed(wine: list[str], kills: int) -> None:
    from lptml.cli.readers import read_table

    digest, chance = read_table("wine.csv").digest, random.Random(0)
    given = dict(enumerate(labels("wine.csv"), 1))
    acknowledged: list[int] = []
    for kill in range(kills):
        after = -chance.uniform(0.2, 2.0) if kill % 5 == 1 else chance.uniform(0.0, 0.3)
        acknowledged += killed_review(given, digest, 100_000 * kill, after)
        kept = {
            int(each.key) for each in parse_corrections(Path("wine.corrections.csv").read_bytes()).decisions
        }
        assert kept >= set(acknowledged)
    assert len(acknowledged) > kills  # the kills fell amid decisions
    said = run("review", "wine.csv", "--label", "class", "--accept").stdout  # and the review goes on
    assert "labels to change" in said
