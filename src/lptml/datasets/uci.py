"""Tables of the UCI Machine Learning Repository that no dependency bundles: find, check, cache.

A table is accepted only if, parsed, it has the expected checksum. The checksum is of the parsed values and
not of a file, and does not depend on the order of the rows, so the repository's ``.data`` file, a copy with a
header line and a copy written by another program are all the same table.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import os
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lptml._files import replacing

logger = logging.getLogger(__name__)

_HOST = "https://archive.ics.uci.edu"
_TIMEOUT = 20.0  # seconds: a dead network must not look like a hang
_MOST_BYTES = 4_000_000  # both tables are below 0.1 MB; anything longer is not one of them

_SOYBEAN_FEATURES = (
    "date plant-stand precip temp hail crop-hist area-damaged severity seed-tmt germination plant-growth "
    "leaves leafspots-halo leafspots-marg leafspot-size leaf-shread leaf-malf leaf-mild stem lodging "
    "stem-cankers canker-lesion fruiting-bodies external-decay mycelium int-discolor sclerotia fruit-pods "
    "fruit-spots seed mold-growth seed-discolor seed-size shriveling roots"
)


class DatasetNotFound(OSError):
    """No source has the table; the message says what to download and where to put it."""


@dataclass(frozen=True)
class UCITable:
    """What is known about a table before it is read."""

    name: str
    stem: str
    donor: str
    description: str
    feature_names: tuple[str, ...]
    n_rows: int
    digest: str
    urls: tuple[str, ...]

    @property
    def files(self) -> tuple[str, str]:
        """File names looked for in a folder."""
        return f"{self.stem}.csv", f"{self.stem}.data"


IONOSPHERE = UCITable(
    name="ionosphere",
    stem="ionosphere",
    donor="V. Sigillito 1989",
    description="Radar returns from the ionosphere: 351 rows, 34 features, classes g (good) and b (bad).",
    feature_names=tuple(f"a{i:02d}" for i in range(1, 35)),
    n_rows=351,
    digest="eb9ec14cc797c8a8a461391e6662c9c3e89ac0e3ca953637f0a601b81db1fab5",
    urls=(
        f"{_HOST}/ml/machine-learning-databases/ionosphere/ionosphere.data",
        f"{_HOST}/static/public/52/ionosphere.zip",
    ),
)

SOYBEAN_SMALL = UCITable(
    name="soybean",
    stem="soybean-small",
    donor="R. S. Michalski 1987",
    description="Diseases of soybean plants, the small set: 47 rows, 35 integer features, classes D1 to D4.",
    feature_names=tuple(_SOYBEAN_FEATURES.split()),
    n_rows=47,
    digest="a22a05a86ed7fa021d3093ac85206043962adb8b5e028bbe87d245af19c0b675",
    urls=(
        f"{_HOST}/ml/machine-learning-databases/soybean/soybean-small.data",
        f"{_HOST}/static/public/91/soybean+small.zip",
    ),
)


def fetch(
    table: UCITable, *, folder: str | None = None, download: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.str_], str]:
    """The table's features (n, d), labels (n,), and where they were found.

    A file that exists in the named folder but holds something else is an error; in the cache it is ignored
    and replaced.
    """
    named = folder or os.environ.get("LPTML_DATA")
    if named:
        for path in _existing(table, Path(named)):
            X, labels = parse(path.read_text(encoding="utf-8"), table)  # a wrong file is the user's to mend
            return X, labels, str(path)
    for path in _existing(table, cache_folder()):
        try:
            X, labels = parse(path.read_text(encoding="utf-8"), table)
        except (OSError, ValueError) as error:
            logger.warning("ignoring the cached %s: %s", path, error)
            continue
        return X, labels, str(path)
    problems: list[str] = [] if download else ["downloading was switched off"]
    for url in table.urls if download else ():
        try:
            text = _download(url, table)
            X, labels = parse(text, table)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            problems.append(f"{url}: {error}")
            continue
        _write_cache(cache_folder() / table.files[1], text)
        return X, labels, url
    raise DatasetNotFound(
        f"The {table.name} data ({table.donor}) is not on this machine and could not be fetched. Download "
        f"{table.urls[0]} and save it as {table.files[1]} in a folder; then set the environment variable "
        f"LPTML_DATA to that folder or pass folder=... (looked in: {named or 'no folder named'}; "
        f"{cache_folder()}). Tried: {'; '.join(problems)}"
    )


def parse(text: str, table: UCITable) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Features and labels of comma-separated text, header or not; ValueError unless it is ``table``."""
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    if rows and not _is_number(rows[0][0]):
        rows = rows[1:]
    d = len(table.feature_names)
    if len(rows) != table.n_rows or any(len(row) != d + 1 for row in rows):
        raise ValueError(
            f"not the {table.name} table: expected {table.n_rows} rows of {d} numbers and a class"
        )
    X = np.array([[float(cell) for cell in row[:d]] for row in rows])  # (n, d)
    labels = np.array([row[d].strip() for row in rows])  # (n,)
    found = checksum(X, labels)
    if found != table.digest:
        raise ValueError(
            f"not the {table.name} table: its values have checksum {found}, expected {table.digest}"
        )
    return X, labels


def checksum(X: NDArray[np.float64], labels: NDArray[np.str_]) -> str:
    """SHA-256 of the rows in sorted order, every number in its shortest exact decimal form."""
    rows = sorted(
        ",".join([*(repr(float(value) + 0.0) for value in row), str(label)]) for row, label in zip(X, labels)
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def cache_folder() -> Path:
    """Where downloaded tables are kept: ``LPTML_CACHE``, or ``lptml`` under the user's cache folder."""
    named = os.environ.get("LPTML_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lptml"


def _existing(table: UCITable, folder: Path) -> Iterator[Path]:
    return (folder / name for name in table.files if (folder / name).is_file())


def _download(url: str, table: UCITable) -> str:
    logger.info("fetching %s", url)
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
        content: bytes = answer.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("the answer is far longer than the table")
    if not content.startswith(b"PK"):
        return content.decode("utf-8")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = archive.getinfo(table.files[1])
        if member.file_size > _MOST_BYTES:
            raise ValueError("the archive's member is far longer than the table")
        return archive.read(member).decode("utf-8")


def _write_cache(path: Path, text: str) -> None:
    """Write the table, wholly or not at all; or say why it cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:  # a read-only home must not stop someone who has the data in hand
        logger.warning("could not cache %s: %s", path, error)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
