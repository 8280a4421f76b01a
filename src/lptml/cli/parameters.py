"""The options of the learner, and the estimator that they ask for.

An option carries the name of the parameter that it sets, and its help ends with that parameter's default; a
test compares both. Those of ``GRID`` may be repeated: each value is a setting to compare.
"""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from lptml.cli.errors import InputError
from lptml.cli.options import DATA, Advanced, F, stacked
from lptml.cli.readers import read_table

Option = tuple[str, dict[str, Any], str]  # its name, settings and help


def engine_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The name of an engine or the address of a cluster, or an error that says what would do."""
    if value is not None:
        from lptml.engines import kind_of

        try:
            kind_of(value)
        except ValueError as problem:
            raise click.BadParameter(str(problem), ctx, param) from None
    return value


def engine_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the names; addresses are the user's."""
    return [name for name in ("local", "dask", "spark") if name.startswith(incomplete)]


#: Cross-validated: each value given is tried. Defaults are those for labels; those for pairs, where others.
GRID: list[Option] = [
    (
        "--prior",
        {"type": click.Choice(["standardized", "within", "discriminant", "identity"]), "multiple": True},
        "The metric that learning starts from and is shrunk to; may be repeated, to compare. "
        "[default: standardized, within, discriminant; pairs: standardized]",
    ),
    (
        "--shrinkage",
        {"type": click.FloatRange(0, 1), "multiple": True},
        "How far to move towards the prior, 0 to 1; may be repeated. [default: 0, 0.5, 1; pairs: 0]",
    ),
    (
        "--temperature",
        {"type": click.FloatRange(min=0), "multiple": True},
        "Width of the step from satisfied to violated; 0 is the count; may be repeated. "
        "[default: 0.15; pairs: 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005]",
    ),
    (
        "--n-components",
        {"type": click.IntRange(min=1), "multiple": True},
        "Largest rank of the metric; may be repeated. [default: all features]",
    ),
]
COMMON: list[Option] = [
    (
        "--max-trials",
        {"type": click.IntRange(min=0)},
        "Trials of the search, the paper's t. [default: 100]",
    ),
    (
        "--search-components",
        {"type": click.IntRange(min=1)},
        "Leading directions that the search looks in; give all features for a full search. [default: 6]",
    ),
    (
        "--epsilon",
        {"type": click.FloatRange(min=0, min_open=True)},
        "Sampling rates are (1 + epsilon)^-i. [default: 0.5]",
    ),
    (
        "--objective",
        {"type": click.Choice(["trace", "random", "prior"])},
        "What a trial's metric minimises. [default: trace]",
    ),
    (
        "--bounds",
        {"metavar": "auto|RATIO|U,L|percentile:A:B"},
        "Similar pairs within u, others beyond l: their ratio, values or percentiles. [default: auto]",
    ),
    (
        "--class-weight",
        {"type": click.Choice(["balanced"])},
        "Weigh similar and dissimilar pairs alike. [default: as they are]",
    ),
    (
        "--time-limit",
        {"type": click.FloatRange(min=0, min_open=True), "metavar": "SECONDS"},
        "Take the best metric after this long. [default: none]",
    ),
    (
        "--engine",
        {"callback": engine_name, "shell_complete": engine_names, "metavar": "NAME|ADDRESS"},
        "Where the trials run: local, dask, spark, or a cluster's address (tcp://host:8786, "
        "spark://host:7077). [default: local]",
    ),
    (
        "--n-jobs",
        {"type": int},
        "Trials at the same time, -1 for all cores; the result is the same. [default: 1]",
    ),
    (
        "--random-state",
        {"type": click.IntRange(0, 2**32 - 1), "default": 0},
        "Seed: the same seed gives the same metric. [default: 0]",
    ),
]
#: Of labels; the first is of the grid.
LABELS: list[Option] = [
    (
        "--constraints",
        {"type": click.Choice(["triplets", "neighbors", "all"]), "multiple": True},
        "What the labels demand: triplets of neighbours, pairs of neighbours, or all pairs; may be repeated. "
        "[default: triplets]",
    ),
    ("--n-constraints", {"type": click.IntRange(min=1)}, "Constraints of each kind to draw. [default: all]"),
]
#: Of the cross-validation; the last just of labels.
CHOICE: list[Option] = [
    ("--cv", {"type": click.IntRange(min=2)}, "Folds of the cross-validation. [default: 3; pairs: 5]"),
    ("--n-repeats", {"type": click.IntRange(min=1)}, "How often to deal the folds. [default: 2; pairs: 1]"),
    (
        "--n-neighbors",
        {"type": click.IntRange(min=1)},
        "Neighbours that vote, where settings are compared and on the page. [default: 4]",
    ),
]
#: Of the estimators that fit one setting.
SINGLE: list[Option] = [
    (
        "--refine/--no-refine",
        {"default": None},
        "Improve the best trials locally; without, the paper's plain search (temperature 0). "
        "Needs --no-cross-validate. [default: refine]",
    ),
    (
        "--regularization",
        {"type": click.FloatRange(min=0)},
        "eta, the weight of the penalty <R, A>. Needs --no-cross-validate. [default: 0]",
    ),
    (
        "--regularizer",
        {"type": DATA, "metavar": "FILE"},
        "R, a table of numbers without header. Needs --no-cross-validate. [default: the identity]",
    ),
    (
        "--approximate-counting/--no-approximate-counting",
        {"default": None},
        "Drop a candidate once it cannot win. Needs --no-cross-validate. "
        "[default: where there are many constraints]",
    ),
    (
        "--checkpoint",
        {"type": click.Path(dir_okay=False), "metavar": "FILE"},
        "Keep the search's state here; the same command goes on from it. Needs --no-cross-validate. "
        "[default: none]",
    ),
]
CROSS_VALIDATE: Option = (
    "--cross-validate/--no-cross-validate",
    {"default": True},
    "Compare settings by cross-validation and average those within one standard error of the best; without, "
    "fit the one that is given (prior discriminant, shrinkage 0.5, temperature 0.15; pairs: standardized, 0, "
    "0). [default: cross-validate]",
)
LISTED = ("prior", "shrinkage", "temperature")  # parameters whose name has an s where several are compared


def learner(function: F) -> F:
    """Add every option of the learner to a command."""
    options = [CROSS_VALIDATE, *LABELS, *GRID, *CHOICE, *COMMON, *SINGLE]
    return stacked(
        [click.option(name, help=text, cls=Advanced, **settings) for name, settings, text in options]
    )(function)


def parameter_name(option: str) -> str:
    """The parameter that an option sets.

    >>> parameter_name("--refine/--no-refine")
    'refine'
    """
    return option.partition("/")[0].lstrip("-").replace("-", "_")


def parse_bounds(value: str) -> Any:
    """The parameter ``bounds`` from its text.

    >>> parse_bounds("percentile:10:90"), parse_bounds("1.5,3")
    (('percentile', 10.0, 90.0), (1.5, 3.0))
    """
    if value == "auto":
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
        raise click.BadParameter(message, param_hint="--bounds") from None


#: What is learned from, and the estimator; those of comparisons have no cross-validation.
ESTIMATORS = {
    "labels": "LPTML_Supervised",
    "pairs": "LPTML",
    "triplets": "LPTML_Triplets",
    "quadruplets": "LPTML_Quadruplets",
}
OF_PAIRS = ("bounds", "class_weight")  # of COMMON, what comparisons do not have


def make_estimator(options: dict[str, Any], source: str = "labels", **more: Any) -> Any:
    """The estimator that the options ask for, not yet fitted; what was not given keeps its default."""
    from lptml import estimators

    choosing = options["cross_validate"] and source in ("labels", "pairs")
    name = ESTIMATORS[source] + ("CV" if choosing else "")
    return getattr(estimators, name)(**parameters(options, source=source, choosing=choosing), **more)


def parameters(options: dict[str, Any], *, source: str, choosing: bool) -> dict[str, Any]:
    """The parameters that were given, by the names of the estimator.

    Parameters
    ----------
    options : dict
    source : {"labels", "pairs", "triplets", "quadruplets"}
        What is learned from.
    choosing : bool
        Whether settings are compared by cross-validation.
    """
    supervised, compared = source == "labels", source in ("triplets", "quadruplets")
    without = [option for option in COMMON if parameter_name(option[0]) in OF_PAIRS]
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    refused: list[tuple[bool, list[Option], str]] = [
        (not supervised, [*LABELS, CHOICE[-1]], f"is about labels and does not go with --{source}"),
        (compared, [*without, *CHOICE], f"does not go with --{source}"),
        (choosing, SINGLE, "is for one setting: add --no-cross-validate"),
        (not choosing, CHOICE[:-1], "is about the cross-validation that --no-cross-validate leaves out"),
    ]
    for applies, wrong, message in refused:
        for option, _, _ in wrong:
            if applies and parameter_name(option) in given:
                on, _, off = option.partition("/")
                as_given = off if off and not given[parameter_name(option)] else on
                raise click.UsageError(f"{as_given} {message}")
    common = [option for option in COMMON if not (compared and option in without)]
    kinds = [*GRID, *common, *(LABELS if supervised else []), *(CHOICE if choosing else SINGLE)]
    names = [parameter_name(option) for option, _, _ in kinds]
    found = {name: given[name] for name in names if name in given}
    for option, _, _ in [*GRID, LABELS[0]]:
        name = parameter_name(option)
        if name in found:
            values = [*found.pop(name)]
            if not choosing and len(values) > 1:
                reason = f"--{source}" if compared else "--no-cross-validate"
                raise click.UsageError(
                    f"{option} is given {len(values)} times, which {reason} cannot compare"
                )
            found[f"{name}s" if choosing and name in LISTED else name] = values if choosing else values[0]
    if "bounds" in found:
        found["bounds"] = parse_bounds(found["bounds"])
    if "regularizer" in found:
        found["regularizer"] = read_matrix(found["regularizer"])
    return found


def read_matrix(path: str) -> Any:
    """A square matrix of numbers from a table without header."""
    table = read_table(path, header=False)
    cells = {name: table.numbers(name) for name in table.names}
    for name, (values, bad) in cells.items():
        if bad or not np.isfinite(values).all():
            row = bad[0] if bad else int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError("is no number", table.place(row, name))
    return np.column_stack([values for values, _ in cells.values()])
