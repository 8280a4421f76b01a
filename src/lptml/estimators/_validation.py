"""LPTML_Supervised with validation: the metric comes from ``selection.select`` instead of the search."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from enum import Enum
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from lptml._learned import Learned
from lptml.constraints import ConstraintSet
from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.estimators._lptml import in_unit_scale
from lptml.labels import LabelledPairs

if TYPE_CHECKING:
    from lptml.selection import Selected

__all__ = ["SEARCH_OPTIONS", "adopt", "choose", "is_validated", "table"]

logger = logging.getLogger("lptml.selection")

#: Options that only the search has: where validation chooses, they would have no effect.
SEARCH_OPTIONS = (
    "max_trials",
    "epsilon",
    "objective",
    "refine",
    "regularization",
    "regularizer",
    "class_weight",
    "approximate_counting",
    "engine",
    "checkpoint",
)


class Status(Enum):
    """How a metric was found without a search."""

    CHOSEN = "chosen by validation"


def is_validated(estimator: Any) -> bool:
    """Whether validation chooses the metric; an option it would ignore decides against, or is refused."""
    if estimator.validation is None:
        return False
    parameters = signature(type(estimator)).parameters
    given = [
        name for name in SEARCH_OPTIONS if not _is_same(getattr(estimator, name), parameters[name].default)
    ]
    if given and estimator.validation != "auto":
        raise ValueError(
            f"validation={estimator.validation!r} leaves no effect to {', '.join(given)}: "
            "use validation=None for the metric of least cost"
        )
    return not given


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (np.ndim(value) == 0 and bool(value == default))


def choose(estimator: Any, distinct: LabelledPairs, initial_metric: Any, number: int) -> Selected:
    """Return what validation chooses for distinct weighted points, as a metric in their units."""
    from lptml._candidates import LOCAL_POINTS
    from lptml.selection import select

    start = _inputs.check_metric(initial_metric, distinct.d, "initial_metric")
    unit, factor = in_unit_scale(distinct)
    assert isinstance(unit, LabelledPairs)
    selected = select(
        unit.X,
        unit.y,
        constraints=estimator.constraints,
        n_constraints=estimator.n_constraints,
        bounds=unit.bounds,
        n_components=estimator.n_components,
        sample_weight=unit.point_weight,
        initial_metric=None if start is None else start / factor,
        time_limit=estimator.time_limit,
        random_state=number,
        verbose=estimator.verbose,
    )
    if estimator.constraints == "auto" and len(unit.X) > LOCAL_POINTS:
        selected = replace(selected, constraints="all")  # neighbours of so many points take minutes to find
    return replace(selected, A=factor * selected.A)


def adopt(
    estimator: Any, selected: Selected, source: ConstraintSet | LabelledPairs, data: dict[str, Any]
) -> Learned:
    """Set the fitted attributes for a metric, at the multiple that violates least of its constraints."""
    began = time.monotonic()
    status: Any = Status.CHOSEN
    A = selected.A * (source.best_scale(selected.A).scale or _small(selected.A, source))
    cost = float(source.cost(A))
    learned = Learned(
        A=A,
        cost=cost,
        penalty=0.0,
        total_weight=source.total_weight,
        trivial_cost=min(source.trivial_costs()),
        canonical=None,
        support=np.empty(0, dtype=np.int64),
        history=((sum(tried.seconds for tried in selected.table) + time.monotonic() - began, cost, 0),),
        n_trials=0,
        n_infeasible=0,
        status=status,
        lower_bound=None,
        candidates=(A,),
    )
    if estimator.verbose:
        for tried in selected.table:
            logger.info(
                "%-35s score %.4f, advantage %+.4f, weight %.2f",
                tried.name,
                tried.score,
                tried.advantage,
                tried.weight,
            )
    estimator._adopt(learned, source, data)
    return learned


def _small(A: FloatArray, source: ConstraintSet | LabelledPairs) -> float:
    """Return a multiple at which every pair is near: where A = 0 costs least, this costs as much."""
    if isinstance(source, LabelledPairs):
        largest = 4.0 * float(np.einsum("ni,ij,nj->n", source.X, A, source.X).max())
        least = min(source.bounds) ** 2
    else:
        largest, least = float(np.abs(source.values(A)).max()), float(source.bound.min())
    return least / largest if largest > 0 else 1.0


def table(selected: Selected) -> tuple[dict[str, Any], ...]:
    """Return the candidates and their scores as plain data, those of the mean marked."""
    return tuple(
        {
            "name": tried.name,
            "score": tried.score,
            "advantage": tried.advantage,
            "error": tried.error,
            "weight": tried.weight,
            "chosen": tried.weight > 0,
        }
        for tried in selected.table
    )
