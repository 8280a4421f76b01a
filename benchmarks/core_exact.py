"""Exact-LPTML: against Clarabel on the whole problem, its growth with n, and what each heuristic saves."""

from __future__ import annotations

import collections
import statistics
import time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from threadpoolctl import threadpool_limits

from benchmarks.core import clarabel_seconds
from lptml.constraints import ConstraintSet
from lptml.constraints.scaling import feature_scale
from lptml.exact import exact_lptml, make_objective

SEEDS = range(5)


def split(d: int, n: int, seed: int) -> ConstraintSet:
    """n pairs told apart by a random metric, with 5% between u and l: feasible."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((d, d))
    V = rng.standard_normal((n, d))
    squared = ((V @ G) ** 2).sum(axis=1)
    threshold = float(np.sqrt(np.median(squared)))
    y = np.where(squared <= threshold**2, 1, -1)
    return ConstraintSet.from_differences(V, y, bounds=(1.025 * threshold, 0.975 * threshold))


def whole() -> None:
    print("n = 100,000 feasible pairs, d = 5, CPU seconds, median of 5 seeds:\n")
    print(
        "| Exact-LPTML | solves | passes over n | Clarabel, all constraints | faster | objectives differ by |"
    )
    print("|---|---|---|---|---|---|")
    ours, theirs, solves, passes, differences = [], [], [], [], []
    for seed in SEEDS:
        F = split(5, 100_000, seed)
        objective = make_objective("random", 5, seed)
        exact_lptml(F.take(slice(0, 100)), objective, rng=0)
        start = time.process_time()
        result = exact_lptml(F, objective, rng=seed)
        ours.append(time.process_time() - start)
        solves.append(result.counts.solves)
        passes.append(result.counts.violation_tests / F.n)
        seconds, value = clarabel_seconds(F, objective.linear_part(F, feature_scale(F)))
        theirs.append(seconds)
        differences.append(abs(value - result.objective) / result.objective)
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(
        f"| {mine:.3f} | {statistics.median(solves)} | {statistics.median(passes):.1f} | {other:.2f} "
        f"| {other / mine:.0f}x | {max(differences):.0e} |\n",
        flush=True,
    )


def growth() -> None:
    print("CPU seconds of Exact-LPTML, median of 5 seeds:\n")
    print("| d | n = 10^4 | 10^5 | 10^6 | exponent |")
    print("|---|---|---|---|---|")
    for d in (3, 5):
        times = []
        for n in (10**4, 10**5, 10**6):
            runs = []
            for seed in SEEDS:
                F = split(d, n, seed)
                objective = make_objective("random", d, seed)
                start = time.process_time()
                exact_lptml(F, objective, rng=seed)
                runs.append(time.process_time() - start)
            times.append(statistics.median(runs))
        exponent = np.log(times[-1] / times[0]) / np.log(100)
        print(f"| {d} | {times[0]:.4f} | {times[1]:.4f} | {times[2]:.3f} | {exponent:.2f} |", flush=True)
    print()


def heuristics() -> None:
    print("Solves (violation tests) of Exact-LPTML, mean of 5 seeds, random objective:\n")
    print("| d | n | plain | move-to-front | pivot | multi |")
    print("|---|---|---|---|---|---|")
    for d, n in ((2, 1000), (3, 1000), (5, 1000), (5, 10_000), (8, 2000)):
        cells = []
        for strategy in ("plain", "mtf", "pivot", "multi"):
            counts = [
                exact_lptml(
                    split(d, n, seed),
                    make_objective("random", d, seed),
                    rng=seed,
                    strategy=strategy,
                    minimal=False,
                ).counts
                for seed in SEEDS
            ]
            solves = statistics.mean(count.solves for count in counts)
            tests = statistics.mean(count.violation_tests for count in counts)
            cells.append(f"{solves:.0f} ({tests:,.0f})")
        print(f"| {d} | {n:,} | " + " | ".join(cells) + " |", flush=True)
    print()


def objectives() -> None:
    print("Candidates from samples of all pairs (u = l = median distance, raw features, half of the points):")
    print("best and median cost and CPU ms a sample, each objective at the rate that suits it best.\n")
    print("| data | objective | rate | infeasible | best cost | median cost | CPU ms |")
    print("|---|---|---|---|---|---|---|")
    for name, load in (("Iris", load_iris), ("Wine", load_wine), ("Breast Cancer, 10", load_breast_cancer)):
        X, y = load(return_X_y=True)
        X, y = X[::2, :10] if name.startswith("Breast") else X[::2], y[::2]
        i, j = np.triu_indices(len(X), 1)
        u = float(np.median(np.linalg.norm(X[i] - X[j], axis=1)))
        F = ConstraintSet.from_differences(X[i] - X[j], np.where(y[i] == y[j], 1, -1), bounds=(u, u))
        rows: dict[str, tuple[float, str]] = {}
        for kind in ("random", "trace", "prior"):
            for size in (20, 40, 80, 160, 320):
                costs, times = [], []
                statuses: collections.Counter[str] = collections.Counter()
                for trial in range(60):
                    rng = np.random.default_rng(trial)
                    sample = F.take(rng.choice(F.n, min(size, F.n), replace=False))
                    objective = make_objective(kind, F.d, rng)
                    start = time.process_time()
                    result = exact_lptml(sample, objective, rng=rng, minimal=False)
                    times.append(time.process_time() - start)
                    statuses[result.status.name.lower()] += 1
                    costs.append(F.best_scale(result.A).cost / F.total_weight)
                best = min(costs)
                row = (
                    f"| {name} | {kind} | {size / F.n:.2%} | {statuses['infeasible'] / 60:.0%} | {best:.3f} "
                    f"| {statistics.median(costs):.3f} | {1e3 * statistics.median(times):.2f} |"
                )
                if kind not in rows or best < rows[kind][0]:
                    rows[kind] = (best, row)
        for _, row in rows.values():
            print(row, flush=True)


def main() -> None:
    with threadpool_limits(limits=1, user_api="blas"):  # else waiting threads count as CPU time
        whole()
        growth()
        heuristics()
        objectives()


if __name__ == "__main__":
    main()
