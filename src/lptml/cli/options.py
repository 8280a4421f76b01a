"""The options that commands share.  Those of the learner carry the names of the estimators' parameters."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from lptml.cli.errors import InputError, Refused
from lptml.cli.findings import Asked, FindingKind, command_line, likely_labels, listed, look, perhaps
from lptml.cli.output import note
from lptml.cli.prepare import IMPUTE, Points, prepare
from lptml.cli.readers import FORMATS, read_table
from lptml.cli.tables import Table

F = TypeVar("F", bound=Callable[..., Any])

MOST_NOTES = 5  # findings that a command tells before it starts
DATA = click.Path(allow_dash=True, readable=False)  # whose reader says what is wrong


class Advanced(click.Option):
    """An option of the algorithm, which most people never need."""


class Reading(click.Option):
    """An option about how a file is read."""


class Sectioned(click.Command):
    """A command whose help has the options that most people need first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Reading DATA": [], "Advanced": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                kinds = {Advanced: "Advanced", Reading: "Reading DATA"}
                sections[kinds.get(type(parameter), "Options")].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


def stacked(options: list[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def common(function: F) -> F:
    """--json, --quiet and --debug, which every command has."""
    return stacked(
        [
            click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON."),
            click.option("--quiet", "-q", is_flag=True, help="No progress and no notes."),
            click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."),
        ]
    )(function)


def reading(function: F) -> F:
    """How to read the table of points."""
    return stacked(
        [
            click.option(
                "--format",
                cls=Reading,
                type=click.Choice(FORMATS),
                default="auto",
                help="Format of DATA; by default its name and first bytes tell.",
            ),
            click.option(
                "--delimiter",
                cls=Reading,
                metavar="CHAR",
                help="Between the cells of a CSV file; guessed by default.",
            ),
            click.option(
                "--encoding", cls=Reading, default="utf-8", show_default=True, help="Of a text file."
            ),
            click.option(
                "--header/--no-header",
                cls=Reading,
                default=True,
                help="Whether the first line of a CSV file names the columns; without, they are 1, 2, 3, ...",
            ),
            click.option(
                "--na",
                cls=Reading,
                multiple=True,
                metavar="TEXT",
                help="A text that means 'no value'; may be repeated.",
            ),
        ]
    )(function)


def columns(function: F) -> F:
    """Which columns are what, and what to do with text and missing values."""
    return stacked(
        [
            click.option("--key", metavar="COLUMN", help="The column that names the rows; not a feature."),
            click.option(
                "--features",
                metavar="A,B,...",
                callback=_names,
                help="The columns to learn from; by default all but label and key.",
            ),
            click.option("--drop", metavar="A,B,...", callback=_names, help="Columns to leave out."),
            click.option(
                "--one-hot",
                is_flag=True,
                help="Turn text columns into 0/1 features; otherwise they are refused.",
            ),
            click.option(
                "--impute",
                type=click.Choice(IMPUTE),
                help="What stands for a missing value ('drop': leave its row out); otherwise refused.",
            ),
            click.option("--drop-unlabelled", is_flag=True, help="Leave out rows without a label."),
            click.option(
                "--drop-duplicates",
                is_flag=True,
                help="Leave out rows that repeat an earlier one in every feature and the label.",
            ),
        ]
    )(function)


def label_option(function: F) -> F:
    """--label, the column of labels."""
    return click.option("--label", metavar="COLUMN", help="The column of labels.")(function)


def pairs_option(function: F) -> F:
    """--pairs, the file of labelled pairs."""
    text = (
        "A file of pairs: two keys and a label on each line (similar, dissimilar), joined to DATA by --key."
    )
    return click.option("--pairs", type=DATA, metavar="FILE", help=text)(function)


def tuples_options(function: F) -> F:
    """--triplets and --quadruplets, the files of comparisons."""
    return stacked(
        [
            click.option(
                "--triplets",
                type=DATA,
                metavar="FILE",
                help="Three keys a line: the first is nearer to the second than to the third.",
            ),
            click.option(
                "--quadruplets",
                type=DATA,
                metavar="FILE",
                help="Four keys a line: the first two are nearer than the last two.",
            ),
        ]
    )(function)


def corrections_option(function: F) -> F:
    """--corrections, decisions that were made in a review."""
    text = "Decisions of a review: changed labels are taken, kept and changed ones are trusted."
    return click.option("--corrections", type=DATA, metavar="FILE", help=text)(function)


def force_option(function: F) -> F:
    """--force, which every command has that writes a file."""
    text = "Replace an existing file that holds something else than this command writes."
    return click.option("--force", is_flag=True, help=text)(function)


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    import csv

    if not value:
        return ()
    return tuple(cell.strip() for cell in next(csv.reader([value])) if cell.strip())


def load_table(path: str, options: dict[str, Any], problems: list[InputError] | None = None) -> Table:
    """The table at ``path``, read as the reading options say; as for :func:`read_table`."""
    delimiter = options["delimiter"]
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '\r\n"':
            raise click.BadParameter("one character, or 'tab'", param_hint="--delimiter")
    return read_table(
        path,
        format=options["format"],
        delimiter=delimiter,
        encoding=options["encoding"],
        header=options["header"],
        missing=options["na"],
        problems=problems,
    )


def reading_words(options: dict[str, Any]) -> list[str]:
    """The reading options that were given, as they are typed."""
    words = [] if options["format"] == "auto" else ["--format", options["format"]]
    words += ["--delimiter", options["delimiter"]] if options["delimiter"] else []
    words += [] if options["encoding"] == "utf-8" else ["--encoding", options["encoding"]]
    words += [] if options["header"] else ["--no-header"]
    return [*words, *(word for text in options["na"] for word in ("--na", text))]


def same_data(command: str, data: str, sources: dict[str, str | None], options: dict[str, Any]) -> str:
    """Another command about the same data, with the options about reading and columns that were given."""
    words = ["lptml", command, data]
    words += [
        word
        for name, value in (sources | {"key": options["key"]}).items()
        if value
        for word in (f"--{name}", value)
    ]
    return shlex.join([*words, *column_words(options), *reading_words(options)])


def column_words(options: dict[str, Any]) -> list[str]:
    """The column options that were given but for the key, as they are typed."""
    words: list[str] = []
    for name in ("features", "drop"):
        words += [f"--{name}", listed(options[name])] if options[name] else []
    words += ["--impute", options["impute"]] if options["impute"] else []
    flags = ("one_hot", "drop_unlabelled", "drop_duplicates")
    return [*words, *(f"--{name.replace('_', '-')}" for name in flags if options[name])]


def asked_of(table: Table, options: dict[str, Any], label: str | None) -> Asked:
    """What the column options say."""
    chosen = ("key", "features", "drop", "one_hot", "impute", "drop_unlabelled")
    return Asked(label or table.roles.get("label"), **{name: options[name] for name in chosen})


def prepared(table: Table, options: dict[str, Any], label: str | None) -> Points:
    """The points of a table, prepared as the column options say, after a look at all that may be wrong."""
    asked = asked_of(table, options, label)
    for name, option in ((asked.label, "--label"), (asked.key, "--key")):
        if name is not None:
            table.column(name, option)
    found = look(table, asked)
    stops = [each for each in found if each.stops]
    if len(stops) > 1 or any(each.kind is FindingKind.IDENTIFIER for each in stops):
        command = str(click.get_current_context().info_name)
        line = command_line(command, table.source, asked, found, reading_words(options))
        raise Refused([each.line() for each in stops], table.source, line)
    chosen = ("key", "features", "drop", "one_hot", "impute", "drop_unlabelled", "drop_duplicates")
    points = prepare(table, label=label, **{name: options[name] for name in chosen})
    if options["drop_duplicates"]:
        found = [each for each in found if each.kind is not FindingKind.DUPLICATE]
    more = [f"note: {len(found) - MOST_NOTES} more; lptml check lists them"] * (len(found) > MOST_NOTES)
    for line in [f"note: {each.line()}" for each in found[:MOST_NOTES]] + more:
        note(line, quiet=options["quiet"] or options["as_json"])
    return replace(points, noticed=tuple(each.line() for each in found))


def need_one_of(
    label: str | None,
    pairs: str | None,
    table: Table | None = None,
    *,
    triplets: str | None = None,
    quadruplets: str | None = None,
) -> None:
    """Exactly one thing to learn from, unless the file itself names its label."""
    given = {"--label": label, "--pairs": pairs, "--triplets": triplets, "--quadruplets": quadruplets}
    several = [name for name, value in given.items() if value]
    if len(several) > 1:
        raise click.UsageError(f"give {' or '.join(several)}, not both")
    if not several and not (table and table.roles.get("label")):
        known = {each.name for each in click.get_current_context().command.params}
        ways = ["--label COLUMN", *(f"{name} FILE" for name in [*given][1:] if name[2:] in known)]
        guess = "" if table is None else perhaps(likely_labels(table))
        raise click.UsageError(f"say where the labels are: {' or '.join(ways)}{guess}")
