"""More constraints than a worker's memory: pairs of keys in Parquet, on two workers of 2 GB each.

    python -m benchmarks.engines_parquet make FOLDER --rows 100000000
    python -m benchmarks.engines_parquet run FOLDER --engine dask     # or spark; --trials 100
    python -m benchmarks.engines_parquet memory FOLDER                # the same pairs in memory, local engine

Prints seconds, nanoseconds a constraint, and the peak memory of each worker as the kernel counted it. 100,000
points of 10 features; similar when a hidden metric of rank 5 says so, and a tenth of the labels wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engines import processor_seconds
from lptml.constraints.indexed_pairs import IndexedPairs
from lptml.engines.partitioned import from_parquet
from lptml.search import search

_POINTS, _D, _FILE_ROWS = 100_000, 10, 10_000_000


def make(folder: Path, rows: int) -> None:
    """Write the data, a file of ten million rows at a time."""
    rng = np.random.default_rng(0)
    (folder / "pairs").mkdir(parents=True, exist_ok=True)
    X = rng.normal(size=(_POINTS, _D)) * np.geomspace(0.1, 10, _D)
    pq.write_table(pa.table({f"x{k}": X[:, k] for k in range(_D)}), folder / "points.parquet")
    Z = X[:, :5] / np.geomspace(0.1, 10, _D)[:5]
    for k, start in enumerate(range(0, rows, _FILE_ROWS)):
        n = min(_FILE_ROWS, rows - start)
        left, right = (rng.integers(0, _POINTS, n, dtype=np.int32) for _ in range(2))
        distance = np.empty(n)
        for a in range(0, n, 1 << 18):
            T = Z[left[a : a + (1 << 18)]] - Z[right[a : a + (1 << 18)]]
            distance[a : a + (1 << 18)] = np.einsum("ij,ij->i", T, T)
        similar = (distance < 8.0) ^ (rng.random(n) < 0.1)
        table = pa.table({"left": left, "right": right, "label": np.where(similar, 1, -1).astype(np.int8)})
        pq.write_table(table, folder / "pairs" / f"part-{k:04d}.parquet", row_group_size=1 << 20)
        print(f"{start + n:,} rows", flush=True)


class Peaks:
    """Peak memory of the worker processes, polled while they live."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.peaks: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._stop.wait(0.5):
            for child in psutil.Process().children(recursive=True):
                try:
                    if self.word in " ".join(child.cmdline()):
                        status = Path(f"/proc/{child.pid}/status").read_text()
                        peak = int(status.split("VmHWM:")[1].split()[0]) / 1e6  # of kB
                        self.peaks[child.pid] = max(peak, self.peaks.get(child.pid, 0.0))
                except (psutil.NoSuchProcess, OSError, IndexError):
                    continue


def run(folder: Path, engine: str, trials: int, workers: int) -> None:
    """Search on a cluster of this machine."""
    session: Any
    if engine == "dask":
        from distributed import Client

        session = Client(n_workers=workers, threads_per_worker=1, memory_limit="2GB", dashboard_address=":0")
        word, stop = "spawn_main", session.close
    else:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(f"local-cluster[{workers},1,1024]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        word, stop = "pyspark.daemon", session.stop
    try:
        with Peaks(word) as peaks:
            began, spent = time.perf_counter(), processor_seconds()
            source = from_parquet(str(folder), bounds=(1.0, 1.0), engine=session)
            opened = time.perf_counter() - began
            found = search(source, max_trials=trials, random_state=0, engine=session)
            spent = processor_seconds() - spent
            name = f"{engine}, {workers} workers, {len(source.parts)} partitions"
            _report(name, source.n, opened, spent, found)
            for pid, peak in sorted(peaks.peaks.items(), key=lambda item: -item[1])[: workers + 1]:
                print(f"  process {pid}: peak {peak:.2f} GB")
    finally:
        stop()


def memory(folder: Path, trials: int, workers: int) -> None:
    """The same pairs, all in this machine's memory."""
    began, spent = time.perf_counter(), processor_seconds()
    points = pq.read_table(folder / "points.parquet")
    X = np.column_stack([points[name].to_numpy() for name in points.column_names])
    rows = pq.read_table(folder / "pairs")
    source = IndexedPairs(
        X=X - X.mean(axis=0),
        left=rows["left"].to_numpy(),
        right=rows["right"].to_numpy(),
        sign=rows["label"].to_numpy(),
        bounds=(1.0, 1.0),
        weight=None,
    )
    opened = time.perf_counter() - began
    found = search(source, max_trials=trials, random_state=0, n_jobs=workers)
    _report(f"in memory, {workers} threads", source.n, opened, processor_seconds() - spent, found)


def _report(name: str, n: int, opened: float, spent: float, found: Any) -> None:
    seconds = opened + found.seconds
    print(
        f"{name}: n = {n:,}, t = {found.n_trials}; {opened:.1f} s to open, {found.seconds:.1f} s to search, "
        f"{1e9 * seconds / n:.0f} ns a constraint; {spent:.1f} processor s, {1e9 * spent / n:.0f} ns; "
        f"cost {found.cost:.0f} ({found.cost / n:.4f}), digest {np.sum(found.A):.17g}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=["make", "run", "memory"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--engine", choices=["dask", "spark"], default="dask")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.what == "make":
        make(options.folder, options.rows)
    elif options.what == "run":
        run(options.folder, options.engine, options.trials, options.workers)
    else:
        memory(options.folder, options.trials, options.workers)


if __name__ == "__main__":
    main()
