"""What the learners that choose by cross-validation share: the grid, the clock, and the average."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from lptml._limits import OutOfTime, until
from lptml._progress import make_display
from lptml.constraints import Floats, Ints, Source
from lptml.constraints.span import Span
from lptml.estimators._constraints import in_unit_scale
from lptml.estimators._lptml import COMMON_CONSTRAINTS, PAIR_CONSTRAINTS, seed
from lptml.estimators._mahalanobis import components_from_metric
from lptml.select.cross_validation import Setting, mean_metric, score_settings

#: Options that are handed on to the fit with the best setting.
OF_THE_SEARCH = (
    "max_trials",
    "search_components",
    "epsilon",
    "objective",
    "time_limit",
    "engine",
    "n_jobs",
    "random_state",
    "verbose",
    "callback",
)
_CV_SHARE = 0.5  # of a time limit goes to the cross-validation
_BEST_SHARE = 0.6  # of what is left then, to the fit with the best setting, if others are averaged with it
_COUNT = Interval(Integral, 1, None, closed="left")


def cv_constraints(**more: Any) -> dict[str, Any]:
    """Domains of the parameters that both learners have, and these."""
    return {
        **{name: COMMON_CONSTRAINTS[name] for name in OF_THE_SEARCH},
        **PAIR_CONSTRAINTS,
        "priors": [list, tuple],
        "shrinkages": ["array-like"],
        "temperatures": ["array-like"],
        "n_components": [None, _COUNT, list, tuple],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_repeats": [_COUNT],
        "preprocessor": "no_validation",
        **more,
    }


class CVMixin:
    """The parts of ``fit`` that do not depend on what is learned from."""

    priors: Any
    shrinkages: Any
    temperatures: Any
    n_components: Any
    n_jobs: int | None
    time_limit: float | None
    random_state: Any
    verbose: int
    cv: int
    n_repeats: int
    max_trials: int
    status_: str
    _began: float
    _start_clock: Callable[[], None]
    _deadline: Callable[..., float | None]
    _seconds_left: Callable[[], float | None]

    def _begin(self) -> None:
        self._start_clock()
        self._number = seed(self.random_state)

    def _check_options(self, d: int) -> None:
        """Refuse ranks that do not fit the data."""
        for rank in _several(self.n_components):
            if rank is not None and not (isinstance(rank, int | np.integer) and 1 <= rank <= d):
                raise ValueError(
                    f"n_components must be whole numbers from 1 to the {d} features, got {rank!r}"
                )
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0")

    def _values(self, named: tuple[str, ...]) -> dict[str, list[Any]]:
        """The lists of the grid, checked; ``named`` are the priors that have a name."""
        values = {
            "n_components": _several(self.n_components),
            "prior": [*self.priors],
            "temperature": np.asarray(self.temperatures, dtype=float).ravel().tolist(),
            "shrinkage": np.asarray(self.shrinkages, dtype=float).ravel().tolist(),
        }
        for name, several in values.items():
            if not several:
                raise ValueError(f"the list of values for {name} is empty")
        check_names("priors", [prior for prior in values["prior"] if isinstance(prior, str)], named)
        if not all(0 <= value < np.inf for value in values["temperature"]):
            raise ValueError(f"temperatures must be finite and not negative, got {self.temperatures!r}")
        if not all(0 <= value <= 1 for value in values["shrinkage"]):
            raise ValueError(f"shrinkages must lie in [0, 1], got {self.shrinkages!r}")
        return values

    def _cross_validate(
        self,
        settings: list[Setting],
        codes: Ints,
        weight: Floats,
        score_fold: Callable[[Ints, Ints], Iterator[Floats]],
        rng: np.random.Generator,
    ) -> list[Setting]:
        """Score the settings, set the attributes that tell, and return the good ones but the best."""
        from lptml.learn import compile_now  # compiled code is loaded by the first fit, not by the import

        compiling = time.monotonic()
        compile_now(searching=self.max_trials > 0, refining=any(s["temperature"] == 0 for s in settings))
        self._began += time.monotonic() - compiling
        with make_display(int(self.verbose), self.cv * self.n_repeats, unit="fold") as display:

            def watch(done: int) -> None:
                display.show(done, f"{len(settings)} settings")

            with until(self._deadline(_CV_SHARE)):
                scores = score_settings(
                    settings,
                    codes,
                    weight,
                    score_fold,
                    folds=self.cv,
                    repeats=self.n_repeats,
                    rng=rng,
                    watch=watch,
                )
        self.cv_results_ = scores.as_results()
        self.best_index_ = scores.best
        self.best_params_ = dict(settings[scores.best])
        self.best_score_ = float(scores.mean[scores.best])
        return [settings[i] for i in np.flatnonzero(scores.good) if i != scores.best]

    def _options(self, others: list[Setting]) -> dict[str, Any]:
        """The options of the fit with the best setting; others are learned after it."""
        self._chosen_after = time.monotonic() - self._began
        options = {name: getattr(self, name) for name in OF_THE_SEARCH} | {"random_state": self._number}
        left = self._seconds_left()
        if left is not None:
            options["time_limit"] = max(1e-3, left if not others else _BEST_SHARE * left)
        return options

    def _while_time(self, others: list[Setting], metrics: Iterator[Floats]) -> list[Floats]:
        """The metrics of other good settings, as many as there is time for; the table says which."""
        done: list[Floats] = []
        with suppress(OutOfTime), until(self._deadline()):
            for metric in metrics:
                done.append(metric)
        late = [str(setting) for setting in others[len(done) :]]
        for i, setting in enumerate(self.cv_results_["params"]):
            self.cv_results_["averaged"][i] &= str(setting) not in late
        return done

    def _adopt_average(
        self, best: Any, learned: Any, others: list[Floats], source: Source, V: Floats | None, span: Span
    ) -> Any:
        """Take the average of the best metric and the others; what was learned, with the result's cost.

        The others, the source and V are on coordinates of the span. Metrics whose scale means nothing are
        brought to one length over the vectors V first; those of pairs (None) have the scale of the bounds.
        """
        from lptml.search import SearchStatus  # compiled code is loaded by the first fit, not by the import

        L = span.map_inside(best.components_)
        if V is None:
            A = np.mean([L.T @ L, *others], axis=0)
        else:
            A = mean_metric(V, [L.T @ L, *others])
            A = A * (source.best_scale(A).scale or 1.0)
        self.components_ = span.map_outside(components_from_metric(A, best.n_components))
        for name in ("n_trials_", "n_iter_", "n_infeasible_", "status_", "lower_bound_", "_certifiable"):
            setattr(self, name, getattr(best, name))
        history = [(self._chosen_after + seconds, cost, n) for seconds, cost, n in learned.history]
        if others:
            cost = float(source.cost(A))
            history.append((time.monotonic() - self._began, cost, learned.n_trials))
            if cost > 0 and self.status_ == SearchStatus.OPTIMAL.value:
                self.status_ = SearchStatus.COMPLETED.value
            support = np.empty(0, dtype=np.int64)
            with suppress(OutOfTime), until(self._deadline()):
                support = _support(source, A)
            learned = replace(learned, support=support)
        return replace(learned, history=tuple(history))


def _support(source: Any, A: Floats) -> Ints:
    """The constraints that hold what A satisfies in place; none where that takes long."""
    from lptml.refine.canonical import canonical, solved_quickly

    unit, factor = in_unit_scale(source)
    solved = canonical(unit, A / factor) if solved_quickly(unit) else None
    return np.empty(0, dtype=np.int64) if solved is None else solved.support


def check_names(name: str, values: list[str], known: tuple[str, ...]) -> None:
    """Refuse a value that is not known."""
    for value in values:
        if value not in known:
            raise ValueError(f"{name} must be among {', '.join(map(repr, known))}; got {value!r}")


def but_shrinkage(setting: Setting) -> tuple[Any, ...]:
    """What one descent depends on: all of a setting but its shrinkage."""
    prior = setting["prior"]
    rest = [value for name, value in sorted(setting.items()) if name not in ("prior", "shrinkage")]
    return prior if isinstance(prior, str) else id(prior), *rest


def _several(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value]
