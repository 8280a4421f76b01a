"""From a table of cells to points: which columns are features, and what to do with text and missing values.

Nothing is guessed silently.  A text column or a missing value is refused with the option that handles it;
what an option did (categories, fill values) is kept in a :class:`Preparation`, stored with the model, and
repeated exactly when the model meets new data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lptml.cli.errors import InputError, quoted
from lptml.cli.tables import Table

IMPUTE = ("median", "mean", "zero", "drop")
LARGEST = 1e100  # squares and sums of squares of features must not overflow
MAX_CATEGORIES = 64  # more values than this is an identifier, not a category


@dataclass(frozen=True)
class Preparation:
    """What turns a table into features, learned once and stored with the model.

    Attributes
    ----------
    features : tuple of str
        The columns read, in order.
    categories : dict
        For each one-hot column, its categories in order.
    fill : dict
        For each column, the value that stands for a missing one.
    """

    features: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fill: dict[str, float | str] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features of the metric: a one-hot column gives ``column=category``."""
        names: list[str] = []
        for f in self.features:
            names += [f"{f}={c}" for c in self.categories[f]] if f in self.categories else [f]
        return names

    def to_json(self) -> dict[str, Any]:
        return {
            "features": list(self.features),
            "categories": {k: list(v) for k, v in self.categories.items()},
            "fill": dict(self.fill),
        }

    @classmethod
    def from_json(cls, stored: Any) -> Preparation:
        """Rebuild from :meth:`to_json`; anything else is a ValueError."""
        try:
            features = tuple(str(f) for f in stored["features"])
            categories = {str(k): tuple(str(c) for c in v) for k, v in stored["categories"].items()}
            fill = {str(k): v if isinstance(v, str) else float(v) for k, v in stored["fill"].items()}
        except (TypeError, KeyError, AttributeError, ValueError) as problem:
            raise ValueError(f"the stored preparation is malformed ({problem})") from None
        return cls(features, categories, fill)

    def apply(self, table: Table) -> np.ndarray[Any, Any]:
        """The features of a table, (n, d); a column, category or value that fit did not know is an error."""
        blocks: list[np.ndarray[Any, Any]] = []
        for name in self.features:
            table.column(name, "a feature of the model")
            if name in self.categories:
                blocks.append(self._one_hot(table, name))
            else:
                blocks.append(self._numeric(table, name)[:, None])
        return np.ascontiguousarray(np.hstack(blocks), dtype=np.float64)

    def _numeric(self, table: Table, name: str) -> np.ndarray[Any, Any]:
        x, bad = table.numbers(name)  # (n,)
        if bad:
            _refuse_text(table, name, bad)
        gone = np.isnan(x)
        if gone.any():
            if name not in self.fill:
                _refuse_missing(table, name, gone)
            x = np.where(gone, self.fill[name], x).astype(np.float64)
        beyond = np.flatnonzero(~(np.abs(x) <= LARGEST))
        if beyond.size:
            raise InputError(
                f"the value {x[beyond[0]]:g} is infinite or too large; correct it, or leave the column out",
                table.place(int(beyond[0]), name),
            )
        return x

    def _one_hot(self, table: Table, name: str) -> np.ndarray[Any, Any]:
        codes = {c: j for j, c in enumerate(self.categories[name])}
        out = np.zeros((table.n_rows, len(codes)))  # (n, categories)
        for i, cell in enumerate(table.text(name)):
            value = self.fill.get(name) if cell is None else cell
            if value is None:
                _refuse_missing(table, name, np.array([c is None for c in table.text(name)]))
            j = codes.get(str(value))
            if j is None:
                raise InputError(
                    f"the category {quoted(value)} is new to the model; correct it, or fit again with it",
                    table.place(i, name),
                )
            out[i, j] = 1.0
        return out


@dataclass(frozen=True)
class Points:
    """Points with their names and, where there are any, labels."""

    X: np.ndarray[Any, Any]  # (n, d)
    y: np.ndarray[Any, Any] | None  # (n,) text
    names: list[str]
    table: Table
    preparation: Preparation
    label: str | None = None  # the column of labels
    noticed: tuple[str, ...] = ()  # what a look at the table found

    @property
    def feature_names(self) -> list[str]:
        return self.preparation.feature_names


def prepare(
    table: Table,
    *,
    label: str | None = None,
    key: str | None = None,
    features: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    one_hot: bool = False,
    impute: str | None = None,
    drop_unlabelled: bool = False,
    drop_duplicates: bool = False,
) -> Points:
    """Points to learn from.

    Parameters
    ----------
    table : Table
    label : str, optional
        The column of labels.
    key : str, optional
        The column that names the rows; else they are named by their number.
    features, drop : tuple of str
        The columns to use (default: all but label and key), and those to leave out.
    one_hot : bool
        Turn text columns into 0/1 features; otherwise they are refused.
    impute : {"median", "mean", "zero", "drop"}, optional
        What stands for a missing value ("drop": leave its row out); otherwise they are refused.
    drop_unlabelled : bool
        Leave out rows without a label; otherwise they are refused.
    drop_duplicates : bool
        Leave out rows that repeat an earlier one in every feature and the label.
    """
    label = label or table.roles.get("label")
    for name in drop:
        table.column(name, "--drop")
    if features:
        chosen = list(features)
        for name in features:
            table.column(name, "--features")
    else:
        chosen = [n for n in table.names if n != label and n != key and n not in drop]
    if label in chosen:
        raise InputError(f"column {quoted(label)} is both the --label and a feature", table.source)
    if not chosen:
        raise InputError("no column is left for the features", table.source)
    if label is not None and drop_unlabelled:
        cells = table.text(label, "--label")
        table = table.rows(np.array([i for i, c in enumerate(cells) if c is not None], dtype=np.int64))
    if drop_duplicates:
        shared = chosen if label is None else [*chosen, label]
        table = table.rows(np.flatnonzero(~table.frame.duplicated(shared).to_numpy()))
    if impute == "drop":
        table = _drop_incomplete(table, chosen)
    labels = None if label is None else check_labels(table, label)
    names = row_names(table, key)
    preparation = _learn(table, chosen, one_hot, impute)
    X = preparation.apply(table)
    return Points(X, labels, names, table, preparation, label)


def row_names(table: Table, key: str | None) -> list[str]:
    """The names of the rows: the key column, complete and without repeats, or their numbers in the file."""
    if key is None:
        return [str(number) for number in table.row_numbers]
    cells = table.text(key, "--key")
    seen: dict[str, int] = {}
    for i, cell in enumerate(cells):
        if cell is None:
            raise InputError("the key is empty; every row needs one", table.place(i, key))
        if cell in seen:
            raise InputError(
                f"the key {quoted(cell)} is already in {table.unit} {table.lines[seen[cell]]}; change one",
                table.place(i, key),
            )
        seen[cell] = i
    return list(seen)


def _learn(table: Table, chosen: list[str], one_hot: bool, impute: str | None) -> Preparation:
    categories: dict[str, tuple[str, ...]] = {}
    fill: dict[str, float | str] = {}
    for name in chosen:
        x, bad = table.numbers(name, "--features")  # (n,)
        if bad:
            if not one_hot:
                _refuse_text(table, name, bad)
            counts = Counter(c for c in table.text(name) if c is not None)
            if len(counts) > MAX_CATEGORIES:
                raise InputError(
                    f"{len(counts)} different texts are too many for --one-hot (at most {MAX_CATEGORIES}); "
                    f"leave the column out with --drop {quoted(name)}, or name the rows with --key",
                    f"{table.source}, column {quoted(name)}",
                )
            categories[name] = tuple(sorted(counts))
            if impute in ("median", "mean", "zero"):
                fill[name] = min(counts, key=lambda c: (-counts[c], c))
            continue
        known = x[np.isfinite(x)]
        if known.size == 0:
            raise InputError(
                f"the column holds no number at all; leave it out with --drop {quoted(name)}",
                f"{table.source}, column {quoted(name)}",
            )
        if impute == "median":
            fill[name] = float(np.median(known))
        elif impute == "mean":
            fill[name] = float(np.mean(known))
        elif impute == "zero":
            fill[name] = 0.0
    return Preparation(tuple(chosen), categories, fill)


def _drop_incomplete(table: Table, chosen: list[str]) -> Table:
    whole = np.ones(table.n_rows, dtype=bool)  # (n,)
    for name in chosen:
        x, bad = table.numbers(name, "--features")
        gone = np.isnan(x)
        gone[bad] = False
        whole &= ~gone
    keep = np.flatnonzero(whole)
    if keep.size == 0:
        raise InputError(
            "every row has a missing value, so --impute drop leaves none; use --impute median", table.source
        )
    return table.rows(keep)


def check_labels(table: Table, label: str) -> np.ndarray[Any, Any]:
    """The labels of a table, (n,) of text, once they are known to group its rows."""
    cells = table.text(label, "--label")
    where = f"{table.source}, column {quoted(label)}"
    for i, cell in enumerate(cells):
        if cell is None:
            gone = sum(c is None for c in cells)
            raise InputError(
                f"no label ({gone} rows have none); fill it in, or pass --drop-unlabelled",
                table.place(i, label),
            )
    y = np.array([str(c) for c in cells])  # (n,)
    classes, counts = np.unique(y, return_counts=True)
    if classes.size < 2:
        raise InputError(f"every label is {quoted(classes[0])}; a metric needs at least two classes", where)
    if counts.max() < 2:
        raise InputError(f"all {y.size} labels differ; a label must group the rows", where)
    if classes.size > 50 and classes.size > y.size / 2:
        raise InputError(f"{classes.size} classes in {y.size} rows; bin the numbers into a few groups", where)
    return y


def _refuse_text(table: Table, name: str, bad: list[int]) -> None:
    cell = table.text(name)[bad[0]]
    where = table.place(bad[0], name)
    if len(bad) * 2 < table.n_rows:
        what = (
            f"{quoted(cell)} is no number ({len(bad)} such cells); correct it, call it missing with --na "
            "or pass --one-hot to treat the column as categories"
        )
    elif len({*table.text(name)}) > min(MAX_CATEGORIES, table.n_rows - 1):
        what = (
            f"{quoted(cell)} is text, and nearly every row has another; leave the column out with "
            f"--drop {quoted(name)}, or name the rows by it with --key {quoted(name)}"
        )
    else:
        what = (
            f"{quoted(cell)} is text; turn the column into 0/1 features with --one-hot, "
            f"or leave it out with --drop {quoted(name)}"
        )
    raise InputError(what, where)


def _refuse_missing(table: Table, name: str, gone: np.ndarray[Any, Any]) -> None:
    first = int(np.flatnonzero(gone)[0])
    raise InputError(
        f"the value is missing ({int(gone.sum())} in this column); fill it in, or fit with --impute median",
        table.place(first, name),
    )
