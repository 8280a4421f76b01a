"""What may enter a set of constraints: every ValueError of the constructors is raised here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Lengths beyond these have squares, and products of squares, that overflow or vanish in float64.
LONGEST = 1e100
SHORTEST = 1e-100

#: The largest weight must lie between these: pairs weigh the products of their points' weights.
LIGHTEST = 1e-50
HEAVIEST = 1e50


class InputTypeError(ValueError, TypeError):
    """Input that no learner takes: sparse, dates, or objects for numbers (a TypeError to scikit-learn)."""


def refuse_other_than_numbers(data: Any, name: str) -> None:
    """Refuse what NumPy would turn into numbers that nobody meant: dates, complex and masked values.

    A missing date would be -9.2e18, a complex number would lose its imaginary part, and under the mask of a
    masked array stands whatever it covers.
    """
    from scipy.sparse import issparse  # `lptml fit --help` need not wait for SciPy

    if issparse(data):
        raise InputTypeError(
            "sparse input is not supported: pass a dense array, for instance with .toarray()"
        )
    for dtype in getattr(data, "dtypes", ()) if hasattr(data, "columns") else [getattr(data, "dtype", "")]:
        if str(dtype).lower().startswith(("date", "time", "duration")):
            raise InputTypeError(f"{name} must hold numbers, got {dtype}: turn dates and times into numbers")
        if getattr(dtype, "kind", "") == "c":
            raise InputTypeError(f"Complex data not supported: {name} must hold real numbers")
    if np.ma.is_masked(data):
        raise ValueError(f"{name} has masked values: leave them out, or fill them in with .filled()")


def as_floats(data: Any, name: str) -> Floats:
    """C-contiguous float64, or a ValueError that names what holds something else."""
    refuse_other_than_numbers(data, name)
    try:
        array = np.asarray(data)
        refuse_other_than_numbers(array, name)  # what a list holds
        with np.errstate(over="ignore"):  # longer floats that become infinite are refused as such
            return np.asarray(array, dtype=np.float64, order="C")
    except InputTypeError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputTypeError(f"{name} must hold real numbers: {error}") from None


def check_points(X: ArrayLike, name: str, *, ndim: int) -> Floats:
    """X as a C-contiguous float64 array of finite numbers with at least one feature."""
    array = as_floats(X, name)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got an array of shape {array.shape}")
    if array.shape[-1] == 0:
        raise ValueError(f"{name} has no features: shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    check_magnitude(array, name)
    return array


def as_labels(y: Any) -> NDArray[Any]:
    """Labels of any type, none of them missing."""
    if np.ma.is_masked(y):
        raise ValueError("y has masked values: leave them out, or mark them with -1")
    labels = np.asarray(y)
    listed = labels.flat if labels.dtype.kind == "O" else ()
    missing = any(isinstance(label, float) and math.isnan(label) for label in listed)
    if missing or (labels.dtype.kind == "f" and np.isnan(labels).any()):
        raise ValueError("y contains NaN: leave such points out, or mark them with -1")
    return labels


def check_magnitude(points: Floats, name: str) -> None:
    """Refuse values whose squares overflow."""
    if points.size and not (points.min() >= -LONGEST and points.max() <= LONGEST):
        raise ValueError(
            f"{name} holds a value of magnitude above {LONGEST:g}, "
            "whose squared distances overflow: rescale the features"
        )


def check_spread(spread: Floats, name: str) -> None:
    """Refuse features that vary, but by less than can be squared; ``spread`` is the range of each."""
    lost = np.flatnonzero((spread > 0) & (spread < SHORTEST))
    if len(lost):
        raise ValueError(
            f"feature {lost[0]} of {name} varies by {spread[lost[0]]:.2g}, less than {SHORTEST:g}: "
            "squared distances vanish; rescale the features"
        )


def spread_of_points(points: Floats) -> Floats:
    """The range of each feature over points (n, d)."""
    return np.ptp(points, axis=0) if len(points) else np.zeros(points.shape[1])


def spread_of_tuples(tuples: Floats) -> Floats:
    """The largest range of each feature within a tuple, over tuples (n, size, d)."""
    return np.ptp(tuples, axis=1).max(axis=0, initial=0.0)


def spread_of_differences(V: Floats) -> Floats:
    """The largest difference of each feature, over difference vectors (n, d)."""
    return np.maximum(V.max(axis=0, initial=0.0), -V.min(axis=0, initial=0.0))


#: Words for the two kinds of pairs.
SIMILAR = frozenset({"1", "+1", "1.0", "similar", "same", "yes", "true", "s", "must-link"})
DISSIMILAR = frozenset(
    {"-1", "0", "-1.0", "0.0", "dissimilar", "different", "no", "false", "d", "cannot-link"}
)


def pair_label(word: object) -> int | None:
    """+1, -1, or None for what is no label of a pair.

    >>> pair_label("Same"), pair_label("-1"), pair_label(False), pair_label("label")
    (1, -1, -1, None)
    """
    text = str(word).strip().lower()
    return 1 if text in SIMILAR else -1 if text in DISSIMILAR else None


def check_pair_labels(y: ArrayLike, n: int) -> Floats:
    """y as an array of n numbers, each +1 or -1."""
    labels = as_floats(y, "y")
    if labels.shape != (n,):
        raise ValueError(f"y must have one label for each pair: expected shape ({n},), got {labels.shape}")
    if n and not np.isin(labels, (-1, 1)).all():
        wrong = labels[~np.isin(labels, (-1, 1))].tolist()[0]
        raise ValueError(f"y must hold +1 (similar) and -1 (dissimilar) only, found {wrong:g}")
    return labels


def check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """(u, l) as positive finite floats."""
    try:
        u, l = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair of numbers (u, l), got {bounds!r}") from None
    if not (0 < u < np.inf and 0 < l < np.inf):
        raise ValueError(f"bounds (u, l) must be positive and finite, got ({u}, {l})")
    if not (min(u, l) >= SHORTEST and max(u, l) <= LONGEST):
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
    array = as_floats(weight, name)
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{name} must hold finite numbers that are not negative")
    check_heaviest(array, name)
    rounded = exact_sum_grid(array)
    if n and not rounded.any():
        raise ValueError(f"{name} is zero everywhere: nothing would be learned")
    return rounded


def check_heaviest(weight: Floats, name: str) -> None:
    """Refuse weights whose sums and products leave the range of float64; zeros alone are another matter."""
    heaviest = float(weight.max(initial=0.0))
    if heaviest > 0 and not LIGHTEST <= heaviest <= HEAVIEST:
        raise ValueError(
            f"the largest {name} must lie between {LIGHTEST:g} and {HEAVIEST:g}, got {heaviest:g}: "
            "divide the weights by it"
        )


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
