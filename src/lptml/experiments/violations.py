"""Violated constraints and accuracy against iterations, Wine after PCA to 4, 8 and 12, for both readings of
the text.

The text puts u at the 90th and l at the 10th percentile of the distances; the published curves fit u at the
10th and l at the 90th, where the better trivial metric violates 0.34 of the constraints. Both are run, and
beside them the trivial metric, the best multiple of the identity and the refined search on the same
constraints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.decomposition import PCA

from lptml.estimators import LPTML_Supervised
from lptml.experiments import methods, paper
from lptml.experiments.figures import PAPER_STYLE, new_figure, save
from lptml.experiments.options import Options
from lptml.experiments.protocol import Fold, folds, prepare, seed_for
from lptml.experiments.summaries import executions, statistics

NAME = "figure-violations"
TITLE = "Violated constraints and accuracy against iterations (Wine)"

_READINGS = {"experiments": methods.PAPER_BOUNDS, "text": methods.PRINTED_BOUNDS}
_DIMENSION_COLOURS = {4: "#2f6b2f", 8: "#2a52be", 12: "#c1121f"}


def tasks(options: Options) -> tuple[list[dict[str, Any]], list[str]]:
    """One task for each dimension and execution."""
    repeats = range(options.few_repeats)
    return [{"dimension": d, "repeat": repeat} for repeat in repeats for d in paper.VIOLATIONS], []


def work(task: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """The plain search at every t, and the refined one, under both readings."""
    d, repeat = task["dimension"], task["repeat"]
    X, y, planted = prepare("wine", repeat, options)
    seed = seed_for(options.seed, NAME, d, repeat)
    X = PCA(d, random_state=seed).fit_transform(X)
    rows = []
    for number, fold in enumerate(folds(X, y, planted, options, seed)):
        for reading, bounds in _READINGS.items():
            for t in paper.ITERATIONS:
                plain = methods.plain_search(options, d, seed + number, t).set_params(bounds=bounds)
                rows.append({"fold": number, "reading": reading, "t": t, **_measure(plain, fold, options)})
            refined = LPTML_Supervised(
                bounds=bounds, temperature=0.0, shrinkage=0.0, constraints="all", random_state=seed + number
            )
            rows.append(
                {"fold": number, "reading": reading, "t": "refined", **_measure(refined, fold, options)}
            )
    return rows


def _measure(learner: LPTML_Supervised, fold: Fold, options: Options) -> dict[str, Any]:
    learner.fit(fold.X, fold.y)
    voting = methods.knn(options).fit(learner.transform(fold.X), fold.y)
    euclidean = methods.knn(options).fit(fold.X, fold.y)
    return {
        "violated": learner.violation_rate_,
        "trivial": learner.trivial_rate_,
        "infeasible": learner.n_infeasible_ / max(learner.n_trials_, 1),
        "accuracy": voting.score(learner.transform(fold.X_test), fold.y_test),
        "euclidean": euclidean.score(fold.X_test, fold.y_test),
    }


def finish(rows: list[dict[str, Any]], options: Options, folder: Path) -> dict[str, Any]:
    """Curves by reading and dimension, and the figure."""
    curves: dict[str, Any] = {}
    for value in ("violated", "accuracy", "trivial", "infeasible", "euclidean"):
        for (reading, d, t), runs in executions(rows, value, "reading", "dimension", "t").items():
            curves.setdefault(reading, {}).setdefault(str(d), {}).setdefault(str(t), {})[value] = statistics(
                runs
            )
    return {"curves": curves, "figures": _draw(curves, folder)}


def _draw(curves: dict[str, Any], folder: Path) -> list[str]:
    figure, axes = new_figure(2, 2, (9.2, 6.6), sharex=True)
    published = {"violated": paper.VIOLATIONS, "accuracy": paper.ACCURACIES}
    for row, (reading, title) in enumerate(
        [
            ("experiments", "u = 10th, l = 90th percentile (published experiments)"),
            ("text", "u = 90th, l = 10th percentile (the text)"),
        ]
    ):
        for column, value in enumerate(("violated", "accuracy")):
            ax = axes[row, column]
            for shift, (d, colour) in zip((-0.9, 0.0, 0.9), _DIMENSION_COLOURS.items()):
                found = curves[reading][str(d)]
                x = [t + shift for t in paper.ITERATIONS]
                mean, error = (
                    [found[str(t)][value][key] for t in paper.ITERATIONS] for key in ("mean", "deviation")
                )
                ax.errorbar(
                    x, mean, yerr=error, fmt="-o", color=colour, markersize=4, capsize=2, label=f"d = {d}"
                )
                ax.plot(58, found["refined"][value]["mean"], "*", color=colour, markersize=11, clip_on=False)
                if row == 0:
                    style = {**PAPER_STYLE, "markeredgecolor": colour}
                    ax.plot(x, [mean for mean, _ in published[value][d]], **style)
                if value == "violated" and d == 8:
                    level = found["50"]["trivial"]["mean"]
                    ax.axhline(level, color="#777777", linestyle=":", linewidth=1.2)
                    ax.annotate("trivial metric", (9, level), fontsize=8, color="#555555", va="bottom")
                if value == "accuracy" and d == 8:
                    level = found["50"]["euclidean"]["mean"]
                    ax.axhline(level, color="#777777", linestyle=":", linewidth=1.2)
                    ax.annotate("Euclidean, d = 8", (9, level), fontsize=8, color="#555555", va="bottom")
            ax.set_title(title if column == 0 else "", fontsize=9, loc="left")
            ax.set_ylabel("violated share of the constraints" if value == "violated" else "accuracy of 4-NN")
            ax.set_xticks([*paper.ITERATIONS, 58], [*(str(t) for t in paper.ITERATIONS), "refined"])
            if row == 1:
                ax.set_xlabel("iterations t of the plain search")
    axes[0, 0].plot([], [], label="published", **PAPER_STYLE)
    axes[0, 0].plot([], [], "*", color="#555555", markersize=10, linestyle="none", label="with refinement")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=9)
    return save(figure, folder, NAME)
