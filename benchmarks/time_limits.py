"""Fits under a time limit: by how much each of fifty random ones goes past it.

Learner, shape, limit and temperature are drawn at random, two to a thousand features. A machine that does
other things stretches the clock, so a fit is judged by the smaller of two overruns: seconds by the clock, and
CPU seconds used after the limit. ``python -m benchmarks.time_limits [cases] [first seed]``.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lptml import LPTML, LPTMLCV, LPTML_Quadruplets, LPTML_Supervised, LPTML_SupervisedCV, LPTML_Triplets

LEARNERS = {
    LPTML: 2,
    LPTMLCV: 2,
    LPTML_Triplets: 3,
    LPTML_Quadruplets: 4,
    LPTML_Supervised: 1,
    LPTML_SupervisedCV: 1,
}


def drawn(seed: int) -> tuple[str, float, Callable[[], Any]]:
    """A random fit: its description, its limit, and what runs it."""
    rng = np.random.default_rng([11, seed])
    learner = list(LEARNERS)[seed % len(LEARNERS)]
    size = LEARNERS[learner]
    d = round(float(np.exp(rng.uniform(np.log(2), np.log(1000)))))
    n = round(float(np.exp(rng.uniform(np.log(20), np.log(3000)))))
    limit = float(rng.choice([0.2, 0.5, 1.0, 2.0, 4.0]))
    options: dict[str, Any] = {"time_limit": limit, "random_state": 0}
    if learner in (LPTML_Supervised, LPTML_Triplets, LPTML):
        options["temperature"] = float(rng.choice([0.0, 0.15]))
        options["max_trials"] = int(rng.choice([0, 100, 100_000]))
        options["search_components"] = [6, None][int(rng.integers(2))]
    data: list[Any] = [rng.normal(size=(n, d) if size == 1 else (n, size, d)) * 10 ** rng.uniform(-1, 1, d)]
    if size == 1:
        data.append(np.where((data[0][:, 0] > 0) ^ (rng.random(n) < 0.2), "a", "b"))
    elif size == 2:
        apart = np.abs(data[0][:, 0, 0] - data[0][:, 1, 0])
        data.append(np.where((apart < np.median(apart)) ^ (rng.random(n) < 0.2), 1, -1))
    said = {name: value for name, value in options.items() if name != "random_state"}
    return f"{learner.__name__} n={n} d={d} {said}", limit, lambda: learner(**options).fit(*data)


def overrun(limit: float, fit: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds past the limit, by the clock and of the CPU, and the fitted model."""
    used: list[float] = []
    timer = threading.Timer(limit, lambda: used.append(time.process_time()))
    timer.start()
    began = time.monotonic()
    model = fit()
    clock, cpu = time.monotonic() - began - limit, time.process_time()
    timer.cancel()
    timer.join()
    return clock, cpu - used[0] if used else 0.0, model


def main(cases: int, first: int) -> int:
    warnings.simplefilter("ignore")
    for seed in range(2 * len(LEARNERS)):  # what is compiled or imported once is not the limit's
        rng = np.random.default_rng(seed)
        learner = list(LEARNERS)[seed % len(LEARNERS)]
        size = LEARNERS[learner]
        X = rng.normal(size=(40, 3) if size == 1 else (40, size, 3))
        y = [np.arange(40) % 2 if size == 1 else np.where(np.arange(40) % 2, 1, -1)] if size < 3 else []
        learner(max_trials=10, random_state=0).fit(X, *y)
    late = 0
    print("| fit | clock s past | CPU s past | ended |\n|---|---|---|---|", flush=True)
    for seed in range(first, first + cases):
        name, limit, fit = drawn(seed)
        clock, cpu, model = overrun(limit, fit)
        over = min(clock, cpu) > max(0.2 * limit, 0.5)
        late += over
        print(f"| {name} | {clock:+.2f} | {cpu:.2f}{' LATE' if over else ''} | {model.status_} |", flush=True)
    print(f"\n{late} of {cases} fits went past their limit by more than a fifth of it and half a second.")
    return late


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(min(1, main(*{0: (50, 0), 1: (*numbers, 0), 2: tuple(numbers)}[len(numbers)])))
