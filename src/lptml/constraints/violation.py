"""What counts as violated, and at which multiple of a metric that changes: one definition for everything.

A constraint sign * (value - bound) <= 0 counts as violated when it fails by more than ``TOLERANCE`` times its
bound. Along the ray {c A : c >= 0} its value is c <C, A>, so it flips at one scale c: an upper bound is
violated above it, a lower one below it.

A scale is chosen by where the constraints flip, and then the metric is multiplied out and its distances are
rounded. So a flip is placed a hundredth of the tolerance inside the tolerance: what is satisfied up to its
flip is satisfied when it is counted, as long as rounding stays below 1e-9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

#: A constraint counts as violated when it fails by more than this, relative to its bound. Solvers work to
#: about 1e-9, so a constraint that a metric was made to meet with equality is never taken for violated.
TOLERANCE = 1e-7

_CLEAR = 0.99 * TOLERANCE


@dataclass(frozen=True)
class Scaled:
    """A multiple of a metric and what it costs; a scale of zero stands for the metric A = 0."""

    scale: float
    cost: float


# The functions below are arithmetic alone: NumPy runs them on arrays, and compiled code on numbers.


def limit(sign: Any, bound: Any) -> Any:
    """The value beyond which a constraint is violated: above it for sign +1, below it for sign -1."""
    return bound * (1.0 + TOLERANCE * sign)


def is_violated(value: Any, sign: Any, bound: Any) -> Any:
    """Which constraints fail, given their values <C, A>."""
    # s (q - b) > tol b; s q > (s + tol) b is the same with one temporary less.
    return sign * value > (sign + TOLERANCE) * bound


def excess(value: Any, sign: Any, bound: Any) -> NDArray[Any]:
    """By how much constraints fail, relative to their bounds: violated are those above ``TOLERANCE``."""
    failing: NDArray[Any] = sign * (value / bound - 1.0)
    return failing


def flip(value: Any, sign: Any, bound: Any) -> Any:
    """The multiple of a metric at which a constraint flips, given its positive value."""
    return bound / value * (1.0 + _CLEAR * sign)
