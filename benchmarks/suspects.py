"""Finding wrong labels: ours against cleanlab, and wrong verdicts on pairs against ranking by distance.

Half of the data (stratified) with a share of wrong labels. cleanlab's label quality scores come from
out-of-sample class probabilities (5-fold) of 10-NN and of logistic regression on standardised features.
Columns: ROC AUC of the ranking, precision among as many suspects as there are wrong labels, and 4-NN test
accuracy on standardised features after dropping what each method says by itself (cleanlab:
``find_label_issues``). ``python -m benchmarks.suspects iris,wine 10 uniform,class,adversarial``
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.generalisation import split
from lptml import datasets
from lptml.noise import flip_labels, flip_pairs
from lptml.noise.suspects import judge, judge_pairs

NAMES = ("iris", "wine", "cancer", "digits", "ionosphere")
KINDS = ("uniform", "class", "adversarial")
SHARES = (0.1, 0.2, 0.3)
PAIRS = 1000

Scores = dict[str, list[tuple[float, float, float]]]


def precision_at(wrong: Any, score: Any) -> float:
    """Share of wrong labels among as many of the most suspicious as there are wrong ones."""
    return float(wrong[np.argsort(-score, kind="stable")[: wrong.sum()]].mean())


def after_cleaning(X: Any, y: Any, drop: Any, Xt: Any, yt: Any) -> float:
    """4-NN test accuracy on standardised features without the dropped points."""
    keep = ~drop if (~drop).sum() >= 4 else np.ones(len(y), dtype=bool)
    return float(make_pipeline(StandardScaler(), KNeighborsClassifier(4)).fit(X[keep], y[keep]).score(Xt, yt))


def compare(name: str, kind: str, share: float, splits: int) -> Scores:
    """(AUC, precision, accuracy after cleaning) of each method, a triple a split."""
    out: Scores = {}
    for seed in range(splits):
        X, y, Xt, yt = split(name, seed)
        noisy = flip_labels(y, share, kind=kind, X=X, random_state=seed)
        wrong = noisy.flipped
        codes = np.unique(noisy.labels, return_inverse=True)[1]
        verdict = judge(X, noisy.labels)
        ranked = {"ours": (verdict.suspicion, verdict.suspects)}
        for model, learner in (
            ("cleanlab, 10-NN", KNeighborsClassifier(10)),
            ("cleanlab, logistic", LogisticRegression(max_iter=2000)),
        ):
            pipe = make_pipeline(StandardScaler(), learner)
            proba = cross_val_predict(pipe, X, codes, cv=5, method="predict_proba")
            issues = find_label_issues(codes, proba, n_jobs=1)
            ranked[model] = (1.0 - get_label_quality_scores(codes, proba), issues)
        for method, (score, drop) in ranked.items():
            accuracy = after_cleaning(X, noisy.labels, drop, Xt, yt)
            triple = (float(roc_auc_score(wrong, score)), precision_at(wrong, score), accuracy)
            out.setdefault(method, []).append(triple)
    return out


def pairs_table(splits: int) -> None:
    """Wrong verdicts on bare pairs, against ranking by distance from the median."""
    print(
        "\n| pairs | wrong | ours | Euclidean | standardised | estimated share |\n|---|---|---|---|---|---|"
    )
    for name in ("wine", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        for share in SHARES:
            rows = []
            for seed in range(splits):
                V, verdicts, spread = draw_pairs(X, y, seed)
                noisy = flip_pairs(verdicts, share, random_state=seed)
                found = judge_pairs(V, noisy.labels)
                row = [roc_auc_score(noisy.flipped, found.suspicion)]
                for scale in (1.0, spread):
                    length = np.log(((V / scale) ** 2).sum(axis=1) + 1e-12)
                    score = noisy.labels * (length - np.median(length))
                    row.append(roc_auc_score(noisy.flipped, score))
                rows.append([*row, found.noise_rate])
            cells = " | ".join(f"{v:.3f}" for v in np.mean(rows, axis=0))
            print(f"| {name} | {100 * share:.0f}% | {cells} |", flush=True)


def draw_pairs(X: Any, y: Any, seed: int) -> tuple[Any, Any, Any]:
    """Differences and verdicts of 500 similar and 500 dissimilar pairs of half of the points."""
    half, _, labels, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    i, j = np.random.default_rng(seed).integers(len(half), size=(2, 40 * PAIRS))
    i, j = i[i != j], j[i != j]
    same = labels[i] == labels[j]
    rows = np.concatenate([np.flatnonzero(same)[: PAIRS // 2], np.flatnonzero(~same)[: PAIRS // 2]])
    spread = half.std(axis=0)
    return half[i[rows]] - half[j[rows]], np.where(same[rows], 1, -1), np.where(spread > 0, spread, 1.0)


def main(argv: list[str] | None = None) -> None:
    argv = list(argv or [])
    names = argv[0].split(",") if argv else NAMES
    splits = int(argv[1]) if len(argv) > 1 else 10
    kinds = argv[2].split(",") if len(argv) > 2 else KINDS
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    methods = ("ours", "cleanlab, 10-NN", "cleanlab, logistic")
    print("| noise | data | wrong | " + " | ".join(f"{m}: AUC, precision, accuracy" for m in methods) + " |")
    print("|---" * (3 + len(methods)) + "|")
    for kind in kinds:
        means: dict[str, list[Any]] = {}
        for name in names:
            for share in SHARES:
                try:
                    scores = compare(name, kind, share, splits)
                except datasets.DatasetNotFound as error:
                    print(f"{name} left out: {error}", file=sys.stderr)
                    break
                for method in methods:
                    means.setdefault(method, []).append(np.mean(scores[method], axis=0))
                cells = " | ".join("{:.3f}, {:.2f}, {:.3f}".format(*means[m][-1]) for m in methods)
                print(f"| {kind} | {name} | {100 * share:.0f}% | {cells} |", flush=True)
        cells = " | ".join("{:.3f}, {:.2f}, {:.3f}".format(*np.mean(means[m], axis=0)) for m in methods)
        print(f"| {kind} | mean | | {cells} |", flush=True)
    pairs_table(min(splits, 5))


if __name__ == "__main__":
    main(sys.argv[1:])
