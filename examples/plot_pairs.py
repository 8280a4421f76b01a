"""
From pairs alone
================

No classes, only labels of pairs: these two belong together, these do not.  One in ten is wrong.  The learner
finds a distance, calibrates the threshold below which a pair counts as similar, and says which labels it does
not believe.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import RocCurveDisplay, roc_auc_score

from lptml import LPTML
from lptml.noise import flip_pairs

X, y = load_wine(return_X_y=True)
rng = np.random.default_rng(0)
first, second = rng.integers(0, len(X), (2, 1000))
pairs = np.stack([X[first], X[second]], axis=1)  # (1000, 2, 13)
truth = np.where(y[first] == y[second], 1, -1)
flips = flip_pairs(truth[:500], 0.1, random_state=0)
given, wrong = flips.labels, flips.flipped

model = LPTML(random_state=0, max_trials=20).fit(pairs[:500], given)
print(f"ROC AUC on 500 other pairs: {model.score(pairs[500:], truth[500:]):.3f}")
print(f"accuracy at the calibrated threshold: {np.mean(model.predict(pairs[500:]) == truth[500:]):.3f}")
print(f"ROC AUC of finding the {wrong.sum()} wrong labels: {roc_auc_score(wrong, model.suspicion_):.3f}")

# %%
# Against the Euclidean distance, on pairs that were not used for learning:

ax = plt.gca()
euclidean = -np.linalg.norm(pairs[500:, 0] - pairs[500:, 1], axis=1)
RocCurveDisplay.from_predictions(truth[500:], euclidean, name="Euclidean", ax=ax)
RocCurveDisplay.from_predictions(truth[500:], model.decision_function(pairs[500:]), name="learned", ax=ax)
plt.show()
