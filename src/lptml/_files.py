"""Files that are replaced wholly or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``target`` that takes its place when the block ends well.

    It is flushed to the disk and then renamed, which the file system does wholly or not at all: whatever
    interrupts the work, a crash of the machine included, leaves the old file or the new one.
    """
    final = Path(os.path.realpath(target))  # a link stays a link
    handle, name = tempfile.mkstemp(prefix=f".{final.name[:40]}.", suffix=final.suffix, dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(final.stat().st_mode & 0o777 if final.exists() else 0o666 & ~_umask())
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
