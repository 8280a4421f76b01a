"""Branch and bound over cells of metrics, compiled: the loop of ``lptml.proof.cells``, which explains it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lptml._jit import kernel
from lptml.constraints import Floats, Ints
from lptml.constraints.ray import sort_along
from lptml.exact.verify import RADIUS

#: What stands in a tree for a cell that is not cut; other numbers are the axis that a cell is cut along.
LEAF = -1
#: The same, for a cell too small to be cut again.
STUCK = -2

#: A side this small is not cut: the rounding of values would decide.
_SMALLEST = 2.0**-40

# Cells with more open constraints than this are too large for a guess at a good point in them.
_GUESSED = 64
_SWEEPS = 15

# A guess has to satisfy its constraints as they are counted, not just as bounds are proven.
_CLEAR = 4e-9


@kernel
def value_range(u: Floats, i: int, middle: Floats, half: Floats, slack: float) -> tuple[float, float]:
    """The least and the largest |G u_i|^2 over a cell of upper triangular matrices G.

    The rows of G have no entry in common, so the sum of their ranges is the range of the sum.
    """
    d = u.shape[1]
    low, high = 0.0, 0.0
    k = 0
    for r in range(d):
        centre, radius = 0.0, slack
        for c in range(r, d):
            centre += middle[k] * u[i, c]
            radius += half[k] * abs(u[i, c])
            k += 1
        centre = abs(centre)
        if centre > radius:
            low += (centre - radius) * (centre - radius)
        high += (centre + radius) * (centre + radius)
    return low * (1.0 - 1e-14), high * (1.0 + 1e-14)


@kernel
def cheapest_threshold(
    key: Floats, step: Floats, m: int, cost: float, first: float, last: float, target: float
) -> tuple[float, float, float, float, float]:
    """The least cost over thresholds t in [first, last], where it is, and where the cost is below a target.

    ``key`` ascends; ``cost`` is that before the first key. A negative step is an upper bound, which holds
    from its key on; a positive one is a lower bound, which holds up to its key.

    Returns
    -------
    cost, threshold, begin, end, outside : floats
        Outside of [begin, end], which is empty as (inf, -inf), the cost is at least ``outside``, which is at
        least the target.
    """
    least, where = np.inf, first
    begin, end, outside = np.inf, -np.inf, np.inf
    before = first
    z = 0
    while True:
        after = min(key[z], last) if z < m else last
        if z >= m or key[z] > before:  # between keys
            if cost < least:
                least = cost
                where = 0.5 * (before + after) if after < np.inf else 2.0 * before
            if cost < target:
                begin, end = min(begin, before), max(end, after)
            else:
                outside = min(outside, cost)
        if z >= m or key[z] > last:
            break
        here = key[z]
        stop = z
        while stop < m and key[stop] == here:
            cost += min(step[stop], 0.0)
            stop += 1
        if here >= first:  # at the key, where both kinds hold
            if cost < least:
                least, where = cost, here
            if cost < target:
                begin, end = min(begin, here), max(end, here)
            else:
                outside = min(outside, cost)
        while z < stop:
            cost += max(step[z], 0.0)
            z += 1
        before = max(before, here)
    return least, where, begin, end, outside


@kernel
def _value(u: Floats, i: int, x: Floats) -> float:
    d = u.shape[1]
    total = 0.0
    k = 0
    for r in range(d):
        entry = 0.0
        for c in range(r, d):
            entry += x[k] * u[i, c]
            k += 1
        total += entry * entry
    return total


@kernel
def _add_gradient(u: Floats, i: int, x: Floats, factor: float, out: Floats) -> None:
    """out += factor times the gradient of |G u_i|^2."""
    d = u.shape[1]
    k = 0
    for r in range(d):
        entry = 0.0
        for c in range(r, d):
            entry += x[k + c - r] * u[i, c]
        for c in range(r, d):
            out[k] += 2.0 * factor * entry * u[i, c]
            k += 1


@kernel
def _approach(
    U: Floats,
    W: Floats,
    sign: Floats,
    members: Ints,
    m: int,
    wanted: NDArray[np.bool_],
    middle: Floats,
    half: Floats,
    threshold: float,
    begin: float,
    end: float,
    x: Floats,
    gradient: Floats,
) -> None:
    """x <- a point of the cell near which the wanted constraints hold, by projections (Agmon, Motzkin)."""
    D = x.shape[0]
    t = threshold
    spread = 0.5 * (end - begin) if end < np.inf else t
    for k in range(D):
        x[k] = middle[k]
    for _ in range(_SWEEPS):
        moved = False
        for z in range(m):
            i = members[z]
            if not wanted[z]:
                continue
            value = _value(U, i, x)
            for k in range(D):
                gradient[k] = 0.0
            _add_gradient(U, i, x, 1.0, gradient)
            if W.shape[0] > 0:
                value -= _value(W, i, x)
                _add_gradient(W, i, x, -1.0, gradient)
            excess = sign[i] * (value - t) + 2.0 * _CLEAR * t
            if excess <= 0.0:
                continue
            size = spread * spread
            for k in range(D):
                size += gradient[k] * gradient[k] * half[k] * half[k]
            if size > 0.0:
                moved = True
                step = 1.3 * excess / size * sign[i]  # beyond the boundary, so that it ends inside
                for k in range(D):
                    moved_to = x[k] - step * gradient[k] * half[k] * half[k]
                    x[k] = min(middle[k] + half[k], max(middle[k] - half[k], moved_to))
                t = min(end, max(begin, t + step * spread * spread))
        if not moved:
            return


@kernel
def _grown(array: NDArray[np.generic], count: int) -> NDArray[np.generic]:
    """The array, or a longer one that begins like it, with room for ``count`` entries."""
    if count <= array.shape[0]:
        return array
    longer = np.empty(2 * count, dtype=array.dtype)
    longer[: array.shape[0]] = array
    return longer


@kernel
def explore(
    U: Floats,
    W: Floats,
    slack: Floats,
    sign: Floats,
    weight: Floats,
    boxes: Floats,
    known: Floats,
    target: float,
    work_limit: int,
    guess: bool,
) -> tuple[NDArray[np.int8], Floats, Floats, float, float]:
    """Cut cells until every part costs the target.

    Parameters
    ----------
    U, W : arrays of shape (n, d) and (n, d) or (0, d)
        Vectors in the coordinates of the cells, divided by the roots of their limits.
    slack : array of shape (n,)
        Bounds on the rounding of a row of G times u.
    sign, weight : arrays of shape (n,)
    boxes : array of shape (cells, 2, D)
        Least and largest entries of G, row by row.
    known : array of shape (cells,)
        What they are known to cost at least.
    target : float
        What cells have to cost; lowered when a metric is met that costs less.
    work_limit : int
        Ranges to compute before the cells that are left are returned as they are.
    guess : bool
        Whether to look for a cheap metric in small cells.

    Returns
    -------
    codes : array of int8
        The trees of all cells, each in preorder: the axis that a cell is cut along, LEAF or STUCK.
    bounds : array
        What each leaf costs at least.
    point, threshold, cost :
        G and t of the cheapest metric met, and its cost; the target if none was below it.
    """
    n, D = U.shape[0], boxes.shape[2]
    depth = boxes.shape[0] + D * 64
    cell = np.empty((depth, 2, D))
    inherited = np.zeros(depth)  # what the cell around it costs
    base = np.zeros(depth)  # weight that is violated throughout the cell
    window = np.empty((depth, 2))  # the thresholds at which the cell may be below the target
    beyond = np.full(depth, np.inf)  # what it costs at the others
    place = np.full((depth, 2), -1, dtype=np.int64)  # of its open constraints in ``members``; -1: all
    top = boxes.shape[0]
    for b in range(top):
        cell[top - 1 - b], inherited[top - 1 - b] = boxes[b], known[b]
        window[b, 0], window[b, 1] = 1.0 / RADIUS, np.inf
    members = np.empty(4 * n, dtype=np.int64)
    codes = np.empty(1024, dtype=np.int8)
    bounds = np.empty(512)
    n_codes, n_leaves = 0, 0
    key, step, low, high = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    wanted = np.empty(n, dtype=np.bool_)
    middle, half, x, gradient = np.empty(D), np.empty(D), np.empty(D), np.empty(D)
    influence = np.empty(D)
    best, best_x, best_t = target, np.zeros(D), 0.0
    work = 0
    while top > 0:
        top -= 1
        codes = _grown(codes, n_codes + 1)
        bounds = _grown(bounds, n_leaves + 1)
        if work >= work_limit:
            codes[n_codes], bounds[n_leaves] = LEAF, inherited[top]
            n_codes, n_leaves = n_codes + 1, n_leaves + 1
            continue
        everything = place[top, 0] < 0
        start = 0 if everything else place[top, 0]
        m = n if everything else place[top, 1] - start
        work += m
        sure = base[top]
        for k in range(D):
            middle[k] = 0.5 * (cell[top, 0, k] + cell[top, 1, k])
            half[k] = 0.5 * (cell[top, 1, k] - cell[top, 0, k])
        cost = sure
        for z in range(m):
            i = z if everything else members[start + z]
            low[z], high[z] = value_range(U, i, middle, half, slack[i])
            if W.shape[0] > 0:
                less, more = value_range(W, i, middle, half, slack[i])
                low[z], high[z] = low[z] - more, high[z] - less
            if sign[i] > 0.0:
                key[z], step[z] = low[z], -weight[i]
                cost += weight[i]
            else:
                key[z], step[z] = high[z], weight[i]
        sort_along(key, step, m)
        inside, threshold, begin, end, outside = cheapest_threshold(
            key, step, m, cost, window[top, 0], window[top, 1], target
        )
        outside = min(outside, beyond[top])
        bound = max(inherited[top], min(inside, outside))
        if inside >= target:
            codes[n_codes], bounds[n_leaves] = LEAF, bound
            n_codes, n_leaves = n_codes + 1, n_leaves + 1
            continue

        # What is decided in the cell, at every threshold that is left, is counted and not looked at again.
        members = _grown(members, start + 2 * m)
        count = 0
        for k in range(D):
            influence[k] = 0.0
        for z in range(m):
            i = z if everything else members[start + z]
            if sign[i] > 0.0:
                if low[z] > end:
                    sure += weight[i]
                    continue
                if high[z] <= begin:
                    continue
                wanted[count] = low[z] <= threshold
            else:
                if high[z] < begin:
                    sure += weight[i]
                    continue
                if low[z] >= end:
                    continue
                wanted[count] = high[z] >= threshold
            members[start + count] = i
            count += 1
            _add_influence(U, i, middle, half, weight[i], influence)
            if W.shape[0] > 0:
                _add_influence(W, i, middle, half, weight[i], influence)
        axis = 0
        for k in range(D):
            if influence[k] * half[k] > influence[axis] * half[axis]:
                axis = k

        small = 2.0 * half[axis] < _SMALLEST
        if guess and (count <= _GUESSED or small):
            chosen = members[start : start + count]
            _approach(U, W, sign, chosen, count, wanted, middle, half, threshold, begin, end, x, gradient)
            cost = sure
            for z in range(count):
                i = chosen[z]
                value = _value(U, i, x)
                if W.shape[0] > 0:
                    value -= _value(W, i, x)
                key[z] = value + sign[i] * _CLEAR * abs(value)
                step[z] = -sign[i] * weight[i]
                cost += max(sign[i], 0.0) * weight[i]
            sort_along(key, step, count)
            cost, threshold, _, _, _ = cheapest_threshold(key, step, count, cost, begin, end, target)
            if cost < best and threshold < np.inf:
                best, best_t = cost, threshold
                for k in range(D):
                    best_x[k] = x[k]
                target = min(target, best)
        if small:
            codes[n_codes], bounds[n_leaves] = STUCK, bound
            n_codes, n_leaves = n_codes + 1, n_leaves + 1
            continue

        codes[n_codes] = axis
        n_codes += 1
        # The upper half waits with the list; the lower half, which is next, takes a copy behind it.
        for z in range(count):
            members[start + count + z] = members[start + z]
        for k in range(D):
            cell[top + 1, 0, k], cell[top + 1, 1, k] = cell[top, 0, k], cell[top, 1, k]
        cell[top, 0, axis] = cell[top + 1, 1, axis] = middle[axis]
        for upper in range(2):
            where = top + upper
            inherited[where], base[where], beyond[where] = bound, sure, outside
            window[where, 0], window[where, 1] = begin, end
            place[where, 0], place[where, 1] = start + upper * count, start + (1 + upper) * count
        top += 2
    return codes[:n_codes].copy(), bounds[:n_leaves].copy(), best_x, best_t, best


@kernel
def _add_influence(u: Floats, i: int, middle: Floats, half: Floats, weight: float, out: Floats) -> None:
    """out += how much each entry of G can change |G u_i|^2, to first order."""
    d = u.shape[1]
    k = 0
    for r in range(d):
        reach = 0.0
        for c in range(r, d):
            reach += middle[k + c - r] * u[i, c]
        reach = abs(reach)
        for c in range(r, d):
            reach += half[k + c - r] * abs(u[i, c])
        for c in range(r, d):
            out[k] += weight * reach * abs(u[i, c])
            k += 1


@kernel
def boxes_of_leaves(roots: Floats, codes: NDArray[np.int8], chosen: NDArray[np.bool_]) -> Floats:
    """The boxes of the chosen leaves of a forest in preorder: (count, 2, D)."""
    D = roots.shape[2]
    depth = roots.shape[0] + D * 64
    cell = np.empty((depth, 2, D))
    top = roots.shape[0]
    for b in range(top):
        cell[top - 1 - b] = roots[b]
    out = np.empty((chosen.sum(), 2, D))
    leaf, count = 0, 0
    for code in codes:
        top -= 1
        if code < 0:
            if chosen[leaf]:
                out[count] = cell[top]
                count += 1
            leaf += 1
        else:
            cell[top + 1] = cell[top]
            cut = 0.5 * (cell[top, 0, code] + cell[top, 1, code])
            cell[top, 0, code] = cell[top + 1, 1, code] = cut
            top += 2
    return out
