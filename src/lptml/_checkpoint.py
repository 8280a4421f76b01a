"""State of a search in a file: arrays and JSON in one .npz, never pickle, replaced in one step."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml._files import replacing

_FORMAT = "lptml-search-1"
_HEADER = "header"


def save(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header (what JSON can hold) and arrays to ``path``, replacing what was there in one step."""
    text = json.dumps({"format": _FORMAT, **header}).encode()
    everything: dict[str, Any] = {_HEADER: np.frombuffer(text, dtype=np.uint8), **arrays}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **everything)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Header and arrays of a checkpoint, or None when there is no file.

    Raises
    ------
    ValueError
        When the file is something else.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop(_HEADER)).decode())
        if header.pop("format") != _FORMAT:
            raise KeyError("format")
    except FileNotFoundError:
        return None
    except (KeyError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{os.fspath(path)} is not a checkpoint of a search: {error}") from error
    return header, arrays


def check(header: Mapping[str, Any], fingerprint: str, path: object) -> None:
    """Refuse a checkpoint of other constraints or other options."""
    if header.get("fingerprint") != fingerprint:
        raise ValueError(
            f"{path} is a checkpoint of another search: constraints, random_state or options differ. "
            "Give the same ones to go on, or remove the file to start anew."
        )
