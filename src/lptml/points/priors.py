"""Prior metrics of labelled points: what learning starts from and is shrunk to.

All are factors L (k, d) with A = L'L. ``identity`` and ``standardised`` look at the points alone; ``within``
and ``discriminant`` are closed forms that use the labels, with centres and scatter of the classes after a t
distribution, so that outliers hardly bend them.
"""

from __future__ import annotations

import numpy as np

from lptml.constraints import Floats, Ints
from lptml.constraints.scaling import standard_deviation
from lptml.points.scatter import WithinClass, clipped, robust_scale, whitening, within_class

NAMES = ("identity", "standardized", "within", "discriminant")


def make_prior(name: str, X: Floats, codes: Ints, weight: Floats | None = None) -> Floats:
    """The prior metric of that name, L (k, d).

    Parameters
    ----------
    name : {"identity", "standardized", "within", "discriminant"}
        Euclidean; every feature divided by its standard deviation; the metric under which the classes are
        round; the same with the directions stretched that separate their centres.
    X : array of shape (N, d)
    codes : array of shape (N,)
        Classes 0 .. K - 1, each of which occurs.
    weight : array of shape (N,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.points.priors import make_prior
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 10.0]
    >>> X[30:, 0] += 8.0
    >>> L = make_prior("discriminant", X, np.repeat([0, 1], 30))
    >>> bool((L.T @ L)[0, 0] > 100 * (L.T @ L)[1, 1])
    True
    """
    if name == "identity":
        return np.eye(X.shape[1])
    if name == "standardized":
        return standardised(X)
    w = np.ones(len(X)) if weight is None else weight / weight.mean()
    scale = robust_scale(X)
    fit = within_class(clipped(X), codes, int(codes.max()) + 1, w)
    if name == "within":
        return within(fit, scale)
    return discriminant(fit, scale, np.bincount(codes, weights=w) / w.sum())


def standardised(X: Floats) -> Floats:
    """Every feature divided by its standard deviation."""
    return np.diag(1.0 / standard_deviation(X))


def within(fit: WithinClass, scale: Floats) -> Floats:
    """The metric under which the classes are round: the inverse of the scatter within them.

    ``fit`` describes the classes in features divided by ``scale``.
    """
    return whitening(fit.scatter) / scale


def discriminant(fit: WithinClass, scale: Floats, share: Floats) -> Floats:
    """``within``, with the directions that separate the centres of the classes stretched.

    After whitening, the squared length of these K - 1 directions is 1 / (K - 1) each, and of every direction
    1 / d besides: together, those that separate and all of them get the same. ``share`` (K,) is how much of
    the points each class has. Alike, however far the centres lie apart in each: the classes that are close
    together in all but one of them are those that neighbours confuse.
    """
    L = whitening(fit.scatter)
    centres = (fit.centres - share @ fit.centres) @ L.T * np.sqrt(share)[:, None]  # (K, d)
    if len(centres) > len(L):  # no factor that is as large as thousands of classes squared
        centres = np.asarray(np.linalg.qr(centres, mode="r"))
    _, lengths, Q = np.linalg.svd(centres)
    separating = np.zeros(len(Q))
    separating[: len(lengths)] = lengths > 1e-6 * max(float(lengths.max(initial=0.0)), 1e-300)
    squares = separating / max(float(separating.sum()), 1.0) + 1.0 / len(Q)
    return np.asarray((np.sqrt(squares)[:, None] * Q) @ L / scale)
