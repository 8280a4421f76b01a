"""Data poisoning: accuracies with and without the planted points, three poisoned sets, and the scatter plots.

Tested on honest points only. Beside the paper's set there are the same points rotated, which scaling the
features cannot mend, and poison at random positions of 2 to 20% of the points.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lptml.datasets import make_poisoned
from lptml.estimators import LPTML_Supervised
from lptml.experiments import methods, paper
from lptml.experiments.figures import COLOURS, PAPER_STYLE, new_figure, save
from lptml.experiments.options import Options
from lptml.experiments.protocol import evaluate, folds, prepare, seed_for
from lptml.experiments.summaries import executions, statistics

NAME = "figure-poisoning"
TITLE = "Data poisoning"

#: name -> data set, its options
_SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "synthetic": ("synthetic", {}),
    "poisoned": ("poisoned", {}),
    "rotated": ("rotated_poisoned", {}),
    "scattered 2%": ("scattered_poison", {"share": 0.02}),
    "scattered 5%": ("scattered_poison", {"share": 0.05}),
    "scattered 10%": ("scattered_poison", {"share": 0.10}),
    "scattered 20%": ("scattered_poison", {"share": 0.20}),
}
_TRIALS = 100  # the paper's t in this figure


def tasks(options: Options) -> tuple[list[dict[str, Any]], list[str]]:
    """One task for each set and execution."""
    names = [name for name in _SETS if not options.datasets or name in options.datasets]
    return [{"dataset": name, "repeat": repeat} for repeat in range(options.repeats) for name in names], []


def work(task: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """All methods on the folds of one execution."""
    name, repeat = task["dataset"], task["repeat"]
    source, changes = _SETS[name]
    X, y, planted = prepare(source, repeat, options, **changes)
    seed = seed_for(options.seed, NAME, name, repeat)
    return [
        {"fold": number, **evaluate(method, fold, options, seed + number, _TRIALS)}
        for number, fold in enumerate(folds(X, y, planted, options, seed))
        for method in methods.chosen(options)
    ]


def finish(rows: list[dict[str, Any]], options: Options, folder: Path) -> dict[str, Any]:
    """Accuracies by set and method, and the figures."""
    table: dict[str, Any] = {}
    for (name, method), runs in executions(rows, "accuracy", "dataset", "method").items():
        entry = statistics(runs)
        if method in paper.POISONING and name in ("synthetic", "poisoned"):
            entry["paper"] = paper.POISONING[method][name == "poisoned"]
        table.setdefault(name, {})[method] = entry
    return {"table": table, "figures": [*_draw_bars(table, options, folder), *_draw_scatter(options, folder)]}


def _draw_bars(table: dict[str, Any], options: Options, folder: Path) -> list[str]:
    names = list(table)
    shown = methods.chosen(options)
    figure, axes = new_figure(1, 1, (1.75 * len(names) + 2.2, 4.0))
    ax = axes[0, 0]
    width = 0.86 / len(shown)
    for i, method in enumerate(shown):
        place = np.arange(len(names)) + (i - (len(shown) - 1) / 2) * width
        present = [(x, table[name][method]) for x, name in zip(place, names) if method in table[name]]
        ax.bar(
            [x for x, _ in present],
            [entry["mean"] for _, entry in present],
            width,
            yerr=[entry["error"] for _, entry in present],
            color=COLOURS[method],
            label=method,
            error_kw={"elinewidth": 0.8},
        )
        published = [(x, entry["paper"]) for x, entry in present if "paper" in entry]
        ax.plot([x for x, _ in published], [value for _, value in published], **PAPER_STYLE)
    ax.plot([], [], label="published", **PAPER_STYLE)
    ax.set_xticks(range(len(names)), names)
    ax.set_ylim(0.4, 1.03)
    ax.set_ylabel("accuracy of 4-NN on honest points")
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save(figure, folder, f"{NAME}-accuracy")


def _draw_scatter(options: Options, folder: Path) -> list[str]:
    """The set, its image under the default metric, and the image magnified on both sides of the gap."""
    found = make_poisoned(random_state=seed_for(options.seed, "scatter"))
    learner = LPTML_Supervised(random_state=options.seed).fit(found.data, found.target)
    L = learner.components_
    # Same picture as the paper: first axis to the first axis, in units of its original spread.
    R = np.linalg.qr(L)[1]
    upright = R * np.sign(np.diag(R))[:, None]
    image = found.data @ upright.T / max(abs(upright[0, 0]), 1e-300)
    panels = [("poisoned data", found.data), ("after LPTML", image), ("magnified", image)]
    figure, axes = new_figure(1, 3, (11.0, 3.4))
    for ax, (title, points) in zip(axes[0], panels):
        ax.grid(False)
        for label, colour in ((1, "#c1121f"), (0, "#2f6b2f")):
            mine = found.target == label
            ax.scatter(*points[mine].T, s=9, color=colour, linewidths=0, label=f"class {label}")
        ax.scatter(
            *points[found.poisoned].T,
            s=42,
            facecolors="none",
            edgecolors="black",
            linewidths=0.9,
            label="planted",
        )
        ax.set_title(title, fontsize=10)
    honest = image[~found.poisoned]
    middle, reach = honest.mean(axis=0), 1.15 * np.abs(honest - honest.mean(axis=0)).max(axis=0)
    axes[0, 2].set_xlim(middle[0] - reach[0], middle[0] + reach[0])
    axes[0, 2].set_ylim(middle[1] - reach[1], middle[1] + reach[1])
    low, high = found.data[:, 1].min(), found.data[:, 1].max()
    axes[0, 1].set_ylim(low, high)
    axes[0, 0].set_ylim(low, high)
    axes[0, 2].ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    axes[0, 0].legend(fontsize=8, loc="upper center")
    return save(figure, folder, f"{NAME}-scatter")
