"""The accuracy table: 4-NN after each metric, 2-fold cross-validation, 50 executions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lptml.experiments import methods, paper
from lptml.experiments.figures import COLOURS, PAPER_STYLE, new_figure, save
from lptml.experiments.options import Options
from lptml.experiments.protocol import REAL, available, evaluate, folds, prepare, seed_for
from lptml.experiments.summaries import executions, paired, statistics

NAME = "table1"
TITLE = "Accuracy of 4-NN after each metric"

#: The peers that the issue of clean data is decided against.
_RIVALS = ("ITML", "LMNN", "NCA", "MCML")


def tasks(options: Options) -> tuple[list[dict[str, Any]], list[str]]:
    """One task for each data set, execution and group of methods.

    Executions are outermost, so that a part of the run covers every set. The plain search, which takes longer
    than all others together, follows at a fifth of their pace, so that a run cut short has few of it.
    """
    names, missing = available(REAL, options)
    order = sorted(
        ((5 * repeat if group == "plain" else repeat), group, repeat)
        for repeat in range(options.repeats)
        for group in ("others", "plain")
        if _members(group, options)
    )
    return [
        {"dataset": name, "repeat": repeat, "group": group} for _, group, repeat in order for name in names
    ], missing


def _members(group: str, options: Options) -> list[str]:
    return [name for name in methods.chosen(options) if (name == methods.PLAIN) == (group == "plain")]


def work(task: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """The methods of a group on the folds of one execution."""
    name, repeat = task["dataset"], task["repeat"]
    X, y, planted = prepare(name, repeat, options)
    seed = seed_for(options.seed, NAME, name, repeat)
    return [
        {"fold": number, **evaluate(method, fold, options, seed + number)}
        for number, fold in enumerate(folds(X, y, planted, options, seed))
        for method in _members(task["group"], options)
    ]


def finish(rows: list[dict[str, Any]], options: Options, folder: Path) -> dict[str, Any]:
    """Means and deviations by data set and method; ours against the best rival; the figure."""
    runs = executions(rows, "accuracy", "dataset", "method")
    table: dict[str, Any] = {}
    for (name, method), values in runs.items():
        entry = statistics(values)
        if method in paper.TABLE.get(name, {}):
            entry["paper"], entry["paper_deviation"] = paper.TABLE[name][method]
        table.setdefault(name, {})[method] = entry
    for (name, method), seconds in executions(rows, "cpu_seconds", "dataset", "method").items():
        if method in table.get(name, {}):
            table[name][method]["cpu_seconds"] = statistics(seconds)["mean"]
    against = {}
    for name, entries in table.items():
        rivals = [method for method in _RIVALS if method in entries]
        if rivals and methods.DEFAULT in entries:
            best = max(rivals, key=lambda method: entries[method]["mean"])
            against[name] = {"best_rival": best, **paired(runs[name, methods.DEFAULT], runs[name, best])}
    return {
        "table": table,
        "ours_minus_best_rival": against,
        "plain_no_better_than_trivial": _trivial_share(rows),
        "figures": _draw(table, options, folder),
    }


def _trivial_share(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Share of the plain searches, by data set, that did not beat the better trivial metric."""
    found: dict[str, list[bool]] = {}
    for row in rows:
        if row["method"] == methods.PLAIN and "violation_rate" in row:
            found.setdefault(row["dataset"], []).append(row["violation_rate"] >= row["trivial_rate"] - 1e-12)
    return {name: float(np.mean(each)) for name, each in found.items()}


def _draw(table: dict[str, Any], options: Options, folder: Path) -> list[str]:
    names = list(table)
    columns = min(4, len(names))
    height = -(-len(names) // columns)
    figure, axes = new_figure(height, columns, (3.3 * columns, 3.1 * height), sharey=True)
    shown = methods.chosen(options)
    places = {method: len(shown) - 1 - i for i, method in enumerate(shown)}
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, names):
        ax.grid(False)
        ax.grid(True, axis="x", color="#e5e5e5", linewidth=0.7)
        for method, entry in table[name].items():
            ax.errorbar(
                entry["mean"],
                places[method],
                xerr=entry["deviation"],
                fmt="o",
                color=COLOURS[method],
                markersize=6,
                elinewidth=1.2,
            )
            if "paper" in entry:
                ax.plot(entry["paper"], places[method], label="paper", **PAPER_STYLE)
        ax.set_title(name.replace("_", " "), fontsize=10)
        ax.set_yticks(list(places.values()), list(places), fontsize=8)
        lowest = min(
            min(entry["mean"] - entry["deviation"], entry.get("paper", 1.0)) for entry in table[name].values()
        )
        ax.set_xlim(max(0.0, np.floor(lowest * 20) / 20 - 0.01), 1.012)
    handles, _ = axes.flat[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles[:1], ["published value"], fontsize=8, loc="outside lower center")
    figure.suptitle("4-NN accuracy, mean and standard deviation over executions", fontsize=11)
    return save(figure, folder, NAME)
