"""State of a search in a file: arrays and JSON in one archive, replaced in one step, read with distrust.

The archive is that of model files (``lptml._archive``). What it holds is compared with the state of a search
that has just begun, which has the same names, types and shapes but for the number of candidates; then the
numbers are compared with each other. Only what a search could have written is restored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml._archive import ModelFileError, open_archive, write_archive

_FORMAT = "lptml-search-2"
_KIND = "checkpoint of a search"
_LEAST = {"board_trial": -1, "board_A": -np.inf, "board_rate": -np.inf, "history": -1}  # others: 0
_MOST = 1 << 59  # so that sums of a few counts do not overflow

Arrays = dict[str, NDArray[Any]]


def save(
    path: str | os.PathLike[str], fingerprint: str, entropy: int, arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write the state of a search to ``path``, replacing what was there in one step.

    Parameters
    ----------
    path : path
    fingerprint : str
        What must be the same for a search to go on from here.
    entropy : int
        The seed of its trials.
    arrays : dict of arrays
    """
    write_archive(path, {"format": _FORMAT, "fingerprint": fingerprint, "entropy": entropy}, arrays)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays] | None:
    """Header and arrays of a checkpoint, or None when there is no file.

    Raises
    ------
    ModelFileError
        When the file is something else, or damaged (a ValueError).
    """
    try:
        with open_archive(path, _KIND) as archive:
            header = archive.header
            if not isinstance(header, dict) or header.get("format") != _FORMAT:
                raise ValueError(f"its header does not say {_FORMAT!r}")
            entropy = header.get("entropy")
            if not isinstance(entropy, int) or isinstance(entropy, bool) or entropy < 0:
                raise ValueError("its seed is no whole number")
            return header, {name: archive.take(name) for name in sorted(archive.names)}
    except FileNotFoundError:
        return None


def check(
    saved: tuple[dict[str, Any], Arrays],
    fingerprint: str,
    like: Mapping[str, NDArray[Any]],
    path: str | os.PathLike[str],
) -> Arrays:
    """Return the arrays of a checkpoint that this search could have written.

    Parameters
    ----------
    saved : tuple
        From ``load``.
    fingerprint : str
        That of this search.
    like : dict of arrays
        The state of this search as it begins.
    path : path
        For messages.

    Raises
    ------
    ModelFileError
        When the checkpoint is of other constraints or options, or damaged (a ValueError).
    """
    header, arrays = saved
    if header.get("fingerprint") != fingerprint:
        raise ModelFileError(
            f"{os.fspath(path)} is a checkpoint of another search: constraints, random_state or options "
            "differ. Give the same ones to go on, or remove the file to start anew."
        )
    fault = _form(arrays, like) or _contradiction(arrays)
    if fault:
        raise ModelFileError(f"{os.fspath(path)} is a damaged {_KIND}: {fault}; remove it to start anew")
    return arrays


def _form(arrays: Arrays, like: Mapping[str, NDArray[Any]]) -> str:
    """What is wrong with names, types and shapes, if anything."""
    if set(arrays) != set(like):
        return "it holds other arrays than a search has"
    for name, array in arrays.items():
        grows = like[name].ndim > 0 and (name == "history" or name.startswith("board_"))
        shapes = [each.shape[1:] if grows else each.shape for each in (array, like[name])]
        if array.ndim != like[name].ndim or shapes[0] != shapes[1] or array.dtype != like[name].dtype:
            return f"{name} has shape {array.shape} of {array.dtype}"
        if not np.isfinite(array).all():
            return f"{name} holds NaN or infinity"
        if (array < _LEAST.get(name, 0)).any() or (array.dtype.kind == "i" and (array >= _MOST).any()):
            return f"{name} holds numbers out of their range"
    return ""


def _contradiction(arrays: Arrays) -> str:
    """Which numbers exclude each other, if any."""
    trials, levels = arrays["board_trial"], arrays["board_level"]  # (entries,), the identity first
    one_each = ("trial", "A", "scale", "cost", "rate", "level")
    if len({len(arrays[f"board_{name}"]) for name in one_each}) > 1 or len(trials) < 2 or trials[0] != -1:
        return "its candidates do not begin with the identity, or have not as many values each"
    depth = sum(name.startswith("board_masks") for name in arrays)
    if levels.min() < min(1, depth) or levels.max() > depth:
        return "its candidates were compared on constraints that there are not"
    if any(len(arrays[f"board_masks{k}"]) != (levels > k).sum() for k in range(depth)):
        return "its candidates were compared on other constraints than it says"
    with np.errstate(over="ignore"):
        metrics = arrays["board_scale"][:, None, None] * arrays["board_A"]  # (entries, d, d)
    if not np.isfinite(metrics).all():
        return "its metrics are beyond all numbers"
    latest = max(trials.max(), arrays["history"][:, 0].max(initial=-1.0))
    if arrays["statuses"].sum() != arrays["next_trial"] or latest >= arrays["next_trial"]:
        return "its numbers of trials contradict each other"
    if not len(arrays["history"]):
        return "its history is empty"
    return ""
