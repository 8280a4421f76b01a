"""How far each label can be trusted, judged by all other points.

1. Scores, each made without the label in question (:mod:`lptml.noise.evidence`): a discriminant under the
   within-class metric, and out-of-bag probabilities of two random forests. In the second forest a label
   counts as far as the discriminant trusts it. Or a user's own probabilities alone.
2. Each is brought to probabilities by one sharpness, and the logarithms of all are averaged
   (:func:`lptml.noise.noise_model.combine`).
3. The share of wrong labels and the sharpness of the average are fitted together, which gives the posterior
   probability that the label is wrong (:mod:`lptml.noise.noise_model`).
4. That supposes wrong labels here and there. Where they lie together, forests learn them, and just the
   discriminant, which is too rigid to, can tell. So the suspicion is at least half of the probability from
   the discriminant alone, less the less it knows (:func:`lptml.noise.noise_model.mixed_suspicion`).

A label is suspected for contradicting its point's features, never for where the point lies: that is
:mod:`lptml.noise.outlying`. The order of the rows does not matter: they are sorted first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from lptml._threads import SMALL, single_threaded
from lptml.constraints import Floats, Ints
from lptml.constraints.span import span_of_points
from lptml.noise import evidence
from lptml.noise.noise_model import Fitted, combine, detected, fit_noise, mixed_suspicion
from lptml.noise.outlying import distance_to_quarter
from lptml.points.scatter import clipped, robust_scale

FLOOR = 1e-3  # least trust in a label, so that none loses its weight altogether
_REFERENCE_RATE = 0.1  # share of wrong labels at which it is asked whether they would be seen
_POWER = 0.5  # least share of them that must be seen to say that labels can be judged
_AMBIGUOUS = 0.25  # chance that the best guess from the features is wrong, from which a row is ambiguous


class Verdict(StrEnum):
    """What is said about a label."""

    WRONG = "likely wrong"
    AMBIGUOUS = "ambiguous"
    FINE = "fine"
    CANNOT_JUDGE = "cannot judge"


@dataclass(frozen=True, eq=False)
class Trust:
    """What all other points say about every label.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.noise.trust import trust_labels
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[-4.0, 0.0], [4.0, 0.0]], 30, axis=0)
    >>> y = np.repeat([0, 1], 30)
    >>> y[[0, 40]] = 1, 0
    >>> trust = trust_labels(X, y, 2)
    >>> np.flatnonzero(trust.suspects), trust.can_judge
    (array([ 0, 40]), True)
    >>> sorted({str(verdict) for verdict in trust.verdicts})
    ['fine', 'likely wrong']
    """

    codes: Ints
    """(N,): the given labels."""
    probability: Floats
    """(N, K): the classes of every point according to the other points, whatever its own label says."""
    suspicion: Floats
    """(N,): probability that the given label is wrong."""
    noise_rate: float
    """Estimated share of wrong labels."""
    noise_interval: tuple[float, float]
    """Where that share lies with a probability of 90%."""
    outlyingness: Floats
    """(N,): how many times as far out as usual the point lies, whatever its label."""
    trusted: NDArray[np.bool_]
    """(N,): labels that were said to be right."""

    @property
    def trust(self) -> Floats:
        """(N,): probability that the given label is right."""
        return 1.0 - self.suspicion

    @property
    def suspects(self) -> NDArray[np.bool_]:
        """(N,): labels that are more likely wrong than right."""
        return self.suspicion > 0.5

    @property
    def suggested(self) -> Ints:
        """(N,): the most likely class other than the given one."""
        if self.probability.shape[1] < 2:
            return self.codes
        other = self.probability.copy()
        other[np.arange(len(other)), self.codes] = -1.0
        return np.asarray(other.argmax(axis=1))

    @property
    def posterior(self) -> Floats:
        """(N, K): the classes after the given label is heard too."""
        own = np.zeros(self.probability.shape, dtype=bool)
        own[np.arange(len(own)), self.codes] = True
        others = np.where(own, 0.0, self.probability)
        total = np.maximum(others.sum(axis=1, keepdims=True), 1e-300)
        doubt = self.suspicion[:, None]
        return np.where(own, 1.0 - doubt, doubt * others / total)

    @property
    def ambiguity(self) -> Floats:
        """(N,): probability that the class which the features suggest most is not the point's."""
        return np.asarray(1.0 - self.probability.max(axis=1))

    @property
    def power(self) -> float:
        """Share of wrong labels that would be seen (suspicion above one half), were a tenth or more wrong."""
        if self.probability.shape[1] < 2 or len(self.codes) == 0:
            return 0.0
        return detected(self.probability, max(self.noise_rate, _REFERENCE_RATE))

    @property
    def can_judge(self) -> bool:
        """Whether the features tell so much about the labels that most wrong ones would be seen."""
        return self.power >= _POWER

    @property
    def why(self) -> str:
        """In words, what ``can_judge`` rests on."""
        low, high = self.noise_interval
        share = f"the share of wrong labels is between {low:.0%} and {high:.0%}"
        if self.probability.shape[1] < 2:
            return "there is only one class, so no label can be told to be wrong"
        seen = f"about {self.power:.0%} of wrong labels would be seen"
        if self.can_judge:
            return f"{seen}; {share}"
        return f"the features say too little about the labels: {seen}; {share}"

    @property
    def verdicts(self) -> NDArray[np.object_]:
        """(N,): a :class:`Verdict` for each label.

        Likely wrong: more likely wrong than right. Otherwise cannot judge, if that holds for the data;
        ambiguous, if the features suggest another class or have one chance in four to suggest the wrong one;
        else fine, as are labels that were said to be right.
        """
        given = self.probability[np.arange(len(self.codes)), self.codes]
        unclear = (self.ambiguity > _AMBIGUOUS) | (given < self.probability.max(axis=1))
        out = np.full(len(self.codes), Verdict.FINE, dtype=object)
        out[unclear] = Verdict.AMBIGUOUS
        if not self.can_judge:
            out[:] = Verdict.CANNOT_JUDGE
        out[self.suspects] = Verdict.WRONG
        out[self.trusted] = Verdict.FINE
        return out


def trust_labels(
    X: Floats,
    codes: Ints,
    n_classes: int,
    *,
    weight: Floats | None = None,
    probabilities: Floats | None = None,
    trusted: NDArray[np.bool_] | None = None,
    rng: np.random.Generator | None = None,
    progress: evidence.Advance | None = None,
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
        How much each point counts when others are judged.
    probabilities : array of shape (N, K), optional
        Class probabilities from a model that has not seen the label of the point, instead of ours.
    trusted : array of bool of shape (N,), optional
        Labels that are known to be right.
    rng : numpy Generator, optional
        Draws the trees; a fixed seed by default.
    progress : callable, optional
        Told ``(done, total)`` steps.

    Returns
    -------
    Trust
    """
    N, K = len(X), n_classes
    known = np.zeros(N, dtype=bool) if trusted is None else trusted
    present, compact = np.unique(codes, return_inverse=True)
    if len(present) < 2 or N < 3:  # nothing to compare with
        probability = np.eye(max(K, 1))[codes]
        return Trust(codes, probability, np.zeros(N), 0.0, (0.0, 1.0), np.ones(N), known)
    rng = np.random.default_rng(0) if rng is None else rng
    given = np.ones(N) if weight is None else weight / weight.mean()
    order = np.lexsort((given, compact, *X.T[::-1]))
    with single_threaded(N <= SMALL):
        ordered = X[order]
        labels, sure = compact[order], known[order]
        if probabilities is None:
            fitted = _judged(ordered, labels, len(present), given[order], sure, rng, progress)
        else:
            scores = np.log(np.maximum(probabilities[order][:, present], 1e-12))
            fitted = fit_noise(combine([fit_noise(scores, labels, sure)]), labels, sure)
        fitted = _restored(fitted, order, present, K)
        outlying = np.empty(N)
        outlying[order] = distance_to_quarter(ordered)
    return Trust(
        codes, fitted.probability, fitted.suspicion, fitted.noise_rate, fitted.interval, outlying, known
    )


def _judged(
    X: Floats,
    codes: Ints,
    K: int,
    weight: Floats,
    trusted: NDArray[np.bool_],
    rng: np.random.Generator,
    progress: evidence.Advance | None,
) -> Fitted:
    """What the discriminant and the forests say about labels in 0 .. K - 1, all of which occur."""
    Z = clipped(X)
    if Z.shape[1] > len(Z):
        Z = span_of_points(Z, np.ones(Z.shape[1])).coordinates(Z)
    rigid = fit_noise(evidence.discriminant(Z, codes, K, weight), codes, trusted)
    Z = np.arcsinh((X - np.median(X, axis=0)) / robust_scale(X))  # in range of single precision
    fits = [rigid]
    for number, trust in enumerate((np.ones(len(X)), np.maximum(1.0 - rigid.suspicion, FLOOR))):
        step = _part(number, 2, progress)
        votes = evidence.forest(Z, codes, K, weight * trust, rng, step)
        fits.append(fit_noise(np.log(votes), codes, trusted))
    whole = fit_noise(combine(fits), codes, trusted)
    return replace(whole, suspicion=mixed_suspicion(whole, rigid))


def _part(number: int, parts: int, progress: evidence.Advance | None) -> evidence.Advance:
    """Progress of one of several parts that take as many steps."""

    def step(done: int, total: int) -> None:
        if progress is not None:
            progress(number * total + done, parts * total)

    return step


def _restored(fitted: Fitted, order: Ints, present: Ints, K: int) -> Fitted:
    """The same in the given order of the points, with columns for classes that no point has."""
    probability = np.zeros((len(order), K))
    probability[np.ix_(order, present)] = fitted.probability
    suspicion = np.empty(len(order))
    suspicion[order] = fitted.suspicion
    return replace(fitted, probability=probability, suspicion=suspicion)
