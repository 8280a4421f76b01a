"""What happens to constraints before they are learned from, and to their weights.

Equal constraints become one with the sum of their weights, in an order that depends on the data alone. So a
weight of two means what two copies mean, bit for bit, and neither duplicates nor the order of the input
change the result. Then they are brought to coordinates of the directions that the data span, and to features
and bounds of order one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import ConstraintSet
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.labelled_triplets import LabelledTriplets
from lptml.constraints.span import Span, span_of_tuples
from lptml.estimators._inputs import FloatArray

#: Constraints in memory, of any kind.
AnySource = ConstraintSet | LabelledPairs | LabelledTriplets


def one_direction(V: FloatArray) -> FloatArray:
    """Return difference vectors turned so that their first nonzero entry is positive: v and -v are alike.

    Examples
    --------
    >>> one_direction(np.array([[0.0, -1.0], [2.0, -3.0]]))
    array([[ 0.,  1.],
           [ 2., -3.]])
    """
    entry = V[np.arange(len(V)), (V != 0).argmax(axis=1)]
    return np.where(entry[:, None] < 0, -V, V) + 0.0  # + 0.0: no negative zeros


def merge_rows(
    rows: FloatArray, labels: NDArray[Any], weight: FloatArray | None
) -> tuple[NDArray[np.intp], FloatArray, NDArray[np.intp]]:
    """Group rows that are equal and have equal labels, in an order that the data alone determines.

    Rows of weight zero are left out.

    Parameters
    ----------
    rows : array (n, m)
    labels : array (n,) of numbers
    weight : array (n,) or None

    Returns
    -------
    first : array (k,)
        The number of the first row of each group.
    total : array (k,)
        The weight of each group.
    group : array (n,)
        The group of each row, -1 where its weight is zero.

    Examples
    --------
    >>> rows = np.array([[2.0], [1.0], [2.0], [2.0]])
    >>> first, total, group = merge_rows(rows, np.array([1, 1, 1, -1]), None)
    >>> total[group]
    array([2., 1., 2., 1.])
    """
    kept = np.arange(len(rows)) if weight is None else np.flatnonzero(weight > 0)
    w = np.ones(len(kept)) if weight is None else weight[kept]
    # One number for each row decides the order: a fixed generic combination, summed column by column so that
    # equal rows give equal sums whatever their place in memory.
    generic = np.random.default_rng(0).normal(size=rows.shape[1] + 1)
    key = generic[-1] * labels[kept]
    spread = np.abs(rows[kept]).max(axis=0, initial=0.0)
    for j, scale in enumerate(np.where(spread > 0, spread, 1.0)):
        key = key + generic[j] * (rows[kept, j] / scale)
    order = np.argsort(key, kind="stable")
    ordered = kept[order]
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = (rows[ordered[1:]] != rows[ordered[:-1]]).any(axis=1) | (
        labels[ordered[1:]] != labels[ordered[:-1]]
    )
    number = np.cumsum(new) - 1
    group = np.full(len(rows), -1, dtype=np.intp)
    group[ordered] = number
    return ordered[new], np.bincount(number, weights=w[order]).astype(np.float64), group


def kind_weights(
    class_weight: str | Mapping[int, float] | None, y: NDArray[np.int8], weight: FloatArray | None
) -> FloatArray | None:
    """Return the weights of pairs with ``class_weight`` applied to similar (+1) and dissimilar (-1) ones.

    Examples
    --------
    >>> kind_weights("balanced", np.array([1, -1, -1, -1], dtype=np.int8), None)
    array([2.        , 0.66666667, 0.66666667, 0.66666667])
    """
    if class_weight is None:
        return weight
    w = np.ones(len(y)) if weight is None else weight
    if class_weight == "balanced":
        totals = {kind: float(w[y == kind].sum()) for kind in (1, -1)}
        factors = {kind: w.sum() / (2 * total) for kind, total in totals.items()}
    else:
        assert not isinstance(class_weight, str)
        factors = _check_class_weight(class_weight)
    return w * np.where(y == 1, factors[1], factors[-1])


def _check_class_weight(class_weight: Mapping[Any, Any]) -> dict[int, float]:
    if set(class_weight) != {1, -1}:
        raise ValueError(f"class_weight must give weights for +1 and -1, got {class_weight!r}")
    factors = {int(kind): class_weight[kind] for kind in class_weight}
    for value in factors.values():
        if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
            raise ValueError(f"class_weight must hold positive finite numbers, got {class_weight!r}")
    return {kind: float(value) for kind, value in factors.items()}


def spanned(
    source: ConstraintSet, tuples: FloatArray, weight: FloatArray | None
) -> tuple[Span, ConstraintSet]:
    """Return the span of the constraints on tuples of points (n, size, d), and the constraints on it."""
    used = tuples if weight is None else tuples[weight > 0]
    span = span_of_tuples(used, *(part for part in (source.V, source.W) if part is not None))
    return span, on_span(source, span)


def on_span(constraints: ConstraintSet, span: Span) -> ConstraintSet:
    """Return the same constraints on coordinates of a span."""
    return constraints if span.inverse is None else constraints.mapped(span.coordinates)


def each_as_one(constraints: ConstraintSet | LabelledTriplets) -> ConstraintSet | LabelledTriplets:
    """Return the same constraints with a weight of one each."""
    if isinstance(constraints, LabelledTriplets):
        return replace(constraints, point_weight=None)
    return replace(constraints, weight=np.ones(constraints.n))


def comparisons(near: FloatArray, far: FloatArray, weight: FloatArray | None) -> ConstraintSet:
    """Return the constraints "the first vector is shorter than the second, by a margin of 1 in squares"."""
    origin = np.zeros_like(near)
    return ConstraintSet.from_quadruplets(np.stack([near, origin, far, origin], axis=1), weight=weight)


def in_unit_scale(source: AnySource) -> tuple[AnySource, float]:
    """Return the constraints with features and bounds of order one, and the factor that undoes it.

    Features are divided by a power of two and bounds by a power of four, so that nothing is rounded and data
    in other units give the same metric, bit for bit, in those units.

    Examples
    --------
    >>> pairs = ConstraintSet.from_differences([[3e60], [5e60]], [1, -1], bounds=(4e60, 4e60))
    >>> unit, factor = in_unit_scale(pairs)
    >>> unit.cost(np.array([[1.0]])), pairs.cost(np.array([[factor]]))
    (0.0, 0.0)
    """
    if isinstance(source, LabelledPairs):
        size = _power_of_two(np.abs(source.X).max(initial=0.0))
        bound = _power_of_two(max(source.bounds))
        u, l = source.bounds
        bounds = (u / bound, l / bound)
        return replace(source, X=source.X / size, bounds=bounds), (bound / size) ** 2
    if isinstance(source, LabelledTriplets):  # their margin is one
        size = _power_of_two(np.abs(source.X).max(initial=0.0))
        return replace(source, X=source.X / size), size**-2.0
    largest = max(np.abs(part).max(initial=0.0) for part in (source.V, source.W) if part is not None)
    size = _power_of_two(largest)
    bound = _power_of_two(np.sqrt(source.bound.max()))
    unit = source.mapped(lambda V: V / size)
    return replace(unit, bound=source.bound / bound**2), (bound / size) ** 2


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0
