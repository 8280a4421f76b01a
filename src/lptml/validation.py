"""What may enter a set of constraints: every ValueError of the constructors is raised here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Lengths beyond these have squares, and products of squares, that overflow or vanish in float64.
LONGEST = 1e100
SHORTEST = 1e-100


def check_points(X: ArrayLike, name: str, *, ndim: int) -> Floats:
    """X as a C-contiguous float64 array of finite numbers with at least one feature."""
    array = np.asarray(X)
    if array.dtype == object or array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold real numbers: {error}") from None
    array = np.ascontiguousarray(array, dtype=np.float64)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got an array of shape {array.shape}")
    if array.shape[-1] == 0:
        raise ValueError(f"{name} has no features: shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return array


def check_verdicts(y: ArrayLike, n: int) -> Floats:
    """y as an array of n numbers, each +1 or -1."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have one verdict a constraint: expected shape ({n},), got {y.shape}")
    if n and not np.isin(y, (-1, 1)).all():
        wrong = y[~np.isin(y, (-1, 1))].tolist()[0]
        raise ValueError(f"y must hold +1 (similar) and -1 (dissimilar) only, found {wrong!r}")
    return y.astype(np.float64)


def check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """(u, l) as positive finite floats."""
    try:
        u, l = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair of numbers (u, l), got {bounds!r}") from None
    if not (0 < u < np.inf and 0 < l < np.inf):
        raise ValueError(f"bounds (u, l) must be positive and finite, got ({u}, {l})")
    if not (SHORTEST <= min(u, l) and max(u, l) <= LONGEST):
        raise ValueError(
            f"bounds (u, l) must lie between {SHORTEST:g} and {LONGEST:g}, got ({u:g}, {l:g}): their squares "
            "would leave the range of floating point"
        )
    return u, l


def check_margin(margin: float) -> float:
    """The margin of comparisons, in squared distance, as a positive float."""
    if not (np.isfinite(margin) and margin > 0):
        raise ValueError(f"margin must be a positive number, got {margin!r}")
    if not SHORTEST**2 <= margin <= LONGEST**2:
        raise ValueError(f"margin must lie between {SHORTEST**2:g} and {LONGEST**2:g}, got {margin!r}")
    return float(margin)


def check_weight(weight: ArrayLike | None, n: int, name: str = "weight") -> Floats:
    """Weights on the exact-sum grid; None means 1 each."""
    if weight is None:
        return np.ones(n)
    array = np.asarray(weight, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{name} must hold finite numbers that are not negative")
    rounded = exact_sum_grid(array)
    if n and not rounded.any():
        raise ValueError(f"{name} is zero everywhere: nothing would be learned")
    return rounded


def exact_sum_grid(weight: Floats) -> Floats:
    """Weights rounded to multiples of a power of two so coarse that every partial sum is exact in float64."""
    total = weight.sum()
    if not total > 0:
        return weight.copy()
    grid = 2.0 ** max(np.ceil(np.log2(total)) - 50, -1022.0)
    return np.round(weight / grid) * grid


def check_tuples(tuples: ArrayLike, name: str, size: int) -> Floats:
    """Tuples of ``size`` points each, as an array of shape (n, size, d)."""
    array = check_points(tuples, name, ndim=3)
    if array.shape[1] != size:
        raise ValueError(f"{name} must have shape (n, {size}, d), got {array.shape}")
    return array
