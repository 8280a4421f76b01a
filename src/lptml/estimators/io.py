"""Model files: one .npz holding a JSON header and plain arrays. Nothing in a file is ever executed.

The header has the format's name and version, the estimator's class, its constructor parameters and its
fitted attributes; arrays are referred to by member name. The same model gives the same bytes.

:func:`load` trusts nothing. The archive itself is read by ``lptml._archive``, which see. Here,

- classes and parameters come from the table in ``lptml.estimators.model_classes``, which has the type of
  each; where a fit runs, what it calls, shows or writes is not in that table and never restored,
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

from lptml._archive import Archive, ModelFileError, open_archive, write_archive
from lptml._version import __version__
from lptml.estimators._inputs import check_preprocessor
from lptml.estimators.model_classes import (
    CLASSES,
    FITTED,
    PASSED_OVER,
    RETIRED,
    Kind,
    admits,
    find_class,
    in_words,
)
from lptml.maps import kind_of, map_with, restore_map, settings_of, state_of
from lptml.maps.votes import restore

FORMAT = "lptml-model"
SCHEMA_VERSION = 1

#: Parameters whose value may be an object of the process: left out, with a warning, where it is none of the
#: plain values in their domains.
TRANSIENT = frozenset({"preprocessor", "random_state"})

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
        "model": writer.estimator(estimator, fitted=True),
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
    lptml.estimators.io.ModelFileError: ... is not a model file, or a damaged one: it does not end like one
    """
    with open_archive(path, "model file") as archive:
        header = archive.header
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ModelFileError(f"{path} is not a model file: its header does not say {FORMAT!r}")
        if header.get("version") != SCHEMA_VERSION:
            raise ModelFileError(
                f"{path} has schema version {header.get('version')!r}, "
                f"this release of lptml ({__version__}) reads version {SCHEMA_VERSION}"
            )
        if set(header) != {"format", "version", "written_by", "model"}:
            raise ModelFileError(f"{path} has unknown entries in its header: {sorted(set(header))}")
        reader = _Reader(archive)
        estimator = reader.estimator(header["model"], fitted=True)
        if archive.names:
            raise ModelFileError(f"{path} holds arrays that nothing refers to: {sorted(archive.names)}")
    if reader.passed_over:
        warnings.warn(
            f"{path} names {', '.join(sorted(reader.passed_over))}, which a model file does not decide; "
            "the default values are used",
            UserWarning,
            stacklevel=2,
        )
    if reader.retired:
        warnings.warn(
            f"{path} was written by an earlier version: what it says of {', '.join(sorted(reader.retired))} "
            "has no meaning any more; a fit would use the default values",
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

    def estimator(self, estimator: Any, fitted: bool) -> dict[str, Any]:
        name = type(estimator).__name__
        if not admits((Kind.MODEL,), estimator):
            raise ValueError(f"only estimators of lptml can be saved, got {type(estimator).__qualname__}")
        state = {key: value for key, value in vars(estimator).items() if _ATTRIBUTE_NAME.fullmatch(key)}
        state.pop("preprocessor_", None)  # made anew from the parameter
        if "map_" in state:
            state["map_"] = state_of(estimator.map_)
        if getattr(estimator, "_suspicion", None) is not None:
            state["suspicion_"] = estimator.suspicion_
        if fitted and not state:
            raise ValueError(f"this {name} is not fitted: there is nothing to save")
        return {
            "class": name,
            "params": self.parameters(estimator, name),
            "fitted": {
                key: self.checked(value, key, FITTED.get(key)) for key, value in sorted(state.items())
            },
        }

    def parameters(self, estimator: Any, name: str) -> dict[str, Any]:
        domains, signature = CLASSES[name].parameters, inspect.signature(type(estimator)).parameters
        params = {}
        for key, value in sorted(estimator.get_params(deep=False).items()):
            domain = domains.get(key)
            if domain is not None and (key not in TRANSIENT or admits(domain, value)):
                params[key] = self.checked(value, key, domain)
            elif not _is_default(value, signature[key].default):
                self.omitted.add(key)
        return params

    def checked(self, value: Any, name: str, domain: tuple[Any, ...] | None) -> Any:
        if domain is not None and not admits(domain, value):
            raise _cannot_be_saved(name, f"a {type(value).__qualname__}, not {in_words(domain)}")
        if domain is not None and admits((Kind.MODEL,), value):
            return {_TAG: "estimator", "value": self.estimator(value, fitted=False)}
        return self.value(value, name)

    def value(self, value: Any, name: str) -> Any:
        match value:
            case None | bool() | int():
                return value
            case str():
                value.encode()  # a ValueError for halves of characters, which no file could be printed with
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
        if hasattr(value, "__array__"):
            return self.array(np.asarray(value), name)
        if kind_of(value) is not None:
            return {_TAG: "map", "value": settings_of(value)}
        raise _cannot_be_saved(name, f"a {type(value).__qualname__}, not plain data")

    def array(self, array: NDArray[Any], name: str) -> dict[str, Any]:
        if array.dtype.kind == "O" and array.ndim == 1:
            return self.objects(array, name)
        if array.dtype.kind not in "biufU":
            raise _cannot_be_saved(name, f"an array of {array.dtype}")
        member = f"a{len(self.arrays)}"
        self.arrays[member] = array
        return {_TAG: "array", "value": f"{member}.npy"}

    def objects(self, array: NDArray[Any], name: str) -> dict[str, Any]:
        """Objects such as labels: each distinct one is in the header once, and which is where in an array."""
        kinds = [(type(item), item) for item in array]  # 1, 1.0 and True are equal, but not the same
        try:
            distinct = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
        except TypeError:  # lists and the like
            return {_TAG: "objects", "value": [self.value(item, name) for item in array]}
        codes = np.array([distinct[kind] for kind in kinds], dtype=np.int64)
        values = [self.value(item, name) for _, item in distinct]
        return {_TAG: "coded", "value": [values, self.array(codes, name)]}


def _cannot_be_saved(name: str, what: str) -> ValueError:
    return ValueError(f"{name} cannot be saved: it is {what}")


@dataclass
class _Reader:
    """Turns JSON data and named arrays back into an estimator."""

    archive: Archive
    passed_over: set[str] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)

    def estimator(self, data: Any, fitted: bool) -> Any:
        if not isinstance(data, dict) or set(data) != {"class", "params", "fitted"}:
            raise ModelFileError(
                "the model in the header must have class, params and fitted, and nothing else"
            )
        name, params, state = data["class"], data["params"], data["fitted"]
        if not isinstance(name, str) or name not in CLASSES:
            raise ModelFileError(f"unknown class {name!r}: this release of lptml cannot load it")
        if not isinstance(params, dict) or not isinstance(state, dict):
            raise ModelFileError("params and fitted must be objects")
        cls = find_class(name)
        estimator = cls(**self.parameters(params, name))
        try:
            if hasattr(estimator, "_parameter_constraints"):  # else each fit checks its parameters itself
                estimator._validate_params()
        except ValueError as error:
            raise ModelFileError(f"a parameter is out of its domain: {error}") from error
        for key, value in state.items():
            settable = isinstance(getattr(cls, key, None), property) and key == "suspicion_"
            if (
                not _ATTRIBUTE_NAME.fullmatch(key)
                or key == "preprocessor_"
                or (hasattr(cls, key) and not settable)
            ):
                raise ModelFileError(f"{key!r} is not the name of a fitted attribute of {name}")
            setattr(estimator, key, self.checked(value, f"{key} of {name}", FITTED.get(key)))
        if fitted or state:
            _check_fitted(vars(estimator), name)
        if "map_" in state:
            estimator.map_ = _restored_map(vars(estimator))
        if "preprocessor" in vars(estimator):
            estimator.preprocessor_ = check_preprocessor(estimator.preprocessor)
        return estimator

    def parameters(self, params: dict[str, Any], name: str) -> dict[str, Any]:
        """The parameters that the table allows; others are passed over or refused, never restored."""
        domains, signature = CLASSES[name].parameters, inspect.signature(find_class(name)).parameters
        needed = {key for key, parameter in signature.items() if parameter.default is parameter.empty}
        if not needed <= set(params):
            raise ModelFileError(f"{name} in a file needs the parameters {sorted(needed)}")
        restored = {}
        for key, data in params.items():
            if key in RETIRED and admits(RETIRED[key], data):
                self.retired.add(key)
            elif key in domains:
                restored[key] = self.checked(data, f"{key} of {name}", domains[key])
            elif key not in PASSED_OVER:
                raise ModelFileError(f"{name} in a file has no parameter {key!r}")
            elif key not in signature or not _is_default(data, signature[key].default):
                self.passed_over.add(key)
        return restored

    def checked(self, data: Any, what: str, domain: tuple[Any, ...] | None) -> Any:
        """A value in its domain; only where this has estimators is there one."""
        nested = domain is not None and Kind.MODEL in domain
        if nested and isinstance(data, dict) and data.get(_TAG) == "estimator":
            return self.estimator(data.get("value"), fitted=False)
        value = self.value(data)
        if domain is not None and not admits(domain, value):
            raise ModelFileError(f"{what} must be {in_words(domain)}")
        return value

    def value(self, data: Any) -> Any:
        if isinstance(data, str):
            data.encode()  # a ValueError for halves of characters
        if data is None or isinstance(data, bool | int | str | float):
            return data
        if isinstance(data, list):
            return [self.value(item) for item in data]
        if not isinstance(data, dict) or set(data) != {_TAG, "value"}:
            raise ModelFileError("the header holds an object of unknown form")
        tag, content = data[_TAG], data["value"]
        if tag == "array" and isinstance(content, str):
            return self.archive.take(content.removesuffix(".npy"))
        if tag == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if tag == "map" and isinstance(content, dict):
            return _map_with(content)
        if tag in ("tuple", "dict", "objects", "coded") and isinstance(content, list):
            return self._container(tag, [self.value(item) for item in content])
        raise ModelFileError(f"the header holds a value of unknown form, {tag!r}")

    @staticmethod
    def _container(tag: str, items: list[Any]) -> Any:
        if tag == "tuple":
            return tuple(items)
        if tag == "objects":
            return _object_array(items)
        if tag == "coded":
            return _decoded(items)
        keys = [item[0] for item in items if isinstance(item, list) and len(item) == 2]
        if len(keys) != len(items) or not all(isinstance(key, str | int | float) for key in keys):
            raise ModelFileError("the header holds a dict of unknown form")
        return dict(items)


def _object_array(items: list[Any]) -> NDArray[Any]:
    objects = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):  # NumPy would take lists of one length for rows
        objects[place] = item
    return objects


def _decoded(items: list[Any]) -> NDArray[Any]:
    match items:
        case [list() as distinct, np.ndarray(dtype=np.dtype(kind="i"), ndim=1) as codes]:
            if codes.size == 0 or 0 <= codes.min() <= codes.max() < len(distinct):
                return _object_array(distinct)[codes]
    raise ModelFileError("the header holds coded objects of unknown form")


def _check_fitted(state: dict[str, Any], name: str) -> None:
    """Refuse fitted attributes that could not have come from a fit."""
    needs = CLASSES[name].needs
    if "map_" in state:
        needs = tuple("last_layer_" if key == "components_" else key for key in needs)
    missing = [key for key in needs if key not in state]
    if missing:
        raise ModelFileError(f"a fitted {name} has {', '.join(missing)}, which the file has not")
    d = state.get("n_features_in_")
    if "components_" in state:
        L = state["components_"]
        if not isinstance(L, np.ndarray) or L.dtype != np.float64 or L.ndim != 2 or 0 in L.shape:
            raise ModelFileError(f"components_ of {name} must be a matrix of float64")
        if L.shape[1] != d:
            raise ModelFileError(f"components_ has shape {L.shape}, which n_features_in_ = {d!r} contradicts")
        if not np.isfinite(L).all():
            raise ModelFileError("components_ holds NaN or infinity")
    if "feature_names_in_" in state and len(state["feature_names_in_"]) != d:
        raise ModelFileError(f"feature_names_in_ must have {d} names")
    if math.isnan(state.get("threshold_", 0.0)):
        raise ModelFileError("threshold_ must be a number")
    if "voters_" in state:
        _check_voters(state, name)
    if name == "CertifiedKNeighborsClassifier":
        points, codes, reference = state["points_"], state["codes_"], state["reference_"]
        tables = [points] if reference is None else [points, reference]
        if any(t.ndim != 2 or t.shape[1] != d or t.dtype != np.float64 or 0 in t.shape for t in tables):
            raise ModelFileError(f"points_ and reference_ must be matrices of float64 with {d!r} columns")
        if not all(np.isfinite(table).all() for table in tables):
            raise ModelFileError("points_ or reference_ holds NaN or infinity")
        numbers = np.arange(len(state["classes_"]))
        if codes.shape != points.shape[:1] or codes.dtype != np.int64 or set(codes) != set(numbers):
            raise ModelFileError(
                "codes_ must have the number of a class for each of points_, and every class"
            )


def _map_with(settings: dict[str, Any]) -> Any:
    """A map that is to be fitted: its settings are numbers, and nothing else in them is looked at."""
    try:
        return map_with(settings)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"a map in the header is none: {error}") from error


def _restored_map(state: dict[str, Any]) -> Any:
    """The map of a file, if it fits the features before it and the last layer after it."""
    last, d = state["last_layer_"], state["n_features_in_"]
    try:
        restored = restore_map(state["map_"])
        features = restored.transform(np.zeros((1, d)))
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"map_ is not a map of {d!r} features: {error}") from error
    if last.ndim != 2 or features.shape != (1, last.shape[1]) or not np.isfinite(last).all():
        raise ModelFileError("last_layer_ does not fit the features of map_")
    return restored


def _check_voters(state: dict[str, Any], name: str) -> None:
    """Refuse voters that do not fit the classes, the features and each other."""
    voters, classes = state["voters_"], state["classes_"]
    if len(voters) > 0 and not set(voters) == set(state["maps"]) == set(state["sharpness_"]):
        raise ModelFileError("voters_ and sharpness_ must be those of maps")
    for key, voter in voters.items():
        try:
            restore(voter, state["n_features_in_"], len(classes))
        except ValueError as error:
            raise ModelFileError(f"the voter {key!r} of {name} is not one: {error}") from error
    learners = {"linear": "components_" if state.get("metric_learner") is None else "metric_learner_"}
    for key, needed in (learners | {"relu": "relu_learner_"}).items():
        if key in voters and needed not in state:
            raise ModelFileError(f"a fitted {name} has {needed}, which the file has not")
