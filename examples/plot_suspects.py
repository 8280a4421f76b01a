"""
Which labels are wrong?
=======================

A fifth of Iris's labels are changed at random.  The suspicion of a label is the probability that it is wrong,
judged by all other points; a point never vouches for itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score

from lptml import LPTML_Supervised
from lptml.noise import flip_labels
from lptml.plots import EmbeddingDisplay, SuspicionDisplay

X, y = load_iris(return_X_y=True)
flips = flip_labels(y, 0.2, random_state=0)
noisy, wrong = flips.labels, flips.flipped
model = LPTML_Supervised(random_state=0, max_trials=10).fit(X, noisy)

suspects = np.flatnonzero(model.suspicion_ > 0.5)
print(
    f"{wrong.sum()} labels are wrong, {len(suspects)} are suspected, {wrong[suspects].sum()} of them rightly"
)
print(f"ROC AUC of the ranking: {roc_auc_score(wrong, model.suspicion_):.3f}")

# %%
# The suspects, ringed, among the labels as they were given:

EmbeddingDisplay.from_estimator(model, X, noisy, suspects=suspects)

# %%
# The suspicion falls off a cliff where the wrong labels end:

SuspicionDisplay.from_estimator(model, n_suspects=len(suspects))
plt.show()
