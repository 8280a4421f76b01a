"""Functions that are compiled once, whoever calls them.

Numba puts the code of a function into every caller, where LLVM optimises and emits it again, at every level
of calls: that was half of the time that the first solve after an installation took. A ``Unit`` is called
through a pointer instead, as a function of another library would be. Its callers compile without it and in
any order; the pointer is filled in when it is compiled or loaded from disk.

So that no pointer is followed too early, what Python calls and what calls a unit is a unit itself.
"""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import lower_builtin, type_callable
from numpy.typing import NDArray

from lptml._compile import announce
from lptml.validation import Floats, Ints

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

_SCALARS = {float: types.float64, int: types.int64, bool: types.boolean, type(None): types.void}


class Unit(Generic[P, R]):
    """A compiled function that its callers reach through a pointer; its type hints are its signature.

    Parameters
    ----------
    function : callable
    from_python : bool
        Whether Python calls it too; if not, there it runs as it is written.
    may_fail : bool
        Whether it allocates memory, or calls what does: then its callers look at its status.
    """

    def __init__(self, function: Callable[P, R], *, from_python: bool, may_fail: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.dispatcher = njit(
            cache=True,
            nogil=True,
            error_model="numpy",
            no_cpython_wrapper=not from_python,
            no_cfunc_wrapper=True,
        )(function)
        self._call = self.dispatcher if from_python else function
        self._may_fail = may_fail
        self._pointer = ctypes.c_void_p()
        self._declare(f"{function.__module__}.{function.__name__}")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self._pointer.value:
            self.load()
        result: R = self._call(*args, **kwargs)
        return result

    def load(self) -> None:
        """Compile it and the units that it calls, or load them from disk.

        No garbage is collected meanwhile: looking for it among all that Numba makes takes a seventh of the
        time.
        """
        missing = [unit for unit in _reached(self) if not unit._pointer.value]
        announce(*(unit.dispatcher for unit in missing))
        collecting = gc.isenabled()
        gc.disable()
        try:
            for unit in missing:
                unit._compile()
        finally:
            if collecting:
                gc.enable()

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
            if self._may_fail:
                with builder.if_then(status.is_error, likely=False):
                    convention.return_status_propagate(builder, status)
            return result


def leaf(function: Callable[P, R]) -> Unit[P, R]:
    """Decorator of a function that works on the arrays it is given, so that nothing can go wrong.

    Looking whether something did would take a tenth of a solve at d = 2.
    """
    return Unit(function, from_python=False, may_fail=False)


def unit(function: Callable[P, R]) -> Unit[P, R]:
    """Decorator of a function that only compiled code calls."""
    return Unit(function, from_python=False, may_fail=True)


def entry(function: Callable[P, R]) -> Unit[P, R]:
    """Decorator of a function that Python calls, too."""
    return Unit(function, from_python=True, may_fail=True)


def _reached(unit: Unit[Any, Any]) -> list[Unit[Any, Any]]:
    """The unit and the units that it calls, directly or not."""
    found: dict[Any, None] = {}
    waiting: list[Any] = [unit]
    while waiting:
        function = waiting.pop()
        if function not in found:
            found[function] = None
            known, names = function.py_func.__globals__, function.py_func.__code__.co_names
            waiting += [known[name] for name in names if hasattr(known.get(name), "py_func")]
    return [function for function in found if isinstance(function, Unit)]


def _numba_type(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if get_origin(hint) is tuple:
        return types.Tuple([_numba_type(each) for each in get_args(hint)])
    return _SCALARS[hint]
