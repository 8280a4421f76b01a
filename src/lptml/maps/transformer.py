"""Any transformer of scikit-learn as a map."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lptml.constraints import Floats
from lptml.maps._evidence import Arrays, Evidence


class TransformerMap:
    """A transformer, fitted to the points and to their labels where there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from lptml.maps import Evidence, TransformerMap
    >>> f = TransformerMap(PolynomialFeatures(include_bias=False)).fit(Evidence.of_points(np.ones((3, 2))))
    >>> f.transform(np.ones((1, 2))).shape
    (1, 5)
    """

    metric: Floats | None = None

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, evidence: Evidence) -> Self:
        """Fit the transformer."""
        self.transformer.fit(evidence.X, evidence.labels)
        return self

    def transform(self, X: Floats) -> Floats:
        """Its features, which must be numbers."""
        features = self.transformer.transform(X)
        features = features.toarray() if hasattr(features, "toarray") else features
        array = np.ascontiguousarray(features, dtype=np.float64)
        if array.ndim != 2 or len(array) != len(X) or not np.isfinite(array).all():
            raise ValueError(
                f"map must give every point finite features, got an array of shape {array.shape}"
            )
        return array

    def arrays(self) -> Arrays:
        """ValueError: a model file holds arrays and executes nothing."""
        name = type(self.transformer).__name__
        raise ValueError(f"map cannot be saved: {name} is a transformer, of which a model file has no arrays")

    @classmethod
    def restore(cls, arrays: Arrays) -> Self:
        """No file has one."""
        raise ValueError("a model file holds no transformer")
