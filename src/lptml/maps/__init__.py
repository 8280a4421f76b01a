"""Learned maps f(x) in place of Gx; over each of them the metric is learned as ever.

    points, labels or constraints ──> map f ──> features f(x) ──> metric over the features

With f fixed the last layer is a Mahalanobis metric: the search, the refinement, support and lower bounds
apply to it as they stand. A kind of map is a small class (:class:`Map`): it is fitted to an
:class:`Evidence`, transforms points, and gives its state as plain arrays.
"""

from dataclasses import fields
from typing import Any

from lptml.maps._evidence import Arrays, Evidence, Map, rows_of
from lptml.maps.forest import ForestMap
from lptml.maps.nystroem import NystroemMap
from lptml.maps.relu import ReluMap
from lptml.maps.transformer import TransformerMap

__all__ = [
    "KINDS",
    "Arrays",
    "Evidence",
    "ForestMap",
    "Map",
    "NystroemMap",
    "ReluMap",
    "TransformerMap",
    "kind_of",
    "map_with",
    "restore_map",
    "rows_of",
    "settings_of",
    "state_of",
]

#: Maps by the name that estimators know them by; "linear" is none.
KINDS: dict[str, type[ForestMap] | type[NystroemMap] | type[ReluMap]] = {
    "relu": ReluMap,
    "nystroem": NystroemMap,
    "forest": ForestMap,
}


def kind_of(mapping: Any) -> str | None:
    """The name of a map's kind; None where it is none of these, nor of a class derived from them."""
    return next((name for name, kind in KINDS.items() if type(mapping) is kind), None)


def settings_of(mapping: Any) -> dict[str, Any]:
    """The name of a map's kind and what its constructor was given: all of it that needs no fit.

    Examples
    --------
    >>> settings_of(ReluMap(width=16))
    {'kind': 'relu', 'width': 16, 'seed': 0}
    >>> map_with(settings_of(ReluMap(width=16)))
    ReluMap(width=16, seed=0)
    """
    given = {field.name: int(getattr(mapping, field.name)) for field in fields(mapping) if field.init}
    return {"kind": kind_of(mapping), **given}


def map_with(settings: dict[str, Any]) -> Map:
    """The map of such settings, to be fitted; ValueError where there is none."""
    kind = KINDS.get(settings.get("kind", ""))
    names = set() if kind is None else {field.name for field in fields(kind) if field.init}
    if kind is None or set(settings) != {"kind", *names}:
        raise ValueError(f"there is no map with the settings {', '.join(sorted(settings))}")
    made: Map = kind(**{name: settings[name] for name in names})
    return made


def state_of(mapping: Map) -> dict[str, Any]:
    """What a model file holds of a map: the name of its kind, and arrays."""
    arrays = mapping.arrays()
    if (kind := kind_of(mapping)) is None:
        raise ValueError(f"map cannot be saved: {type(mapping).__name__} is no kind that a model file knows")
    return {"kind": kind, **arrays}


def restore_map(state: dict[str, Any]) -> Map:
    """The map of such a state; ValueError where it is none.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> f = NystroemMap().fit(Evidence.of_points(X))
    >>> bool((restore_map(state_of(f)).transform(X) == f.transform(X)).all())
    True
    """
    if state.get("kind") not in KINDS:
        raise ValueError(f"there is no map of the kind {state.get('kind')!r}")
    restored: Map = KINDS[state["kind"]].restore({k: v for k, v in state.items() if k != "kind"})
    return restored
