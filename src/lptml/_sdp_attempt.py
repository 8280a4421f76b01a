"""One attempt at a basis problem in one compiled call: scale, solve, undo, check.

At d = 2 a solve takes 20 microseconds, and each crossing between Python and compiled code, with the arrays it
needs, a few more.
"""

import numpy as np
from numba import njit

from lptml import _sdp_kernel as kernel
from lptml._sdp_scaling import scale_problem
from lptml.certify import check_arrays
from lptml.constraints import Floats


@njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def attempt(
    V: Floats,
    W: Floats,
    sign: Floats,
    bound: Floats,
    R: Floats,
    rho: float,
    C0: Floats,
    c: float,
    lower: float,
    cost: float,
    elastic: float,
    tol: float,
    loose: float,
    max_iter: int,
    accept: float,
    A: Floats,
    X: Floats,
    dual: Floats,
    y: Floats,
    z: Floats,
) -> tuple[int, float, float, float, float, float]:
    """Solve an instance; returns iterations, the elastic variable and the four residuals of (A, dual).

    ``lower``, ``cost`` and ``elastic`` are those of ``sdp.Attempt``. A and its multipliers go to A and
    ``dual``, the solution in the kernel's coordinates to X, y and z. Of a multiplier and its slack one is of
    the order of the tolerance (strict complementarity): such multipliers are set to zero, unless the check
    then fails. What has an elastic variable above ``accept`` is no optimum and not checked.
    """
    m, d = V.shape
    n = m + R.shape[0]
    U = np.empty((m + W.shape[0], d))
    h = np.empty(n)
    units = np.empty(n)
    Rs = np.empty(R.shape)
    Cs = np.empty((d, d))
    T = np.empty((d, d))
    size = scale_problem(V, W, sign, bound, R, rho, C0, lower, cost, U, h, Rs, Cs, T, units)
    _, iterations, t = kernel.solve(
        U, m, sign, h, Rs, Cs, c / size, elastic, tol, loose, max_iter, T, A, X, y, z
    )
    primal = psd = dual_error = gap = np.inf
    if t < accept:
        for i in range(n):
            dual[i] = y[i] / units[i] if y[i] > z[i] else 0.0
        primal, psd, dual_error, gap = check_arrays(V, W, sign, bound, R, rho, C0, c, A, dual)
    if not max(primal, psd, dual_error, gap) <= accept or primal > accept / 3:
        for i in range(n):
            dual[i] = y[i] / units[i]
        if t < accept:
            primal, psd, dual_error, gap = check_arrays(V, W, sign, bound, R, rho, C0, c, A, dual)
    return iterations, t, primal, psd, dual_error, gap
