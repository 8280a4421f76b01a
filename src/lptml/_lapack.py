"""BLAS and LAPACK for compiled code: SciPy's own routines, through its Cython interface.

They are registered under names of ours, so that Numba can keep the compiled code on disk. A call takes
numbers and arrays in the order in which Fortran names them, and hands over where each of them is. Fortran
sees the transpose of a C-ordered array, so its upper triangle is our lower one.

Numba's own ``np.linalg`` functions are not used: they take a tenth of the time that everything here compiles.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, lower_builtin, type_callable

UPPER, TRANSPOSED, NORMAL = map(np.uint8, b"UTN")

_BYTES = ir.IntType(8).as_pointer()
_INTEGER = ir.IntType(32)


class Routine:
    """A routine that compiled code calls; one of LAPACK returns its ``info``, which is not an argument."""

    def __init__(self, library: str, name: str, count: int) -> None:
        symbol, returns_info = f"lptml_{name}", library == "lapack"
        llvm.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.cython_{library}", name))

        places = [Parameter(f"argument{i}", Parameter.POSITIONAL_ONLY) for i in range(count)]

        @type_callable(self)
        def typing(context: Any) -> Any:
            def result(*arguments: Any) -> Any:
                return types.int32 if returns_info else types.void

            typer: Any = result
            typer.__signature__ = Signature(places)  # Numba takes no call with a variable number of arguments
            return typer

        @lower_builtin(self, types.VarArg(types.Any))
        def lowering(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            info = cgutils.alloca_once_value(builder, _INTEGER(0))
            addresses = [_address(context, builder, *each) for each in zip(signature.args, arguments)]
            addresses += [builder.bitcast(info, _BYTES)] * returns_info
            kind = ir.FunctionType(ir.VoidType(), [_BYTES] * len(addresses))
            builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), addresses)
            return builder.load(info) if returns_info else context.get_dummy_value()

    def __call__(self, *arguments: Any) -> int:
        raise TypeError("only compiled code calls Fortran")


def _address(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Where Fortran finds an argument: the data of an array, or a number on the stack."""
    if isinstance(kind, types.Array):
        return builder.bitcast(context.make_array(kind)(context, builder, value).data, _BYTES)
    if value.type == ir.IntType(64):
        value = builder.trunc(value, _INTEGER)
    return builder.bitcast(cgutils.alloca_once_value(builder, value), _BYTES)


dsyrk = Routine("blas", "dsyrk", 10)
dgemm = Routine("blas", "dgemm", 13)
dpotrf = Routine("lapack", "dpotrf", 4)
dpotrs = Routine("lapack", "dpotrs", 7)
dsyev = Routine("lapack", "dsyev", 8)
