"""How the cost of a search grows with the number of constraints, and how much memory it takes.

    python -m benchmarks.search_scaling growth      # 10^3 to 10^7 constraints at fixed t and d: the exponent
    python -m benchmarks.search_scaling memory      # 10^6 pairs at d = 50 against their difference vectors
    python -m benchmarks.search_scaling interrupt   # seconds from Ctrl-C to the result

Growth is measured with 5% and with 0.001% of the labels wrong: nearly every sample of many constraints is
infeasible in the first case and shows it in its head; in the second, trials have to look at whole samples.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np

from benchmarks.search_counting import noisy_pairs
from lptml.search import search


def growth() -> None:
    trials, d = 50, 5
    sizes = [10**k for k in range(3, 8)]
    print("| wrong labels | " + " | ".join(f"n = 10^{k}" for k in range(3, 8)) + " | exponent |")
    print("|---|" + "---|" * (len(sizes) + 1))
    search(noisy_pairs(1000, d, 0), max_trials=10, random_state=0)
    search(noisy_pairs(50_000, d, 0), max_trials=10, random_state=0)
    for noise in (0.05, 0.00001):
        times = []
        for n in sizes:
            constraints = noisy_pairs(n, d, seed=1, noise=noise)
            best = np.inf
            for _ in range(3 if n < 10**6 else 1):
                began = time.process_time()
                search(constraints, max_trials=trials, random_state=0)
                best = min(best, time.process_time() - began)
            times.append(best)
        # From end to end: the worst exponent that a user of more constraints meets is the steepest part.
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        steepest = max(np.diff(np.log(times)) / np.diff(np.log(sizes)))
        cells = " | ".join(f"{t:.2f} s" for t in times)
        print(f"| {noise:.3%} | {cells} | {slope:.2f} (steepest decade {steepest:.2f}) |", flush=True)


def memory() -> None:
    n, d = 10**6, 50
    rng = np.random.default_rng(0)
    V = rng.normal(size=(n, d))  # (n, d), in place from here on
    y = np.where(np.abs(V[:, 0]) < 0.7, 1, -1)
    y[rng.random(n) < 0.1] *= -1
    from lptml.constraints import ConstraintSet

    small = ConstraintSet.from_differences(V[:2000], y[:2000], bounds=(1.0, 1.0))
    search(small, max_trials=5, random_state=0)  # compiled and imported
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    constraints = ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0))
    result = search(constraints, max_trials=10, random_state=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = V.nbytes
    print("| difference vectors | peak beyond imports and vectors | ratio | cost |")
    print("|---|---|---|---|")
    added = peak - before
    print(
        f"| {size / 2**20:.0f} MB | {added / 2**20:.0f} MB | {(size + added) / size:.2f} |"
        f" {result.cost / n:.4f} |"
    )


INTERRUPTED = """
import signal, warnings, sys, time, threading
import numpy as np
from benchmarks.search_counting import noisy_pairs
from lptml.search import search
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell runs in the background
F = noisy_pairs({n}, {d}, 0)
search(F, max_trials=10, random_state=0)
threading.Timer({after}, lambda: print("now", flush=True)).start()
result = search(F, max_trials=10**8, random_state=0, n_jobs={jobs})
print(result.status.name, result.n_trials, flush=True)
"""


def interrupt() -> None:
    print("| n | d | jobs | seconds from Ctrl-C to the result, largest of 5 |")
    print("|---|---|---|---|")
    for n, d, jobs in ((4000, 13, 1), (4000, 13, 2), (10**6, 10, 2), (3000, 30, 1)):
        waits = []
        for k in range(5):
            program = INTERRUPTED.format(n=n, d=d, jobs=jobs, after=0.5 + 0.13 * k)
            process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            process.stdout.readline()
            sent = time.monotonic()
            os.kill(process.pid, signal.SIGINT)
            answer = process.stdout.readline()
            waits.append(time.monotonic() - sent)
            assert answer.startswith("INTERRUPTED"), answer
            process.wait()
        print(f"| {n} | {d} | {jobs} | {max(waits):.2f} |", flush=True)


if __name__ == "__main__":
    tables = {"growth": growth, "memory": memory, "interrupt": interrupt}
    for table in sys.argv[1:] or tables:
        print(f"\n{table}\n")
        tables[table]()
