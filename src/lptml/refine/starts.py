"""Metrics that need no search: where refinement starts, and what it must beat.

All are computed from second moments of difference vectors in features of unit size, so they do not depend on
the units of the data.
"""

from __future__ import annotations

import numpy as np

from lptml.constraints import ConstraintSet, Floats
from lptml.constraints.scaling import feature_scale

_SINGLE_FEATURES = 10  # features up to which each is tried as a metric of its own


def default_starts(sample: ConstraintSet) -> list[Floats]:
    """Good metrics that need no search: standardised, whitened within similar pairs, identity, whitened.

    Parameters
    ----------
    sample : ConstraintSet
        The constraints or a random sample of them.

    Returns
    -------
    list of arrays of shape (d, d), those expected to be best first.

    Examples
    --------
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.refine.starts import default_starts
    >>> pairs = ConstraintSet.from_differences([[3.0, 0.0], [0.0, 1.0]], [+1, -1], bounds=(1.0, 1.0))
    >>> default_starts(pairs)[0].diagonal().round(3)
    array([0.222, 2.   ])
    """
    scale = feature_scale(sample)
    near = sample.V[sample.sign > 0] if sample.W is None else sample.W
    return [standardised(sample), _whitening(near, scale), np.eye(sample.d), _whitening(sample.V, scale)]


def standardised(sample: ConstraintSet) -> Floats:
    """The metric that divides every feature by its root mean square over the difference vectors."""
    return np.diag(1.0 / feature_scale(sample) ** 2)


def rank_one_starts(sample: ConstraintSet) -> list[Floats]:
    """Metrics of rank one that need no search: the linear discriminant and, if they are few, each feature.

    They are good where the bounds are far apart: then the best metric often looks along one direction only.
    """
    scale = feature_scale(sample)
    near = sample.V[sample.sign > 0] if sample.W is None else sample.W
    far = sample.V[sample.sign < 0]
    # The direction of largest spread of dissimilar pairs once similar ones are whitened.
    L = np.linalg.cholesky(_second_moment(near, scale))
    spread = np.linalg.solve(L, np.linalg.solve(L, _second_moment(far, scale)).T)
    g = np.linalg.solve(L.T, np.linalg.eigh((spread + spread.T) / 2)[1][:, -1]) / scale
    features = np.eye(sample.d) if sample.d <= _SINGLE_FEATURES else np.empty((0, sample.d))
    return [np.outer(h, h) for h in (g, *features)]


def _second_moment(V: Floats, scale: Floats) -> Floats:
    """The mean of vv' in scaled features, kept away from singularity."""
    U = V / scale
    return U.T @ U / max(1, len(U)) + 1e-6 * np.eye(len(scale))


def _whitening(V: Floats, scale: Floats) -> Floats:
    """The inverse second moment of difference vectors."""
    A = np.linalg.inv(_second_moment(V, scale)) / scale[:, None] / scale
    return (A + A.T) / 2
