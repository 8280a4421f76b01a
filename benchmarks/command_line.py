"""What a person at the shell waits for: fit and report of Wine, beside the import of scikit-learn alone."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 7
LPTML = [sys.executable, "-m", "lptml"]
COMMANDS = {
    "import sklearn.base": [sys.executable, "-c", "import sklearn.base"],
    "lptml fit": [*LPTML, "fit", "wine.csv", "--label", "class"],
    "lptml report --model": [*LPTML, "report", "wine.csv", "--label", "class", "--model", "wine.model.npz"],
    "lptml fit --report": [*LPTML, "fit", "wine.csv", "--label", "class", "--report", "wine.html"],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    # As for a user, whose Python keeps its byte code from the first run on.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:

        def run(command: list[str]) -> float:
            start = time.perf_counter()
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
            return time.perf_counter() - start

        run([*LPTML, "datasets", "wine", "-o", "wine.csv"])
        run(COMMANDS["lptml fit --report"])  # compiles, where nothing was compiled before
        for _ in range(RUNS):
            for name, command in COMMANDS.items():
                times[name].append(run(command))
    print(f"Seconds by the clock, {RUNS} runs in turn:\n")
    print("| command | median | least | most |")
    print("|---|---|---|---|")
    times["lptml fit, then report"] = [
        fit + report for fit, report in zip(times["lptml fit"], times["lptml report --model"])
    ]
    for name, seconds in times.items():
        print(f"| {name} | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} |")


if __name__ == "__main__":
    main()
