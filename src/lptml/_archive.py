"""The archive beneath a model file: a JSON header and plain arrays, written at once and read with distrust.

It is an uncompressed zip archive, ``header.json`` first, then one ``.npy`` member for each array. Reading,

- members must be stored, not compressed, and together no larger than the file: a file cannot expand,
- array headers are read by NumPy's literal parser, types are numbers, booleans or fixed-width text, and the
  shape must account for the member's bytes exactly before an array is made: a file's word allocates nothing.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lptml._files import replacing

MAX_MEMBERS = 1000
MAX_HEADER_BYTES = 1 << 26
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MEMBER_NAME = re.compile(r"a[0-9]{1,4}\.npy")


class ModelFileError(ValueError):
    """A file that is not a model, is damaged, or asks for something that a model has no use for."""

    __module__ = "lptml.io"  # where users find it


def member_name(k: int) -> str:
    """The name of the k-th array."""
    return f"a{k}.npy"


def write_archive(path: Path, header: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file; one that was there is replaced wholly or not at all."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(header, indent=1, allow_nan=False).encode()
        archive.writestr(zipfile.ZipInfo("header.json", _EPOCH), text)
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), _npy(array))


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def read_archive(path: Path) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file, both checked for form but not yet for meaning."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe could wait for ever
        raise ModelFileError(f"{path} is not a regular file")
    with open(path, "rb") as file:
        return _read_open(file, path)


def _read_open(file: BinaryIO, path: Path) -> tuple[Any, dict[str, NDArray[Any]]]:
    size = os.fstat(file.fileno()).st_size
    try:
        with zipfile.ZipFile(file) as archive:
            members = _members(archive, size, path)
            header = _parse_header(archive.read(members.pop("header.json")), path)
            arrays = {name: _parse_array(archive.read(info), name) for name, info in members.items()}
            return header, arrays
    except ModelFileError:
        raise
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        EOFError,
        RuntimeError,  # encryption, and features of archives that Python does not read
        OSError,  # offsets outside of the file
        ValueError,  # bad text, bad JSON, bad array headers
        OverflowError,
        struct.error,
    ) as error:
        raise ModelFileError(f"{path} is not a sound model file: {error}") from error


def _members(archive: zipfile.ZipFile, size: int, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, once their sizes and names are known to be harmless."""
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise ModelFileError(f"{path} has {len(infos)} members, more than the {MAX_MEMBERS} of any model")
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.filename
        if name != "header.json" and not _MEMBER_NAME.fullmatch(name):
            raise ModelFileError(f"{path} has a member named {name!r}, which no model has")
        if name in members:
            raise ModelFileError(f"{path} has two members named {name!r}")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileError(f"{path} has a compressed member {name!r}: models are stored uncompressed")
        if info.flag_bits & 0x1:
            raise ModelFileError(f"{path} has an encrypted member {name!r}")
        members[name] = info
    if "header.json" not in members:
        raise ModelFileError(f"{path} is not a model file: it has no header.json")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError(f"{path} declares more data than it has: its members overlap or are cut off")
    if members["header.json"].file_size > MAX_HEADER_BYTES:
        raise ModelFileError(f"{path} has a header of more than {MAX_HEADER_BYTES} bytes")
    return members


def _parse_header(content: bytes, path: Path) -> Any:
    def refuse(constant: str) -> Any:
        raise ModelFileError(f"{path} has {constant} in its header")

    try:
        return json.loads(content.decode("utf-8"), parse_constant=refuse)
    except RecursionError as error:
        raise ModelFileError(f"{path} has a header that is nested too deeply") from error


def _parse_array(content: bytes, name: str) -> NDArray[Any]:
    """Return the array of a .npy member without ever trusting its header about sizes or types."""
    buffer = io.BytesIO(content)
    version = np.lib.format.read_magic(buffer)
    if version != (1, 0):
        raise ModelFileError(f"{name} has npy version {version}, expected (1, 0)")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    if dtype.hasobject or dtype.kind not in "biufU":
        raise ModelFileError(f"{name} holds {dtype}: objects and pickles are refused")
    if fortran and len(shape) > 1:
        raise ModelFileError(f"{name} is in Fortran order, which no model is")
    if any(extent < 0 for extent in shape):
        raise ModelFileError(f"{name} has a negative extent in its shape {shape}")
    start = buffer.tell()
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ModelFileError(f"{name} declares shape {shape} of {dtype}, which its data does not have")
    if dtype.itemsize == 0:
        raise ModelFileError(f"{name} has items of no size")
    array = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=True)
