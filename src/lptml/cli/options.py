"""The options that commands share.  Those of the learner carry the names of the estimators' parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lptml.cli.prepare import IMPUTE, Points, prepare
from lptml.cli.tables import FORMATS, Table, read_table

F = TypeVar("F", bound=Callable[..., Any])

DATA = click.Path(dir_okay=True, allow_dash=True)


def _stack(options: list[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def common(function: F) -> F:
    """--json, --quiet and --debug, which every command has."""
    return _stack(
        [
            click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON."),
            click.option("--quiet", "-q", is_flag=True, help="No progress and no notes."),
            click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."),
        ]
    )(function)


def reading(function: F) -> F:
    """How to read the table of points."""
    return _stack(
        [
            click.option(
                "--format",
                type=click.Choice(FORMATS),
                default="auto",
                help="Format of DATA; by default its name and first bytes tell.",
            ),
            click.option(
                "--delimiter", metavar="CHAR", help="Between the cells of a CSV file; guessed by default."
            ),
            click.option("--encoding", default="utf-8", show_default=True, help="Of a text file."),
            click.option(
                "--header/--no-header",
                default=True,
                help="Whether the first line of a CSV file names the columns; without, they are 1, 2, 3, ...",
            ),
            click.option(
                "--na", multiple=True, metavar="TEXT", help="A text that means 'no value'; may be repeated."
            ),
        ]
    )(function)


def columns(function: F) -> F:
    """Which columns are what, and what to do with text and missing values."""
    return _stack(
        [
            click.option("--key", metavar="COLUMN", help="The column that names the rows; not a feature."),
            click.option(
                "--features",
                metavar="A,B,...",
                callback=_names,
                help="The columns to learn from; by default all but label and key.",
            ),
            click.option("--drop", metavar="A,B,...", callback=_names, help="Columns to leave out."),
            click.option(
                "--one-hot",
                is_flag=True,
                help="Turn text columns into 0/1 features; otherwise they are refused.",
            ),
            click.option(
                "--impute",
                type=click.Choice(IMPUTE),
                help="What stands for a missing value ('drop': leave its row out); otherwise refused.",
            ),
            click.option("--drop-unlabelled", is_flag=True, help="Leave out rows without a label."),
        ]
    )(function)


def label_option(function: F) -> F:
    """--label, the column of labels."""
    return click.option("--label", metavar="COLUMN", help="The column of labels.")(function)


def pairs_option(function: F) -> F:
    """--pairs, the file of verdicts."""
    text = "A file of pairs: two keys and a verdict a line (similar, dissimilar), joined to DATA by --key."
    return click.option("--pairs", type=DATA, metavar="FILE", help=text)(function)


def learner(function: F) -> F:
    """The parameters of the estimators; what is not given keeps the estimator's default."""
    choice = click.Choice
    return _stack(
        [
            click.option(
                "--max-trials", type=click.IntRange(min=1), help="Trials of the search (the paper's t)."
            ),
            click.option("--epsilon", type=float, help="The grid of sampling rates is (1 + epsilon)^-i."),
            click.option(
                "--objective",
                type=choice(["random", "trace", "prior"]),
                help="What the exact solver minimises among feasible metrics.",
            ),
            click.option(
                "--bounds",
                metavar="auto|RATIO|U,L|percentile:A:B",
                callback=parse_bounds,
                help="Similar pairs within u, others beyond l: by their ratio, themselves, or percentiles.",
            ),
            click.option(
                "--refine/--no-refine",
                default=None,
                help="Improve the best trials by local optimisation; without, the paper's plain search.",
            ),
            click.option(
                "--regularization",
                type=click.FloatRange(min=0),
                help="eta: the weight of the regulariser in the cost.",
            ),
            click.option(
                "--n-components", type=click.IntRange(min=1), help="The rank of the metric; by default full."
            ),
            click.option(
                "--class-weight",
                type=choice(["balanced"]),
                help="Weigh the classes (or the two kinds of pairs) equally.",
            ),
            click.option(
                "--approximate-counting/--no-approximate-counting",
                default=None,
                help="Stop counting a candidate's violations once it cannot win.",
            ),
            click.option(
                "--time-limit",
                type=click.FloatRange(min=0, min_open=True),
                metavar="SECONDS",
                help="End the search after this long, with the best so far.",
            ),
            click.option("--engine", type=choice(["local", "dask", "spark"]), help="Where the trials run."),
            click.option("--n-jobs", type=int, help="Parallel workers; -1 for all cores."),
            click.option(
                "--random-state",
                type=click.IntRange(min=0),
                default=0,
                show_default=True,
                help="Seed: the same seed gives the same metric.",
            ),
            click.option(
                "--checkpoint",
                type=click.Path(dir_okay=False),
                metavar="FILE",
                help="Continue an interrupted search from here, and keep it up to date.",
            ),
        ]
    )(function)


def supervised_learner(function: F) -> F:
    """The parameters that only the supervised estimator has."""
    return _stack(
        [
            click.option(
                "--constraints",
                type=click.Choice(["auto", "all", "neighbors", "triplets"]),
                help="Which constraints the labels give.",
            ),
            click.option(
                "--n-constraints",
                type=click.IntRange(min=1),
                help="How many constraints to draw; by default all of them.",
            ),
            click.option(
                "--validation/--no-validation",
                default=None,
                help="Choose the metric by internal validation; without, the one of least cost.",
            ),
        ]
    )(function)


LEARNER = (
    "max_trials",
    "epsilon",
    "objective",
    "bounds",
    "refine",
    "regularization",
    "n_components",
    "class_weight",
    "approximate_counting",
    "time_limit",
    "engine",
    "n_jobs",
    "random_state",
    "checkpoint",
)
SUPERVISED = ("constraints", "n_constraints", "validation")


def parse_bounds(ctx: click.Context | None, param: click.Parameter | None, value: str | None) -> Any:
    """The parameter ``bounds`` from its text.

    >>> parse_bounds(None, None, "percentile:10:90"), parse_bounds(None, None, "1.5,3")
    (('percentile', 10.0, 90.0), (1.5, 3.0))
    """
    if value is None or value == "auto":
        return value
    try:
        if value.startswith("percentile:"):
            _, a, b = value.split(":")
            return ("percentile", float(a), float(b))
        if "," in value:
            u, l = value.split(",")
            return (float(u), float(l))
        return float(value)
    except ValueError:
        message = f"{value!r} is not auto, a ratio (0.8), two distances (1.5,3) or percentile:10:90"
        raise click.BadParameter(message, ctx, param) from None


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    import csv

    if not value:
        return ()
    return tuple(cell.strip() for cell in next(csv.reader([value])) if cell.strip())


def load_table(path: str, options: dict[str, Any]) -> Table:
    """The table at ``path``, read as the reading options say."""
    delimiter = options["delimiter"]
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '\r\n"':
            raise click.BadParameter("one character, or 'tab'", param_hint="--delimiter")
    return read_table(
        path,
        format=options["format"],
        delimiter=delimiter,
        encoding=options["encoding"],
        header=options["header"],
        missing=options["na"],
    )


def load_points(path: str, options: dict[str, Any], label: str | None) -> Points:
    """The points at ``path``, prepared as the column options say."""
    chosen = ("key", "features", "drop", "one_hot", "impute", "drop_unlabelled")
    return prepare(load_table(path, options), label=label, **{name: options[name] for name in chosen})


def given(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The options that were given, by the estimator's parameter names."""
    return {name: options[name] for name in names if options.get(name) is not None}
