"""Suspicion of labels and of verdicts, in the form that the commands show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lptml.cli.pairs import Pairs
from lptml.cli.prepare import Points


@dataclass(frozen=True)
class Judgement:
    """What is thought of every label (or verdict).

    Attributes
    ----------
    given : ndarray (n,) of str
    suspicion : ndarray (n,)
        Probability that it is wrong.
    likely : ndarray (n,) of str
        What it should be, if not what it is.
    noise_rate : float
        Estimated share of wrong ones.
    """

    given: np.ndarray[Any, Any]
    suspicion: np.ndarray[Any, Any]
    likely: np.ndarray[Any, Any]
    noise_rate: float

    @property
    def n_suspects(self) -> int:
        """How many are more likely wrong than right."""
        return int(np.sum(self.suspicion > 0.5))


def judge(points: Points, pairs: Pairs | None, seed: int) -> Judgement:
    """Judge every label by all other points, or every verdict by metrics fitted without it."""
    from lptml import suspects

    if pairs is None:
        assert points.y is not None
        trust = suspects.judge(points.X, points.y, random_state=seed)
        classes = np.unique(points.y)
        likely = classes[trust.posterior.argmax(axis=1)]
        return Judgement(points.y, trust.suspicion, likely, trust.noise_rate)
    assert pairs.y is not None
    words = np.array(["dissimilar", "similar"])
    found = suspects.judge_pairs(
        points.X[pairs.index], pairs.y, sample_weight=pairs.weight, random_state=seed
    )
    given, likely = words[(pairs.y > 0).astype(int)], words[(found.similar > 0.5).astype(int)]
    return Judgement(given, found.suspicion, likely, found.noise_rate)
