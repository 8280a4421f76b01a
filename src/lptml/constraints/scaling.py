"""Metrics in other units: features of unit size, a smaller rank, a step towards a prior.

Interior-point methods lose their way when features span many orders of magnitude (they report false
infeasibility already at 1e-3..1e3). Dividing each feature by its root mean square over the difference
vectors is an exact change of variables: with v = S v~, the metric in the new coordinates is A~ = S A S.
"""

from __future__ import annotations

import numpy as np

from lptml.constraints.checks import Floats
from lptml.constraints.constraint_set import ConstraintSet, Source

#: Constraints that stand for a source too large to look at as a whole, when scales and starts are chosen.
SAMPLE = 20_000


def feature_scale(constraints: ConstraintSet) -> Floats:
    """The root mean square of every feature over all difference vectors; 1 for a feature that never varies.

    Examples
    --------
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.constraints.scaling import feature_scale
    >>> pairs = ConstraintSet.from_differences([[3.0, 0.0], [4.0, 0.0]], [1, -1], bounds=(1.0, 1.0))
    >>> feature_scale(pairs)
    array([3.53553391, 1.        ])
    """
    return root_mean_square(*([constraints.V] if constraints.W is None else [constraints.V, constraints.W]))


def root_mean_square(*parts: Floats) -> Floats:
    """(d,) the root mean square of every feature over the rows of all parts (n, d); 1 where all are zero."""
    largest = np.max([np.abs(part).max(axis=0, initial=0.0) for part in parts], axis=0)  # (d,)
    largest = np.where(largest > 0, largest, 1.0)
    # Dividing by the largest entry first keeps the squares from overflowing or vanishing.
    squares = sum(np.einsum("ij,ij->j", part / largest, part / largest) for part in parts)
    rows = max(1, sum(len(part) for part in parts))
    rms = largest * np.sqrt(squares / rows)
    return np.where(rms > 0, rms, 1.0)


def standard_deviation(X: Floats) -> Floats:
    """(d,) the standard deviation of every feature of points (n, d); 1 for a feature that is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints.scaling import standard_deviation
    >>> standard_deviation(np.array([[1.0, 7.0], [5.0, 7.0]]))
    array([2., 1.])
    """
    spread = X.std(axis=0)
    return np.where(spread > 1e-12 * np.abs(X).max(axis=0, initial=0.0), spread, 1.0)


def scale_metric(A: Floats, scale: Floats) -> Floats:
    """A metric of the original features, in features divided by ``scale``."""
    return A * scale[:, None] * scale


def unscale_metric(A: Floats, scale: Floats) -> Floats:
    """A metric of features divided by ``scale``, in the original features."""
    return A / scale[:, None] / scale


def representative(source: Source, rng: np.random.Generator, size: int = SAMPLE) -> ConstraintSet:
    """The constraints themselves when there are few, else a random sample of them."""
    if source.n <= size:
        return source if isinstance(source, ConstraintSet) else source.take(np.arange(source.n))
    return source.take(np.unique(rng.integers(source.n, size=size)))


def blend(sample: ConstraintSet, A: Floats, prior: Floats, share: float) -> Floats:
    """(1 - share) A + share c prior, where c gives the prior the mean squared distance of A."""
    V = sample.V
    of_A, of_prior = (float(np.einsum("ij,ij->", V @ metric, V)) for metric in (A, prior))
    if not (of_A > 0 and of_prior > 0):
        return A
    return (1 - share) * A + (share * of_A / of_prior) * prior


def truncate(A: Floats, rank: int, scale: Floats) -> Floats:
    """The metric of at most this rank that is closest to A in features divided by ``scale``."""
    eigenvalues, Q = np.linalg.eigh(scale_metric(A, scale))
    top = Q[:, -rank:] * np.sqrt(np.maximum(eigenvalues[-rank:], 0.0))
    return unscale_metric(top @ top.T, scale)
