"""The compared methods: what is put before k-NN, by the name it has in tables and figures.

Peers get the setting in which each was strongest in trials over all data sets here, not their weakest
default: ITML a slack price of 10, LFDA a local scale of 20 neighbours, MMC a thousand pairs of each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

from lptml.baselines import ITML, LFDA, LMNN, MCML, MMC, ITML_Supervised, MMC_Supervised, RCA_Supervised
from lptml.estimators import LPTML, LPTMLCV, LPTML_Supervised, LPTML_SupervisedCV
from lptml.estimators.robust import RobustKNeighborsClassifier
from lptml.experiments.options import Options

#: u at the 10th and l at the 90th percentile: what the published experiments did.
PAPER_BOUNDS = ("percentile", 10, 90)
#: u at the 90th and l at the 10th percentile: what the text says.
PRINTED_BOUNDS = ("percentile", 90, 10)

PLAIN, DEFAULT, ROBUST = "LPTML plain", "LPTML", "LPTML robust k-NN"
OURS = (PLAIN, DEFAULT, ROBUST)


def plain_search(options: Options, d: int, seed: int, trials: int | None = None) -> LPTML_Supervised:
    """Algorithm 2 as published: sample, solve, count, keep the best; no refinement."""
    return LPTML_Supervised(
        max_trials=options.plain_trials(d) if trials is None else trials,
        objective="random",
        refine=False,
        search_components=None,
        constraints="all",
        temperature=0.0,
        shrinkage=0.0,
        n_constraints=options.pairs or None,
        bounds=PAPER_BOUNDS,
        random_state=seed,
    )


TRANSFORMERS: dict[str, Callable[[Options, int, int], Any]] = {
    "Euclidean": lambda options, d, seed: FunctionTransformer(),
    "StandardScaler": lambda options, d, seed: StandardScaler(),
    "RobustScaler": lambda options, d, seed: RobustScaler(),
    "NCA": lambda options, d, seed: NeighborhoodComponentsAnalysis(random_state=seed),
    "ITML": lambda options, d, seed: ITML_Supervised(gamma=10.0, random_state=seed),
    "LMNN": lambda options, d, seed: LMNN(),
    "MMC": lambda options, d, seed: MMC_Supervised(n_constraints=1000, random_state=seed),
    "MCML": lambda options, d, seed: MCML(),
    "LFDA": lambda options, d, seed: LFDA(n_neighbors=20),
    "RCA": lambda options, d, seed: RCA_Supervised(),
    PLAIN: lambda options, d, seed: plain_search(options, d, seed),
    DEFAULT: lambda options, d, seed: LPTML_SupervisedCV(random_state=seed),
}

#: The metric learners that the default is measured against.
PEERS = ("NCA", "ITML", "LMNN", "MMC", "MCML", "LFDA", "RCA")


def transformer(name: str, options: Options, d: int, seed: int) -> Any:
    """A fresh transformer for data of d features."""
    return TRANSFORMERS[name](options, d, seed)


def of_pairs(options: Options, seed: int) -> dict[str, Any]:
    """Those of the methods asked for that learn from pairs, without their labels of points."""
    known: dict[str, Any] = {
        "ITML": ITML(gamma=10.0, random_state=seed),
        "MMC": MMC(),
        PLAIN: LPTML(
            max_trials=min(100, options.trials),
            objective="random",
            refine=False,
            search_components=None,
            bounds=PAPER_BOUNDS,
            random_state=seed,
        ),
        DEFAULT: LPTMLCV(random_state=seed),
    }
    return {name: known[name] for name in chosen(options) if name in known}


def classifier(options: Options, seed: int) -> Any:
    """Our metric, cleaning and voting in one."""
    return RobustKNeighborsClassifier(n_neighbors=options.neighbors, random_state=seed)


def knn(options: Options) -> KNeighborsClassifier:
    """The paper's classifier."""
    return KNeighborsClassifier(n_neighbors=options.neighbors)


def chosen(options: Options) -> list[str]:
    """The methods asked for, in the order of the tables."""
    known = [*TRANSFORMERS, ROBUST]
    unknown = set(options.methods) - set(known)
    if unknown:
        raise ValueError(f"unknown methods {sorted(unknown)}; known are {known}")
    return [name for name in known if not options.methods or name in options.methods]
