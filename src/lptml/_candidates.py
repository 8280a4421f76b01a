"""The metrics that validation compares (:mod:`lptml.selection`), and how far each is trusted beforehand.

Candidates are the preprocessings people use without learning, closed forms that use the labels, and metrics
learned from all pairs, pairs of neighbours or triplets, from several starts. They differ in what validation
has to choose: the constraints, how much the scatter within classes is shrunk, how much is left of the
directions that do not separate the classes (nothing: rank K - 1), and when learning stops.

Odds. How often a kind of candidate is good can be told beforehand from the shape of the data:

- rho, the number of features a point. With many points a feature, the scatter within classes is known well;
  with few, metrics that shrink it, or that learn which features to ignore, deserve more trust.
- q, how many of all directions can separate the centres of the classes, beyond the one that two classes have.
  A discriminant gains by ignoring the others, so the fewer classes for the features, the better it is.
- how much the scales of the features differ, which is how little the Euclidean metric means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lptml import priors
from lptml._from_labels import constraints_from_labels
from lptml.anneal import anneal
from lptml.constraints import Floats, Ints, factor
from lptml.labels import LabelledPairs
from lptml.scatter import SHRINKAGE, WithinClass, clipped, robust_scale, within_class

__all__ = ["LEARNED", "LOCAL_POINTS", "PRIORS", "Candidate", "Shape", "View", "initial"]

LOCAL_POINTS = 6000  # points that neighbours and triplets are made from
_LOCAL_CONSTRAINTS = 60_000
_BATCH_POINTS = 256
_BATCH_ROWS = 2048
_STEPS = 150
_WARM_STEPS = 100  # from a start that is close already
_FEW_STEPS = 25
_TEMPERATURE = 0.15  # ask for clear margins, not for the least cost
_FIRM = 3.0  # no logarithm of odds is larger than this, or smaller than minus this


class Shape(NamedTuple):
    """What can be told of data before any candidate is tried."""

    rho: float
    """Features a point."""
    q: float
    """2 (K - 2) / d, at most 1."""
    spread: float
    """Variance of the logarithms of the features' scales."""


@dataclass(frozen=True, eq=False)
class View:
    """The points a candidate may learn from."""

    X: Floats  # (n, d)
    codes: Ints  # (n,) classes 0 .. K - 1
    trust: Floats  # (n,)
    ratio: float  # u / l
    n_constraints: int | None
    rank: int | None  # of the metric, at most
    seed: int
    _fits: dict[float, WithinClass] = field(default_factory=dict, repr=False)

    @cached_property
    def scale(self) -> Floats:
        return robust_scale(self.X)

    @cached_property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1

    @property
    def shape(self) -> Shape:
        N, d = self.X.shape
        return Shape(d / N, min(1.0, 2.0 * (self.n_classes - 2) / d), float(np.var(np.log(self.scale))))

    @cached_property
    def pairs(self) -> LabelledPairs:
        """All pairs of the robustly scaled points, weighted by squared trust, both kinds alike."""
        return LabelledPairs.from_labels(
            self.X / self.scale,
            self.codes,
            bounds=(self.ratio, 1.0),
            point_weight=np.maximum(self.trust, 0.03) ** 2,
            class_weight="balanced",
        )

    @cached_property
    def share(self) -> Floats:
        """(K,) how much of the trust each class has."""
        return np.bincount(self.codes, weights=self.trust) / self.trust.sum()

    def classes(self, shrinkage: float) -> WithinClass:
        """Centres and scatter of the classes in robustly scaled features."""
        if shrinkage not in self._fits:
            self._fits[shrinkage] = within_class(
                clipped(self.X), self.codes, self.n_classes, self.trust, shrinkage=shrinkage
            )
        return self._fits[shrinkage]

    def half_round(self, units: Floats) -> WithinClass:
        """Centres and scatter in features divided by ``units``, the scatter half-way to a round one."""
        fit, ratio = self.classes(SHRINKAGE), self.scale / units
        scatter = fit.scatter * ratio[:, None] * ratio
        scatter += np.trace(scatter) / len(scatter) * np.eye(len(scatter))
        return WithinClass(fit.centres * ratio, scatter / 2, fit.tails)

    def take(self, rows: Ints) -> View:
        codes = np.unique(self.codes[rows], return_inverse=True)[1].astype(np.int64)
        return View(
            self.X[rows], codes, self.trust[rows], self.ratio, self.n_constraints, self.rank, self.seed
        )


Make = Callable[[View], Floats]  # -> L (k, d)


@dataclass(frozen=True)
class Candidate:
    """A way to make a metric of labelled points."""

    name: str
    constraints: str | None
    """"all", "neighbors" or "triplets"; None for metrics that are not learned from constraints."""
    uses_labels: bool
    make: Make
    odds: float = 0.0
    """Logarithm of the odds that it is good, before any score, where all of ``Shape`` is zero."""
    slopes: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """What the logarithm gains for each unit of rho, q and spread."""

    def log_odds(self, shape: Shape) -> float:
        return float(np.clip(self.odds + np.dot(self.slopes, shape), -_FIRM, _FIRM))

    def build(self, view: View) -> Floats:
        """L (k, d), of the rank that the view allows."""
        L = self.make(view)
        return L if view.rank is None else priors.project(L, view.X, view.rank)


def _annealed(view: View, source: Any, start: Floats, steps: int, first_temperature: float) -> Floats:
    """L of the metric learned from a source in robustly scaled features, from a start in original ones."""
    L = start * view.scale
    A = anneal(
        source,
        L.T @ L,
        steps=steps,
        first_temperature=first_temperature,
        final_temperature=_TEMPERATURE,
        rng=np.random.default_rng(view.seed),
        batch=_BATCH_POINTS if isinstance(source, LabelledPairs) else _BATCH_ROWS,
    )
    values, Q = np.linalg.eigh(A)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * Q.T / view.scale)


def _source(view: View, kind: str) -> Any:
    rng = np.random.default_rng(view.seed)
    count = view.n_constraints
    if kind != "all":  # these are stored, unlike all pairs
        count = min(count or _LOCAL_CONSTRAINTS, _LOCAL_CONSTRAINTS)
        if len(view.codes) > LOCAL_POINTS:
            view = view.take(np.sort(rng.choice(len(view.codes), LOCAL_POINTS, replace=False)))
    if np.bincount(view.codes).max() < 2:
        kind = "all"  # no point has a neighbour of its class
    return constraints_from_labels(kind, view.pairs, count, rng).source


def _learned(
    name: str,
    kind: str,
    start: Make,
    steps: int,
    first_temperature: float,
    odds: float = 0.0,
    slopes: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Candidate:
    def make(view: View) -> Floats:
        return _annealed(view, _source(view, kind), start(view), steps, first_temperature)

    return Candidate(name, kind, True, make, odds, slopes)


def initial(A: Floats, d: int) -> Candidate:
    """The metric A that the user proposes."""
    if A.shape != (d, d):
        raise ValueError(f"initial_metric must have shape ({d}, {d}), got {A.shape}")
    L = factor(A)
    if L is None:
        raise ValueError("initial_metric must be positive semidefinite")
    return Candidate("initial metric", None, False, lambda view: L)


def _within(shrinkage: float) -> Make:
    return lambda view: priors.within(view.classes(shrinkage), view.scale)


def _discriminant(shrinkage: float, rest: float) -> Make:
    return lambda view: priors.discriminant(view.classes(shrinkage), view.scale, view.share, rest)


def _half_euclidean(view: View) -> Floats:
    units = np.full(view.X.shape[1], view.scale.max())  # one for all; its size makes no difference
    return priors.within(view.half_round(units), units)


def _half_standardised(view: View) -> Floats:
    units = 1.0 / priors.standardised(view.X).diagonal()
    return priors.discriminant(view.half_round(units), units, view.share, 3.0)


def _identity(view: View) -> Floats:
    return priors.identity(view.X)


def _robust(view: View) -> Floats:
    return priors.robust(view.X)


_round = _within(SHRINKAGE)

#: The first is the reference: what one would use without learning.
PRIORS = (
    Candidate("standardised", None, False, lambda view: priors.standardised(view.X), -1.0),
    Candidate("identity", None, False, _identity, -2.0, (8.0, 3.0, -1.0)),
    Candidate("robustly scaled", None, False, _robust, -2.0),
    Candidate("whitened", None, False, lambda view: priors.whitened(view.X), -2.0),
    Candidate("within classes", None, True, _round, 3.0, (-25.0, 4.0, 0.0)),
    Candidate("within classes, shrunk", None, True, _within(0.5), -0.5, (0.0, 2.0, 0.0)),
    Candidate("within classes, half Euclidean", None, True, _half_euclidean, 0.0, (0.0, 3.0, -1.0)),
    Candidate("discriminant", None, True, _discriminant(SHRINKAGE, 0.3), 2.5, (-5.0, -6.0, 0.0)),
    Candidate("discriminant, blunt", None, True, _discriminant(SHRINKAGE, 1.0), 2.5, (-5.0, -6.0, 0.0)),
    Candidate("discriminant, shrunk", None, True, _discriminant(0.5, 0.3), 2.0, (5.0, -6.0, 0.0)),
    Candidate("discriminant, low rank", None, True, _discriminant(0.5, 0.0), 4.0, (5.0, -8.0, 0.0)),
    Candidate("discriminant, half standardised", None, True, _half_standardised, -1.0, (15.0, -4.0, 0.0)),
)
LEARNED: dict[str, tuple[Candidate, ...]] = {
    "all": (
        _learned("all pairs", "all", _robust, _STEPS, 2.0, 0.0, (10.0, 0.0, 0.0)),
        _learned("all pairs, from within classes", "all", _round, _WARM_STEPS, 0.5, 0.0, (0.0, 2.0, 0.0)),
        _learned("all pairs, stopped early", "all", _round, _FEW_STEPS, 0.5),
    ),
    "neighbors": (
        _learned(
            "neighbours, from within classes", "neighbors", _round, _WARM_STEPS, 0.5, 3.5, (0.0, -8.0, 0.0)
        ),
    ),
    "triplets": (
        _learned(
            "triplets, from within classes", "triplets", _round, _WARM_STEPS, 0.5, -1.0, (10.0, 0.0, 0.0)
        ),
        _learned(
            "triplets, from identity", "triplets", _identity, _WARM_STEPS, 0.25, -1.5, (12.0, 3.0, -1.0)
        ),
    ),
}
