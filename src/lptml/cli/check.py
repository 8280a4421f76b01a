"""``lptml check``: every problem of a table in one answer, each with the option that handles it."""

from __future__ import annotations

from typing import Any

import click

from lptml.cli.errors import INPUT, one_line, quoted
from lptml.cli.findings import Finding, FindingKind, command_line, look
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
    stops = [each for each in found if each.stops]
    following = command_line("suspects", data, asked, found, reading_words(options))
    result = {
        "rows": table.n_rows,
        "columns": len(table.names),
        "label": asked.label,
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
        lines += ["", "Next:", f"  {result['next']}"]
    else:
        likely = _label_like(table)
        guess = f"; perhaps {' or '.join(map(quoted, likely))}" if likely else ""
        lines += ["", f"Labels were not checked: name their column with --label{guess}"]
    return "\n".join(lines)


def _label_like(table: Table) -> list[str]:
    """Columns that could be labels: a few different values, each of them often; the last columns first."""
    found = []
    for name in reversed(table.names):
        cells = [cell for cell in table.text(name) if cell is not None]
        if 2 <= len(set(cells)) <= 20 and len(cells) >= 10 * len(set(cells)):
            found.append(name)
    return found[:3]
