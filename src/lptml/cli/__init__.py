"""The command line: ``lptml fit``, ``suspects``, ``report`` and the rest.

:func:`main` is the entry point.  It needs only click; every other import waits until a command runs, so that
``lptml --help`` and shell completion answer at once.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say in one line how to install what it needs."""
    try:
        from lptml.cli.app import cli
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "click":
            raise
        print("lptml: the command line needs click: pip install 'lptml[cli]'", file=sys.stderr)
        sys.exit(1)
    cli(prog_name="lptml")
