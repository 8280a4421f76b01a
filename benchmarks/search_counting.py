"""Approximate against full counting: how many constraints are looked at, and whether the winner is the same.

    python -m benchmarks.search_counting [--n 1000000] [--seeds 100] [--trials 200]

10 features, pairs judged by a hidden metric, 15% of the labels wrong. Prints a line a seed and the totals.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from lptml.constraints import ConstraintSet
from lptml.search import search


def noisy_pairs(n: int, d: int, seed: int, noise: float = 0.15) -> ConstraintSet:
    """Pairs judged by a hidden metric, a share of the labels wrong."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(d, d)) / np.sqrt(d)
    V = rng.normal(size=(n, d))
    squares = ((V @ G.T) ** 2).sum(axis=1)
    y = np.where(squares < np.median(squares), 1, -1)
    y = np.where(rng.random(n) < noise, -y, y)
    middle = float(np.sqrt(np.median(squares)))
    return ConstraintSet.from_differences(V, y, bounds=(middle, middle))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--d", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--trials", type=int, default=200)
    options = parser.parse_args()
    constraints = noisy_pairs(options.n, options.d, seed=0)
    same, shares, lost = 0, [], []
    for seed in range(options.seeds):
        began = time.process_time()
        full = search(constraints, max_trials=options.trials, random_state=seed, approximate_counting=False)
        between = time.process_time()
        quick = search(constraints, max_trials=options.trials, random_state=seed, approximate_counting=True)
        ended = time.process_time()
        same += quick.trial == full.trial
        shares.append(quick.counted.looked / (options.n * (1 + full.n_feasible + full.n_infeasible)))
        lost.append((quick.cost - full.cost) / options.n)
        print(
            f"seed {seed}: winner {quick.trial} / {full.trial}, cost {quick.cost / options.n:.5f} /"
            f" {full.cost / options.n:.5f}, looked at {shares[-1]:.2%},"
            f" CPU {ended - between:.1f} s / {between - began:.1f} s; same so far {same} of {seed + 1}",
            flush=True,
        )
    print("\n| n | d | trials | seeds | looked at, mean (max) | same winner | cost lost, largest |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {options.n} | {options.d} | {options.trials} | {options.seeds} | {np.mean(shares):.2%}"
        f" ({max(shares):.2%}) | {same} | {max(lost):.2e} |"
    )


if __name__ == "__main__":
    main()
