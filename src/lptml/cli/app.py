"""The root of the command line: lazy commands, and one place where every error becomes one line."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import json
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import click
from click.shell_completion import CompletionItem

from lptml.cli.errors import BUG, INPUT, INTERRUPTED, TERMINATED, one_line

# heading: name: (module, attribute, summary); summaries stand here so that `lptml --help` imports no command.
SECTIONS = {
    "From a doubtful table to a corrected one": {
        "check": ("lptml.cli.check", "check", "Name every problem of a table, and what handles it."),
        "suspects": ("lptml.cli.suspects", "suspects", "List the labels most likely to be wrong."),
        "review": ("lptml.cli.review", "review", "Decide about each of them, in a page on this machine."),
        "report": ("lptml.cli.report", "report", "Write that page as one file, to keep or to send."),
        "apply": ("lptml.cli.correct", "apply", "Write the table with the labels that were corrected."),
    },
    "A metric": {
        "fit": ("lptml.cli.fit", "fit", "Learn one from labels, pairs or comparisons."),
        "transform": ("lptml.cli.apply", "transform", "Map rows into its space."),
        "distance": ("lptml.cli.apply", "distance", "Distances of pairs of rows under it."),
        "score": ("lptml.cli.apply", "score", "How well it predicts labels, pairs or comparisons."),
    },
    "Proofs": {
        "certify": ("lptml.cli.certify", "certify", "Prove how few pairs any metric violates."),
        "verify": ("lptml.cli.certify", "verify", "Check the proof in a file."),
    },
    "More": {
        "datasets": ("lptml.cli.tools", "datasets", "List data sets, or write one as a table."),
        "reproduce": ("lptml.experiments.command", "reproduce", "Run the paper's tables and figures."),
        "bench": ("lptml.cli.tools", "bench", "Measure fit on this machine."),
        "completion": ("lptml.cli.tools", "completion", "Print the shell's completion script."),
        "version": ("lptml.cli.tools", "version", "Show versions of lptml and what it runs on."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}

EPILOG = """\b
Examples:
  lptml datasets wine --wrong 0.1 -o wine.csv
  lptml check wine.csv --label class
  lptml review wine.csv --label class
  lptml apply wine.csv wine.corrections.csv -o wine-clean.csv

\b
Exit codes: 0 done, 1 an error of lptml, 2 wrong usage, 3 an input cannot be used,
4 an output cannot be written, 130 interrupted.
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, and whose errors are one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        try:
            command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as missing:
            package = (missing.name or "").partition(".")[0]
            if package == "lptml":
                raise
            extra = "experiments" if cmd_name == "reproduce" else "cli"
            raise click.ClickException(
                f"lptml {cmd_name} needs {package}: pip install 'lptml[{extra}]'"
            ) from None
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was meant, or an error that says which one probably was."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0].lower(), COMMANDS, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"
            if os.path.exists(args[0]):
                meant = f"for a look at the file: lptml check {shlex.quote(args[0])}"
            ctx.fail(f"No such command {args[0]!r}; {meant}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands without importing them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=entry[2])
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:10}", entry[2]) for name, entry in commands.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run; turn any error into one line on standard error and an exit code."""
        arguments = list(sys.argv[1:] if args is None else args) or ["--help"]
        if arguments[0] == "help":
            arguments = [*arguments[1:2], "--help"]
        debug = "--debug" in arguments
        as_json = "--json" in arguments
        extra["standalone_mode"] = False
        try:
            with _sigterm_raises():
                code = super().main(arguments, *rest, **extra)
        except click.exceptions.Exit as leaving:
            code = leaving.exit_code
        except (click.Abort, KeyboardInterrupt):
            code = _say("interrupted; no file was changed half-way", INTERRUPTED, as_json)
        except _Terminated:
            code = _say("terminated; no file was changed half-way", TERMINATED, as_json)
        except BrokenPipeError:
            code = _closed_pipe()
        except Exception as problem:
            if debug:
                raise
            code = _say(*_explain(problem), as_json, getattr(problem, "lines", []))
        sys.exit(code if isinstance(code, int) else 0)


class _Terminated(BaseException):
    """SIGTERM, so that temporary files are removed on the way out."""


@contextlib.contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Let SIGTERM be an exception, as Ctrl-C is, while the block runs."""
    if threading.current_thread() is not threading.main_thread():  # nothing can be installed
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _explain(problem: Exception) -> tuple[str, int]:
    """The line and the exit code of an exception."""
    if isinstance(problem, click.UsageError):
        help_hint = ""
        if problem.ctx is not None:
            help_hint = f" (see {problem.ctx.command_path} --help)"
        text = re.sub(r"valid (float|integer)( range)?", r"number", problem.format_message().rstrip("."))
        return text + help_hint, problem.exit_code
    if isinstance(problem, click.ClickException):
        return problem.format_message(), problem.exit_code
    from lptml.engines.errors import EngineLost  # after the usage errors, which answer at once

    if isinstance(problem, ValueError):
        return str(problem), INPUT
    if isinstance(problem, MemoryError):
        return "not enough memory; use fewer rows or columns", INPUT
    if isinstance(problem, EngineLost):
        return f"{problem}; a search with --checkpoint goes on where it was", INPUT
    if isinstance(problem, ModuleNotFoundError):
        return f"needs {problem.name}: pip install {problem.name}", BUG
    kind = type(problem).__name__
    return f"unexpected {kind}: {problem}; run again with --debug, and report it", BUG


def _say(message: str, code: int, as_json: bool, more: Sequence[str] = ()) -> int:
    text = one_line(message)
    if as_json:
        lines = {"problems": [line.strip() for line in more]} if more else {}
        click.echo(json.dumps({"error": text, "code": code, **lines}, ensure_ascii=False), err=True)
    else:
        click.echo("\n".join([click.style("lptml: ", fg="red", bold=True) + text, *more]), err=True)
    return code


def _closed_pipe() -> int:
    """The reader of a pipe went away, as ``| head`` does: no error of ours, and nothing more to tell it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


@click.command(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(None, "-V", "--version", package_name="lptml", message="lptml %(version)s")
def cli() -> None:
    """From a table whose labels you doubt to one that you trust.

    Give it a table and the column of labels: it estimates how many of them are wrong, says which and why, and
    writes the table with those that you correct. Underneath it learns a metric that wrong labels hardly bend.
    """
