"""Tables of any cells, separators and bytes: commands end in a result, or in one line and an exit code."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.corpus import CSV, QUICK

from lptml.cli.app import cli
from lptml.cli.errors import INPUT, USAGE

number = st.floats().map(repr) | st.integers().map(str)
odd = st.sampled_from(
    ["NA", "nan", "inf", "?", "=1+1", "@x", "1,5", "1_000", "0x1f", "1e308", "1e-320", "-0", "a,b", "true"]
)
strange = st.sampled_from(["", " ", '"', "\x1b[31m", "\ufeff", "\x00"])
cell = number | odd | strange | st.text(max_size=6)
separator = st.sampled_from([",", ";", "\t", "|", " "])


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """The text of a table: mostly columns of numbers with a label, some of it spoilt."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    width, height = draw(st.integers(1, 5)), draw(st.integers(0, 12))
    names = [f"c{k}" for k in range(width)] if draw(st.booleans()) else [draw(cell) for _ in range(width)]
    rows = [[*names, "label"]]
    spoil = draw(st.sampled_from([0, 0, 1, 3]))
    for i in range(height):
        values = [repr(draw(st.floats(-100, 100))) for _ in range(width)]
        rows.append([*values, "pq"[i % 2]])
    for _ in range(spoil):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, len(row) - 1))] = draw(cell)
        if draw(st.integers(0, 5)) == 0:
            row.append(draw(cell))
    between, end = draw(separator), draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    text = end.join(between.join(row) for row in rows) + draw(st.sampled_from(["", end]))
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"])), "replace")


def run(content: bytes, suffix: str, command: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder, f"data{suffix}"), Path(folder, "out.csv")
        data.write_bytes(content)
        good = str(Path(folder, "good.csv"))
        arguments = {
            "check": ["check", str(data), "--label", "label"],
            "suspects": ["suspects", str(data), "--label", "label", "-o", str(out)],
            "fit": ["fit", str(data), "--label", "label", *QUICK, "-o", str(out)],
            "pairs": [
                "fit",
                good,
                "--key",
                "id",
                "--drop",
                "label",
                "--pairs",
                str(data),
                *QUICK,
                "-o",
                str(out),
            ],
        }[command]
        Path(good).write_text(CSV)
        result = CliRunner().invoke(cli, arguments)
        shown = f"{result.output}\n{result.exception!r}"
        assert result.exit_code in ((0, 1, USAGE, INPUT) if command == "check" else (0, USAGE, INPUT)), shown
        assert result.exception is None or isinstance(result.exception, SystemExit), shown
        assert data.read_bytes() == content
        if result.exit_code and command != "check":
            assert result.stderr.startswith("lptml: "), shown
            assert all(line.isprintable() for line in result.stderr.split("\n")), shown
            assert not out.exists()


BOUNDED = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}
files = (tables(), st.sampled_from([".csv", ".tsv", ".arff", ".npz", ".parquet"]))
commands = st.sampled_from(["check", "suspects", "fit", "pairs"])


@settings(max_examples=80, derandomize=True, **BOUNDED)
@given(*files, commands)
def test_some_tables(content: bytes, suffix: str, command: str) -> None:
    run(content, suffix, command)


@pytest.mark.slow
@settings(max_examples=2000, **BOUNDED)
@given(*files, commands)
def test_two_thousand_tables(content: bytes, suffix: str, command: str) -> None:
    run(content, suffix, command)
