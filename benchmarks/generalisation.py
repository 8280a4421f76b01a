"""4-NN test accuracy of LPTML_SupervisedCV against preprocessings and peers, with and without wrong labels.

Half of the data trains (stratified), half tests with clean labels; a share of the training labels is flipped
uniformly. k-NN votes with the noisy training labels, whatever the metric, except in the last column. The
poison of the poisoned sets is in the training half. Peers follow StandardScaler, which all of them need.
``python -m benchmarks.generalisation iris,wine 20 0,0.3`` runs some data sets, splits and shares of wrong
labels; a fourth argument ``LPTML,LFDA`` some columns. ``digits20`` is Digits in 20 principal components.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

from lptml import LFDA, LMNN, ITML_Supervised, LPTML_SupervisedCV, RobustKNeighborsClassifier, datasets
from lptml.noise import flip_labels

NAMES = ("iris", "wine", "cancer", "digits", "ionosphere", "soybean", "synthetic", "poisoned", "rotated")
SHARES = (0.0, 0.1, 0.2, 0.3)
PLAIN: dict[str, Callable[[], Any]] = {
    "plain": FunctionTransformer,
    "standard": StandardScaler,
    "robust": RobustScaler,
    "white": lambda: PCA(whiten=True, n_components=0.999999, svd_solver="full"),
}
PEERS: dict[str, Callable[[], Any]] = {
    "LFDA": lambda: make_pipeline(StandardScaler(), LFDA()),
    "NCA": lambda: make_pipeline(
        StandardScaler(), NeighborhoodComponentsAnalysis(random_state=0, max_iter=50)
    ),
    "ITML": lambda: make_pipeline(StandardScaler(), ITML_Supervised(random_state=0)),
    "LMNN": lambda: make_pipeline(StandardScaler(), LMNN()),
}
ROBUST = "robust k-NN"
OURS: dict[str, Callable[[], Any]] = {"LPTML": lambda: LPTML_SupervisedCV(random_state=0)}


def split(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Training points and labels, test points and labels."""
    if name in ("synthetic", "poisoned", "rotated"):
        make = {
            "synthetic": datasets.make_synthetic,
            "poisoned": datasets.make_poisoned,
            "rotated": datasets.make_rotated_poisoned,
        }[name]
        data = make(random_state=seed)
        poisoned = np.asarray(data.poisoned) if name != "synthetic" else np.zeros(len(data.data), dtype=bool)
        X, y = data.data, data.target
        train, test = train_test_split(
            np.flatnonzero(~poisoned), test_size=0.5, stratify=y[~poisoned], random_state=seed
        )
        train = np.r_[train, np.flatnonzero(poisoned)]
        return X[train], y[train], X[test], y[test]
    if name == "digits20":  # the first 20 principal components of the training half
        Xa, ya, Xb, yb = split("digits", seed)
        pca = PCA(20, random_state=0).fit(Xa)
        return pca.transform(Xa), ya, pca.transform(Xb), yb
    load = {
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits,
        "ionosphere": datasets.load_ionosphere,
        "soybean": datasets.load_soybean,
    }[name]
    X, y = load(return_X_y=True)
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    return Xa, ya, Xb, yb


def run(
    name: str, splits: int, share: float, methods: dict[str, Callable[[], Any]]
) -> dict[str, list[float]]:
    """Accuracies of all methods, a number a split; CPU seconds of ours."""
    out: dict[str, list[float]] = {}
    for seed in range(splits):
        X, y, Xt, yt = split(name, seed)
        noisy = flip_labels(y, share, random_state=seed).labels
        for method, make in methods.items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                learner = make().fit(X, noisy)
            if method in OURS:
                out.setdefault("seconds", []).append(time.process_time() - start)
            if method != ROBUST:
                knn = KNeighborsClassifier(4).fit(learner.transform(X), noisy)
                out.setdefault(method, []).append(knn.score(learner.transform(Xt), yt))
            else:
                out.setdefault(method, []).append(learner.score(Xt, yt))
    return out


def main(argv: list[str] | None = None) -> None:
    argv = list(argv or [])
    names = argv[0].split(",") if argv else NAMES
    splits = int(argv[1]) if len(argv) > 1 else 20
    shares = [float(v) for v in argv[2].split(",")] if len(argv) > 2 else SHARES
    methods = {**PLAIN, **OURS, **PEERS, ROBUST: lambda: RobustKNeighborsClassifier(4, random_state=0)}
    if len(argv) > 3:
        methods = {name: methods[name] for name in argv[3].split(",")}
    print("| data | wrong | " + " | ".join(methods) + " | CPU s |")
    print("|---" * (len(methods) + 3) + "|")
    for name in names:
        for share in shares:
            try:
                result = run(name, splits, share, methods)
            except datasets.DatasetNotFound as error:
                print(f"{name} left out: {error}", file=sys.stderr)
                break
            cells = " | ".join(f"{100 * np.mean(result[m]):.1f}" for m in methods)
            seconds = f"{np.median(result['seconds']):.2f}" if "seconds" in result else ""
            print(f"| {name} | {100 * share:.0f}% | {cells} | {seconds} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
