"""What a user waits for at first: importing lptml, and compiling once after installation."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

CLOCKS = "import time; a, b = time.process_time(), time.perf_counter()\n"
SAY = "print(time.process_time() - a, time.perf_counter() - b)\n"
CONSTRAINTS = """
import numpy as np
from lptml.constraints import ConstraintSet
rng = np.random.default_rng(0)
F = ConstraintSet.from_differences(rng.standard_normal((30, 4)), rng.choice([-1, 1], 30), bounds=(1.0, 1.0))
"""
EXACT = """
from lptml.exact import exact_lptml, make_objective
exact_lptml(F, make_objective("trace", 4), rng=0)
"""
CALLS = """
import cProfile, pstats
from lptml.exact import exact_lptml, make_objective
profile = cProfile.Profile()
profile.runcall(exact_lptml, F, make_objective("trace", 4), rng=0)
print(pstats.Stats(profile).total_calls, 0)
"""
LEARN = """
from lptml.learn import learn
learn(F, max_trials=10, random_state=0)
"""


def run(code: str, cache: str) -> tuple[float, float]:
    """The two numbers that a fresh interpreter prints: CPU seconds, and seconds by the clock."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    for line in done.stderr.splitlines():
        print(f"(it says: {line})")
    cpu, clock = map(float, done.stdout.split())
    return cpu, clock


def imported(modules: str, cache: str) -> float:
    """CPU seconds that an import takes, median."""
    return statistics.median(run(f"{CLOCKS}import {modules}\n{SAY}", cache)[0] for _ in range(5))


def main() -> None:
    exact, learn = f"{CONSTRAINTS}{CLOCKS}{EXACT}{SAY}", f"{CONSTRAINTS}{CLOCKS}{EXACT}{LEARN}{SAY}"
    with (
        tempfile.TemporaryDirectory() as cache,
        tempfile.TemporaryDirectory() as other,
        tempfile.TemporaryDirectory() as third,
    ):
        calls, _ = run(CONSTRAINTS + CALLS, third)
        sklearn = imported("sklearn.base", cache)
        both = imported("sklearn.base, lptml, lptml.estimators", cache)
        rows = {
            "first exact solve after installation: import Numba, compile, solve": run(exact, cache),
            "the same in later processes: import Numba, load from disk, solve": run(exact, cache),
            "first exact solve, search and refinement after installation": run(learn, other),
            "the same in later processes": run(learn, other),
        }
    print("\n| what | CPU s | s by the clock |")
    print("|---|---|---|")
    print(f"| import scikit-learn | {sklearn:.2f} | |")
    print(f"| import lptml and its estimators besides | {both - sklearn:.2f} | |")
    for what, (cpu, clock) in rows.items():
        print(f"| {what} | {cpu:.1f} | {clock:.1f} |")
    print(f"\nCalls of Python functions while the first exact solve compiles: {calls / 1e6:.1f} million")


if __name__ == "__main__":
    main()
