"""Choose the metric of labelled points by validation: do no harm.

The metric that violates least of the training constraints is not always the one that generalises best: all
pairs of a class of several clusters cannot be close, and with few points in many dimensions any learner
overfits. So candidates compete (``lptml._candidates``): the preprocessings people use without learning,
closed forms, and metrics learned from all pairs, pairs of neighbours or triplets. The pipeline is

    labels ──> trust (lptml.trust) ──> candidates, cross-fitted ──> scores ──> weights ──> their mean metric

Score. The points are dealt into three folds. A candidate that uses labels is fitted without a fold's points,
and each of these is then classified by its k nearest neighbours among all other points, k = 4 and 8, which
vote with their given labels, as they will behind the metric. A point scores how right the verdicts are
according to what is believed about it (``lptml.trust``): where no label is suspected that is its own label,
and where many are wrong, the scores of the others are not drowned in theirs.

A candidate whose first folds are clearly worse than the best so far is not fitted to the others.

Weights. A hundred points cannot tell candidates apart that differ by a percent, and picking the luckiest
costs about one. So the result is the mean of the candidates' matrices, brought to the same median distance,
with weights odds * exp(-0.75 z^2): z is how many standard errors a candidate scores behind the best one, over
the same points, so that what may be chance counts little and what cannot be counts fully. The odds say how
often such a candidate is good on data of this shape, without looking at the scores
(``lptml._candidates``); with less than one point a feature, the standardised metric takes over.
Where labels are wrong, the mean is then turned a little until fewer votes go wrong (``lptml.votes``).
``validation=None`` in :class:`lptml.LPTML_Supervised` does without all this.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lptml import priors
from lptml._candidates import LEARNED, PRIORS, Candidate, View, initial
from lptml._nearest import nearest
from lptml._progress import Display, make_display
from lptml._threads import SMALL, single_threaded
from lptml.bounds import bounds_for
from lptml.constraints import Floats, Ints
from lptml.labels import LabelledPairs
from lptml.trust import Trust, trust_labels
from lptml.validation import check_points, check_weight
from lptml.votes import NEIGHBORS, adjusted, rightness

__all__ = ["Selected", "Tried", "deal", "select"]

FOLDS = 3
#: Points that candidates are compared on; more are sampled. Scores are then known to half a percent.
VALIDATION_POINTS = 3000
_SHARPNESS = 1.5  # times the likelihood's exponent z^2 / 2 that two candidates are equally good
_CAUTION = 4.0  # times (features a point)^2: what the logarithms of the odds lose against the reference
_NEGLIGIBLE = 0.03  # of the largest weight; candidates below it are left out of the mean
_MOST = 8  # candidates in the mean
_HOPELESS = 2.0  # standard errors behind the best at which a candidate is given up


@dataclass(frozen=True)
class Tried:
    """A candidate and how it did."""

    name: str
    """For example "standardised" or "all pairs"."""
    constraints: str | None
    """"all", "neighbors" or "triplets"; None for metrics that are not learned from constraints."""
    score: float
    """Mean score of the points."""
    advantage: float
    """Mean score above that of the standardised metric."""
    error: float
    """Standard error of the advantage."""
    weight: float
    """Its share of the mean."""
    seconds: float
    """Time to fit and score it."""


@dataclass(frozen=True, eq=False)
class Selected:
    """The mean of the best candidates and the table of all that were tried."""

    A: Floats
    """(d, d), at the scale that violates least of all pairs at ``bounds``."""
    components: Floats
    """L (k, d) with A = L'L."""
    name: str
    """The candidate of largest weight in ``table``."""
    constraints: str
    """The constraints that one was learned from; "all" for a prior metric."""
    bounds: tuple[float, float]
    """(u, l)"""
    table: tuple[Tried, ...]
    """Every candidate, in the order tried."""
    trust: Trust
    """What the witnesses say about the labels."""

    @property
    def suspicion(self) -> Floats:
        """(N,): probability that the given label is wrong."""
        return self.trust.suspicion


def select(
    X: ArrayLike,
    y: ArrayLike,
    *,
    constraints: str = "auto",
    n_constraints: int | None = None,
    bounds: Any = "auto",
    n_components: int | None = None,
    sample_weight: ArrayLike | None = None,
    initial_metric: ArrayLike | None = None,
    trust: Trust | None = None,
    adjust: bool = True,
    time_limit: float | None = None,
    random_state: int | None = None,
    verbose: int = 0,
) -> Selected:
    """Choose a metric for labelled points among prior and learned ones; see the module's docstring.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Points.
    y : array-like of shape (N,)
        Labels of any type, at least two classes.
    constraints : {"auto", "all", "neighbors", "triplets"}
        What candidates learn from; "auto" lets all kinds compete.
    n_constraints : int, optional
        Pairs of each kind, or triplets, to draw; all of them by default.
    bounds : "auto", float, (u, l) or ("percentile", a, b)
        As for :class:`lptml.LPTML_Supervised`; candidates learn with the ratio u / l.
    n_components : int, optional
        Largest rank of the metric.
    sample_weight : array-like of shape (N,), optional
        Weights of the points.
    initial_metric : array-like of shape (d, d), optional
        One more candidate.
    trust : Trust, optional
        Trust in the labels where it is known already.
    adjust : bool
        Whether to adjust the metric to wrong labels that vote; not for voters that are believed only as far
        as they are trusted.
    time_limit : float, optional
        Seconds after which no further candidate is tried.
    random_state : int, optional
        The same number gives the same metric, bit for bit; None is 0.
    verbose : int
        Above 0, a bar shows the candidates tried.

    Returns
    -------
    Selected

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lptml.selection import select
    >>> X, y = load_wine(return_X_y=True)
    >>> chosen = select(X, y)
    >>> scores = {tried.name: tried.score for tried in chosen.table}
    >>> scores[chosen.name] > scores["standardised"] > scores["identity"]
    True
    """
    points, codes, weight = _check(X, y, sample_weight)
    d = points.shape[1]
    K = int(codes.max()) + 1
    if constraints not in ("auto", *LEARNED):
        raise ValueError(f"constraints must be 'auto' or one of {sorted(LEARNED)}, got {constraints!r}")
    if n_components is not None and not 1 <= n_components <= d:
        raise ValueError(f"n_components must lie in 1..{d}, got {n_components}")
    deadline = None if time_limit is None else time.monotonic() + time_limit
    seed = 0 if random_state is None else random_state
    rng = np.random.default_rng(seed)
    if trust is None:
        trust = trust_labels(points, codes, K, weight=weight, rng=rng)
    everything = LabelledPairs.from_labels(points, codes, bounds=(1.0, 1.0), point_weight=weight)
    u, l = bounds_for(bounds, everything)
    given = trust.trust if weight is None else trust.trust * weight / weight.mean()
    view = View(points, codes, given, u / l, n_constraints, n_components, seed)
    candidates = list(PRIORS)
    for kind, learners in LEARNED.items():
        if constraints in ("auto", kind):
            candidates += learners
    if initial_metric is not None:
        candidates.append(initial(np.asarray(initial_metric, dtype=np.float64), d))
    display = make_display(verbose, len(candidates), unit="candidate")
    with single_threaded(len(points) <= SMALL), display:
        table = _compare(view, candidates, trust.posterior, weight, rng, deadline, display)
        L = _mean(view, candidates, table, deadline)
        if adjust and (deadline is None or time.monotonic() < deadline):
            L = adjusted(view, L, trust.noise_rate)
    winner = max(table, key=lambda tried: tried.weight)
    pairs = LabelledPairs.from_labels(points, codes, bounds=(u, l), point_weight=weight)
    scale = pairs.best_scale(L.T @ L).scale
    L = np.sqrt(scale if scale > 0 else 1.0) * L
    return Selected(L.T @ L, L, winner.name, winner.constraints or "all", (u, l), table, trust)


def _check(X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Floats, Ints, Floats | None]:
    points, labels = check_points(X, "X", ndim=2), np.asarray(y)
    if labels.shape != (len(points),):
        raise ValueError(f"y must have one label a point: expected {len(points)}, got shape {labels.shape}")
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    if len(points) < 2 or codes.max() < 1:
        raise ValueError("y must hold at least two classes")
    return points, codes, None if sample_weight is None else check_weight(sample_weight, len(points))


def _mean(
    view: View, candidates: list[Candidate], table: tuple[Tried, ...], deadline: float | None
) -> Floats:
    """L of the weighted mean of the candidates, each fitted to all points; at the deadline, of the first."""
    chosen = [(tried.weight, candidate) for tried, candidate in zip(table, candidates) if tried.weight > 0]
    parts: list[tuple[float, Floats]] = []
    for weight, candidate in sorted(chosen, key=lambda each: -each[0]):
        if parts and deadline is not None and time.monotonic() > deadline:
            break
        parts.append((weight, candidate.build(view)))
    L = priors.mean(view.X[:: max(1, len(view.X) // VALIDATION_POINTS)], parts)
    return L if view.rank is None else priors.project(L, view.X, view.rank)


def _weights(scores: Floats, w: Floats, log_odds: Floats) -> Floats:
    """The share of each candidate in the mean, from its scores (candidates, points); NaN: given up."""
    whole = np.isfinite(scores).all(axis=1)
    best = scores[int(np.argmax(np.where(whole, scores @ w, -np.inf)))]
    logarithm = np.full(len(scores), -np.inf)
    for k in np.flatnonzero(whole):
        behind, error = _difference(scores[k], best, w)
        logarithm[k] = log_odds[k] - _SHARPNESS * (behind / error) ** 2 / 2
    weights = np.exp(logarithm - logarithm.max())
    weights[weights < max(_NEGLIGIBLE, np.sort(weights)[-_MOST:][0])] = 0.0
    return np.asarray(weights / weights.sum())


def _compare(
    view: View,
    candidates: list[Candidate],
    beliefs: Floats,
    weight: Floats | None,
    rng: np.random.Generator,
    deadline: float | None,
    display: Display,
) -> tuple[Tried, ...]:
    """Score all candidates on the same points and folds; the reference is the first."""
    rows, fold = deal(view.codes, FOLDS, rng, VALIDATION_POINTS)
    sample = view.take(rows)
    believed = beliefs[np.ix_(rows, np.unique(view.codes[rows]))]  # (n, K), for the classes of the sample
    without = [sample.take(np.flatnonzero(fold != f)) for f in range(FOLDS)]
    w = np.ones(len(rows)) if weight is None else weight[rows]
    tried: list[tuple[Floats, float]] = []  # scores of the points, NaN where given up; seconds
    best: Floats | None = None
    for candidate in candidates:
        if tried and deadline is not None and time.monotonic() > deadline:
            break
        start = time.perf_counter()
        scores = _scores(candidate, sample, believed, without, fold, w, best)
        if best is None or (np.isfinite(scores).all() and w @ scores > w @ best):
            best = scores
        tried.append((scores, time.perf_counter() - start))
        display.show(len(tried), f"best score {w @ best / w.sum():.4f}")
    shape = sample.shape
    log_odds = np.array([candidate.log_odds(shape) for candidate in candidates[: len(tried)]])
    log_odds[1:] -= _CAUTION * shape.rho**2
    weights = _weights(np.array([scores for scores, _ in tried]), w, log_odds)
    reference = tried[0][0]
    table = []
    for candidate, (scores, seconds), weight_in_mean in zip(candidates, tried, weights):
        known = np.isfinite(scores)
        advantage, error = _difference(scores[known], reference[known], w[known])
        score = float(w[known] @ scores[known] / w[known].sum())
        table.append(
            Tried(
                candidate.name,
                candidate.constraints,
                score,
                advantage,
                error,
                float(weight_in_mean),
                seconds,
            )
        )
    return tuple(table)


def _difference(scores: Floats, others: Floats, w: Floats) -> tuple[float, float]:
    """Mean difference and its standard error, as if one point more differed by one.

    That point keeps a difference seen on a handful of points from looking certain.
    """
    better = scores - others
    error = np.sqrt((w**2 * better**2).sum() + (w**2).mean()) / w.sum()
    return float(w @ better / w.sum()), float(error)


def deal(codes: Ints, folds: int, rng: np.random.Generator, most: int | None = None) -> tuple[Ints, Ints]:
    """Rows (at most ``most`` of them) and the fold of each; every class is dealt out evenly.

    Examples
    --------
    >>> rows, fold = deal(np.array([0, 1, 0, 1]), 2, np.random.default_rng(0))
    >>> [sorted(np.array([0, 1, 0, 1])[fold == f].tolist()) for f in range(2)]
    [[0, 1], [0, 1]]
    """
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    if most is not None and len(codes) > most:
        order = order[np.linspace(0, len(codes) - 1, most).astype(np.int64)]
    fold = np.arange(len(order)) % folds
    back = np.argsort(order, kind="stable")
    return order[back], fold[back]


def _scores(
    candidate: Candidate,
    sample: View,
    beliefs: Floats,
    without: list[View],
    fold: Ints,
    w: Floats,
    best: Floats | None,
) -> Floats:
    """(n,) score of every point, by neighbours under a metric fitted without its fold; NaN: given up."""
    if not candidate.uses_labels:
        return _nearest_score(sample, beliefs, candidate.build(sample), np.arange(len(fold)))
    scores = np.full(len(fold), np.nan)
    for f, fitted in enumerate(without):
        inside = np.flatnonzero(fold == f)
        if not len(inside):
            continue
        # A metric cannot be learned from one class; then the candidate stands as the default would.
        L = priors.standardised(sample.X) if fitted.n_classes < 2 else candidate.build(fitted)
        scores[inside] = _nearest_score(sample, beliefs, L, inside)
        known = np.isfinite(scores)
        if best is not None:
            behind, error = _difference(scores[known], best[known], w[known])
            if behind < -_HOPELESS * error:
                break
    return scores


def _nearest_score(sample: View, beliefs: Floats, L: Floats, rows: Ints) -> Floats:
    """How right the verdicts of the nearest other points are about these rows."""
    Z = (sample.X - sample.X.mean(axis=0)) @ L.T
    near = nearest(Z, Z[rows], min(max(NEIGHBORS), len(Z) - 1), own=rows)
    return rightness(sample.codes[near], beliefs[rows])
