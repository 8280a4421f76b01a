"""``lptml suspects``: the labels, or the verdicts on pairs, that are most likely wrong."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from lptml.cli.errors import one_line
from lptml.cli.learner import Judgement, judge
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
from lptml.cli.output import check_outputs, emit, note, table_kind, write_columns
from lptml.cli.pairs import read_pairs


@click.command()
@click.argument("data", type=DATA)
@label_option
@pairs_option
@click.option(
    "-o", "--output", metavar="FILE", help="Write all, ranked (.csv, .tsv, .parquet, .npz; - is stdout)."
)
@click.option("--top", type=click.IntRange(min=1), help="Show this many. [default: those more likely wrong]")
@click.option(
    "--random-state",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed, used where there are many rows, and for pairs.",
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
    """Rank the rows of DATA by how likely their label is wrong, or the pairs by how likely their verdict is.

    A label is judged by all other rows, never by itself; so is a verdict.

    \b
    Examples:
      lptml suspects wine.csv --label class
      lptml suspects wine.csv --label class --top 20 -o ranked.csv
      lptml datasets poisoned | lptml suspects - --label class
      lptml suspects bottles.csv --key id --pairs verdicts.csv
    """
    if output is not None:
        check_outputs((output, table_kind(output)), inputs=(data, pairs), force=force)
    table = load_table(data, options)
    need_one_of(label, pairs, table)
    points = prepared(table, options, None if pairs else label)
    joined = read_pairs(pairs, points.names, key=options["key"]) if pairs else None
    judged = judge(points, joined, random_state)
    names = np.array(points.names, dtype=object)
    rows: list[Any] = [judged.given, judged.suspicion, judged.likely]
    if joined is None:
        header, rows = ["row", "label", "suspicion", "looks_like"], [names, *rows]
    else:
        header = ["first", "second", "verdict", "suspicion", "looks_like"]
        rows = [names[joined.index[:, 0]], names[joined.index[:, 1]], *rows]
    order = np.argsort(-judged.suspicion, kind="stable")
    ranked = [np.asarray(column)[order] for column in rows]
    if output is not None:
        write_columns(output, header, ranked)
        if output == "-":
            return
        note(f"{output}: {len(order)} rows, most suspect first", quiet=options["quiet"])
    shown = judged.n_suspects if top is None else min(top, len(order))
    result = {
        "rows": len(order),
        "n_suspects": judged.n_suspects,
        "noise_rate": judged.noise_rate,
        "suspects": [dict(zip(header, row)) for row in zip(*(column[:shown].tolist() for column in ranked))],
    }
    count = _count(judged, header)
    emit(
        result,
        as_json=options["as_json"],
        text=lambda: "\n".join([f"{count} ({_share(judged, header)})", *_listing(header, ranked, shown)]),
        strong=[count],
    )


def _noun(header: list[str]) -> str:
    return "verdicts" if "verdict" in header else "labels"


def _count(judged: Judgement, header: list[str]) -> str:
    verb = "is" if judged.n_suspects == 1 else "are"
    of_all = f"{judged.n_suspects} of {len(judged.suspicion)} {_noun(header)}"
    return f"{of_all} {verb} more likely wrong than right"


def _share(judged: Judgement, header: list[str]) -> str:
    return f"estimated share of wrong {_noun(header)}: {judged.noise_rate:.1%}"


def _listing(header: list[str], ranked: list[Any], shown: int) -> list[str]:
    if shown == 0:
        return []
    cells = [
        [f"{c:.3f}" if isinstance(c, float) else one_line(c) for c in col[:shown].tolist()] for col in ranked
    ]
    widths = [max(len(h), *(len(c) for c in column)) for h, column in zip(header, cells)]
    lines = [header, *zip(*cells)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in lines]
