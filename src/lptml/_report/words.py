"""The words of the report: key figures, the summary, the sentence above each figure."""

from __future__ import annotations

import datetime
import platform
from typing import Any

import numpy as np

from lptml._report.accuracy import MOST_ROWS, Accuracy
from lptml._report.page import Tile
from lptml._version import __version__


def headline(
    estimator: Any, accuracy: list[Accuracy], n_suspects: int, n: int, noun: str, k: int
) -> tuple[list[Tile], str]:
    """The tiles and the summary; ``noun`` is "labels" or "verdicts", k the votes of k-NN (0: pairs)."""
    tiles: list[Tile] = []
    sentences: list[str] = []
    if accuracy:
        tile, sentence = _gain(accuracy, k)
        tiles.append(tile)
        sentences.append(sentence)
    if hasattr(estimator, "violation_rate_"):
        rate, trivial, lower = estimator.violation_rate_, estimator.trivial_rate_, estimator.lower_bound_
        note = f"{trivial:.1%} for the trivial metric"
        tiles.append(Tile("Violated constraints", f"{rate:.1%}", note, "accent"))
        sentences.append(
            f"The metric violates {rate:.1%} of its constraints, a useless one would violate {trivial:.1%}."
        )
        if lower > 0:
            tiles.append(Tile("Lower bound", f"{lower:.1%}", "no metric can violate less"))
    share = f"{n_suspects / n:.1%} of {n:,}"
    tiles.append(Tile(f"Suspect {noun}", f"{n_suspects:,}", share, "warn" if n_suspects else "good"))
    verb = "looks" if n_suspects == 1 else "look"
    some = f"{n_suspects:,} of {n:,} {noun} {verb} wrong."
    sentences.append(some if n_suspects else f"None of the {n:,} {noun} looks wrong.")
    return tiles, " ".join(sentences)


def _gain(accuracy: list[Accuracy], k: int) -> tuple[Tile, str]:
    before, after = accuracy[0].mean, next(row.mean for row in accuracy if row.ours)
    tone = "good" if after >= before else "warn"
    if not k:
        note = f"{before:.3f} with the Euclidean distance"
        sentence = (
            f"The learned distance ranks unseen pairs with ROC AUC {after:.3f}, the Euclidean {before:.3f}."
        )
        return Tile("ROC AUC on unseen pairs", f"{after:.3f}", note, tone), sentence
    sentence = (
        f"A vote of the {k} nearest neighbours is right on {after:.1%} of unseen rows under the learned "
        f"metric, against {before:.1%} under the Euclidean distance."
    )
    note = f"{before:.1%} with the Euclidean distance"
    return Tile("Accuracy on unseen rows", f"{after:.1%}", note, tone), sentence


def meta(title: str, size: str, data: dict[str, Any], classes: list[str]) -> dict[str, Any]:
    """Title, subtitle and captions."""
    today = datetime.date.today()
    before, after = data["points"]["line"]
    return {
        "title": title,
        "subtitle": f"{size} · {today.day} {today:%B %Y} · lptml {__version__}",
        "before": f"Before: Euclidean distance{_line(before)}",
        "after": f"After: learned metric{_line(after)}",
        "classes": classes,
        "version": __version__,
    }


def _line(share: float) -> str:
    return f" (one axis carries {share:.1%})" if share > 0.98 else ""


def for_labels(k: int, splits: int, n: int) -> dict[str, str]:
    """The sentences that only a report on labels has."""
    drawn = f" of {MOST_ROWS:,} rows drawn at random" if n > MOST_ROWS else ""
    return {
        "suspects": "Sorted by suspicion: how strongly the neighbours under the learned metric contradict "
        "the label. “Looks like” is the label that the trusted neighbours have. A suspect is a row to look "
        "at again, not a verdict.",
        "accuracy": f"Share of rows whose label a vote of the {k} nearest neighbours predicts, on halves of "
        "the data that neither metric nor voters have seen; mean and standard error over the rows, "
        f"{splits} splits{drawn}.",
    }


def for_pairs(splits: int) -> dict[str, str]:
    """The sentences that only a report on pairs has."""
    return {
        "suspects": "Sorted by suspicion: how strongly the learned metric contradicts the verdict. A ring in "
        "the picture above marks a row of a suspect pair.",
        "accuracy": "Area under the ROC curve of verdicts by distance (50% is guessing), on pairs that the "
        f"metric has not seen; mean and standard error of {splits} splits.",
    }


def notes(data: dict[str, Any], own: dict[str, str]) -> dict[str, str]:
    """The sentence above each figure."""
    left_out = data["weights"]["left_out"]
    chosen = data["validation"] is not None
    more = f" The {left_out} lightest features are left out." if left_out else ""
    support = data["support"]
    shown = len(support["rows"]) if support else 0
    cut = f" The first {shown} of {support['of']}." if support and support["of"] > shown else ""
    return own | {
        "map": "The same rows under both distances, each in the plane of its two main axes, stretched to "
        "fill the frame. A ring marks a suspect.",
        "features": "The share of the mean squared distance that each feature carries; beside it, how the "
        f"metric couples them (blue: differences add up, orange: they cancel).{more}",
        "distances": "Similar pairs should lie left of u, dissimilar ones right of l."
        + (" All pairs are drawn; a metric learned from neighbours was asked about these only." * chosen),
        "validation": "The metrics that were tried, and how many of a hundred votes of unseen neighbours "
        "each has over standardised features, with standard errors. The metric is the weighted mean of those "
        "that stand out.",
        "search": "The least share of violated constraints after each improvement; final is where it ended, "
        "the lower bound is proven for all metrics.",
        "support": "Among the metrics that satisfy what this one satisfies, these constraints alone "
        f"determine the one of least trace.{cut}",
    }


def details(estimator: Any) -> list[tuple[str, str]]:
    """How the metric was learned, and with what."""
    import sklearn

    chosen = ", ".join(f"{k}={v!r}" for k, v in estimator.get_params(deep=False).items() if v is not None)
    rows = [("Estimator", type(estimator).__name__), ("Parameters", chosen)]
    if getattr(estimator, "n_trials_", 0):
        trials = f"{estimator.n_trials_} trials, {estimator.n_infeasible_} infeasible; {estimator.status_}"
        rows.append(("Search", trials))
    if hasattr(estimator, "bounds_"):
        u, l = estimator.bounds_
        rows.append(("Bounds", f"u = {u:.6g}, l = {l:.6g}"))
    versions = f"lptml {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
    rows.append(("Versions", versions + f"scikit-learn {sklearn.__version__}"))
    return rows
