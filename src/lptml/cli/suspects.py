"""``lptml suspects``: the labels of rows, or of pairs, that are most likely wrong."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from lptml.cli.bar import progress, working
from lptml.cli.errors import one_line
from lptml.cli.learner import findings, in_words, within_memory
from lptml.cli.options import (
    DATA,
    Sectioned,
    columns,
    common,
    force_option,
    label_option,
    load_table,
    need_one_of,
    pairs_option,
    prepared,
    reading,
    same_data,
)
from lptml.cli.output import check_outputs, emit, note, table_kind, write_columns
from lptml.cli.pairs import Pairs, read_pairs
from lptml.cli.prepare import Points

if TYPE_CHECKING:
    from lptml.noise.trust import Trust

IN_FILES = ("ambiguity", "outlyingness", "neighbors")  # and in JSON, but not on the terminal


@click.command(cls=Sectioned)
@click.argument("data", type=DATA)
@label_option
@pairs_option
@click.option(
    "-o", "--output", metavar="FILE", help="Write all, ranked (.csv, .tsv, .parquet, .npz; - is stdout)."
)
@click.option("--top", type=click.IntRange(min=1), help="Show this many. [default: those likely wrong]")
@click.option(
    "--random-state",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of the trees; for pairs, of the folds.",
)
@force_option
@columns
@reading
@common
def suspects(
    data: str,
    label: str | None,
    pairs: str | None,
    output: str | None,
    top: int | None,
    random_state: int,
    force: bool,
    **options: Any,
) -> None:
    """Rank the rows of DATA, or the pairs, by the probability that their label is wrong.

    A label is judged by all other rows, never by itself. Where the features say too little about the labels,
    that is said instead of calling them fine.

    \b
    Examples:
      lptml suspects wine.csv --label class
      lptml suspects wine.csv --label class --top 20 -o ranked.csv
      lptml datasets poisoned | lptml suspects - --label class
      lptml suspects bottles.csv --key id --pairs pairs.csv
    """
    if output is not None:
        check_outputs((output, table_kind(output)), inputs=(data, pairs), force=force)
    with working(options["quiet"], judging_labels=1.0):
        table = load_table(data, options)
        need_one_of(label, pairs, table)
        points = prepared(table, options, None if pairs else label)
        joined = read_pairs(pairs, points.names, key=options["key"]) if pairs else None
        with progress("judging labels", quiet=options["quiet"]) as advance, within_memory(points):
            found, ranked = _judge(points, joined, random_state, advance)
    header = list(ranked)
    if output is not None:
        write_columns(output, header, list(ranked.values()))
        if output == "-":
            return
        note(f"{output}: {len(found.codes)} rows, most suspect first", quiet=options["quiet"])
    n_suspects = int(found.suspects.sum())
    shown = n_suspects if top is None else min(top, len(found.codes))
    result = {
        "rows": len(found.codes),
        **findings(found),
        "why": found.why,
        "suspects": [dict(zip(header, row)) for row in zip(*(c[:shown].tolist() for c in ranked.values()))],
        "next": same_data("review", data, {"label": label}, options)
        if n_suspects and joined is None and data != "-"
        else None,
    }
    following = ["", f"Next: {result['next']}"] if result["next"] else []
    said = in_words(result, "row" if joined is None else "pair")
    emit(
        result,
        as_json=options["as_json"],
        text=lambda: "\n".join([*said, *_listing(ranked, shown), *following]),
        strong=said[:1],
    )


def _judge(
    points: Points, pairs: Pairs | None, seed: int, advance: Any
) -> tuple[Trust, dict[str, np.ndarray[Any, Any]]]:
    """What was found, and the columns that are shown, the most suspicious first."""
    from lptml.noise import suspects as noise
    from lptml.noise.pair_suspects import pair_columns

    names = np.array(points.names, dtype=object)
    if pairs is None:
        assert points.y is not None
        found = noise.judge(points.X, points.y, random_state=seed, progress=advance)
        ranked = noise.suspect_columns(found, points.X, points.y, points.feature_names)
        ranked["row"] = names[ranked["row"]]
        ranked["neighbors"] = _joined([names[list(rows)] for rows in ranked["neighbors"]], " ")
    else:
        assert pairs.y is not None
        ends = points.X[pairs.index]
        of_pairs = noise.judge_pairs(
            ends, pairs.y, sample_weight=pairs.weight, random_state=seed, progress=advance
        )
        found = of_pairs
        ranked = pair_columns(of_pairs, ends[:, 0] - ends[:, 1], points.feature_names)
        index = pairs.index[ranked.pop("row")]
        ranked = {"first": names[index[:, 0]], "second": names[index[:, 1]], **ranked}
    ranked["features"] = _joined(ranked["features"], "; ")
    return found, ranked


def _joined(cells: Any, separator: str) -> np.ndarray[Any, Any]:
    """Each cell's words as one text."""
    out = np.empty(len(cells), dtype=object)
    for place, words in enumerate(cells):
        out[place] = separator.join(str(word) for word in words)
    return out


def _listing(ranked: dict[str, np.ndarray[Any, Any]], shown: int) -> list[str]:
    """The columns that people look at, no wider than their terminal."""
    if shown == 0:
        return []
    columns = {name: column[:shown].tolist() for name, column in ranked.items() if name not in IN_FILES}
    columns["suspicion"] = [f"{c:.3f}" for c in columns["suspicion"]]
    cells = [[name, *map(one_line, column)] for name, column in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in zip(*cells)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else max(map(len, lines))
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines]
