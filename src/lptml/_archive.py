"""Files of ours: a JSON header and plain arrays, written at once and read with distrust.

Model files (``lptml.estimators.io``) and checkpoints (``lptml.search.checkpoint``) are both such archives:
an uncompressed zip file, ``header.json`` first, then one ``.npy`` member for each array. What a file says
about itself is compared with a limit before anything is done about it:

- the directory has few entries of few bytes, by the record at the end of the file that tells its size,
- members are stored, not compressed, and together no larger than the file: a file cannot expand,
- the header has few bytes, few values and little nesting, by a scan of its brackets and commas,
- the header of an array must read as we write it, character by character; types are numbers, booleans or
  text, and the shape must account for the member's bytes exactly before an array is made,
- arrays are read when they are asked for, so that a file with a bad header costs its header.

Writing compares with the same limits, so that what is written can be read. Whatever is wrong with a file is
a :class:`ModelFileError`.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lptml._files import replacing

MAX_MEMBERS = 1000
MAX_HEADER_BYTES = 1 << 23
#: Values in a header: each takes up to 250 bytes and a microsecond once it is a Python object.
MAX_HEADER_VALUES = 1 << 18
MAX_HEADER_DEPTH = 64

_HEADER = "header.json"
_ENTRY_BYTES = 256  # of the directory; ours take 46, a name and what files beyond 2 GiB add
_BLOCK = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MEMBER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}\.npy")
_MAGIC = b"\x93NUMPY\x01\x00"
_NPY = re.compile(
    rb"\{'descr': '(\|[biu]1|<[iuf][248]|<U[1-9][0-9]{0,6})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,18}(?:, [0-9]{1,18}){0,7})?),?\), \} *\n"
)


class ModelFileError(ValueError):
    """A model file or checkpoint that is none, is damaged, or asks for what no such file has a use for."""

    __module__ = "lptml.estimators.io"  # where users find it


def write_archive(path: str | os.PathLike[str], header: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file; one that was there is replaced wholly or not at all.

    Raises
    ------
    ValueError
        If the file could not be read again.
    """
    text = json.dumps(header, indent=1, allow_nan=False).encode()
    check_header(text)
    if len(arrays) >= MAX_MEMBERS:
        raise ValueError(f"{len(arrays)} arrays are more than the {MAX_MEMBERS - 1} that a file may hold")
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER, _EPOCH), text)
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), _npy(array, name))


def _npy(array: NDArray[Any], name: str) -> bytes:
    buffer = io.BytesIO()
    plain = np.asarray(array, order="C", dtype=array.dtype.newbyteorder("<"))
    np.lib.format.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    content = buffer.getvalue()
    _parse_npy(io.BytesIO(content), len(content), name)
    return content


class Archive:
    """An open file: its header, checked for form but not yet for meaning, and its arrays on demand."""

    def __init__(self, file: BinaryIO) -> None:
        size = os.fstat(file.fileno()).st_size
        _check_directory(file, size)
        self._zip = zipfile.ZipFile(file)
        self._members = _members(self._zip, size)
        self.header: Any = _parse_header(self._zip.read(self._members.pop(_HEADER)))

    @property
    def names(self) -> set[str]:
        """The arrays that were not taken yet."""
        return {name.removesuffix(".npy") for name in self._members}

    def take(self, name: str) -> NDArray[Any]:
        """Read an array, which can be done once."""
        info = self._members.pop(f"{name}.npy", None)
        if info is None:
            raise ValueError(f"there is no array {name!r}, or it is used twice")
        with self._zip.open(info) as stream:
            dtype, shape = _parse_npy(stream, info.file_size, name)
            array = np.empty(shape, dtype=dtype)
            flat, start = array.reshape(-1).view(np.uint8), 0
            while block := stream.read(_BLOCK):
                flat[start : start + len(block)] = np.frombuffer(block, dtype=np.uint8)
                start += len(block)
        if start != len(flat):
            raise ValueError(f"{name} is cut off")
        if (dtype.kind == "b" and (flat > 1).any()) or (dtype.kind == "U" and not _is_text(flat)):
            raise ValueError(f"{name} holds bytes that are no values of {dtype}")
        return array.astype(dtype.newbyteorder("="), copy=False)


@contextmanager
def open_archive(path: str | os.PathLike[str], kind: str) -> Iterator[Archive]:
    """Open a file for the duration of a block; any fault found in it, there too, is a ModelFileError.

    Parameters
    ----------
    path : path
    kind : str
        What the file should be, for messages.

    Raises
    ------
    FileNotFoundError, PermissionError, ...
        Where the file cannot be opened at all.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe could wait for ever
        raise ModelFileError(f"{os.fspath(path)} is not a {kind}: it is not a regular file")
    with open(path, "rb") as file:
        try:
            yield Archive(file)
        except ModelFileError:
            raise
        except (
            zipfile.BadZipFile,
            zipfile.LargeZipFile,
            EOFError,
            RuntimeError,  # encryption, and features of archives that Python does not read
            OSError,  # offsets outside of the file
            ValueError,  # everything that is found here
            OverflowError,
            MemoryError,
            struct.error,
        ) as error:
            raise ModelFileError(f"{os.fspath(path)} is not a {kind}, or a damaged one: {error}") from error


def _check_directory(file: BinaryIO, size: int) -> None:
    """Refuse a directory of more than a model's size; zipfile would make an object of every entry first.

    The last 22 bytes tell its size and place, or, beyond 2 GiB, the 76 bytes before them. They must do so
    where our files have them, so that zipfile finds the same ones.
    """
    file.seek(max(0, size - 98))
    tail = file.read(98)
    if tail[-22:-18] != b"PK\x05\x06" or tail[-2:] != b"\0\0":
        raise ValueError("it does not end like one")
    count, length, start = struct.unpack("<HII", tail[-12:-2])
    end = size - 22
    if tail[-42:-38] == b"PK\x06\x07":
        end = size - 98
        (place,) = struct.unpack("<Q", tail[-34:-26])
        if len(tail) < 98 or tail[:12] != struct.pack("<4sQ", b"PK\x06\x06", 44) or place != end:
            raise ValueError("it does not end like one")
        count, length, start = struct.unpack("<QQQ", tail[32:56])
    if count > MAX_MEMBERS or length > MAX_MEMBERS * _ENTRY_BYTES:
        raise ValueError(f"its directory has {count} entries in {length} bytes, more than any such file")
    if start + length != end:
        raise ValueError("its directory is not where it should be")


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, once their sizes and names are known to be harmless."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename
        if name != _HEADER and not _MEMBER.fullmatch(name):
            raise ValueError(f"it has a member named {name[:80]!r}")
        if name in members:
            raise ValueError(f"it has two members named {name!r}")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ValueError(f"it has a compressed member {name!r}")
        if info.flag_bits & 0x1:
            raise ValueError(f"it has an encrypted member {name!r}")
        members[name] = info
    if _HEADER not in members:
        raise ValueError(f"it has no {_HEADER}")
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("it declares more data than it has: its members overlap or are cut off")
    if members[_HEADER].file_size > MAX_HEADER_BYTES:
        raise ValueError(f"its header has more than {MAX_HEADER_BYTES} bytes")
    return members


def check_header(text: bytes) -> None:
    """Refuse JSON that is long, deep or of many values, without making an object of any of them.

    Examples
    --------
    >>> check_header(b'{"a": [1, 2, "]]]"]}')
    >>> check_header(b"[" * 100)
    Traceback (most recent call last):
        ...
    ValueError: the header is nested more than 64 levels deep
    """
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(f"the header has {len(text)} bytes, more than {MAX_HEADER_BYTES}")
    plain = np.frombuffer(text.replace(rb"\\", b"").replace(rb"\"", b""), dtype=np.uint8)
    outside = ~np.logical_xor.accumulate(plain == ord('"'))  # of strings
    opening = outside & ((plain == ord("[")) | (plain == ord("{")))
    closing = outside & ((plain == ord("]")) | (plain == ord("}")))
    count = int(opening.sum()) + int((outside & (plain == ord(","))).sum())
    if count > MAX_HEADER_VALUES:
        raise ValueError(f"the header has {count} values, more than {MAX_HEADER_VALUES}")
    steps = np.where(opening[opening | closing], 1, -1)
    if np.cumsum(steps).max(initial=0) > MAX_HEADER_DEPTH:
        raise ValueError(f"the header is nested more than {MAX_HEADER_DEPTH} levels deep")


def _parse_header(content: bytes) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"the header has {constant}")

    check_header(content)
    return json.loads(content.decode("utf-8"), parse_constant=refuse)


def _parse_npy(stream: Any, size: int, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return type and shape of a .npy member whose data are exactly what is left of its ``size`` bytes."""
    start = stream.read(len(_MAGIC) + 2)
    length = int.from_bytes(start[len(_MAGIC) :], "little")
    found = _NPY.fullmatch(stream.read(length))
    if start[: len(_MAGIC)] != _MAGIC or found is None:
        raise ValueError(f"{name} is no plain array of numbers, booleans or text in rows")
    dtype = np.dtype(found[1].decode())
    shape = tuple(int(extent) for extent in found[2].split(b",") if extent)
    if math.prod(shape) * dtype.itemsize != size - len(start) - length:
        raise ValueError(f"{name} declares shape {shape} of {dtype}, which its data does not have")
    return dtype, shape


def _is_text(flat: NDArray[np.uint8]) -> bool:
    """Whether bytes are numbers of characters, without those that stand for halves of one."""
    codes = flat.view("<u4")
    return not ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()
