"""From a table with wrong labels to a corrected one: lptml, cleanlab and metric-learn with their defaults.

Of each set a tenth of the labels is flipped. ``lptml review --accept`` changes what it calls likely wrong to
what it suggests; cleanlab's ``find_label_issues`` names issues from out-of-sample probabilities (five folds
of a logistic regression on standardised features), each changed to the most probable class. Counted is the
share of labels that are right afterwards. metric-learn corrects no labels; for it the 4-NN accuracy on clean
test halves is printed after learning from the spoiled training half, beside ours::

    python -m benchmarks.cleaning [--seeds 2] [--metric-learn PYTHON]

PYTHON is an interpreter that has metric-learn 0.7.0, whose ``fit`` needs a scikit-learn before 1.8.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
ROWS = 400
OTHER = """
import sys
import numpy as np
from metric_learn import LMNN
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
with np.load(sys.argv[1]) as d:
    model = make_pipeline(StandardScaler(), LMNN(random_state=0), KNeighborsClassifier(4))
    print(model.fit(d["X"], d["y"]).score(d["T"], d["t"]))
"""


def load(name: str, seed: int) -> tuple[Any, Any]:
    """At most ``ROWS`` points and their labels."""
    X, y = SETS[name](return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    return X[rows], y[rows]


def corrected_by_lptml(X: Any, y: Any) -> Any:
    """Labels after the default decisions."""
    from lptml.noise.suspects import judge

    found = judge(X, y)
    return np.where(found.suspects, np.unique(y)[found.suggested], y)


def corrected_by_cleanlab(X: Any, y: Any) -> Any:
    """Labels after cleanlab's issues are changed to the most probable class."""
    from cleanlab.filter import find_label_issues

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    p = cross_val_predict(model, X, y, cv=5, method="predict_proba")
    return np.where(find_label_issues(y, p), np.unique(y)[p.argmax(axis=1)], y)


def accuracies(X: Any, y: Any, seed: int, python: str | None) -> dict[str, float]:
    """4-NN accuracy on clean test labels after learning from labels of which a fifth are wrong."""
    from lptml import RobustKNeighborsClassifier
    from lptml.noise import flip_labels

    X1, X2, y1, y2 = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    bad = flip_labels(y1, 0.2, random_state=seed).labels
    plain = make_pipeline(StandardScaler(), KNeighborsClassifier(4))
    found = {
        "standardised": plain.fit(X1, bad).score(X2, y2),
        "lptml": RobustKNeighborsClassifier(4, random_state=0).fit(X1, bad).score(X2, y2),
    }
    if python:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "data.npz")
            np.savez(path, X=X1, y=bad, T=X2, t=y2)
            out = subprocess.run([python, "-c", OTHER, str(path)], capture_output=True, text=True, check=True)
        found["metric-learn"] = float(out.stdout.split()[-1])
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the two tables."""
    from lptml.noise import flip_labels

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--metric-learn", metavar="PYTHON")
    options = parser.parse_args(arguments)
    right: dict[str, dict[str, list[float]]] = {}
    voted: dict[str, dict[str, list[float]]] = {}
    for name in SETS:
        for seed in range(options.seeds):
            X, y = load(name, seed)
            spoiled = flip_labels(y, 0.1, random_state=seed).labels
            for method, labels in {
                "as given": spoiled,
                "lptml": corrected_by_lptml(X, spoiled),
                "cleanlab": corrected_by_cleanlab(X, spoiled),
            }.items():
                right.setdefault(method, {}).setdefault(name, []).append(float(np.mean(labels == y)))
            for method, score in accuracies(X, y, seed, options.metric_learn).items():
                voted.setdefault(method, {}).setdefault(name, []).append(score)
            print(name, seed, file=sys.stderr)
    for title, table in (("labels right, %", right), ("4-NN accuracy, %", voted)):
        print(f"| {title} | {' | '.join(SETS)} |\n|---|{'---|' * len(SETS)}")
        for method, found in table.items():
            print(f"| {method} | {' | '.join(f'{100 * np.mean(found[name]):.1f}' for name in SETS)} |")


if __name__ == "__main__":
    main()
