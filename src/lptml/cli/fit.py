"""``lptml fit``: learn a metric and store it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from lptml.cli.errors import INTERRUPTED
from lptml.cli.learner import learn, save_model
from lptml.cli.options import (
    DATA,
    columns,
    common,
    force_option,
    label_option,
    load_table,
    need_one_of,
    pairs_option,
    prepared,
    reading,
)
from lptml.cli.output import Kind, check_outputs, emit
from lptml.cli.pairs import read_pairs
from lptml.cli.parameters import learner
from lptml.cli.report import write_page


@click.command()
@click.argument("data", type=DATA)
@label_option
@pairs_option
@click.option(
    "-o", "--output", metavar="MODEL", help="Where to store the model. [default: DATA's name + .model.npz]"
)
@click.option("--report", metavar="FILE", help="Also write the page of lptml report, without starting anew.")
@force_option
@columns
@reading
@learner
@common
def fit(
    data: str,
    label: str | None,
    pairs: str | None,
    output: str | None,
    report: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Learn a metric from DATA: a table with a column of labels, or with verdicts on pairs of its rows.

    DATA is CSV, TSV, Parquet, ARFF or npz (arrays X and y); - is standard input.

    \b
    Examples:
      lptml fit wine.csv --label class
      lptml fit wine.csv --label class --report wine.html
      lptml fit wine.csv --label class --temperature 0.1 --temperature 0.3 -o wine.model.npz
      lptml fit wine.csv --label class --constraints all --bounds 0.8 --max-trials 2000
      lptml fit bottles.csv --key id --pairs verdicts.csv
      lptml fit survey.csv --label group --one-hot --impute median
    """
    target = _target(data, output)
    if report == "-":
        raise click.UsageError("standard output is for the summary: name the page with --report FILE")
    if report is None and options["n_neighbors"] and not options["cross_validate"]:
        raise click.UsageError("--n-neighbors has no use with --no-cross-validate and without --report")
    outputs = [(target, Kind.MODEL), (report, Kind.PAGE), (options["checkpoint"], Kind.CHECKPOINT)]
    check_outputs(
        *((path, kind) for path, kind in outputs if path is not None),
        inputs=(data, pairs, options["regularizer"]),
        force=force,
    )
    table = load_table(data, options)
    need_one_of(label, pairs, table)
    points = prepared(table, options, None if pairs else label)
    joined = read_pairs(pairs, points.names, key=options["key"]) if pairs else None
    from lptml.report.views import constraint_kind  # after the usage errors, which answer at once

    start = time.perf_counter()
    model = learn(points, joined, options)
    seconds = time.perf_counter() - start
    save_model(model, target, quiet=options["quiet"])
    interrupted = "interrupted" in str(model.status_).lower()
    about_page = {}
    if report is not None and not interrupted:
        about_page = write_page(report, model, points, joined, options)
    result: dict[str, Any] = {
        "model": target,
        "rows": len(points.X),
        "features": points.X.shape[1],
        "pairs": None if joined is None else len(joined.index),
        "classes": None if points.y is None else len(model.classes_),
        "constraints": constraint_kind(model),
        "bounds": model.bounds_,
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
    }
    written = [path for path in (target, report) if path is not None]
    emit(result, as_json=options["as_json"], text=lambda: summary(model, result), strong=written)
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)


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
    """What fit says to a person."""
    from lptml.report.views import trivial_name
    from lptml.report.words import choice, constraints_name, trials

    what = f"{result['pairs']} pairs" if result["pairs"] else f"{result['classes']} classes"
    trivial, proven = trivial_name(model), (result["lower_bound"] or 0.0) > 0
    bound = f"; no metric violates less than {result['lower_bound']:.2%}" if proven else ""
    lines = [
        f"{result['rows']} rows, {result['features']} features, {what}",
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
        lines += [f"report     {result['report']}", result["summary"]]
    return "\n".join(lines)


def _target(data: str, output: str | None) -> str:
    if output == "-":
        raise click.UsageError("a model is a binary file: name it with -o MODEL")
    if output is None and data == "-":
        raise click.UsageError("with DATA from standard input, name the model with -o MODEL")
    return output if output is not None else f"{Path(data).stem}.model.npz"
