"""The cost along the ray {c A : c >= 0}, compiled: its exact minimum, and counts at many scales.

The cost is a step function of c: upper bounds are broken one after another as c grows, lower bounds are met
one after another. Where each constraint flips is ``violation.flip``.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lptml._jit import kernel
from lptml.constraints import violation
from lptml.constraints.checks import Floats, Ints
from lptml.constraints.violation import Scaled

Number = TypeVar("Number", bound=np.generic)

_BINS = 1024
_WIDE = 1.0 + 0.1 * violation.TOLERANCE  # ratio of the ends of an interval whose middle is clear of both
_flip = kernel(violation.flip)
_is_violated = kernel(violation.is_violated)


def best_on_ray(
    values: Floats, sign: NDArray[np.int8], bound: Floats, weight: Floats, slope: float = 0.0
) -> Scaled:
    """The scale c that minimises the weight of violated sign * (c values - bound) <= 0, plus slope * c.

    Without a slope the scale lies in the middle of the widest best interval; with one it is the smallest that
    reaches the minimum. A = 0 wins ties. ``values``, an array of float64, is overwritten.
    """
    if not len(values):
        return Scaled(0.0, 0.0)
    return Scaled(*_best_on_ray(values, _fixed(sign), _fixed(bound), _fixed(weight), float(slope)))


def flip_places(
    values: Floats, sign: NDArray[np.int8], bound: Floats, weight: Floats, scales: Floats
) -> Floats:
    """Weights by kind and by the place of their flips among k ascending scales: (2, k + 1).

    What several blocks of constraints give is added up, and ``broken_from_places`` makes counts of it.
    """
    places = np.zeros((2, len(scales) + 1))
    _add_places(_fixed(values), _fixed(sign), _fixed(bound), _fixed(weight), _fixed(scales), places)
    return places


def broken_from_places(places: Floats) -> Floats:
    """Weights of upper (first row) and of lower bounds broken at each of k ascending scales: (2, k)."""
    return np.stack([np.cumsum(places[0])[:-1], np.cumsum(places[1, ::-1])[::-1][1:]])


def _fixed(array: NDArray[Number]) -> NDArray[Number]:
    """The array as compiled code takes it: contiguous, to be read only."""
    flags = array.flags
    if flags.writeable or not flags.c_contiguous:
        array = np.ascontiguousarray(array).view()
        array.flags.writeable = False
    return array


@kernel
def _add_places(
    values: Floats,
    sign: NDArray[np.int8],
    bound: Floats,
    weight: Floats,
    scales: Floats,
    places: Floats,
) -> None:
    k = scales.shape[0]
    for i in range(values.shape[0]):
        place = k
        if values[i] > 0.0:
            at = _flip(values[i], sign[i], bound[i])
            low, high = 0, k
            while low < high:
                middle = (low + high) // 2
                if scales[middle] <= at:
                    low = middle + 1
                else:
                    high = middle
            place = low
        places[0 if sign[i] > 0 else 1, place] += weight[i]


@kernel
def _best_on_ray(
    values: Floats, sign: NDArray[np.int8], bound: Floats, weight: Floats, slope: float
) -> tuple[float, float]:
    """Scale and cost, by bins of flips of which just the promising ones are sorted."""
    n = values.shape[0]
    flip = values
    # The bits of a positive float, read as a whole number, rise with it, about like its logarithm.
    bits = flip.view(np.int64)
    at_zero = 0.0
    exact = True  # sums of whole numbers are; those of products of weights leave rounding, also below zero
    first, last = 0, -1
    for i in range(n):
        exact = exact and weight[i] == math.floor(weight[i])
        if sign[i] < 0:
            at_zero += weight[i]
        flip[i] = _flip(flip[i], sign[i], bound[i]) if flip[i] > 0.0 else np.inf
        if 0.0 < flip[i] < np.inf:
            first = bits[i] if last < 0 else min(first, bits[i])
            last = max(last, bits[i])
    if last < 0:
        return 0.0, at_zero
    width = (last - first) // _BINS + 1
    place = np.empty(n, dtype=np.int64)
    bins = np.empty((5, _BINS))
    upper, lower = bins[0], bins[1]
    left = bins[2]  # the smallest flip of every bin
    before = bins[3]  # the cost just below the bin
    promising = bins[4]
    for b in range(_BINS):
        upper[b] = lower[b] = promising[b] = 0.0
        left[b] = np.inf
    for i in range(n):
        place[i] = -1
        if 0.0 < flip[i] < np.inf:
            b = (bits[i] - first) // width
            place[i] = b
            left[b] = min(left[b], flip[i])
            if sign[i] > 0:
                upper[b] += weight[i]
            else:
                lower[b] += weight[i]
    best = at_zero
    cost = at_zero
    for b in range(_BINS):
        cost += upper[b] - lower[b]
        if left[b] < np.inf and slope == 0.0:
            best = min(best, cost)
    cost = at_zero
    chosen = 0
    for b in range(_BINS):
        before[b] = cost
        if left[b] < np.inf and cost - lower[b] + slope * left[b] <= best:
            promising[b] = 1.0
        cost += upper[b] - lower[b]
    for i in range(n):
        if place[i] >= 0 and promising[place[i]] > 0.0:
            chosen += 1
    index = np.empty(chosen, dtype=np.int64)
    key = np.empty(chosen)
    k = 0
    for i in range(n):
        if place[i] >= 0 and promising[place[i]] > 0.0:
            index[k], key[k] = i, flip[i]
            k += 1
    sort_along(key, index, chosen)
    best, scale, ratio = at_zero, 0.0, np.inf  # A = 0 wins ties
    if slope > 0.0:
        ratio = 0.0
    cost = at_zero
    b = -1
    for k in range(chosen):
        i = index[k]
        if place[i] != b:
            b = place[i]
            cost = before[b]
        if sign[i] > 0:
            cost += weight[i]
        else:
            cost -= weight[i]
        low = flip[i]
        if slope > 0.0:
            if sign[i] < 0 and cost + slope * low < best:
                best, scale = cost + slope * low, low
            continue
        if cost > best:
            continue
        if k + 1 < chosen:
            high = key[k + 1]
            # Between bins that are not neighbours lie flips that were left out: no best interval is there.
            after = place[index[k + 1]]
            gap = False
            for c in range(b + 1, after):
                gap = gap or left[c] < np.inf
            if gap:
                continue
        else:
            high = np.inf
            for c in range(b + 1, _BINS):
                high = min(high, left[c])
        if high <= low:
            continue
        if cost < best or high / low > ratio:
            best, ratio = cost, high / low
            scale = 2.0 * low if high == np.inf else math.sqrt(low) * math.sqrt(high)
    if scale == 0.0 or (exact and ratio > _WIDE):
        return scale, best
    # Count as it will be counted again; the tolerance may be nearer than flips that are so close.
    cost = 0.0
    for i in range(n):
        value = _flip(flip[i], sign[i], bound[i])  # a flip's flip is the value again
        if _is_violated(scale * value, sign[i], bound[i]):
            cost += weight[i]
    return scale, cost + slope * scale


@kernel
def sort_along(key: Floats, other: Floats | Ints, count: int) -> None:
    """Sort the first entries of ``key``, and ``other`` along with it: Shell's method with Knuth's gaps.

    It compiles in a fraction of the time of ``np.argsort`` and is as fast on a few thousand entries.
    """
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, count):
            k, o = key[i], other[i]
            j = i
            while j >= gap and key[j - gap] > k:
                key[j], other[j] = key[j - gap], other[j - gap]
                j -= gap
            key[j], other[j] = k, o
        gap //= 3
