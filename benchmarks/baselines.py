"""Our baselines against metric-learn 0.7 in one run: CPU seconds of a fit and 4-NN accuracy after it.

metric-learn no longer fits on current scikit-learn, so it runs in an environment of its own that this script
makes:

    python benchmarks/baselines.py                        # finds uv or an old enough Python on PATH
    python benchmarks/baselines.py --python python3.10    # or names one (3.8 to 3.11)
    python benchmarks/baselines.py --environment folder   # keeps the environment there for the next time

Both sides get the same folds (written to a file), the same options where both have them, and one thread. The
fits of the two libraries alternate in short processes, so that other load on the machine hits both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

PINNED = ["metric-learn==0.7.0", "scikit-learn==1.2.2", "numpy==1.26.4", "scipy==1.11.4"]
METHODS = ["ITML", "LMNN", "MMC", "LFDA", "RCA"]  # MCML is not in metric-learn 0.7
SETS = ["iris", "wine", "synthetic", "breast_cancer", "digits"]


def learner(library: str, method: str) -> object:
    """The learner of one library, with its defaults except for what both must share."""
    if library == "ours":
        from lptml import baselines as source
    else:
        import metric_learn as source
    if method == "ITML":
        return source.ITML_Supervised(random_state=0, tol=1e-3)
    if method == "MMC":
        return source.MMC_Supervised(random_state=0)
    if method == "RCA":
        return source.RCA_Supervised(n_chunks=20, chunk_size=2, random_state=0)
    return getattr(source, method)()


def fit_all(library: str, path: Path, only: tuple[str, str]) -> list[dict[str, object]]:
    """Fit one method on the folds of one data set; runs in either environment."""
    from sklearn.neighbors import KNeighborsClassifier

    warnings.simplefilter("ignore")
    name, method = only
    with np.load(path) as stored:
        X, y, trains = stored[f"{name}_X"], stored[f"{name}_y"], stored[f"{name}_train"]
    few = np.flatnonzero(trains[0])[:60]
    learner(library, method).fit(X[few], y[few])  # what a process loads or compiles once is not counted
    rows = []
    for train in trains:
        start = time.process_time()
        fitted = learner(library, method).fit(X[train], y[train])
        seconds = time.process_time() - start
        voting = KNeighborsClassifier(4).fit(fitted.transform(X[train]), y[train])
        accuracy = voting.score(fitted.transform(X[~train]), y[~train])
        rows.append({"seconds": seconds, "accuracy": float(accuracy)})
    return rows


def write_folds(path: Path, repeats: int, most_points: int) -> None:
    """The data and the training halves, the same for both libraries."""
    from sklearn.model_selection import StratifiedKFold

    from lptml.datasets import load

    arrays = {}
    for name in SETS:
        options = {"random_state": 0} if name == "synthetic" else {}
        X, y = load(name, return_X_y=True, **options)
        kept = np.random.default_rng(0).permutation(len(X))[:most_points]
        X, y = X[kept], y[kept]
        trains = []
        for repeat in range(repeats):
            for train, _ in StratifiedKFold(2, shuffle=True, random_state=repeat).split(X, y):
                trains.append(np.isin(np.arange(len(X)), train))
        arrays.update({f"{name}_X": X, f"{name}_y": y, f"{name}_train": np.array(trains)})
    np.savez(path, **arrays)


def make_environment(folder: Path, python: str | None) -> Path:
    """An environment with metric-learn and the packages it still works with; returns its interpreter."""
    interpreter = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if interpreter.exists():
        return interpreter
    uv = shutil.which("uv")
    if python is None:
        python = next((name for name in ("python3.10", "python3.11", "python3.9") if _works(name)), None)
    if python is None and uv is None:
        raise SystemExit("no Python 3.9 to 3.11 on PATH: name one with --python, or install uv")
    if uv is not None:
        subprocess.run([uv, "venv", "--quiet", "--python", python or "3.10", str(folder)], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(interpreter), *PINNED]
    else:
        subprocess.run([str(python), "-m", "venv", str(folder)], check=True)
        install = [str(interpreter), "-m", "pip", "install", "--quiet", *PINNED]
    subprocess.run(install, check=True)
    return interpreter


def _works(name: str) -> bool:
    """Whether a command on PATH really starts a Python (version managers leave shims that do not)."""
    if shutil.which(name) is None:
        return False
    return subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0


def measure(
    interpreter: Path, library: str, path: Path, only: tuple[str, str], limit: float
) -> list[dict[str, float]]:
    """The rows of one method on one data set from its own process; empty when it fails or is too slow."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [str(interpreter), __file__, "--worker", library, str(path), *only]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=True, env={**os.environ, **threads}
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return []
    return json.loads(answer.stdout.splitlines()[-1])


def main() -> None:
    """Make the environment, measure both libraries alternately, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", help="interpreter for metric-learn's environment (3.9 to 3.11)")
    parser.add_argument("--environment", type=Path, help="keep metric-learn's environment here")
    parser.add_argument("--repeats", type=int, default=2, help="repeats of two-fold cross-validation")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="wall-clock seconds for one cell of metric-learn"
    )
    parser.add_argument(
        "--most-points", type=int, default=300, help="larger data sets are sampled down to this"
    )
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        library, path, name, method = given.worker
        print(json.dumps(fit_all(library, Path(path), (name, method))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.environment or Path(scratch) / "environment"
        theirs = make_environment(folder, given.python)
        path = Path(scratch) / "folds.npz"
        write_folds(path, given.repeats, given.most_points)
        print("| data | method | metric-learn s | ours s | times faster | metric-learn 4-NN | ours 4-NN |")
        print("|---|---|---|---|---|---|---|")
        for name in SETS:
            for method in METHODS:
                old = measure(theirs, "metric-learn", path, (name, method), given.limit)
                new = measure(Path(sys.executable), "ours", path, (name, method), given.limit)
                print(_line(name, method, old, new), flush=True)


def _line(name: str, method: str, old: list[dict[str, float]], new: list[dict[str, float]]) -> str:
    def middle(rows: list[dict[str, float]], key: str) -> float | None:
        return statistics.median(row[key] for row in rows) if rows else None

    def mean(rows: list[dict[str, float]]) -> str:
        return f"{100 * statistics.fmean(row['accuracy'] for row in rows):.1f}" if rows else "-"

    before, after = middle(old, "seconds"), middle(new, "seconds")
    cells = [f"{value:.4f}" if value is not None else "failed or over the limit" for value in (before, after)]
    ratio = f"{before / after:.1f}" if before is not None and after else "-"
    return f"| {name} | {method} | {cells[0]} | {cells[1]} | {ratio} | {mean(old)} | {mean(new)} |"


if __name__ == "__main__":
    main()
