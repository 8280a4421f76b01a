"""The bounds (u, l): how near similar pairs must be, and how far apart dissimilar ones.

Scaling a metric scales both bounds, so only the ratio u / l decides which metrics are best. It may be given
as two distances, as a ratio, as percentiles of the training distances, or be left to the default.

The default is u = l: the cost is then the error of "similar if and only if closer than a threshold". Over the
data sets of docs/refinement.md ratios of 0.85 and 1 have the best held-out accuracy and AUC with and without
label noise taken together, within half a point of each other. The published experiments used u = 10th and
l = 90th percentile; the paper's text has them the other way round, and then nearly every metric satisfies
everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lptml.constraints.checks import check_bounds
from lptml.constraints.constraint_set import ConstraintSet, Floats

if TYPE_CHECKING:
    from lptml.constraints.labelled_pairs import LabelledPairs

#: u / l when ``bounds="auto"``.
DEFAULT_RATIO = 1.0
_SAMPLED_PAIRS = 200_000  # pairs whose distances stand for all of them
_BLOCK_BYTES = 1 << 26  # of the differences that are made at once


def resolve_bounds(bounds: Any, distances: Floats) -> tuple[float, float]:
    """Turn a way of stating the bounds into (u, l).

    Parameters
    ----------
    bounds : "auto", float, (u, l) or ("percentile", a, b)
        The default, the ratio u / l, two distances, or u at the a-th and l at the b-th percentile of the
        training distances. For "auto" and a ratio, l is the median training distance, so that the learned
        metric has the size of the one given.
    distances : array of shape (n,)
        Training distances, or a sample of them (``training_distances``).

    Returns
    -------
    (u, l) : floats

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints.bounds import resolve_bounds
    >>> distances = np.arange(1.0, 10.0)
    >>> resolve_bounds(("percentile", 10, 90), distances)
    (1.8, 8.2)
    >>> resolve_bounds(0.5, distances)
    (2.5, 5.0)
    >>> resolve_bounds("auto", distances)
    (5.0, 5.0)
    """
    positive = distances[distances > 0]
    typical = float(np.median(positive)) if len(positive) else 1.0
    if isinstance(bounds, str):
        if bounds != "auto":
            raise ValueError(
                f'bounds must be "auto", a ratio, (u, l) or ("percentile", a, b), got {bounds!r}'
            )
        return DEFAULT_RATIO * typical, typical
    if isinstance(bounds, int | float | np.integer | np.floating) and not isinstance(bounds, bool):
        if not 0 < bounds < np.inf:
            raise ValueError(f"bounds as a ratio u / l must be positive and finite, got {bounds!r}")
        return float(bounds) * typical, typical
    if isinstance(bounds, tuple | list) and len(bounds) == 3 and bounds[0] == "percentile":
        return _percentiles(bounds[1], bounds[2], distances, positive)
    return check_bounds(bounds)


def bounds_for(bounds: Any, source: ConstraintSet | LabelledPairs | Floats) -> tuple[float, float]:
    """(u, l) for constraints, whose distances are only measured where they matter."""
    stated = isinstance(bounds, tuple | list | np.ndarray) and len(bounds) == 2
    return check_bounds(bounds) if stated else resolve_bounds(bounds, training_distances(source))


def _percentiles(a: Any, b: Any, distances: Floats, positive: Floats) -> tuple[float, float]:
    try:
        a, b = float(a), float(b)
    except (TypeError, ValueError):
        raise ValueError(f"percentiles of bounds must be numbers, got {a!r} and {b!r}") from None
    if not (0 <= a <= 100 and 0 <= b <= 100):
        raise ValueError(f"percentiles of bounds must lie in 0..100, got {a} and {b}")
    if not len(positive):
        return 1.0, 1.0  # all training points coincide: any bounds will do
    u, l = np.percentile(distances, [a, b])
    smallest = float(positive.min())  # duplicates must not make a bound zero
    return max(float(u), smallest), max(float(l), smallest)


def training_distances(
    source: ConstraintSet | LabelledPairs | Floats, random_state: int | np.random.Generator | None = 0
) -> Floats:
    """The Euclidean distances that percentiles refer to.

    Parameters
    ----------
    source : ConstraintSet, LabelledPairs or array of shape (n, d)
        Pairs, labelled points, or bare difference vectors.
    random_state : int or Generator
        Of all pairs of labelled points 200,000 are drawn when there are more.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints.bounds import training_distances
    >>> training_distances(np.array([[3.0, 4.0], [0.0, 2.0]]))
    array([5., 2.])
    """
    if isinstance(source, ConstraintSet):
        V = source.V
    elif isinstance(source, np.ndarray):
        V = source
    else:
        if source.n > _SAMPLED_PAIRS:
            index = np.unique(np.random.default_rng(random_state).integers(source.n, size=_SAMPLED_PAIRS))
        else:
            index = np.arange(source.n)
        return _distances_between(source.X, *source.pairs(index))
    return np.sqrt(np.einsum("ij,ij->i", V, V))


def _distances_between(X: Floats, i: Any, j: Any) -> Floats:
    """Distances of rows i and j of X, in blocks so that no array of all differences is made."""
    out = np.empty(len(i))
    height = max(1, _BLOCK_BYTES // (8 * X.shape[1]))
    for start in range(0, len(i), height):
        rows = slice(start, start + height)
        V = X[i[rows]] - X[j[rows]]
        out[rows] = np.sqrt(np.einsum("ij,ij->i", V, V))
    return out
