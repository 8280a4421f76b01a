"""What can go wrong on the command line: one line for a mistake, one exit code for its kind.

====  =======================================================================
code  meaning
====  =======================================================================
0     done
1     an error of lptml itself; ``--debug`` shows the traceback
2     wrong usage: an unknown option, a missing argument
3     an input cannot be used: the line says which file, row and column, and what to do
4     an output cannot be written
130   interrupted (Ctrl-C, 143 for SIGTERM); every file is the old one or the new one
====  =======================================================================
"""

from __future__ import annotations

import unicodedata

import click

BUG, USAGE, INPUT, OUTPUT, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 130, 143


def visible(text: str, keep: str = "") -> str:
    """The text with every control character written out, so that none of them reaches a terminal.

    >>> visible("red \\x1b[31m \\u202e")
    'red \\\\x1b[31m \\\\u202e'
    """
    return "".join(c if _is_plain(c) or c in keep else ascii(c)[1:-1] for c in text)


def _is_plain(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # spaces of any width


def one_line(text: object, limit: int = 400) -> str:
    """The text on one line, without control characters, cut at ``limit`` characters."""
    clean = visible(" ".join(str(text).split()))
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def quoted(value: object, limit: int = 40) -> str:
    """A value from a file, safe to print in a message.

    >>> quoted("a" * 50, limit=8)
    "'aaaaaaa…'"
    """
    return f"'{one_line(value, limit)}'"


class InputError(click.ClickException):
    """An input that cannot be used.

    Parameters
    ----------
    what : str
        What is wrong and what to do about it.
    where : str
        File, row and column, as far as they are known.
    """

    exit_code = INPUT

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)


class Refused(InputError):
    """A table with problems, all of them in one answer, and the command that handles them.

    Parameters
    ----------
    problems : list of str
    where : str
    command : str
    """

    def __init__(self, problems: list[str], where: str, command: str) -> None:
        self.lines = [*(f"  {one_line(each)}" for each in problems), f"try: {one_line(command)}"]
        if len(problems) == 1:
            super().__init__(problems[0], where)
            self.lines = []
        else:
            super().__init__(f"{len(problems)} problems to handle first (lptml check lists them):", where)


class OutputError(click.ClickException):
    """An output that cannot be written."""

    exit_code = OUTPUT
