"""``lptml report``: one HTML page about a table, its metric and its suspects."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from lptml.cli.errors import InputError
from lptml.cli.judge import judge
from lptml.cli.learner import learner
from lptml.cli.model import features, learn, load_model, need_one_of
from lptml.cli.options import (
    DATA,
    columns,
    common,
    label_option,
    load_table,
    pairs_option,
    prepared,
    reading,
)
from lptml.cli.output import check_target, emit, progress, write_text
from lptml.cli.pairs import Pairs, read_pairs
from lptml.cli.prepare import Points

_PROVABLE = 5_000_000  # pairs times squared features up to which a bound is proven in no time
_SEARCH_ROWS = 1000  # half a million pairs: a search for the page, not for a model


@click.command()
@click.argument("data", type=DATA)
@label_option
@pairs_option
@click.option(
    "--model",
    type=click.Path(dir_okay=True),
    metavar="MODEL",
    help="A model of lptml fit; by default one is learned.",
)
@click.option("-o", "--output", metavar="FILE", help="The page. [default: DATA's name + .html]")
@click.option("--title", help="The title of the page. [default: DATA's name]")
@click.option(
    "--repeats",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Repetitions of the two-fold cross-validation of the accuracy; 0 leaves it out.",
)
@click.option(
    "--neighbors", type=click.IntRange(min=1), default=4, show_default=True, help="Votes of the k-NN rule."
)
@click.option(
    "--search-seconds",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help="Time for the search that the page shows where validation chose the metric without one.",
)
@columns
@reading
@learner
@common
def report(
    data: str,
    label: str | None,
    pairs: str | None,
    model: str | None,
    output: str | None,
    title: str | None,
    repeats: int,
    neighbors: int,
    search_seconds: float,
    **options: Any,
) -> None:
    """Write one self-contained HTML page about DATA: accuracy before and after, the metric, the suspects.

    The page needs no network and no server: send it, open it on a phone, print it.

    \b
    Examples:
      lptml report wine.csv --label class
      lptml report wine.csv --label class --model wine.model.npz -o wine.html --title "Wine, 2026"
      lptml report bottles.csv --key id --pairs verdicts.csv
    """
    table = load_table(data, options)
    need_one_of(label, pairs, table)
    target = _target(data, output)
    points = prepared(table, options, None if pairs else label)
    joined = read_pairs(pairs, points.names, key=options["key"]) if pairs else None
    learned = _stored(model, points) if model else learn(points, joined, options)
    result = write_page(
        target,
        learned,
        points,
        joined,
        options,
        title=title,
        repeats=repeats,
        neighbors=neighbors,
        search_seconds=search_seconds,
    )
    if target != "-":
        emit(
            result,
            as_json=options["as_json"],
            text=lambda: f"{result['summary']}\n{click.style(target, bold=True)}",
        )


def write_page(
    target: str,
    learned: Any,
    points: Points,
    joined: Pairs | None,
    options: dict[str, Any],
    *,
    title: str | None = None,
    repeats: int = 1,
    neighbors: int = 4,
    search_seconds: float = 0.2,
) -> dict[str, Any]:
    """Judge, measure and write the page about a model; what there is to say about it."""
    from lptml.report import labels_report, pairs_report

    judged = judge(points, joined, options["random_state"])
    shared: dict[str, Any] = {
        "suspicion": judged.suspicion,
        "n_suspects": judged.n_suspects,
        "names": points.names if options["key"] else None,
        "feature_names": points.feature_names,
        "title": title or Path(points.table.source).name,
        "repeats": repeats,
        "details": [("Command", shlex.join(["lptml", *sys.argv[1:]]))],
    }
    with progress("accuracy", quiet=options["quiet"]) as advance:
        shared["progress"] = advance
        if joined is None:
            assert points.y is not None
            search = _least_cost(learned, points, search_seconds, options["random_state"])
            if search is not None and len(points.X) > _SEARCH_ROWS:
                shared["details"].append(("Search shown", f"on {_SEARCH_ROWS:,} rows drawn at random"))
            page = labels_report(
                learned,
                points.X,
                points.y,
                likely=judged.likely,
                neighbors=neighbors,
                search=search,
                **shared,
            )
        else:
            assert joined.y is not None
            page = pairs_report(learned, points.X, joined.index, joined.y, **shared)
    html = page.html()
    write_text(target, html)
    return {
        "report": target,
        "bytes": len(html.encode()),
        "n_suspects": judged.n_suspects,
        "summary": page.summary,
    }


def _least_cost(model: Any, points: Points, seconds: float, seed: int) -> Any:
    """A short search for the metric of least cost, where validation chose the model without one."""
    from lptml._report.accuracy import some_rows
    from lptml.estimators import LPTML_Supervised

    if seconds <= 0 or not getattr(model, "validation_", ()):
        return None
    assert points.y is not None
    rows = some_rows(len(points.X), _SEARCH_ROWS, seed)
    if len(np.unique(points.y[rows])) < 2:
        return None
    search = LPTML_Supervised(validation=None, max_trials=30, time_limit=seconds, random_state=seed)
    X, y = points.X[rows], points.y[rows]
    search.fit(X, y)
    search.support_ = rows[search.support_]
    search.lower_bound_ = _proven(search, X, y, seconds / 2)
    return search


def _proven(search: Any, X: np.ndarray[Any, Any], y: np.ndarray[Any, Any], seconds: float) -> float:
    """What share of the pairs every metric violates, as far as that is proven in this time."""
    from lptml.labels import LabelledPairs
    from lptml.lower_bounds import certify

    codes = np.unique(y, return_inverse=True)[1]
    pairs = LabelledPairs.from_labels(X, codes, bounds=search.bounds_)
    if pairs.n * pairs.d**2 > _PROVABLE:
        return 0.0
    proof = certify(pairs, search.get_mahalanobis_matrix(), time_limit=seconds)
    return min(proof.lower_bound / pairs.total_weight, search.violation_rate_)


def _stored(path: str, points: Points) -> Any:
    """A stored model, which must know the same features."""
    model = load_model(path)
    X = features(model, points.table)
    if X.shape != points.X.shape or (X != points.X).any():
        raise InputError(
            "was fitted on other columns or with another --one-hot or --impute than given here", path
        )
    return model


def _target(data: str, output: str | None) -> str:
    if output is None and data == "-":
        raise click.UsageError("with DATA from standard input, name the page with -o FILE")
    target = output if output is not None else f"{Path(data).stem}.html"
    if target != "-":
        check_target(target)
    return target
