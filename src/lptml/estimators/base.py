"""What every metric learner shares: metric-learn's contract, on current scikit-learn.

A learner stores its metric as ``components_`` L (k x d); the Mahalanobis matrix is A = L'L and the distance
of two points is the Euclidean distance of their images under L. Each method reads ``components_`` when it is
called, so a user may overwrite it. To make a learner, derive from one of

- :class:`SupervisedMixin`, learning from points and class labels,
- :class:`PairsMixin`, from pairs labelled similar (+1) or dissimilar (-1),
- :class:`TripletsMixin`, from triplets (a, b, c): a is closer to b than to c,
- :class:`QuadrupletsMixin`, from quadruplets (a, b, c, d): a is closer to b than c is to d,

and from ``BaseEstimator`` (to the right), take ``preprocessor=None`` in the constructor, and let ``fit`` (its
first parameter is X, pairs, triplets or quadruplets) call ``_start_...`` for validated arrays, set
``components_`` and return self.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.estimators._mahalanobis import MahalanobisMetric, MahalanobisMixin, components_from_metric
from lptml.estimators._tuples import PairsMixin, QuadrupletsMixin, TripletsMixin

__all__ = [
    "MahalanobisMetric",
    "MahalanobisMixin",
    "PairsMixin",
    "QuadrupletsMixin",
    "SupervisedMixin",
    "TripletsMixin",
    "components_from_metric",
]


class SupervisedMixin(MahalanobisMixin):
    """A learner fitted to points and their classes; the number -1 marks an unlabelled point."""

    def _start_supervised(self, X: Any, y: Any) -> tuple[FloatArray, NDArray[np.int64]]:
        """Validate the input of fit, set ``classes_``, return points (n, d) and codes (-1: unlabelled)."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None"
            )
        self._start()
        points = self._points(X, reset=True, min_samples=2)
        self.classes_, codes = _inputs.check_point_labels(y, len(points))
        return points, codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.one_d_array = getattr(self, "preprocessor", None) is not None
        return tags
