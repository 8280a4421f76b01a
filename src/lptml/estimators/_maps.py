"""Estimators with a map that is not linear: first the map, then the same estimator on its features.

    points ──> map f ──> f(x) ──> the same learner with map="linear" ──> last layer L,   x -> L f(x)

What the learner reports (violations, bounds, support, history) is about the metric of the features.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lptml.constraints.from_labels import constraints_from_labels
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.span import span_of_points
from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.estimators._labelled import Labelled, trust_in
from lptml.estimators._lptml import seed
from lptml.maps import KINDS, Evidence, Map, TransformerMap, rows_of
from lptml.points.priors import make_prior, standardised

#: Triplets of labelled points that a map is trained on, at most.
TRIPLETS = 20_000
_OF_INPUT = ("classes_", "components_", "feature_names_in_", "n_features_in_", "preprocessor_")


def is_linear(chosen: Any) -> bool:
    """Whether there is nothing to learn before the metric."""
    return isinstance(chosen, str) and chosen == "linear"


def check_map(chosen: Any, name: str = "map") -> None:
    """ValueError unless this is a map."""
    known = is_linear(chosen) or (isinstance(chosen, str) and chosen in KINDS)
    if not known and (isinstance(chosen, str | type) or not hasattr(chosen, "transform")):
        names = ", ".join(repr(kind) for kind in ("linear", *KINDS))
        raise ValueError(f"{name} must be {names}, a map of lptml.maps or a transformer; got {chosen!r}")


def _make(chosen: Any, number: int) -> Map:
    """A map to be fitted, whatever the user gave."""
    check_map(chosen)
    if isinstance(chosen, str):
        return KINDS[chosen](seed=number)
    if hasattr(chosen, "restore"):
        fresh: Map = copy.deepcopy(chosen)
        return fresh
    return TransformerMap(clone(chosen))


def _plain(model: Any) -> Any:
    """The same estimator for features."""
    params = model.get_params(deep=False) | {"map": "linear", "preprocessor": None}
    params["random_state"] = seed(model.random_state)
    if model.time_limit is not None:  # what the map has left of it
        params["time_limit"] = max(1e-3, model._began + model.time_limit - time.monotonic())
    return type(model)(**params)


def settle(model: Any, mapping: Map, last: FloatArray) -> None:
    """Give an estimator its map and last layer in place of ``components_``."""
    model.__dict__.pop("components_", None)
    model.map_, model.last_layer_ = mapping, last


def _adopt(model: Any, inner: Any, mapping: Map) -> None:
    """Take what was learned on the features."""
    for name, value in vars(inner).items():
        if name in ("_training", "_suspicion") or (name.endswith("_") and name not in _OF_INPUT):
            setattr(model, name, value)
    settle(model, mapping, inner.components_)


def _refuse(initial_metric: Any) -> None:
    if initial_metric is not None:
        raise ValueError('initial_metric is a metric of the given features: it needs map="linear"')


def _from_tuples(model: Any, points: FloatArray, sign: NDArray[Any], weight: FloatArray | None) -> Map:
    X, rows = rows_of(points)
    w = np.ones(len(rows)) if weight is None else weight
    kept = w > 0
    ones = np.ones(int(kept.sum()))
    told = Evidence(X, standardised(X), rows[kept], np.asarray(sign)[kept], ones, w[kept])
    return _make(model.map, seed(model.random_state)).fit(told)


def _features(mapping: Map, points: FloatArray) -> FloatArray:
    n, size, d = points.shape
    return mapping.transform(points.reshape(-1, d)).reshape(n, size, -1)


def fit_pairs(
    model: Any,
    pairs: Any,
    y: Any,
    calibration_params: Mapping[str, Any] | None,
    sample_weight: Any,
    initial_metric: Any,
) -> None:
    """Fit a learner from pairs through a map."""
    _refuse(initial_metric)
    model._check_calibration_params(calibration_params)
    points, labels = model._start_pairs(pairs, y)
    weight = _inputs.check_weight(sample_weight, len(points))
    mapping = _from_tuples(model, points, labels, weight)
    inner = _plain(model)
    start = mapping.metric
    inner.fit(
        _features(mapping, points), labels, calibration_params, sample_weight=weight, initial_metric=start
    )
    _adopt(model, inner, mapping)


def fit_triplets(model: Any, triplets: Any, y: Any, sample_weight: Any, initial_metric: Any) -> None:
    """Fit a learner from triplets through a map."""
    _refuse(initial_metric)
    points = model._start_tuples(triplets)
    weight = _inputs.check_weight(sample_weight, len(points))
    ordered = points
    if y is not None:
        reverse = _inputs.check_pair_labels(y, len(points)) == -1
        ordered = points.copy()
        ordered[reverse, 1:] = ordered[reverse, :0:-1]
    mapping = _from_tuples(model, ordered, -np.ones(len(points), dtype=np.int8), weight)
    inner = _plain(model)
    inner.fit(_features(mapping, points), y, sample_weight=weight, initial_metric=mapping.metric)
    _adopt(model, inner, mapping)


def map_of(chosen: Any, data: Labelled, number: int) -> Map:
    """The map learned from labelled points and the trust in them."""
    trust = trust_in(data) if data.trust is None else data.trust
    trust = trust if data.total is None else trust * data.total
    L = make_prior("discriminant", data.X, data.y, trust)
    pairs = LabelledPairs.from_labels(data.X, data.y, bounds=(1.0, 1.0), point_weight=trust)
    picked = constraints_from_labels("triplets", pairs, TRIPLETS, np.random.default_rng(number), L)
    told = Evidence.of_points(data.features, data.span.map_outside(L), labels=data.y, trust=trust)
    if picked.source.n:
        tuples = picked.points(np.arange(picked.source.n))
        weight = trust[tuples].prod(axis=1)
        sign = -np.ones(len(tuples), dtype=np.int8)
        told = replace(told, tuples=tuples, sign=sign, bound=np.ones(len(tuples)), weight=weight)
    return _make(chosen, number).fit(told)


def _of_each(mapping: Map, data: Labelled) -> FloatArray:
    """The features of all given points; equal points have equal ones, to the last bit."""
    features = mapping.transform(data.given)
    features[data.known] = mapping.transform(data.features)[data.place[data.known]]
    return features


def through(data: Labelled, mapping: Map) -> Labelled:
    """The same labelled points with the features of a map."""
    given = _of_each(mapping, data)
    span = span_of_points(given[data.rows])
    return replace(data, given=given, points=span.coordinates(given), span=span)


def fit_supervised(model: Any, X: Any, y: Any, sample_weight: Any, trust: Any, initial_metric: Any) -> None:
    """Fit a learner from labelled points through a map."""
    _refuse(initial_metric)
    data: Labelled = model._labelled(X, y, sample_weight, trust, [model.constraints])
    mapping = map_of(model.map, data, seed(model.random_state))
    inner = _plain(model)
    start = mapping.metric
    told = None if data.trust is None else np.where(data.place >= 0, data.trust[data.place], 1.0)
    features = _of_each(mapping, data)
    inner.fit(features, data.codes, sample_weight=data.weight, trust=told, initial_metric=start)
    _adopt(model, inner, mapping)
    model._judged(data)
