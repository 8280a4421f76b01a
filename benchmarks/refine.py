"""What refinement reaches, in what time, and how near it is to the best possible.

    python -m benchmarks.refine                # every table of docs/refinement.md but that of the bounds
    python -m benchmarks.refine wine           # cost on Wine, u = l and u = 10th, l = 90th percentile
    python -m benchmarks.refine small          # against the optimum, two and three features
    python -m benchmarks.refine authors        # CPU time to the final cost of the authors' code
    python -m benchmarks.refine stages         # what each stage contributes on Wine
    python -m benchmarks.refine rate           # counting and gradients against the machine's own dgemm
    python -m benchmarks.refine large          # 50,000 points, 100 features, all pairs

CPU seconds are those of one core (BLAS on one thread, but for ``large``). Everything is compiled before a
clock starts.
"""

from __future__ import annotations

import importlib.util
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.search import AUTHORS, SEEDS, protocol
from lptml import LPTML_Supervised
from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.learn import learn
from lptml.refine import Refined, refine
from lptml.refine.anneal import _Rows, anneal

_spec = importlib.util.spec_from_file_location("oracle", Path(__file__).parent.parent / "tests" / "oracle.py")
assert _spec is not None
assert _spec.loader is not None
oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracle)


def wine_pairs(split: int, percentiles: bool) -> ConstraintSet:
    """All pairs of the training half of Wine, raw features."""
    X, y = load_wine(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
    bounds = (1.0, 1.0)
    if percentiles:
        i, j = np.triu_indices(len(X), 1)
        u, l = np.percentile(np.linalg.norm(X[i] - X[j], axis=1), [10, 90])
        bounds = (float(u), float(l))
    return LabelledPairs.from_labels(X, y, bounds=bounds)


def timed(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, float]:
    """A result and the CPU seconds that it took."""
    began = time.process_time()
    result = work(*arguments, **options)
    return result, time.process_time() - began


def wine() -> None:
    """Costs and CPU seconds on four splits of Wine."""
    print("\n| Wine, d = 13 | cost on splits 0..3 | mean | CPU s |\n|---|---|---|---|")
    learn(wine_pairs(0, False), random_state=0)
    for percentiles in (False, True):
        name = "u = 10th, l = 90th percentile" if percentiles else "u = l"
        for label, options in (
            ("refinement alone", {"max_trials": 0}),
            ("search and refinement (default)", {}),
        ):
            results = [
                timed(learn, wine_pairs(split, percentiles), random_state=0, **options) for split in range(4)
            ]
            rates = [learned.violation_rate for learned, _ in results]
            seconds = np.median([second for _, second in results])
            shown = " ".join(f"{rate:.4f}" for rate in rates)
            print(f"| {name}, {label} | {shown} | {np.mean(rates):.4f} | {seconds:.2f} |")


def stages() -> None:
    """The mean cost after each stage."""
    print("\n| stage | u = l | CPU s | 10th / 90th percentile | CPU s |\n|---|---|---|---|---|")
    settings = {
        "best multiple of the identity": None,
        "one annealing, 200 steps": {"n_starts": 1, "n_hops": 0, "steps": 200},
        "one annealing, 400 steps": {"n_starts": 1, "n_hops": 0},
        "four starts": {"n_starts": 4, "n_hops": 0},
        "four starts, four reheatings": {},
        "four starts, twelve reheatings": {"n_hops": 12},
        "two starts, 1000 steps": {"n_starts": 2, "n_hops": 0, "steps": 1000},
    }
    for name, options in settings.items():
        cells = []
        for percentiles in (False, True):
            rates, seconds = [], []
            for split in range(4):
                pairs = wine_pairs(split, percentiles)
                found, second = (
                    timed(pairs.best_identity) if options is None else timed(refine, pairs, **options)
                )
                rates.append(found.cost / pairs.n)
                seconds.append(second)
            cells.append(f"{np.mean(rates):.4f} | {np.median(seconds):.2f}")
        print(f"| {name} | {cells[0]} | {cells[1]} |")


def small() -> None:
    """Shares of instances solved to the optimum, by dimension and kind."""
    known = oracle.cached()
    print("\n| instances | number | optimal | within 1 | largest CPU s |\n|---|---|---|---|---|")
    for d, count in oracle.COUNTS.items():
        excess: dict[str, list[tuple[float, float]]] = {}
        for seed in range(-4, count):  # one of each kind to compile
            V, y, bounds, name = oracle.instance(d, seed if seed >= 0 else seed % 4)
            pairs = ConstraintSet.from_differences(V, y, bounds=bounds)
            learned, seconds = timed(learn, pairs, random_state=0)
            if seed >= 0 and name in known:
                kind = oracle.KINDS[seed % 4]
                excess.setdefault(f"d = {d}, {kind}", []).append((learned.cost - known[name], seconds))
        for kind, values in sorted(excess.items()):
            over, seconds_taken = np.array(values).T
            print(
                f"| {kind} | {len(over)} | {np.mean(over == 0):.1%} | {np.mean(over <= 1):.1%} "
                f"| {seconds_taken.max():.3f} |"
            )


def authors() -> None:
    """CPU time until refinement has reached what the authors' code ends with."""
    print("\n| data | their CPU s | their cost | CPU ms to reach it | times less | our final cost, CPU s |")
    print("|---|---|---|---|---|---|")
    for (name, d, trials), (their_seconds, their_cost, *_) in AUTHORS.items():
        reached, finals, totals = [], [], []
        for seed in range(-1, SEEDS):
            pairs, _ = protocol(name, d, max(seed, 0))
            hit: list[float] = []
            began = time.process_time()

            def note(cost: float, A: np.ndarray, hit=hit, began=began, pairs=pairs, goal=their_cost) -> None:
                if cost <= goal * pairs.total_weight and not hit:
                    hit.append(time.process_time() - began)

            refined: Refined = refine(pairs, callback=note)
            if seed >= 0:
                totals.append(time.process_time() - began)
                finals.append(refined.cost / pairs.total_weight)
                reached.append(hit[0] if hit else np.inf)
        ms = 1e3 * float(np.median(reached))
        print(
            f"| {name} d = {d}, t = {trials} | {their_seconds} | {their_cost:.3f} | {ms:.1f} "
            f"| {1e3 * their_seconds / ms:.0f} | {np.mean(finals):.3f}, {np.median(totals):.2f} |"
        )


def rate() -> None:
    """Counting and gradients at n = 10^6, d = 50, in operations of the matrix products alone."""
    n, d = 1_000_000, 50
    rng = np.random.default_rng(0)
    constraints = ConstraintSet.from_differences(
        rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, 1, -1), bounds=(1.0, 1.0)
    )
    A = np.eye(d) / d  # half of the squared distances exceed the bounds
    M = rng.normal(size=(2000, 2000))
    blocks = [_Rows(constraints.take(slice(k, k + 2048)), np.float32) for k in range(0, 16_384, 2048)]
    G = np.eye(d) / 7

    def gradient_of_blocks() -> None:
        total = np.zeros_like(G)
        for block in blocks:
            block.add(total, G, 0.1)

    def best(work: Callable[[], object]) -> float:
        return min(timed(work)[1] for _ in range(5))

    dgemm = 2 * 2000**3 / best(lambda: M @ M)
    tall = 2 * n * d * d / best(lambda: constraints.V @ A)
    counting = 2 * n * d * d / best(lambda: constraints.cost(A))
    gradient_of_blocks()
    gradient = 4 * 16_384 * d * d / best(lambda: [gradient_of_blocks() for _ in range(20)]) * 20
    steps = 30
    whole = 4 * 16_384 * d * d * steps / best(lambda: anneal(constraints, np.eye(d), steps=steps))
    print("\n| n = 10^6, d = 50 | GFlop/s | of dgemm |\n|---|---|---|")
    for name, value in {
        "dgemm, 2000 x 2000": dgemm,
        "dgemm, (n, d) x (d, d)": tall,
        "counting": counting,
        "gradient of a minibatch": gradient,
        "annealing, minibatches drawn": whole,
    }.items():
        print(f"| {name} | {value / 1e9:.1f} | {value / dgemm:.0%} |")


def large(N: int = 50_000, d: int = 100) -> None:
    """A supervised fit with an exact count over all pairs."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, d)) * (np.arange(d) < 10) * 1.2
    y = rng.integers(10, size=N)
    X = (centres[y] + rng.normal(size=(N, d))) * np.exp(rng.normal(size=d))
    wrong = rng.random(N) < 0.1
    y[wrong] = rng.integers(10, size=wrong.sum())
    pairs = LabelledPairs.from_labels(X, y, bounds=(1.0, 1.0), class_weight="balanced")
    ways: dict[str, Callable[[], Any]] = {
        "least cost (learn)": lambda: learn(pairs, random_state=0),
        "LPTML_Supervised, default": lambda: LPTML_Supervised(random_state=0, n_jobs=2).fit(X, y),
    }
    print(f"\n{N} points, d = {d}, {pairs.n} pairs; the peak is that of the process so far:\n")
    print("| what | wall s | CPU s | peak GB | violation rate | trivial |\n|" + "---|" * 6)
    for name, work in ways.items():
        began, cpu = time.monotonic(), time.process_time()
        got = work()
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rates = [getattr(got, f"{kind}_rate_", None) for kind in ("violation", "trivial")]
        if rates[0] is None:
            rates = [got.violation_rate, got.trivial_rate]
        print(
            f"| {name} | {seconds:.0f} | {cpu:.0f} | {memory:.2f} | {rates[0]:.4f} | {rates[1]:.4f} |",
            flush=True,
        )


TABLES = {
    "wine": wine,
    "stages": stages,
    "small": small,
    "authors": authors,
    "rate": rate,
    "large": large,
}


def main(names: list[str]) -> None:
    """Print the tables that are asked for."""
    for name in names:
        if name == "large":
            large()
        else:
            with threadpool_limits(1):
                TABLES[name]()


if __name__ == "__main__":
    main(sys.argv[1:] or list(TABLES))
