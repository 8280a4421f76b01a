"""The search that the page shows where validation chose the metric without one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lptml._threads import processors
from lptml.cli.beside import beside
from lptml.cli.imports import import_sklearn

ROWS = 500  # 125,000 pairs: a search for the page, not for a model
_PROVABLE = 5_000_000  # pairs times squared features up to which a bound is proven in no time
_TRIALS = 30

Array = np.ndarray[Any, Any]


@contextlib.contextmanager
def searching(X: Array, y: Array | None, seconds: float, seed: int) -> Iterator[Callable[[], Any] | None]:
    """Search for the least cost while the block runs, which gets a callable that returns the estimator.

    It gets None where there is nothing to search. Most of the time goes into importing Numba, so a process of
    its own does it, unless that has been done here or there is one processor for both.
    """
    from lptml._report.accuracy import some_rows

    rows = some_rows(len(X), ROWS, seed)
    if y is None or seconds <= 0 or len(np.unique(y[rows])) < 2:
        yield None
    elif "numba" in sys.modules or processors() == 1:
        yield lambda: least_cost(X, y, rows, seconds, seed)
    else:
        with beside(least_cost, X, y, rows, seconds, seed) as result:
            yield result


def least_cost(X: Array, y: Array, rows: Array, seconds: float, seed: int) -> Any:
    """An estimator after a short search on some rows for the metric of least cost.

    Its support and a lower bound are found after the time limit, where they take no time.
    """
    import_sklearn()
    from lptml.canonical import canonical, solved_quickly
    from lptml.estimators import LPTML_Supervised
    from lptml.labels import LabelledPairs
    from lptml.lower_bounds import certify

    search = LPTML_Supervised(
        constraints="all", validation=None, max_trials=_TRIALS, time_limit=seconds, random_state=seed
    )
    search.fit(X[rows], y[rows])
    A = search.get_mahalanobis_matrix()
    codes = np.unique(y[rows], return_inverse=True)[1]
    pairs = LabelledPairs.from_labels(X[rows], codes, bounds=search.bounds_)
    if solved_quickly(pairs) and (solved := canonical(pairs, A, seed)) is not None:
        search.support_ = rows[np.column_stack(pairs.pairs(solved.support))]
    if pairs.n * pairs.d**2 <= _PROVABLE:
        proof = certify(pairs, A, time_limit=seconds / 2)
        search.lower_bound_ = min(proof.lower_bound / pairs.total_weight, search.violation_rate_)
    return search
