"""Learned maps f(x) in place of Gx; over each of them the metric is learned as ever.

    points, labels or constraints ──> map f ──> features f(x) ──> metric over the features

With f fixed the last layer is a Mahalanobis metric: the search, the refinement, support and lower bounds
apply to it as they stand. A kind of map is a small class (:class:`Map`): it is fitted to an
:class:`Evidence`, transforms points, and gives its state as plain arrays.
"""

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
    "restore_map",
    "rows_of",
    "state_of",
]

#: Maps by the name that estimators know them by; "linear" is none.
KINDS: dict[str, type[ForestMap] | type[NystroemMap] | type[ReluMap]] = {
    "relu": ReluMap,
    "nystroem": NystroemMap,
    "forest": ForestMap,
}


def state_of(mapping: Map) -> dict[str, Any]:
    """What a model file holds of a map: the name of its kind, and arrays."""
    arrays = mapping.arrays()
    for name, kind in KINDS.items():
        if type(mapping) is kind:
            return {"kind": name, **arrays}
    raise ValueError(f"map cannot be saved: {type(mapping).__name__} is no kind that a model file knows")


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
