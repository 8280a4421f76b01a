"""Where the commands meet the learners: fit, judge, store and load.

No other module of the command line knows an estimator, but for ``parameters``, which makes one.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lptml.cli.bar import progress, shows
from lptml.cli.errors import InputError, OutputError, one_line
from lptml.cli.output import note
from lptml.cli.pairs import Pairs, Tuples
from lptml.cli.parameters import make_estimator
from lptml.cli.prepare import Points, Preparation
from lptml.cli.tables import Table


def learn(points: Points, pairs: Pairs | Tuples | None, options: dict[str, Any]) -> Any:
    """Fit the estimator that suits the input; it carries the preparation of its features."""
    quiet = options["quiet"]
    with progress("learning", quiet=quiet), noted(quiet), within_memory(points):
        model = make_estimator(options, source_of(pairs), verbose=int(shows()))
        if pairs is None:
            model.fit(points.X, points.y)
        elif isinstance(pairs, Tuples):
            model.fit(points.X[pairs.index], sample_weight=pairs.weight)
        else:
            model.fit(points.X[pairs.index], pairs.y, sample_weight=pairs.weight)
    model.verbose = 0
    model.feature_names_in_ = np.array(points.feature_names, dtype=object)
    model.preparation_ = points.preparation.to_json()
    return model


def source_of(pairs: Pairs | Tuples | None) -> str:
    """What is learned from: labels, pairs, triplets or quadruplets."""
    return "labels" if pairs is None else "pairs" if isinstance(pairs, Pairs) else pairs.kind


def searcher(**settings: Any) -> Any:
    """The learner of ``lptml bench``: search and refinement of the least number of violated pairs."""
    from lptml.estimators import LPTML_Supervised

    return LPTML_Supervised(constraints="all", temperature=0.0, shrinkage=0.0, **settings)


def save_model(model: Any, path: str, *, quiet: bool) -> None:
    """Write the model; the old file stays until the new one is whole."""
    from lptml.estimators.io import save

    try:
        with noted(quiet):
            save(model, path)
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None


def load_model(path: str) -> Any:
    """Read a model file, or say in one line what is wrong with it."""
    from lptml.estimators.io import load

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
    if X.shape[1] != model.n_features_in_:
        raise InputError(
            f"{X.shape[1]} features where the model has {model.n_features_in_}; leave the others out",
            table.source,
        )
    return X


def embed(model: Any, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The points in the space of the metric, (n, k); the names of the columns were checked before."""
    L = getattr(model, "components_", None)  # none where a map comes before the metric
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(model.transform(X) if L is None else X @ L.T)


@contextlib.contextmanager
def noted(quiet: bool) -> Iterator[None]:
    """Show the warnings of a block as plain notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for text in dict.fromkeys(one_line(w.message) for w in caught if issubclass(w.category, UserWarning)):
        note(f"note: {text}", quiet=quiet)


@contextlib.contextmanager
def within_memory(points: Points) -> Iterator[None]:
    """Say of which there are too many where memory runs out: rows, or columns."""
    try:
        yield
    except MemoryError:
        rows, columns = points.X.shape
        advice = "columns with --features or --drop" if columns > rows else "rows"
        message = f"not enough memory for {rows} rows of {columns} features; use fewer {advice}"
        raise InputError(message, points.table.source) from None


def judge(
    points: Points,
    pairs: Pairs | None,
    seed: int,
    *,
    trusted: np.ndarray[Any, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Judge every label by all other points, or that of every pair by metrics fitted without it."""
    from lptml.noise import suspects

    with within_memory(points):
        if pairs is None:
            assert points.y is not None
            return suspects.judge(points.X, points.y, trusted=trusted, random_state=seed, progress=progress)
        assert pairs.y is not None
        return suspects.judge_pairs(
            points.X[pairs.index], pairs.y, sample_weight=pairs.weight, random_state=seed
        )


def findings(found: Any) -> dict[str, Any]:
    """What :func:`judge` found about the labels, for JSON and for :func:`in_words`."""
    return {
        "n_labels": len(found.suspicion),
        "n_suspects": int(found.suspects.sum()),
        "noise_rate": found.noise_rate,
        "noise_interval": list(found.noise_interval),
        "can_judge": found.can_judge,
    }


def in_words(result: dict[str, Any], of: str) -> list[str]:
    """How many labels of each "row" or "pair" look wrong, how many are, and whether that can be told."""
    n, (low, high) = result["n_suspects"], result["noise_interval"]
    look = (
        f"{n} of the {result['n_labels']} labels look{'s' * (n == 1)} wrong" if n else "no label looks wrong"
    )
    lines = [f"{look}; about {result['noise_rate']:.1%} are (likely {low:.1%} to {high:.1%})"]
    if result["can_judge"]:
        return lines
    return [
        *lines,
        f"the features say too little to judge: a {of} that is not listed may have a wrong label too",
    ]


@dataclass(frozen=True)
class Corrected:
    """Points with the labels that a review decided, and which of them it vouches for."""

    points: Points
    trusted: np.ndarray[Any, Any]  # (n,) bool
    decisions: list[Any]
    given: dict[int, str]  # the labels of the file, of the rows that have another now


def corrected(points: Points, decisions: list[Any]) -> Corrected:
    """The points after a review; the decisions must be about this file."""
    from lptml.report.corrections import new_labels, standing, trusted_rows

    assert points.y is not None
    found = standing(decisions)
    seen = {each.data for each in found if each.data}
    if seen - {points.table.digest}:
        message = "is not the file that the corrections are about: it changed since; review it anew"
        raise InputError(message, points.table.source)
    numbers = points.table.row_numbers
    place = {int(row): i for i, row in enumerate(numbers)}
    known = [each for each in found if each.row in place]  # others were left out by an option
    labels = points.y.astype(object)
    here = [replace(each, row=place[each.row] + 1) for each in known]
    try:
        changes = new_labels(points.y.tolist(), here)
    except ValueError as problem:
        raise InputError(str(problem), points.table.source) from None
    given = {row: str(labels[row]) for row in changes}
    labels[[*changes]] = [*changes.values()]
    changed = replace(points, y=labels.astype(str))
    return Corrected(changed, trusted_rows(here, len(labels)), known, given)
