"""Starting metrics: what one would use without learning, and the closed forms that use the labels.

All are factors L (k, d) with A = L'L. The first four are the usual preprocessings in front of a k-NN
classifier and look at the points alone; the last two whiten the classes with weights that say how far each
label is trusted, and with the tails of a t distribution, so that neither wrong labels nor outliers bend them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lptml.constraints import Floats, psd_factor
from lptml.scatter import WithinClass, robust_scale, whitening

__all__ = ["discriminant", "identity", "mean", "project", "robust", "standardised", "whitened", "within"]


def identity(X: Floats) -> Floats:
    """The Euclidean metric."""
    return np.eye(X.shape[1])


def standardised(X: Floats) -> Floats:
    """Every feature divided by its standard deviation."""
    spread = X.std(axis=0)
    return np.diag(1.0 / np.where(spread > 1e-12 * np.abs(X).max(axis=0, initial=0.0), spread, 1.0))


def robust(X: Floats) -> Floats:
    """Every feature divided by its robust scale."""
    return np.diag(1.0 / robust_scale(X))


def whitened(X: Floats) -> Floats:
    """Principal components divided by their standard deviations; directions without variance are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.priors import whitened
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) @ [[3.0, 1.0], [0.0, 0.1]]
    >>> Z = X @ whitened(X).T
    >>> bool(np.allclose(np.cov(Z.T, bias=True), np.eye(2)))
    True
    """
    scale = 1.0 / standardised(X).diagonal()
    _, spread, rows = np.linalg.svd((X - X.mean(axis=0)) / scale / np.sqrt(len(X)), full_matrices=False)
    kept = spread > 1e-10 * max(float(spread.max(initial=0.0)), 1e-300)
    if not kept.any():
        return np.eye(X.shape[1])
    # Whitening is defined up to a rotation, so scaling the features first does not change the distances.
    return np.asarray(rows[kept] / spread[kept, None] / scale)


def within(fit: WithinClass, scale: Floats) -> Floats:
    """The metric under which the classes are round: the inverse of the scatter within them.

    ``fit`` describes the classes in features divided by ``scale``.
    """
    return whitening(fit.scatter) / scale


def discriminant(fit: WithinClass, scale: Floats, share: Floats, rest: float) -> Floats:
    """``within``, with the directions that separate the centres of the classes stretched.

    After whitening, the squared length of these K - 1 directions is 1 / (K - 1) each, and of every direction
    ``rest`` / d besides; ``share`` (K,) is how much of the points each class has. Alike, however far the
    centres lie apart in each: the classes that are close together in all but one of them are those that
    neighbours confuse.
    """
    L = whitening(fit.scatter)
    centres = (fit.centres - share @ fit.centres) @ L.T * np.sqrt(share)[:, None]  # (K, d)
    if len(centres) > len(L):  # no factor that is as large as thousands of classes squared
        centres = np.asarray(np.linalg.qr(centres, mode="r"))
    _, lengths, Q = np.linalg.svd(centres)
    separating = np.zeros(len(Q))
    separating[: len(lengths)] = lengths > 1e-6 * max(float(lengths.max(initial=0.0)), 1e-300)
    squares = separating / max(float(separating.sum()), 1.0) + rest / len(Q)
    return np.asarray((np.sqrt(squares)[:, None] * Q) @ L / scale)


def mean(X: Floats, parts: Sequence[tuple[float, Floats]]) -> Floats:
    """The weighted mean of metrics that are first brought to the same median distance from the centre.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml import priors
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> L = priors.mean(X, [(0.5, np.eye(2)), (0.5, 7.0 * np.eye(2))])
    >>> float((L.T @ L)[0, 1]), bool(np.isclose((L.T @ L)[0, 0], (L.T @ L)[1, 1]))
    (0.0, True)
    """
    if len(parts) == 1:
        return parts[0][1]
    centred = X - X.mean(axis=0)
    A = np.zeros((X.shape[1],) * 2)
    for weight, L in parts:
        squares = np.square(centred @ L.T).sum(axis=1)
        size = float(np.median(squares)) or float(squares.mean()) or 1.0
        A += weight / size * (L.T @ L)
    return psd_factor((A + A.T) / 2)


def project(L: Floats, X: Floats, rank: int) -> Floats:
    """The metric on the ``rank`` directions in which the images of the points vary most."""
    if rank >= len(L):
        return L
    Z = (X - X.mean(axis=0)) @ L.T
    _, Q = np.linalg.eigh(Z.T @ Z)
    return np.asarray(Q[:, ::-1][:, :rank].T @ L)
