"""``lptml fit``: learn a metric and store it."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

import click

from lptml.cli.bar import working
from lptml.cli.errors import INTERRUPTED
from lptml.cli.learner import findings, in_words, learn, save_model
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
    reading_words,
    same_data,
    tuples_options,
)
from lptml.cli.output import FileKind, check_outputs, emit
from lptml.cli.pairs import Pairs, Tuples, read_pairs, read_tuples
from lptml.cli.parameters import learner
from lptml.cli.report import given_corrections, judged, make_page, write_page


@click.command(cls=Sectioned)
@click.argument("data", type=DATA)
@label_option
@pairs_option
@tuples_options
@click.option(
    "-o", "--output", metavar="MODEL", help="Where to store the model. [default: DATA's name + .model.npz]"
)
@click.option("--report", metavar="FILE", help="Also write the page of lptml report, without starting anew.")
@corrections_option
@force_option
@columns
@reading
@learner
@common
def fit(
    data: str,
    label: str | None,
    pairs: str | None,
    triplets: str | None,
    quadruplets: str | None,
    output: str | None,
    report: str | None,
    corrections: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Learn a metric from DATA: a table with a column of labels, or with labels of pairs of its rows.

    DATA is CSV, TSV, Parquet, ARFF or npz (arrays X and y); - is standard input.

    \b
    Examples:
      lptml fit wine.csv --label class
      lptml fit wine.csv --label class --report wine.html
      lptml fit wine.csv --label class --temperature 0.1 --temperature 0.3 -o wine.model.npz
      lptml fit wine.csv --label class --constraints all --bounds 0.8 --max-trials 2000
      lptml fit bottles.csv --key id --pairs pairs.csv
      lptml fit bottles.csv --key id --triplets nearer.csv
      lptml fit survey.csv --label group --one-hot --impute median
    """
    target = _target(data, output)
    if report is not None and (triplets or quadruplets):
        raise click.UsageError("the page is about labels and pairs: leave --report out")
    if report == "-":
        raise click.UsageError("standard output is for the summary: name the page with --report FILE")
    if report is None and options["n_neighbors"] and not options["cross_validate"]:
        raise click.UsageError("--n-neighbors has no use with --no-cross-validate and without --report")
    outputs = [
        (target, FileKind.MODEL),
        (report, FileKind.PAGE),
        (options["checkpoint"], FileKind.CHECKPOINT),
    ]
    check_outputs(
        *((path, kind) for path, kind in outputs if path is not None),
        inputs=(data, pairs, triplets, quadruplets, corrections, options["regularizer"]),
        force=force,
    )
    stages = {"learning": 6.0, "judging_labels": 2.0} | (
        {} if report is None else {"measuring_accuracy": 4.0}
    )
    with working(options["quiet"], **stages):
        table = load_table(data, options)
        compared = triplets or quadruplets
        need_one_of(label, pairs, table, triplets=triplets, quadruplets=quadruplets)
        points = prepared(table, options, None if pairs or compared else label)
        joined: Pairs | Tuples | None = None
        if pairs:
            joined = read_pairs(pairs, points.names, key=options["key"])
        elif compared:
            joined = read_tuples(compared, points.names, key=options["key"], width=3 if triplets else 4)
        review = given_corrections(points, corrections, joined)
        points = review.points
        start = time.perf_counter()
        model = learn(points, joined, options)
        seconds = time.perf_counter() - start
        save_model(model, target, quiet=options["quiet"])
        interrupted = "interrupted" in str(model.status_).lower()
        about_page, found = {}, None
        if not interrupted and not isinstance(joined, Tuples):
            found = judged(review, joined, options)
        if report is not None and not interrupted:
            assert not isinstance(joined, Tuples)
            about_page = write_page(report, make_page(model, review, joined, found, options), found)
    from lptml.report.views import constraint_kind

    comparisons = {"triplets": triplets, "quadruplets": quadruplets}
    result: dict[str, Any] = {
        "model": target,
        "rows": len(points.X),
        "features": points.X.shape[1],
        "pairs": len(joined.index) if isinstance(joined, Pairs) else None,
        "comparisons": len(joined.index) if isinstance(joined, Tuples) else None,
        "classes": None if points.y is None or joined is not None else len(model.classes_),
        **({} if found is None else findings(found)),
        "constraints": constraint_kind(model),
        "bounds": getattr(model, "bounds_", None),
        **_settings(model),
        "n_violations": model.n_violations_,
        "violation_rate": model.violation_rate_,
        "trivial_rate": model.trivial_rate_,
        "lower_bound": model.lower_bound_,
        "n_trials": model.n_trials_,
        "n_infeasible": model.n_infeasible_,
        "status": model.status_,
        "seconds": seconds,
        **about_page,
        "next": _next(data, {"label": label, "pairs": pairs, **comparisons}, target, found, options),
    }
    written = [path for path in (target, report) if path is not None]
    emit(result, as_json=options["as_json"], text=lambda: summary(model, result), strong=written)
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)


def _next(data: str, sources: dict[str, str | None], target: str, found: Any, options: dict[str, Any]) -> str:
    """The command that most people want next."""
    key = ["--key", options["key"]] if options["key"] else []
    source = [word for name, value in sources.items() if value for word in (f"--{name}", value)]
    if data == "-":
        return shlex.join(["lptml", "transform", target, "DATA"])
    if sources["triplets"] or sources["quadruplets"]:
        return shlex.join(["lptml", "score", target, data, *key, *source, *reading_words(options)])
    if found is not None and found.can_judge and not found.suspects.any():
        return shlex.join(["lptml", "transform", target, "new.csv", "-o", "mapped.csv"])
    command = "suspects" if sources["pairs"] else "review"
    return same_data(command, data, sources, options)


def _settings(model: Any) -> dict[str, Any]:
    """What the cross-validation found; nothing where there was none."""
    if not hasattr(model, "cv_results_"):
        return {}
    return {
        "n_settings": len(model.cv_results_["params"]),
        "n_averaged": int(model.cv_results_["averaged"].sum()),
        "best_params": model.best_params_,
        "best_score": model.best_score_,
    }


def summary(model: Any, result: dict[str, Any]) -> str:
    """What fit says to a person: what was found, then how, then the next command."""
    from lptml.report.views import trivial_name
    from lptml.report.words import choice, constraints_name, trials

    what = f"{result['pairs']} pairs" if result["pairs"] else f"{result['classes']} classes"
    if result["comparisons"]:
        what = f"{result['comparisons']} {result['constraints']}"
    trivial, proven = trivial_name(model), (result["lower_bound"] or 0.0) > 0
    bound = f"; no metric violates less than {result['lower_bound']:.2%}" if proven else ""
    lines = [f"{result['rows']} rows, {result['features']} features, {what}"]
    if "n_suspects" in result:
        lines += in_words(result, "pair" if result["pairs"] else "row")
    lines += [
        "",
        f"violated   {result['violation_rate']:.2%} of the {constraints_name(model)} "
        f"({result['n_violations']}){bound}",
        f"{trivial.partition(' ')[0]:10} {result['trivial_rate']:.2%} are violated by the {trivial}",
    ]
    if result["bounds"] is not None:
        u, l = result["bounds"]
        lines.append(f"bounds     similar within u = {u:.4g}, dissimilar beyond l = {l:.4g}")
    if "n_settings" in result:
        lines.append(f"settings   {choice(model)}")
    lines += [
        f"search     {trials(model)}",
        f"time       {result['seconds']:.2f} s",
        f"model      {result['model']}",
    ]
    if "report" in result:
        lines += [f"report     {result['report']}"]
    return "\n".join([*lines, "", f"Next: {result['next']}"])


def _target(data: str, output: str | None) -> str:
    if output == "-":
        raise click.UsageError("a model is a binary file: name it with -o MODEL")
    if output is None and data == "-":
        raise click.UsageError("with DATA from standard input, name the model with -o MODEL")
    return output if output is not None else f"{Path(data).stem}.model.npz"
