"""The pictures of how-it-works.md, drawn by the library itself at every build."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from lptml.constraints import ConstraintSet
from lptml.datasets import make_poisoned

BLUE, ORANGE, GREY, RED = "#2f7ed8", "#e07b39", "#8a94a0", "#d6202a"
STYLE = {
    "svg.hashsalt": "lptml",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
}


def draw_all(folder: Path) -> None:
    """Write every picture as SVG into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        for name, draw in {
            "landscape": landscape,
            "samples": samples,
            "smoothing": smoothing,
            "line-search": line_search,
            "poison": poison,
        }.items():
            figure = draw()
            figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
            plt.close(figure)


def example(seed: int = 4, n: int = 16) -> tuple[ConstraintSet, np.ndarray, np.ndarray]:
    """Pairs in the plane, feature 1 informative, a quarter of the labels random."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    V = np.column_stack([rng.normal(np.where(y > 0, 0.4, 1.3), 0.25), rng.normal(0.9, 0.45, n)])
    y = np.where(rng.random(n) < 0.2, -y, y)
    return ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0)), V, y


def diagonal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The stack of metrics diag(a, b), (k, 2, 2)."""
    A = np.zeros((a.size, 2, 2))
    A[:, 0, 0], A[:, 1, 1] = a.ravel(), b.ravel()
    return A


def landscape() -> plt.Figure:
    """Every constraint is a half-plane in the space of metrics; the cost counts the wrong sides."""
    constraints, V, y = example()
    grid = np.linspace(0, 3, 241)
    a, b = np.meshgrid(grid, grid)
    cost = constraints.cost(diagonal(a, b)).reshape(a.shape)
    figure, axes = plt.subplots(figsize=(5.2, 4.2))
    image = axes.pcolormesh(
        a, b, cost, cmap="Greys", shading="nearest", vmax=cost.max() * 1.4, rasterized=True
    )
    for v, sign in zip(V, y):
        axes.plot(grid, (1 - v[0] ** 2 * grid) / v[1] ** 2, color=BLUE if sign > 0 else ORANGE, lw=1)
    best = np.argwhere(cost == cost.min())
    axes.plot(grid[best[:, 1]].mean(), grid[best[:, 0]].mean(), "*", ms=14, color=RED, mec="white")
    axes.set(xlim=(0, 3), ylim=(0, 3), xlabel="weight of feature 1", ylabel="weight of feature 2")
    figure.colorbar(image, label="violated constraints")
    return figure


def samples() -> plt.Figure:
    """A sample is feasible only while it holds no bad constraint."""
    p = np.geomspace(1e-3, 1, 200)
    figure, axes = plt.subplots(figsize=(5.2, 3))
    for k, colour in ((5, BLUE), (20, ORANGE), (80, RED)):
        axes.plot(p, (1 - p) ** k, color=colour, label=f"{k} bad constraints")
    axes.set(
        xscale="log", xlabel="sampling probability p", ylabel="probability of a clean sample", ylim=(0, 1.02)
    )
    axes.legend(frameon=False)
    return figure


def smoothing() -> plt.Figure:
    """The cost of one constraint, and the sigmoids that stand for it while the temperature falls."""
    margin = np.linspace(-1, 1, 401)
    figure, axes = plt.subplots(figsize=(5.2, 2.8))
    axes.step(margin, margin > 0, color="black", lw=1.6, label="true cost")
    for temperature, colour in ((0.3, "#b9d3f3"), (0.1, "#6ea6e6"), (0.03, BLUE)):
        smooth = 1 / (1 + np.exp(-margin / temperature))
        axes.plot(margin, smooth, color=colour, label=f"temperature {temperature}")
    axes.set(xlabel="how far the constraint is violated", ylabel="cost")
    axes.legend(frameon=False, fontsize=8)
    return figure


def line_search() -> plt.Figure:
    """Along a line in the space of metrics the cost is a staircase; its lowest step is found by sorting."""
    constraints, _, _ = example(n=60)
    t = np.linspace(0, 1, 1200)
    start, end = np.array([0.05, 0.5]), np.array([6.0, 0.1])
    points = start + t[:, None] * (end - start)
    cost = constraints.cost(diagonal(points[:, 0], points[:, 1]))
    figure, axes = plt.subplots(figsize=(5.2, 2.8))
    axes.step(t, cost, color=BLUE, lw=1.4)
    lowest = t[cost == cost.min()]
    axes.axvspan(lowest.min(), lowest.max(), color=RED, alpha=0.2, lw=0)
    axes.annotate(
        "the lowest step",
        (lowest.mean(), cost.min()),
        (0.3, cost.min() * 0.4),
        arrowprops={"arrowstyle": "->"},
    )
    axes.set(xlabel="position along the line A + t·Δ", ylabel="violated constraints", ylim=(0, None))
    return figure


def poison() -> plt.Figure:
    """The paper's poisoned set before and after, on the same scale of neighbours."""
    from lptml import LPTML_Supervised

    data = make_poisoned(random_state=0)
    learned = LPTML_Supervised(random_state=0).fit(data.data, data.target).transform(data.data)
    figure, panels = plt.subplots(1, 3, figsize=(8.4, 2.9))
    views = (
        ("Euclidean", data.data, True),
        ("learned", learned, True),
        ("learned, magnified", learned, False),
    )
    for axes, (title, Z, poisoned) in zip(panels, views):
        for code, colour in ((0, BLUE), (1, ORANGE)):
            chosen = (data.target == code) & ~data.poisoned
            axes.plot(*Z[chosen][:, :2].T, ".", color=colour, ms=5)
        if poisoned:
            axes.plot(*Z[data.poisoned][:, :2].T, "x", color=RED, ms=6)
        axes.set(title=title, aspect="equal", adjustable="datalim")
    figure.tight_layout()
    return figure
