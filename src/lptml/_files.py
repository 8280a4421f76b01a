"""Files that are replaced wholly or not at all; what is no regular file is written to, never replaced."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DESCRIPTOR = re.compile(r"/dev/(?:fd/(\d+)|(stdin|stdout|stderr))|/proc/self/fd/(\d+)")


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path whose content is what ``target`` holds when the block has ended well.

    A regular file is written beside its place, flushed to the disk and then renamed, which the file system
    does wholly or not at all: whatever interrupts the work, a crash of the machine included, leaves the old
    file or the new one. A pipe, a character device (``/dev/null``) or an open descriptor (``/dev/stdout``)
    gets the content when it is whole. Folders, sockets and disks are refused with an OSError.
    """
    if is_stream(target):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder, f"whole{Path(target).suffix}")
            yield temporary
            _send(temporary, target)
        return
    final = Path(os.path.realpath(target))  # a link stays a link
    mode = stat.S_IMODE(final.stat().st_mode) & 0o777 if final.exists() else None
    temporary = _created_beside(final, 0o666 if mode is None else mode)
    try:
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)


def is_stream(target: str | os.PathLike[str]) -> bool:
    """Whether ``target`` is a pipe, a character device or an open descriptor: there is nothing to replace.

    A folder, a socket or a disk, which can neither be replaced nor written to, is an OSError.
    """
    if _descriptor(target) is not None:
        return True
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
    if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        raise OSError(errno.EINVAL, "is a socket or a disk, not a file", os.fspath(target))
    return not stat.S_ISREG(mode)


def _created_beside(final: Path, mode: int) -> Path:
    """A new empty file in the folder of ``final``.

    The system itself takes the umask off the rights of a file that it creates. To ask for the umask is to
    change it, for every thread of the process.
    """
    while True:
        temporary = final.with_name(f".{final.name[:40]}.{secrets.token_hex(6)}{final.suffix}")
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        except FileExistsError:
            continue
        return temporary


def _descriptor(target: str | os.PathLike[str]) -> int | None:
    """The number of the open descriptor that a path stands for, if it does.

    To open such a path anew would truncate the file behind it and forget where the next word belongs.
    """
    found = _DESCRIPTOR.fullmatch(os.fspath(target))
    if found is None or sys.platform == "win32":
        return None
    if found.group(2):
        return ("stdin", "stdout", "stderr").index(found.group(2))
    return int(found.group(1) or found.group(3))


def _send(whole: Path, target: str | os.PathLike[str]) -> None:
    sys.stdout.flush()
    number = _descriptor(target)
    with whole.open("rb") as source, open(target if number is None else os.dup(number), "wb") as stream:
        shutil.copyfileobj(source, stream)
