"""Hostile model files and checkpoints: refused for little, with one kind of error, whatever is wrong."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import struct
import tempfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.model_files import edited, members, npy, raw_npy, sound, write

from lptml import _archive, load
from lptml._archive import MAX_HEADER_BYTES, MAX_HEADER_VALUES, MAX_MEMBERS, open_archive, write_archive
from lptml.constraints import ConstraintSet
from lptml.estimators.io import ModelFileError
from lptml.estimators.model_classes import CLASSES
from lptml.search import search

MEGABYTE = 1 << 20
N = MAX_HEADER_BYTES - 2


def directory(path, entries, told=None, big=False):
    """A file whose directory has many entries, and says that it has ``told``."""
    header = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"a"
    entry = b"PK\x01\x02" + struct.pack("<6H3I5H2I", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    length, told = entries * len(entry), entries if told is None else told
    content = header + entry * entries
    if big:
        content += struct.pack(
            "<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, told, told, length, len(header)
        )
        content += struct.pack("<4sIQI", b"PK\x06\x07", 0, len(header) + length, 1)
    few = min(told, 0xFFFF)
    content += struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, few, few, length, len(header), 0)
    path.write_bytes(content)


def header(path, text):
    write(path, {"header.json": text})


EXPENSIVE = {
    "many entries": lambda p: directory(p, 200_000),
    "many entries, said to be one": lambda p: directory(p, 200_000, told=1),
    "many entries in the record of large files": lambda p: directory(p, 200_000, told=1, big=True),
    "many brackets": lambda p: header(p, b"[" + b"[]," * (N // 3 - 1) + b"[]]"),
    "deep brackets": lambda p: header(p, b"[" * N),
    "deep objects": lambda p: header(p, b'{"":' * (N // 4)),
    "brackets after a string that does not end": lambda p: header(p, b'"\\\\\\"' + b"[" * (N - 10)),
    "many numbers": lambda p: header(p, b"[" + b"0," * (N // 2 - 1) + b"0]"),
    "many objects": lambda p: header(p, b"[" + b'{"":0},' * (N // 7 - 1) + b"0]"),
    "many quotes": lambda p: header(p, b'"' * N),
    "many backslashes": lambda p: header(p, b'"' + b"\\" * (N - 2) + b'"'),
    "many escapes": lambda p: header(p, b'"' + b"\\ud83d\\ude00" * (N // 12) + b'"'),
    "a long text of wide characters": lambda p: header(p, '"\U0001f600'.encode() + b"a" * (N - 8) + b'"'),
    "a long number": lambda p: header(p, b"9" * N),
    "a long fraction": lambda p: header(p, b"0." + b"9" * (N - 2)),
    "a header beyond the limit": lambda p: header(p, b" " * (MAX_HEADER_BYTES + 1)),
    "a compressed header": lambda p: write(p, {"header.json": b"[" * (64 * MEGABYTE)}, zipfile.ZIP_DEFLATED),
    "a compressed array": lambda p: write(
        p, {"header.json": b"{}", "x.npy": npy(np.zeros(64 * MEGABYTE // 8))}, zipfile.ZIP_DEFLATED
    ),
    "an array larger than its member": lambda p: write(
        p,
        edited(sound("LPTML"), lambda h: None)
        | {"a0.npy": raw_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }")},
    ),
    "nesting in the header of an array": lambda p: write(
        p, edited(sound("LPTML"), lambda h: None) | {"a0.npy": raw_npy("(" * 9000)}
    ),
}


@pytest.mark.parametrize("kind", EXPENSIVE)
def test_hostile_files_are_refused_for_little(kind, tmp_path):
    path = tmp_path / "hostile.npz"
    EXPENSIVE[kind](path)
    for read in (load, resumed):
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError):
                read(path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 150 * MEGABYTE


@pytest.mark.parametrize("kind", [kind for kind in EXPENSIVE if "entries" in kind])
def test_a_long_directory_is_refused_before_it_is_read(kind, tmp_path, monkeypatch):
    EXPENSIVE[kind](tmp_path / "hostile.npz")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(ModelFileError, match="directory has"):
        load(tmp_path / "hostile.npz")


@pytest.mark.parametrize(
    "kind", ["many brackets", "deep brackets", "deep objects", "many numbers", "many objects"]
)
def test_a_large_header_is_refused_before_it_is_parsed(kind, tmp_path, monkeypatch):
    EXPENSIVE[kind](tmp_path / "hostile.npz")
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(ModelFileError, match=r"the header (has|is nested)"):
        load(tmp_path / "hostile.npz")


def test_arrays_are_read_when_they_are_asked_for(tmp_path, monkeypatch):
    path = write(tmp_path / "x.npz", edited(sound("LPTML"), lambda h: h["model"].update({"class": "os"})))
    monkeypatch.setattr(np, "empty", None)
    with pytest.raises(ModelFileError, match="unknown class"):
        load(path)


def test_large_files_are_read(tmp_path, monkeypatch):
    """Beyond 2 GiB the end of an archive has another form."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    write_archive(tmp_path / "x.npz", {"a": 1}, {"b": np.arange(50)})
    assert b"PK\x06\x06" in (tmp_path / "x.npz").read_bytes()
    with open_archive(tmp_path / "x.npz", "file") as archive:
        assert archive.header == {"a": 1}
        np.testing.assert_array_equal(archive.take("b"), np.arange(50))


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.array([], dtype=np.int32),
        np.zeros((0, 4)),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([[True], [False]]),
        np.array(["", "ä", "\U0001f600"]),
        np.arange(300_000, dtype=np.float16),
        np.arange(8, dtype=np.uint8)[::2],
    ],
    ids=lambda array: f"{array.dtype.str} {array.shape}",
)
def test_arrays_come_back(array, tmp_path):
    write_archive(tmp_path / "x.npz", {}, {"x": array})
    with open_archive(tmp_path / "x.npz", "file") as archive:
        again = archive.take("x")
        np.testing.assert_array_equal(again, array)
        assert again.dtype == array.dtype.newbyteorder("=")
        with pytest.raises(ValueError, match="used twice"):
            archive.take("x")


@pytest.mark.parametrize(
    ("header", "arrays", "match"),
    [
        ({}, {"x": np.array([print])}, "Object arrays"),
        ({}, {"x": np.zeros(2, dtype=complex)}, "no plain array"),
        ({}, {"x": np.zeros(2, dtype="datetime64[s]")}, "no plain array"),
        ({}, {"x": np.zeros(2, dtype=[("a", "f8")])}, "no plain array"),
        ({}, {f"x{k}": np.zeros(1) for k in range(MAX_MEMBERS)}, "1000 arrays are more than"),
        ([0] * (MAX_HEADER_VALUES + 2), {}, "values, more than"),
        ("x" * MAX_HEADER_BYTES, {}, "bytes, more than"),
        (functools.reduce(lambda inner, _: [inner], range(70), 0), {}, "nested more than"),
    ],
)
def test_what_could_not_be_read_is_not_written(header, arrays, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        write_archive(tmp_path / "x.npz", header, arrays)
    assert not list(tmp_path.iterdir())


def test_brackets_in_strings_do_not_count():
    text = json.dumps(["[" * 5000 + '"' + "{,\\" * 5000, "\\", '\\"[', "]"] * 20)
    _archive.check_header(text.encode())


@functools.cache
def constraints():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(5000, 3))
    return ConstraintSet.from_differences(V, np.where(abs(V[:, 0]) < 0.7, 1, -1), bounds=(1.0, 1.1))


def resumed(path):
    return search(constraints(), max_trials=6, random_state=0, approximate_counting=True, checkpoint=path)


@functools.cache
def checkpoint():
    """The members of a sound checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        resumed(Path(folder, "state.npz"))
        return members(Path(folder, "state.npz"))


def used(path):
    """Load a model, and do with it what one does with models."""
    model = load(path)
    assert type(model).__name__ in CLASSES
    for name in ("engine", "n_jobs", "verbose", "callback", "checkpoint"):
        assert getattr(model, name, None) in ("local", None, 0)
    X = np.random.default_rng(0).normal(size=(4, 3))
    with contextlib.suppress(ValueError):  # of other features
        (model.transform if hasattr(model, "transform") else model.predict)(X)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["a0.npy", "header.json", "LPTML", "tcp://127.0.0.1:1", "inf", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
        | st.fixed_dictionaries(
            {
                "$": st.sampled_from(["array", "tuple", "dict", "objects", "coded", "float", "estimator"]),
                "value": inner,
            }
        )
    ),
    max_leaves=8,
)
arrays = st.builds(
    lambda dtype, shape: npy(np.zeros(shape, dtype=dtype)),
    st.sampled_from(["f8", "f4", "i8", "u1", "b1", "U3", "c16", "M8[s]", ">f8"]),
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
)
shapes = st.builds(
    lambda dtype, shape, data: raw_npy(
        f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}", data
    ),
    st.sampled_from(["<f8", "|O", "<U4", "|b1", "<U99999999", "<f3", "|V0"]),
    st.lists(st.integers(-2, 2**62), max_size=3).map(tuple),
    st.binary(max_size=40),
)


def places(node, path=()):
    """Every place in a tree of JSON data."""
    yield path
    if isinstance(node, dict | list):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(child, (*path, key))


class Spoilt(NamedTuple):
    """A file of which one thing, or a few bytes, were changed."""

    kind: str
    change: object
    content: bytes

    def __repr__(self):
        return f"{self.kind}: {self.change!r:.500}"


@st.composite
def spoilt(draw, source):
    contents = dict(checkpoint() if source == "checkpoint" else sound(source))
    kind = draw(st.sampled_from(["header", "header", "array", "bytes", "members"]))
    change = []
    if kind == "header":
        data = json.loads(contents["header.json"])
        *above, last = draw(st.sampled_from([place for place in places(data) if place]))
        node = functools.reduce(lambda node, key: node[key], above, data)
        if draw(st.booleans()) and isinstance(node, dict):
            new = draw(st.text(max_size=8) | st.sampled_from(["engine", "x_", last]))
            node[new] = node.pop(last)
        else:
            new = node[last] = draw(plain)
        change = [*above, last, new]
        contents["header.json"] = json.dumps(data).encode()
    elif kind == "array":
        name = draw(st.sampled_from([name for name in contents if name != "header.json"]))
        contents[name] = draw(arrays | shapes | st.binary(max_size=200))
        change = [name, contents[name]]
    elif kind == "members":
        old = draw(st.sampled_from(sorted(contents)))
        new = draw(st.sampled_from(sorted(contents)) | st.text("ab0._/\\: é", min_size=1, max_size=6))
        contents[new] = contents.pop(old)
        change = [old, new]
    stream = io.BytesIO()
    write(stream, contents)
    content = bytearray(stream.getvalue())
    if kind == "bytes":
        for _ in range(draw(st.integers(1, 4))):
            near_end = st.integers(1, 120).map(lambda k: len(content) - k)
            start = draw(st.integers(0, len(content) - 1) | near_end)
            stop, new = start + draw(st.integers(0, 12)), draw(st.binary(max_size=12))
            content[start:stop] = new
            change.append((start, stop, new))
    return Spoilt(f"{source}, {kind}", change, bytes(content))


FUZZED = ["LPTML", "LPTML_Supervised", "LabelCleaner", "RobustKNeighborsClassifier", "ITML"]
sample = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
many = settings(sample, max_examples=3000, derandomize=False)


def refused_or_used(content, use):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npz")
        path.write_bytes(content)
        with contextlib.suppress(ModelFileError):
            use(path)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "effort", [sample, pytest.param(many, marks=pytest.mark.slow)], ids=["sample", "many"]
)
def test_any_spoilt_model_is_refused_or_can_be_used(effort):
    for name in FUZZED:
        sound(name)  # fitted here, not by the strategy
    models = st.sampled_from(FUZZED).flatmap(spoilt)
    effort(given(models)(lambda file: refused_or_used(file.content, used)))()


@pytest.mark.parametrize(
    "effort", [sample, pytest.param(many, marks=pytest.mark.slow)], ids=["sample", "many"]
)
def test_any_spoilt_checkpoint_is_refused_or_gone_on_from(effort):
    checkpoint()
    effort(given(spoilt("checkpoint"))(lambda file: refused_or_used(file.content, resumed)))()


@given(st.binary(max_size=400))
@example(b"PK\x05\x06" + b"\0" * 18)
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npz")
        path.write_bytes(content)
        for use in (used, resumed):
            with pytest.raises(ModelFileError):
                use(path)
        assert path.read_bytes() == content
