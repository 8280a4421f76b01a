"""Functions that are compiled once, whoever calls them.

Numba puts the code of a function into every caller, where LLVM optimises and emits it again, at every level
of calls: that was half of the time that the first solve after an installation took. A shared function is
called through a pointer instead, as a function of another library would be. Its callers compile without it
and in any order; the pointer is filled in when it is compiled or loaded from disk.

So that no pointer is followed too early, what Python calls and what calls a shared function is an ``entry``,
which first loads all that it reaches.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import threading
from collections.abc import Callable
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import lower_builtin, type_callable
from numpy.typing import NDArray

from lptml._compile import OPTIONS, announce
from lptml.constraints.checks import Floats, Ints

P = ParamSpec("P")
R = TypeVar("R")

Vector = Annotated[Floats, types.float64[::1]]
Matrix = Annotated[Floats, types.float64[:, ::1]]
Matrices = Annotated[Floats, types.float64[:, :, ::1]]
Indices = Annotated[Ints, types.int64[::1]]
# What may only be read, as the arrays of a ``ConstraintSet``.
FixedMatrix = Annotated[Floats, types.Array(types.float64, 2, "C", readonly=True)]
FixedVector = Annotated[Floats, types.Array(types.float64, 1, "C", readonly=True)]
FixedSigns = Annotated[NDArray[np.int8], types.Array(types.int8, 1, "C", readonly=True)]

_loading = threading.Lock()
_SCALARS = {float: types.float64, int: types.int64, bool: types.boolean, type(None): types.void}


class Shared(Generic[P, R]):
    """A compiled function that its callers reach through a pointer; its type hints are its signature.

    Parameters
    ----------
    function : callable
    is_entry : bool
        Whether Python calls it, too, and it may allocate memory; then its callers look at its status. If not,
        in Python it runs as it is written.
    """

    def __init__(self, function: Callable[P, R], *, is_entry: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.dispatcher = njit(**OPTIONS, no_cpython_wrapper=not is_entry, _nrt=is_entry)(function)
        self._is_entry = is_entry
        self._loaded = False
        self._pointer = ctypes.c_void_p()
        self._declare(f"{function.__module__}.{function.__name__}")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._is_entry and not self._loaded:
            self.load()
        result: R = (self.dispatcher if self._is_entry else self.py_func)(*args, **kwargs)
        return result

    def load(self) -> None:
        """Compile it and the functions that it shares with others, or load them from disk.

        No garbage is collected meanwhile: looking for it among all that Numba makes takes a seventh of the
        time.
        """
        if config.DISABLE_JIT:
            raise RuntimeError("the solvers of lptml are compiled by Numba: unset NUMBA_DISABLE_JIT")
        with _loading:
            missing = [each for each in _reached(self) if not each._loaded]
            announce(*(each.dispatcher for each in missing))
            collecting = gc.isenabled()
            gc.disable()
            try:
                for each in missing:
                    each._compile()
            finally:
                if collecting:
                    gc.enable()
            for each in missing:  # only now: another thread may call any of them
                each._loaded = True

    @functools.cached_property
    def _signature(self) -> Any:
        hints = get_type_hints(self.py_func, include_extras=True)
        result = _numba_type(hints.pop("return"))
        return result(*map(_numba_type, hints.values()))

    def _compile(self) -> None:
        self.dispatcher.compile(self._signature)
        compiled = self.dispatcher.overloads[self._signature.args]
        self._pointer.value = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)

    def _declare(self, symbol: str) -> None:
        """Tell Numba what a call from compiled code is: one through the pointer, which ``symbol`` names."""
        llvm.add_symbol(symbol, ctypes.addressof(self._pointer))

        @type_callable(self)
        def typing(context: Any) -> Any:
            return functools.wraps(self.py_func)(lambda *arguments: self._signature)

        @lower_builtin(self, *self._signature.args)
        def lowering(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(signature.return_type, signature.args).as_pointer()
            place = builder.module.globals.get(symbol) or ir.GlobalVariable(builder.module, kind, symbol)
            status, result = convention.call_function(
                builder, builder.load(place), signature.return_type, signature.args, arguments
            )
            if self._is_entry:
                with builder.if_then(status.is_error, likely=False):
                    convention.return_status_propagate(builder, status)
            return result


def leaf(function: Callable[P, R]) -> Shared[P, R]:
    """Decorator of a function that only compiled code calls and that works on the arrays it is given.

    Nothing can go wrong, and looking whether something did takes a tenth of a solve at d = 2. Nobody counts
    references either, which is a fifth of what such a function compiles to.
    """
    return Shared(function, is_entry=False)


def entry(function: Callable[P, R]) -> Shared[P, R]:
    """Decorator of a function that Python calls, or that allocates memory."""
    return Shared(function, is_entry=True)


def _reached(start: Shared[Any, Any]) -> list[Shared[Any, Any]]:
    """The function and the shared functions that it calls, directly or not."""
    found: dict[Any, None] = {}
    waiting: list[Any] = [start]
    while waiting:
        function = waiting.pop()
        if function not in found:
            found[function] = None
            known, names = function.py_func.__globals__, function.py_func.__code__.co_names
            waiting += [known[name] for name in names if hasattr(known.get(name), "py_func")]
    return [function for function in found if isinstance(function, Shared)]


def _numba_type(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if get_origin(hint) is tuple:
        return types.Tuple([_numba_type(each) for each in get_args(hint)])
    return _SCALARS[hint]
