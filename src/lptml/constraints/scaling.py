"""Per-feature scaling: solve where every feature has unit size, then undo it on the metric.

Interior-point methods lose their way when features span many orders of magnitude (they report false
infeasibility already at 1e-3..1e3). Dividing each feature by its root mean square over the difference
vectors is an exact change of variables: with v = S v~, the metric in the new coordinates is A~ = S A S.
"""

from __future__ import annotations

import numpy as np

from lptml.constraints import ConstraintSet, Floats


def feature_scale(constraints: ConstraintSet) -> Floats:
    """The root mean square of every feature over all difference vectors; 1 for a feature that never varies.

    Examples
    --------
    >>> from lptml.constraints import ConstraintSet
    >>> from lptml.scaling import feature_scale
    >>> pairs = ConstraintSet.from_differences([[3.0, 0.0], [4.0, 0.0]], [1, -1], bounds=(1.0, 1.0))
    >>> feature_scale(pairs)
    array([3.53553391, 1.        ])
    """
    parts = [constraints.V] if constraints.W is None else [constraints.V, constraints.W]
    largest = np.max([np.abs(part).max(axis=0, initial=0.0) for part in parts], axis=0)  # (d,)
    largest = np.where(largest > 0, largest, 1.0)
    # Dividing by the largest entry first keeps the squares from overflowing or vanishing.
    squares = sum(np.einsum("ij,ij->j", part / largest, part / largest) for part in parts)
    rows = max(1, sum(len(part) for part in parts))
    rms = largest * np.sqrt(squares / rows)
    return np.where(rms > 0, rms, 1.0)


def scale_metric(A: Floats, scale: Floats) -> Floats:
    """A metric of the original features, in features divided by ``scale``."""
    return A * scale[:, None] * scale


def unscale_metric(A: Floats, scale: Floats) -> Floats:
    """A metric of features divided by ``scale``, in the original features."""
    return A / scale[:, None] / scale
