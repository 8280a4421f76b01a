"""Which labels of pairs, similar or dissimilar, are likely wrong.

As for points (:mod:`lptml.noise.trust`), with other sources of scores: the pairs are dealt into five folds,
and three metrics are fitted to the others to judge each fold:

- **spread**: the log-likelihood ratio of two t distributions with the scatters of similar and of dissimilar
  differences (the metric of Köstinger et al. 2012, with heavy tails);
- **contrast**: the difference of the inverses of the two scatters as a metric, with so large a ridge that it
  does not depart from plain distances without need, in the given or in standardised features, whichever tell
  the two kinds apart better: for few pairs and many features;
- **violations**: a metric of small violation cost (:func:`lptml.refine.anneal.anneal`), and how far inside
  its threshold the pair lies.

Averaged, calibrated and turned into suspicion as for points, but each counts by its information about the
labels: with many features and few pairs the spread is worth next to nothing.

References
----------
.. [1] Köstinger, Hirzer, Wohlhart, Roth and Bischof (2012). Large scale metric learning from equivalence
       constraints. CVPR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lptml.constraints import ConstraintSet, Floats, Ints
from lptml.constraints.checks import check_pair_labels, check_points, check_tuples, check_weight
from lptml.constraints.span import span_of_vectors
from lptml.noise.evidence import Advance
from lptml.noise.noise_model import combine, fit_noise
from lptml.noise.outlying import distance_to_quarter
from lptml.noise.tables import as_table
from lptml.noise.trust import Trust
from lptml.points.scatter import TAILS

_FOLDS = 5
_EMPHASIS = (
    3.0  # power of the information; AUC of 1,000 pairs of Digits, 10% wrong: 0: .904, 1: .918, 3: .933
)
_STEPS = 100  # of the annealing
_TEMPERATURE = 0.3  # at which it stops: mild, for it must not follow wrong labels
_RIDGE = 0.05  # share of the mean variance added to both scatters
_MOST_PAIRS = 20_000  # pairs that the annealed metric is fitted to; more are sampled
_FEATURES = 3


@dataclass(frozen=True, eq=False)
class PairTrust(Trust):
    """What all other pairs say about the label of every pair; code 1 is similar, 0 dissimilar."""

    @property
    def similar(self) -> Floats:
        """(n,): probability that the pair is similar, whatever its own label says."""
        return self.probability[:, 1]


def pair_suspicion(
    pairs: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
) -> Floats:
    """The probability that the label of each pair is wrong, judged by metrics fitted without it.

    Parameters
    ----------
    pairs : array-like of shape (n, 2, d)
        Pairs of points, or (n, d) their difference vectors.
    y : array-like of shape (n,)
        +1 for similar, -1 for dissimilar.
    sample_weight : array-like of shape (n,), optional
        How much each pair counts when others are judged.
    random_state : int, optional
        Deals the folds; None is 0.

    Returns
    -------
    array of shape (n,)
        In [0, 1]; above one half the label is more likely wrong than right.

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
    progress: Advance | None = None,
) -> PairTrust:
    """Like :func:`pair_suspicion`, but returns all that is known about the labels."""
    V = _differences(pairs)
    labels = check_pair_labels(y, len(V))
    weight = check_weight(sample_weight, len(V), "sample_weight")
    similar = (labels > 0).astype(np.int64)  # 1 similar, 0 dissimilar
    none = np.zeros(len(V), dtype=bool)
    V = V / 2.0 ** np.frexp(np.abs(V).max(initial=0.0))[1]  # squares of squares stay within float64
    few = np.bincount(similar, minlength=2).min() < 2 or len(V) < 2 * _FOLDS
    idle = np.bincount(similar, weights=weight, minlength=2).min() == 0
    if few or idle or not V.any():
        shares = np.tile(np.bincount(similar, minlength=2) / len(V), (len(V), 1))
        return PairTrust(similar, shares, np.zeros(len(V)), 0.0, (0.0, 1.0), np.ones(len(V)), none)
    seed = 0 if random_state is None else random_state
    scores = _scores(V, similar, weight / weight.mean(), seed, progress or (lambda done, total: None))
    fits = [fit_noise(each, similar) for each in scores]
    fitted = fit_noise(combine(fits, emphasis=_EMPHASIS), similar)
    return PairTrust(
        similar,
        fitted.probability,
        fitted.suspicion,
        fitted.noise_rate,
        fitted.interval,
        distance_to_quarter(V),
        none,
    )


def pair_suspects(
    pairs: ArrayLike,
    y: ArrayLike,
    *,
    top: int | None = None,
    feature_names: Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
    progress: Advance | None = None,
) -> Any:
    """A table of the labels of all pairs, the most suspicious first, with reasons.

    The columns are those of :func:`lptml.noise.suspects.suspects` without neighbours; labels are "similar"
    and "dissimilar", outlyingness is that of the difference of the two points, and the features are those in
    which the pair is farthest apart beside other similar pairs, if "similar" is doubted, or else closest.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.suspects import pair_suspects
    >>> rng = np.random.default_rng(0)
    >>> V = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + [9.0, 0.0]])
    >>> y = np.repeat([1, -1], 60)
    >>> y[90] = 1
    >>> table = pair_suspects(V, y, feature_names=["width", "height"])
    >>> int(table.row[0]), table.label[0], table.suggested[0], table.features[0][0]
    (90, 'similar', 'dissimilar', 'width')
    """
    if top is not None and top < 0:
        raise ValueError(f"top must not be negative, got {top}")
    V = _differences(pairs)
    d = V.shape[1]
    names = [f"feature {j}" for j in range(d)] if feature_names is None else [str(n) for n in feature_names]
    if len(names) != d:
        raise ValueError(f"feature_names must have one name for each of {d} features, got {len(names)}")
    found = judge_pairs(pairs, y, sample_weight=sample_weight, random_state=random_state, progress=progress)
    return as_table(pair_columns(found, V, names, top))


def pair_columns(
    found: PairTrust, V: Floats, feature_names: Sequence[str], top: int | None = None
) -> dict[str, NDArray[Any]]:
    """The columns of the table of :func:`pair_suspects`, from what :func:`judge_pairs` found for V (n, d)."""
    order = np.argsort(-found.suspicion, kind="stable")[:top]
    words = np.array(["dissimilar", "similar"], dtype=object)
    features = np.empty(len(order), dtype=object)
    for place, terms in enumerate(_feature_terms(V, found)[order]):
        largest = np.argsort(-terms, kind="stable")[:_FEATURES]
        features[place] = tuple(feature_names[j] for j in largest if terms[j] > 0)
    return {
        "row": order,
        "label": words[found.codes[order]],
        "suggested": words[found.suggested[order]],
        "suspicion": found.suspicion[order],
        "ambiguity": found.ambiguity[order],
        "outlyingness": found.outlyingness[order],
        "verdict": np.array([str(each) for each in found.verdicts[order]], dtype=object),
        "features": features,
    }


def _differences(pairs: ArrayLike) -> Floats:
    if np.ndim(pairs) == 3:
        points = check_tuples(pairs, "pairs", 2)
        return points[:, 0] - points[:, 1]
    return check_points(pairs, "pairs", ndim=2)


def _feature_terms(V: Floats, found: PairTrust) -> Floats:
    """(n, d) by how much each feature speaks against the given label: log-odds of independent features."""
    spread = np.empty((2, V.shape[1]))
    for kind in (0, 1):
        mass = found.trust * (found.codes == kind)
        spread[kind] = mass @ V**2 / max(float(mass.sum()), 1e-300)
    least = np.where(spread.max() > 0, 1e-9 * spread.max(), 1.0)
    dissimilar, similar = np.maximum(spread, least)
    for_dissimilar = V**2 * (1.0 / similar - 1.0 / dissimilar) + np.log(similar / dissimilar)
    return np.asarray(np.where(found.codes[:, None] == 1, for_dissimilar, -for_dissimilar))


def _scores(V: Floats, similar: Ints, w: Floats, seed: int, step: Advance) -> list[Floats]:
    """The scores (n, 2) of the three metrics, each fold from the other four."""
    rng = np.random.default_rng(seed)
    size = np.sqrt((V**2).mean(axis=0))
    scaled = V / np.where(size > 0, size, 1.0)
    lengths = [_length(V), _length(scaled)]
    plain = np.ones(len(size))
    span = span_of_vectors(scaled, scale=plain)
    unscaled = (size / size.max()) ** 2 if size.max() > 0 else plain
    starts = [span.diagonal_inside(each) for each in (unscaled, plain)]
    given = span_of_vectors(V, scale=plain).coordinates(V)
    inside_span = span.coordinates(scaled)
    order = rng.permutation(len(V))
    fold = np.empty(len(V), dtype=np.int64)
    fold[order[np.argsort(similar[order], kind="stable")]] = np.arange(len(V)) % _FOLDS
    unlearned = [
        fit_noise(_column(_threshold(length, similar, w) - length), similar).information for length in lengths
    ]
    best = int(unlearned[1] >= unlearned[0])
    U = inside_span if best else given
    spread, contrast, violations = np.zeros((3, len(V)))
    for f in range(_FOLDS):
        tested, rest = fold == f, fold != f
        kinds, mass = similar[rest], w[rest]
        if not np.bincount(kinds, weights=mass, minlength=2).all():
            continue  # of one kind nothing is known
        spread[tested] = _spread(inside_span[rest], kinds, mass, inside_span[tested])
        contrast[tested] = _contrast(U[rest], kinds, mass, U[tested])
        violations[tested] = _violations(
            inside_span[rest], kinds, mass, inside_span[tested], starts[best], seed
        )
        step(f + 1, _FOLDS)
    return [_column(spread), _column(contrast), _column(violations)]


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


def _violations(V: Floats, similar: Ints, w: Floats, tested: Floats, start: Floats, seed: int) -> Floats:
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
