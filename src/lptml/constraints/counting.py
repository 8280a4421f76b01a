"""What a candidate costs: its best scale, exact counts, and how few constraints decide that it loses.

Along the ray {c A : c >= 0} each constraint flips at one scale (``violation.flip``), so the cost is a step
function of c: upper bounds are broken one after another as c grows, lower bounds are met one after another.
``best_multiple`` finds its exact minimum for constraints held in memory in linear time; ``exact_multiple``
does the same where constraints can only be counted, by branch and bound over c: on an interval [a, b] the
cost is at least broken_upper(a) + broken_lower(b), so a few hundred scales in each pass close in on the
optimum in a few passes.

Approximate counting (Section 3 of the paper, "Approximate counting"; Maron and Moore, "Hoeffding races",
1994). Candidates are compared on growing random samples of the constraints, pair by pair on the same ones.
Where weights are equal, only constraints on which candidate and leader disagree matter. If the candidate
were no worse over all constraints, then of k disagreements in the sample a share x > 1/2 would be to its
disadvantage with probability at most

    exp(-k (x log 2x + (1-x) log 2(1-x)))                  (Chernoff; Hoeffding 1963, without replacement)

and it is abandoned when that is below delta. With weights or penalties, the differences
x_i = weight_i (violated by the candidate - violated by the leader), of range R and empirical variance s^2
over m of n constraints, have their mean within the smaller of

    R sqrt(f log(2/delta) / (2m)),   f = 1 - (m-1)/n       (Hoeffding; Serfling 1974, without replacement)
    s sqrt(2 log(3/delta) / m) + 3 R log(3/delta) / m      (empirical Bernstein; Audibert et al. 2007)

of that over all constraints, at confidence 1 - delta.

References
----------
O. Maron, A. W. Moore, "Hoeffding races", Advances in Neural Information Processing Systems 6, 1994.

W. Hoeffding, "Probability inequalities for sums of bounded random variables", Journal of the American
Statistical Association 58, 1963.

R. J. Serfling, "Probability inequalities for the sum in sampling without replacement", Annals of Statistics
2, 1974.

J.-Y. Audibert, R. Munos, C. Szepesvári, "Tuning bandit algorithms in stochastic environments", Algorithmic
Learning Theory, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lptml._dense import product
from lptml._jit import kernel
from lptml.constraints.constraint_set import ConstraintSet, Floats, Ints, Scaled
from lptml.constraints.ray import best_on_ray, broken_from_places, flip_places
from lptml.constraints.violation import excess, is_violated

#: Products of one block: so small that no allocator asks the system for their memory each time. (Workers of
#: Dask are told to give back whatever is larger.)
_BLOCK_BYTES = 100_000
_SCALES = 512  # scales in a pass of the branch and bound
_PASSES = 12


def best_multiple(constraints: ConstraintSet, A: Floats, slope: float = 0.0) -> Scaled:
    """The scale c that minimises cost(c A) + slope * c over constraints in memory.

    It is ``ConstraintSet.best_scale`` without the factor of A: what the search calls for every candidate.

    Parameters
    ----------
    constraints : ConstraintSet
    A : array of shape (d, d)
        A positive semidefinite matrix.
    slope : float
        eta * <R, A> for a regularised search.

    Returns
    -------
    Scaled
        Scale and cost, the penalty included. Without a slope the scale lies in the middle of the widest best
        interval; with one it is the smallest that reaches the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.constraints.counting import best_multiple
    >>> pairs = ConstraintSet.from_differences([[1.0], [4.0]], [+1, -1], bounds=(1.0, 3.0))
    >>> best_multiple(pairs, np.eye(1))
    Scaled(scale=0.7..., cost=0.0)
    >>> best_multiple(pairs, np.eye(1), slope=1.0)
    Scaled(scale=0.56..., cost=0.56...)
    """
    c = constraints
    return best_on_ray(_values(c, A), c.sign, c.bound, c.weight, slope)


def violations(constraints: ConstraintSet, A: Floats) -> NDArray[np.uint8]:
    """Which constraints A violates, one bit each."""
    return np.packbits(is_violated(_values(constraints, A), constraints.sign, constraints.bound))


def _values(constraints: ConstraintSet, A: Floats) -> Floats:
    """<C_i, A>, without the factor of A that gives ``ConstraintSet.values`` the digits of tiny values."""
    c, values, A = _contiguous(constraints), np.zeros(constraints.n), np.array(A, order="C")
    _add_squares(c.V, A, 1.0, values)
    if c.W is not None:
        _add_squares(c.W, A, -1.0, values)
    return values


def _contiguous(constraints: ConstraintSet) -> ConstraintSet:
    """The constraints in arrays that compiled code takes: not every third row of a larger one."""
    whole = constraints.V.flags.c_contiguous
    return constraints if whole else constraints.take(np.arange(constraints.n))


@kernel
def _add_squares(V: Floats, A: Floats, factor: float, values: Floats) -> None:
    """values_i += factor v_i'A v_i, in one call: steps of Python's only one thread at a time can take."""
    n, d = V.shape
    rows = min(max(64, _BLOCK_BYTES // (8 * d)), n)
    images = np.empty((rows, d))
    for start in range(0, n, max(rows, 1)):
        block = V[start : start + rows]
        product(block, A, images[: len(block)])
        for i in range(len(block)):
            total = 0.0
            for p in range(d):
                total += images[i, p] * block[i, p]
            values[start + i] += factor * total


def broken_weights(constraints: ConstraintSet, A: Floats, scales: Floats) -> Floats:
    """The weights of upper (first row) and of lower bounds that each multiple of A breaks: shape (2, k).

    A partitioned source sums this over its partitions.
    """
    order = np.argsort(scales)
    c, broken = constraints, np.empty((2, len(scales)))
    broken[:, order] = broken_from_places(flip_places(c.values(A), c.sign, c.bound, c.weight, scales[order]))
    return broken


def worst_rows(constraints: ConstraintSet, A: Floats, count: int) -> tuple[Ints, Floats]:
    """The ``count`` constraints that A violates most, and by how much relative to their bounds.

    Worst first, ties to the lower number; fewer when fewer are violated.
    """
    values = constraints.values(A)
    by = excess(values, constraints.sign, constraints.bound)
    rows = np.flatnonzero(is_violated(values, constraints.sign, constraints.bound))
    if len(rows) > count:
        least = np.partition(by[rows], len(rows) - count)[len(rows) - count]
        rows = rows[by[rows] >= least]
    rows = rows[np.argsort(-by[rows], kind="stable")][:count]
    return rows, by[rows]


def exact_multiple(
    count: Callable[[Floats], Floats], sample: ConstraintSet, A: Floats, at_zero: float, slope: float = 0.0
) -> Scaled:
    """The best multiple of A over constraints that can only be counted.

    Parameters
    ----------
    count : callable
        Scales (k,) -> the weights of broken upper and lower bounds (2, k), over all constraints.
    sample : ConstraintSet
        A sample of the constraints; its flips say where the scales of the first pass go.
    A : array of shape (d, d)
    at_zero : float
        The cost of A = 0.
    slope : float
        See ``best_multiple``.
    """
    scales = _first_scales(sample, A, slope)
    broken = np.empty((2, 0))
    known = np.empty(0)  # scales counted so far, ascending
    new = scales
    best = Scaled(0.0, at_zero)
    for _ in range(_PASSES):
        if not len(new):
            break
        broken = np.concatenate([broken, count(new)], axis=1)
        known = np.concatenate([known, new])
        order = np.argsort(known, kind="stable")
        known, broken = known[order], broken[:, order]
        cost = broken.sum(axis=0) + slope * known
        first = int(np.argmin(cost))
        if cost[first] < best.cost:
            best = Scaled(float(known[first]), float(cost[first]))
        # The cost between two neighbours is at least this:
        bound = broken[0, :-1] + broken[1, 1:] + slope * known[:-1]
        gap = known[1:] > known[:-1] * (1.0 + 1e-12)
        candidates = np.flatnonzero((bound < best.cost) & gap)
        if len(candidates) > _SCALES:
            candidates = np.sort(candidates[np.argsort(bound[candidates], kind="stable")[:_SCALES]])
        new = _subdivide(known, candidates)
    return best


def _first_scales(sample: ConstraintSet, A: Floats, slope: float) -> Floats:
    values = sample.values(A)
    with np.errstate(divide="ignore", over="ignore"):
        flip = sample.bound / np.maximum(values, 0.0)
    flip = np.sort(flip[np.isfinite(flip) & (flip > 0)])
    if not len(flip):  # the sample says nothing: look everywhere
        return 2.0 ** np.arange(-_SCALES, _SCALES + 1, 2.0)
    quantiles = flip[np.linspace(0, len(flip) - 1, min(len(flip), _SCALES)).astype(np.int64)]
    guess = best_multiple(sample, A, slope).scale
    # Beyond the sample's own flips there may be more, on either side.
    outside = [quantiles[0] * 2.0**-k for k in (1, 4, 16, 64)] + [
        quantiles[-1] * 2.0**k for k in (1, 4, 16, 64)
    ]
    scales = np.unique(np.concatenate([quantiles, outside, [guess] if guess > 0 else []]))
    return scales[np.isfinite(scales) & (scales > 0)]


def _subdivide(known: Floats, intervals: NDArray[np.int64]) -> Floats:
    """New scales inside the intervals (known[i], known[i+1]), evenly by ratio."""
    if not len(intervals):
        return np.empty(0)
    pieces = max(2, _SCALES // len(intervals) + 1)
    inner = np.arange(1, pieces) / pieces  # (pieces - 1,)
    low, high = known[intervals, None], known[intervals + 1, None]
    new = np.unique(low * (high / low) ** inner)
    return new[~np.isin(new, known)]


def cannot_beat(
    candidate: NDArray[np.uint8],
    leader: NDArray[np.uint8],
    weight: Floats,
    n: int,
    handicap: float,
    delta: float,
) -> bool:
    """Whether a candidate loses against the leader, at confidence 1 - delta.

    Parameters
    ----------
    candidate, leader : packed bits
        What each violates of the m constraints of a sample (see ``violations``).
    weight : array of shape (m,)
    n : int
        The number of all constraints.
    handicap : float
        The candidate's penalty minus the leader's, in a regularised search.
    delta : float
    """
    m = len(weight)
    worse = np.unpackbits(candidate & ~leader, count=m)
    better = np.unpackbits(leader & ~candidate, count=m)
    if handicap == 0.0 and weight.min() == weight.max():
        return sign_test(int(np.count_nonzero(worse)), int(np.count_nonzero(better)), m == n) < delta
    mean = float(worse @ weight - better @ weight) / m
    square = float((worse + better) @ (weight * weight)) / m
    radius = difference_radius(mean, square, 2.0 * float(weight.max()), m, n, delta)
    return n * (mean - radius) + handicap > 0.0


def sign_test(worse: int, better: int, everything: bool = False) -> float:
    """A bound on the chance of so many more ``worse`` than ``better``, were the candidate no worse in all."""
    disagree = worse + better
    if worse <= better:
        return 1.0
    if everything:
        return 0.0
    share = worse / disagree
    divergence = share * math.log(2.0 * share)
    if better:
        divergence += (1.0 - share) * math.log(2.0 * (1.0 - share))
    return math.exp(-disagree * divergence)


def difference_radius(mean: float, second_moment: float, width: float, m: int, n: int, delta: float) -> float:
    """How far the mean of m of n differences is from that of all n, at confidence 1 - delta.

    Parameters
    ----------
    mean, second_moment : float
        Of the m differences and of their squares.
    width : float
        The range of a difference: twice the largest weight.
    m, n : int
    delta : float
    """
    if m >= n:
        return 0.0
    hoeffding = width * math.sqrt((1.0 - (m - 1) / n) * math.log(4.0 / delta) / (2 * m))
    variance = max(0.0, second_moment - mean * mean)
    logarithm = math.log(6.0 / delta)
    bernstein = math.sqrt(2.0 * variance * logarithm / m) + 3.0 * width * logarithm / m
    return min(hoeffding, bernstein)
