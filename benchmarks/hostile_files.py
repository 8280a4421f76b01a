"""What a hostile model file or checkpoint costs before it is refused, in CPU seconds and memory: 100 files.

The files are those of ``tests/test_archive.py`` that ask for much, larger ones of the same kinds, and sound
files with bytes, members or entries exchanged. Each is read in a process of its own, as a model and as a
checkpoint.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.model_files import edited, npy, sound, write
from tests.test_archive import EXPENSIVE, checkpoint, directory, header, resumed

import lptml
from lptml.estimators.model_classes import CLASSES

SECONDS, MEGABYTES = 2.0, 300.0
LARGER: dict[str, Callable[[Path], object]] = {
    "two million entries": lambda p: directory(p, 2_000_000),
    "two million entries, said to be one": lambda p: directory(p, 2_000_000, told=1),
    "63 MB of brackets": lambda p: header(p, b"[" * 63_000_000),
    "63 MB of empty lists": lambda p: header(p, b"[" + b"[]," * 21_000_000 + b"[]]"),
    "4 GB of zeros in 4 MB": lambda p: write(p, _zeros(), zipfile.ZIP_DEFLATED),
}


def _zeros() -> dict[str, bytes]:
    import numpy as np

    return {"header.json": b"{}"} | {f"a{k}.npy": npy(np.zeros(1 << 23)) for k in range(8)}


def files() -> Iterator[tuple[str, Callable[[Path], object]]]:
    """A hundred of them by name."""
    yield from (EXPENSIVE | LARGER).items()
    chance = random.Random(0)
    kinds = [*CLASSES, "checkpoint"]
    for k in range(100 - len(EXPENSIVE) - len(LARGER)):
        kind = kinds[k % len(kinds)]
        yield (
            f"{kind}, spoilt ({k})",
            _spoilt(dict(checkpoint() if kind == "checkpoint" else sound(kind)), chance),
        )


def _spoilt(contents: dict[str, bytes], chance: random.Random) -> Callable[[Path], object]:
    name = chance.choice(sorted(contents))
    how = chance.randrange(4)
    if how == 0:  # cut short
        contents[name] = contents[name][: chance.randrange(len(contents[name]))]
    elif how == 1:  # bytes exchanged
        content = bytearray(contents[name])
        for _ in range(8):
            content[chance.randrange(len(content))] = chance.randrange(256)
        contents[name] = bytes(content)
    elif how == 2:  # one member for another
        contents[name] = contents[chance.choice(sorted(contents))]
    else:  # a parameter that is enormous
        contents = edited(contents, lambda h: h.update(dict.fromkeys(list(h)[:1], 10**300)))
    return lambda path: write(path, contents)


def cost(read: Callable[[Path], object], path: Path) -> tuple[float, float]:
    """CPU seconds and megabytes of resident memory that reading takes in a process of its own."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        began, size = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(path)
        except ValueError:
            pass
        spent = time.process_time() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size
        os.write(into, f"{spent} {grown / 1024}".encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    if not said:
        raise RuntimeError(f"reading {path.name} ended in something other than a ValueError")
    seconds, megabytes = map(float, said.split())
    return seconds, megabytes


def main() -> int:
    dear = []
    worst = {"model": (0.0, 0.0), "checkpoint": (0.0, 0.0)}
    count = 0
    with tempfile.TemporaryDirectory() as folder:  # what is compiled once is not the files' cost
        path = Path(folder, "sound.npz")
        write(path, dict(checkpoint()))
        resumed(path)
    for name, make in files():
        count += 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "hostile.npz")
            make(path)
            for kind, read in (("model", lptml.load), ("checkpoint", resumed)):
                seconds, megabytes = cost(read, path)
                worst[kind] = max(worst[kind][0], seconds), max(worst[kind][1], megabytes)
                if seconds > SECONDS or megabytes > MEGABYTES:
                    dear.append(f"{name} as a {kind}: {seconds:.2f} s, {megabytes:.0f} MB")
    print("| read as | most CPU s | most MB |\n|---|---|---|")
    for kind, (seconds, megabytes) in worst.items():
        print(f"| {kind} | {seconds:.2f} | {megabytes:.0f} |")
    print(
        f"\n{len(dear)} of {count} files cost more than {SECONDS:g} s or {MEGABYTES:g} MB.", *dear, sep="\n"
    )
    return len(dear)


if __name__ == "__main__":
    sys.exit(min(1, main()))
