"""How far each label can be trusted: the alternation of metric and trust.

A point's label is judged by what all *other* points say about it. Two kinds of witnesses testify, each
leaving the point in question out, so that a point never vouches for itself:

- the **centres**: the Mahalanobis distance to each class's centre, under the metric that whitens the classes
  (the inverse of the scatter within classes). It is rigid, so that a whole neighbourhood of wrong labels does
  not bend it. Centres and scatter are those of a multivariate t distribution, so that far outliers, poison
  among them, hardly count; heavy or nearly Gaussian tails, whichever explains the labels better.
- the **surroundings**: regularised least squares on radial basis functions of the features, smooth and local,
  for classes that are no single cluster.

There are two of each: one sees the robustly scaled features, the other the features made uncorrelated, for
data whose features mean nothing one by one (rotated, nearly collinear).

One round is

1. metric: the witnesses are fitted with each point weighted by its trust, and testify about every point;
2. calibration: each testimony becomes class probabilities p_i(c), sharpened or flattened by one temperature
   chosen together with the share rho of wrong labels by maximum likelihood of the given labels,

       prod_i  sum_c p_i(c) T(c, y_i),     T(c, y) = 1 - rho if c = y else rho / (K - 1),

   less a tenth of the mean entropy of p: few points cannot tell overlapping classes from wrong labels in
   classes that are apart, and the latter is the rule (Grandvalet and Bengio 2004). The geometric mean of
   the testimonies, weighted by what each tells beyond a guess, is calibrated in the same way;
3. trust: Bayes' rule, t_i = p_i(y_i) (1 - rho) / (p_i(y_i) (1 - rho) + (1 - p_i(y_i)) rho / (K - 1)).

The first round trusts everyone; later ones alternate between a few neighbouring verdicts, so the mean of the
probabilities of all four rounds is the final one (it ranks better than any single round). The suspicion of a
point is 1 - t_i. On clean data rho goes to zero, and with it every suspicion that is not overwhelming.

Points so far out that no class accounts for them, as an adversary plants them, are suspected for that alone
and testify about nobody (:func:`strangeness`).

Leaving one out costs nothing: least squares has the residual of the point left out in closed form, and
leaving a point out of a class's centre and of the scatter is a rank-one change (Sherman and Morrison).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lptml._clock import look
from lptml._threads import SMALL, single_threaded
from lptml.constraints import Floats, Ints
from lptml.constraints.span import span_of_points
from lptml.points.scatter import (
    SHRINKAGE,
    TAILS,
    clipped,
    robust_scale,
    squared_distances,
    uncorrelated,
    whitening,
    within_class,
)

__all__ = ["Trust", "strangeness", "trust_labels"]

ROUNDS = 4
_LANDMARKS = 600  # radial basis functions at most
_CELLS = 6_000_000  # entries of the matrix of basis functions at most: fewer functions beyond 10,000 points
_RIDGE = 0.5
_ENTROPY = 0.1  # weight of the entropy; without it 30% wrong labels are taken for 20%, see docs/suspects.md
FLOOR = 1e-3  # a single testimony never calls a class less likely than this
_SHARPEST = 10.0  # typical log-odds at most: sharper ones would round to certainty and no longer rank
_FEWEST = 1e-3  # smallest share of wrong labels considered
_CALIBRATION_POINTS = 3000
_CACHED = 50_000  # numbers that are worked on at once
_STRANGE = 15.0  # squared standard deviations a feature at which a point may be a stranger
_STRANGERS = 0.25  # the largest share of them
_CREDIT = 12.0  # how much more an informative witness counts
_UNCORRELATED = 0.1  # what the witnesses of uncorrelated features count beside the others


@dataclass(frozen=True, eq=False)
class Trust:
    """What the witnesses say about every label.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.trust import trust_labels
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[-4.0, 0.0], [4.0, 0.0]], 30, axis=0)
    >>> y = np.repeat([0, 1], 30)
    >>> y[0] = 1
    >>> trust = trust_labels(X, y, 2)
    >>> int(trust.suspicion.argmax()), bool(trust.suspicion[0] > 0.9), int(trust.suspects.sum())
    (0, True, 1)
    """

    probability: Floats
    """(N, K): the classes of every point according to the other points, whatever its own label says."""
    posterior: Floats
    """(N, K): the same after its own label is heard too."""
    suspicion: Floats
    """(N,): probability that the given label is wrong."""
    noise_rate: float
    """Estimated share of wrong labels."""

    @property
    def trust(self) -> Floats:
        """(N,): probability that the given label is right."""
        return 1.0 - self.suspicion

    @property
    def suspects(self) -> NDArray[np.bool_]:
        """(N,): labels that are more likely wrong than right."""
        return self.suspicion > 0.5


def trust_labels(
    X: Floats,
    codes: Ints,
    n_classes: int,
    *,
    weight: Floats | None = None,
    rounds: int = ROUNDS,
    rng: np.random.Generator | None = None,
) -> Trust:
    """Judge every label by all other points; see the module's docstring.

    Parameters
    ----------
    X : array of shape (N, d)
        Points.
    codes : array of shape (N,)
        Labels as 0 .. n_classes - 1.
    n_classes : int
        Number of classes, K.
    weight : array of shape (N,), optional
        Weights of the points as witnesses.
    rounds : int
        Alternations of metric and trust.
    rng : numpy Generator, optional
        Draws the centres of the basis functions when there are more than 600 points; a fixed seed by default.

    Returns
    -------
    Trust
    """
    present, compact = np.unique(codes, return_inverse=True)
    if len(present) < n_classes:
        return _spread(
            trust_labels(X, compact, len(present), weight=weight, rounds=rounds, rng=rng), present, n_classes
        )
    N, K = len(X), n_classes
    given = np.ones(N) if weight is None else weight / weight.mean()
    if K < 2 or N < 3:  # nobody could say otherwise
        certain = np.eye(max(K, 1))[codes]
        return Trust(certain, certain, np.zeros(N), 0.0)
    rng = np.random.default_rng(0) if rng is None else rng
    with single_threaded(N <= SMALL):
        if X.shape[1] > N:  # outliers are pulled in first: they are seen feature by feature
            X = clipped(X)
            X = span_of_points(X, np.ones(X.shape[1])).coordinates(X)
        return _alternate(X, codes, K, given, rounds, rng)


def _alternate(X: Floats, codes: Ints, K: int, given: Floats, rounds: int, rng: np.random.Generator) -> Trust:
    """The rounds of metric and trust."""
    N = len(X)
    views = [(Z, _basis_functions(Z, rng)) for Z in (clipped(X), uncorrelated(X))]
    prior = np.array([1.0, 1.0, _UNCORRELATED, _UNCORRELATED])
    own = np.arange(N)
    strange = strangeness(X, codes, K, given)
    given = given * (1.0 - strange)  # strangers do not vouch for each other
    trust = np.ones(N)
    mean = np.zeros((N, K))
    for _ in range(rounds):
        w = given * np.maximum(trust, 1e-3)
        testimonies = []
        for Z, basis in views:
            look()
            testimonies.append(_surroundings(basis, codes, K, w))
            centres = [calibrate(_centres(Z, codes, K, w, tail), codes) for tail in TAILS]
            testimonies.append(max(centres, key=lambda c: c.likelihood))
        verdict = calibrate(together(testimonies, _CREDIT, prior), codes)
        trust = posterior_right(verdict.probability[own, codes], verdict.noise_rate, K)
        mean += verdict.probability / rounds
    rho = noise_rate_near(mean[own, codes], K, verdict.noise_rate)
    confusion = np.where(np.eye(K, dtype=bool), 1.0 - rho, rho / (K - 1))  # T(c, y)
    posterior = mean * confusion[:, codes].T
    posterior /= posterior.sum(axis=1, keepdims=True)
    doubt = 1.0 - posterior_right(mean[own, codes], rho, K)
    return Trust(mean, posterior, np.maximum(doubt, strange), rho)


def strangeness(X: Floats, codes: Ints, n_classes: int, weight: Floats) -> Floats:
    """(N,) suspicion of points so far out that no class accounts for them: planted ones, most likely.

    The distance is to the nearest centre under the metric that whitens the classes, in squared standard
    deviations a feature. Long tails thin out gradually; strangers are those beyond a gap, a few at most, that
    are at least 15 out and three times as far as the farthest of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.trust import strangeness
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[-4.0, 0.0], [4.0, 0.0]], 30, axis=0)
    >>> X[0] = [-100.0, 0.0]
    >>> np.flatnonzero(strangeness(X, np.repeat([0, 1], 30), 2, np.ones(60)))
    array([0])
    """
    fit = within_class(clipped(X), codes, n_classes, weight)
    whiten = whitening(fit.scatter)
    points = (X - np.median(X, axis=0)) / robust_scale(X) @ whiten.T  # not clipped
    centres = fit.centres @ whiten.T
    q = squared_distances(points, centres).min(axis=1) / X.shape[1]  # (N,)
    ascending = np.sort(q)
    far = ascending > _STRANGE
    far[1:] &= ascending[1:] > 3.0 * ascending[:-1]
    far[: int((1.0 - _STRANGERS) * len(q))] = False
    if not far.any():
        return np.zeros(len(q))
    nearest = ascending[int(far.argmax())]
    return np.where(q >= nearest, 1.0 - _STRANGE / np.maximum(q, _STRANGE), 0.0)


def _spread(trust: Trust, present: Ints, n_classes: int) -> Trust:
    """The same verdicts with columns for classes that nobody is in."""
    wide = np.zeros((2, len(trust.suspicion), n_classes))
    wide[0][:, present], wide[1][:, present] = trust.probability, trust.posterior
    return Trust(wide[0], wide[1], trust.suspicion, trust.noise_rate)


def _centres(Z: Floats, codes: Ints, K: int, weight: Floats, tail: float) -> Floats:
    """(N, K) log-evidence of the classes from the distances to their centres, each point left out."""
    fit = within_class(Z, codes, K, weight, tail=tail)
    N, d = Z.shape
    own = np.arange(N)
    whiten = whitening(fit.scatter)
    points = Z @ whiten.T  # (N, d)
    centres = fit.centres @ whiten.T  # (K, d)
    residual = points - centres[codes]
    mass = weight * fit.tails
    of_class = np.bincount(codes, weights=mass, minlength=K)[codes]
    rest = np.maximum(of_class - mass, 1e-9 * of_class)
    # Without point i: its centre moves away by mass / rest of the residual, and the scatter loses
    # gamma r r', so that its inverse gains gamma r r' / (1 - gamma r'r).
    gamma = (1.0 - SHRINKAGE) * mass * of_class / rest / weight.sum()
    q = np.einsum("ij,ij->i", residual, residual)
    gain = gamma / np.maximum(1.0 - gamma * q, 1e-3)  # (N,)
    squares = np.empty((N, K))
    for c in range(K):
        away = points - centres[c]
        squares[:, c] = np.einsum("ij,ij->i", away, away) + gain * np.einsum("ij,ij->i", away, residual) ** 2
    stretch = np.minimum(of_class / rest, 1e6)
    squares[own, codes] = stretch**2 * (q + gain * q**2)
    prior = np.bincount(codes, weights=weight, minlength=K)
    return -(tail + d) / 2.0 * np.log1p(squares / tail) + np.log(prior / prior.sum())


def _basis_functions(Z: Floats, rng: np.random.Generator) -> Floats:
    """(N, m) radial basis functions, orthonormalised (Nyström); exact for up to 600 points."""
    N = len(Z)
    m = min(N, _LANDMARKS, max(100, _CELLS // N))
    landmarks = Z if m == N else Z[np.sort(rng.choice(N, m, replace=False))]
    among = squared_distances(landmarks, landmarks)
    # Width: the median squared distance to the 20th neighbour, doubled.
    width = 2.0 * float(np.median(np.partition(among, min(20, m - 1), axis=1)[:, min(20, m - 1)]))
    if not width > 0:
        width = max(float(among.mean()), 1.0)
    eigenvalues, Q = np.linalg.eigh(np.exp(-among / (2.0 * width)))
    keep = eigenvalues > 1e-8 * eigenvalues[-1]
    root = Q[:, keep] / np.sqrt(eigenvalues[keep])
    basis = np.empty((N, root.shape[1]))
    for start in range(0, N, 4096):
        rows = slice(start, start + 4096)
        basis[rows] = np.exp(-squared_distances(Z[rows], landmarks) / (2.0 * width)) @ root
    return basis


def _surroundings(basis: Floats, codes: Ints, K: int, weight: Floats) -> Calibrated:
    """Class probabilities from regularised least squares on basis functions, each point left out."""
    m = basis.shape[1]
    Y = np.eye(K)[codes]
    gram = np.empty((m + 1, m + 1))  # the last row and column belong to the constant
    weighted = basis * weight[:, None]
    gram[:m, :m] = weighted.T @ basis
    gram[m, :m] = gram[:m, m] = weighted.sum(axis=0)
    gram[m, m] = weight.sum()
    gram[np.arange(m + 1), np.arange(m + 1)] += np.r_[np.full(m, _RIDGE), 1e-6 * weight.sum()]
    inverse = np.linalg.inv(np.linalg.cholesky(gram))  # lower triangular
    image = basis @ inverse[:, :m].T + inverse[:, m]  # (N, m + 1)
    leverage = np.minimum(weight * np.einsum("ij,ij->i", image, image), 1.0 - 1e-9)
    fitted = image @ (image.T @ (weight[:, None] * Y))
    left_out = (fitted - leverage[:, None] * Y) / (1.0 - leverage)[:, None]
    return calibrate(4.0 * left_out, codes)


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Class probabilities (N, K), the share of wrong labels, and the penalised mean log-likelihood."""

    probability: Floats
    noise_rate: float
    likelihood: float


def calibrate(evidence: Floats, codes: Ints) -> Calibrated:
    """Probabilities from log-evidence: temperature and share of wrong labels by penalised likelihood."""
    N, K = evidence.shape
    some = slice(None, None, max(1, N // _CALIBRATION_POINTS))
    E, y = evidence[some], codes[some]
    own = np.arange(len(E))
    rates = np.r_[_FEWEST, np.linspace(0.01, 0.9 * (K - 1) / K, 24)]  # (25,)
    sharpnesses = np.geomspace(0.05, _SHARPEST, 25) / _typical_margin(E)
    at_once = max(1, _CACHED // (len(E) * max(K, len(rates))))
    blocks = [
        _likelihood(E, y, sharpnesses[first : first + at_once], rates)
        for first in range(0, len(sharpnesses), at_once)
    ]
    likelihood = np.concatenate(blocks)  # (25, 25)
    best, rate = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
    highest, sharpness, start = float(likelihood.max()), float(sharpnesses[best]), float(rates[rate])
    probability = _softmax(sharpness * evidence)
    rho = noise_rate_near(probability[some][own, y], K, start)
    return Calibrated(probability, rho, highest)


def _likelihood(E: Floats, y: Ints, sharpnesses: Floats, rates: Floats) -> Floats:
    """(sharpnesses, rates) mean log-likelihood of the labels, less the penalty on the entropy."""
    P = _softmax(sharpnesses[:, None, None] * E)  # (sharpnesses, n, K)
    p = P[:, np.arange(len(y)), y][:, :, None]
    likelihood = np.log(p * (1.0 - rates) + (1.0 - p) * (rates / (E.shape[1] - 1)) + 1e-300).mean(axis=1)
    entropy = -(P * np.log(P + 1e-300)).sum(axis=2).mean(axis=1)
    return np.asarray(likelihood - _ENTROPY * entropy[:, None])


def together(testimonies: list[Calibrated], credit: float, prior: Floats | None = None) -> Floats:
    """(N, K) mean log-probability of the testimonies, weighted by what each tells beyond a guess."""
    guess = np.log(testimonies[0].probability.shape[1])
    worth = np.array([max(testimony.likelihood + guess, 1e-6) for testimony in testimonies]) ** credit
    worth = worth if prior is None else worth * prior
    logs = [np.log(np.maximum(testimony.probability, FLOOR)) for testimony in testimonies]
    return np.asarray(np.tensordot(worth / worth.sum(), logs, axes=1))


def _typical_margin(E: Floats) -> float:
    """Median lead of the first class over the second; the unit of sharpness."""
    top = np.partition(E, -2, axis=1)
    margin = float(np.median(top[:, -1] - top[:, -2]))
    return margin if margin > 1e-9 else 1.0


def noise_rate_near(p: Floats, K: int, rho: float) -> float:
    """Share of wrong labels of largest likelihood near ``rho``, by expectation and maximisation."""
    for _ in range(20):
        rho = float(np.clip(1.0 - posterior_right(p, rho, K).mean(), _FEWEST, 0.9 * (K - 1) / K))
    return rho


def posterior_right(p: Floats, rho: float, K: int) -> Floats:
    """Probability that a label is right that others give the probability p, when a share rho is wrong."""
    right = p * (1.0 - rho)
    return right / np.maximum(right + (1.0 - p) * rho / (K - 1), 1e-300)


def _softmax(E: Floats) -> Floats:
    P = np.exp(E - E.max(axis=-1, keepdims=True))
    return np.asarray(P / P.sum(axis=-1, keepdims=True))
