"""Where the commands meet the learners: options that are parameters, fit, judge, store and load.

The options carry the names of the estimators' parameters; a test compares the defaults. No other module of
the command line knows an estimator.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from lptml.cli.errors import InputError, OutputError, one_line
from lptml.cli.options import DATA, F, stacked
from lptml.cli.output import note
from lptml.cli.pairs import Pairs
from lptml.cli.prepare import Points, Preparation
from lptml.cli.readers import read_table
from lptml.cli.tables import Table


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
    table = read_table(path, header=False)
    cells = {name: table.numbers(name) for name in table.names}
    for name, (values, bad) in cells.items():
        if bad or not np.isfinite(values).all():
            row = bad[0] if bad else int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError("is no number", table.place(row, name))
    return np.column_stack([values for values, _ in cells.values()])


def learn(points: Points, pairs: Pairs | None, options: dict[str, Any]) -> Any:
    """Fit the estimator that suits the input; it carries the preparation of its features."""
    from lptml.estimators import LPTML, LPTML_Supervised

    verbose = int(sys.stderr.isatty() and not options["quiet"])
    settings = parameters(options, supervised=pairs is None)
    model: Any = (LPTML_Supervised if pairs is None else LPTML)(verbose=verbose, **settings)
    with noted(options["quiet"]):
        if pairs is None:
            model.fit(points.X, points.y)
        else:
            model.fit(points.X[pairs.index], pairs.y, sample_weight=pairs.weight)
    model.verbose = 0
    model.feature_names_in_ = np.array(points.feature_names, dtype=object)
    model.preparation_ = points.preparation.to_json()
    return model


def searcher(**settings: Any) -> Any:
    """The learner of ``lptml bench``: a search for the least cost, without a choice among metrics."""
    from lptml.estimators import LPTML_Supervised

    return LPTML_Supervised(constraints="all", temperature=0.0, shrinkage=0.0, **settings)


def save_model(model: Any, path: str, *, quiet: bool) -> None:
    """Write the model; the old file stays until the new one is whole."""
    from lptml.io import save

    try:
        with noted(quiet):
            save(model, path)
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None


def load_model(path: str) -> Any:
    """Read a model file, or say in one line what is wrong with it."""
    from lptml.io import load

    try:
        with noted(quiet=False):
            return load(path)
    except FileNotFoundError:
        raise InputError("no such model; make one with lptml fit", path) from None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    except ValueError as problem:
        text = one_line(problem)
        raise InputError(text.removeprefix(path).lstrip(": "), path) from None


def features(model: Any, table: Table, leave_out: tuple[str | None, ...] = ()) -> np.ndarray[Any, Any]:
    """The features of a table as the model expects them, (n, d).

    A model of ``lptml fit`` carries its preparation; one saved from Python has the names of its features, or
    takes all columns but those in ``leave_out``.
    """
    stored = getattr(model, "preparation_", None)
    if stored is not None:
        preparation = Preparation.from_json(stored)
    else:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [n for n in table.names if n not in leave_out and n != table.roles.get("label")]
        preparation = Preparation(tuple(str(n) for n in names))
    X = preparation.apply(table)
    if X.shape[1] != model.components_.shape[1]:
        raise InputError(
            f"{X.shape[1]} features where the model has {model.components_.shape[1]}; leave the others out",
            table.source,
        )
    return X


def embed(model: Any, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The points in the space of the metric, (n, k); the names of the columns were checked before."""
    return np.asarray(X @ model.components_.T)


@contextlib.contextmanager
def noted(quiet: bool) -> Iterator[None]:
    """Show the warnings of a block as plain notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for text in dict.fromkeys(one_line(w.message) for w in caught if issubclass(w.category, UserWarning)):
        note(f"note: {text}", quiet=quiet)


@dataclass(frozen=True)
class Judgement:
    """What is thought of every label (or verdict).

    Attributes
    ----------
    given : ndarray (n,) of str
    suspicion : ndarray (n,)
        Probability that it is wrong.
    likely : ndarray (n,) of str
        What it should be, if not what it is.
    noise_rate : float
        Estimated share of wrong ones.
    """

    given: np.ndarray[Any, Any]
    suspicion: np.ndarray[Any, Any]
    likely: np.ndarray[Any, Any]
    noise_rate: float

    @property
    def n_suspects(self) -> int:
        """How many are more likely wrong than right."""
        return int(np.sum(self.suspicion > 0.5))


def judge(points: Points, pairs: Pairs | None, seed: int) -> Judgement:
    """Judge every label by all other points, or every verdict by metrics fitted without it."""
    from lptml import suspects

    if pairs is None:
        assert points.y is not None
        trust = suspects.judge(points.X, points.y, random_state=seed)
        classes = np.unique(points.y)
        likely = classes[trust.posterior.argmax(axis=1)]
        return Judgement(points.y, trust.suspicion, likely, trust.noise_rate)
    assert pairs.y is not None
    words = np.array(["dissimilar", "similar"])
    found = suspects.judge_pairs(
        points.X[pairs.index], pairs.y, sample_weight=pairs.weight, random_state=seed
    )
    given, likely = words[(pairs.y > 0).astype(int)], words[(found.similar > 0.5).astype(int)]
    return Judgement(given, found.suspicion, likely, found.noise_rate)
