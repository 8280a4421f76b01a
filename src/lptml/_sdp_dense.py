"""Dense linear algebra for the interior-point kernel: plain loops when small, BLAS and LAPACK when large.

Calls into BLAS cost about a microsecond each, which is what a whole step costs at d = 2; from a few dozen rows
on, BLAS is many times faster than any loop. The routines are SciPy's own (its Cython interface), registered
under names of ours so that Numba can cache the compiled code on disk.

Matrices are C-ordered. A Cholesky factor is lower triangular and lives in the lower triangle of its array;
the strict upper triangle is never read or written, so callers may keep data there.
"""

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types
from numba.extending import get_cython_function_address

BLAS_FROM = 40  # rows from which a BLAS call beats the loops (measured; flat between 24 and 64)

for _module, _name in (
    ("scipy.linalg.cython_blas", "dsyrk"),
    ("scipy.linalg.cython_blas", "dgemm"),
    ("scipy.linalg.cython_lapack", "dpotrf"),
    ("scipy.linalg.cython_lapack", "dpotrs"),
):
    llvm.add_symbol(f"lptml_{_name}", get_cython_function_address(_module, _name))

_ptr = types.voidptr
_dsyrk = types.ExternalFunction("lptml_dsyrk", types.void(*[_ptr] * 10))
_dgemm = types.ExternalFunction("lptml_dgemm", types.void(*[_ptr] * 13))
_dpotrf = types.ExternalFunction("lptml_dpotrf", types.void(*[_ptr] * 5))
_dpotrs = types.ExternalFunction("lptml_dpotrs", types.void(*[_ptr] * 8))


@njit(cache=True, nogil=True)
def cholesky(a):
    """Factor a = LL' in the lower triangle of a; False if a is not numerically positive definite."""
    n = a.shape[0]
    if n >= BLAS_FROM:
        # Fortran sees the transpose, so its upper triangle is our lower one.
        code = np.array([85], np.uint8)  # "U"
        size = np.array([n, 0], np.int32)
        info = size[1:]
        _dpotrf(code.ctypes, size.ctypes, a.ctypes, size.ctypes, info.ctypes)
        return info[0] == 0
    for j in range(n):
        pivot = a[j, j]
        for p in range(j):
            pivot -= a[j, p] * a[j, p]
        if not pivot > 0.0:
            return False
        pivot = np.sqrt(pivot)
        a[j, j] = pivot
        for i in range(j + 1, n):
            total = a[i, j]
            for p in range(j):
                total -= a[i, p] * a[j, p]
            a[i, j] = total / pivot
    return True


@njit(cache=True, nogil=True)
def cholesky_solve(L, x):
    """x <- (LL')^-1 x."""
    n = L.shape[0]
    if n >= BLAS_FROM:
        code = np.array([85], np.uint8)
        size = np.array([n, 1, 0], np.int32)
        one = size[1:]
        info = size[2:]
        _dpotrs(
            code.ctypes, size.ctypes, one.ctypes, L.ctypes, size.ctypes, x.ctypes, size.ctypes, info.ctypes
        )
        return
    for i in range(n):
        total = x[i]
        for p in range(i):
            total -= L[i, p] * x[p]
        x[i] = total / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        xi = x[i]
        for p in range(i):
            x[p] -= L[i, p] * xi


@njit(cache=True, nogil=True)
def triangular_inverse(L, out):
    """out <- L^-1 for lower triangular L; the upper triangle of out is set to zero."""
    n = L.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
        diagonal = 1.0 / L[i, i]
        for p in range(i):
            factor = L[i, p] * diagonal
            for j in range(p + 1):
                out[i, j] -= factor * out[p, j]
        out[i, i] = diagonal


@njit(cache=True, nogil=True)
def gram(B, out):
    """Lower triangle of out <- BB'."""
    k, d = B.shape
    if k >= BLAS_FROM:
        code = np.array([85, 84], np.uint8)  # "U", "T"
        size = np.array([k, d], np.int32)
        value = np.array([1.0, 0.0])
        trans = code[1:]
        depth = size[1:]
        zero = value[1:]
        _dsyrk(
            code.ctypes,
            trans.ctypes,
            size.ctypes,
            depth.ctypes,
            value.ctypes,
            B.ctypes,
            depth.ctypes,
            zero.ctypes,
            out.ctypes,
            size.ctypes,
        )
        return
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for p in range(d):
                total += B[i, p] * B[j, p]
            out[i, j] = total


@njit(cache=True, nogil=True)
def product(a, b, out):
    """out <- ab."""
    n, k = a.shape
    m = b.shape[1]
    if n * k * m >= 8000:
        # Fortran sees the transposes: out' = b'a'.
        code = np.array([78], np.uint8)  # "N"
        size = np.array([m, n, k], np.int32)
        value = np.array([1.0, 0.0])
        rows = size[1:]
        depth = size[2:]
        zero = value[1:]
        _dgemm(
            code.ctypes,
            code.ctypes,
            size.ctypes,
            rows.ctypes,
            depth.ctypes,
            value.ctypes,
            b.ctypes,
            size.ctypes,
            a.ctypes,
            depth.ctypes,
            zero.ctypes,
            out.ctypes,
            size.ctypes,
        )
        return
    for i in range(n):
        for j in range(m):
            out[i, j] = 0.0
        for p in range(k):
            factor = a[i, p]
            for j in range(m):
                out[i, j] += factor * b[p, j]


@njit(cache=True, nogil=True)
def transpose(a, out):
    """out <- a'."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]


@njit(cache=True, nogil=True)
def copy_matrix(a, out):
    """out <- a; a call compiles much faster than a slice assignment."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j]


@njit(cache=True, nogil=True)
def symmetric_part(a):
    """a <- (a + a') / 2."""
    for i in range(a.shape[0]):
        for j in range(i):
            mean = 0.5 * (a[i, j] + a[j, i])
            a[i, j] = mean
            a[j, i] = mean


@njit(cache=True, nogil=True)
def inner(a, b):
    """<a, b> for two matrices."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@njit(cache=True, nogil=True)
def smallest_eigenvalue(a, diagonal, off):
    """A lower bound on the smallest eigenvalue of symmetric a, within a thousandth of it. Destroys a.

    Householder reduction to a tridiagonal matrix, then bisection with Sturm counts. Stops early when the
    eigenvalue is known to exceed -1/2, where a step to the boundary is longer than the longest one taken.
    """
    n = a.shape[0]
    for j in range(n - 2):
        norm = 0.0
        for i in range(j + 2, n):
            norm += a[i, j] * a[i, j]
        if norm > 0.0:
            first = a[j + 1, j]
            length = np.sqrt(first * first + norm)
            alpha = -length if first > 0.0 else length
            head = first - alpha
            a[j + 1, j] = head
            scale = 2.0 / (head * head + norm)
            # off holds p = scale * A v, then A <- A - v q' - q v'
            dot = 0.0
            for i in range(j + 1, n):
                total = 0.0
                for p in range(j + 1, i + 1):
                    total += a[i, p] * a[p, j]
                for p in range(i + 1, n):
                    total += a[p, i] * a[p, j]
                off[i] = scale * total
                dot += off[i] * a[i, j]
            half = 0.5 * scale * dot
            for i in range(j + 1, n):
                off[i] -= half * a[i, j]
            for i in range(j + 1, n):
                vi = a[i, j]
                qi = off[i]
                for p in range(j + 1, i + 1):
                    a[i, p] -= vi * off[p] + qi * a[p, j]
            a[j + 1, j] = alpha
    for i in range(n):
        diagonal[i] = a[i, i]
        off[i] = a[i, i - 1] if i > 0 else 0.0
    low = np.inf
    high = np.inf
    for i in range(n):
        radius = abs(off[i]) + (abs(off[i + 1]) if i + 1 < n else 0.0)
        low = min(low, diagonal[i] - radius)
        high = min(high, diagonal[i])
    low -= 1e-15 * abs(low)
    while high - low > 1e-3 * abs(high) and low < -0.5:
        middle = 0.5 * (low + high)
        pivot = 1.0
        below = False
        for i in range(n):
            pivot = diagonal[i] - middle - (off[i] * off[i] / pivot if i > 0 else 0.0)
            if pivot < 0.0:
                below = True
                break
            if pivot == 0.0:
                pivot = 1e-300
        if below:
            high = middle
        else:
            low = middle
    return low
