"""Files to try the reader of model files and checkpoints on: sound ones, and ways to spoil them."""

from __future__ import annotations

import functools
import io
import json
import struct
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

import lptml
from lptml.estimators.model_classes import CLASSES, find_class

FAST = {"max_trials": 3, "random_state": 0}


@functools.cache
def fitted(name):
    """A fitted estimator of every class that can be in a file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = np.where(X[:, 0] > 0, "up", "down")
    pairs = rng.normal(size=(24, 2, 3))
    similar = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    cls = find_class(name)
    if name == "LabelCleaner":
        return cls(lptml.LPTML_Supervised(**FAST)).fit(X, y)
    if name == "RCA":
        return cls().fit(X, np.arange(24) % 5)
    model = cls(**FAST) if "max_trials" in CLASSES[name].parameters else cls()
    if name == "LPTML_Triplets":
        return model.fit(rng.normal(size=(24, 3, 3)))
    if name == "LPTML_Quadruplets":
        return model.fit(rng.normal(size=(24, 4, 3)))
    if name in ("LPTML", "LPTMLCV", "ITML", "MMC"):
        return model.fit(pairs, similar)
    return model.fit(X, y)


@functools.cache
def sound(name):
    """The members of the file of such an estimator, by name."""
    with tempfile.TemporaryDirectory() as folder:
        return members(lptml.save(fitted(name), Path(folder, "model.npz")))


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, contents, compression=zipfile.ZIP_STORED):
    """Write members, to a path or an open file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in contents if isinstance(contents, list) else contents.items():
                archive.writestr(name, content)
    return path


def edited(contents, change):
    """The members with the header changed in place by a function."""
    header = json.loads(contents["header.json"])
    change(header)
    return {**contents, "header.json": json.dumps(header).encode()}


def npy(array, **kwargs):
    buffer = io.BytesIO()
    np.save(buffer, array, **kwargs)
    return buffer.getvalue()


def raw_npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode() + b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data
