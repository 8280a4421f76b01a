"""BLAS and LAPACK for compiled code: SciPy's own routines, through its Cython interface.

They are registered under names of ours, so that Numba can keep the compiled code on disk, and take pointers,
also to numbers. Fortran sees the transpose of a C-ordered array, so its upper triangle is our lower one.
Numba's own ``np.linalg`` functions are not used: they take a tenth of the time that everything here compiles.
"""

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.extending import get_cython_function_address

UPPER, TRANSPOSED, NORMAL = (np.array([ord(letter)], np.uint8) for letter in "UTN")
ONE, ZERO = np.array([1.0]), np.array([0.0])
COUNT = np.array([1], np.int32)  # one right-hand side


def _routine(library: str, name: str, arguments: int) -> types.ExternalFunction:
    llvm.add_symbol(f"lptml_{name}", get_cython_function_address(f"scipy.linalg.cython_{library}", name))
    return types.ExternalFunction(f"lptml_{name}", types.void(*[types.voidptr] * arguments))


dsyrk = _routine("blas", "dsyrk", 10)
dgemm = _routine("blas", "dgemm", 13)
dpotrf = _routine("lapack", "dpotrf", 5)
dpotrs = _routine("lapack", "dpotrs", 8)
dsyev = _routine("lapack", "dsyev", 9)
