"""Fits of every estimator on random shapes, scales, weights and units: how many end in anything but numbers
or a ValueError.

The cases of ``tests/adversarial/test_fuzz_fits.py``, a hundred from each seed.
``python -m benchmarks.random_fits [hundreds] [first seed]``.
"""

from __future__ import annotations

import sys

from hypothesis import Phase, given, seed, settings
from tests.adversarial.test_fuzz_fits import FUZZ, Case, cases, check


def hundred(first: int) -> tuple[int, list[str]]:
    """The number of fits that a seed decides, and what those that failed ended in."""
    tried, failed = 0, list[str]()

    @seed(first)
    @settings(max_examples=100, phases=[Phase.generate], **FUZZ)
    @given(cases())
    def run(case: Case) -> None:
        nonlocal tried
        tried += 1
        try:
            check(case)
        except Exception as error:
            failed.append(f"{case}: {error!r}")

    run()
    return tried, failed


def main(hundreds: int, first: int) -> int:
    fits, failures = 0, 0
    print("| seed | fits | failed |\n|---|---|---|")
    for number in range(first, first + hundreds):
        tried, failed = hundred(number)
        fits, failures = fits + tried, failures + len(failed)
        print(f"| {number} | {tried} | {'; '.join(failed) or 0} |", flush=True)
    print(f"\n{failures} of {fits} fits ended in anything but numbers or a ValueError.")
    return failures


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(min(1, main(*{0: (20, 0), 1: (*numbers, 0), 2: tuple(numbers)}[len(numbers)])))
