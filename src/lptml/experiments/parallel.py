"""Running time against the number of workers: wall-clock seconds of the same search on 1, 2, ... processes.

The result must not depend on the number of workers; that is checked with every measurement.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from lptml.experiments import methods, paper
from lptml.experiments.figures import new_figure, save
from lptml.experiments.options import Options
from lptml.experiments.protocol import available, folds, prepare, seed_for
from lptml.experiments.summaries import executions, statistics

NAME = "figure-parallel"
TITLE = "Running time against the number of workers"
ALONE = True  # it measures the wall clock: nothing else of ours may run

_TRIALS = {"ionosphere": 60, "soybean": 200, "wine": 1500}
_EXECUTIONS = 3


def tasks(options: Options) -> tuple[list[dict[str, Any]], list[str]]:
    """One task for each data set, execution and number of workers."""
    names, notes = available(tuple(paper.PARALLEL), options)
    cores = os.cpu_count() or 1
    if max(options.workers) > cores:
        notes.append(
            f"{max(options.workers)} workers on {cores} cores: times beyond {cores} show the oversubscription"
        )
    repeats = range(1 if options.is_quick else _EXECUTIONS)
    return [
        {"dataset": name, "workers": workers, "repeat": repeat}
        for repeat in repeats
        for name in names
        for workers in options.workers
    ], notes


def work(task: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """Wall-clock seconds of one search."""
    name, repeat = task["dataset"], task["repeat"]
    X, y, planted = prepare(name, repeat, options)
    seed = seed_for(options.seed, NAME, name, repeat)
    fold = next(folds(X, y, planted, options, seed))
    trials = _trials(name, options)
    learner = methods.plain_search(options, X.shape[1], seed, trials).set_params(n_jobs=task["workers"])
    with threadpool_limits(1):
        learner.set_params(max_trials=2 * task["workers"]).fit(fold.X, fold.y)  # start the workers, compile
        start = time.perf_counter()
        learner.set_params(max_trials=trials).fit(fold.X, fold.y)
        seconds = time.perf_counter() - start
    return [{"seconds": seconds, "trials": learner.n_trials_, "violated": learner.violation_rate_}]


def _trials(name: str, options: Options) -> int:
    return _TRIALS[name] // (20 if options.is_quick else 1)


def finish(rows: list[dict[str, Any]], options: Options, folder: Path) -> dict[str, Any]:
    """Seconds and speed-up by data set and workers, and the figure."""
    found: dict[str, Any] = {}
    for (name, workers), runs in executions(rows, "seconds", "dataset", "workers").items():
        found.setdefault(name, {})[str(workers)] = statistics(runs)
    same = True
    for name in found:
        for repeat in {row["repeat"] for row in rows}:
            costs = {row["violated"] for row in rows if row["dataset"] == name and row["repeat"] == repeat}
            same = same and len(costs) == 1
    for by_workers in found.values():
        alone = by_workers[min(by_workers, key=int)]["mean"]
        for entry in by_workers.values():
            entry["speed_up"] = alone / entry["mean"]
    return {
        "seconds": found,
        "same_result_for_any_number_of_workers": same,
        "cores": os.cpu_count(),
        "figures": _draw(found, options, folder),
    }


def _draw(found: dict[str, Any], options: Options, folder: Path) -> list[str]:
    figure, axes = new_figure(1, 2, (9.0, 3.8))
    colours = {"ionosphere": "#c1121f", "soybean": "#2f6b2f", "wine": "#2a52be"}
    for name, by_workers in found.items():
        workers = [int(each) for each in by_workers]
        axes[0, 0].errorbar(
            workers,
            [entry["mean"] for entry in by_workers.values()],
            yerr=[entry["deviation"] for entry in by_workers.values()],
            fmt="-o",
            color=colours[name],
            label=f"{name}, t = {_trials(name, options)}",
        )
        axes[0, 1].plot(
            workers,
            [entry["speed_up"] for entry in by_workers.values()],
            "-o",
            color=colours[name],
            label=f"{name}, ours",
        )
        alone = paper.PARALLEL[name][0]
        axes[0, 1].plot(
            paper.MACHINES,
            [alone / seconds for seconds in paper.PARALLEL[name]],
            "--D",
            color=colours[name],
            markerfacecolor="none",
            markersize=4,
            alpha=0.7,
            label=f"{name}, published",
        )
    axes[0, 1].plot([1, 8], [1, 8], ":", color="#999999", linewidth=1)
    axes[0, 0].set_ylabel("wall-clock seconds")
    axes[0, 1].set_ylabel("speed-up over one worker")
    axes[0, 0].set_ylim(bottom=0)
    for ax in axes[0]:
        ax.set_xlabel("workers")
        ax.set_xticks([1, 2, 4, 8])
        ax.legend(fontsize=7)
    return save(figure, folder, NAME)
