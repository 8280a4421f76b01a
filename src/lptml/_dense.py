"""Dense linear algebra for the interior-point kernel: plain loops when small, BLAS and LAPACK when large.

Calls into BLAS cost about a microsecond each, which is what a whole step costs at d = 2; from a few dozen
rows on, BLAS is many times faster than any loop.

Matrices are C-ordered. A Cholesky factor is lower triangular and lives in the lower triangle of its array;
the strict upper triangle is never read or written, so callers may keep data there.
"""

import numpy as np

from lptml._lapack import NORMAL, TRANSPOSED, UPPER, dgemm, dpotrf, dpotrs, dsyrk
from lptml._shared import FixedMatrix, Matrix, Vector, leaf

BLAS_FROM = 40  # rows from which a BLAS call beats the loops (measured; flat between 24 and 64)


@leaf
def cholesky(a: Matrix) -> bool:
    """Factor a = LL' in the lower triangle of a; False if a is not numerically positive definite."""
    n = a.shape[0]
    if n >= BLAS_FROM:
        return dpotrf(UPPER, n, a, n) == 0
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


@leaf
def cholesky_solve(L: Matrix, x: Vector) -> None:
    """x <- (LL')^-1 x."""
    n = L.shape[0]
    if n >= BLAS_FROM:
        dpotrs(UPPER, n, 1, L, n, x, n)
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


@leaf
def triangular_inverse(L: Matrix, out: Matrix) -> None:
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


@leaf
def gram(B: Matrix, out: Matrix) -> None:
    """Lower triangle of out <- BB'."""
    k, d = B.shape
    if k >= BLAS_FROM:
        dsyrk(UPPER, TRANSPOSED, k, d, 1.0, B, d, 0.0, out, k)
        return
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for p in range(d):
                total += B[i, p] * B[j, p]
            out[i, j] = total


@leaf
def product(a: FixedMatrix, b: FixedMatrix, out: Matrix) -> None:
    """out <- ab."""
    n, k = a.shape
    m = b.shape[1]
    if n * k * m >= 8000:
        # Fortran sees the transposes: out' = b'a'.
        dgemm(NORMAL, NORMAL, m, n, k, 1.0, b, m, a, k, 0.0, out, m)
        return
    if m == 2:  # the loop over columns would cost more than what it does
        for i in range(n):
            first = second = 0.0
            for p in range(k):
                first += a[i, p] * b[p, 0]
                second += a[i, p] * b[p, 1]
            out[i, 0] = first
            out[i, 1] = second
        return
    for i in range(n):
        for j in range(m):
            out[i, j] = 0.0
        for p in range(k):
            factor = a[i, p]
            for j in range(m):
                out[i, j] += factor * b[p, j]


@leaf
def transpose(a: Matrix, out: Matrix) -> None:
    """out <- a'."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]


@leaf
def combine(alpha: float, a: Matrix, beta: float, b: Matrix, out: Matrix) -> None:
    """out <- alpha a + beta b."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = alpha * a[i, j] + beta * b[i, j]


@leaf
def sandwich(a: Matrix, b: Matrix, c: Matrix, work: Matrix, out: Matrix) -> None:
    """out <- the symmetric part of abc."""
    product(a, b, work)
    product(work, c, out)
    for i in range(out.shape[0]):
        for j in range(i):
            mean = 0.5 * (out[i, j] + out[j, i])
            out[i, j] = mean
            out[j, i] = mean


@leaf
def inner(a: Matrix, b: Matrix) -> float:
    """<a, b> for two matrices."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@leaf
def smallest_eigenvalue(a: Matrix, diagonal: Vector, off: Vector) -> float:
    """A lower bound on the smallest eigenvalue of symmetric a, within a thousandth of it. Destroys a.

    Householder reduction to a tridiagonal matrix, then bisection with Sturm counts. Stops early when the
    eigenvalue is known to exceed -1/2, where a step to the boundary is longer than the longest one taken.
    """
    n = a.shape[0]
    if n == 2:
        mean = 0.5 * (a[0, 0] + a[1, 1])
        half = 0.5 * (a[0, 0] - a[1, 1])
        return mean - np.sqrt(half * half + a[1, 0] * a[1, 0])
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
    for _ in range(60):
        if not (high - low > 1e-3 * abs(high) and low < -0.5):
            break
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
