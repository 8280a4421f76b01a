"""What a command passes through: the files and functions of lptml that ``lptml fit`` calls, on Wine.

Counted are functions and methods with a name, in whatever thread they run; module and class bodies, which run
when they are imported, are not, nor are lambdas, comprehensions and compiled code.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lptml

ROOT = Path(lptml.__file__).parent
OPTIMISED = 1  # co_flags of a function; module and class bodies lack it


def passed_through(*arguments: str) -> set[CodeType]:
    """The functions of lptml that a command calls."""
    from lptml.cli import main

    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    sys.argv = ["lptml", *arguments]
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {
        code
        for code in called
        if code.co_filename.startswith(f"{ROOT}{os.sep}")
        and code.co_flags & OPTIMISED
        and not code.co_name.startswith("<")
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        passed_through("datasets", "wine", "-o", "wine.csv")
        passed_through("fit", "wine.csv", "--label", "class")  # compiles what is to be compiled
        commands = {
            "lptml fit wine.csv --label class": ("--force",),
            "lptml fit wine.csv --label class --report p.html": ("--force", "--report", "p.html"),
        }
        rows = {
            name: passed_through("fit", "wine.csv", "--label", "class", *more)
            for name, more in commands.items()
        }
    print("| command | files | functions |\n|---|---|---|")
    for name, codes in rows.items():
        print(f"| `{name}` | {len({code.co_filename for code in codes})} | {len(codes)} |")
    print("\n| package | files | functions |\n|---|---|---|")
    places = [Path(code.co_filename).relative_to(ROOT) for code in [*rows.values()][-1]]
    functions = Counter(place.parts[0] if len(place.parts) > 1 else "(top)" for place in places)
    files = Counter(place.parts[0] if len(place.parts) > 1 else "(top)" for place in {*places})
    for package, count in functions.most_common():
        print(f"| {package} | {files[package]} | {count} |")


if __name__ == "__main__":
    main()
