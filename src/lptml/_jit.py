"""How the inner loops are compiled, and the one line that says that they are.

Numba compiles a function at its first call and keeps the machine code beside the source, or in the user's
cache folder. Instead of leaving the user to wonder why the first call is slow, ``announce`` looks whether
that has happened and, if not, writes one line through the logger ``lptml`` at WARNING level, which Python
shows on the terminal unless logging was configured otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

logger = logging.getLogger("lptml")
_seen: set[Any] = set()
_said = False


def kernel(function: Callable[..., Any]) -> Any:
    """Decorator of a function to be compiled, whether Python calls it or another kernel.

    Divisions by zero give infinities, as in NumPy: no test at every division. No ``fastmath``: sums in any
    order take a quarter off a solve at d = 2, but then the order, and the last bits, depend on where in
    memory the arrays happen to lie.

    Where nothing can be written, neither beside the source nor in the user's cache folder, the machine code
    lasts as long as the process.
    """
    try:
        return njit(function, cache=True, **_OPTIONS)
    except RuntimeError:  # "no locator available": no folder for the cache
        return njit(function, **_OPTIONS)


def inlined(function: Callable[..., Any]) -> Any:
    """Decorator of a function that becomes part of every kernel that calls it.

    A call costs 10 nanoseconds for every array among the arguments of a function that calls others in turn,
    since Numba counts references to it. At d = 2 that would double the time of a solve.
    """
    return njit(function, inline="always", **_OPTIONS)


def announce(*kernels: Any) -> None:
    """Log a notice, once in a process, if any of these kernels is neither compiled nor cached on disk.

    Call it right before the first use of a kernel; later calls cost a fraction of a microsecond.

    Parameters
    ----------
    kernels : functions decorated with ``kernel``
    """
    global _said
    if _said or _seen.issuperset(kernels):
        return
    _seen.update(kernels)
    if not all(map(_is_compiled, kernels)):
        _said = True
        how_often = "once for this installation"
        if not all(each.stats.cache_path for each in kernels):
            how_often = "in every process: no folder for compiled code can be written (set NUMBA_CACHE_DIR)"
        logger.warning("lptml: compiling, about 20 seconds, %s", how_often)


def _is_compiled(kernel: Any) -> bool:
    """Whether a kernel is in memory, or in a file that is newer than its source."""
    if getattr(kernel, "signatures", True):  # plain Python functions need no compiling (NUMBA_DISABLE_JIT)
        return True
    if kernel.stats.cache_path is None:
        return False
    source = Path(kernel.py_func.__code__.co_filename)
    try:
        written = source.stat().st_mtime
        files = Path(kernel.stats.cache_path).glob(f"{source.stem}.{kernel.__name__}-*.nbi")
        return any(file.stat().st_mtime >= written for file in files)
    except OSError:
        return False
