"""Radial basis functions of the linear map, made orthonormal on landmarks (Nyström's method).

    f(x) = [z, K_qm k(z)],    z = s L (x - mean),    k(z)_j = exp(-|z - z_j|^2 / (2 width))

z_j are the images of m landmarks among the points, and the rows of K_qm the q leading eigenvectors of their
kernel matrix, each divided by the root of its eigenvalue: the leading features of the kernel's own space
(Williams and Seeger 2001). z comes first, so that every linear metric of x is one of f(x).

References
----------
Williams, C. and Seeger, M. (2001). Using the Nyström method to speed up kernel machines. Advances in Neural
Information Processing Systems 13.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from lptml.constraints import Floats
from lptml.maps._evidence import Arrays, Evidence, check_settings
from lptml.points.scatter import squared_distances

LANDMARKS = 300
#: The width of the kernel: the median squared distance to the neighbour of this number.
NEIGHBOUR = 20
_BLOCK = 4096


@dataclass(eq=False)
class NystroemMap:
    """The ``components`` leading features of a Gaussian kernel beside the linear map.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.maps import Evidence, NystroemMap
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> f = NystroemMap(components=5).fit(Evidence.of_points(X))
    >>> f.transform(X).shape
    (50, 7)
    """

    components: int = 32
    seed: int = 0
    metric: Floats | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(self, evidence: Evidence) -> Self:
        """Draw the landmarks and set the width."""
        rng = np.random.default_rng(self.seed)
        X = evidence.X
        self._mean = X.mean(axis=0)
        Z = (X - self._mean) @ evidence.L.T
        size = float(np.sqrt(np.square(Z).sum(axis=1).mean())) or 1.0
        self._first = evidence.L / size  # features of both kinds have squared lengths about one
        some = np.sort(rng.permutation(len(Z))[:LANDMARKS])
        self._landmarks = Z[some] / size
        among = squared_distances(self._landmarks, self._landmarks)
        rank = min(NEIGHBOUR, len(some) - 1)
        width = float(np.median(np.partition(among, rank, axis=1)[:, rank]))
        self._width = np.array(width if width > 0 else 1.0)
        values, Q = np.linalg.eigh(np.exp(-among / (2.0 * self._width)))
        order = np.argsort(-values, kind="stable")[: self.components]
        order = order[values[order] > 1e-10 * values[order[0]]]
        self._directions = (Q[:, order] / np.sqrt(values[order])).T  # (q, m)
        return self

    def transform(self, X: Floats) -> Floats:
        """(n, k + q)"""
        Z = (X - self._mean) @ self._first.T
        blocks = [
            np.exp(-squared_distances(Z[i : i + _BLOCK], self._landmarks) / (2.0 * self._width))
            @ self._directions.T
            for i in range(0, len(Z), _BLOCK)
        ]
        return np.hstack([Z, np.concatenate(blocks)])

    def arrays(self) -> Arrays:
        """Layers, landmarks and width."""
        return {name: getattr(self, f"_{name}") for name in _NAMES}

    @classmethod
    def restore(cls, arrays: Arrays) -> Self:
        """The map of that state."""
        found = cls()
        mean, first, landmarks, width, directions = (np.asarray(arrays[name], dtype=float) for name in _NAMES)
        sound = first.shape[1:] == mean.shape and landmarks.shape[1:] == first.shape[:1] and width.ndim == 0
        if not sound or directions.shape[1:] != landmarks.shape[:1] or not width > 0:
            raise ValueError("the parts of a nystroem map do not fit each other")
        found._mean, found._first, found._landmarks = mean, first, landmarks
        found._width, found._directions = width, directions
        return found


_NAMES = ("mean", "first", "landmarks", "width", "directions")
