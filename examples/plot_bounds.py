"""
What the bounds mean
====================

Similar pairs should be within u, dissimilar ones beyond l.  Only the ratio u / l matters, and it says how
wide a gap is asked for.  A wider gap costs more violations; at u = l the cost is the error of a threshold on
the distance.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from lptml import LPTML_Supervised
from lptml.plots import PairDistancesDisplay

X, y = load_iris(return_X_y=True)
figure, panels = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True)
for ax, ratio in zip(panels, (0.5, 1.0, 1.5)):
    model = LPTML_Supervised(
        bounds=ratio, max_trials=10, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0
    ).fit(X, y)
    PairDistancesDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"u / l = {ratio}: {model.violation_rate_:.1%} violated", pad=18)
plt.tight_layout()
plt.show()
