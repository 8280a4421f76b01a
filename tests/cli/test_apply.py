"""lptml apply and apply_corrections: the labels that were changed, and every other byte as it was."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import lptml
from lptml._cells import fingerprint
from lptml.cli.app import cli
from lptml.cli.errors import INPUT, OUTPUT
from lptml.cli.rewrite import spans
from lptml.report.corrections import Correction, Decision, Journal, read_corrections, trusted_rows

TEXT = 'id,x,"kind",note\r\n1,0.50,red,"a, ""b"""\r\n\r\n2, 1.0 ,"red",  c\r\n3,1e0, blue ,\r\n'
HEADER = "row,key,column,given,decision,label,data\n"


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == code, result.output
    return result


def corrections(path: Path, data: bytes, *lines: str) -> str:
    path.write_text(HEADER + "".join(f"{line},{fingerprint(data)}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")],
)
def test_every_other_byte_stays(tmp_path: Path, encoding: str, mark: bytes) -> None:
    data = mark + TEXT.encode(encoding)
    (tmp_path / "t.csv").write_bytes(data)
    fixed = corrections(
        tmp_path / "c.csv", data, "1,,kind,red,change,blue", '2,,kind,red,change,"a, b"', "3,,kind,blue,keep,"
    )
    out = tmp_path / "clean.csv"
    said = run("apply", str(tmp_path / "t.csv"), fixed, "-o", str(out)).stdout
    assert said.startswith("2 labels changed, 1 kept, 0 undecided")
    expected = TEXT.replace("0.50,red,", "0.50,blue,").replace('"red",  c', '"a, b",  c')
    assert out.read_bytes() == mark + expected.encode(encoding)


def test_the_last_decision_counts_and_can_be_taken_back(tmp_path: Path) -> None:
    data = TEXT.encode()
    (tmp_path / "t.csv").write_bytes(data)
    fixed = corrections(
        tmp_path / "c.csv",
        data,
        "1,,kind,red,change,blue",
        "2,,kind,red,keep,",
        "1,,kind,red,undo,",
        "2,,kind,red,change,green",
    )
    run("apply", str(tmp_path / "t.csv"), fixed, "-o", str(tmp_path / "o.csv"))
    assert (tmp_path / "o.csv").read_bytes() == TEXT.replace('"red",  c', '"green",  c').encode()


def test_data_that_changed_since_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode())
    fixed = corrections(tmp_path / "c.csv", TEXT.encode(), "1,,kind,red,change,blue")
    path.write_bytes(TEXT.replace("0.50", "0.51").encode())
    refused = run("apply", str(path), fixed, "-o", str(tmp_path / "o.csv"), code=INPUT)
    assert "it changed since" in refused.stderr
    assert not (tmp_path / "o.csv").exists()
    # Without a fingerprint, as from memory, the labels themselves must still be those that were seen.
    (tmp_path / "c.csv").write_text(HEADER + "1,,kind,green,change,blue,\n")
    assert (
        "where the corrections saw 'green'"
        in run("apply", str(path), fixed, "-o", str(tmp_path / "o.csv"), code=INPUT).stderr
    )
    run("apply", str(path), fixed, "-o", str(path), code=OUTPUT)  # never over its own input


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x,,kind,red,keep,,", "row must be a number"),
        ("1,,kind,red,drop,,", "decision must be one of"),
        ("1,,kind,red,change,,", "has a new label"),
        ("99,,kind,red,keep,,", "the data have 3 rows"),
    ],
)
def test_a_malformed_file_is_one_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "c.csv").write_text(HEADER + line + "\n")
    arguments = ["apply", str(tmp_path / "t.csv"), str(tmp_path / "c.csv"), "-o", str(tmp_path / "o.csv")]
    assert message in run(*arguments, code=INPUT).stderr


def test_other_formats(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5], "kind": [0, 0, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=frame[["x"]].to_numpy(), y=np.array(["a", "a", "b"]))
    arff = (
        "@relation r\n@attribute x numeric\n@attribute kind {a, 'b c'}\n@data\n% no\n1,a\n2, 'b c'\n3,a % x\n"
    )
    arff = arff.replace("3,a % x", "3,a")
    (tmp_path / "t.arff").write_text(arff)
    for name, given_label, new in (("t.parquet", "0", "1"), ("t.npz", "a", "longer"), ("t.arff", "a", "b c")):
        data = (tmp_path / name).read_bytes()
        column = "y" if name == "t.npz" else "kind"
        fixed = corrections(tmp_path / "c.csv", data, f"1,,{column},{given_label},change,{new}")
        run("apply", str(tmp_path / name), fixed, "-o", str(tmp_path / f"o-{name}"))
    again = pd.read_parquet(tmp_path / "o-t.parquet")
    pd.testing.assert_frame_equal(again, frame.assign(kind=[1, 0, 1]))
    with np.load(tmp_path / "o-t.npz") as stored:
        assert stored["y"].tolist() == ["longer", "a", "b"]
        assert stored["X"].tolist() == [[1.5], [2.5], [3.5]]
    assert (tmp_path / "o-t.arff").read_text() == arff.replace("1,a\n", "1,'b c'\n")
    fixed = corrections(tmp_path / "c.csv", arff.encode(), "1,,kind,a,change,new")
    arguments = ["apply", str(tmp_path / "t.arff"), fixed, "-o", str(tmp_path / "o.arff")]
    assert "does not declare the label 'new'" in run(*arguments, code=INPUT).stderr


def test_a_data_frame(tmp_path: Path) -> None:
    for cells, new in ((["a", "b", "a"], "c"), ([0, 1, 0], "2"), ([0.0, 1.0, 0.0], "1")):
        frame = pd.DataFrame({"x": [1, 2, 3], "kind": cells}, index=["p", "q", "r"])
        seen = str(cells[0]).removesuffix(".0")
        fixed = [
            Correction(1, "kind", seen, Decision.CHANGE, new),
            Correction(3, "kind", seen, Decision.KEEP),
        ]
        changed = lptml.apply_corrections(frame, fixed)
        assert changed["kind"].dtype == frame["kind"].dtype
        assert str(changed["kind"].iloc[0]).removesuffix(".0") == new
        assert changed.iloc[1:].equals(frame.iloc[1:])
        assert frame["kind"].tolist() == cells  # the old one is untouched
        assert trusted_rows(fixed, 3).tolist() == [True, False, True]
    frame["kind"] = pd.Categorical(["a", "b", "a"])
    changed = lptml.apply_corrections(frame, [Correction(1, "kind", "a", Decision.CHANGE, "z")])
    assert changed["kind"].tolist() == ["z", "b", "a"]
    with pytest.raises(ValueError, match="the data changed since"):
        lptml.apply_corrections(frame, [Correction(2, "kind", "a", Decision.KEEP)])
    with pytest.raises(ValueError, match="no column 'sort'"):
        lptml.apply_corrections(frame, [Correction(2, "sort", "a", Decision.KEEP)])


def test_the_journal_resumes_and_mends_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    first = Journal(path, "abc")
    first.add(Correction(4, "kind", '=1+"1"', Decision.CHANGE, "new\nline", "r, 4", "abc"))
    first.close()
    whole = path.read_bytes()
    assert b"\"'=1+" in whole  # a spreadsheet shows it as text
    path.write_bytes(whole + b"5,,kind,a,ke")
    again = Journal(path, "abc")
    assert path.read_bytes() == whole
    again.add(Correction(5, "kind", "a", Decision.KEEP, data="abc"))
    again.close()
    assert [each.row for each in read_corrections(path)] == [4, 5]
    assert read_corrections(path)[0] == first.decisions[0]
    with pytest.raises(ValueError, match="other data"):
        Journal(path, "xyz")


def test_a_last_line_without_an_end_counts_if_it_is_whole(tmp_path: Path) -> None:
    data = TEXT.encode()
    (tmp_path / "t.csv").write_bytes(data)
    fixed = corrections(tmp_path / "c.csv", data, "1,,kind,red,change,blue", "2,,kind,red,change,rosé")
    path, out = Path(fixed), str(tmp_path / "o.csv")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])  # as editors leave it
    assert [each.label for each in read_corrections(path)] == ["blue", "rosé"]
    assert run("apply", str(tmp_path / "t.csv"), fixed, "-o", out).stdout.startswith("2 labels changed")
    journal = Journal(path, fingerprint(data))
    journal.add(Correction(3, "kind", "blue", Decision.KEEP, data=journal.data))
    journal.close()
    assert [each.row for each in read_corrections(path)] == [1, 2, 3]
    for cut in range(whole.rfind(b"2,,"), len(whole) - 1):  # as a crash leaves it, between two bytes of é too
        path.write_bytes(whole[:cut])
        torn = whole[:cut].rpartition(b"\n")[2]
        complete = torn.endswith(b",") and torn.count(b",") == 6
        if not torn or complete:
            assert len(read_corrections(path)) == 1 + complete
            continue
        with pytest.warns(UserWarning, match="not whole and is left out"):
            assert [each.row for each in read_corrections(path)] == [1]
        if cut % 10 == 0:
            said = run("apply", str(tmp_path / "t.csv"), fixed, "-o", out, "--force")
            assert said.stdout.startswith("1 label changed")
            assert "c.csv: the last line is not whole and is left out" in said.stderr
            Journal(path, fingerprint(data)).close()
            assert path.read_bytes() == whole[: whole.rfind(b"2,,")]
    path.write_bytes(b"row,key,col")  # torn before the first decision
    Journal(path, fingerprint(data)).close()
    assert path.read_text() == HEADER
    path.write_text("row,given,decision,label\n1,red,keep,")  # of one's own
    assert [each.row for each in read_corrections(path)] == [1]
    with pytest.raises(ValueError, match="other columns than a review writes"):
        Journal(path, fingerprint(data))
    path.write_bytes(whole.replace(b"ros", b"ros\xff"))
    with pytest.raises(ValueError, match="line 3: byte 0xff is not utf-8"):
        read_corrections(path)


CELL = st.text(alphabet=st.sampled_from("ab,;\"' \t=é\n\r"), max_size=5)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_spans_are_what_the_csv_module_reads(rows: list[tuple[str, str]], sep: str, end: str) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=sep, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    text = stream.getvalue()
    found = [[text[i + 1 : j - 1].replace('""', '"') for i, j in row] for row in spans(text, sep)]
    assert found == [list(row) for row in rows]


@settings(max_examples=80, deadline=None)
@given(st.lists(CELL.filter(lambda c: c.strip()), min_size=1, max_size=5), CELL.filter(lambda c: c.strip()))
def test_corrections_survive_their_file(keys: list[str], label: str) -> None:
    lines = [Correction(i + 1, "c", key, Decision.CHANGE, label, key) for i, key in enumerate(keys)]
    from lptml.report.corrections import parse_corrections

    whole = (HEADER + "".join(each.line() for each in lines)).encode()
    assert parse_corrections(whole).decisions == lines
    for cut in range(len(whole) - len(lines[-1].line().encode()), len(whole)):  # wherever the machine crashes
        if b"\n" not in whole[:-1].removeprefix(HEADER.encode()):  # a label of several lines is refused
            assert parse_corrections(whole[:cut]).decisions in ([], lines)


def test_json(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "c.csv").write_text(HEADER + "1,,kind,red,unsure,,\n")
    arguments = ["apply", str(tmp_path / "t.csv"), str(tmp_path / "c.csv"), "-o", str(tmp_path / "o.csv")]
    answer = json.loads(run(*arguments, "--json").stdout)
    assert (answer["change"], answer["keep"], answer["unsure"], answer["rows"]) == (0, 0, 1, 3)
