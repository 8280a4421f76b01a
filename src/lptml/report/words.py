"""The words of the report: key figures, the summary, the sentence above each figure."""

from __future__ import annotations

import datetime
import platform
from typing import Any

import numpy as np

from lptml._version import __version__
from lptml.report import views
from lptml.report.accuracy import AFTER, KINDS, MOST_ROWS, Accuracy
from lptml.report.page import Tile


def labels_headline(judged: Any, accuracy: list[Accuracy]) -> tuple[list[Tile], str]:
    """The tiles and the summary of a report on labels; ``judged`` as for ``labels_report``."""
    n = len(judged.suspicion)
    wrong = sum(str(each) == "likely wrong" for each in judged.verdicts)
    low, high = judged.noise_interval
    rate = judged.noise_rate
    between = f"{low:.1%} to {high:.1%}"
    verb = "looks" if wrong == 1 else "look"
    if judged.can_judge:
        about = f"About {round(rate * n):,} of the {n:,} labels are wrong ({rate:.1%}; likely {between})."
        one_by_one = f"{wrong:,} {verb} wrong one by one" if wrong else "None looks wrong one by one"
        lead = f"{about} {one_by_one}{'; decide about each of them below' if wrong else ''}."
    else:
        lead = (
            "The features say too little about the labels to tell wrong ones from unusual ones, so a label "
            f"that is not listed may still be wrong. Between {low:.0%} and {high:.0%} of the {n:,} are; "
            f"{wrong:,} {verb} wrong one by one."
        )
    tiles = [
        Tile("Labels that look wrong", f"{wrong:,}", f"of {n:,}", "warn" if wrong else "good"),
        Tile("Wrong labels, estimated", f"{rate:.1%}", f"{between}, with 90% probability", "accent"),
        Tile(
            "Can we judge?",
            "yes" if judged.can_judge else "hardly",
            f"about {judged.power:.0%} of wrong labels would be seen",
            "good" if judged.can_judge else "warn",
        ),
    ]
    found = {(row.name, row.against): row for row in accuracy}
    if (KINDS[-1], "trust") in found:
        given, trusted = found[KINDS[-1], "given"], found[KINDS[-1], "trust"]
        after = found.get((AFTER, "trust"))
        lead += (
            f" A vote of neighbours agrees with {given.mean:.1%} of the labels as given; of those we trust "
            f"it gets {trusted.mean:.1%} right"
            + (f", and {after.mean:.1%} once the suggestions are taken." if after else ".")
        )
        note = f"{trusted.low:.0%} to {trusted.high:.0%}"
        note += f"; {after.mean:.1%} after correction" if after else ""
        tiles.append(Tile("Accuracy on labels we trust", f"{trusted.mean:.1%}", note, "good"))
    return tiles, lead


def pairs_headline(accuracy: list[Accuracy], n_suspects: int, m: int) -> tuple[list[Tile], str]:
    """The tiles and the summary of a report on pairs."""
    tone = "warn" if n_suspects else "good"
    tiles = [Tile("Suspect labels", f"{n_suspects:,}", f"{n_suspects / m:.1%} of {m:,}", tone)]
    verb = "looks" if n_suspects == 1 else "look"
    some = f"{n_suspects:,} of {m:,} labels {verb} wrong."
    sentences = [some if n_suspects else f"None of the {m:,} labels looks wrong."]
    if accuracy:
        before, after = accuracy[0].mean, next(row.mean for row in accuracy if row.ours)
        tone = "good" if after >= before else "warn"
        note = f"{before:.3f} with the Euclidean distance"
        tiles.append(Tile("ROC AUC on unseen pairs", f"{after:.3f}", note, tone))
        sentences.append(
            f"The learned distance ranks unseen pairs with ROC AUC {after:.3f}, the Euclidean {before:.3f}."
        )
    return tiles, " ".join(sentences)


def constraints_name(estimator: Any) -> str:
    """What the metric was learned from, in the plural."""
    kind = views.constraint_kind(estimator)
    names = {"all": "pairs", "neighbors": "pairs of neighbours", "triplets": "weight of the triplets"}
    return names.get(str(kind), "constraints" if kind is None else str(kind))


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


def for_labels(estimator: Any, judged: Any, k: int, splits: int) -> dict[str, str]:
    """The sentences that only a report on labels has."""
    n = len(judged.suspicion)
    drawn = f" of {MOST_ROWS:,} rows drawn at random" if n > MOST_ROWS else ""
    voters = getattr(estimator, "n_neighbors", k)
    return {
        "suspects": "The most suspicious first. Suspicion is the probability that the label is wrong, judged "
        "by the other rows; an ambiguous row fits two classes, which is not the same. Nothing leaves this "
        "machine.",
        "confusion": "Labels that look wrong, by the class that is given and the one that they look like. "
        "Click a number to review those rows.",
        "accuracy": f"A vote of the {k} nearest neighbours, on halves of the data that neither metric nor "
        "voters have seen, with intervals of 95%. Wrong labels make every method look worse than it is: "
        "agreement with the labels as given is not accuracy. On the right each row counts as far as its "
        f"label is trusted. {splits} splits{drawn}.",
        "score": f"the share of the {voters} nearest neighbours of a row that have its label",
    }


def for_pairs(splits: int) -> dict[str, str]:
    """The sentences that only a report on pairs has."""
    return {
        "suspects": "Sorted by suspicion, the probability that the label is wrong, judged by metrics that "
        "were learned without it. A ring in the picture below marks a row of a suspect pair.",
        "accuracy": "Area under the ROC curve of labels by distance (50% is guessing), on pairs that the "
        f"metric has not seen; mean and interval of 95% over {splits} splits.",
        "score": "the share of pairs that are not violated",
    }


def notes(estimator: Any, data: dict[str, Any], own: dict[str, str]) -> dict[str, str]:
    """The sentence above each figure."""
    left_out = data["weights"]["left_out"]
    more = f" The {left_out} lightest features are left out." if left_out else ""
    support = data["support"]
    shown = len(support["rows"]) if support else 0
    cut = f" The first {shown} of {support['of']}." if support and support["of"] > shown else ""
    return own | {
        "map": "The same rows under both distances, each in the plane of its two main axes, stretched to "
        "fill the frame. A ring marks a suspect.",
        "features": "The share of the mean squared distance that each feature carries; beside it, in "
        f"the same order, how the metric couples them (blue: differences add up, orange: they cancel).{more}",
        "distances": _distances(estimator, data["distances"]["u"] is not None),
        "cross_validation": _cross_validation(data["cross_validation"], own["score"]),
        "search": _search(estimator, data["history"]),
        "support": f"Among the metrics that satisfy what {_solved(estimator)} satisfies, these constraints "
        f"alone determine the one of least trace.{cut}",
    }


def _averaged(estimator: Any) -> int:
    """How many settings the metric is the average of."""
    return int(sum(getattr(estimator, "cv_results_", {}).get("averaged", (True,))))


def _solved(estimator: Any) -> str:
    """The metric that the support is about."""
    return "this one" if _averaged(estimator) == 1 else "that of the best setting, before the average,"


def _distances(estimator: Any, bounds: bool) -> str:
    kind = views.constraint_kind(estimator)
    if kind == "triplets":
        return (
            "Pairs of rows of the same label and of different ones. The metric was asked that each row be "
            "nearer to its neighbours of its label than to those of others, not that every similar pair be "
            "near."
        )
    if not bounds:
        return "The farther the two lie apart, the better the metric tells similar from dissimilar."
    asked = " Any pairs are drawn; the metric was asked about neighbours only." if kind == "neighbors" else ""
    return "Similar pairs should lie left of u, dissimilar ones right of l." + asked


def _cross_validation(found: dict[str, Any] | None, score: str) -> str:
    if found is None:
        return ""
    averaged = sum(found["averaged"])
    result = (
        f"The metric is the plain average of the {averaged} settings within one standard error of the best"
        if averaged > 1
        else "No other setting is within one standard error of the best, which the metric is of"
    )
    beyond = " The 24 best are drawn." if len(found["values"]) > 24 else ""
    return (
        f"Each setting was learned without a part of the data and scored on that part; the score is {score}. "
        f"{result} (coloured). Drawn: percentage points behind the best, with the standard error of that "
        f"difference.{beyond}"
    )


def _search(estimator: Any, history: dict[str, Any] | None) -> str:
    if history is None:
        return ""
    of = "With the best setting: the" if hasattr(estimator, "cv_results_") else "The"
    after = " and then in refinement" if getattr(estimator, "refine", True) else ""
    reasons = _besides_the_count(estimator) if history["final"] > history["best"][-1] + 1e-6 else []
    more = f" This metric violates more, because it counts as well {' and '.join(reasons)}." * bool(reasons)
    bound = " The lower bound is proven for all metrics." if history["lower"] else ""
    return (
        f"{of} least share of violated constraints met by then, in {_trials(estimator)} of the "
        f"search{after}.{more}{bound}"
    )


def _besides_the_count(estimator: Any) -> list[str]:
    """What a metric takes into account beside the number of violated constraints."""
    setting = (
        {"temperature": 0, "shrinkage": 0} | estimator.get_params() | getattr(estimator, "best_params_", {})
    )
    averaged = _averaged(estimator)
    found = {
        f"how clear the margins are (temperature {setting['temperature']:g})": setting["temperature"] > 0,
        f"how near the prior is (shrinkage {setting['shrinkage']:g})": setting["shrinkage"] > 0,
        f"the {averaged - 1} other settings of the average": averaged > 1,
    }
    return [reason for reason, given in found.items() if given]


def details(estimator: Any) -> list[tuple[str, str]]:
    """How the metric was learned, and with what."""
    import sklearn

    chosen = ", ".join(f"{k}={v!r}" for k, v in estimator.get_params(deep=False).items() if v is not None)
    rows = [("Estimator", type(estimator).__name__), ("Parameters", chosen)]
    if hasattr(estimator, "violation_rate_"):
        rows.append(
            (
                "Violated constraints",
                f"{estimator.violation_rate_:.1%} of the {constraints_name(estimator)}; "
                f"{estimator.trivial_rate_:.1%} for the {views.trivial_name(estimator)}",
            )
        )
        rows.append(("Least possible", least_possible(estimator)))
    if hasattr(estimator, "cv_results_"):
        rows.append(("Cross-validation", choice(estimator)))
    if hasattr(estimator, "n_trials_"):
        rows.append(("Search", trials(estimator)))
    if getattr(estimator, "bounds_", None) is not None:
        u, l = estimator.bounds_
        rows.append(("Bounds", f"u = {u:.6g}, l = {l:.6g}"))
    versions = f"lptml {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
    rows.append(("Versions", versions + f"scikit-learn {sklearn.__version__}"))
    return rows


def least_possible(estimator: Any) -> str:
    """How far the metric is from the best possible one, as far as that is proven."""
    bound, rate = estimator.lower_bound_, estimator.violation_rate_
    if bound is None:
        return "not asked: the estimator's certify() proves how few any metric violates at least"
    if rate <= bound * (1.0 + 1e-9):
        return "proven: no metric violates less"
    if bound == 0:
        return "nothing is proven: a metric that violates less may exist; certify() asks for longer"
    return (
        f"proven: no metric violates less than {bound:.2%}, so this one violates at most "
        f"{rate / bound:.3g} times as much as the best possible; certify() asks for longer"
    )


def _trials(estimator: Any) -> str:
    return f"{estimator.n_trials_} trial{'s' * (estimator.n_trials_ != 1)}"


def trials(estimator: Any) -> str:
    """What the search did, in a line."""
    return f"{_trials(estimator)}, {estimator.n_infeasible_} infeasible; {estimator.status_}"


def choice(estimator: Any) -> str:
    """What a cross-validation found, in a line."""
    found = views.cross_validation(estimator)
    assert found is not None
    n, averaged = len(found.values), int(found.averaged.sum())
    settings = f"{n} settings" if n > 1 else "one setting"
    return f"{settings}, {averaged} averaged; best: {found.best} (score {found.score[0]:.4f})"
