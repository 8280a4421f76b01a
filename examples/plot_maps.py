"""
Classes that no linear metric brings together
=============================================

A Mahalanobis metric is linear: no matrix makes the points of a ring close to each other and far from those
of another ring.  With ``map="relu"`` the points first go through a hidden layer, trained to violate few of
the same constraints.  Here the constraints are 1,000 pairs, and a tenth of their labels are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from lptml import LPTML


def rings(rng, n):
    y = rng.integers(2, size=n)
    radius, angle = 1 + y + 0.12 * rng.normal(size=n), rng.uniform(0, 2 * np.pi, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), y


def xor(rng, n):
    corner = rng.integers(2, size=(n, 2))
    return 2.0 * corner + 0.3 * rng.normal(size=(n, 2)), corner[:, 0] ^ corner[:, 1]


def spirals(rng, n):
    y = rng.integers(2, size=n)
    turn = rng.uniform(0.4, 1.6, n) * np.pi
    spiral = turn[:, None] * np.stack([np.cos(turn + np.pi * y), np.sin(turn + np.pi * y)], axis=1)
    return spiral / 2 + 0.1 * rng.normal(size=(n, 2)), y


def bananas(rng, n):
    y = rng.integers(2, size=n)
    angle = rng.uniform(0, np.pi, n)
    arc = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.where(y[:, None] == 1, [1.0, 0.4] - arc, arc) + 0.12 * rng.normal(size=(n, 2)), y


# %%
# The share of new pairs that are judged rightly, linear and with a hidden layer.

shapes = {"rings": rings, "XOR": xor, "spirals": spirals, "bananas": bananas}
drawn = {}
for name, draw in shapes.items():
    rng = np.random.default_rng(0)
    X, y = draw(rng, 2000)
    told = np.where(y[::2] == y[1::2], 1, -1)
    told = np.where(rng.uniform(size=1000) < 0.1, -told, told)
    new, truth = draw(rng, 2000)
    same = np.where(truth[::2] == truth[1::2], 1, -1)
    accuracy = {}
    for kind in ("linear", "relu"):
        model = LPTML(map=kind, max_trials=20, random_state=0).fit(X.reshape(1000, 2, 2), told)
        accuracy[kind] = (model.predict(new.reshape(1000, 2, 2)) == same).mean()
    drawn[name] = new, truth, model.transform(new), accuracy
    print(f"{name:8s} linear {accuracy['linear']:.3f}, hidden layer {accuracy['relu']:.3f}")

# %%
# Above the points as they are, below their images: the two leading directions of what was learned.

figure, axes = plt.subplots(2, 4, figsize=(11, 5.6), layout="constrained")
for (name, (points, truth, images, accuracy)), (above, below) in zip(drawn.items(), axes.T):
    centred = images - images.mean(axis=0)
    leading = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    for axis, shown in ((above, points), (below, leading)):
        for label, colour in enumerate(("#2f7ed8", "#e07b39")):
            axis.scatter(*shown[truth == label].T, s=4, color=colour, linewidths=0)
        axis.set(xticks=[], yticks=[])
    above.set_title(f"{name}\nlinear {accuracy['linear']:.2f}", fontsize=10)
    below.set_title(f"hidden layer {accuracy['relu']:.2f}", fontsize=10)
plt.show()
