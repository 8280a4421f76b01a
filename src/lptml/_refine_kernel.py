"""Compiled inner loops of the refinement: the smoothed cost and the exact search along a line.

The smoothed cost replaces the step "violated or not" of constraint i by a sigmoid of its margin measured in
distances, not in squared distances:

    z_i = sign_i (|G v_i| - sqrt(|G w_i|^2 + b_i)) / T,        cost_T(G) = sum_i weight_i / (1 + exp(-z_i)).

For a pair (w = 0) that is the distance minus u or l. With squared distances instead, the tight bound of a small
ratio u / l sees a temperature (l / u)^2 times lower than the loose one, and the annealing freezes in a
trivial metric: on Wine with u = 10th and l = 90th percentile that is the difference between .335 and .306.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lptml.constraints import Floats, Ints

_FLAT = 36.0  # a sigmoid this far out is 0 or 1 to double precision, and its slope nothing


@njit(cache=True, nogil=True, fastmath=False)
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

    ``square`` is |G v|^2 and ``near`` |G w|^2 (empty for pairs). On return ``pull`` holds the derivative of the
    cost by |G v|^2 and ``push`` that by |G w|^2.
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


@njit(cache=True, nogil=True, fastmath=False)
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
