"""
From comparisons: what is nearer to what
========================================

Nobody gave classes, but a taster said of three wines at a time which of two is nearer to the first; one
answer in ten is wrong. ``LPTML_Triplets`` learns the distance that contradicts as few answers as possible.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from lptml import LPTML_Triplets
from lptml.report.views import plane, turned

wine = load_wine()
X, grower = wine.data, wine.target
rng = np.random.default_rng(0)
triplets = []
while len(triplets) < 600:
    a, b, c = rng.choice(len(X), 3, replace=False)
    if grower[a] == grower[b] != grower[c]:
        triplets.append((a, c, b) if rng.random() < 0.1 else (a, b, c))
triplets = np.array(triplets)

model = LPTML_Triplets(temperature=0.1, prior="within", shrinkage=0.5, random_state=0)
model.fit(X[triplets[:400]])
standardised = StandardScaler().fit_transform(X)
plain = standardised[triplets[400:]]
near, far = (np.linalg.norm(plain[:, 0] - plain[:, k], axis=1) for k in (1, 2))
print(f"unseen answers in the learned order: {model.score(X[triplets[400:]]):.1%}")
print(f"in that of standardised features:    {np.mean(near < far):.1%}")

before = plane(standardised)
after = turned(plane(model.transform(X)), before)
fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), constrained_layout=True)
for ax, Z, title in zip(axes, (before, after), ("standardised features", "learned from 400 comparisons")):
    for kind in range(3):
        ax.scatter(*Z[grower == kind].T, s=18, label=wine.target_names[kind])
    ax.set(title=title, xticks=[], yticks=[])
axes[1].legend(frameon=False, title="grower (never told)")
plt.show()
