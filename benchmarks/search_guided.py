"""Guided sampling: does it help to sample the pairs that agree with their neighbourhood?

    python -m benchmarks.search_guided

A point is trusted when at least half of its 10 nearest neighbours (standardised features) share its label; a
pair when both its points are. Guided trials sample trusted pairs only, uniform trials all; both are scored on
all pairs. u = l = median distance, labels flipped at random, 300 trials, 5 seeds; "refined" is the cost after
the refinement of the eight best candidates, which is what a user gets.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from benchmarks.search import points
from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.refine import refine
from lptml.search.sampling import probability_grid
from lptml.search.setup import Setup, prepare
from lptml.search.trial import Unit, run_unit

SETUP = Setup(
    epsilon=0.5,
    objective="trace",
    prior=None,
    strategy="multi",
    solver="numba",
    regularizer=None,
    eta=0.0,
    approximate_counting=False,
    delta=0.05,
    n_candidates=8,
)
TRIALS = 300


def best(pairs: ConstraintSet, sampled: ConstraintSet, seed: int) -> tuple[float, float]:
    """The least cost of trials that sample ``sampled``, before and after refinement."""
    problem = prepare(pairs, SETUP, seed).problem
    problem = replace(problem, source=sampled, n=sampled.n, levels=probability_grid(sampled.n, SETUP.epsilon))
    found = run_unit(problem, Unit(0, TRIALS)).candidates
    metrics = np.array([candidate.metric for candidate in found if np.isfinite(candidate.cost)])
    costs = pairs.cost(metrics)
    starts = list(metrics[np.argsort(costs, kind="stable")[:8]])
    refined = refine(pairs, starts, random_state=seed)
    return float(costs.min()) / pairs.n, refined.cost / pairs.n


def main() -> None:
    print("| data | flipped | uniform | guided | uniform, refined | guided, refined |")
    print("|---|---|---|---|---|---|")
    for name, d in (("Wine", 4), ("Iris", 4), ("Synthetic", 2)):
        for flipped in (0.0, 0.1, 0.3):
            rows = []
            for seed in range(5):
                rng = np.random.default_rng(seed)
                X, y = points(name, seed)
                if d < X.shape[1]:
                    X = PCA(d).fit_transform(X)
                keep = rng.permutation(len(X))[: min(len(X) // 2, 75)]
                X, y = X[keep], np.unique(y[keep], return_inverse=True)[1]
                wrong = rng.random(len(y)) < flipped
                y = np.where(wrong, (y + 1 + rng.integers(y.max(), size=len(y))) % (y.max() + 1), y)
                bound = float(np.median(pdist(X)))
                pairs = LabelledPairs.from_labels(X, y, bounds=(bound, bound))
                everything = pairs.take(np.arange(pairs.n))
                near = (
                    NearestNeighbors(n_neighbors=11).fit(X / X.std(axis=0)).kneighbors(X / X.std(axis=0))[1]
                )
                trusted = (y[near[:, 1:]] == y[:, None]).mean(axis=1) >= 0.5
                i, j = np.triu_indices(len(X), 1)
                guided = everything.take(np.flatnonzero(trusted[i] & trusted[j]))
                rows.append([*best(everything, everything, seed), *best(everything, guided, seed)])
            u, u_refined, g, g_refined = np.mean(rows, axis=0)
            print(
                f"| {name} d = {d} | {flipped:.0%} | {u:.4f} | {g:.4f} | {u_refined:.4f} | {g_refined:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
