"""Model files: what is saved comes back, and hostile files are refused without executing or allocating."""

import copy
import json
import os
import pickle
import stat
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from tests.model_files import FAST, edited, members, npy, raw_npy, write

from lptml import (
    LPTML,
    LPTMLCV,
    LabelCleaner,
    LPTML_Quadruplets,
    LPTML_Supervised,
    LPTML_SupervisedCV,
    LPTML_Triplets,
    RCA_Supervised,
    RobustKNeighborsClassifier,
    load,
    save,
)
from lptml._archive import MAX_MEMBERS
from lptml.estimators.io import SCHEMA_VERSION, ModelFileError


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
    return members(save(model, tmp_path_factory.mktemp("sound") / "model.npz"))


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
        LPTML_Supervised(**FAST).fit(X, labels),
        LPTML_Supervised(**FAST, constraints="all", class_weight={1: 1.0, -1: 2.0}).fit(X, labels),
        LPTML_Triplets(**FAST).fit(rng.normal(size=(30, 3, 2))),
        LPTML_Quadruplets(**FAST).fit(rng.normal(size=(30, 4, 2))),
    ):
        again = load(save(fitted, tmp_path / "model.npz"))
        assert again.get_params() == fitted.get_params()
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
        if hasattr(fitted, "classes_"):
            np.testing.assert_array_equal(again.classes_, fitted.classes_)


def test_a_cross_validation_comes_back(tmp_path):
    X = np.random.default_rng(1).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    priors = [np.diag([2.0, 1.0]), "within", [[1, 0], [0, 3]]]
    grid = {"constraints": ["triplets", "all"], "n_components": [None, 1], "shrinkages": np.array([0.0, 1.0])}
    fitted = LPTML_SupervisedCV(**FAST, priors=priors, **grid).fit(X, y)
    again = load(save(fitted, tmp_path / "model.npz"))
    assert str(again.get_params()) == str(fitted.get_params())
    assert set(again.cv_results_) == set(fitted.cv_results_)
    for name, column in fitted.cv_results_.items():
        assert type(again.cv_results_[name]) is type(column)
        assert str(again.cv_results_[name]) == str(column)
    np.testing.assert_array_equal(again.cv_results_["param_prior"][0], priors[0])
    assert str(again.best_params_) == str(fitted.best_params_)
    assert (again.best_index_, again.best_score_) == (fitted.best_index_, fitted.best_score_)
    assert again.bounds_ == fitted.bounds_
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_a_cross_validation_of_pairs_comes_back(pairs, y, tmp_path):
    fitted = LPTMLCV(**FAST, priors=[np.eye(3), "within"], temperatures=[0.1], n_components=[2]).fit(pairs, y)
    again = load(save(fitted, tmp_path / "model.npz"))
    assert str(again.get_params()) == str(fitted.get_params())
    assert str(again.cv_results_) == str(fitted.cv_results_)
    np.testing.assert_array_equal(again.predict(pairs), fitted.predict(pairs))


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
        for inner in ("metric_learner_", "estimator_"):
            if hasattr(fitted, inner):
                same = getattr(again, inner).components_ == getattr(fitted, inner).components_
                assert same.all(), "the learner inside is saved as well"
    with pytest.raises(ValueError, match="estimator cannot be saved: it is a KNeighborsClassifier"):
        save(LabelCleaner(KNeighborsClassifier()).fit(X, y), tmp_path / "model.npz")


@pytest.mark.parametrize(
    "labels",
    [
        ["up", "down"] * 200_000,  # more than a header may hold
        [1, True, 1.0, "1", None, np.float64(0.5), "up", "up"],
        [],
    ],
    ids=["many", "mixed", "none"],
)
def test_labels_that_are_objects_come_back(labels, model, tmp_path):
    labels = np.array(labels, dtype=object)
    again = copy.copy(model)
    again.labels_ = labels
    found = load(save(again, tmp_path / "model.npz")).labels_
    assert found.dtype == object
    assert found.tolist() == labels.tolist()
    assert [type(label) for label in found] == [
        float if isinstance(label, float) else type(label) for label in labels
    ]


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
                preprocessor={"$": "estimator", "value": {"class": "LPTML", "params": {}, "fitted": {}}}
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
    "codes beyond the objects": lambda s, p: write(
        p,
        {
            **edited(
                s,
                lambda h: h["model"]["fitted"].update(
                    labels_={"$": "coded", "value": [["a"], {"$": "array", "value": "a50.npy"}]}
                ),
            ),
            "a50.npy": npy(np.array([0, 1])),
        },
    ),
    "a lone half of a character": lambda s, p: write(
        p, edited(s, lambda h: h["model"]["fitted"].update(status_="\ud800"))
    ),
    "objects of one length": lambda s, p: write(
        p,
        edited(
            s,
            lambda h: h["model"]["fitted"].update(labels_={"$": "objects", "value": [[1, 2], [3, 4]]}),
        ),
    ),
    "not fitted": lambda s, p: write(p, edited(s, lambda h: h["model"].update(fitted={}))),
    "bounds a text": lambda s, p: write(p, edited(s, lambda h: h["model"]["fitted"].update(bounds_="ab"))),
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
