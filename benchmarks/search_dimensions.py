"""The paper's figure "running time against d", beside the paper's values: one command.

    python -m benchmarks.search_dimensions [--output docs/images/search-dimensions.png] [--jobs 2]

Wine after PCA to d = 2..13, t = 100, 500, 1000, 1500, 2000 trials. Prints the table (CPU seconds and wall
seconds of ours, seconds of the paper) and draws the figure. A search of 2000 trials passes through the
shorter ones, so each d is run once, and its time after t trials read from the callback.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.search import protocol
from lptml.search import SearchProgress, search

TRIALS = (100, 500, 1000, 1500, 2000)
#: Seconds by d = 2..13, read from the source of the paper's figure.
PAPER = {
    100: (11.36, 36.39, 57.74, 62.48, 94.12, 97.61, 97.23, 105.87, 122.27, 125.11, 133.45, 128.93),
    500: (33, 80, 143, 162, 204, 246, 201, 191, 206, 229, 185, 239),
    1000: (55, 167, 270, 326, 429, 468, 461, 375, 477, 461, 345, 501),
    1500: (81, 232, 355, 471, 577, 695, 617, 550, 649, 685, 610, 691),
    2000: (129, 294, 548, 643, 788, 925, 858, 773, 837, 855, 870, 886),
}
DIMENSIONS = range(2, 14)


def seconds(d: int, jobs: int) -> dict[int, tuple[float, float]]:
    """CPU and wall seconds of a search by the number of its trials."""
    constraints, _ = protocol("Wine", d, 0)
    search(constraints, max_trials=20, random_state=1, n_jobs=jobs)  # compiled
    passed: dict[int, tuple[float, float]] = {}
    cpu, wall = time.process_time(), time.perf_counter()

    def note(progress: SearchProgress) -> None:
        for t in TRIALS:
            if progress.n_trials >= t and t not in passed:
                passed[t] = (time.process_time() - cpu, time.perf_counter() - wall)

    search(constraints, max_trials=max(TRIALS), random_state=0, n_jobs=jobs, callback=note)
    return passed


def draw(ours: dict[int, dict[int, tuple[float, float]]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for t, colour in zip(TRIALS, plt.get_cmap("viridis")([0.0, 0.22, 0.45, 0.67, 0.9])):
        axes.plot(DIMENSIONS, PAPER[t], "--", color=colour, label=f"paper, t = {t}")
        times = [ours[d][t][0] for d in DIMENSIONS]
        axes.plot(DIMENSIONS, times, "-", color=colour, label=f"lptml, t = {t}")
    axes.set(yscale="log", xlabel="dimension d", ylabel="seconds", title="Wine: running time against d")
    axes.legend(ncols=1, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="docs/images/search-dimensions.png")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print("| d |" + "".join(f" t = {t}: CPU s | wall s | paper s |" for t in TRIALS))
    print("|---|" + "---|---|---|" * len(TRIALS))
    ours = {}
    for k, d in enumerate(DIMENSIONS):
        ours[d] = seconds(d, options.jobs)
        cells = (f" {ours[d][t][0]:.2f} | {ours[d][t][1]:.2f} | {PAPER[t][k]:.0f} |" for t in TRIALS)
        print(f"| {d} |" + "".join(cells), flush=True)
    draw(ours, options.output)


if __name__ == "__main__":
    main()
