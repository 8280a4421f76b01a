"""``lptml apply``: the corrected table, byte for byte the old one elsewhere."""

from __future__ import annotations

import sys
from typing import Any

import click

from lptml._cells import fingerprint
from lptml.cli.errors import InputError, OutputError, quoted
from lptml.cli.options import DATA, Sectioned, common, force_option, label_option, load_table, reading
from lptml.cli.output import FileKind, check_outputs, emit, note, replacing, table_kind
from lptml.cli.readers import guess_format, read_bytes


@click.command(cls=Sectioned)
@click.argument("data", type=DATA)
@click.argument("corrections", type=click.Path(dir_okay=True))
@click.option("-o", "--output", required=True, metavar="CLEAN", help="The corrected table.")
@label_option
@force_option
@reading
@common
def apply(
    data: str,
    corrections: str,
    output: str,
    label: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Write DATA with the labels that CORRECTIONS change, every other byte as it was.

    CORRECTIONS is what the page of `lptml report` downloads and `lptml review` writes. A table that changed
    since is refused: a decision was made about a row as it was. Parquet and npz files are written anew, with
    the other columns as they were.

    \b
    Examples:
      lptml apply wine.csv corrections.csv -o wine-clean.csv
      lptml apply wine.csv wine.corrections.csv -o wine-clean.csv --label grower
    """
    from lptml.cli.rewrite import count, rewritten
    from lptml.report.corrections import COLUMNS, Decision, standing

    if data == "-":
        raise click.UsageError("DATA is read twice: name a file")
    name, content = read_bytes(data)
    if content.startswith(",".join(COLUMNS).encode()):
        raise click.UsageError(f"{data} holds corrections: name the table first, then the corrections")
    kind = guess_format(name, content) if options["format"] == "auto" else options["format"]
    kept = {"parquet": FileKind.PARQUET, "npz": FileKind.ARRAYS}.get(kind, FileKind.TEXT)
    if output != "-" and kept is not (FileKind.TEXT if kind == "arff" else table_kind(output)):
        raise OutputError(f"{output}: the result is {kept.value}, as {name} is; choose a name like that one")
    check_outputs((output, kept), inputs=(data, corrections), force=force)
    found = standing(decisions(corrections))
    seen = {each.data for each in found if each.data}
    if seen - {fingerprint(content)}:
        raise InputError(
            f"is not the file that {quoted(corrections)} is about: it changed since; apply the corrections "
            "to the old file, or review the new one",
            name,
        )
    table = load_table(data, options)
    columns = {label} if label else {each.column for each in found if each.column}
    if len(columns) > 1:
        raise InputError(
            f"is about the columns {', '.join(sorted(columns))}; name one with --label", corrections
        )
    column = columns.pop() if columns else table.roles.get("label")
    if column is None:
        raise InputError("holds no decision; review the suspects first", corrections)
    how: dict[str, Any] = {key: options[key] for key in ("format", "delimiter", "encoding", "header")}
    changed = rewritten(name, content, table, column, found, **how)
    if output == "-":
        sys.stdout.buffer.write(changed)
        return
    with replacing(output) as temporary:
        temporary.write_bytes(changed)
    result = {
        "output": output,
        "rows": table.n_rows,
        **{each.value: count(found, each) for each in (Decision.CHANGE, Decision.KEEP, Decision.UNSURE)},
    }
    emit(
        result,
        as_json=as_json,
        text=lambda: (
            f"{result['change']} label{'s' * (result['change'] != 1)} changed, {result['keep']} kept, "
            f"{result['unsure']} undecided; {result['rows']} rows\n{output}"
        ),
        strong=[output],
    )


def decisions(path: str) -> list[Any]:
    """All decisions of a corrections file, or one line that says what is wrong with it."""
    from lptml.report.corrections import parse_corrections

    name, content = read_bytes(path)
    try:
        file = parse_corrections(content)
    except ValueError as problem:
        raise InputError(f"is no corrections file: {problem}", name) from None
    if file.warning:
        note(f"note: {name}: {file.warning}")
    return file.decisions
