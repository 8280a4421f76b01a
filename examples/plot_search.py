"""
Watching the search
===================

The cost after each improvement, between two fixed lines: what a useless metric would violate, and what no
metric can avoid.  The paper's plain search (``refine=False``) gets as far as lucky samples carry it;
refinement does the rest.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from lptml import LPTML_Supervised
from lptml.plots import SearchHistoryDisplay

X, y = load_iris(return_X_y=True)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, refine in zip(panels, (False, True)):
    model = LPTML_Supervised(
        max_trials=60, refine=refine, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0
    ).fit(X, y)
    SearchHistoryDisplay.from_estimator(model, ax=ax)
    ax.set(title="search and refinement" if refine else "plain search")
    print(
        f"refine={refine!s:5} violated {model.violation_rate_:.2%}, {model.n_infeasible_} infeasible samples"
    )
plt.show()
