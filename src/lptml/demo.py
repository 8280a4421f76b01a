"""The main job on embedded data: ``make demo`` or ``python -m lptml.demo``.

The paper's poisoned set (section 4): two classes that are easy to tell apart, one axis stretched by 40, and
five points that an adversary planted far away with the wrong label. Learn a metric, compare 4-NN accuracy on
clean test points before and after, name the suspects, draw both pictures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from lptml import LPTML_SupervisedCV
from lptml.datasets import make_poisoned, make_synthetic

#: The poison lies on the class axis, 100 standard deviations out: ringed in the pictures when suspected.
SEED = 0


def main(folder: str = "demo-output") -> None:
    """Run the demonstration, print what it finds and write its picture into ``folder``."""
    train = make_poisoned(100, random_state=SEED)
    X_test, y_test = make_synthetic(1000, random_state=SEED + 1, return_X_y=True)
    print(f"{len(train.target)} training points, {train.poisoned.sum()} of them planted with a wrong label")

    learner = LPTML_SupervisedCV(random_state=SEED).fit(train.data, train.target)
    identity = _accuracy(train.data, train.target, X_test, y_test)
    learned = _accuracy(learner.transform(train.data), train.target, learner.transform(X_test), y_test)
    averaged = sum(learner.cv_results_["averaged"])
    print(f"{len(learner.cv_results_['params'])} settings compared by cross-validation, {averaged} averaged")
    print(
        f"triplets violated: {learner.violation_rate_:.1%} "
        f"(by the Euclidean distance: {learner.trivial_rate_:.1%})"
    )
    print("4-NN accuracy on 1,000 clean test points:")
    print(f"  Euclidean  {identity:.3f}")
    print(f"  learned    {learned:.3f}")

    ranked = np.argsort(-learner.suspicion_, kind="stable")[: train.poisoned.sum()]
    print(f"the {len(ranked)} most suspected labels:")
    for row in ranked:
        x, y = train.data[row]
        truth = "planted" if train.poisoned[row] else "honest"
        name = train.target_names[train.target[row]]
        print(
            f"  row {row:3d}  ({x:7.1f}, {y:7.1f})  label {name:5s}  "
            f"suspicion {learner.suspicion_[row]:.2f}  {truth}"
        )
    print(f"picture: {_draw(train, learner.transform(train.data), ranked, Path(folder))}")


def _accuracy(X: Any, y: Any, X_test: Any, y_test: Any) -> float:
    return float(KNeighborsClassifier(4).fit(X, y).score(X_test, y_test))


def _draw(train: Any, image: Any, suspects: Any, folder: Path) -> Path:
    """Three panels as in the paper's figure: before, after, after without the far-away poison."""
    from matplotlib.figure import Figure

    honest = ~train.poisoned
    panels = [
        ("before", train.data, slice(None)),
        ("after", image, slice(None)),
        ("after, magnified", image, honest),
    ]
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for axes, (title, points, shown) in zip(figure.subplots(1, 3), panels):
        for label, colour, marker in ((0, "#1b6ca8", "o"), (1, "#d1495b", "s")):
            mine = points[shown][train.target[shown] == label]
            axes.scatter(
                *mine.T, s=14, c=colour, marker=marker, label=train.target_names[label], linewidths=0
            )
        if shown is not honest:
            axes.scatter(*points[suspects].T, s=90, facecolors="none", edgecolors="black", label="suspected")
        axes.set_title(title)
        axes.set_aspect("equal", adjustable="datalim")
        axes.spines[["top", "right"]].set_visible(False)
        axes.locator_params(nbins=5)
    figure.axes[0].legend(frameon=False, loc="upper right", fontsize=8)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "poisoned.png"
    figure.savefig(path, dpi=150)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:])
