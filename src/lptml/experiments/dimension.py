"""Running time against the dimension and the number of iterations: Wine after PCA to d = 2..13.

CPU seconds of one core, so that other load on the machine does not count. A search of 2000 trials is stopped
and resumed (through its checkpoint) at 100, 500, 1000 and 1500: the curves are cumulative times of one
search.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from lptml.experiments import methods, paper
from lptml.experiments.figures import new_figure, save
from lptml.experiments.options import Options
from lptml.experiments.protocol import folds, prepare, seed_for
from lptml.experiments.summaries import executions, statistics

NAME = "figure-dimension"
TITLE = "Running time against the dimension (Wine)"

_QUICK_TRIALS = (100,)
_QUICK_DIMENSIONS = (2, 4, 8, 13)
_EXECUTIONS = 2  # CPU times vary by a few percent; the paper's ten would take half an hour more


def tasks(options: Options) -> tuple[list[dict[str, Any]], list[str]]:
    """One task for each dimension and execution."""
    dimensions = _QUICK_DIMENSIONS if options.is_quick else paper.DIMENSIONS
    repeats = range(min(_EXECUTIONS, options.few_repeats))
    return [{"dimension": d, "repeat": repeat} for repeat in repeats for d in dimensions], []


def work(task: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """Cumulative CPU seconds of one search at each t."""
    d, repeat = task["dimension"], task["repeat"]
    X, y, planted = prepare("wine", repeat, options)
    seed = seed_for(options.seed, NAME, d, repeat)
    X = PCA(d, random_state=seed).fit_transform(X)
    fold = next(folds(X, y, planted, options, seed))
    rows, spent = [], 0.0
    with threadpool_limits(1), tempfile.TemporaryDirectory() as scratch:
        methods.plain_search(options, d, seed, 2).fit(fold.X, fold.y)  # compilation is not running time
        for t in _QUICK_TRIALS if options.is_quick else paper.SECONDS:
            learner = methods.plain_search(options, d, seed, t)
            learner.set_params(checkpoint=str(Path(scratch) / "state"))
            start = time.process_time()
            learner.fit(fold.X, fold.y)
            spent += time.process_time() - start
            rows.append({"t": t, "cpu_seconds": spent, "trials": learner.n_trials_, "n_train": len(fold.y)})
    return rows


def finish(rows: list[dict[str, Any]], options: Options, folder: Path) -> dict[str, Any]:
    """Seconds by t and d, the ratio to the published ones, and the figure."""
    seconds: dict[str, Any] = {}
    for (t, d), runs in executions(rows, "cpu_seconds", "t", "dimension").items():
        entry = statistics(runs)
        entry["paper"] = paper.SECONDS[t][paper.DIMENSIONS.index(d)]
        entry["times_faster_than_published"] = entry["paper"] / entry["mean"]
        seconds.setdefault(str(t), {})[str(d)] = entry
    return {"seconds": seconds, "figures": _draw(seconds, folder)}


def _draw(seconds: dict[str, Any], folder: Path) -> list[str]:
    figure, axes = new_figure(1, 1, (7.6, 4.6))
    ax = axes[0, 0]
    shades = {"100": "#f7a8a8", "500": "#f06a6a", "1000": "#dd3b3b", "1500": "#b3141f", "2000": "#6d000d"}
    greys = {"100": "#cccccc", "500": "#b0b0b0", "1000": "#929292", "1500": "#6f6f6f", "2000": "#444444"}
    for t, by_dimension in seconds.items():
        d = [int(each) for each in by_dimension]
        ax.errorbar(
            d,
            [entry["mean"] for entry in by_dimension.values()],
            yerr=[entry["deviation"] for entry in by_dimension.values()],
            fmt="-o",
            color=shades[t],
            markersize=4,
            label=f"ours, t = {t}",
        )
        ax.plot(
            d,
            [entry["paper"] for entry in by_dimension.values()],
            "--D",
            color=greys[t],
            markersize=4,
            markerfacecolor="none",
            label=f"published, t = {t}",
        )
    ax.set_yscale("log")
    ax.set_xlabel("dimension d")
    ax.set_ylabel("running time (seconds)")
    ax.set_xticks(sorted({int(each) for entry in seconds.values() for each in entry}))
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save(figure, folder, NAME)
