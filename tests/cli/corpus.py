"""Malformed files, made the same way every time: what users, editors and broken downloads produce."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

# Options with which fit does next to nothing, from labels or pairs.
QUICK = ["--no-cross-validate", "--max-trials", "1", "--no-refine", "--temperature", "0"]

ROWS = [
    ("a", 1.0, 2.0, "p"),
    ("b", 1.5, 1.0, "p"),
    ("c", 8.0, 2.5, "q"),
    ("d", 9.0, 1.5, "q"),
    ("e", 1.2, 1.4, "p"),
    ("f", 8.4, 2.2, "q"),
]
CSV = "id,x,z,label\n" + "".join(f"{i},{x},{z},{y}\n" for i, x, z, y in ROWS)
ARFF = (
    "@relation r\n@attribute id string\n@attribute x numeric\n@attribute z numeric\n"
    "@attribute label {p,q}\n@data\n" + "".join(f"{i},{x},{z},{y}\n" for i, x, z, y in ROWS)
)
PAIRS = "first,second,label\na,b,similar\nc,d,similar\na,c,dissimilar\nb,d,dissimilar\n"


def npz() -> bytes:
    stream = io.BytesIO()
    X = np.array([[x, z] for _, x, z, _ in ROWS])
    np.savez(stream, X=X, y=np.array([y for *_, y in ROWS]), id=np.array([i for i, *_ in ROWS]))
    return stream.getvalue()


def parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("id", "x", "z", "label")
    stream = io.BytesIO()
    pq.write_table(pa.table({n: [row[k] for row in ROWS] for k, n in enumerate(names)}), stream)
    return stream.getvalue()


def malformed() -> list[tuple[str, bytes]]:
    """At least 200 files, each a name and its bytes; a few happen to be readable, most are not."""
    files = list(_texts()) + list(_damaged()) + list(_binaries())
    return [(f"{k:03d}-{name}", content) for k, (name, content) in enumerate(files)]


def _texts() -> Iterator[tuple[str, bytes]]:
    whole = CSV.encode()
    yield "empty.csv", b""
    yield "blank.csv", b"\n\n \n"
    yield "header.csv", b"id,x,z,label\n"
    yield "nothing.tsv", b"\t\t\t\n"
    yield "commas.csv", b",,,\n,,,\n"
    for encoding in ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp500", "utf-7"):
        yield f"{encoding}.csv", CSV.replace("p", "grün").encode(encoding, "replace")
    for byte in (0x00, 0x1A, 0x80, 0xC3, 0xFF):
        for place in (0, 15, len(whole) // 2, len(whole) - 2):
            yield f"byte{byte:02x}-{place}.csv", whole[:place] + bytes([byte]) + whole[place:]
    lines = CSV.splitlines()
    for k in range(len(lines)):
        yield f"short{k}.csv", "\n".join([*lines[:k], lines[k].rpartition(",")[0], *lines[k + 1 :]]).encode()
        yield f"long{k}.csv", "\n".join([*lines[:k], lines[k] + ",7,7", *lines[k + 1 :]]).encode()
        yield f"quote{k}.csv", "\n".join([*lines[:k], '"' + lines[k], *lines[k + 1 :]]).encode()
    for cell in ("", "NaN", "inf", "-inf", "1e999", "0x10", "1,5", "abc", "=1+1", "'", '""', "\\", "é" * 300):
        yield f"cell{cell[:3].strip() or 'none'}.csv", CSV.replace("8.0", cell).encode()
    yield "huge-field.csv", CSV.replace("8.0", "9" * 2_000_000).encode()
    yield "huge-text.csv", CSV.replace("label", "l" * 1_200_000).encode()
    yield "wide.csv", (",".join(f"c{j}" for j in range(120_000)) + "\n").encode()
    yield "one-column.csv", b"label\np\nq\np\nq\n"
    yield "one-class.csv", CSV.replace(",q", ",p").encode()
    yield "constant.csv", b"id,x,z,label\na,1,1,p\nb,1,1,q\nc,1,1,p\nd,1,1,q\n"
    yield "one-row.csv", b"id,x,z,label\na,1,1,p\n"
    yield "twice.csv", CSV.replace("z", "x", 1).encode()
    yield "same-key.csv", CSV.replace("\nb,", "\na,").encode()
    yield "numbers.csv", b"1,2,3\n4,5,6\n7,8,9\n"
    yield "extreme.csv", CSV.replace("8.0", "1e308").replace("9.0", "-1e308").encode()
    yield "tiny.csv", CSV.replace("8.0", "1e-320").encode()
    yield "cr.csv", CSV.replace("\n", "\r").encode()
    yield "html.csv", b"<!doctype html><html><body>404</body></html>\n"
    yield "json.csv", b'{"a": [1, 2, {"b": null}]}\n'
    yield "quotes.csv", b'"' * 5001
    yield "escape.csv", b"id,x,z,label\n\x1b[31ma,1,2,p\n"


def _damaged() -> Iterator[tuple[str, bytes]]:
    """Every format cut off, and with bytes changed."""
    rng = np.random.default_rng(8)
    originals = {"csv": CSV.encode(), "arff": ARFF.encode(), "npz": npz(), "parquet": parquet()}
    for suffix, whole in originals.items():
        for k in range(1, 13):
            yield f"cut{k}.{suffix}", whole[: len(whole) * k // 13]
        for k in range(12):
            changed = bytearray(whole)
            for place in rng.integers(0, len(whole), 1 + k // 2):
                changed[place] = int(rng.integers(0, 256))
            yield f"changed{k}.{suffix}", bytes(changed)


def _binaries() -> Iterator[tuple[str, bytes]]:
    rng = np.random.default_rng(9)
    for suffix in ("csv", "tsv", "parquet", "arff", "npz", "bin"):
        yield f"noise.{suffix}", rng.bytes(700)
        yield f"zeros.{suffix}", bytes(300)
    yield "png.csv", b"\x89PNG\r\n\x1a\n" + rng.bytes(200)
    yield "gzip.csv", b"\x1f\x8b\x08\x00" + rng.bytes(200)
    yield "parquet-magic.csv", b"PAR1" + rng.bytes(100) + b"PAR1"
    yield "zip-magic.csv", b"PK\x03\x04" + rng.bytes(100)
    stream = io.BytesIO()
    np.savez(stream, X=np.array([[{"a": 1}]], dtype=object))
    yield "pickle.npz", stream.getvalue()
    for name, arrays in {
        "nan": {"X": np.full((4, 2), np.nan), "y": np.array([0, 0, 1, 1])},
        "ragged": {"X": np.zeros((4, 2)), "y": np.zeros(3)},
        "cube": {"X": np.zeros((2, 2, 2))},
        "scalar": {"X": np.float64(1.0)},
        "complex": {"X": np.zeros((3, 2), dtype=complex)},
        "dates": {"X": np.zeros((3, 2)), "y": np.zeros(3, dtype="datetime64[s]")},
        "none": {"Z": np.zeros((3, 2))},
    }.items():
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        yield f"{name}.npz", stream.getvalue()
