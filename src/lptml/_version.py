"""The version, read by the build, and those of the packages that results depend on."""

import platform
from importlib import metadata

__version__ = "0.1.0"


def versions(*packages: str) -> dict[str, str | None]:
    """Of lptml, Python and these packages; None for one that is not installed."""
    found: dict[str, str | None] = {"lptml": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found
