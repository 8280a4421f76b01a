"""Readers: every format gives the same table, and every mistake is one line that names its place."""

from __future__ import annotations

import csv
import datetime
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lptml.cli.errors import InputError
from lptml.cli.pairs import read_pairs
from lptml.cli.prepare import Preparation, prepare
from lptml.cli.readers import read_table

CSV = "id,x,y,kind\na1,1.5,2,red\na2,-3,4e1,blue\na3,0,5,red\n"


def write(tmp_path: Path, name: str, content: str | bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.fixture
def parquet_bytes() -> bytes:
    pa = pytest.importorskip("pyarrow", reason="Parquet is read with pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {"id": ["a1", "a2", "a3"], "x": [1.5, -3, 0], "y": [2, 40, 5], "kind": ["red", "blue", "red"]}
    )
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


ARFF = """% a comment
@relation things
@attribute id string
@attribute x numeric
@attribute 'y' REAL
@attribute kind {red, blue}
@data
a1,1.5,2,red
a2,-3,4e1,'blue'
% between
a3,0,5,red
"""


def npz_bytes() -> bytes:
    stream = io.BytesIO()
    np.savez(
        stream,
        X=np.array([[1.5, 2], [-3, 40], [0, 5]]),
        y=np.array(["red", "blue", "red"]),
        id=np.array(["a1", "a2", "a3"]),
        feature_names=np.array(["x", "y0"]),
    )
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", CSV),
        ("t.csv", "\ufeff" + CSV),
        ("t.csv", CSV.encode("utf-16")),
        ("t.csv", CSV.replace("\n", "\r\n")),
        ("t.csv", CSV.replace(",", ";")),
        ("t.tsv", CSV.replace(",", "\t")),
        ("t.txt", CSV.replace(",", " | ")),
        ("t.csv", CSV.replace("red", '"red"').replace("id", ' "id"')),
        ("t.csv", "\n" + CSV.replace("\na2", "\n\n\na2")),
        ("t.arff", ARFF),
    ],
)
def test_text_formats_agree(tmp_path: Path, name: str, content: str | bytes) -> None:
    points = prepare(read_table(write(tmp_path, name, content)), label="kind", key="id")
    assert points.names == ["a1", "a2", "a3"]
    assert points.feature_names == ["x", "y"]
    assert points.X.tolist() == [[1.5, 2], [-3, 40], [0, 5]]
    assert points.y is not None
    assert points.y.tolist() == ["red", "blue", "red"]


def test_parquet_agrees(tmp_path: Path, parquet_bytes: bytes) -> None:
    points = prepare(read_table(write(tmp_path, "t.parquet", parquet_bytes)), label="kind", key="id")
    assert points.X.tolist() == [[1.5, 2], [-3, 40], [0, 5]]
    assert points.names == ["a1", "a2", "a3"]


def test_npz_agrees_and_knows_its_label(tmp_path: Path) -> None:
    points = prepare(read_table(write(tmp_path, "t.npz", npz_bytes())), key="id")
    assert points.X.tolist() == [[1.5, 2], [-3, 40], [0, 5]]
    assert points.y is not None
    assert points.y.tolist() == ["red", "blue", "red"]
    assert points.feature_names == ["x", "y0"]


IDS = [2**53, 2**53 + 1, 2**63 - 1, -(2**53) - 1]


def parquet_of(**columns: object) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def npz_of(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def integer_files() -> dict[str, bytes]:
    import pyarrow as pa

    x, label = np.arange(4.0), [2**53, 2**53 + 1, 2**53, 2**53 + 1]
    decimals = pa.array(IDS).cast(pa.decimal128(38, 2))
    return {
        "t.parquet": parquet_of(id=IDS, x=x, label=label),
        "decimal.parquet": parquet_of(id=decimals, x=x, label=label),
        "category.parquet": parquet_of(id=IDS, x=x, label=pa.array(label).dictionary_encode()),
        "t.npz": npz_of(id=np.array(IDS), x=x, label=np.array(label)),
        "matrix.npz": npz_of(
            X=np.column_stack([IDS, np.arange(4)]),
            feature_names=np.array(["id", "x"]),
            label=np.array(label, dtype=np.uint64),
        ),
        "t.csv": "".join(
            f"{i},{v},{y}\n" for i, v, y in [("id", "x", "label"), *zip(IDS, x, label)]
        ).encode(),
    }


@pytest.mark.parametrize("name", integer_files())
def test_integers_keep_every_digit(tmp_path: Path, name: str) -> None:
    table = read_table(write(tmp_path, name, integer_files()[name]))
    points = prepare(table, label="label", key="id")
    assert points.names == [str(i) for i in IDS]
    assert points.y is not None
    assert points.y.tolist() == [str(2**53), str(2**53 + 1)] * 2
    asked = write(tmp_path, "pairs.csv", f"{IDS[0]},{IDS[1]},same\n{IDS[2]},{IDS[3]},different\n")
    assert read_pairs(asked, points.names, key="id").index.tolist() == [[0, 1], [2, 3]]


def test_integers_beside_missing_values_keep_every_digit(tmp_path: Path) -> None:
    content = parquet_of(id=[2**53 + 1, None, 2**53], x=[1, None, 3], on=[True, False, True])
    table = read_table(write(tmp_path, "t.parquet", content))
    assert table.text("id") == [str(2**53 + 1), None, str(2**53)]
    np.testing.assert_array_equal(table.numbers("x")[0], [1, np.nan, 3])
    assert table.numbers("on")[0].tolist() == [1, 0, 1]


def test_categories_of_a_parquet_file_are_their_values(tmp_path: Path) -> None:
    import pyarrow as pa

    content = parquet_of(
        number=pa.array([2**53 + 1, None, 7]).dictionary_encode(),
        text=pa.array(["b", "a", None]).dictionary_encode(),
        real=pa.array([0.5, 2.0, None]).dictionary_encode(),
    )
    table = read_table(write(tmp_path, "t.parquet", content))
    assert table.text("number") == [str(2**53 + 1), None, "7"]
    assert table.text("text") == ["b", "a", None]
    assert table.text("real") == ["0.5", "2", None]


def test_the_named_index_of_a_frame_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index(["a", "b"], name="id"))
    stream = io.BytesIO()
    frame.to_parquet(stream)
    table = read_table(write(tmp_path, "t.parquet", stream.getvalue()))
    assert table.text("id") == ["a", "b"]
    stream = io.BytesIO()
    frame.rename_axis(None).to_parquet(stream)
    assert read_table(write(tmp_path, "u.parquet", stream.getvalue())).names == ["x"]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([datetime.date(2026, 1, 1)], "date"),
        ([datetime.datetime(2026, 1, 1)], "datetime64"),
        ([[1, 2]], "ndarray"),
        ([b"x"], "bytes"),
    ],
)
def test_columns_that_are_neither_numbers_nor_text(tmp_path: Path, column: list[object], kind: str) -> None:
    with pytest.raises(InputError, match=rf"column 'x': its type {kind}.* cannot be used"):
        read_table(write(tmp_path, "t.parquet", parquet_of(x=column)))


def test_parquet_bomb_is_refused_before_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lptml.cli.readers.UNPACKED_LIMIT", 1 << 20)
    content = parquet_of(x=np.zeros(1 << 20))
    with pytest.raises(InputError, match="would unpack to 8 MB from"):
        read_table(write(tmp_path, "t.parquet", content))


@pytest.mark.parametrize("dtype", [">f8", "<f4", "f2", ">i4", "u1", "longdouble"])
def test_numbers_of_any_machine(tmp_path: Path, dtype: str) -> None:
    table = read_table(write(tmp_path, "t.npz", npz_of(X=np.array([[1, 2], [3, 4]], dtype=dtype))))
    assert table.numbers("x1")[0].tolist() == [2, 4]
    assert table.text("x0") == ["1", "3"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
def test_pandas_reads_the_same_cells(tmp_path: Path, delimiter: str, quoting: int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-300, 300, (40, 3)), columns=[*"xyz"]
    )
    frame["text"] = rng.choice(["a, b", "c;d", 'e"f', "two\nlines", "grün", "tab\tor | bar"], 40)
    frame["id"] = rng.integers(-(2**63), 2**63 - 1, 40)
    path = tmp_path / ("t.tsv" if delimiter == "\t" else "t.csv")
    frame.to_csv(path, sep=delimiter, quoting=quoting, index=False)
    table = read_table(str(path))
    again = pd.read_csv(path, sep=delimiter, float_precision="round_trip")
    assert table.names == list(again.columns)
    for name in "xyz":
        np.testing.assert_array_equal(table.numbers(name)[0], again[name])
    assert table.text("text") == again["text"].tolist()
    assert table.text("id") == [str(i) for i in again["id"]]
    shown = path.read_text().splitlines()
    assert all(str(i) in shown[line - 1] for i, line in zip(frame["id"], table.lines))  # where each row ends


def test_scipy_reads_the_same_arff(tmp_path: Path) -> None:
    from scipy.io import arff

    text = (
        "% made by hand\n@RELATION things\n@attribute 'a b' numeric\n@attribute c {'p q', r}\n"
        "@attribute d real\n@data\n1.5,'p q',-1e-3\n?,r,7\n% a comment\n2,r,?\n"
    )
    path = write(tmp_path, "t.arff", text)
    table, (theirs, about) = read_table(path), arff.loadarff(path)
    assert table.names == about.names()
    for name in ("a b", "d"):
        np.testing.assert_array_equal(table.numbers(name)[0], theirs[name])
    assert table.text("c") == [cell.decode() for cell in theirs["c"]]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml", "a spreadsheet: save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook"),
        (b"\x1f\x8b\x08\x00", "compressed data"),
        (b"%PDF-1.4\n", "a PDF"),
        (b'[{"a": 1}]', "JSON"),
        (b"<!DOCTYPE html>\n<p>", "a web page"),
        (b'<meta name="generator" content="lptml 1">', "a page of lptml report"),
    ],
)
def test_what_is_no_table_is_called_by_its_name(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(
        InputError, match=rf"t\.csv: holds {what}.*; tables are CSV, TSV, Parquet, ARFF or npz"
    ):
        read_table(write(tmp_path, "t.csv", content))


def test_format_is_found_without_a_suffix(tmp_path: Path, parquet_bytes: bytes) -> None:
    assert read_table(write(tmp_path, "p", parquet_bytes)).unit == "row"
    assert read_table(write(tmp_path, "n", npz_bytes())).unit == "row"
    assert read_table(write(tmp_path, "a", ARFF)).names == ["id", "x", "y", "kind"]


def test_sparse_arff(tmp_path: Path) -> None:
    header = "@relation r\n@attribute a numeric\n@attribute c {p, q}\n@attribute b numeric\n@data\n"
    text = header + "{0 2, 1 q}\n{2 7}\n"
    table = read_table(write(tmp_path, "s.arff", text))
    assert [table.text(name) for name in table.names] == [["2", "0"], ["q", "p"], ["0", "7"]]


def test_latin_1_by_option(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "x,kind\n1,grün\n2,rot\n3,rot\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"t\.csv, line 2: byte 0xfc is not utf-8; .*--encoding latin-1"):
        read_table(path)
    assert read_table(path, encoding="latin-1").text("kind")[0] == "grün"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("  \n \n", "the file is empty"),
        ("a,b\n", "header line and no rows"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells where the first line has 2"),
        ("a,b\n1,2,3\n", "line 2: 3 cells where the first line has 2"),
        ("a,a\n1,2\n", "line 1: the column name 'a' occurs twice"),
        ("a,\n1,2\n", "line 1: column 2 has no name"),
        ("1,2\n3,4\n", "line 1: the first line holds numbers.*--no-header"),
        ('a,b\n1,"2\n3,4\n', "line 3: cannot be split into cells"),
        ('a,b\n1,"2"x\n', "line 2: cannot be split into cells"),
        ("a,b\n1,\0\n", "line 2: holds NUL characters"),
        ("a,b\n1," + "9" * (1 << 20) + "9\n", "line 2: cannot be split into cells .*field larger"),
    ],
)
def test_malformed_csv(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_table(write(tmp_path, "t.csv", content))
    assert "t.csv" in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation r\n@attribute a numeric\n", "no @attribute or no @data"),
        ("@relation r\n@attribute a\n@data\n1\n", "line 2: .* is not '@attribute name type'"),
        ("@relation r\n@attribute a numeric\n@data\n1,2\n", "line 4: 2 cells where the header names 1"),
        ("@relation r\n@attribute a numeric\n@data\nx\n", "line 4, column 'a': 'x' is no number"),
        ("@relation r\n@attribute a numeric\n@data\n{3 1}\n", "line 4: '3 1' is not 'index value'"),
        ("@relation r\n@attribute a relational\n@data\n1\n", "line 2: relational"),
        ("% nothing\nhello\n", "line 2: 'hello' where @relation"),
    ],
)
def test_malformed_arff(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_table(write(tmp_path, "t.arff", text))


def test_npz_with_a_pickle_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.savez(stream, X=np.array([[object()]]))
    with pytest.raises(InputError, match="not a readable npz file of plain arrays"):
        read_table(write(tmp_path, "t.npz", stream.getvalue()))


def test_npz_bomb_is_refused_before_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lptml.cli.readers.UNPACKED_LIMIT", 1 << 20)
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, X=np.zeros((1 << 10, 1 << 10)))
    with pytest.raises(InputError, match="would unpack to 8 MB from 8 kB; refused"):
        read_table(str(path))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros(3)}, r"X has shape \(3,\)"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(4)}, "array 'y': 4 values where the others have 3"),
        ({"X": np.zeros((3, 2)), "feature_names": np.array(["a"])}, "feature_names has shape"),
        ({"X": np.zeros((0, 2))}, "holds no rows"),
        ({"t": np.zeros((3, 2, 2))}, "array 't': has shape"),
        ({"X": np.zeros((3, 2), dtype=complex)}, "type complex128"),
    ],
)
def test_malformed_npz(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    with pytest.raises(InputError, match=message):
        read_table(write(tmp_path, "t.npz", stream.getvalue()))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_table(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="is a folder"):
        read_table(str(tmp_path))


MIXED = "x,colour,label\n1,red,a\n2,,b\n?,blue,a\n4,red,b\n"


def test_text_and_missing_values_are_refused_with_instructions(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "t.csv", MIXED))
    with pytest.raises(
        InputError, match=r"line 2, column 'colour': 'red' is text; .*--one-hot.*--drop 'colour'"
    ):
        prepare(table, label="label")
    with pytest.raises(InputError, match=r"line 4, column 'x': the value is missing .*--impute median"):
        prepare(table, label="label", drop=("colour",))
    with pytest.raises(InputError, match=r"line 3, column 'colour': the value is missing"):
        prepare(table, label="label", one_hot=True, features=("colour",))


def test_one_wrong_cell_in_a_column_of_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{i},a\n{i},b\n" for i in range(5))
    table = read_table(write(tmp_path, "t.csv", "x,label\n" + rows + "7O,a\n"))
    with pytest.raises(InputError, match=r"line 12, column 'x': '7O' is no number \(1 such cells\); .*--na"):
        prepare(table, label="label")
    again = read_table(write(tmp_path, "u.csv", "x,label\n" + rows + "7O,a\n"), missing=("7o",))
    assert prepare(again, label="label", impute="drop").X.shape == (10, 1)


def test_one_hot_and_impute_are_repeated_on_new_data(tmp_path: Path) -> None:
    points = prepare(
        read_table(write(tmp_path, "t.csv", MIXED)), label="label", one_hot=True, impute="median"
    )
    assert points.feature_names == ["x", "colour=blue", "colour=red"]
    assert points.X.tolist() == [[1, 0, 1], [2, 0, 1], [2, 1, 0], [4, 0, 1]]
    stored = Preparation.from_json(points.preparation.to_json())
    assert stored == points.preparation
    new = read_table(write(tmp_path, "n.csv", "colour,x,other\nblue,,z\n"))
    assert stored.apply(new).tolist() == [[2, 1, 0]]
    strange = read_table(write(tmp_path, "s.csv", "colour,x\ngreen,1\n"))
    with pytest.raises(
        InputError, match=r"line 2, column 'colour': the category 'green' is new to the model"
    ):
        stored.apply(strange)


def test_a_malformed_preparation_is_a_value_error() -> None:
    for stored in (None, [], {"features": 3}, {"features": ["a"], "categories": [], "fill": {}}):
        with pytest.raises(ValueError, match="preparation is malformed"):
            Preparation.from_json(stored)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,l\n1,a\n2,a\n", {}, "every label is 'a'"),
        ("x,l\n1,a\n2,b\n", {}, "all 2 labels differ"),
        ("x,l\n1,a\n2,\n3,b\n", {}, r"line 3, column 'l': no label .*--drop-unlabelled"),
        ("x,l\ninf,a\n2,a\n3,b\n", {}, r"line 2, column 'x': the value inf is infinite or too large"),
        ("x,z,l\n1,,a\n2,,a\n3,,b\n", {}, "column 'z': the column holds no number at all"),
        (
            "x,l\n1,a\n2,a\n3,b\n",
            {"label": "m"},
            r"there is no column 'm' \(--label\); the columns are 'x', 'l'",
        ),
        ("x,l\n1,a\n2,a\n3,b\n", {"drop": ("x",)}, "no column is left"),
        ("x,l\n1,a\n2,a\n3,b\n", {"features": ("l",)}, "both the --label and a feature"),
        (
            "k,x,l\n1,1,a\n1,2,b\n2,3,b\n",
            {"key": "k"},
            r"line 3, column 'k': the key '1' is already in line 2",
        ),
        ("k,x,l\n1,1,a\n,2,b\n2,3,b\n", {"key": "k"}, r"line 3, column 'k': the key is empty"),
    ],
)
def test_unusable_columns(tmp_path: Path, text: str, options: dict[str, object], message: str) -> None:
    table = read_table(write(tmp_path, "t.csv", text))
    with pytest.raises(InputError, match=message):
        prepare(table, **{"label": "l", **options})


def test_many_texts_are_an_identifier(tmp_path: Path) -> None:
    text = "x,who,l\n" + "".join(f"{i},p{i},{'ab'[i % 2]}\n" for i in range(80))
    with pytest.raises(InputError, match="80 different texts are too many for --one-hot"):
        prepare(read_table(write(tmp_path, "t.csv", text)), label="l", one_hot=True)


def test_underscores_do_not_make_numbers(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "t.csv", "x,l\n1_2,a\n3_4,a\n5_6,b\n"))
    with pytest.raises(InputError, match="'1_2' is text"):
        prepare(table, label="l")


def test_pairs_join_by_key_in_any_layout(tmp_path: Path) -> None:
    keys = ["a", "b", "c"]
    for text in ("p,q,label\na,b,similar\nc,a,-1\n", "a;b;YES\nc;a;no\n", "a\tb\t1\t2.5\nc\ta\t0\t1\n"):
        pairs = read_pairs(write(tmp_path, "p.csv", text), keys, key="id")
        assert pairs.index.tolist() == [[0, 1], [2, 0]]
        assert pairs.y is not None
        assert pairs.y.tolist() == [1, -1]
    assert pairs.weight is not None
    assert pairs.weight.tolist() == [2.5, 1.0]


def test_pairs_without_labels(tmp_path: Path) -> None:
    pairs = read_pairs(
        write(tmp_path, "p.csv", "first,second\n1,2\n3,1\n"), ["1", "2", "3"], key=None, need_label=False
    )
    assert pairs.index.tolist() == [[0, 1], [2, 0]]
    assert pairs.y is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no pairs"),
        ("p,q,v\n", "holds no pairs"),
        ("a,b\n", "line 1: 2 cells; each line is two keys and a label"),
        ("a,b,similar\na,zz,similar\n", "line 2: the key 'zz' is not among column 'id'"),
        ("a,b,similar\na,a,similar\n", "line 2: pairs 'a' with itself"),
        ("a,b,similar\na,c,maybe\n", "line 2: 'maybe' is no label of a pair; write similar or dissimilar"),
        ("a,b,similar,1\na,c,no,-3\n", "line 2: '-3' is no weight"),
        ("a,b,similar\na,c\n", "line 2: 2 cells where the first pair has 3"),
    ],
)
def test_malformed_pairs(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs(write(tmp_path, "p.csv", text), ["a", "b", "c"], key="id")
