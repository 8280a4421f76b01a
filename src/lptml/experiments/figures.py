"""One look for all figures: colours by method, PNG and SVG, no global state of matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from lptml._files import replacing

#: Ours in strong colours, peers muted, scalers grey.
COLOURS = {
    "Euclidean": "#9a9a9a",
    "StandardScaler": "#c2b280",
    "RobustScaler": "#8c7853",
    "NCA": "#8fbc8f",
    "ITML": "#6baed6",
    "LMNN": "#3182bd",
    "MMC": "#9e9ac8",
    "MCML": "#756bb1",
    "LFDA": "#fdae6b",
    "RCA": "#e6842a",
    "LPTML plain": "#fb6a6a",
    "LPTML": "#c1121f",
    "LPTML robust k-NN": "#5a0010",
}

#: How the paper's values are drawn.
PAPER_STYLE: dict[str, Any] = {
    "marker": "D",
    "markersize": 5.5,
    "markerfacecolor": "none",
    "markeredgecolor": "black",
    "markeredgewidth": 1.1,
    "linestyle": "none",
    "zorder": 5,
}


def new_figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes (rows, columns), without pyplot."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, axis="y", color="#e5e5e5", linewidth=0.7)
        ax.set_axisbelow(True)
    return figure, axes


def save(figure: Figure, folder: Path, name: str) -> list[str]:
    """Write ``name``.png and ``name``.svg; return the file names."""
    # A fixed salt and no date: the same results give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "lptml", "svg.fonttype": "path"}):
        with replacing(folder / f"{name}.png") as temporary:
            figure.savefig(temporary, dpi=150)
        with replacing(folder / f"{name}.svg") as temporary:
            figure.savefig(temporary, metadata={"Date": None})
    return [f"{name}.png", f"{name}.svg"]
