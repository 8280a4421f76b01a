"""An attack that moves points: a few of them far away, with a wrong label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lptml.noise._common import (
    Planted,
    Seed,
    check_distance,
    check_labels,
    check_points,
    check_whole,
    direction,
)


def plant_points(
    X: ArrayLike,
    y: ArrayLike,
    share: float,
    *,
    distance: float = 30.0,
    n_clumps: int = 1,
    random_state: Seed = None,
) -> Planted:
    """Move a share of the points far away, along one direction, and give them a wrong label.

    A learner whose loss grows with distance looks at nothing else afterwards, and so does whatever is scaled
    by a standard deviation.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The points.
    y : array-like of shape (n,)
        True labels, at least two classes.
    share : float in [0, 1]
        Share of the points to move; exactly ``round(share * n)`` are.
    distance : float
        How far, in standard deviations of the features.
    n_clumps : int
        Directions to move them along; each takes the same number of points, or one more.
    random_state : int, Generator or None
        The same seed gives the same points, directions and labels.

    Returns
    -------
    Planted
        Points and labels, and the mask of the planted ones.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise import plant_points
    >>> X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2
    >>> poisoned = plant_points(X, y, 0.1, random_state=0)
    >>> poisoned.n_planted, int((poisoned.labels != y).sum())
    (4, 4)
    >>> bool((np.linalg.norm((poisoned.points - X) / X.std(axis=0), axis=1)[poisoned.planted] > 29).all())
    True
    """
    given, rng = check_labels(y, share), np.random.default_rng(random_state)
    points = check_points(X, given.n).copy()
    check_distance(distance)
    check_whole(n_clumps, 1, "n_clumps")
    chosen = rng.choice(given.n, given.n_attacked, replace=False)
    wrong = given.flipped(chosen, given.any_other(chosen, rng))
    spread = points.std(axis=0)
    for clump in range(n_clumps):
        points[chosen[clump::n_clumps]] += distance * spread * direction(points.shape[1], rng)
    return Planted(points, wrong.labels, wrong.flipped)
