"""Dense linear algebra for the interior-point kernel: plain loops when small, BLAS and LAPACK when large.

A call into BLAS costs about a tenth of a microsecond, several times what a product costs at d = 2; from a few
dozen rows on, BLAS is two to three times as fast as any loop.

Matrices are C-ordered. A Cholesky factor is lower triangular and lives in the lower triangle of its array;
the strict upper triangle is never read or written, so callers may keep data there.
"""

import numpy as np
from numpy.typing import NDArray

from lptml._jit import inlined, kernel

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

BLAS_FROM = 40  # rows from which BLAS beats the loops (measured; flat between 24 and 64)


@kernel
def cholesky(a: Matrix) -> bool:
    """Factor a = LL' in the lower triangle of a; False if a is not numerically positive definite."""
    n = a.shape[0]
    definite = True
    if n >= BLAS_FROM:
        definite = _lapack_cholesky(a)
    else:
        for j in range(n):
            pivot = a[j, j]
            for p in range(j):
                pivot -= a[j, p] * a[j, p]
            if not pivot > 0.0:
                definite = False
                break
            pivot = np.sqrt(pivot)
            a[j, j] = pivot
            for i in range(j + 1, n):
                total = a[i, j]
                for p in range(j):
                    total -= a[i, p] * a[j, p]
                a[i, j] = total / pivot
    return definite


@kernel
def _lapack_cholesky(a: Matrix) -> bool:
    try:
        L = np.linalg.cholesky(a)
    except Exception:  # compiled code can name no other; a breakdown is a status here
        return False
    for i in range(a.shape[0]):
        for j in range(i + 1):
            a[i, j] = L[i, j]
    return True


@kernel
def cholesky_solve(L: Matrix, x: Vector) -> None:
    """x <- (LL')^-1 x."""
    n = L.shape[0]
    for i in range(n):
        total = x[i]
        start = 0
        if i >= BLAS_FROM:  # one sum would wait for itself
            second = third = fourth = 0.0
            for p in range(0, i - 3, 4):
                total -= L[i, p] * x[p]
                second -= L[i, p + 1] * x[p + 1]
                third -= L[i, p + 2] * x[p + 2]
                fourth -= L[i, p + 3] * x[p + 3]
            total += second + third + fourth
            start = i - i % 4
        for p in range(start, i):
            total -= L[i, p] * x[p]
        x[i] = total / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        xi = x[i]
        for p in range(i):
            x[p] -= L[i, p] * xi


@kernel
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


@kernel
def gram(B: Matrix, out: Matrix) -> None:
    """Lower triangle of out <- BB'."""
    k, d = B.shape
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for p in range(d):
                total += B[i, p] * B[j, p]
            out[i, j] = total


@inlined
def _multiply(a: Matrix, b: Matrix, out: Matrix) -> None:
    n, k = a.shape
    m = b.shape[1]
    if m == 2:  # the loop over columns would cost more than what it does
        for i in range(n):
            first = second = 0.0
            for p in range(k):
                first += a[i, p] * b[p, 0]
                second += a[i, p] * b[p, 1]
            out[i, 0] = first
            out[i, 1] = second
    else:
        for i in range(n):
            for j in range(m):
                out[i, j] = 0.0
            for p in range(k):
                factor = a[i, p]
                for j in range(m):
                    out[i, j] += factor * b[p, j]


@kernel
def multiply(a: Matrix, b: Matrix, out: Matrix) -> None:
    """out <- ab by loops."""
    _multiply(a, b, out)


@kernel
def product(a: Matrix, b: Matrix, out: Matrix) -> None:
    """out <- ab."""
    if a.shape[0] >= BLAS_FROM or a.shape[1] >= BLAS_FROM:
        np.dot(a, b, out)
    else:
        _multiply(a, b, out)


@kernel
def transpose(a: Matrix, out: Matrix) -> None:
    """out <- a'."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]


@kernel
def combine(alpha: float, a: Matrix, beta: float, b: Matrix, out: Matrix) -> None:
    """out <- alpha a + beta b."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = alpha * a[i, j] + beta * b[i, j]


@kernel
def sandwich(a: Matrix, b: Matrix, c: Matrix, work: Matrix, out: Matrix) -> None:
    """out <- the symmetric part of abc."""
    _multiply(a, b, work)
    _multiply(work, c, out)
    for i in range(out.shape[0]):
        for j in range(i):
            mean = 0.5 * (out[i, j] + out[j, i])
            out[i, j] = mean
            out[j, i] = mean


@kernel
def inner(a: Matrix, b: Matrix) -> float:
    """<a, b> for two matrices."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@kernel
def smallest_of_two(a: Matrix) -> float:
    """The smallest eigenvalue of a symmetric 2 x 2 matrix."""
    mean = 0.5 * (a[0, 0] + a[1, 1])
    half = 0.5 * (a[0, 0] - a[1, 1])
    return mean - np.sqrt(half * half + a[1, 0] * a[1, 0])


@kernel
def smallest_eigenvalue(a: Matrix, work: Matrix) -> float:
    """A lower bound on the smallest eigenvalue of symmetric a, within a thousandth of it.

    It destroys a, and the first two rows of ``work``.

    Householder reduction to a tridiagonal matrix, then bisection with Sturm counts. Stops early when the
    eigenvalue is known to exceed -1/2, where a step to the boundary is longer than the longest one taken.
    """
    n = a.shape[0]
    if n == 1:
        return a[0, 0] - 1e-15 * abs(a[0, 0])
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
            # work[1] holds p = scale * A v, then A <- A - v q' - q v'
            dot = 0.0
            for i in range(j + 1, n):
                total = 0.0
                for p in range(j + 1, i + 1):
                    total += a[i, p] * a[p, j]
                for p in range(i + 1, n):
                    total += a[p, i] * a[p, j]
                work[1, i] = scale * total
                dot += work[1, i] * a[i, j]
            half = 0.5 * scale * dot
            for i in range(j + 1, n):
                work[1, i] -= half * a[i, j]
            for i in range(j + 1, n):
                vi = a[i, j]
                qi = work[1, i]
                for p in range(j + 1, i + 1):
                    a[i, p] -= vi * work[1, p] + qi * a[p, j]
            a[j + 1, j] = alpha
    for i in range(n):
        work[0, i] = a[i, i]
        work[1, i] = a[i, i - 1] if i > 0 else 0.0
    low = np.inf
    high = np.inf
    for i in range(n):
        radius = abs(work[1, i]) + (abs(work[1, i + 1]) if i + 1 < n else 0.0)
        low = min(low, work[0, i] - radius)
        high = min(high, work[0, i])
    low -= 1e-15 * abs(low)
    for _ in range(60):
        if not (high - low > 1e-3 * abs(high) and low < -0.5):
            break
        middle = 0.5 * (low + high)
        pivot = 1.0
        below = False
        for i in range(n):
            pivot = work[0, i] - middle - (work[1, i] * work[1, i] / pivot if i > 0 else 0.0)
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
