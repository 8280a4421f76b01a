"""Lower bounds on systems that a planted metric meets with equality, or nearly: how many lie above its cost.

The systems of ``tests/property/test_planted_bounds.py``. ``python -m benchmarks.planted_bounds [systems]
[first seed]``.
"""

from __future__ import annotations

import sys

import numpy as np
from tests.property.test_planted_bounds import planted

from lptml.proof import certify
from lptml.refine.polish import polish


def main(systems: int, first: int) -> int:
    high = 0
    print("| seed | n | d | bound | least cost of a metric |\n|---|---|---|---|---|")
    for seed in range(first, first + systems):
        constraints, A = planted(seed)
        found = certify(constraints, np.zeros_like(A), time_limit=1.0)
        cost = min(constraints.cost(metric) for metric in (A, found.A, polish(constraints, A, rounds=3)))
        above = found.lower_bound > cost
        high += above
        said = f"{found.lower_bound:g}{' TOO HIGH' if above else ''}"
        print(f"| {seed} | {len(constraints.V)} | {len(A)} | {said} | {cost:g} |", flush=True)
    print(f"\n{high} of {systems} bounds lie above the cost of a metric.")
    return high


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(min(1, main(*{0: (1000, 0), 1: (*numbers, 0), 2: tuple(numbers)}[len(numbers)])))
