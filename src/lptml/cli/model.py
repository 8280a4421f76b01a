"""Models on the command line: learn one, store it with its preparation, load it again."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from lptml.cli.errors import InputError, OutputError, one_line
from lptml.cli.learner import parameters
from lptml.cli.output import note
from lptml.cli.pairs import Pairs
from lptml.cli.prepare import Points, Preparation
from lptml.cli.tables import Table


def learn(points: Points, pairs: Pairs | None, options: dict[str, Any]) -> Any:
    """Fit the estimator that suits the input; it carries the preparation of its features."""
    from lptml.estimators import LPTML, LPTML_Supervised

    verbose = int(sys.stderr.isatty() and not options["quiet"])
    settings = parameters(options, supervised=pairs is None)
    with noted(options["quiet"]):
        if pairs is None:
            model: Any = LPTML_Supervised(verbose=verbose, **settings)
            model.fit(points.X, points.y)
        else:
            assert pairs.y is not None
            model = LPTML(verbose=verbose, **settings)
            model.fit(points.X[pairs.index], pairs.y, sample_weight=pairs.weight)
    model.verbose = 0
    model.feature_names_in_ = np.array(points.feature_names, dtype=object)
    model.preparation_ = points.preparation.to_json()
    return model


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


def need_one_of(label: str | None, pairs: str | None, table: Table | None = None) -> None:
    """Exactly one of --label and --pairs, unless the file itself names its label."""
    if label and pairs:
        raise click.UsageError("give --label or --pairs, not both")
    if not label and not pairs and not (table and table.roles.get("label")):
        raise click.UsageError("say what to learn from: --label COLUMN, or --pairs FILE")
