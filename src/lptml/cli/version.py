"""``lptml version``."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

import click

from lptml._version import __version__
from lptml.cli.options import common
from lptml.cli.output import emit

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "click", "rich", "pyarrow", "matplotlib")


def versions() -> dict[str, Any]:
    """The versions of lptml, Python and the packages it runs on; None where one is not installed."""
    found: dict[str, Any] = {"lptml": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


@click.command()
@common
def version(as_json: bool, quiet: bool) -> None:
    """Show the versions of lptml, Python and the packages it runs on.

    \b
    Examples:
      lptml version
      lptml version --json
    """
    found = versions()
    shown = {k: v for k, v in found.items() if v} if quiet else found
    emit(found, as_json=as_json, text=lambda: "\n".join(f"{k:14} {v or '-'}" for k, v in shown.items()))
