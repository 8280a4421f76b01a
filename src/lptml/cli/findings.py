"""A look at a table before anything is learned from it: every problem at once, each with what handles it.

:func:`look` reads and computes; it changes nothing. A finding that ``stops`` is one that no command works
with; the others are told, because nobody would notice them in a result: a constant column, a column that
gives the label away, rows that contradict each other.
"""

from __future__ import annotations

import enum
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lptml.cli.errors import quoted
from lptml.cli.prepare import LARGEST, MAX_CATEGORIES
from lptml.cli.tables import Table

FEWEST_ROWS = 10  # below this every column is unique by chance
SMALLEST_CLASS = 5  # members; a label is judged by the others of its class
GIVES_AWAY = 0.99  # share of labels that a single column predicts
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([ T]\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}:\d{2}(:\d{2})?"
)
ID_NAME = re.compile(
    r"(^|[^a-z])(id|ids|key|uid|uuid|guid|index|idx|nr|no|number|unnamed)([^a-z]|$)|id$", re.I
)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


class FindingKind(enum.Enum):
    """What can be wrong with a table; the value is the word for it."""

    STRUCTURE = "rows and names"
    IDENTIFIER = "identifier"
    UNIQUE = "all values differ"
    CONSTANT = "constant"
    EMPTY = "empty column"
    SAME_COLUMN = "column twice"
    DATE = "date"
    CATEGORY = "categories"
    TEXT = "free text"
    NO_NUMBER = "no number"
    TOO_LARGE = "too large"
    MISSING = "missing values"
    NO_LABEL = "missing labels"
    LABELS = "labels"
    SMALL_CLASS = "small class"
    SPELLING = "spelling of labels"
    DUPLICATE = "duplicate rows"
    CONTRADICTION = "contradiction"
    LEAK = "gives the label away"


@dataclass(frozen=True)
class Finding:
    """One problem of a table.

    Attributes
    ----------
    kind : FindingKind
    what : str
        The problem in words, with its place.
    advice : str
        What to do.
    column : str or None
    options : dict
        Options of the command line that handle it: ``{"drop": "x"}``, ``{"one_hot": True}``, ...
    stops : bool
        Whether nothing can be learned before it is handled.
    """

    kind: FindingKind
    what: str
    advice: str
    column: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    stops: bool = False

    def line(self) -> str:
        """The finding as one line."""
        return f"{self.what}; {self.advice}"


@dataclass(frozen=True)
class Asked:
    """What the command line says about the columns; as the options of the same names."""

    label: str | None = None
    key: str | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    one_hot: bool = False
    impute: str | None = None
    drop_unlabelled: bool = False

    def columns(self, table: Table) -> list[str]:
        """The columns that would be features."""
        if self.features:
            return [name for name in self.features if name in table.names]
        return [n for n in table.names if n not in (self.label, self.key, *self.drop)]


def look(table: Table, asked: Asked) -> list[Finding]:
    """All findings about a table, those that stop first.

    Examples
    --------
    >>> from lptml.cli.tables import make_frame
    >>> frame = make_frame({"id": np.arange(20), "x": np.ones(20), "kind": ["a", "b"] * 10})
    >>> for found in look(Table("t.csv", frame, range(2, 22)), Asked("kind")):
    ...     print(found.kind.value, found.options)
    identifier {'key': 'id'}
    constant {'drop': 'x'}
    """
    found: list[Finding] = []
    numbers: dict[str, np.ndarray[Any, Any]] = {}  # the columns that are numbers, as float64
    for name in asked.columns(table):
        found += _column(table, name, asked, numbers)
    has_key = asked.key is not None
    for k, each in enumerate(found):  # the first identifier can name the rows
        if each.kind is FindingKind.IDENTIFIER and not has_key:
            found[k] = _naming(each)
            has_key = True
    ignored = {each.column for each in found if "drop" in each.options or "key" in each.options}
    useful = [name for name in asked.columns(table) if name not in ignored]
    found += _same_columns(table, [name for name in useful if name in numbers], numbers)
    if asked.label is not None:
        found += _labels(table, asked)
    found += _rows(table, asked, useful)
    if asked.label is not None:
        found += _leaks(table, asked, useful, numbers)
    return sorted(found, key=lambda each: not each.stops)


def _naming(found: Finding) -> Finding:
    name = str(found.column)
    advice = f"name the rows by it with --key {shown(name)}, or leave it out with --drop {shown(name)}"
    return Finding(found.kind, found.what, advice, name, {"key": name}, found.stops)


def shown(value: str) -> str:
    """A value as it is typed in a shell."""
    return shlex.quote(value)


def _column(
    table: Table, name: str, asked: Asked, numbers: dict[str, np.ndarray[Any, Any]]
) -> Iterator[Finding]:
    where = f"column {quoted(name)}"
    x, bad = table.numbers(name)
    drop = {"drop": name}
    leave = f"leave it out with --drop {shown(name)}"
    if bad:
        yield from _text(table, name, bad, asked)
    else:
        numbers[name] = x
        known = x[np.isfinite(x)]
        values = np.unique(known)
        chosen = name in asked.features  # who names a column wants it
        if known.size == 0:
            yield Finding(FindingKind.EMPTY, f"{where} holds no value at all", leave, name, drop, stops=True)
            return
        beyond = np.flatnonzero(~np.isnan(x) & ~(np.abs(x) <= LARGEST))
        if beyond.size:
            what = (
                f"{where}, {table.unit} {table.lines[beyond[0]]}: {x[beyond[0]]:g} is infinite or too large"
            )
            if beyond.size > 1:
                what += f" ({beyond.size} such cells)"
            yield Finding(FindingKind.TOO_LARGE, what, f"correct it, or {leave}", name, drop, stops=True)
        if values.size == 1:
            what = f"{where} is {values[0]:g} in every row and tells nothing"
            yield Finding(FindingKind.CONSTANT, what, leave, name, drop)
        elif _calendar(values):
            what = f"{where} holds dates written as numbers ({known[0]:.0f}), whose distances mean little"
            yield Finding(FindingKind.DATE, what, f"{leave}, or write days since a day", name, drop)
        elif not chosen and _whole_and_unique(known, values, table.n_rows):
            yield from _unique(table, name, known, leave)
    gone = sum(cell is None for cell in table.text(name)) if bad else int(np.isnan(x).sum())
    if gone and asked.impute is None and 0 < gone < table.n_rows:
        what = f"{where}: {gone} of {table.n_rows} values are missing"
        advice = "fill them in with --impute median, or leave the rows out with --impute drop"
        yield Finding(FindingKind.MISSING, what, advice, name, {"impute": "median"}, stops=True)


def _whole_and_unique(known: np.ndarray[Any, Any], values: np.ndarray[Any, Any], n: int) -> bool:
    return bool(values.size == known.size == n >= FEWEST_ROWS and (known == np.floor(known)).all())


def _unique(table: Table, name: str, x: np.ndarray[Any, Any], leave: str) -> Iterator[Finding]:
    """Whole numbers that all differ: an identifier if they count, ascend or are called one."""
    where = f"column {quoted(name)}"
    steps = np.diff(x)
    counts = np.ptp(x) < 2 * len(x) or (steps > 0).all() or (steps < 0).all()
    example = f"{x[0]:.0f}, {x[1]:.0f}, …"
    if counts or ID_NAME.search(name):
        what = f"{where} looks like an identifier ({example}: no two rows alike)"
        advice = f"{leave}, or name it in --features if it is a measurement"
        yield Finding(FindingKind.IDENTIFIER, what, advice, name, {"drop": name}, stops=True)
        return
    what = f"{where} has another whole number in every row ({example}) and is taken for a measurement"
    yield Finding(FindingKind.UNIQUE, what, f"if it is an identifier, {leave}", name)


def _calendar(values: np.ndarray[Any, Any]) -> bool:
    """Whether all values are days written as 20240131."""
    if values.size < 2 or values[0] < 19000101 or values[-1] > 21001231 or (values != np.floor(values)).any():
        return False
    month, day = values // 100 % 100, values % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _text(table: Table, name: str, bad: list[int], asked: Asked) -> Iterator[Finding]:
    where = f"column {quoted(name)}"
    cells = table.text(name)
    present = [cell for cell in cells if cell is not None]
    counts = Counter(present)
    leave = f"leave it out with --drop {shown(name)}"
    drop = {"drop": name}
    example = quoted(cells[bad[0]])
    wrong = Counter(str(cells[i]) for i in bad)
    if sum(1 for cell in wrong if DATE.fullmatch(cell)) >= 0.8 * len(wrong):
        what = f"{where} holds dates or times ({example})"
        advice = f"{leave}, or write numbers (days since a day)"
        yield Finding(FindingKind.DATE, what, advice, name, drop, stops=True)
    elif all(DECIMAL_COMMA.fullmatch(cell) for cell in wrong):
        what = f"{where} writes numbers with commas ({example})"
        advice = f"write a point before decimals and nothing between thousands, or {leave}"
        yield Finding(FindingKind.NO_NUMBER, what, advice, name, drop, stops=True)
    elif len(bad) * 2 < table.n_rows:
        yield from _few_bad(table, name, bad, wrong, leave, asked)
    elif len(counts) == len(present) >= FEWEST_ROWS:
        what = f"{where} has another text in every row ({example}, …), so it names rows"
        yield Finding(FindingKind.IDENTIFIER, what, leave, name, drop, stops=True)
    elif len(counts) > min(MAX_CATEGORIES, max(FEWEST_ROWS, len(present) / 2)):
        what = f"{where} holds {len(counts)} different texts in {len(present)} rows, too many for categories"
        yield Finding(FindingKind.TEXT, what, leave, name, drop, stops=True)
    elif len(counts) == 1:
        what = f"{where} is {example} in every row and tells nothing"
        yield Finding(FindingKind.CONSTANT, what, leave, name, drop, stops=True)
    elif not asked.one_hot:
        what = f"{where} holds {len(counts)} categories ({_some(counts)})"
        advice = f"turn them into 0/1 features with --one-hot, or {leave}"
        yield Finding(FindingKind.CATEGORY, what, advice, name, {"one_hot": True}, stops=True)


def _few_bad(
    table: Table, name: str, bad: list[int], wrong: Counter[str], leave: str, asked: Asked
) -> Iterator[Finding]:
    """A column of numbers with some texts in it."""
    if asked.one_hot and len(set(table.text(name))) <= MAX_CATEGORIES:
        return
    what = f"{table.place(bad[0], name)}: {quoted(table.text(name)[bad[0]])} is no number"
    if len(bad) > 1:
        what += f" ({len(bad)} such cells: {_some(wrong)})"
    if len(wrong) > 3:
        yield Finding(
            FindingKind.NO_NUMBER, what, f"correct them, or {leave}", name, {"drop": name}, stops=True
        )
        return
    options: dict[str, Any] = {"na": tuple(wrong), "impute": asked.impute or "median"}
    typed = " ".join(f"--na {shown(cell)}" for cell in wrong)
    advice = f"correct it, or call it missing with {typed} --impute median"
    yield Finding(FindingKind.NO_NUMBER, what, advice, name, options, stops=True)


def _some(counts: Counter[str], most: int = 3) -> str:
    common = [quoted(text, 20) for text, _ in counts.most_common(most)]
    return ", ".join(common) + (", …" if len(counts) > most else "")


def _same_columns(
    table: Table, names: list[str], numbers: dict[str, np.ndarray[Any, Any]]
) -> Iterator[Finding]:
    seen: dict[bytes, str] = {}
    for name in names:
        x = numbers[name]
        if not np.isfinite(x).any() or np.nanmin(x) == np.nanmax(x):
            continue
        first = seen.setdefault(x.tobytes(), name)
        if first != name:
            what = f"column {quoted(name)} repeats column {quoted(first)}, which then counts twice"
            advice = f"leave it out with --drop {shown(name)}"
            yield Finding(FindingKind.SAME_COLUMN, what, advice, name, {"drop": name})


def _labels(table: Table, asked: Asked) -> Iterator[Finding]:
    label = str(asked.label)
    where = f"column {quoted(label)}"
    cells = table.text(label, "--label")
    present = [cell for cell in cells if cell is not None]
    gone = len(cells) - len(present)
    if gone and not asked.drop_unlabelled:
        first = table.lines[cells.index(None)]
        what = f"{where}: {gone} of {len(cells)} rows have no label (the first in {table.unit} {first})"
        advice = "leave them out with --drop-unlabelled"
        options = {"drop_unlabelled": True}
        yield Finding(FindingKind.NO_LABEL, what, advice, label, options, stops=True)
    counts = Counter(present)
    n, k = len(present), len(counts)
    if k < 2:
        what = f"{where} has " + (f"the one label {quoted(present[0])}" if present else "no label at all")
        yield Finding(FindingKind.LABELS, what, "name a column with at least two classes", label, stops=True)
        return
    if max(counts.values()) < 2 or (k > 50 and k > n / 2):
        what = f"{where} has {k} different labels in {n} rows, so it does not group them"
        advice = "name another column with --label, or bin its numbers into a few groups"
        yield Finding(FindingKind.LABELS, what, advice, label, stops=True)
        return
    spellings: dict[str, list[str]] = {}
    for text in sorted(counts):
        spellings.setdefault(" ".join(re.split(r"[\s_-]+", text.strip())).casefold(), []).append(text)
    for same in spellings.values():
        if len(same) > 1:
            many = " and ".join(f"{quoted(text)} ({counts[text]})" for text in same)
            what = f"{where} spells what seems one label in {len(same)} ways: {many}"
            yield Finding(FindingKind.SPELLING, what, "write it in one way, if it is one", label)
    small = {text: count for text, count in sorted(counts.items()) if count < SMALLEST_CLASS}
    if small:
        named = ", ".join(f"{quoted(text, 20)} ({count})" for text, count in list(small.items())[:6])
        more = f" and {len(small) - 6} more" if len(small) > 6 else ""
        what = f"{where}: too few rows to judge a label in {named}{more}"
        advice = f"have {SMALLEST_CLASS} rows or more of each class, or merge classes"
        yield Finding(FindingKind.SMALL_CLASS, what, advice, label)


def _rows(table: Table, asked: Asked, useful: list[str]) -> Iterator[Finding]:
    """Rows that are there twice, with the same label or with different ones."""
    if not useful:
        return
    known = table.frame[useful].fillna("\0missing")  # NaN is not equal to itself
    number: dict[tuple[Any, ...], int] = {}
    rows_of_cells = map(tuple, known.to_numpy(dtype=object))
    first = np.array([number.setdefault(cells, len(number)) for cells in rows_of_cells])
    members = np.bincount(first)
    if members.max() < 2:
        return
    labels = [""] * table.n_rows if asked.label is None else table.text(asked.label)
    kinds: dict[int, set[str]] = {}
    for group, cell in zip(first, labels):
        if members[group] > 1 and cell is not None:
            kinds.setdefault(int(group), set()).add(str(cell))
    torn = {group for group, several in kinds.items() if len(several) > 1}
    same = int(sum(members[group] - 1 for group in kinds if group not in torn))
    if same:
        what = f"{same} rows repeat another row in every feature{' and the label' if asked.label else ''}"
        advice = "if they were entered twice, leave the repeats out with --drop-duplicates"
        yield Finding(FindingKind.DUPLICATE, what, advice, options={"drop_duplicates": True})
    if torn:
        examples = [np.flatnonzero(first == group) for group in sorted(torn)[:3]]
        places = "; ".join(", ".join(str(table.lines[i]) for i in rows[:4]) for rows in examples)
        rows = sum(int(members[group]) for group in torn)
        what = (
            f"{rows} rows agree in every feature with a row of another label ({table.unit}s {places}"
            f"{'; …' if len(torn) > 3 else ''}): at most one of their labels is right"
        )
        yield Finding(FindingKind.CONTRADICTION, what, "decide which with lptml review", asked.label)


def _leaks(
    table: Table, asked: Asked, useful: list[str], numbers: dict[str, np.ndarray[Any, Any]]
) -> Iterator[Finding]:
    cells = table.text(str(asked.label))
    known = np.array([cell is not None for cell in cells])
    classes, y = np.unique([str(cell) for cell in cells if cell is not None], return_inverse=True)
    if len(y) < 2 * FEWEST_ROWS or not 1 < len(classes) <= len(y) / SMALLEST_CLASS:
        return
    usual = np.bincount(y).max() / len(y)
    for name in useful:
        if name in numbers:
            share = _predicted(numbers[name][known], y, len(classes))
        else:
            texts = [str(cell) for cell, kept in zip(table.text(name), known) if kept]
            values, code = np.unique(texts, return_inverse=True)
            share = _by_value(code, y, len(classes)) if len(values) <= MAX_CATEGORIES else 0.0
        if share >= max(GIVES_AWAY, (1 + usual) / 2):
            what = f"column {quoted(name)} alone tells {share:.1%} of the labels"
            advice = f"if it is known only after the label, leave it out with --drop {shown(name)}"
            yield Finding(FindingKind.LEAK, what, advice, name, {})


def _predicted(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], classes: int) -> float:
    """The share of labels that a column of numbers tells: by value if they are few, else by intervals.

    With k classes the best order has k - 1 changes of label along the sorted column; each row in the wrong
    place adds two.
    """
    finite = np.isfinite(x)
    x, y = x[finite], y[finite]
    if len(x) < 2 * FEWEST_ROWS:
        return 0.0
    values, code = np.unique(x, return_inverse=True)
    if len(values) <= max(10, 2 * classes):
        return _by_value(code, y, classes)
    order = np.lexsort((np.random.default_rng(0).random(len(x)), x))  # equal values in any order
    changes = int(np.count_nonzero(np.diff(y[order])))
    return 1.0 - max(0, changes - (classes - 1)) / 2 / len(x)


def _by_value(code: np.ndarray[Any, Any], y: np.ndarray[Any, Any], classes: int) -> float:
    table = np.bincount(code * classes + y, minlength=classes * (int(code.max()) + 1)).reshape(-1, classes)
    often = table.sum(axis=1) >= SMALLEST_CLASS  # a value met once tells nothing about others
    return float(table.max(axis=1)[often].sum() / len(y))


def command_line(
    command: str, data: str, asked: Asked, findings: Iterable[Finding], reading: Sequence[str] = ()
) -> str:
    """The command that handles all findings that an option can handle; ``reading`` stays as it is."""
    drop, key, na = list(asked.drop), asked.key, []
    flags = {"one_hot": asked.one_hot, "drop_unlabelled": asked.drop_unlabelled, "drop_duplicates": False}
    impute = asked.impute
    for each in findings:
        if each.stops or each.kind in (FindingKind.CONSTANT, FindingKind.SAME_COLUMN):
            options = each.options
            key = options.get("key", key)
            drop += [options["drop"]] if "drop" in options and options["drop"] not in drop else []
            na += [cell for cell in options.get("na", ()) if cell not in na]
            impute = impute or options.get("impute")
            flags = {name: on or bool(options.get(name)) for name, on in flags.items()}
    words = ["lptml", command, data, *(["--label", asked.label] if asked.label else [])]
    words += ["--key", key] if key else []
    features = [name for name in asked.features if name not in drop]
    words += ["--features", listed(features)] if features else []
    words += ["--drop", listed(drop)] if drop and not features else []
    for cell in na:
        words += ["--na", cell]
    words += ["--impute", impute] if impute else []
    words += [f"--{name.replace('_', '-')}" for name, on in flags.items() if on]
    return shlex.join([*words, *reading])


def likely_labels(table: Table) -> list[str]:
    """Columns that could be labels: a few different values, each of them often; the last columns first."""
    found = []
    for name in reversed(table.names):
        cells = [cell for cell in table.text(name) if cell is not None]
        if 2 <= len(set(cells)) <= 20 and len(cells) >= 10 * len(set(cells)):
            found.append(name)
    return found[:3]


def perhaps(labels: Iterable[str]) -> str:
    """The end of a message that asks for --label."""
    words = " or ".join(f"--label {shown(name)}" for name in labels)
    return words and f", perhaps {words}"


def listed(names: Iterable[str]) -> str:
    """Names of columns as --drop and --features take them."""
    return ",".join(
        '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name for name in names
    )
