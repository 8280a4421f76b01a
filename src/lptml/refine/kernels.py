"""Compiled inner loops of the refinement: the smoothed cost (anneal.py) and the exact search along a line."""

from __future__ import annotations

import numpy as np

from lptml._jit import kernel
from lptml.constraints.checks import Floats, Ints
from lptml.constraints.ray import sort_along

_FLAT = 36.0  # a sigmoid this far out is 0 or 1 to double precision, and its slope nothing


@kernel
def smooth_rows(
    near: Floats,
    square: Floats,
    sign: Floats,
    bound: Floats,
    weight: Floats,
    temperature: float,
    pull: Floats,
    push: Floats,
) -> float:
    """The smoothed cost of explicit constraints, and its derivatives.

    ``square`` is |G v|^2 and ``near`` |G w|^2 (empty for pairs). On return ``pull`` holds the
    derivative of the cost by |G v|^2 and ``push`` that by |G w|^2.
    """
    loss = 0.0
    comparisons = near.shape[0] > 0
    for i in range(square.shape[0]):
        limit = bound[i]
        if comparisons:
            limit += near[i]
        edge = np.sqrt(limit)
        length = np.sqrt(square[i])
        z = sign[i] * (length - edge) / temperature
        slope = 0.0
        if z > _FLAT:
            loss += weight[i]
        elif z > -_FLAT:
            p = 1.0 / (1.0 + np.exp(-z))
            loss += weight[i] * p
            slope = weight[i] * sign[i] * p * (1.0 - p) / (2.0 * temperature)
        pull[i] = slope / max(length, 1e-9 * edge)
        if comparisons:
            push[i] = -slope / edge
    return loss


@kernel
def smooth_gram(
    K: Floats,
    code: Ints,
    point_weight: Floats,
    kind_weight: Floats,
    edge: Floats,
    temperature: float,
    total: Floats,
) -> float:
    """The smoothed cost of all pairs of m labelled points, from the Gram matrix K of their images.

    On return K holds minus the derivatives by the squared distances off the diagonal, and ``total`` their row
    sums, so that ``diag(total) + K`` is the Laplacian that gives the gradient. ``edge`` is (u, l) and
    ``kind_weight`` the weights of similar and dissimilar pairs.
    """
    m = K.shape[0]
    loss = 0.0
    square = np.empty(m)
    for i in range(m):
        square[i] = K[i, i]
        total[i] = 0.0
        K[i, i] = 0.0
    for i in range(m):
        for j in range(i):
            kind = 0 if code[i] == code[j] else 1
            sign = 1.0 - 2.0 * kind
            length = np.sqrt(max(0.0, square[i] + square[j] - 2.0 * K[i, j]))
            z = sign * (length - edge[kind]) / temperature
            slope = 0.0
            if z > -_FLAT:
                weight = kind_weight[kind] * point_weight[i] * point_weight[j]
                if z > _FLAT:
                    loss += weight
                else:
                    p = 1.0 / (1.0 + np.exp(-z))
                    loss += weight * p
                    slope = (
                        weight * sign * p * (1.0 - p) / (2.0 * temperature * max(length, 1e-9 * edge[kind]))
                    )
            K[i, j] = -slope
            K[j, i] = -slope
            total[i] += slope
            total[j] += slope
    return loss


@kernel
def sweep(
    value: Floats,
    slope: Floats,
    bend: Floats,
    sign: Floats,
    limit: Floats,
    weight: Floats,
    low: float,
    high: float,
    cap: float,
) -> tuple[float, float, float]:
    """The best stretch of a curve of metrics, exactly, for low < t < high.

    Constraint i has value_i + t slope_i + t^2 bend_i there (bend = 0 along A + t Delta; not along
    (G + t H)'(G + t H)), so it flips at one t, or two; sorting these gives the cost everywhere. Returns
    (cost, left, right): the widest of the cheapest stretches between consecutive flips. Only a stretch that
    costs less than ``cap`` is of interest: (cap, 0, 0) says that there is none.
    """
    n = value.shape[0]
    at = np.empty(2 * n)
    gain = np.empty(2 * n)
    count = 0
    cost = 0.0
    least = 0.0  # weight that is violated everywhere between low and high
    for i in range(n):
        a, b, c = bend[i], slope[i], value[i] - limit[i]
        violated = sign[i] * (c + low * (b + low * a)) > 0.0
        first, second, roots = 0.0, 0.0, 0
        if a == 0.0:
            if b != 0.0:
                first, roots = -c / b, 1
        else:
            discriminant = b * b - 4.0 * a * c
            if discriminant > 0.0:
                root = np.sqrt(discriminant)
                z = -0.5 * (b + root) if b > 0.0 else -0.5 * (b - root)
                first, second, roots = z / a, c / z, 2
                if first > second:
                    first, second = second, first
        moment = weight[i]
        if violated:
            cost += weight[i]
            moment = -weight[i]
        before = count
        if roots >= 1 and low < first < high:
            at[count] = first
            gain[count] = moment
            moment = -moment
            count += 1
        if roots == 2 and low < second < high:
            at[count] = second
            gain[count] = moment
            count += 1
        if violated and count == before:
            least += weight[i]
    if least >= cap:
        return cap, 0.0, 0.0
    sort_along(at, gain, count)
    best, left, right = cap, 0.0, 0.0
    start = low
    for k in range(count + 1):
        stop = high if k == count else at[k]
        if stop > start and (cost < best or (cost == best and best < cap and stop - start > right - left)):
            best, left, right = cost, start, stop
        if k < count:
            start = stop
            cost += gain[k]
    return best, left, right


@kernel
def inside(left: float, right: float) -> float:
    """A point between left and right, either of which may be as good as infinite."""
    if left < -1e100 and right > 1e100:
        return 0.0
    if right > 1e100:
        return left + 1.0 + abs(left)
    if left < -1e100:
        return right - 1.0 - abs(right)
    return 0.5 * (left + right)


@kernel
def _symmetric_functions(a: Floats) -> tuple[float, float, float]:
    """Trace, sum of principal 2 x 2 minors and determinant of the metric with coordinates a (d = 2, 3)."""
    if a.shape[0] == 3:
        return a[0] + a[2], a[0] * a[2] - a[1] * a[1], 0.0
    # coordinates (11, 12, 13, 22, 23, 33)
    m1 = a[3] * a[5] - a[4] * a[4]
    m2 = a[0] * a[5] - a[2] * a[2]
    m3 = a[0] * a[3] - a[1] * a[1]
    det = a[0] * m1 - a[1] * (a[1] * a[5] - a[4] * a[2]) + a[2] * (a[1] * a[4] - a[3] * a[2])
    return a[0] + a[3] + a[5], m1 + m2 + m3, det


@kernel
def _psd_stretch(a: Floats, delta: Floats) -> tuple[float, float]:
    """The t for which a + t delta is positive semidefinite: an interval, empty if left >= right.

    A symmetric matrix is semidefinite when the symmetric functions of its eigenvalues are not negative; along
    a line they are polynomials of degree 1, 2 and 3, found by interpolation. The roots cut the line into
    pieces, one run of which is the answer.
    """
    D = a.shape[0]
    ahead, behind = np.empty(D), np.empty(D)
    for k in range(D):
        ahead[k] = a[k] + delta[k]
        behind[k] = a[k] - delta[k]
    e0 = _symmetric_functions(a)
    ep = _symmetric_functions(ahead)
    em = _symmetric_functions(behind)
    ed = _symmetric_functions(delta)
    roots = np.empty(8)
    count = 0
    if ed[0] != 0.0:
        roots[count] = -e0[0] / ed[0]
        count += 1
    b, c = 0.5 * (ep[1] - em[1]), e0[1]
    count = _quadratic_roots(ed[1], b, c, roots, count)
    cubic = D == 6
    c3, c2, c1, c0 = ed[2], 0.5 * (ep[2] + em[2]) - e0[2], 0.5 * (ep[2] - em[2]) - ed[2], e0[2]
    if cubic:
        count = _cubic_roots(c3, c2, c1, c0, roots, count)
    for k in range(1, count):  # insertion sort of at most six numbers
        j = k
        while j > 0 and roots[j - 1] > roots[j]:
            roots[j - 1], roots[j] = roots[j], roots[j - 1]
            j -= 1
    left, right = 1.0, 0.0
    for k in range(count + 1):
        start = -1e200 if k == 0 else roots[k - 1]
        stop = 1e200 if k == count else roots[k]
        if stop <= start:
            continue
        t = inside(start, stop)
        semidefinite = e0[0] + t * ed[0] >= 0.0 and c + t * (b + t * ed[1]) >= 0.0
        if cubic:
            semidefinite = semidefinite and c0 + t * (c1 + t * (c2 + t * c3)) >= 0.0
        if semidefinite:
            if left > right:
                left = start
            right = stop
    return left, right


@kernel
def _quadratic_roots(a: float, b: float, c: float, roots: Floats, count: int) -> int:
    if a == 0.0:
        if b != 0.0:
            roots[count] = -c / b
            count += 1
        return count
    discriminant = b * b - 4.0 * a * c
    if discriminant > 0.0:
        root = np.sqrt(discriminant)
        z = -0.5 * (b + root) if b > 0.0 else -0.5 * (b - root)
        roots[count] = z / a
        roots[count + 1] = c / z
        count += 2
    return count


@kernel
def _cubic_roots(a: float, b: float, c: float, d: float, roots: Floats, count: int) -> int:
    """One root by bisection between the bounds of Cauchy, the others from the quotient."""
    largest = max(abs(b), abs(c), abs(d))
    if abs(a) <= 1e-12 * largest:
        return _quadratic_roots(b, c, d, roots, count)
    high = 1.0 + largest / abs(a)
    low = -high
    rising = a > 0.0
    for _ in range(200):
        t = 0.5 * (low + high)
        if t <= low or t >= high:
            break
        if (((a * t + b) * t + c) * t + d > 0.0) == rising:
            high = t
        else:
            low = t
    t = 0.5 * (low + high)
    roots[count] = t
    return _quadratic_roots(a, b + a * t, c + (b + a * t) * t, roots, count + 1)


@kernel
def enumerate_lines(
    C: Floats, sign: Floats, bound: Floats, limit: Floats, weight: Floats, cap: float
) -> Floats:
    """The cheapest metric on any line where D - 1 constraints are tight, for d = 2 and 3.

    C holds one constraint a row in coordinates of the metric (D = 3 or 6 columns), each of unit length;
    ``limit`` is the value beyond which it is violated.
    Returns those coordinates of the metric and the cost after them; the cost is ``cap`` if no line has a
    cheaper metric.
    """
    n, D = C.shape
    size = D - 1
    answer = np.zeros(D + 1)
    answer[D] = cap
    bend, value, slope = np.zeros(n), np.zeros(n), np.zeros(n)
    chosen = np.arange(size)
    a, delta, point = np.zeros(D), np.zeros(D), np.zeros(D)
    while True:
        low, high = 1.0, 0.0
        if _line(C, bound, chosen, a, delta):
            low, high = _psd_stretch(a, delta)
        if low < high:
            _products(C, a, value)
            _products(C, delta, slope)
            for k in range(size):
                value[chosen[k]] = bound[chosen[k]]
                slope[chosen[k]] = 0.0
            best, left, right = sweep(value, slope, bend, sign, limit, weight, low, high, answer[D])
            if best < answer[D]:
                t = inside(left, right)
                for k in range(D):
                    point[k] = a[k] + t * delta[k]
                _products(C, point, value)
                cost = 0.0  # counted again: rounding must not promise what does not hold
                for i in range(n):
                    if sign[i] * (value[i] - limit[i]) > 0.0:
                        cost += weight[i]
                if cost < answer[D]:
                    for k in range(D):
                        answer[k] = point[k]
                    answer[D] = cost
        k = size - 1  # the next combination in lexicographic order
        while k >= 0 and chosen[k] == n - size + k:
            k -= 1
        if k < 0:
            return answer
        chosen[k] += 1
        for m in range(k + 1, size):
            chosen[m] = chosen[m - 1] + 1


@kernel
def _products(C: Floats, a: Floats, out: Floats) -> None:
    for i in range(C.shape[0]):
        total = 0.0
        for k in range(C.shape[1]):
            total += C[i, k] * a[k]
        out[i] = total


@kernel
def _line(C: Floats, bound: Floats, chosen: Ints, a: Floats, delta: Floats) -> bool:
    """A point and the direction of the line where the chosen constraints are tight, by complete pivoting."""
    size = chosen.shape[0]
    D = size + 1
    M = np.empty((size, D + 1))
    for r in range(size):
        for j in range(D):
            M[r, j] = C[chosen[r], j]
        M[r, D] = bound[chosen[r]]
    column = np.arange(D)
    for r in range(size):
        pivot, at_row, at_column = 0.0, r, r
        for i in range(r, size):
            for j in range(r, D):
                if abs(M[i, j]) > pivot:
                    pivot, at_row, at_column = abs(M[i, j]), i, j
        if pivot < 1e-10:  # rows have unit length: the chosen constraints are dependent
            return False
        for j in range(D + 1):
            M[r, j], M[at_row, j] = M[at_row, j], M[r, j]
        for i in range(size):
            M[i, r], M[i, at_column] = M[i, at_column], M[i, r]
        column[r], column[at_column] = column[at_column], column[r]
        for i in range(size):
            if i != r:
                f = M[i, r] / M[r, r]
                for j in range(r, D + 1):
                    M[i, j] -= f * M[r, j]
    for r in range(size):
        a[column[r]] = M[r, D] / M[r, r]
        delta[column[r]] = -M[r, D - 1] / M[r, r]
    a[column[D - 1]] = 0.0
    delta[column[D - 1]] = 1.0
    return True
