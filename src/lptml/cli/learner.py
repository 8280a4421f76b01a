"""The options that are the estimators' parameters, by their names; a test compares the defaults."""

from __future__ import annotations

from typing import Any

import click

from lptml.cli.errors import InputError
from lptml.cli.options import DATA, F, stacked
from lptml.cli.readers import read_table


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


# (option, settings, help); a help text ends with the estimator's default.
COMMON: list[tuple[str, dict[str, Any], str]] = [
    (
        "--max-trials",
        {"type": click.IntRange(min=0)},
        "Trials of the search, the paper's t. [default: 100, fewer above 10 features]",
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
        "--refine/--no-refine",
        {"default": None},
        "Improve the best trials locally; without, the paper's plain search. [default: refine]",
    ),
    (
        "--regularization",
        {"type": click.FloatRange(min=0)},
        "eta, the weight of the penalty <R, A>. [default: 0]",
    ),
    (
        "--regularizer",
        {"type": DATA, "metavar": "FILE"},
        "R, a table of numbers without header. [default: the identity]",
    ),
    (
        "--n-components",
        {"type": click.IntRange(min=1)},
        "Largest rank of the metric. [default: all features]",
    ),
    (
        "--class-weight",
        {"type": click.Choice(["balanced"])},
        "Weigh similar and dissimilar pairs alike. [default: as they are]",
    ),
    (
        "--approximate-counting/--no-approximate-counting",
        {"default": None},
        "Drop a candidate once it cannot win. [default: where there are many constraints]",
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
    (
        "--checkpoint",
        {"type": click.Path(dir_okay=False), "metavar": "FILE"},
        "Keep the search's state here; the same command goes on from it. [default: none]",
    ),
]
SUPERVISED: list[tuple[str, dict[str, Any], str]] = [
    (
        "--constraints",
        {"type": click.Choice(["auto", "all", "neighbors", "triplets"])},
        "What the labels demand. [default: auto]",
    ),
    ("--n-constraints", {"type": click.IntRange(min=1)}, "Constraints of each kind to draw. [default: all]"),
    (
        "--validation",
        {"type": click.Choice(["auto", "neighbors", "none"])},
        "How the metric is chosen: by held-out neighbours, or (none) by least cost. [default: auto]",
    ),
]


def learner(function: F) -> F:
    """Add every option of the learner to a command."""
    return stacked(
        [click.option(name, help=text, **settings) for name, settings, text in COMMON + SUPERVISED]
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


def parameters(options: dict[str, Any], *, supervised: bool) -> dict[str, Any]:
    """The estimator's parameters: those given, by its own names; what was not given keeps its default."""
    names = [parameter_name(option) for option, _, _ in COMMON + (SUPERVISED if supervised else [])]
    found = {name: options[name] for name in names if options.get(name) is not None}
    if not supervised:
        for option, _, _ in SUPERVISED:
            if options.get(parameter_name(option)) is not None:
                raise click.UsageError(
                    f"{option.partition('/')[0]} is about labels and does not go with --pairs"
                )
    if "bounds" in found:
        found["bounds"] = parse_bounds(found["bounds"])
    if found.get("validation") == "none":
        found["validation"] = None
    if "regularizer" in found:
        found["regularizer"] = read_matrix(found["regularizer"])
    return found


def read_matrix(path: str) -> Any:
    """A square matrix of numbers from a table without header."""
    import numpy as np

    table = read_table(path, header=False)
    cells = {name: table.numbers(name) for name in table.names}
    for name, (values, bad) in cells.items():
        if bad or not np.isfinite(values).all():
            row = bad[0] if bad else int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError("is no number", table.place(row, name))
    return np.column_stack([values for values, _ in cells.values()])
