"""Model files: what is saved comes back, and hostile files are refused without executing or allocating."""

import inspect
import io
import json
import os
import pickle
import socket
import stat
import struct
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsClassifier

from lptml import (
    LPTML,
    LabelCleaner,
    LPTML_Quadruplets,
    LPTML_Supervised,
    LPTML_Triplets,
    RCA_Supervised,
    RobustKNeighborsClassifier,
    load,
    save,
)
from lptml._archive import MAX_MEMBERS
from lptml._model_classes import CLASSES, PASSED_OVER, admits, find_class
from lptml.cli.app import cli
from lptml.io import SCHEMA_VERSION, ModelFileError

FAST = {"max_trials": 3, "random_state": 0}


@pytest.fixture(scope="module")
def pairs():
    return np.random.default_rng(0).normal(size=(40, 2, 3))


@pytest.fixture(scope="module")
def y(pairs):
    return np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)


@pytest.fixture(scope="module")
def model(pairs, y):
    return LPTML(**FAST).fit(pairs, y)


@pytest.fixture(scope="module")
def sound(model, tmp_path_factory):
    """The members of a sound file, by name."""
    path = save(model, tmp_path_factory.mktemp("sound") / "model.npz")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, compression=zipfile.ZIP_STORED):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in members if isinstance(members, list) else members.items():
                archive.writestr(name, content)
    return path


def npy(array, **kwargs):
    buffer = io.BytesIO()
    np.save(buffer, array, **kwargs)
    return buffer.getvalue()


def raw_npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode() + b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def edited(sound, change):
    """The members with the header changed in place by a function."""
    header = json.loads(sound["header.json"])
    change(header)
    return {**sound, "header.json": json.dumps(header).encode()}


def components_member(sound):
    return json.loads(sound["header.json"])["model"]["fitted"]["components_"]["value"]


def test_what_is_saved_comes_back(model, pairs, y, tmp_path):
    again = load(save(model, tmp_path / "model.npz"))
    assert type(again) is LPTML
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.components_, model.components_)
    np.testing.assert_array_equal(again.predict(pairs), model.predict(pairs))
    assert again.threshold_ == model.threshold_
    assert again.bounds_ == model.bounds_
    assert again.status_ == model.status_
    assert again.score(pairs, y) == model.score(pairs, y)
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert public <= set(vars(again))


def test_every_kind_of_learner(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    labels = np.where(X[:, 0] > 0, "up", "down")
    for fitted in (
        LPTML_Supervised(**FAST, class_weight={1: 1.0, -1: 2.0}).fit(X, labels),
        LPTML_Triplets(**FAST).fit(rng.normal(size=(30, 3, 2))),
        LPTML_Quadruplets(**FAST).fit(rng.normal(size=(30, 4, 2))),
    ):
        again = load(save(fitted, tmp_path / "model.npz"))
        assert again.get_params() == fitted.get_params()
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
        if hasattr(fitted, "classes_"):
            np.testing.assert_array_equal(again.classes_, fitted.classes_)


def test_learners_that_hold_learners(tmp_path):
    X = np.random.default_rng(3).normal(size=(40, 2))
    y = X[:, 0] > 0
    for fitted in (
        RobustKNeighborsClassifier().fit(X, y),
        RobustKNeighborsClassifier(metric_learner=LPTML_Supervised(**FAST)).fit(X, y),
        LabelCleaner(LPTML_Supervised(**FAST)).fit(X, y),
        RCA_Supervised().fit(X, y),
    ):
        again = load(save(fitted, tmp_path / "model.npz"))
        use = "predict" if hasattr(fitted, "predict") else "transform"
        np.testing.assert_array_equal(getattr(again, use)(X), getattr(fitted, use)(X))
    with pytest.raises(ValueError, match="estimator cannot be saved: it is a KNeighborsClassifier"):
        save(LabelCleaner(KNeighborsClassifier()).fit(X, y), tmp_path / "model.npz")


def test_array_preprocessor_and_regularizer_are_saved(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2))
    index = rng.integers(0, 30, size=(40, 2))
    y = np.where(np.arange(40) % 2, 1, -1)
    fitted = LPTML(**FAST, preprocessor=X, regularization=0.1, regularizer=np.eye(2)).fit(index, y)
    again = load(save(fitted, tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.predict(index), fitted.predict(index))
    np.testing.assert_array_equal(again.regularizer, np.eye(2))


def test_what_belongs_to_the_process_is_left_out_with_a_warning(pairs, y, tmp_path):
    fitted = LPTML(
        max_trials=3, random_state=np.random.RandomState(0), callback=lambda *_: None, n_jobs=1, verbose=True
    ).fit(pairs, y)
    with pytest.warns(UserWarning, match="callback, n_jobs, random_state, verbose"):
        path = save(fitted, tmp_path / "model.npz")
    assert load(path).get_params() == LPTML(max_trials=3).get_params()


#: Parameters that say what a fit does to its surroundings; a file has no say in them.
NEVER_RESTORED = PASSED_OVER | {"callback", "checkpoint"}
EVERY_PARAMETER = [
    (name, parameter) for name in CLASSES for parameter in inspect.signature(find_class(name)).parameters
]
#: What no parameter may be restored to: an address, a path, a name of something to run.
ACTIVE = ["tcp://127.0.0.1:8786", "spark://127.0.0.1:7077", "dask", "/etc/passwd", "os.system", ["yarn"]]


@pytest.mark.parametrize(("name", "parameter"), EVERY_PARAMETER)
def test_every_parameter_has_a_type_or_is_never_restored(name, parameter, sound, tmp_path):
    restored = parameter in CLASSES[name].parameters
    assert restored != (parameter in NEVER_RESTORED), "every parameter is on just one of the two lists"
    plain = {
        "LabelCleaner": {"estimator": {"$": "estimator", "value": nothing_fitted("LPTML")}},
    }.get(name, {})
    for value in ACTIVE:
        model = {"class": name, "params": {**plain, parameter: value}, "fitted": {"noise_rate_": 0.0}}
        header = {"format": "lptml-model", "version": SCHEMA_VERSION, "written_by": "x", "model": model}
        path = write(tmp_path / "evil.npz", {"header.json": json.dumps(header).encode()})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = getattr(load(path), parameter)
            except ModelFileError:
                continue
        assert parameter in PASSED_OVER
        assert found == inspect.signature(find_class(name)).parameters[parameter].default
        assert [parameter in str(warning.message) for warning in caught] == [True]


def nothing_fitted(name):
    return {"class": name, "params": {}, "fitted": {}}


@pytest.mark.parametrize("name", CLASSES)
def test_the_table_knows_the_classes_as_they_are(name):
    cls, domains = find_class(name), CLASSES[name].parameters
    signature = inspect.signature(cls).parameters
    assert set(domains) <= set(signature)
    for parameter, domain in domains.items():
        if signature[parameter].default is not inspect.Parameter.empty:
            assert admits(domain, signature[parameter].default)
        for constraint in getattr(cls, "_parameter_constraints", {}).get(parameter, []):
            for option in getattr(constraint, "options", []):
                assert admits(domain, option), f"{parameter}={option!r} could not be saved"


def test_every_estimator_can_be_in_a_file():
    import lptml

    exported = {name for name in lptml.__all__ if inspect.isclass(getattr(lptml, name))}
    assert {name for name in exported if issubclass(getattr(lptml, name), BaseEstimator)} == set(CLASSES)


def test_a_file_does_not_decide_where_a_fit_runs(tmp_path):
    """An engine's address in a file was once connected to by the refit of a report."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    table = tmp_path / "data.csv"
    table.write_text("a,b,y\n" + "".join(f"{a!r},{b!r},{c}\n" for (a, b), c in zip(X.tolist(), y)))
    model, evil = tmp_path / "model.npz", tmp_path / "evil.npz"
    fit = ["fit", str(table), "--label", "y", "-o", str(model), "--max-trials", "2"]
    assert CliRunner().invoke(cli, fit).exit_code == 0
    with zipfile.ZipFile(model) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        write(evil, edited(members, lambda h: h["model"]["params"].update(engine=address, n_jobs=7)))
        with pytest.warns(UserWarning, match="names engine, n_jobs, which a model file does not decide"):
            loaded = load(evil)
        assert (loaded.engine, loaded.n_jobs) == ("local", None)
        page = ["report", str(table), "--label", "y", "--model", str(evil), "-o", str(tmp_path / "page.html")]
        result = CliRunner().invoke(cli, page)
        assert result.exit_code == 0, result.output
        assert "note: " in result.stderr
        assert "names engine, n_jobs" in result.stderr
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # no one has knocked
            server.accept()


def test_files_of_earlier_versions_load_without_a_word(sound, tmp_path):
    path = write(
        tmp_path / "old.npz",
        edited(sound, lambda h: h["model"]["params"].update(engine="local", n_jobs=None, verbose=0)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(path).engine == "local"


def test_the_same_model_gives_the_same_bytes(model, tmp_path):
    assert save(model, tmp_path / "a.npz").read_bytes() == save(model, tmp_path / "b.npz").read_bytes()


def test_numpy_reads_the_arrays(model, sound, tmp_path):
    with np.load(write(tmp_path / "model.npz", sound), allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays[components_member(sound)[:-4]], model.components_)


def test_a_failed_write_leaves_the_old_file(model, tmp_path, monkeypatch):
    path = save(model, tmp_path / "model.npz")
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(model, path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


def test_files_have_ordinary_rights(model, tmp_path):
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(save(model, tmp_path / "model.npz").stat().st_mode) == 0o666 & ~mask


def test_what_cannot_be_saved_is_named(model, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save(LPTML(), tmp_path / "model.npz")
    with pytest.raises(ValueError, match="only estimators of lptml"):
        save(object(), tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.npz")


class Bomb:
    """Unpickling it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


HOSTILE = {
    "empty": lambda s, p: p.write_bytes(b""),
    "not a zip": lambda s, p: p.write_bytes(b"\x00" * 1000),
    "pickle instead of a zip": lambda s, p: p.write_bytes(pickle.dumps(Bomb(p.parent / "executed"))),
    "text": lambda s, p: p.write_text("components = 1"),
    "truncated": lambda s, p: p.write_bytes(write(p, s).read_bytes()[:-100]),
    "cut in the middle": lambda s, p: p.write_bytes(write(p, s).read_bytes()[200:]),
    "no header": lambda s, p: write(p, {k: v for k, v in s.items() if k != "header.json"}),
    "pickled array": lambda s, p: write(
        p,
        {**s, components_member(s): npy(np.array([Bomb(p.parent / "executed")], object), allow_pickle=True)},
    ),
    "pickled member": lambda s, p: write(
        p, {**s, components_member(s): pickle.dumps(Bomb(p.parent / "executed"))}
    ),
    "compressed": lambda s, p: write(p, s, zipfile.ZIP_DEFLATED),
    "zip bomb": lambda s, p: write(
        p, {**s, components_member(s): npy(np.zeros(30_000_000))}, zipfile.ZIP_DEFLATED
    ),
    "huge shape": lambda s, p: write(
        p,
        {
            **s,
            components_member(s): raw_npy(
                "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }"
            ),
        },
    ),
    "overflowing shape": lambda s, p: write(
        p,
        {
            **s,
            components_member(s): raw_npy(
                f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**61}, 3), }}", b"\0" * 24
            ),
        },
    ),
    "negative shape": lambda s, p: write(
        p,
        {
            **s,
            components_member(s): raw_npy(
                "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -3), }", b"\0" * 24
            ),
        },
    ),
    "code in the array header": lambda s, p: write(
        p,
        {
            **s,
            components_member(s): raw_npy(
                "{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (1,), }"
            ),
        },
    ),
    "structured array": lambda s, p: write(
        p, {**s, components_member(s): npy(np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]))}
    ),
    "dates": lambda s, p: write(p, {**s, components_member(s): npy(np.zeros(9, "datetime64[s]"))}),
    "complex": lambda s, p: write(p, {**s, components_member(s): npy(np.zeros((3, 3), complex))}),
    "fortran order": lambda s, p: write(
        p, {**s, components_member(s): npy(np.asfortranarray(np.arange(6.0).reshape(2, 3)))}
    ),
    "later npy version": lambda s, p: write(
        p,
        {**s, components_member(s): raw_npy("{'descr': '<f8', 'shape': (1,)}", b"\0" * 8, b"\x09\x00")},
    ),
    "wrong shape": lambda s, p: write(p, {**s, components_member(s): npy(np.zeros((3, 4)))}),
    "one dimension": lambda s, p: write(p, {**s, components_member(s): npy(np.zeros(3))}),
    "no rows": lambda s, p: write(p, {**s, components_member(s): npy(np.zeros((0, 3)))}),
    "single precision": lambda s, p: write(p, {**s, components_member(s): npy(np.zeros((3, 3), np.float32))}),
    "NaN": lambda s, p: write(p, {**s, components_member(s): npy(np.full((3, 3), np.nan))}),
    "infinity": lambda s, p: write(p, {**s, components_member(s): npy(np.full((3, 3), np.inf))}),
    "path upwards": lambda s, p: write(p, {**s, "../../executed.npy": npy(np.zeros(1))}),
    "absolute path": lambda s, p: write(p, {**s, "/executed.npy": npy(np.zeros(1))}),
    "drive": lambda s, p: write(p, {**s, "C:\\executed.npy": npy(np.zeros(1))}),
    "two members of one name": lambda s, p: write(p, [*s.items(), ("header.json", b"{}")]),
    "too many members": lambda s, p: write(
        p, {**s, **{f"a{i}.npy": b"" for i in range(5000, 5001 + MAX_MEMBERS)}}
    ),
    "array that nothing refers to": lambda s, p: write(p, {**s, "a99.npy": npy(np.zeros(1))}),
    "header not text": lambda s, p: write(p, {**s, "header.json": b"\xff\xfe\x00"}),
    "header not JSON": lambda s, p: write(p, {**s, "header.json": b"{"}),
    "header a list": lambda s, p: write(p, {**s, "header.json": b"[]"}),
    "NaN in the header": lambda s, p: write(
        p, {**s, "header.json": s["header.json"].replace(b'"threshold_": ', b'"threshold_": NaN, "x_": ')}
    ),
    "deep header": lambda s, p: write(p, {**s, "header.json": b"[" * 100_000 + b"]" * 100_000}),
    "long number": lambda s, p: write(p, {**s, "header.json": b"9" * 100_000}),
    "other format": lambda s, p: write(p, edited(s, lambda h: h.update(format="other"))),
    "later version": lambda s, p: write(p, edited(s, lambda h: h.update(version=SCHEMA_VERSION + 1))),
    "no version": lambda s, p: write(p, edited(s, lambda h: h.pop("version"))),
    "unknown entry": lambda s, p: write(p, edited(s, lambda h: h.update(hook="os.system"))),
    "no model": lambda s, p: write(p, edited(s, lambda h: h.update(model=None))),
    "unknown class": lambda s, p: write(p, edited(s, lambda h: h["model"].update({"class": "os.system"}))),
    "class a list": lambda s, p: write(p, edited(s, lambda h: h["model"].update({"class": ["LPTML"]}))),
    "unknown parameter": lambda s, p: write(p, edited(s, lambda h: h["model"]["params"].update(shell="x"))),
    "bad parameter": lambda s, p: write(p, edited(s, lambda h: h["model"]["params"].update(max_trials=-5))),
    "callback": lambda s, p: write(p, edited(s, lambda h: h["model"]["params"].update(callback="os.abort"))),
    "number a text": lambda s, p: write(p, edited(s, lambda h: h["model"]["params"].update(epsilon="0.5"))),
    "number a truth": lambda s, p: write(p, edited(s, lambda h: h["model"]["params"].update(epsilon=True))),
    "number too large": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["params"].update(epsilon=10**400))
    ),
    "preprocessor a model": lambda s, p: write(
        p,
        edited(
            s,
            lambda h: h["model"]["params"].update(
                preprocessor={"$": "estimator", "value": nothing_fitted("LPTML")}
            ),
        ),
    ),
    "needed parameter missing": lambda s, p: write(
        p, edited(s, lambda h: h["model"].update({"class": "LabelCleaner", "params": {}, "fitted": {}}))
    ),
    "checkpoint path": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["params"].update(checkpoint="/etc/passwd"))
    ),
    "params a list": lambda s, p: write(p, edited(s, lambda h: h["model"].update(params=[]))),
    "private attribute": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(__class__="x"))
    ),
    "method": lambda s, p: write(p, edited(s, lambda h: h["model"]["fitted"].update(predict=1))),
    "class attribute": lambda s, p: write(p, edited(s, lambda h: h["model"]["fitted"].update(classes_=[1]))),
    "unknown array": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"]["components_"].update(value="a98.npy"))
    ),
    "one array twice": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(twin_=h["model"]["fitted"]["components_"]))
    ),
    "unknown tag": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(x_={"$": "eval", "value": "1"}))
    ),
    "plain object": lambda s, p: write(p, edited(s, lambda h: h["model"]["fitted"].update(x_={"a": 1}))),
    "bad dict": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(x_={"$": "dict", "value": [[1, 2, 3]]}))
    ),
    "dict with list keys": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(x_={"$": "dict", "value": [[[1], 2]]}))
    ),
    "nested values": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(x_=json.loads("[" * 100 + "]" * 100)))
    ),
    "features contradict": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(n_features_in_=7))
    ),
    "features missing": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].pop("n_features_in_"))
    ),
    "threshold a text": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(threshold_="1"))
    ),
    "components a text": lambda s, p: write(
        p,
        edited(
            {name: content for name, content in s.items() if name != components_member(s)},
            lambda h: h["model"]["fitted"].update(components_="LL"),
        ),
    ),
    "preprocessor a text": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["params"].update(preprocessor="os"))
    ),
    "too few names": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(feature_names_in_=["a"]))
    ),
    "directory": lambda s, p: p.mkdir(),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused(kind, sound, tmp_path):
    path = tmp_path / "model.npz"
    HOSTILE[kind](sound, path)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert not (tmp_path / "executed").exists()


def test_overlapping_members_are_refused(sound, tmp_path):
    """A directory whose entries all point at one large member would read it many times over."""
    big = b"\x00" * 1_000_000
    path = write(tmp_path / "model.npz", {"header.json": big})
    data = path.read_bytes()
    start = data.rindex(b"PK\x01\x02")
    end = data.rindex(b"PK\x05\x06")
    entry = data[start:end]
    entries = entry + b"".join(
        entry.replace(b"header.json", f"a{i:05d}.npy"[:11].encode()) for i in range(500)
    )
    tail = bytearray(data[end:])
    tail[8:12] = struct.pack("<HH", 501, 501)
    tail[12:16] = struct.pack("<I", len(entries))
    path.write_bytes(data[:start] + entries + bytes(tail))
    with pytest.raises(ModelFileError):
        load(path)


def test_encrypted_members_are_refused(sound, tmp_path):
    path = write(tmp_path / "model.npz", sound)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ModelFileError, match="encrypted"):
        load(path)


def test_damaged_bytes_are_noticed(sound, tmp_path):
    """Whatever byte is damaged, the file is refused or still gives a sound model."""
    original = write(tmp_path / "model.npz", sound).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        data = bytearray(original)
        data[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        path = tmp_path / "damaged.npz"
        path.write_bytes(bytes(data))
        try:
            assert np.isfinite(load(path).components_).all()
        except ModelFileError:
            continue


def test_pipes_are_refused(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)  # opening it would wait for a writer
    with pytest.raises(ModelFileError, match="regular"):
        load(path)
