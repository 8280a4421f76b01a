"""From labelled points to constraints, and back to what is reported about the points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml._limits import OutOfTime, until
from lptml.constraints import ConstraintSet, psd_factor
from lptml.constraints.from_labels import Chosen, constraints_from_labels
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.labelled_triplets import LabelledTriplets
from lptml.constraints.span import Span, span_of_points
from lptml.estimators import _inputs
from lptml.estimators._constraints import each_as_one, merge_rows
from lptml.estimators._inputs import FloatArray
from lptml.estimators._lptml import LPTMLBase, seed
from lptml.estimators.base import SupervisedMixin
from lptml.noise.suspects import judge
from lptml.noise.trust import FLOOR, trust_labels
from lptml.points import priors


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled points: those given, and the distinct ones among them that are learned from."""

    given: FloatArray  # (N, d) points as given
    points: FloatArray  # (N, r) the same on coordinates of their span; of those in ``known``
    span: Span
    codes: NDArray[np.int64]  # (N,) -1: unlabelled
    weight: FloatArray | None  # (N,)
    known: NDArray[np.intp]  # rows that are labelled and weigh something
    rows: NDArray[np.intp]  # (n,) rows of the distinct points, in an order that the data alone determines
    place: NDArray[np.intp]  # (N,) number of each row's distinct point; -1: in none
    total: FloatArray | None  # (n,) weights of the distinct points; None: 1 each
    trust: FloatArray | None  # (n,) in the labels of the distinct points; None: all are taken as they are

    @property
    def X(self) -> FloatArray:
        """(n, r) distinct points."""
        return self.points[self.rows]

    @property
    def features(self) -> FloatArray:
        """(n, d) the features of the distinct points."""
        return self.given[self.rows]

    @property
    def y(self) -> NDArray[np.int64]:
        """(n,) their classes, numbered without gaps."""
        return np.unique(self.codes[self.rows], return_inverse=True)[1].astype(np.int64)

    @property
    def worth(self) -> FloatArray | None:
        """(n,) weights of the distinct points, times the trust in their labels; None: 1 each."""
        if self.trust is None or self.total is None:
            return self.total if self.trust is None else self.trust
        return self.total * self.trust

    def of_kind(self, kind: str) -> Labelled:
        """The points as constraints of a kind weigh them: just triplets by the trust in labels."""
        return self if kind == "triplets" else replace(self, trust=None)

    def take(self, index: NDArray[np.intp]) -> Labelled:
        """Just these of the distinct points."""
        total = None if self.total is None else self.total[index]
        rows = self.rows[index]
        number = np.arange(len(rows))
        return replace(
            self,
            given=self.given[rows],
            points=self.points[rows],
            codes=self.codes[rows],
            weight=total,
            known=number,
            rows=number,
            place=number,
            total=total,
            trust=None if self.trust is None else self.trust[index],
        )


class SupervisedBase(SupervisedMixin, LPTMLBase):
    """From labelled points to constraints; what LPTML_Supervised and LPTML_SupervisedCV share."""

    bounds_: tuple[float, float] | None

    def _labelled(self, X: Any, y: Any, sample_weight: Any, trust: Any, kinds: list[str]) -> Labelled:
        """Validate the input of fit, and judge the labels if constraints of these kinds weigh them."""
        points, codes = self._start_supervised(X, y)
        self._check_options(points.shape[1])
        weight = _inputs.check_weight(sample_weight, len(points))
        worth = _inputs.check_trust(trust, len(points))
        if worth is not None and "triplets" not in kinds:
            raise ValueError(
                'trust is about triplets: pairs count as they are given; use constraints="triplets"'
            )
        known = np.flatnonzero(codes >= 0 if weight is None else (codes >= 0) & (weight > 0))
        if len(np.unique(codes[known])) < 2:
            raise ValueError("sample_weight leaves just one class: at least two classes are needed")
        first, total, group = merge_rows(
            points[known], codes[known], None if weight is None else weight[known]
        )
        place = np.full(len(points), -1)
        place[known] = group
        plain = None if (total == 1).all() else total
        rows = known[first]
        span = span_of_points(points[rows])
        inside = span.coordinates(points)
        data = Labelled(points, inside, span, codes, weight, known, rows, place, plain, None)
        if "triplets" not in kinds:
            return data
        if worth is None:
            return replace(data, trust=self._trust(data))
        share = np.ones(len(known)) if weight is None else weight[known]
        each = np.bincount(group, weights=share * worth[known]) / np.bincount(group, weights=share)
        return replace(data, trust=_positive(each))

    def _trust(self, data: Labelled) -> FloatArray | None:
        """How far the labels can be trusted; None where there is no time to judge them."""
        try:
            with until(self._deadline(0.25)):
                return trust_in(data)
        except OutOfTime:
            return None

    def _prior_factor(self, prior: Any, data: Labelled) -> FloatArray:
        """L of the prior, or of the standardised metric where there is no time for it."""
        try:
            with until(self._deadline(0.5)):
                return prior_factor(prior, data)
        except OutOfTime:
            return prior_factor("standardized", data)

    def _check_kind(self, kind: str) -> None:
        """Refuse options that the constraints would ignore."""
        options: Any = self
        if kind == "triplets":
            for name, default in (("bounds", "auto"), ("class_weight", None)):
                if not _is(getattr(options, name), default):
                    raise ValueError(
                        f'{name} is about pairs: it has no effect with constraints="triplets"; '
                        'use constraints="all" or "neighbors"'
                    )

    def _pairs(self, data: Labelled, distinct: bool, features: bool = False) -> LabelledPairs:
        """All pairs of the distinct or of the given points (or of their features), at bounds of one."""
        options: Any = self
        rows = data.rows if distinct else data.known
        given = None if data.weight is None else data.weight[data.known]
        return LabelledPairs.from_labels(
            (data.given if features else data.points)[rows],
            data.codes[rows],
            bounds=(1.0, 1.0),
            point_weight=data.worth if distinct else given,
            class_weight=options.class_weight,
        )

    def _chosen(self, data: Labelled, kind: str, metric: FloatArray) -> Chosen:
        """The constraints of a kind, neighbours being those under the metric L."""
        options: Any = self
        pairs = self._pairs(data, distinct=True)
        self.bounds_ = None
        if kind != "triplets":
            each, all_given = (self._pairs(data, distinct, features=True) for distinct in (True, False))
            self.bounds_ = self._bounds(options.bounds, each, all_given)
            pairs = replace(pairs, bounds=self.bounds_)
        rng = np.random.default_rng(seed(options.random_state))
        return constraints_from_labels(kind, pairs, options.n_constraints, rng, metric)

    def _settle_labelled(self, data: Labelled, chosen: Chosen, learned: Any) -> None:
        """Set the fitted attributes that are about the given points."""
        options: Any = self
        if isinstance(chosen.source, LabelledPairs):
            assert self.bounds_ is not None, "pairs have bounds"
            given = replace(self._pairs(data, distinct=False), bounds=self.bounds_)
            ones = replace(given, similar_weight=1.0, dissimilar_weight=1.0, point_weight=None)
            plain = data.weight is None and options.class_weight is None
            self._report(learned, data.span, given, given if plain else ones, given.trivial_costs())
        else:
            trivial = _trivial_costs(data, chosen)
            self._report(learned, data.span, chosen.source, each_as_one(chosen.source), trivial)
        self.support_ = data.rows[chosen.points(learned.support)]
        self._judged(data)

    def _judged(self, data: Labelled) -> None:
        """Keep what the suspicion of the labels is found from."""
        self._remember(data.given, data.codes, data.weight, data.known)

    def _judge(
        self,
        X: FloatArray,
        codes: NDArray[np.int64],
        weight: FloatArray | None,
        known: NDArray[np.intp],
    ) -> FloatArray:
        suspicion = np.zeros(len(X))
        given = None if weight is None else weight[known]
        suspicion[known] = judge(X[known], codes[known], sample_weight=given).suspicion
        return suspicion


def trust_in(data: Labelled) -> FloatArray:
    """(n,) the probability that the label of each distinct point is right, judged by all others."""
    y = data.y
    found = trust_labels(data.features, y, int(y.max()) + 1, weight=data.total)
    return _positive(found.trust)


def _positive(trust: FloatArray) -> FloatArray:
    """Trust in units of the largest, so that no label is worth nothing and weights keep their size."""
    trust = np.maximum(trust, FLOOR)
    return trust / trust.max()


def prior_factor(prior: Any, data: Labelled) -> FloatArray:
    """L of a prior that is named or given as a matrix, on coordinates of the span."""
    if isinstance(prior, str):
        if prior == "identity" and data.span.basis is not None:
            return np.asarray(np.linalg.qr(data.span.basis, mode="r"))
        return priors.make_prior(prior, data.X, data.y, data.worth)
    matrix = _inputs.check_metric(prior, data.given.shape[1], "prior")
    assert matrix is not None, "a prior is a name or a matrix"
    return psd_factor(data.span.metric_inside(matrix))


def _trivial_costs(data: Labelled, chosen: Chosen) -> tuple[float, float]:
    """The costs of the trivial metrics; a multiple of the identity of the features is no such one inside."""
    source = chosen.source
    if data.span.basis is None or (isinstance(source, ConstraintSet) and source.W is None):
        return source.trivial_costs()
    x, near, far = chosen.points(np.arange(source.n)).T
    return LabelledTriplets(data.features, x, near[:, None], far[:, None], data.worth).trivial_costs()


def _is(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, str) and value == default)
