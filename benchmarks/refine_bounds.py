"""Which bounds to take by default: held-out accuracy and pair AUC by the ratio u / l.

    python -m benchmarks.refine_bounds            # the table of docs/refinement.md
    python -m benchmarks.refine_bounds iris wine  # some data sets

Raw features, half of the data (120 points at most) for training, all training pairs, with 0 and 20% of the
training labels flipped; the metric of least cost (no validation); 4-NN on the training labels as they are,
and the ROC AUC of "same class" by distance over the pairs of held-out points with their true labels.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from lptml.constraints import LabelledPairs, factor
from lptml.constraints.bounds import resolve_bounds
from lptml.datasets import load
from lptml.noise import flip_labels
from lptml.refine import refine

DATA = (
    "synthetic", "poisoned", "rotated_poisoned", "soybean", "iris", "wine", "ionosphere", "breast_cancer",
    "digits",
)  # fmt: skip
BOUNDS = {
    "10th / 90th percentile": ("percentile", 10, 90),
    "0.5": 0.5,
    "0.7": 0.7,
    "0.85": 0.85,
    "1": 1.0,
    "1.2": 1.2,
    "1.5": 1.5,
    "90th / 10th percentile": ("percentile", 90, 10),
}
NOISE = (0.0, 0.2)
SPLITS = 10


def split(name: str, noise: float, seed: int) -> tuple[np.ndarray, ...]:
    """Training points, their labels (some wrong), test points, their labels."""
    options = {"random_state": seed} if name in ("synthetic", "poisoned", "rotated_poisoned") else {}
    X, y = load(name, return_X_y=True, **options)
    y = np.unique(y, return_inverse=True)[1]
    keep = np.bincount(y)[y] >= 4  # classes that can be split
    X, y = np.asarray(X, dtype=float)[keep], y[keep]
    half = min(len(X) // 2, 120)
    train, test, y_train, y_test = train_test_split(
        X, y, train_size=half, test_size=half, stratify=y, random_state=seed
    )
    return train, flip_labels(y_train, noise, random_state=seed).labels, test, y_test


def score(name: str, noise: float, seed: int, bounds: object) -> tuple[float, float, float]:
    """Violation rate, 4-NN accuracy and pair AUC of one learned metric; bounds None: Euclidean."""
    train, y_train, test, y_test = split(name, noise, seed)
    L, rate = np.eye(train.shape[1]), np.nan
    if bounds is not None:
        resolved = resolve_bounds(bounds, pdist(train))
        pairs = LabelledPairs.from_labels(train, y_train, bounds=resolved)
        refined = refine(pairs, n_starts=1, n_hops=1, steps=200)
        rate = refined.cost / pairs.n
        L = factor(refined.A) if refined.A.any() else np.zeros((1, train.shape[1]))
    knn = KNeighborsClassifier(4).fit(train @ L.T, y_train)
    i, j = np.triu_indices(len(test), 1)
    return rate, knn.score(test @ L.T, y_test), roc_auc_score(y_test[i] == y_test[j], -pdist(test @ L.T))


def main(names: list[str]) -> None:
    """Print accuracy and AUC, one row a data set and share of wrong labels, then their means."""
    print("| data, flipped | Euclidean | " + " | ".join(BOUNDS) + " |")
    print("|---" * (len(BOUNDS) + 2) + "|")
    rows: dict[float, list[np.ndarray]] = {noise: [] for noise in NOISE}
    for name in names:
        for noise in NOISE:
            row = np.array(
                [
                    np.mean([score(name, noise, seed, bounds)[1:] for seed in range(SPLITS)], axis=0)
                    for bounds in (None, *BOUNDS.values())
                ]
            )  # (columns, 2)
            rows[noise].append(row)
            show(f"{name}, {noise:.0%}", row)
    for noise, tables in rows.items():
        show(f"**mean, {noise:.0%}**", np.mean(tables, axis=0))


def show(name: str, row: np.ndarray) -> None:
    """One line of the table."""
    print(f"| {name} | " + " | ".join(f"{a:.3f} {b:.3f}" for a, b in row) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(DATA))
