"""``lptml check``: every problem of a table in one answer, each with the option that handles it."""

from __future__ import annotations

from typing import Any

import click

from lptml.cli.errors import INPUT, one_line
from lptml.cli.findings import Finding, FindingKind, command_line, likely_labels, look, perhaps
from lptml.cli.options import (
    DATA,
    Sectioned,
    asked_of,
    columns,
    common,
    label_option,
    load_table,
    reading,
    reading_words,
)
from lptml.cli.output import emit
from lptml.cli.tables import Table


@click.command(cls=Sectioned)
@click.argument("data", type=DATA)
@label_option
@columns
@reading
@common
def check(data: str, label: str | None, **options: Any) -> None:
    """Name every problem of DATA that stands between it and a result, with the option that handles each.

    Nothing is written. The exit code is 3 while something must be handled before anything can be learned.

    \b
    Examples:
      lptml check survey.csv
      lptml check survey.csv --label group
      lptml check survey.csv --label group --key id --one-hot --impute median
    """
    broken: list[Any] = []
    table = load_table(data, options, broken)
    asked = asked_of(table, options, label)
    for name, option in ((asked.label, "--label"), (asked.key, "--key")):
        if name is not None:
            table.column(name, option)
    for name in (*asked.drop, *asked.features):
        table.column(name, "--drop" if name in asked.drop else "--features")
    found = [_structure(each.message) for each in broken] + look(table, asked)
    if options["drop_duplicates"]:
        found = [each for each in found if each.kind is not FindingKind.DUPLICATE]
    if asked.label is None:  # categories that are the labels are no problem
        found = [
            e for e in found if e.kind is not FindingKind.CATEGORY or e.column not in likely_labels(table)
        ]
    stops = [each for each in found if each.stops]
    following = command_line("suspects", data, asked, found, reading_words(options))
    result = {
        "rows": table.n_rows,
        "columns": len(table.names),
        "label": asked.label,
        "features": [
            n for n in asked.columns(table) if n not in {e.column for e in stops if "drop" in e.options}
        ],
        "problems": [
            {
                "problem": each.kind.value,
                "column": each.column,
                "what": each.what,
                "advice": each.advice,
                "options": each.options,
                "stops": each.stops,
            }
            for each in found
        ],
        "next": following if asked.label else None,
    }
    emit(result, as_json=options["as_json"], text=lambda: _words(table, found, result), strong=[following])
    if stops:
        click.get_current_context().exit(INPUT)


def _structure(message: str) -> Finding:
    what, _, advice = message.partition("; ")
    return Finding(FindingKind.STRUCTURE, what, advice or "mend the file", stops=True)


def _words(table: Table, found: list[Finding], result: dict[str, Any]) -> str:
    lines = [f"{table.source}: {table.n_rows} rows, {len(table.names)} columns"]
    for heading, chosen in (
        ("To handle before anything can be learned:", [each for each in found if each.stops]),
        ("To know:", [each for each in found if not each.stops]),
    ):
        if chosen:
            lines += ["", heading]
            for each in chosen:
                lines += [f"  {one_line(each.what)}", f"    -> {one_line(each.advice)}"]
    if not found:
        lines.append("No problem was found.")
    if result["label"]:
        by_hand = any(each.stops and not each.options for each in found) or not result["features"]
        lines += ["", "Next, once the file is mended:" if by_hand else "Next:", f"  {result['next']}"]
    else:
        lines += [
            "",
            f"Labels were not checked: name their column with --label{perhaps(likely_labels(table))}",
        ]
    return "\n".join(lines)
