"""Model files: one .npz holding a JSON header and plain arrays. Nothing in a file is ever executed.

The header has the format's name and version, the estimator's class, its constructor parameters and its
fitted attributes; arrays are referred to by member name. The same model gives the same bytes.

:func:`load` trusts nothing. The archive itself is read by ``lptml._archive``, which see. Here,

- classes and parameters come from the table in ``lptml._model_classes``, which has the type of each; where a
  fit runs, what it calls, shows or writes is not in that table and never restored,
- fitted attributes must have the names of fitted attributes, and the metric must be finite and of the right
  shape,
- names are never used as paths or addresses.

Whatever else is found raises :class:`ModelFileError`.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml._archive import ModelFileError, member_name, read_archive, write_archive
from lptml._model_classes import CLASSES, PASSED_OVER, Kind, admits, find_class, in_words
from lptml._version import __version__

__all__ = ["FORMAT", "SCHEMA_VERSION", "ModelFileError", "load", "save"]

FORMAT = "lptml-model"
SCHEMA_VERSION = 1

#: Parameters whose value may be an object of the process: left out, with a warning, where it is none of the
#: plain values in their domains.
TRANSIENT = frozenset({"preprocessor", "random_state"})

MAX_DEPTH = 20
_ATTRIBUTE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_")
_TAG = "$"


def save(estimator: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted estimator to a file.

    Parameters
    ----------
    estimator : fitted estimator of this package
    path : path
        Where to write; ``.npz`` is the usual ending. An existing file is replaced at once or not at all.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from lptml import LPTML, load, save
    >>> pairs = np.array([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    >>> model = LPTML(max_trials=3, random_state=0).fit(pairs, [1, -1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, folder + "/model.npz"))
    >>> bool((again.components_ == model.components_).all())
    True
    """
    writer = _Writer()
    header = {
        "format": FORMAT,
        "version": SCHEMA_VERSION,
        "written_by": f"lptml {__version__}",
        "model": writer.estimator(estimator),
    }
    if writer.omitted:
        warnings.warn(
            f"not saved, because they belong to this process: {', '.join(sorted(writer.omitted))}; "
            "a loaded model has their default values",
            UserWarning,
            stacklevel=2,
        )
    target = Path(path)
    write_archive(target, header, writer.arrays)
    return target


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that :func:`save` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        Fitted, of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is anything but a sound model of a known version (a ValueError).
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from lptml import load
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     load(file.name)
    Traceback (most recent call last):
        ...
    lptml.io.ModelFileError: ... is not a sound model file: File is not a zip file
    """
    header, arrays = read_archive(Path(path))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a model file: its header does not say {FORMAT!r}")
    if header.get("version") != SCHEMA_VERSION:
        raise ModelFileError(
            f"{path} has schema version {header.get('version')!r}, "
            f"this release of lptml ({__version__}) reads version {SCHEMA_VERSION}"
        )
    if set(header) != {"format", "version", "written_by", "model"}:
        raise ModelFileError(f"{path} has unknown entries in its header: {sorted(set(header))}")
    reader = _Reader(arrays)
    estimator = reader.estimator(header["model"], 0)
    if reader.arrays:
        raise ModelFileError(f"{path} holds arrays that nothing refers to: {sorted(reader.arrays)}")
    if reader.passed_over:
        warnings.warn(
            f"{path} names {', '.join(sorted(reader.passed_over))}, which a model file does not decide; "
            "the default values are used",
            UserWarning,
            stacklevel=2,
        )
    return estimator


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, bool | int | str) and value == default)


@dataclass
class _Writer:
    """Turns an estimator into JSON data and named arrays."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    omitted: set[str] = field(default_factory=set)

    def estimator(self, estimator: Any, fitted_only: bool = True) -> dict[str, Any]:
        name = type(estimator).__name__
        if not admits((Kind.MODEL,), estimator):
            raise ValueError(f"only estimators of lptml can be saved, got {type(estimator).__qualname__}")
        fitted = {key: value for key, value in vars(estimator).items() if _ATTRIBUTE_NAME.fullmatch(key)}
        fitted.pop("preprocessor_", None)  # made anew from the parameter
        if getattr(estimator, "_suspicion", None) is not None:
            fitted["suspicion_"] = estimator.suspicion_
        if fitted_only and not fitted:
            raise ValueError(f"this {name} is not fitted: there is nothing to save")
        params = self.parameters(estimator, name)
        state = {key: self.value(value, key) for key, value in sorted(fitted.items())}
        return {"class": name, "params": params, "fitted": state}

    def parameters(self, estimator: Any, name: str) -> dict[str, Any]:
        domains, signature = CLASSES[name].parameters, inspect.signature(type(estimator)).parameters
        params = {}
        for key, value in sorted(estimator.get_params(deep=False).items()):
            if key in domains and admits(domains[key], value):
                params[key] = self.value(value, key)
            elif key in domains and key not in TRANSIENT:
                kind = type(value).__qualname__
                raise ValueError(f"{key} cannot be saved: it is a {kind}, not {in_words(domains[key])}")
            elif not _is_default(value, signature[key].default):
                self.omitted.add(key)
        return params

    def value(self, value: Any, name: str) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
            case np.generic():
                return self.value(value.item(), name)
            case np.ndarray():
                return self.array(value, name)
            case list():
                return [self.value(item, name) for item in value]
            case tuple():
                return {_TAG: "tuple", "value": [self.value(item, name) for item in value]}
            case dict():
                items = [[self.value(key, name), self.value(item, name)] for key, item in value.items()]
                return {_TAG: "dict", "value": items}
        if admits((Kind.MODEL,), value):
            return {_TAG: "estimator", "value": self.estimator(value, fitted_only=False)}
        if hasattr(value, "__array__"):
            return self.array(np.asarray(value), name)
        raise ValueError(f"{name} cannot be saved: it is a {type(value).__qualname__}, not plain data")

    def array(self, array: NDArray[Any], name: str) -> dict[str, Any]:
        if array.dtype.kind == "O" and array.ndim == 1:
            return {_TAG: "objects", "value": [self.value(item, name) for item in array]}
        if array.dtype.kind not in "biufU":
            raise ValueError(f"{name} cannot be saved: it is an array of {array.dtype}")
        member = member_name(len(self.arrays))
        self.arrays[member] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        return {_TAG: "array", "value": member}


@dataclass
class _Reader:
    """Turns JSON data and named arrays back into an estimator; each array may be referred to once."""

    arrays: dict[str, NDArray[Any]]
    passed_over: set[str] = field(default_factory=set)

    def estimator(self, data: Any, depth: int) -> Any:
        if not isinstance(data, dict) or set(data) != {"class", "params", "fitted"}:
            raise ModelFileError(
                "the model in the header must have class, params and fitted, and nothing else"
            )
        name, params, fitted = data["class"], data["params"], data["fitted"]
        if not isinstance(name, str) or name not in CLASSES:
            raise ModelFileError(f"unknown class {name!r}: this release of lptml cannot load it")
        if not isinstance(params, dict) or not isinstance(fitted, dict):
            raise ModelFileError("params and fitted must be objects")
        cls = find_class(name)
        estimator = cls(**self.parameters(params, name, depth))
        try:
            if hasattr(estimator, "_parameter_constraints"):  # else each fit checks its parameters itself
                estimator._validate_params()
        except ValueError as error:
            raise ModelFileError(f"a parameter is out of its domain: {error}") from error
        for key, value in fitted.items():
            settable = isinstance(getattr(cls, key, None), property) and key == "suspicion_"
            if (
                not _ATTRIBUTE_NAME.fullmatch(key)
                or key == "preprocessor_"
                or (hasattr(cls, key) and not settable)
            ):
                raise ModelFileError(f"{key!r} is not the name of a fitted attribute of {name}")
            setattr(estimator, key, self.value(value, depth + 1))
        _check_fitted(estimator, name)
        return estimator

    def parameters(self, params: dict[str, Any], name: str, depth: int) -> dict[str, Any]:
        """The parameters that the table allows; others are passed over or refused, never restored."""
        domains, signature = CLASSES[name].parameters, inspect.signature(find_class(name)).parameters
        needed = {key for key, parameter in signature.items() if parameter.default is parameter.empty}
        if not needed <= set(params):
            raise ModelFileError(f"{name} in a file needs the parameters {sorted(needed)}")
        restored = {}
        for key, data in params.items():
            if key in domains:
                restored[key] = self.value(data, depth + 1)
                if not admits(domains[key], restored[key]):
                    raise ModelFileError(f"{key} of {name} must be {in_words(domains[key])}")
            elif key not in PASSED_OVER:
                raise ModelFileError(f"{name} in a file has no parameter {key!r}")
            elif key not in signature or not _is_default(data, signature[key].default):
                self.passed_over.add(key)
        return restored

    def value(self, data: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ModelFileError("the header is nested too deeply")
        if data is None or isinstance(data, bool | int | str | float):
            return data
        if isinstance(data, list):
            return [self.value(item, depth + 1) for item in data]
        if not isinstance(data, dict) or set(data) != {_TAG, "value"}:
            raise ModelFileError("the header holds an object of unknown form")
        tag, content = data[_TAG], data["value"]
        if tag == "array" and isinstance(content, str) and content in self.arrays:
            return self.arrays.pop(content)
        if tag == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if tag == "estimator":
            return self.estimator(content, depth + 1)
        if tag in ("tuple", "dict", "objects") and isinstance(content, list):
            return self._container(tag, [self.value(item, depth + 1) for item in content])
        raise ModelFileError(f"the header holds a value of unknown form, {tag!r}")

    @staticmethod
    def _container(tag: str, items: list[Any]) -> Any:
        if tag == "tuple":
            return tuple(items)
        if tag == "objects":
            objects = np.empty(len(items), dtype=object)
            objects[:] = items
            return objects
        keys = [item[0] for item in items if isinstance(item, list) and len(item) == 2]
        if len(keys) != len(items) or not all(isinstance(key, str | int | float) for key in keys):
            raise ModelFileError("the header holds a dict of unknown form")
        return dict(items)


def _check_fitted(estimator: Any, name: str) -> None:
    """Refuse a metric or a threshold that could not have come from a fit."""
    from lptml.estimators._inputs import check_preprocessor

    state = vars(estimator)
    if "components_" in state:
        L, d = state["components_"], state.get("n_features_in_")
        if not isinstance(L, np.ndarray) or L.dtype != np.float64 or L.ndim != 2 or 0 in L.shape:
            raise ModelFileError(f"components_ of {name} must be a matrix of float64")
        if isinstance(d, bool) or not isinstance(d, int) or L.shape[1] != d:
            raise ModelFileError(f"components_ has shape {L.shape}, which n_features_in_ = {d!r} contradicts")
        if not np.isfinite(L).all():
            raise ModelFileError("components_ holds NaN or infinity")
        names = state.get("feature_names_in_")
        if names is not None and np.shape(names) != (d,):
            raise ModelFileError(f"feature_names_in_ must have {d} names")
    if "threshold_" in state and (
        not isinstance(state["threshold_"], float) or math.isnan(state["threshold_"])
    ):
        raise ModelFileError("threshold_ must be a number")
    if "preprocessor" in state:
        try:
            estimator.preprocessor_ = check_preprocessor(estimator.preprocessor)
        except ValueError as error:
            raise ModelFileError(f"the preprocessor is not an array of points: {error}") from error
