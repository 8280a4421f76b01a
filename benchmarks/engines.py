"""How well the engines use workers: t = 2000 trials on Wine, d = 13, as in docs/scaling.md.

    python -m benchmarks.engines speedup        # one worker against two on each engine, after start-up
    python -m benchmarks.engines overhead       # what a task costs, by the number of trials in it
    python -m benchmarks.engines model          # cost of a trial and of a pass against n and d

Wall time means something on an idle machine only; processor seconds (of the driver and of all worker
processes) are printed beside it. An efficiency is the time with one worker over twice the time with two.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import psutil
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from benchmarks.search import REST
from lptml.constraints import ConstraintSet
from lptml.search import search
from lptml.search.engine import Engine


def wine() -> ConstraintSet:
    """The paper's protocol: PCA to 13, half of the points, u = 10th and l = 90th percentile, all pairs."""
    X, y = load_wine(return_X_y=True)
    X, _, y, _ = train_test_split(PCA(13).fit_transform(X), y, train_size=0.5, random_state=0, stratify=y)
    i, j = np.triu_indices(len(X), 1)
    V = X[i] - X[j]
    u, l = np.percentile(np.sqrt(np.einsum("ij,ij->i", V, V)), [10, 90])
    return ConstraintSet.from_differences(V, np.where(y[i] == y[j], 1, -1), bounds=(u, l))


def processor_seconds() -> float:
    """Of this process and all that it started, as long as they live."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


@contextmanager
def local(workers: int) -> Iterator[Engine]:
    from lptml.engines.local import LocalEngine

    yield LocalEngine(workers)


@contextmanager
def dask(workers: int) -> Iterator[Engine]:
    from distributed import Client

    from lptml.engines.dask import DaskEngine

    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as client:
        yield DaskEngine(client)


@contextmanager
def spark(workers: int) -> Iterator[Engine]:
    from pyspark.sql import SparkSession

    from lptml.engines.spark import SparkEngine

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(f"local[{workers},4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield SparkEngine(session)
    finally:
        session.stop()


ENGINES: dict[str, Callable[[int], Any]] = {"local": local, "dask": dask, "spark": spark}


def speedup(names: list[str], trials: int, repeat: int) -> None:
    """The table of efficiencies: one worker and two in turn, as the speed of a shared machine wanders."""
    source = wine()
    print(f"Wine d = 13, {source.n} constraints, t = {trials}, medians of {repeat}; after start-up")
    print("| engine | workers | wall s | processor s | ms a trial | efficiency (least to largest) |")
    print("|---|---|---|---|---|---|")
    metrics = []
    for name in names:
        runs: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
        # A process has one Spark context at a time, so that one starts anew for every round.
        rounds, turns = (repeat, [[1], [2]]) if name == "spark" else (1, [[1, 2]])
        for workers_at_once in rounds * turns:
            with ExitStack() as stack:
                engines = {k: stack.enter_context(ENGINES[name](k)) for k in workers_at_once}
                for engine in engines.values():  # compile, connect, warm up
                    search(source, max_trials=trials, random_state=1, engine=engine)
                for _ in range(repeat // rounds):
                    for k, engine in engines.items():
                        time.sleep(REST)
                        cpu, wall = processor_seconds(), time.perf_counter()
                        found = search(source, max_trials=trials, random_state=0, engine=engine)
                        runs[k].append((time.perf_counter() - wall, processor_seconds() - cpu))
                        metrics.append(found.A)
        each = sorted(one[0] / (2 * two[0]) for one, two in zip(runs[1], runs[2]))
        for k, times in runs.items():
            wall, cpu = (statistics.median(column) for column in zip(*times))
            ratio = f"{statistics.median(each):.2f} ({each[0]:.2f} to {each[-1]:.2f})" if k == 2 else ""
            row = f"{wall:.2f} | {cpu:.2f} | {1000 * cpu / trials:.2f} | {ratio}"
            print(f"| {name} | {k} | {row} |", flush=True)
    same = all(np.array_equal(A, metrics[0]) for A in metrics)
    print(f"same metric, bit for bit, in all of them: {same}")


def overhead(names: list[str]) -> None:
    """Units that do nothing but travel."""
    from lptml.search.setup import Setup, prepare
    from lptml.search.trial import Unit

    setup = Setup(0.5, "trace", None, "multi", "numba", None, 0.0, "auto", 0.05, 8)
    problem = prepare(wine(), setup, 0).problem
    print("| engine | ms a unit without trials |")
    print("|---|---|")
    for name in names:
        with ENGINES[name](1) as engine, engine.open(problem) as session:
            times = []
            for count in (10, 100):
                began = time.perf_counter()
                for _ in session.run(Unit(k, 0) for k in range(count)):
                    pass
                times.append(time.perf_counter() - began)
        print(f"| {name} | {1000 * (times[1] - times[0]) / 90:.2f} |", flush=True)


def model() -> None:
    """Processor time of a trial and of a pass, for the model of docs/scaling.md."""
    from lptml.constraints.indexed_pairs import IndexedPairs
    from lptml.engines.partitioned import from_arrays

    print("| d | n | trial ms | pass, ns a row and metric | pass of scales, ns a row | in memory, ns |")
    print("|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for d in (5, 10, 20):
        for n in (10**5, 10**6):
            X = rng.normal(size=(10**5, d)) * np.linspace(1, 3, d)
            indices = rng.integers(0, len(X), size=(n, 2)).astype(np.int32)
            near = np.abs(X[indices[:, 0], 0] - X[indices[:, 1], 0]) < 1
            y = np.where(near ^ (rng.random(n) < 0.05), 1, -1).astype(np.int8)
            source = from_arrays(X, indices, y, n_parts=4)
            here = IndexedPairs.from_indices(X, indices, y, bounds=source.bounds)
            search(here, max_trials=10, random_state=0)
            began = time.process_time()
            few = search(here, max_trials=10, random_state=0)
            middle = time.process_time()
            many = search(here, max_trials=60, random_state=0)
            trial = ((time.process_time() - middle) - (middle - began)) / 50
            stack = np.stack([few.A, many.A, np.eye(d)])
            scales = np.geomspace(0.1, 10, 512)
            A = many.A if many.A.any() else np.eye(d)
            times = [
                _seconds(partial(source.cost, stack)) / 3,
                _seconds(partial(source.broken_weights, A, scales)),
                _seconds(partial(here.cost, A)),
            ]
            shown = " | ".join(f"{1e9 * seconds / n:.0f}" for seconds in times)
            print(f"| {d} | {n:,} | {1000 * trial:.2f} | {shown} |", flush=True)


def _seconds(call: Callable[[], Any]) -> float:
    call()
    times = []
    for _ in range(3):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=["speedup", "overhead", "model"], nargs="?", default="speedup")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    if options.what == "speedup":
        speedup(options.engines, options.trials, options.repeat)
    elif options.what == "overhead":
        overhead(options.engines)
    else:
        model()


if __name__ == "__main__":
    main()
