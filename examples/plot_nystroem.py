"""
A metric that is not linear in the input
========================================

A Mahalanobis metric is linear: no matrix makes the points of a ring close to each other and far from those
inside it.  Behind a feature map it need not be.  ``Nystroem`` turns the points into ten features of a
Gaussian kernel, and the metric learned there brings each ring together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from lptml import LPTML_Supervised

X, y = make_circles(400, noise=0.2, factor=0.4, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=80, random_state=0)

# %%
# With ``constraints="all"``, at temperature 0 and without shrinkage, the metric sought is the one that
# violates the fewest pairs of the 80 training points.

kernel = Nystroem(gamma=1.0, n_components=10, random_state=0)
linear = LPTML_Supervised(max_trials=20, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0)
models = {
    "linear metric": make_pipeline(linear),
    "kernel features": make_pipeline(kernel),
    "metric of kernel features": make_pipeline(kernel, linear),
}

# %%
# How well does the distance of two new points tell whether they share a ring?

i, j = np.triu_indices(len(X_test), 1)
alike = y_test[i] == y_test[j]
images = {"no metric": X_test}
for name, model in models.items():
    images[name] = model.fit(X_train, y_train).transform(X_test)
for name, Z in images.items():
    print(f"{name:26s} ROC AUC {roc_auc_score(alike, -np.linalg.norm(Z[i] - Z[j], axis=1)):.3f}")

# %%
# The first two directions of the learned map: the rings have become two clusters.

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
Z = images["metric of kernel features"]
for axis, points, title in zip(axes, (X_test, Z), ("input", "learned map, first two directions")):
    axis.scatter(points[:, 0], points[:, 1], c=y_test, s=8, cmap="coolwarm")
    axis.set_title(title)
plt.show()
