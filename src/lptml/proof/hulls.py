"""Contradictions of one lower bound with upper bounds, compiled.

Under every metric the length of w = sum c_i v_i is at most the sum of |c_i| times those of the v_i. So a pair
that shall be at least 1 apart contradicts pairs that shall be at most 1 apart (lengths in units of the
bounds) if w is a combination of these with sum |c_i| < 1: if it lies inside the symmetric convex hull of the
v_i. As a Farkas certificate: w w' <= (sum |c_i|) sum |c_i| v_i v_i' by the inequality of Cauchy and Schwarz.

A linear program in d dimensions finds the combination, and a vertex of it has at most d terms: these
contradictions are small, whatever n is, and the smaller they are the more they prove. With prices p_i on the
upper bounds the program minimises sum (p_i + level) |c_i|; levels from high to low lead from the combination
that proves most to cheap ones. Every vertex of the way is at hand, as v and -v are both allowed: the simplex
method needs no first phase.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lptml._jit import kernel
from lptml.constraints import Floats, Ints

_PIVOTS = 500
_ZERO = 1e-9  # a coefficient below this is left out of a contradiction
_INSIDE = 1.0 - 1e-6  # how far inside the hull a point has to be


@kernel
def descend(U: Floats, cost: Floats, basis: Ints, inverse: Floats, c: Floats, duals: Floats) -> int:
    """The simplex method from a basis with coefficients c >= 0: least sum of cost times |c|; its pivots.

    ``inverse`` is that of the matrix with the rows of U in the basis, with their signs, as its columns.
    """
    n, d = U.shape
    for pivots in range(_PIVOTS):
        for j in range(d):
            duals[j] = 0.0
            for k in range(d):
                duals[j] += cost[basis[k]] * inverse[k, j]
        gain, entering, side = 1e-9, -1, 1.0
        for i in range(n):
            value = 0.0
            for j in range(d):
                value += duals[j] * U[i, j]
            if abs(value) - cost[i] > gain:
                gain, entering, side = abs(value) - cost[i], i, np.sign(value)
        if entering < 0:
            return pivots
        step, leaving = np.inf, -1
        for k in range(d):  # duals <- the entering column in terms of the basis
            duals[k] = 0.0
            for j in range(d):
                duals[k] += side * inverse[k, j] * U[entering, j]
            if duals[k] > 1e-10 and c[k] / duals[k] < step:
                step, leaving = c[k] / duals[k], k
        if leaving < 0:
            return pivots
        for j in range(d):
            inverse[leaving, j] /= duals[leaving]
        for k in range(d):
            if k != leaving:
                c[k] = max(0.0, c[k] - step * duals[k])
                for j in range(d):
                    inverse[k, j] -= duals[k] * inverse[leaving, j]
        c[leaving] = step
        basis[leaving] = entering
    return _PIVOTS


@kernel
def inside_hull(
    U: Floats,
    W: Floats,
    upper_price: Floats,
    lower_price: Floats,
    levels: Floats,
    first: Ints,
    first_inverse: Floats,
    most: float,
) -> tuple[Ints, Floats, NDArray[np.bool_]]:
    """Contradictions of rows of W with rows of U.

    Parameters
    ----------
    U, W : arrays of shape (n, d) and (m, d)
        Vectors of upper and of lower bounds, divided by the roots of the bounds.
    upper_price, lower_price : arrays of shape (n,) and (m,)
    levels : array
        What is added to the prices, falling.
    first, first_inverse : arrays of shape (d,) and (d, d)
        Rows of U to start from, and the inverse of the matrix with these columns.
    most : float
        Contradictions of a larger total price are left out.

    Returns
    -------
    members : array of shape (found, d + 1)
        The row of W, then those of U, -1 where there are fewer.
    multipliers : array of shape (found, d + 1)
    inside : array of shape (m,)
        Which rows of W are inside the hull at all.
    """
    d, m = U.shape[1], W.shape[0]
    members = np.full((m * levels.shape[0], d + 1), -1, dtype=np.int64)
    multipliers = np.zeros((m * levels.shape[0], d + 1))
    inside = np.zeros(m, dtype=np.bool_)
    basis, inverse = np.empty(d, dtype=np.int64), np.empty((d, d))
    c, duals, cost = np.empty(d), np.empty(d), np.empty(U.shape[0])
    found = 0
    for row in range(m):
        if lower_price[row] >= most:
            continue
        for k in range(d):
            c[k] = 0.0
            for j in range(d):
                c[k] += first_inverse[k, j] * W[row, j]
            side = 1.0 if c[k] >= 0.0 else -1.0
            c[k] = abs(c[k])
            basis[k] = first[k]
            for j in range(d):
                inverse[k, j] = side * first_inverse[k, j]
        for level in levels:
            for i in range(U.shape[0]):
                cost[i] = upper_price[i] + level
            descend(U, cost, basis, inverse, c, duals)
            length, price = 0.0, lower_price[row]
            for k in range(d):
                length += c[k]
                if c[k] > _ZERO:
                    price += upper_price[basis[k]]
            if length < _INSIDE:
                inside[row] = True
                if price < most:
                    members[found, 0], multipliers[found, 0] = row, 1.0
                    for k in range(d):
                        if c[k] > _ZERO:
                            members[found, k + 1], multipliers[found, k + 1] = basis[k], c[k] * length
                    found += 1
    return members[:found], multipliers[:found], inside
