"""Test accuracy on pairs of a known metric with wrong labels: LPTML and LPTMLCV against the likelihood.

Difference vectors are Gaussian with d = 10, the true metric has rank 5, its bound is the median distance.
Labels are wrong by logistic noise on the squared distance that reverses 10% of them, by uniform noise of 10
and 30%, by calling the farthest 10% similar, and by 5% of pairs that are pulled 30 root mean squares apart
along one direction and called similar. Accuracy is that on 20,000 fresh pairs with true labels.
The likelihood is that of the logistic model of the squared distance, which is the true model of the first
kind of noise (Alishahi, Little and Phillips 2023), maximised by L-BFGS over a factor of the metric and the
threshold. ``python -m benchmarks.pairs 2000,10000 4`` runs these numbers of pairs with so many draws.

References
----------
Alishahi, M., Little, A. and Phillips, J. M. (2023). Linear distance metric learning with noisy labels.
arXiv:2306.03173.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks.development import markdown
from lptml import LPTML, LPTMLCV
from lptml.noise import flip_pairs, plant_pairs

Floats = NDArray[np.float64]
D, RANK, TEST = 10, 5, 20_000
NOISES = ("logistic", "uniform 10%", "uniform 30%", "farthest 10%", "planted 5%")
LEARNERS = ("likelihood", "LPTML", "LPTMLCV")


def draw(n: int, seed: int) -> tuple[Floats, Floats, Floats, float, np.random.Generator]:
    """Training and test differences, their true squared distances over the bound's, and the generator."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(RANK, D))
    V, test = (np.sqrt(2.0) * rng.normal(size=(m, D)) for m in (n, TEST))
    squares, of_test = (np.square(part @ L.T).sum(axis=1) for part in (V, test))
    bound = float(np.median(of_test))
    return V, test, squares / bound, of_test / bound, rng


def labels(noise: str, squares: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """+1 similar, -1 dissimilar, some of them wrong; ``squares`` are relative to the bound."""
    true = np.where(squares <= 1.0, 1, -1)
    if noise == "logistic":
        # The scale at which a tenth are reversed, by bisection of the expected share.
        low, high = 1e-3, 10.0
        for _ in range(60):
            scale = np.sqrt(low * high)
            low, high = (scale, high) if expit(-abs(squares - 1.0) / scale).mean() < 0.1 else (low, scale)
        return np.where(squares - 1.0 + rng.logistic(scale=scale, size=len(squares)) <= 0.0, 1, -1)
    if noise == "farthest 10%":
        return np.where(squares >= np.quantile(squares, 0.9), 1, true)
    share = 0.1 if noise == "uniform 10%" else 0.3
    return flip_pairs(true, share, random_state=int(rng.integers(2**31))).labels


def likelihood(V: Floats, y: NDArray[np.int64], test: Floats) -> NDArray[np.bool_]:
    """Which test pairs the fit of the logistic model calls similar."""
    n, d = V.shape
    scale = np.sqrt(np.square(V).sum(axis=1).mean())

    def loss(x: Floats) -> tuple[float, Floats]:
        G, t = x[:-1].reshape(d, d), x[-1]
        image = V / scale @ G.T
        z = y * (np.square(image).sum(axis=1) - t)
        slope = expit(z) * y
        gradient = 2.0 * (image * slope[:, None]).T @ (V / scale)
        return float(np.logaddexp(0.0, z).mean()), np.r_[gradient.ravel(), -slope.sum()] / n

    start = np.r_[np.sqrt(5.0) * np.eye(d).ravel(), 5.0]
    x = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return np.asarray(np.square(test / scale @ x[:-1].reshape(d, d).T).sum(axis=1) <= x[-1])


def accuracy(learner: str, noise: str, n: int, seed: int) -> tuple[float, float]:
    """On test pairs with true labels, and the CPU seconds of the fit."""
    V, test, squares, of_test, rng = draw(n, seed)
    pairs = np.stack([V, np.zeros_like(V)], axis=1)
    if noise == "planted 5%":
        poisoned = plant_pairs(pairs, np.where(squares <= 1.0, 1, -1), 0.05, random_state=seed)
        pairs, y = poisoned.points, poisoned.labels
    else:
        y = labels(noise, squares, rng)
    began = time.process_time()
    with threadpool_limits(1):
        if learner == "likelihood":
            similar = likelihood(pairs[:, 0] - pairs[:, 1], y, test)
        else:
            model: Any = {"LPTML": LPTML, "LPTMLCV": LPTMLCV}[learner](random_state=0)
            model.fit(pairs, y)
            similar = model.predict(np.stack([test, np.zeros_like(test)], axis=1)) > 0
    return float((similar == (of_test <= 1.0)).mean()), time.process_time() - began


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sizes", nargs="?", default="2000,10000")
    parser.add_argument("draws", nargs="?", type=int, default=4)
    parser.add_argument("--json", type=Path, default=Path("reproduction/pairs.json"))
    options = parser.parse_args(argv)
    rows, found = [], []
    for n in map(int, options.sizes.split(",")):
        for noise in NOISES:
            cells = []
            for learner in LEARNERS:
                runs = [accuracy(learner, noise, n, seed) for seed in range(options.draws)]
                found.append({"n": n, "noise": noise, "learner": learner, "runs": runs})
                cells.append(f"{np.mean(runs, axis=0)[0]:.3f} ({np.mean(runs, axis=0)[1]:.1f} s)")
            rows.append([f"{n:,}", noise, *cells])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=1))
    print(markdown(["pairs", "wrong labels", *LEARNERS], rows))


if __name__ == "__main__":
    main(sys.argv[1:])
