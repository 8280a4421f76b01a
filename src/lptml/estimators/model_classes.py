"""What a model file may name: classes, the parameters of each that are restored, fitted attributes.

This table is the allow-list of ``lptml.estimators.io``. A parameter that is not in it is never restored,
whatever a file says: where a fit runs, with how many jobs, what it shows, calls or writes is for the
process that fits, not for the file. A test goes through every constructor parameter of every class.

A domain is a tuple of what a value may be:

- ``None``, ``bool``, ``int``, ``float`` (whole numbers count as well), or ``str`` for any text,
- a text, such as ``"auto"``: this text and no other,
- ``Several(...)``: a tuple or list of values of these domains, ``Mapped(keys, values)``: a dict,
- ``Kind.ARRAY``: an array of numbers, ``Kind.LIKE_ARRAY``: nested lists of them as well, ``Kind.LABELS``: an
  array of numbers or texts, ``Kind.SETTINGS``: one of values of a cross-validated parameter, which may be
  matrices, ``Kind.MODEL``: an estimator of this table, ``Kind.MAP``: a map of ``lptml.maps``, of which the
  file has the settings.

The class itself knows which numbers make sense, and is asked as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np

from lptml.maps import kind_of

#: Parameters that files of earlier versions name and that are passed over: how a fit runs, not what it
#: learns. What no version ever wrote is refused.
PASSED_OVER = frozenset({"engine", "n_jobs", "verbose"})

#: Values that files of earlier versions have and no parameter has any more: the default is taken instead.
RETIRED: Domains = {
    "constraints": ("auto",),
    "max_trials": ("auto",),
    "validation": (None, "auto", "neighbors"),
}

_LARGEST_INT = 1 << 63


class Kind(Enum):
    """Values that are more than one number or text."""

    ARRAY = "an array of numbers"
    LIKE_ARRAY = "an array or lists of numbers"
    LABELS = "an array of numbers or texts, one for each row"
    SETTINGS = "an array of numbers, texts or matrices, one for each setting"
    MODEL = "an estimator of lptml"
    MAP = "a map of lptml.maps"


@dataclass(frozen=True)
class Several:
    """A tuple or list whose items are all in one domain, and as many as ``count`` if it is given."""

    items: tuple[Any, ...]
    count: int | None = None


@dataclass(frozen=True)
class Mapped:
    """A dict whose keys and values are each in a domain."""

    keys: tuple[Any, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Class:
    """An estimator that can be in a file."""

    home: str
    """The module it lives in."""
    parameters: Domains
    """The domain of each parameter that is restored."""
    needs: tuple[str, ...] = ("components_", "n_features_in_")
    """What a fitted one has in any case."""


Domains = dict[str, tuple[Any, ...]]

_PREPROCESSOR: Domains = {"preprocessor": (None, Kind.LIKE_ARRAY)}
_RANDOM: Domains = {"random_state": (None, int)}
_RANK: Domains = {"n_components": (None, int)}
_DRAWN: Domains = {"n_constraints": (None, int)}
_ITERATED: Domains = {"max_iter": (int,), "tol": (float,)}

_MAPS = ("relu", "nystroem", "forest")
_ANY_MAP = ("linear", *_MAPS, Kind.MAP)
_KINDS = ("triplets", "neighbors", "all")
_OF_TUPLES = ("identity", "standardized", "within", Kind.LIKE_ARRAY)
_OF_LABELS = ("discriminant", *_OF_TUPLES)

_SEARCH: Domains = {
    "max_trials": (int,),
    "search_components": (None, int),
    "epsilon": (float,),
    "objective": ("trace", "random", "prior"),
    "time_limit": (None, float),
    **_RANDOM,
    **_PREPROCESSOR,
}
_MAP: Domains = {"map": _ANY_MAP}
_LPTML: Domains = {
    "refine": (bool,),
    "temperature": (float,),
    "prior": _OF_TUPLES,
    "shrinkage": (float,),
    "regularization": (float,),
    "regularizer": (None, Kind.LIKE_ARRAY),
    "approximate_counting": (bool, "auto"),
    **_RANK,
    **_SEARCH,
}
_PAIRS: Domains = {
    "bounds": ("auto", float, Several((float, "percentile"))),
    "class_weight": (None, "balanced", Mapped((float,), (float,))),
}
_GRID: Domains = {
    "shrinkages": (Kind.LIKE_ARRAY,),
    "temperatures": (Kind.LIKE_ARRAY,),
    "n_components": (None, int, Several((None, int))),
    "cv": (int,),
    "n_repeats": (int,),
}
_ITML: Domains = {
    "gamma": (float,),
    "prior": ("identity", "covariance", Kind.LIKE_ARRAY),
    **_ITERATED,
    **_RANDOM,
    **_PREPROCESSOR,
}
_MMC: Domains = {"diagonal": (bool,), "regularization": (float,), **_ITERATED, **_PREPROCESSOR}
_RCA: Domains = {"regularization": (float,), **_RANK, **_PREPROCESSOR}
_SUSPECTS: Domains = {"n_suspects": (int, "auto"), **_RANDOM}

CLASSES: dict[str, Class] = {
    "LPTML": Class("lptml.estimators", _LPTML | _PAIRS | _MAP),
    "LPTMLCV": Class("lptml.estimators", _SEARCH | _PAIRS | _GRID | {"priors": (Several(_OF_TUPLES),)}),
    "LPTML_Supervised": Class(
        "lptml.estimators",
        _LPTML | _PAIRS | _DRAWN | _MAP | {"constraints": _KINDS, "prior": _OF_LABELS},
    ),
    "LPTML_SupervisedCV": Class(
        "lptml.estimators",
        _SEARCH
        | _PAIRS
        | _DRAWN
        | _GRID
        | {
            "constraints": (*_KINDS, Several(_KINDS)),
            "maps": (Several(_ANY_MAP),),
            "priors": (Several(_OF_LABELS),),
            "n_neighbors": (int,),
        },
    ),
    "LPTML_Triplets": Class("lptml.estimators", _LPTML | _MAP),
    "LPTML_Quadruplets": Class("lptml.estimators", _LPTML),
    "CertifiedKNeighborsClassifier": Class(
        "lptml.estimators.certified",
        {"n_neighbors": (int, "auto"), "doubt": (float,)},
        needs=("classes_", "codes_", "n_features_in_", "points_", "reference_"),
    ),
    "LabelCleaner": Class(
        "lptml.estimators.label_cleaner",
        _SUSPECTS | {"estimator": (Kind.MODEL,), "action": ("drop", "correct")},
        needs=("estimator_",),
    ),
    "RobustKNeighborsClassifier": Class(
        "lptml.estimators.robust",
        _SUSPECTS
        | {
            "n_neighbors": (int, "auto"),
            "weights": ("gaussian", "uniform", "distance"),
            "maps": (Several((*_MAPS, "linear")),),
            "metric_learner": (None, Kind.MODEL),
        },
        needs=("beliefs_", "classes_", "n_features_in_", "sharpness_", "voters_"),
    ),
    "ITML": Class("lptml.baselines", _ITML),
    "ITML_Supervised": Class("lptml.baselines", _ITML | _DRAWN),
    "LFDA": Class(
        "lptml.baselines",
        {
            "n_neighbors": (int,),
            "embedding_type": ("weighted", "orthonormalized", "plain"),
            **_RANK,
            **_PREPROCESSOR,
        },
    ),
    "LMNN": Class(
        "lptml.baselines",
        {"n_neighbors": (int,), "regularization": (float,), **_RANK, **_ITERATED, **_PREPROCESSOR},
    ),
    "MCML": Class("lptml.baselines", _RANK | _ITERATED | _PREPROCESSOR),
    "MMC": Class("lptml.baselines", _MMC),
    "MMC_Supervised": Class("lptml.baselines", _MMC | _DRAWN | _RANDOM),
    "RCA": Class("lptml.baselines", _RCA),
    "RCA_Supervised": Class(
        "lptml.baselines", _RCA | _RANDOM | {"n_chunks": (None, int), "chunk_size": (int,)}
    ),
}

#: What a setting that was cross-validated may have for its parameters.
_SETTING = (Mapped((str,), (None, float, *_ANY_MAP, *_KINDS, *_OF_LABELS)),)

#: Domains of fitted attributes, by name whatever the class; those of other names are plain data of any kind.
FITTED: Domains = {
    **dict.fromkeys(
        ("beliefs_", "codes_", "components_", "dual_", "last_layer_", "points_", "support_", "suspects_"),
        (Kind.ARRAY,),
    ),
    **dict.fromkeys(("classes_", "feature_names_in_", "labels_"), (Kind.LABELS,)),
    **dict.fromkeys(("estimator_", "metric_learner_", "relu_learner_"), (Kind.MODEL,)),
    **dict.fromkeys(("best_score_", "gap_", "noise_rate_", "objective_"), (float,)),
    "suspicion_": (Kind.ARRAY,),
    **dict.fromkeys(("threshold_", "trivial_rate_", "violation_rate_"), (float,)),
    **dict.fromkeys(("best_index_", "n_features_in_", "n_infeasible_", "n_iter_"), (int,)),
    **dict.fromkeys(("n_trials_", "n_violations_"), (int,)),
    "best_params_": _SETTING,
    "reference_": (None, Kind.ARRAY),
    "bounds_": (None, Several((float,), 2)),
    "cv_results_": (Mapped((str,), (Kind.ARRAY, Kind.SETTINGS, Several(_SETTING))),),
    "lower_bound_": (None, float),
    "history_": (Several((Several((float,), 3),)),),
    **dict.fromkeys(("map_scores_", "sharpness_"), (Mapped((str,), (float,)),)),
    "n_neighbors_": (int, Mapped((str,), (int,))),
    "map_": (Mapped((str,), (Kind.ARRAY, "linear", *_MAPS)),),
    "voters_": (Mapped((str,), (Mapped((str,), (Kind.ARRAY, float, str)),)),),
    "preparation_": (Mapped((str,), (Several((str,)), Mapped((str,), (float, str, Several((str,)))))),),
    "status_": (str,),
}


def find_class(name: str) -> type[Any]:
    """The class of this name in the table."""
    found: type[Any] = getattr(import_module(CLASSES[name].home), name)
    return found


def admits(domain: tuple[Any, ...], value: Any) -> bool:
    """Whether a value is in a domain.

    Examples
    --------
    >>> admits((int, "auto"), 3), admits((int, "auto"), "auto"), admits((int, "auto"), "tcp://host")
    (True, True, False)
    >>> admits((None, float), 2), admits((None, float), True)
    (True, False)
    """
    return any(_admits_one(alternative, value) for alternative in domain)


def _admits_one(alternative: Any, value: Any) -> bool:
    match alternative:
        case None:
            return value is None
        case str():
            return isinstance(value, str) and value == alternative
        case Several(items, count):
            fits = isinstance(value, tuple | list) and count in (None, len(value))
            return fits and all(admits(items, item) for item in value)
        case Mapped(keys, values):
            return isinstance(value, dict) and all(
                admits(keys, key) and admits(values, item) for key, item in value.items()
            )
        case Kind.ARRAY:
            return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        case Kind.LIKE_ARRAY:
            return _is_numeric(value)
        case Kind.LABELS:
            labels = isinstance(value, np.ndarray) and value.ndim == 1
            return labels and (
                value.dtype.kind != "O" or admits((Several((None, bool, float, str)),), [*value])
            )
        case Kind.SETTINGS:
            listed = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "O"
            return listed and admits((Several((None, float, str, Kind.LIKE_ARRAY, Kind.MAP)),), [*value])
        case Kind.MODEL:
            name = type(value).__name__
            return name in CLASSES and type(value) is find_class(name)
        case Kind.MAP:
            return kind_of(value) is not None
    if alternative is bool:
        return isinstance(value, bool | np.bool_)
    if alternative is float and isinstance(value, float | np.floating):
        return True
    if alternative in (int, float):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return whole and abs(int(value)) < _LARGEST_INT
    return isinstance(value, alternative)


def _is_numeric(value: Any) -> bool:
    if hasattr(value, "__array__"):  # NumPy's own arrays, and data frames when a model is saved
        return np.asarray(value).dtype.kind in "biuf"
    return isinstance(value, list | tuple) and all(
        admits((bool, float), item) or _is_numeric(item) for item in value
    )


def in_words(domain: tuple[Any, ...]) -> str:
    """A domain for an error message.

    Examples
    --------
    >>> in_words((None, int, "auto"))
    "None, a whole number or 'auto'"
    """
    words = [_one_in_words(alternative) for alternative in domain]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _one_in_words(alternative: Any) -> str:
    match alternative:
        case None | str():
            return repr(alternative)
        case Kind():
            return str(alternative.value)
        case Several(items, count):
            return f"{count or 'several'} of {in_words(items)}"
        case Mapped(keys, values):
            return f"a dict from {in_words(keys)} to {in_words(values)}"
    return {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}[alternative]
