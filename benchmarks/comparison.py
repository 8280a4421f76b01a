"""Peers in one run: 4-NN accuracy and CPU seconds under label noise, on the same splits.

    python benchmarks/comparison.py                          # all but pytorch-metric-learning
    python benchmarks/comparison.py --pytorch venv/bin/python  # with it: an interpreter that has torch and it

scikit-learn's NCA comes from the installed scikit-learn; ITML and LMNN are our implementations of the
algorithms in metric-learn, which itself no longer fits on current scikit-learn (benchmarks/baselines.py
measures ours against it in its own environment).  pytorch-metric-learning trains a linear map on standardised
features with three of its losses, Adam, 60 epochs, batches of 32: it runs in a process of its own, because
nothing here depends on torch.

Half of the rows train, the other half tests, and both ways round; the share of wrong training labels is
flipped uniformly; test labels are clean.  The tables of docs/comparison.md come from here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SETS = ("iris", "wine", "breast_cancer", "digits")
NOISE = (0.0, 0.1, 0.2, 0.3)
MOST_ROWS = 400
LOSSES = ("contrastive", "triplet", "nca")


def splits(name: str, repeats: int) -> list[dict[str, Any]]:
    """Training and test halves of a data set, with noisy training labels for every share."""
    from sklearn.decomposition import PCA
    from sklearn.model_selection import StratifiedShuffleSplit

    from lptml.datasets import load
    from lptml.noise import flip_labels

    X, y = load(name, return_X_y=True)
    if X.shape[1] > 40:
        X = PCA(20, random_state=0).fit_transform(X)
    if len(X) > MOST_ROWS:
        keep = np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False)
        X, y = X[keep], y[keep]
    out = []
    halves = StratifiedShuffleSplit(n_splits=repeats, test_size=0.5, random_state=0).split(X, y)
    for number, (one, other) in enumerate(halves):
        for train, test in ((one, other), (other, one)):
            for share in NOISE:
                noisy = flip_labels(y[train], share, random_state=number).labels
                out.append(
                    {
                        "data": name,
                        "share": share,
                        "X": X[train],
                        "y": noisy,
                        "X_test": X[test],
                        "y_test": y[test],
                    }
                )
    return out


def ours() -> dict[str, Callable[[], Any]]:
    """The methods that run in this process; each makes an estimator that transforms, or one that predicts."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    from lptml import LMNN, ITML_Supervised, LPTML_Supervised, LPTML_SupervisedCV, RobustKNeighborsClassifier

    return {
        "Euclidean": FunctionTransformer,
        "standardised": StandardScaler,
        "NCA (scikit-learn)": lambda: make_pipeline(
            StandardScaler(), NeighborhoodComponentsAnalysis(random_state=0)
        ),
        "ITML": lambda: make_pipeline(StandardScaler(), ITML_Supervised(random_state=0)),
        "LMNN": lambda: make_pipeline(StandardScaler(), LMNN()),
        "LPTML_Supervised": lambda: LPTML_Supervised(random_state=0),
        "LPTML_SupervisedCV": lambda: LPTML_SupervisedCV(random_state=0),
        "RobustKNeighborsClassifier": lambda: RobustKNeighborsClassifier(n_neighbors=4, random_state=0),
    }


def judge(make: Callable[[], Any], part: dict[str, Any]) -> tuple[float, float]:
    """Test accuracy and CPU seconds of one fit."""
    from sklearn.neighbors import KNeighborsClassifier

    start = time.process_time()
    fitted = make().fit(part["X"], part["y"])
    seconds = time.process_time() - start
    if hasattr(fitted, "predict"):
        return float(fitted.score(part["X_test"], part["y_test"])), seconds
    voters = KNeighborsClassifier(4).fit(fitted.transform(part["X"]), part["y"])
    return float(voters.score(fitted.transform(part["X_test"]), part["y_test"])), seconds


def torch_part(path: Path) -> list[dict[str, Any]]:
    """pytorch-metric-learning on the stored splits; runs in the interpreter that has it."""
    import torch
    from pytorch_metric_learning import losses, miners
    from sklearn.neighbors import KNeighborsClassifier

    torch.set_num_threads(1)
    rows = []
    with np.load(path) as stored:
        count = int(stored["count"])
        for i in range(count):
            X, y, X_test, y_test = (stored[f"{i}_{key}"] for key in ("X", "y", "X_test", "y_test"))
            centre, scale = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
            Z, Z_test = ((A - centre) / scale for A in (X, X_test))
            for name in LOSSES:
                torch.manual_seed(0)
                start = time.process_time()
                layer = torch.nn.Linear(Z.shape[1], Z.shape[1], bias=False)
                torch.nn.init.eye_(layer.weight)
                loss = {
                    "contrastive": losses.ContrastiveLoss,
                    "triplet": losses.TripletMarginLoss,
                    "nca": losses.NCALoss,
                }[name]()
                miner = miners.TripletMarginMiner() if name == "triplet" else None
                optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
                points, labels = torch.tensor(Z, dtype=torch.float32), torch.tensor(y.astype(np.int64))
                for _ in range(60):
                    for batch in torch.randperm(len(points)).split(32):
                        mapped = layer(points[batch])
                        found = (mapped, labels[batch]) + (
                            () if miner is None else (miner(mapped, labels[batch]),)
                        )
                        optimiser.zero_grad()
                        loss(*found).backward()
                        optimiser.step()
                seconds = time.process_time() - start
                W = layer.weight.detach().numpy().T.astype(np.float64)
                score = KNeighborsClassifier(4).fit(Z @ W, y).score(Z_test @ W, y_test)
                rows.append(
                    {
                        "part": i,
                        "method": f"pytorch-metric-learning, {name}",
                        "accuracy": score,
                        "seconds": seconds,
                    }
                )
    return rows


def run_torch(interpreter: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send the splits to another interpreter and read its results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parts.npz"
        arrays: dict[str, Any] = {"count": np.array(len(parts))}
        for i, part in enumerate(parts):
            arrays |= {f"{i}_{key}": part[key] for key in ("X", "y", "X_test", "y_test")}
        np.savez(path, **arrays)
        out = subprocess.run(
            [interpreter, __file__, "--torch-part", str(path)], capture_output=True, text=True, check=True
        )
    return json.loads(out.stdout)


def table(rows: list[dict[str, Any]], parts: list[dict[str, Any]]) -> str:
    """Markdown: accuracy in % at every share of noise; then median CPU seconds of a fit to clean labels."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    sets = list(dict.fromkeys(part["data"] for part in parts))

    def values(method: str, name: str, share: float, key: str) -> list[float]:
        chosen = {i for i, part in enumerate(parts) if (part["data"], part["share"]) == (name, share)}
        return [row[key] for row in rows if row["method"] == method and row["part"] in chosen]

    def accuracy(method: str, name: str) -> str:
        found = [values(method, name, share, "accuracy") for share in NOISE]
        return " / ".join(f"{100 * np.mean(v):.1f}" for v in found) if all(found) else "–"

    def seconds(method: str, name: str) -> str:
        found = values(method, name, 0.0, "seconds")
        return f"{np.median(found):.2f}" if found else "–"

    lines: list[str] = []
    for cell in (accuracy, seconds):
        lines += ["| method | " + " | ".join(sets) + " |", "|---" * (len(sets) + 1) + "|"]
        lines += [f"| {m} | " + " | ".join(cell(m, name) for name in sets) + " |" for m in methods] + [""]
    return "\n".join(lines)


def main() -> None:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="repetitions of the two halves")
    parser.add_argument(
        "--pytorch", help="an interpreter with torch, pytorch-metric-learning and scikit-learn"
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", help="just these of the methods that need no other interpreter")
    parser.add_argument("--torch-part", type=Path, help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()  # `python -m benchmarks` passes the names of benchmarks
    warnings.simplefilter("ignore")
    if options.torch_part:
        print(json.dumps(torch_part(options.torch_part)))
        return
    parts = [part for name in options.sets.split(",") for part in splits(name, options.repeats)]
    rows: list[dict[str, Any]] = []
    methods = ours()
    for method in options.methods.split(",") if options.methods else methods:
        make = methods[method]
        judge(make, parts[0])  # compiled code is loaded before anything is timed
        for i, part in enumerate(parts):
            accuracy, seconds = judge(make, part)
            rows.append({"part": i, "method": method, "accuracy": accuracy, "seconds": seconds})
        print(f"{method} done", file=sys.stderr)
    if options.pytorch:
        rows += run_torch(options.pytorch, parts)
    print(table(rows, parts))


if __name__ == "__main__":
    main()
