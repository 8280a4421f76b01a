"""``lptml report``: one HTML page about a table, its metric and its suspects."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from lptml.cli.bar import progress, working
from lptml.cli.errors import InputError
from lptml.cli.learner import Corrected, corrected, features, judge, learn, load_model
from lptml.cli.options import (
    DATA,
    Sectioned,
    columns,
    common,
    corrections_option,
    force_option,
    label_option,
    load_table,
    need_one_of,
    pairs_option,
    prepared,
    reading,
)
from lptml.cli.output import FileKind, check_outputs, emit, write_text
from lptml.cli.pairs import Pairs, Tuples, read_pairs
from lptml.cli.parameters import learner
from lptml.cli.prepare import Points


@click.command(cls=Sectioned)
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
@corrections_option
@force_option
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
    corrections: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Write one self-contained HTML page about DATA: how many labels are wrong, which, and why.

    In the page each suspect opens to its reasons; keep, change or leave it, then download corrections.csv for
    `lptml apply`. The page needs no network and no server: send it, open it on a phone, print it.

    \b
    Examples:
      lptml report wine.csv --label class
      lptml report wine.csv --label class --model wine.model.npz -o wine.html --title "Wine, 2026"
      lptml report bottles.csv --key id --pairs pairs.csv
    """
    target = _target(data, output)
    outputs = [(target, FileKind.PAGE), (options["checkpoint"], FileKind.CHECKPOINT)]
    check_outputs(
        *((path, kind) for path, kind in outputs if path is not None),
        inputs=(data, pairs, model, corrections, options["regularizer"]),
        force=force,
    )
    with working(
        options["quiet"], learning=0.1 if model else 6.0, judging_labels=2.0, measuring_accuracy=4.0
    ):
        table = load_table(data, options)
        need_one_of(label, pairs, table)
        points = prepared(table, options, None if pairs else label)
        joined = read_pairs(pairs, points.names, key=options["key"]) if pairs else None
        review = given_corrections(points, corrections, joined)
        points = review.points
        learned = _stored(model, points) if model else learn(points, joined, options)
        found = judged(review, joined, options)
        page = make_page(learned, review, joined, found, options, title=title, repeats=repeats)
    result = write_page(target, page, found)
    following = "open it in a browser"
    if joined is None:
        following = f"open it, decide, download corrections.csv, then: {apply_command(points)}"
    if target != "-":
        emit(
            result,
            as_json=options["as_json"],
            text=lambda: f"{result['summary']}\n{target}\nNext: {following}",
            strong=[target],
        )


def given_corrections(points: Points, path: str | None, joined: Pairs | Tuples | None) -> Corrected:
    """The points with the labels of --corrections, if it is given."""
    if path is None:
        return Corrected(points, np.zeros(len(points.X), dtype=bool), [], {})
    if joined is not None:
        raise click.UsageError("--corrections is about labels: give --label with it")
    from lptml.cli.correct import decisions

    return corrected(points, decisions(path))


def apply_command(points: Points, file: str = "corrections.csv") -> str:
    """The command that applies decisions about these points."""
    data = Path(points.table.source)
    return shlex.join(["lptml", "apply", str(data), file, "-o", f"{data.stem}-clean{data.suffix}"])


def judged(review: Corrected, joined: Pairs | None, options: dict[str, Any]) -> Any:
    """What is thought of the labels, those that a review vouches for being trusted."""
    with progress("judging labels", quiet=options["quiet"]) as advance:
        return judge(review.points, joined, options["random_state"], trusted=review.trusted, progress=advance)


def write_page(target: str, page: Any, found: Any) -> dict[str, Any]:
    """Write a page; what there is to say about it."""
    html = page.html()
    write_text(target, html)
    return {
        "report": target,
        "bytes": len(html.encode()),
        "n_suspects": int(found.suspects.sum()),
        "noise_rate": found.noise_rate,
        "summary": page.summary,
    }


def make_page(
    learned: Any,
    review: Corrected,
    joined: Pairs | None,
    found: Any,
    options: dict[str, Any],
    *,
    title: str | None = None,
    repeats: int = 1,
) -> Any:
    """The page about a model and what was found about the labels."""
    from lptml.report import Origin, labels_report, pairs_report

    points = review.points
    shared: dict[str, Any] = {
        "names": points.names if options["key"] else None,
        "feature_names": points.feature_names,
        "title": title or Path(points.table.source).name,
        "repeats": repeats,
        "details": [("Command", shlex.join(["lptml", *sys.argv[1:]]))],
    }
    with progress("measuring accuracy", quiet=options["quiet"]) as advance:
        shared["progress"] = advance
        if joined is not None:
            assert joined.y is not None
            doubt = {"suspicion": found.suspicion, "n_suspects": int(found.suspects.sum())}
            return pairs_report(learned, points.X, joined.index, joined.y, **doubt, **shared)
        assert points.y is not None
        origin = Origin(
            column=str(points.label),
            digest=points.table.digest,
            rows=points.table.row_numbers.tolist(),
            decisions=review.decisions,
            given=review.given,
            command=apply_command(points),
        )
        return labels_report(
            learned,
            points.X,
            points.y,
            judged=found,
            neighbors=options["n_neighbors"] or getattr(learned, "n_neighbors", 4),
            noticed=points.noticed,
            origin=origin,
            **shared,
        )


def _stored(path: str, points: Points) -> Any:
    """A stored model, which must know the same features."""
    model = load_model(path)
    if not hasattr(model, "components_"):
        raise InputError("learned a map that is not linear: the page shows metrics of the features", path)
    X = features(model, points.table)
    if X.shape != points.X.shape or (X != points.X).any():
        raise InputError(
            "was fitted on other columns or with another --one-hot or --impute than given here", path
        )
    return model


def _target(data: str, output: str | None) -> str:
    if output is None and data == "-":
        raise click.UsageError("with DATA from standard input, name the page with -o FILE")
    return output if output is not None else f"{Path(data).stem}.html"
