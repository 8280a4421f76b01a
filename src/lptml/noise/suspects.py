"""Suspects: which labels of points, and which verdicts on pairs, are likely wrong.

For labelled points the work is done by :mod:`lptml.noise.trust`. For bare pairs, of which just "similar" or
"dissimilar" is known, the same alternation of metric and trust runs on pairs: a verdict is judged by metrics
that were fitted without it. The pairs are dealt into five folds; three witnesses are fitted to the others,
each pair weighted by its trust, and testify about the fold:

- the **spread** of similar and of dissimilar differences: the log-likelihood ratio of two t distributions
  with the scatters of both kinds (the metric of Köstinger et al. 2012, with heavy tails);
- the **contrast**: the difference of the inverses of the two scatters as a metric, with so large a ridge that
  it does not depart from plain distances without need, in the given or in standardised features, whichever
  tell the kinds apart better: for few pairs and many features;
- the **metric** of small violation cost (:func:`lptml.refine.anneal.anneal`, stopped at a mild temperature):
  by how much the pair is on the right side of the threshold.

Testimonies are calibrated, combined and turned into trust as for points, and the mean over three rounds is
the final verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.constraints.checks import check_points, check_tuples, check_verdicts, check_weight
from lptml.constraints.span import span_of_vectors
from lptml.noise.trust import (
    Trust,
    calibrate,
    noise_rate_near,
    posterior_right,
    together,
    trust_labels,
)
from lptml.points.scatter import TAILS

__all__ = ["PairTrust", "judge", "judge_pairs", "pair_suspicion", "suspicion"]

_FOLDS = 5
_ROUNDS = 3
_STEPS = 100
_CREDIT = 3.0  # how much more an informative witness counts
_TEMPERATURE = 0.3
_RIDGE = 0.05  # share of the mean variance added to both scatters
_MOST_PAIRS = 20_000  # pairs that the annealed metric is fitted to; more are sampled


@dataclass(frozen=True, eq=False)
class PairTrust:
    """What the witnesses say about every verdict."""

    similar: Floats
    """(n,): probability that the pair is similar, whatever its own verdict says."""
    suspicion: Floats
    """(n,): probability that the verdict is wrong."""
    noise_rate: float
    """Estimated share of wrong verdicts."""

    @property
    def suspects(self) -> NDArray[np.bool_]:
        """(n,): verdicts that are more likely wrong than right."""
        return self.suspicion > 0.5


def suspicion(
    X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, random_state: int | None = None
) -> Floats:
    """How likely the label of each point is wrong, judged by all other points.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Points.
    y : array-like of shape (N,)
        Labels of any type; the number -1 marks an unlabelled point, of which nothing is claimed.
    sample_weight : array-like of shape (N,), optional
        How much each point counts as a witness.
    random_state : int, optional
        Draws the basis functions when there are more than 600 points; None is 0.

    Returns
    -------
    array of shape (N,)
        In [0, 1]; above one half the label is more likely wrong than right.

    See Also
    --------
    judge : The same with class probabilities and the estimated share of wrong labels.
    lptml.LabelCleaner : Drop or correct what is found.

    Examples
    --------
    >>> import lptml
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[3, 60, 120]] = [1, 2, 0]
    >>> sorted(lptml.suspicion(X, y).argsort()[-3:].tolist())
    [3, 60, 120]
    """
    labels = np.asarray(y)
    trust = judge(X, labels, sample_weight=sample_weight, random_state=random_state)
    out = np.zeros(len(labels))
    out[_labelled(labels)] = trust.suspicion
    return out


def judge(
    X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, random_state: int | None = None
) -> Trust:
    """Like :func:`suspicion`, but returns all that is known about the labelled points, in their order."""
    points, labels = check_points(X, "X", ndim=2), np.asarray(y)
    if labels.shape != (len(points),):
        raise ValueError(f"y must have one label a point: expected {len(points)}, got shape {labels.shape}")
    weight = None if sample_weight is None else check_weight(sample_weight, len(points), "sample_weight")
    known = _labelled(labels)
    if not known.any():
        raise ValueError("y labels no point: every label is -1")
    try:
        classes, inverse = np.unique(labels[known], return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y mixes labels of several types: {error}") from None
    codes = inverse.astype(np.int64)
    rng = np.random.default_rng(0 if random_state is None else random_state)
    given = None if weight is None else weight[known]
    if given is not None:
        idle = np.flatnonzero(np.bincount(codes, weights=given) == 0)
        if len(idle):
            label = classes[idle[0]]
            raise ValueError(
                f"sample_weight leaves no weight to the label {label!r}, of which nothing is known"
            )
    return trust_labels(points[known], codes, int(codes.max()) + 1, weight=given, rng=rng)


def _labelled(labels: NDArray[np.generic]) -> NDArray[np.bool_]:
    return np.asarray(labels != -1) if labels.dtype.kind in "if" else np.ones(len(labels), dtype=bool)


def pair_suspicion(
    pairs: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
) -> Floats:
    """How likely the verdict on each pair is wrong, judged by metrics fitted without it.

    Parameters
    ----------
    pairs : array-like of shape (n, 2, d)
        Pairs of points, or (n, d) their difference vectors.
    y : array-like of shape (n,)
        +1 for similar, -1 for dissimilar.
    sample_weight : array-like of shape (n,), optional
        How much each pair counts as a witness.
    random_state : int, optional
        Deals the folds; None is 0.

    Returns
    -------
    array of shape (n,)
        In [0, 1]; above one half the verdict is more likely wrong than right.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.suspects import pair_suspicion
    >>> rng = np.random.default_rng(0)
    >>> V = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + [9.0, 0.0]])
    >>> y = np.repeat([1, -1], 60)
    >>> y[[5, 90]] *= -1
    >>> np.sort(pair_suspicion(V, y).argsort()[-2:])
    array([ 5, 90])
    """
    return judge_pairs(pairs, y, sample_weight=sample_weight, random_state=random_state).suspicion


def judge_pairs(
    pairs: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
) -> PairTrust:
    """Like :func:`pair_suspicion`, but returns all that is known about the verdicts."""
    V = np.asarray(pairs)
    if V.ndim == 3:
        points = check_tuples(pairs, "pairs", 2)
        V = points[:, 0] - points[:, 1]
    else:
        V = check_points(pairs, "pairs", ndim=2)
    verdicts = check_verdicts(y, len(V))
    weight = check_weight(sample_weight, len(V), "sample_weight")
    similar = (verdicts > 0).astype(np.int64)  # 1 similar, 0 dissimilar
    V = V / 2.0 ** np.frexp(np.abs(V).max(initial=0.0))[1]  # squares of squares stay within float64
    few = np.bincount(similar, minlength=2).min() < 2 or len(V) < 2 * _FOLDS
    idle = np.bincount(similar, weights=weight, minlength=2).min() == 0
    if few or idle or not V.any():
        return PairTrust(similar.astype(np.float64), np.zeros(len(V)), 0.0)  # nobody could say otherwise
    return _judge_pairs(V, similar, weight / weight.mean(), 0 if random_state is None else random_state)


def _judge_pairs(V: Floats, similar: Ints, weight: Floats, seed: int) -> PairTrust:
    rng = np.random.default_rng(seed)
    size = np.sqrt((V**2).mean(axis=0))
    scaled = V / np.where(size > 0, size, 1.0)
    lengths = [_length(V), _length(scaled)]
    plain = np.ones(len(size))
    span = span_of_vectors(scaled, scale=plain)
    unscaled = (size / size.max()) ** 2 if size.max() > 0 else plain
    starts = [span.diagonal_inside(each) for each in (unscaled, plain)]
    given = span_of_vectors(V, scale=plain).coordinates(V)
    V = scaled = span.coordinates(scaled)
    order = rng.permutation(len(V))
    fold = np.empty(len(V), dtype=np.int64)
    fold[order[np.argsort(similar[order], kind="stable")]] = np.arange(len(V)) % _FOLDS
    own = np.arange(len(V))
    trust = np.ones(len(V))
    mean = np.zeros((len(V), 2))
    for _ in range(_ROUNDS):
        w = weight * np.maximum(trust, 1e-3)
        spread, contrast, metric = np.zeros((3, len(V), 2))
        unlearned = [
            calibrate(_column(_threshold(length, similar, w) - length), similar).likelihood
            for length in lengths
        ]
        best = int(unlearned[1] >= unlearned[0])
        U = scaled if best else given
        for f in range(_FOLDS):
            inside, outside = fold == f, fold != f
            if not np.bincount(similar[outside], weights=w[outside], minlength=2).all():
                continue  # of one kind nothing is known
            spread[inside, 1] = _spread(V[outside], similar[outside], w[outside], V[inside])
            contrast[inside, 1] = _contrast(U[outside], similar[outside], w[outside], U[inside])
            metric[inside, 1] = _metric(
                V[outside], similar[outside], w[outside], V[inside], starts[best], seed
            )
        testimonies = [calibrate(evidence, similar) for evidence in (spread, contrast, metric)]
        verdict = calibrate(together(testimonies, _CREDIT), similar)
        trust = posterior_right(verdict.probability[own, similar], verdict.noise_rate, 2)
        mean += verdict.probability / _ROUNDS
    rho = noise_rate_near(mean[own, similar], 2, verdict.noise_rate)
    return PairTrust(mean[:, 1], 1.0 - posterior_right(mean[own, similar], rho, 2), rho)


def _length(V: Floats) -> Floats:
    return np.log(np.maximum(np.einsum("ij,ij->i", V, V), 1e-300))


def _column(evidence: Floats) -> Floats:
    """(n, 2): the evidence for similar, beside none for dissimilar."""
    return np.stack([np.zeros(len(evidence)), evidence], axis=1)


def _threshold(length: Floats, similar: Ints, w: Floats) -> float:
    """The length that parts similar from dissimilar pairs best, both kinds counting alike."""
    order = np.argsort(length, kind="stable")
    kinds = np.bincount(similar, weights=w, minlength=2)
    gain = np.where(similar == 1, w, -w)[order] / kinds[similar[order]]
    return float(length[order[int(np.cumsum(gain).argmax())]])


def _spread(V: Floats, similar: Ints, w: Floats, tested: Floats) -> Floats:
    """Log-odds of similar against dissimilar for the tested differences, from the scatters of both kinds."""
    d, tail = V.shape[1], TAILS[0]
    D = d * (d + 1) / 2
    evidence = np.zeros((2, len(tested)))
    whole = V.T @ V / len(V) + _RIDGE * np.eye(d) * (V**2).mean()
    for kind in (0, 1):
        rows, mass = V[similar == kind], w[similar == kind]
        tails = mass
        for _ in range(4):  # reweight as for a t distribution
            own = rows.T @ (rows * tails[:, None]) / mass.sum()
            share = D / (D + mass.sum())  # few pairs: towards the scatter of all, at the same size
            scatter = (1.0 - share) * own + share * (np.trace(own) / np.trace(whole)) * whole
            scatter += 1e-9 * np.trace(scatter) * np.eye(d)
            q = np.einsum("ij,ij->i", rows, np.linalg.solve(scatter, rows.T).T)
            tails = mass * (tail + d) / (tail + q)
        q = np.einsum("ij,ij->i", tested, np.linalg.solve(scatter, tested.T).T)
        logdet = np.linalg.slogdet(scatter)[1]
        evidence[kind] = np.log(mass.sum()) - logdet / 2.0 - (tail + d) / 2.0 * np.log1p(q / tail)
    return np.asarray(evidence[1] - evidence[0])


def _contrast(V: Floats, similar: Ints, w: Floats, tested: Floats) -> Floats:
    """How far the tested differences are inside the threshold of the metric S^-1 - D^-1, ridges added."""
    ridge = max(float((V**2).mean()), 1e-300) * np.eye(V.shape[1])
    inverses = []
    for kind in (0, 1):
        rows, mass = V[similar == kind], w[similar == kind]
        inverses.append(np.linalg.inv(rows.T @ (rows * mass[:, None]) / mass.sum() + ridge))
    values, Q = np.linalg.eigh(inverses[1] - inverses[0])
    if not values[-1] > 0:  # similar pairs are the wider ones in every direction
        return np.zeros(len(tested))
    L = Q * np.sqrt(np.maximum(values, 0.0))
    return _threshold(_length(V @ L), similar, w) - _length(tested @ L)


def _metric(V: Floats, similar: Ints, w: Floats, tested: Floats, start: Floats, seed: int) -> Floats:
    """How far the tested pairs are inside the threshold of a metric of small violation cost."""
    from lptml.refine.anneal import anneal

    if len(V) > _MOST_PAIRS:
        rows = np.linspace(0, len(V) - 1, _MOST_PAIRS).astype(np.int64)
        V, similar, w = V[rows], similar[rows], w[rows]
    kinds = np.bincount(similar, weights=w, minlength=2)
    constraints = ConstraintSet.from_differences(
        V, np.where(similar == 1, 1, -1), bounds=(1.0, 1.0), weight=w / kinds[similar]
    )
    D = constraints.D
    A = anneal(
        constraints,
        start,
        steps=_STEPS,
        final_temperature=_TEMPERATURE,
        shrinkage=max(0.2, D / (D + len(V))),  # few pairs for so many entries: stay near the start
        rng=np.random.default_rng(seed),
        batch=4096,
    )
    A = A * constraints.best_scale(A).scale if constraints.best_scale(A).scale > 0 else A
    q = np.einsum("ij,ij->i", tested @ A, tested)
    return np.asarray(-np.log(np.maximum(q, 1e-12)))
