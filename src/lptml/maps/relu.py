"""A hidden layer of rectified linear units, trained by the bounded loss of the constraints.

    f(x) = [z, B max(W z + c, 0)],    z = s L (x - mean)

z is the start's linear map, so every linear metric of x is a linear metric of f(x). The hidden layer is
trained together with a last layer G by Adam on the loss of ``refine.anneal``, with the images G [z, h] in
place of G x and the temperature falling likewise:

    z_i = sign_i (|Gv_i| - sqrt(|Gw_i|^2 + b_i)) / T,        loss = sum_i weight_i / (1 + exp(-z_i)).

No constraint pays more than its weight, however wrong it is. Half of the units start as hinges of one
feature each, the others as hinges of random directions, with kinks spread over the points. G's part for the
hidden units has few significant singular vectors: these are the rows of B, so that the metric which is
learned over f afterwards has few dimensions.

A fifth of the constraints (all of a point together) is held out. Where the units do not violate fewer of
them than the linear map trained in the same way, there are none: f(x) = z.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from lptml.constraints import Floats, Ints
from lptml.constraints.scaling import standard_deviation
from lptml.maps._evidence import Arrays, Evidence, check_settings

#: Steps of Adam, from a temperature at which the start hardly matters to one where margins still do.
SCHEDULE: dict[str, Any] = {
    "steps": 300,
    "first_temperature": 1.0,
    "final_temperature": 0.05,
    "first_step": 0.05,
    "final_step": 0.003,
}
BATCH = 4096  # constraints a step at most
HELD_OUT = 5  # one point of so many
EXTRA = 8  # dimensions of the image beyond those of z
SIGNIFICANT = 0.03  # of the largest singular value
#: Weight decay: (DECAY / 2) |W|^2 and |G|^2 beside the mean loss. On 2,000 pairs of rings in 10 dimensions,
#: 10% of them wrong, the test accuracy is .87 without, .95 at 1e-4, .99 at 1e-3 and .98 at 3e-3.
DECAY = 1e-3


@dataclass(eq=False)
class ReluMap:
    """One hidden layer of ``width`` rectified linear units beside the linear map.

    Parameters
    ----------
    width : int
        Hidden units; with none the map is linear.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.maps import Evidence, ReluMap
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> ring = np.linalg.norm(X, axis=1) > 1.2
    >>> pairs = rng.integers(300, size=(1000, 2))
    >>> sign = np.where(ring[pairs[:, 0]] == ring[pairs[:, 1]], 1, -1)
    >>> told = Evidence(X, np.eye(2), pairs, sign, np.ones(1000), np.ones(1000))
    >>> f = ReluMap().fit(told)
    >>> told.constraints(f.transform(X)).cost(f.metric) < 300 < told.constraints(X).cost(np.eye(2))
    True
    """

    width: int = 64
    seed: int = 0
    metric: Floats | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(self, evidence: Evidence) -> Self:
        """Train the hidden layer, or find that it does not help."""
        rng = np.random.default_rng(self.seed)
        self._mean = evidence.X.mean(axis=0)
        self._first = evidence.L / _typical(evidence)
        Z = (evidence.X - self._mean) @ self._first.T
        d = Z.shape[1]
        nobody = np.zeros((0, d)), np.zeros(0), np.zeros((0, 0))
        self._W, self._c, self._B = nobody
        self.metric = None
        if not len(evidence.tuples):
            return self
        out = np.isin(evidence.tuples[:, 0], rng.permutation(len(Z))[: len(Z) // HELD_OUT])
        if not 0 < out.sum() < len(out):  # just one point that all constraints are about
            out = rng.permutation(len(out)) < len(out) // HELD_OUT
        train, valid = np.flatnonzero(~out), np.flatnonzero(out)
        found = []
        for width in (0, self.width):
            W, c = _hinges(Z, width, rng)
            G = np.eye(d + EXTRA, d + width)
            G[:, d:] = rng.normal(size=(d + EXTRA, width)) / np.sqrt(max(1, width) * (d + EXTRA))
            W, c, G = _descend(Z, evidence, train, W, c, G, rng)
            F = np.hstack([Z, np.maximum(Z @ W.T + c, 0.0)])
            found.append((evidence.constraints(F, valid).cost(G.T @ G), W, c, G))
        _, W, c, G = min(found, key=lambda each: each[0])  # the linear one, of equals
        if len(W):
            U, sizes, V = np.linalg.svd(G[:, d:], full_matrices=False)
            kept = sizes > SIGNIFICANT * sizes[0]
            self._W, self._c, self._B = W, c, sizes[kept, None] * V[kept]
            G = np.hstack([G[:, :d], U[:, kept]])
        self.metric = G.T @ G
        return self

    def transform(self, X: Floats) -> Floats:
        """(n, k + units that matter)"""
        Z = (X - self._mean) @ self._first.T
        if not len(self._W):
            return Z
        return np.hstack([Z, np.maximum(Z @ self._W.T + self._c, 0.0) @ self._B.T])

    def arrays(self) -> Arrays:
        """The layers."""
        return {"mean": self._mean, "first": self._first, "W": self._W, "c": self._c, "B": self._B}

    @classmethod
    def restore(cls, arrays: Arrays) -> Self:
        """The map with these layers."""
        found = cls()
        mean, first, W, c, B = (np.asarray(arrays[name], dtype=np.float64) for name in _NAMES)
        sound = first.shape[1:] == mean.shape and W.shape == (len(c), len(first)) and B.ndim == 2
        if not sound or (len(c) and B.shape[1] != len(c)):
            raise ValueError("the layers of a relu map do not fit each other")
        found._mean, found._first, found._W, found._c, found._B = mean, first, W, c, B
        found.width = len(c)
        return found


_NAMES = ("mean", "first", "W", "c", "B")


def _typical(evidence: Evidence) -> float:
    """The divisor of L that makes the demands easiest to meet, for its multiples."""
    start = evidence.X @ evidence.L.T
    if len(evidence.tuples):
        scale = evidence.constraints(start).best_scale(np.eye(start.shape[1])).scale
        if 0 < scale < np.inf:
            return float(1.0 / np.sqrt(scale))
    return float(np.sqrt(np.square(standard_deviation(start)).sum())) or 1.0


def _hinges(Z: Floats, width: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """W (width, d) and c (width,): hinges with kinks at random points, half of them of one feature each."""
    d = Z.shape[1]
    W = rng.normal(size=(width, d))
    axes = np.arange(width // 2)
    W[axes] = np.eye(d)[axes % d] * np.where(axes // d % 2, -1.0, 1.0)[:, None]
    spread = np.where((size := Z.std(axis=0)) > 0, size, 1.0)
    W /= spread * np.sqrt(np.maximum(np.square(W).sum(axis=1), 1e-12))[:, None]
    kinks = Z[rng.integers(len(Z), size=width)]
    return W, -np.einsum("ij,ij->i", W, kinks)


def loss_and_gradients(
    Z: Floats, evidence: Evidence, rows: Ints, W: Floats, c: Floats, G: Floats, T: float
) -> tuple[float, Floats, Floats, Floats]:
    """The mean loss of these constraints at temperature T, and its gradients by W, c and G.

    Parameters
    ----------
    Z : array of shape (n, d)
        Inputs of the hidden layer.
    evidence : Evidence
    rows : array of int
        Numbers of the constraints.
    W, c, G : arrays of shape (h, d), (h,) and (k, d + h)
    T : float
    """
    points, place = np.unique(evidence.tuples[rows], return_inverse=True)
    place = place.reshape(len(rows), -1)
    inputs = Z[points]
    before = inputs @ W.T + c  # (p, h)
    features = np.hstack([inputs, np.maximum(before, 0.0)])
    images = features @ G.T  # (p, k)
    V = images[place[:, -1]] - images[place[:, 0]]
    long = np.sqrt(np.einsum("ij,ij->i", V, V) + 1e-12)
    b = evidence.bound[rows]
    if place.shape[1] == 3:
        near = images[place[:, 1]] - images[place[:, 0]]
        short = np.sqrt(np.einsum("ij,ij->i", near, near) + b)
    else:
        short = np.sqrt(b)
    sign = evidence.sign[rows]
    weight = evidence.weight[rows] / evidence.weight[rows].sum()
    s = expit(sign * (long - short) / T)
    slope = weight * s * (1.0 - s) * sign / T  # by (long - short)
    parts = [(place[:, -1], V * (slope / long)[:, None])]
    if place.shape[1] == 3:
        parts.append((place[:, 1], near * (-slope / np.maximum(short, 1e-12))[:, None]))
    ends = np.concatenate([end for end, _ in parts])
    pulls = np.concatenate([pull for _, pull in parts])
    # Each pull moves its end one way and the anchor the other: the incidence matrix adds them up.
    size = len(pulls)
    anchors = np.tile(place[:, 0], len(parts))
    incidence = csr_array(
        (np.repeat([1.0, -1.0], size), (np.concatenate([ends, anchors]), np.tile(np.arange(size), 2))),
        shape=(len(points), size),
    )
    of_images = incidence @ pulls  # (p, k)
    of_hidden = (of_images @ G[:, Z.shape[1] :]) * (before > 0)  # (p, h)
    return float(weight @ s), of_hidden.T @ inputs, of_hidden.sum(axis=0), of_images.T @ features


def _descend(
    Z: Floats, evidence: Evidence, rows: Ints, W: Floats, c: Floats, G: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Adam (Kingma and Ba 2015) on minibatches, temperature and step length falling."""
    from lptml.refine.anneal import Schedule  # compiled code is loaded by the first fit, not by the import

    unit = float(np.sqrt(evidence.bound.max()))
    parameters = [W.copy(), c.copy(), G.copy()]
    first = [np.zeros_like(each) for each in parameters]
    second = [np.zeros_like(each) for each in parameters]
    for i, (temperature, step) in enumerate(Schedule(**SCHEDULE), 1):
        batch = rows if len(rows) <= BATCH else rng.choice(rows, BATCH, replace=False)
        W, c, G = parameters
        _, *gradients = loss_and_gradients(Z, evidence, batch, W, c, G, temperature * unit)
        gradients[0] += DECAY * parameters[0]
        gradients[2] += DECAY * parameters[2]
        for each, g, m, v in zip(parameters, gradients, first, second):
            m += 0.1 * (g - m)
            v += 0.01 * (g * g - v)
            each -= step * (m / (1 - 0.9**i)) / (np.sqrt(v / (1 - 0.99**i)) + 1e-9)
    return parameters[0], parameters[1], parameters[2]
