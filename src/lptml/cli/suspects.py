"""``lptml suspects``: the labels, or the verdicts on pairs, that are most likely wrong."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from lptml.cli.judge import Judgement, judge_labels, judge_pairs
from lptml.cli.learner import learner
from lptml.cli.model import learn, need_one_of
from lptml.cli.options import (
    DATA,
    columns,
    common,
    label_option,
    load_table,
    pairs_option,
    prepared,
    reading,
)
from lptml.cli.output import check_target, emit, note, write_columns
from lptml.cli.pairs import read_pairs


@click.command()
@click.argument("data", type=DATA)
@label_option
@pairs_option
@click.option(
    "-o", "--output", metavar="FILE", help="Write all rows with their suspicion (.csv, .tsv, .parquet, .npz)."
)
@click.option(
    "--top", type=click.IntRange(min=1), help="Show this many. [default: those more likely wrong than right]"
)
@columns
@reading
@learner
@common
def suspects(
    data: str, label: str | None, pairs: str | None, output: str | None, top: int | None, **options: Any
) -> None:
    """Rank the rows of DATA by how likely their label is wrong.

    With --pairs, rank the verdicts instead; the options of the learner matter only then.

    \b
    Examples:
      lptml suspects wine.csv --label class
      lptml suspects wine.csv --label class --top 20 -o ranked.csv
      lptml datasets poisoned | lptml suspects - --label class
      lptml suspects bottles.csv --key id --pairs verdicts.csv
    """
    if output not in (None, "-"):
        check_target(str(output))
    table = load_table(data, options)
    need_one_of(label, pairs, table)
    points = prepared(table, options, None if pairs else label)
    if pairs:
        joined = read_pairs(pairs, points.names, key=options["key"])
        judged = judge_pairs(learn(points, joined, options), joined)
        header = ["first", "second", "verdict", "suspicion"]
        names = np.array(points.names, dtype=object)
        first, second = names[joined.index[:, 0]], names[joined.index[:, 1]]
        rows: list[Any] = [first, second, judged.given, judged.suspicion]
    else:
        assert points.y is not None
        judged = judge_labels(points.X, points.y, options["random_state"])
        header = ["row", "label", "suspicion", "looks_like"]
        rows = [np.array(points.names, dtype=object), judged.given, judged.suspicion, judged.likely]
    order = np.argsort(-judged.suspicion, kind="stable")
    ranked = [np.asarray(column)[order] for column in rows]
    if output is not None:
        write_columns(output, header, ranked)
        if output != "-":
            note(f"{output}: {len(order)} rows, most suspect first", quiet=options["quiet"])
    if output == "-":
        return
    shown = judged.n_suspects if top is None else min(top, len(order))
    result = {
        "rows": len(order),
        "n_suspects": judged.n_suspects,
        "noise_rate": judged.noise_rate,
        "suspects": [dict(zip(header, row)) for row in zip(*(column[:shown].tolist() for column in ranked))],
    }
    emit(result, as_json=options["as_json"], text=lambda: _listing(judged, header, ranked, shown))


def _listing(judged: Judgement, header: list[str], ranked: list[Any], shown: int) -> str:
    total = len(judged.suspicion)
    noun = "verdicts" if "verdict" in header else "labels"
    verb = "is" if judged.n_suspects == 1 else "are"
    head = click.style(
        f"{judged.n_suspects} of {total} {noun} {verb} more likely wrong than right", bold=True
    )
    if judged.noise_rate is not None:
        head += f" (estimated share of wrong {noun}: {judged.noise_rate:.1%})"
    if shown == 0:
        return head
    cells = [
        [f"{c:.3f}" if isinstance(c, float) else str(c) for c in column[:shown].tolist()] for column in ranked
    ]
    widths = [max(len(h), *(len(c) for c in column)) for h, column in zip(header, cells)]
    lines = [header, *zip(*cells)]
    return "\n".join([head, *("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in lines)])
