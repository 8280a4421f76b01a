"""
A first metric: wine
====================

Thirteen measurements of 178 wines, from the share of magnesium to the amount of proline, in units that have
nothing to do with each other.  The Euclidean distance sees proline alone.  A metric learned from the growers'
names sees the growers.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from lptml import LPTML_SupervisedCV
from lptml.plots import EmbeddingDisplay, FeatureWeightsDisplay, PairDistancesDisplay

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
model = LPTML_SupervisedCV(random_state=0).fit(X_train, y_train)

# %%
# The test half, which the metric has not seen, before and after:

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
EmbeddingDisplay.from_estimator(model, X_test, y_test, before=True, ax=left)
EmbeddingDisplay.from_estimator(model, X_test, y_test, ax=right)
for name, transform in (("Euclidean", lambda Z: Z), ("learned", model.transform)):
    voters = KNeighborsClassifier(4).fit(transform(X_train), y_train)
    print(f"{name:10} 4-NN accuracy {voters.score(transform(X_test), y_test):.3f}")

# %%
# What it looks at.  Each bar is the share of the mean squared distance that a feature carries.

names = load_wine().feature_names
FeatureWeightsDisplay.from_estimator(model, X_train, feature_names=names)
plt.tight_layout()

# %%
# And how far wines of one grower and of two are apart.  Not every two wines of a grower must be near: the
# metric was asked for each wine to be nearer to its neighbours of the same grower than to those of others.

PairDistancesDisplay.from_estimator(model, X_test, y_test)
print(f"violated: {model.violation_rate_:.1%}, by the Euclidean distance: {model.trivial_rate_:.1%}")
plt.show()
