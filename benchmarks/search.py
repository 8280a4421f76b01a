"""The search in the paper's protocol: time and cost against the authors' figures.

    python -m benchmarks.search                # every table of docs/algorithm2.md that this file makes
    python -m benchmarks.search speed          # t = 2000, d = 13: wall, CPU a trial, efficiency of two cores
    python -m benchmarks.search authors        # cost and CPU against the authors' own implementation
    python -m benchmarks.search objectives     # what a trial should minimise

Wine (or Iris, ...), raw features, PCA to d, 50/50 split, u = 10th and l = 90th percentile of the training
distances, all training pairs, 4-NN. CPU seconds are those of one core; wall time means something on an idle
machine only.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from lptml.constraints import ConstraintSet, LabelledPairs, factor
from lptml.datasets import load_iris, load_wine, make_poisoned, make_synthetic
from lptml.search import SearchResult, search

#: Their code with Clarabel in place of MOSEK, one core: CPU s, cost, cost of c I, 4-NN Euclidean and learned.
AUTHORS = {
    ("Wine", 2, 100): (2.8, 0.362, 0.341, 0.672, 0.598),
    ("Wine", 4, 100): (12.2, 0.345, 0.341, 0.672, 0.654),
    ("Wine", 8, 50): (12.7, 0.349, 0.341, 0.672, 0.771),
    ("Wine", 13, 50): (27.6, 0.355, 0.341, 0.672, 0.780),
    ("Iris", 4, 50): (2.9, 0.334, 0.329, 0.941, 0.851),
    ("Synthetic", 2, 100): (2.7, 0.458, 0.495, 0.752, 0.988),
    ("Poisoned", 2, 100): (2.7, 0.440, 0.493, 0.630, 0.992),
}
SEEDS = 5
REST = 0.3  # seconds before a clock starts: OpenBLAS's idle threads spin for 0.1 s after whatever ran before


def points(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and labels of a data set; the synthetic ones are drawn anew for every seed."""
    if name in ("Synthetic", "Poisoned"):
        make = make_synthetic if name == "Synthetic" else make_poisoned
        X, y = make(random_state=seed, return_X_y=True)
        return X, y
    return {"Wine": load_wine, "Iris": load_iris}[name](return_X_y=True)


def protocol(name: str, d: int, seed: int) -> tuple[ConstraintSet, tuple[np.ndarray, ...]]:
    """Constraints of the training half, and the split."""
    X, y = points(name, seed)
    if d < X.shape[1]:
        X = PCA(d).fit_transform(X)
    split = train_test_split(X, y, test_size=0.5, random_state=seed)
    train, labels = split[0], split[2]
    u, l = np.percentile(pdist(train), [10, 90])
    labelled = LabelledPairs.from_labels(train, labels, bounds=(float(u), float(l)))
    return labelled.take(np.arange(labelled.n)), split


def accuracy(split: tuple[np.ndarray, ...], A: np.ndarray | None = None) -> float:
    """4-NN accuracy on the test half under a metric."""
    train, test, y_train, y_test = split
    if A is not None:
        L = factor(A)
        if L is None or not len(L):
            return float("nan")
        train, test = train @ L.T, test @ L.T
    return float(KNeighborsClassifier(4).fit(train, y_train).score(test, y_test))


def timed(constraints: ConstraintSet, **options: object) -> tuple[SearchResult, float, float]:
    """A search, its CPU seconds and its wall seconds."""
    time.sleep(REST)
    cpu, wall = time.process_time(), time.perf_counter()
    result = search(constraints, **options)
    return result, time.process_time() - cpu, time.perf_counter() - wall


def speed(rounds: int = 7) -> None:
    """One job and two in turn, as the speed of a shared machine wanders; and what two processes reach."""
    constraints, _ = protocol("Wine", 13, 0)
    search(constraints, max_trials=50, random_state=0, n_jobs=2)
    runs = []
    for _ in range(rounds):
        one, two = (timed(constraints, max_trials=2000, random_state=0, n_jobs=jobs) for jobs in (1, 2))
        runs.append((*one[1:], *two[1:], apart(constraints)))
    cpu_one, wall_one, cpu_two, wall_two, wall_apart = np.array(runs).T
    result = one[0]
    print(f"t = 2000, d = 13, medians of {rounds} rounds; efficiencies (least and largest) by round\n")
    print("| jobs | wall s | CPU ms a trial | efficiency | cores busy |\n|---|---|---|---|---|")
    for jobs, wall, cpu in ((1, wall_one, cpu_one), (2, wall_two, cpu_two)):
        each = wall_one / (jobs * wall)
        spread = f"{np.median(each):.2f} ({each.min():.2f} to {each.max():.2f})"
        busy = np.median(cpu / (jobs * wall))
        row = f"{np.median(wall):.2f} | {np.median(cpu) / 2:.2f} | {spread} | {busy:.2f}"
        print(f"| {jobs} | {row} |", flush=True)
    each = wall_one / (2 * wall_apart)
    spread = f"{np.median(each):.2f} ({each.min():.2f} to {each.max():.2f})"
    print(f"| two processes, half each | {np.median(wall_apart):.2f} | | {spread} | |")
    share, solves = result.n_infeasible / result.n_trials, result.n_solves / result.n_trials
    print(f"\ncost {result.cost / constraints.n:.4f}, infeasible {share:.0%}, {solves:.2f} solves a trial")


def apart(constraints: ConstraintSet) -> float:
    """Wall seconds of two processes that share nothing and run a thousand trials each."""
    fork = multiprocessing.get_context("fork")
    options = {"max_trials": 1000, "random_state": 0, "n_jobs": 1}
    both = [fork.Process(target=search, args=(constraints,), kwargs=options) for _ in range(2)]
    time.sleep(REST)
    start = time.perf_counter()
    for process in both:
        process.start()
    for process in both:
        process.join()
    return time.perf_counter() - start


def authors() -> None:
    print("| data | t | CPU s: theirs | ours | cost: theirs | ours | ours, t = 2000 | c I |", end="")
    print(" 4-NN: Euclidean | theirs | ours |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for (name, d, t), (their_cpu, their_cost, _, _, their_accuracy) in AUTHORS.items():
        rows = []
        for seed in range(SEEDS):
            constraints, split = protocol(name, d, seed)
            n = constraints.n
            if seed == 0:
                search(constraints, max_trials=20, random_state=0)
            result, cpu, _ = timed(constraints, max_trials=t, random_state=seed)
            longer = search(constraints, max_trials=2000, random_state=seed)
            rows.append(
                (
                    cpu,
                    result.cost / n,
                    longer.cost / n,
                    constraints.best_identity().cost / n,
                    accuracy(split),
                    accuracy(split, result.A),
                )
            )
            assert result.cost <= constraints.best_identity().cost
        cpu, cost, long_cost, identity, euclidean, learned = np.nanmean(rows, axis=0)
        print(
            f"| {name} d = {d} | {t} | {their_cpu} | {cpu:.2f} | {their_cost:.3f} | {cost:.3f} |"
            f" {long_cost:.3f} | {identity:.3f} | {euclidean:.3f} | {their_accuracy:.3f} | {learned:.3f} |",
            flush=True,
        )


def objectives() -> None:
    print(
        "| data | u, l | objective | cost after 500 trials | CPU ms a trial | mean of the best 8 candidates |"
    )
    print("|---|---|---|---|---|---|")
    for name, d in (("Wine", 4), ("Wine", 13), ("Iris", 4), ("Poisoned", 2)):
        for middle in (False, True):
            for objective in ("random", "trace", "prior"):
                rows = []
                for seed in range(SEEDS):
                    constraints, split = protocol(name, d, seed)
                    if middle:
                        bound = float(np.median(pdist(split[0])))
                        constraints = ConstraintSet.from_differences(
                            constraints.V, constraints.sign, bounds=(bound, bound)
                        )
                    result, cpu, _ = timed(
                        constraints, max_trials=500, random_state=seed, objective=objective
                    )
                    best = statistics.mean(found.cost for found in result.candidates)
                    rows.append(
                        (result.cost / constraints.n, cpu / result.n_trials * 1e3, best / constraints.n)
                    )
                cost, cpu, best = np.mean(rows, axis=0)
                bounds = "median, median" if middle else "10th, 90th"
                print(
                    f"| {name} d = {d} | {bounds} | {objective} | {cost:.4f} | {cpu:.1f} | {best:.4f} |",
                    flush=True,
                )


if __name__ == "__main__":
    tables = {"speed": speed, "authors": authors, "objectives": objectives}
    for table in sys.argv[1:] or tables:
        print(f"\n{table}\n")
        tables[table]()
