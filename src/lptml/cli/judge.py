"""Suspicion of labels and of verdicts, in the form that the commands show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lptml.cli.pairs import Pairs


@dataclass(frozen=True)
class Judgement:
    """What is thought of every label (or verdict).

    Attributes
    ----------
    given : ndarray (n,) of str
    suspicion : ndarray (n,)
        Probability that it is wrong.
    likely : ndarray (n,) of str, or None for verdicts
        The label it looks like.
    noise_rate : float or None
        Estimated share of wrong ones.
    """

    given: np.ndarray[Any, Any]
    suspicion: np.ndarray[Any, Any]
    likely: np.ndarray[Any, Any] | None
    noise_rate: float | None

    @property
    def n_suspects(self) -> int:
        """How many are more likely wrong than right."""
        return int(np.sum(self.suspicion > 0.5))


def judge_labels(X: np.ndarray[Any, Any], y: np.ndarray[Any, Any], seed: int) -> Judgement:
    """Judge the label of every point by all the others."""
    from lptml.trust import trust_labels

    classes, codes = np.unique(y, return_inverse=True)
    found = trust_labels(X, codes, len(classes), rng=np.random.default_rng(seed))
    return Judgement(y, found.suspicion, classes[found.posterior.argmax(axis=1)], found.noise_rate)


def judge_pairs(model: Any, pairs: Pairs) -> Judgement:
    """Judge the verdicts that a pairs learner was fitted on."""
    assert pairs.y is not None
    words = np.where(pairs.y > 0, "similar", "dissimilar")
    return Judgement(words, np.asarray(model.suspicion_, dtype=np.float64), None, None)
