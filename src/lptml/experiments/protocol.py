"""The paper's protocol: 2-fold cross-validation, a metric from one half, k-NN on the other."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from lptml import datasets
from lptml.experiments import methods
from lptml.experiments.options import Options

Floats = NDArray[np.float64]

#: Data sets of the accuracy table, in its order; the paper's own come first.
REAL = ("iris", "soybean", "synthetic", "wine", "wine_standardised", "ionosphere", "breast_cancer", "digits")
_DOWNLOADED = ("ionosphere", "soybean")
_DIGITS_PCA = 20


@dataclass(frozen=True, eq=False)
class Fold:
    """One half to learn from, the other to test on; planted points are never tested on."""

    X: Floats  # (n, d)
    y: NDArray[Any]  # (n,)
    X_test: Floats
    y_test: NDArray[Any]


def seed_for(*parts: int | str) -> int:
    """A seed of 31 bits that depends on all parts and on nothing else."""
    words = [part if isinstance(part, int) else int.from_bytes(part.encode(), "big") for part in parts]
    return int(np.random.SeedSequence(words).generate_state(1)[0] >> 1)


def available(names: tuple[str, ...], options: Options) -> tuple[list[str], list[str]]:
    """The data sets that can be loaded, and a message for each that cannot."""
    found, missing = [], []
    for name in names:
        if options.datasets and name not in options.datasets:
            continue
        try:
            if name in _DOWNLOADED:
                datasets.load(name, folder=options.data)
            found.append(name)
        except datasets.DatasetNotFound as error:
            missing.append(f"{name} is left out: {error}")
    return found, missing


def prepare(
    name: str, repeat: int, options: Options, **changes: Any
) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Points, labels and the mask of planted points of one execution.

    Generated sets are drawn afresh for each execution; large ones are cut to ``options.most_points``.
    """
    seed = seed_for(options.seed, "data", name.split("_standardised")[0], repeat)
    if name in ("synthetic", "poisoned", "rotated_poisoned", "scattered_poison"):
        found = datasets.load(name, random_state=seed, **changes)
        return found.data, found.target, found.poisoned
    found = datasets.load(
        name.removesuffix("_standardised"), **({"folder": options.data} if name in _DOWNLOADED else {})
    )
    X, y = found.data, found.target
    if len(X) > options.most_points:
        chosen = np.random.default_rng(seed).choice(len(X), options.most_points, replace=False)
        X, y = X[chosen], y[chosen]
    if name == "digits":
        X = PCA(_DIGITS_PCA, random_state=seed).fit_transform(X)
    if name.endswith("_standardised"):
        X = StandardScaler().fit_transform(X)
    return X, y, np.zeros(len(y), dtype=bool)


def folds(X: Floats, y: NDArray[Any], planted: NDArray[Any], options: Options, seed: int) -> Iterator[Fold]:
    """The folds of one execution; planted points are spread over them and only ever learned from."""
    splitter = StratifiedKFold(options.folds, shuffle=True, random_state=seed)
    for train, test in splitter.split(X, np.where(planted, y.max() + 1, y)):
        test = test[~planted[test]]
        yield Fold(X[train], y[train], X[test], y[test])


def evaluate(name: str, fold: Fold, options: Options, seed: int, trials: int | None = None) -> dict[str, Any]:
    """Fit one method and test it; a failure is a row without accuracy that says why."""
    row: dict[str, Any] = {"method": name, "d": fold.X.shape[1], "n_train": len(fold.y), "error": ""}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        try:
            if name == methods.ROBUST:
                model = methods.classifier(options, seed).fit(fold.X, fold.y)
                row["cpu_seconds"] = time.process_time() - start
                row["accuracy"] = float(model.score(fold.X_test, fold.y_test))
                return row
            if trials is not None and name == methods.PLAIN:
                learner = methods.plain_search(options, fold.X.shape[1], seed, trials)
            else:
                learner = methods.transformer(name, options, fold.X.shape[1], seed)
            learner.fit(fold.X, fold.y)
            row["cpu_seconds"] = time.process_time() - start
            voting = methods.knn(options).fit(learner.transform(fold.X), fold.y)
            row["accuracy"] = float(voting.score(learner.transform(fold.X_test), fold.y_test))
        except (ValueError, np.linalg.LinAlgError) as error:
            row.update(error=f"{type(error).__name__}: {error}"[:300], accuracy=float("nan"))
            return row
    for key in ("violation_rate_", "trivial_rate_", "n_trials_", "n_infeasible_"):
        if hasattr(learner, key):
            row[key.rstrip("_")] = float(getattr(learner, key))
    return row
