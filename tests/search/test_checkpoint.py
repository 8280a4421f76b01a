"""A search killed at any moment goes on from its checkpoint and ends like one that was not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from lptml._archive import open_archive, write_archive
from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.estimators.io import ModelFileError
from lptml.search import CheckpointWarning, SearchStatus, search
from lptml.search import checkpoint as _checkpoint

PROGRAM = """
import importlib, sys
import numpy as np
from lptml.constraints import ConstraintSet, LabelledPairs
module = importlib.import_module("lptml.search")
module._CHECKPOINT_SECONDS = 0.0  # after every unit
rng = np.random.default_rng(0)
V = rng.normal(size=(6000, 4))
y = np.where(abs(V[:, 0]) < 0.7, 1, -1) * np.where(rng.random(6000) < 0.2, -1, 1)
constraints = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
result = module.search(
    constraints, max_trials=@TRIALS@, random_state=1, n_jobs=2, checkpoint=@PATH@, approximate_counting=True
)
np.save(sys.argv[1], result.A)
print(result.n_trials, result.trial, result.cost)
"""


def run(path, out, trials=400):
    program = PROGRAM.replace("@TRIALS@", str(trials)).replace("@PATH@", repr(str(path) if path else None))
    return subprocess.Popen([sys.executable, "-c", program, str(out)], stdout=subprocess.PIPE, text=True)


def test_killed_and_resumed_it_ends_with_the_same_metric(tmp_path):
    plain = run(None, tmp_path / "plain.npy")
    expected, _ = plain.communicate(timeout=120)
    rng = np.random.default_rng(0)
    path, kills = tmp_path / "state.npz", 0
    for _ in range(40):
        process = run(path, tmp_path / "resumed.npy")
        before = path.stat().st_mtime_ns if path.exists() else 0
        while process.poll() is None and not (path.exists() and path.stat().st_mtime_ns != before):
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.15))  # anywhere: in a trial, in a write, in the last count
        if process.poll() is None and kills < 4:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        out, _ = process.communicate(timeout=120)
        break
    assert kills >= 1
    assert out == expected
    np.testing.assert_array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "plain.npy"))
    left = [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert len(left) <= kills  # a killed write leaves its own file at most, never a broken checkpoint


def constraints(seed=0, n=6000):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, 3))
    y = np.where(abs(V[:, 0]) < 0.7, 1, -1) * np.where(rng.random(n) < 0.2, -1, 1)
    return ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))


@pytest.mark.parametrize("approximate", [True, False])
def test_stopped_anywhere_and_resumed(tmp_path, approximate):
    F = constraints()
    options = {"max_trials": 60, "random_state": 0, "approximate_counting": approximate}
    expected = search(F, **options)
    path = tmp_path / "state.npz"
    for stop in (3, 10, 31):
        part = search(F, **options, checkpoint=path, callback=lambda p, stop=stop: p.n_trials >= stop)
        assert part.status is SearchStatus.STOPPED
    result = search(F, **options, checkpoint=path)
    np.testing.assert_array_equal(result.A, expected.A)
    assert (result.n_trials, result.n_infeasible) == (60, expected.n_infeasible)
    assert result.counted == expected.counted
    np.testing.assert_array_equal(result.history.trial, expected.history.trial)
    np.testing.assert_array_equal(result.history.cost, expected.history.cost)
    assert (np.diff(result.history.seconds) >= 0).all()


def test_more_trials_than_before(tmp_path):
    F = constraints()
    path = tmp_path / "state.npz"
    search(F, max_trials=20, random_state=0, checkpoint=path)
    longer = search(F, max_trials=50, random_state=0, checkpoint=path)
    np.testing.assert_array_equal(longer.A, search(F, max_trials=50, random_state=0).A)


def test_without_a_random_state_the_checkpoint_remembers_it(tmp_path):
    F = constraints()
    path = tmp_path / "state.npz"
    first = search(F, max_trials=20, checkpoint=path)
    second = search(F, max_trials=40, checkpoint=path)
    assert second.entropy == first.entropy
    np.testing.assert_array_equal(second.A, search(F, max_trials=40, random_state=first.entropy).A)


@pytest.mark.parametrize("change", [{"random_state": 1}, {"epsilon": 0.25}, {"objective": "random"}])
def test_a_checkpoint_of_another_search_is_refused(tmp_path, change):
    path = tmp_path / "state.npz"
    search(constraints(), max_trials=5, random_state=0, checkpoint=path)
    with pytest.raises(ValueError, match="another search"):
        search(constraints(), max_trials=5, checkpoint=path, **{"random_state": 0, **change})
    with pytest.raises(ValueError, match="another search"):
        search(constraints(seed=1), max_trials=5, random_state=0, checkpoint=path)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 broken"])
def test_other_files_are_refused_and_kept(tmp_path, content):
    path = tmp_path / "state.npz"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a checkpoint"):
        search(constraints(), max_trials=5, checkpoint=path)
    assert path.read_bytes() == content
    np.savez(path, header=np.array([{}], dtype=object))  # a pickle inside
    with pytest.raises(ModelFileError, match="not a checkpoint"):
        search(constraints(), max_trials=5, checkpoint=path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelFileError, match="not a regular file"):
        search(constraints(), max_trials=5, checkpoint=path)


def put(name, value):
    """A change of one entry or of the whole of an array."""

    def change(header, arrays):
        array = arrays[name].copy()
        array[...] = value
        arrays[name] = array

    return change


def cut(name):
    return lambda header, arrays: arrays.update({name: arrays[name][:-1]})


SPOILT = {
    "another format": lambda h, a: h.update(format="lptml-search-1"),
    "no seed": lambda h, a: h.pop("entropy"),
    "seed a text": lambda h, a: h.update(entropy="7"),
    "seed negative": lambda h, a: h.update(entropy=-1),
    "seed a list": lambda h, a: h.update(entropy=[1]),
    "no fingerprint": lambda h, a: h.pop("fingerprint"),
    "fingerprint a list": lambda h, a: h.update(fingerprint=[]),
    "an array missing": lambda h, a: a.pop("history"),
    "an array more": lambda h, a: a.update(more=np.zeros(3)),
    "trial a text": lambda h, a: a.update(next_trial=np.array("x")),
    "trial a vector": lambda h, a: a.update(next_trial=np.array([1, 2])),
    "trial beyond all": put("next_trial", 2**62),
    "trials that were not run": put("next_trial", 10**15),
    "trials negative": put("next_trial", -3),
    "statuses of another number": cut("statuses"),
    "statuses negative": put("statuses", -1),
    "counters cut": cut("counters"),
    "seconds not finite": put("seconds", np.nan),
    "history empty": lambda h, a: a.update(history=np.zeros((0, 3))),
    "history of trials to come": put("history", 1e300),
    "history of two columns": lambda h, a: a.update(history=np.zeros((4, 2))),
    "no candidates": lambda h, a: a.update(
        {k: v[:0] for k, v in a.items() if k.startswith("board_") and v.ndim}
    ),
    "the identity alone": lambda h, a: a.update(
        {k: v[:1] for k, v in a.items() if k.startswith("board_") and v.ndim}
    ),
    "the identity missing": put("board_trial", 0),
    "a candidate of a trial to come": lambda h, a: a["board_trial"].put(-1, 10**6),
    "metrics of another size": lambda h, a: a.update(board_A=a["board_A"][:, :2, :2]),
    "metrics of integers": lambda h, a: a.update(board_A=a["board_A"].astype(np.int64)),
    "a metric missing": cut("board_A"),
    "a metric of NaN": put("board_A", np.nan),
    "a metric beyond all": put("board_scale", 1.7e308),
    "a scale missing": cut("board_scale"),
    "a cost of infinity": put("board_cost", np.inf),
    "a cost below nothing": put("board_cost", -1.0),
    "rates of single precision": lambda h, a: a.update(board_rate=a["board_rate"].astype(np.float32)),
    "levels beyond all": put("board_level", 99),
    "levels negative": put("board_level", -1),
    "levels below the first": put("board_level", 0),
    "masks cut": lambda h, a: a.update(board_masks0=a["board_masks0"][:, :5]),
    "masks of fewer candidates": cut("board_masks0"),
    "masks of a level missing": lambda h, a: a.pop("board_masks0"),
    "masks of other types": lambda h, a: a.update(board_masks0=a["board_masks0"].astype(np.int64)),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_damaged_checkpoints_are_refused(tmp_path, kind):
    path = tmp_path / "state.npz"
    options = {"max_trials": 8, "random_state": 0, "approximate_counting": True, "checkpoint": path}
    search(constraints(), **options)
    with open_archive(path, "checkpoint") as archive:
        header, arrays = archive.header, {name: archive.take(name) for name in archive.names}
    SPOILT[kind](header, arrays)
    write_archive(path, header, arrays)
    for random_state in (0, None):
        with pytest.raises(ModelFileError, match="checkpoint of"):
            search(constraints(), **{**options, "random_state": random_state})


def test_a_failed_write_keeps_the_file_before(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    _checkpoint.save(path, "a", 1, {"x": np.arange(3)})

    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", broken)
    with pytest.raises(OSError, match="disk full"):
        _checkpoint.save(path, "a", 2, {"x": np.arange(4)})
    header, arrays = _checkpoint.load(path)
    assert (header["fingerprint"], header["entropy"]) == ("a", 1)
    np.testing.assert_array_equal(arrays["x"], np.arange(3))
    assert os.listdir(tmp_path) == ["state.npz"]
    assert _checkpoint.load(tmp_path / "missing.npz") is None


def test_a_place_that_cannot_be_written_to_is_met_before_the_search(tmp_path, pairs_for_search):
    with pytest.raises(OSError, match="missing"):
        search(pairs_for_search, max_trials=5, random_state=0, checkpoint=tmp_path / "missing" / "state.npz")


def test_a_folder_that_vanishes_costs_the_checkpoint_and_not_the_search(tmp_path, pairs_for_search):
    folder = tmp_path / "kept"
    folder.mkdir()

    def vanish(progress):
        shutil.rmtree(folder, ignore_errors=True)

    with pytest.warns(CheckpointWarning, match="can no longer be written") as seen:
        result = search(
            pairs_for_search, max_trials=20, random_state=0, checkpoint=folder / "state.npz", callback=vanish
        )
    assert sum(issubclass(warning.category, CheckpointWarning) for warning in seen) == 1
    assert result.cost == search(pairs_for_search, max_trials=20, random_state=0).cost


@pytest.fixture
def pairs_for_search():
    X = np.random.default_rng(0).normal(size=(40, 2))
    return LabelledPairs.from_labels(X, X[:, 0] + 0.5 * X[:, 1] ** 2 > 0, bounds=(1.0, 1.0))
