"""What a user waits for at first: importing lptml, and compiling once after installation."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

IMPORT = "import time; a = time.process_time(); import {0}; print(time.process_time() - a)"
FIRST = """
import time
import numpy as np
from lptml.constraints import ConstraintSet
a = time.process_time()
from lptml.exact import exact_lptml, make_objective
rng = np.random.default_rng(0)
F = ConstraintSet.from_differences(rng.standard_normal((30, 4)), rng.choice([-1, 1], 30), bounds=(1.0, 1.0))
exact_lptml(F, make_objective("trace", 4), rng=0)
print(time.process_time() - a)
"""


def run(code: str, cache: str) -> float:
    """CPU seconds that a fresh interpreter prints."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    for line in done.stderr.splitlines():
        print(f"(it says: {line})")
    return float(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        print("CPU seconds:\n")
        sklearn = statistics.median(run(IMPORT.format("sklearn.base"), cache) for _ in range(5))
        both = statistics.median(
            run(IMPORT.format("sklearn.base, lptml, lptml.estimators"), cache) for _ in range(5)
        )
        cold = run(FIRST, cache)
        warm = statistics.median(run(FIRST, cache) for _ in range(3))
        print("\n| what | CPU s |")
        print("|---|---|")
        print(f"| import scikit-learn | {sklearn:.2f} |")
        print(f"| import lptml and its estimators besides | {both - sklearn:.2f} |")
        print(f"| first exact solve after installation: import Numba, compile, solve | {cold:.1f} |")
        print(f"| the same in later processes: import Numba, load from disk, solve | {warm:.1f} |")


if __name__ == "__main__":
    main()
