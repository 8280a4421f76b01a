"""Import scikit-learn without what it loads and the commands do not use: half of their start.

``sklearn.utils.fixes`` imports scipy.stats, and pandas where that is installed, for functions that few ever
call; SciPy takes all that NumPy has, its Fortran translator and its testing tools too. Together they take
longer than the rest of scikit-learn.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def import_sklearn() -> None:
    """Import ``sklearn.base``; scipy.stats, pandas and the like are loaded when something asks for them.

    The collector of garbage never looks at what was imported: nothing of it goes away, and looking takes a
    tenth of a short command's time.
    """
    if "sklearn" in sys.modules:
        return
    gc.disable()
    try:
        with deferred("scipy.stats", "pandas", "numpy.f2py", "numpy.testing"):
            import_module("sklearn.base")
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Let imports of these modules find a stand-in, which loads the module when an attribute is asked for.

    Afterwards they are imported as usual; whoever got a stand-in may keep it. What is not installed is not
    stood in for.

    Examples
    --------
    >>> import sys
    >>> from lptml.cli.imports import deferred
    >>> with deferred("this"):
    ...     import this
    >>> "this" in sys.modules
    False
    """
    there = [name for name in names if name not in sys.modules and find_spec(name) is not None]
    stand_ins = {name: _stand_in(name) for name in there}
    for name, module in stand_ins.items():
        _put(name, module)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            _remove(name, module)


def _put(name: str, module: ModuleType) -> None:
    """Where imports look: among the modules, and in the package, if that has been imported."""
    sys.modules[name] = module
    package, _, own = name.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], own, module)


def _remove(name: str, module: ModuleType) -> None:
    if sys.modules.get(name) is module:
        del sys.modules[name]
    package, _, own = name.rpartition(".")
    if vars(sys.modules.get(package, module)).get(own) is module:
        delattr(sys.modules[package], own)


def _stand_in(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)

    def load(attribute: str) -> Any:
        _remove(name, module)
        return getattr(import_module(name), attribute)

    vars(module)["__getattr__"] = load
    return module
