"""Robust k-NN against the classifiers that people would take instead, clean and under four attacks.

``python -m benchmarks.maps`` runs all of it (13 development sets, 4 splits; 25 minutes on one core);
``python -m benchmarks.maps clean,uniform 2 robust`` some conditions, splits and methods. Results are written
after every set, and a run that was stopped goes on where it was: what the file of results (``--json``) holds
is not measured again unless ``--again`` names the method. ``--rings`` measures pairs of rings, ``--large`` a
fit of 50,000 x 100, ``--picture`` draws docs/images/maps.png.

Data, splits and attacks are those of ``benchmarks.development``. Peers follow StandardScaler; "filtered":
after cleanlab has dropped what it finds by 5-fold probabilities of logistic regression. ECE: expected
calibration error of predict_proba on the test points, 10 bins, mean over the sets. CPU: of a fit to vehicle
(400 x 18).
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import runpy
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.development import CONDITIONS, MISSING, NAMES, TITLES, is_there, markdown, split
from lptml import LPTML, RobustKNeighborsClassifier

ROBUST = "robust"


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


PEERS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(300, random_state=0),
    "forest, 5 a leaf": lambda: RandomForestClassifier(300, min_samples_leaf=5, random_state=0),
    "extra trees, 3 a leaf": lambda: ExtraTreesClassifier(300, min_samples_leaf=3, random_state=0),
    "RBF-SVM": lambda: _scaled(SVC(random_state=0)),
    "MLP": lambda: _scaled(MLPClassifier((64,), max_iter=500, random_state=0)),
    "logistic": lambda: _scaled(LogisticRegression(max_iter=2000)),
}
METHODS: dict[str, Callable[[], Any]] = {
    ROBUST: lambda: RobustKNeighborsClassifier(random_state=0),
    **PEERS,
    "NCA": lambda: _scaled(
        make_pipeline(NeighborhoodComponentsAnalysis(random_state=0), KNeighborsClassifier(4))
    ),
}


def calibration_error(model: Any, X: Any, y: Any) -> float:
    """Expected calibration error, 10 bins; NaN without probabilities."""
    if not hasattr(model, "predict_proba"):
        return float("nan")
    P = model.predict_proba(X)
    sure, right = P.max(axis=1), model.classes_[P.argmax(axis=1)] == y
    bins = np.minimum((10 * sure).astype(int), 9)
    parts = [(bins == b).mean() * abs(right[bins == b].mean() - sure[bins == b].mean()) for b in {*bins}]
    return float(np.sum(parts))


def kept_by_cleanlab(X: Any, y: Any) -> Any:
    """Which rows cleanlab keeps."""
    from cleanlab.filter import find_label_issues

    classes, codes = np.unique(y, return_inverse=True)
    P = cross_val_predict(_scaled(LogisticRegression(max_iter=2000)), X, codes, cv=5, method="predict_proba")
    keep = ~find_label_issues(codes, P, n_jobs=1)
    return keep if len(np.unique(codes[keep])) == len(classes) else np.ones(len(y), dtype=bool)


def measure(name: str, condition: str, number: int, methods: list[str]) -> list[dict[str, Any]]:
    """Accuracy, calibration and CPU seconds of every method on one split."""
    X, y, X_test, y_test = split(name, number)
    X, y = CONDITIONS[condition](X, y, 1000 + number)
    keep = kept_by_cleanlab(X, y) if any(method in PEERS for method in methods) else None
    rows = []
    for method in methods:
        for filtered in (False, True) if method in PEERS else (False,):
            chosen = keep if filtered else np.ones(len(y), dtype=bool)
            began = time.process_time()
            model = METHODS[method]().fit(X[chosen], y[chosen])
            row = {"set": name, "condition": condition, "split": number}
            row |= {"method": f"{method}, filtered" if filtered else method}
            row |= {"cpu": time.process_time() - began, "accuracy": float(model.score(X_test, y_test))}
            rows.append(row | {"ece": calibration_error(model, X_test, y_test)})
    return rows


def stored(path: Path, again: list[str]) -> list[dict[str, Any]]:
    """What an earlier run measured, without the methods that are to be measured again."""
    if not path.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return [row for row in rows if row["method"].removesuffix(", filtered") not in again]


def store(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the results; a run that is stopped amid it leaves the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(rows, indent=1))
    partial.replace(path)


def report(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    conditions = list(dict.fromkeys(row["condition"] for row in rows))

    def mean(what: str, of: str, condition: str, only: str | None = None) -> float:
        return float(
            np.mean(
                [
                    r[what]
                    for r in rows
                    if (r["method"], r["condition"]) == (of, condition) and only in (None, r["set"])
                ]
            )
        )

    body = [
        [
            method,
            *(f"{100 * mean('accuracy', method, condition):.1f}" for condition in conditions),
            f"{mean('ece', method, conditions[0]):.3f}",
            f"{mean('cpu', method, conditions[0], 'vehicle'):.2f}",
        ]
        for method in dict.fromkeys(row["method"] for row in rows)
    ]
    titles = [TITLES[condition] for condition in conditions]
    print(f"{1 + max(row['split'] for row in rows)} splits\n")
    print(markdown(["mean accuracy", *titles, f"ECE, {titles[0]}", "CPU s"], body))


def _two_rings(rng: np.random.Generator, n: int, noise: int) -> tuple[Any, Any]:
    y = rng.integers(2, size=n)
    radius, angle = 1 + y + 0.1 * rng.normal(size=n), rng.uniform(0, 2 * np.pi, n)
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return np.hstack([ring, rng.normal(size=(n, noise))]), y


def rings() -> None:
    """Pairs of rings, a tenth of them wrong; accuracy on new pairs with the true labels."""
    body = []
    for noise in (0, 8):
        found: dict[str, list[float]] = {}
        for seed in range(4):
            rng = np.random.default_rng(seed)
            (X, y), (new, truth) = (_two_rings(rng, 4000, noise) for _ in range(2))
            told = np.where(y[::2] == y[1::2], 1, -1)
            told = np.where(rng.uniform(size=2000) < 0.1, -told, told)
            for kind in ("linear", "nystroem", "relu"):
                model = LPTML(map=kind, random_state=0).fit(X.reshape(2000, 2, -1), told)
                right = model.predict(new.reshape(2000, 2, -1)) == np.where(truth[::2] == truth[1::2], 1, -1)
                found.setdefault(kind, []).append(float(right.mean()))
        body.append([str(2 + noise), *(f"{np.mean(values):.3f}" for values in found.values())])
    print(markdown(["dimensions", "linear", "nystroem", "relu"], body))


def large() -> None:
    """CPU seconds and memory of a default fit of 50,000 x 100."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 20))
    y = rng.integers(10, size=52_000)
    X = np.hstack([centres[y] + 0.7 * rng.normal(size=(52_000, 20)), rng.normal(size=(52_000, 80))])
    began = time.process_time()
    model = RobustKNeighborsClassifier(random_state=0).fit(X[:50_000], y[:50_000])
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"50,000 x 100: {seconds:.0f} CPU s, {peak:.2f} GB, {model.score(X[50_000:], y[50_000:]):.3f}")


def picture(target: Path = Path("docs/images/maps.png")) -> None:
    """What the example shows."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    runpy.run_path("examples/plot_maps.py")
    plt.gcf().savefig(target, dpi=110)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("conditions", nargs="?", default=",".join(CONDITIONS))
    parser.add_argument("splits", nargs="?", type=int, default=4)
    parser.add_argument("methods", nargs="?", default=";".join(METHODS), help="separated by ;")
    parser.add_argument("--json", type=Path, default=Path("reproduction/maps.json"))
    parser.add_argument("--again", default="", help="methods to measure anew, separated by ;")
    for name in ("rings", "large", "picture"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with threadpool_limits(1):
        extra = [
            run
            for name, run in (("rings", rings), ("large", large), ("picture", picture))
            if getattr(options, name)
        ]
        for run in extra:
            run()
        if extra:
            return
        if not is_there():
            print(MISSING)
            return
        rows = stored(options.json, options.again.split(";"))
        for number in range(options.splits):
            for condition in options.conditions.split(","):
                for name in NAMES:
                    where = {"set": name, "condition": condition, "split": number}
                    known = {row["method"] for row in rows if where.items() <= row.items()}
                    missing = [method for method in options.methods.split(";") if method not in known]
                    if missing:
                        rows += measure(name, condition, number, missing)
                        store(options.json, rows)
        report(rows)


if __name__ == "__main__":
    main()
