"""Out-of-sample class probabilities of labelled points, from two models that err differently.

- :func:`forest`: out-of-bag votes of a random forest (Breiman 2001), local and blind to the features' scale.
- :func:`discriminant`: the distance to the centre of each class under the within-class metric (the inverse of
  the scatter within classes), each point left out. It is rigid, so that a neighbourhood of wrong labels does
  not bend it. This is the metric that the learners of this package start from.

ROC AUC of finding 20% uniform flips, the 10% most confident and one neighbourhood of 10%, four splits of
the 13 development sets of docs/generalisation.md, each forest with 38 / 110 out-of-bag votes for a point:

- forest .876, .847, .553 / .880, .854, .555; discriminant .867, .906, .656;
- both .885, .904, .606 / .886, .908, .607;
- with a second forest, in which a label counts as far as the discriminant trusts it, .887, .900, .590 / .889,
  .904, .589;
- with the discriminant once more beside that (:func:`lptml.noise.noise_model.mixed_suspicion`), .886, .913,
  .631 / .888, .916, .631. This is done, with 110 votes. Without any chance it would be .889, by how the first
  figure grows with the votes.

A third source beside forest and discriminant, each point left out or cross-fitted, gained less; on two
splits, where both had .891, .901, .588: 15 / 30 neighbours under the discriminant metric .887, .895, .548 /
.887, .903, .549; kernel least squares .890, .897, .558; logistic regression .888, .899, .601; extremely
randomised trees .892, .897, .569. In place of the second forest, with 110 votes on two splits, where what is
done has .894 and .905 for the first two attacks: extremely randomised trees .891, .909; a forest in which a
label counts as far as discriminant and first forest together trust it .893, .905.

References
----------
.. [1] Breiman (2001). Random forests. Machine Learning 45.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lptml._limits import look
from lptml.constraints import Floats, Ints
from lptml.points.scatter import SHRINKAGE, TAILS, WithinClass, whitening, within_class

#: Told how many steps of how many are done.
Advance = Callable[[int, int], None]

_VOTES = 110  # out-of-bag votes for each point
_WORK = 190_000  # votes times points of a tree: large data have fewer votes, of 5,000 points 38
_LEAF = 5  # least points of a leaf; at 20% uniform flips 2, 5 and 15 have an AUC of .880, .886 and .881
_BAG = 5000  # points that a tree sees at most, so that 100,000 rows take seconds


def n_trees(n: int) -> int:
    """Trees that leave each of n points out about 110 times, of more than 1,700 points less often.

    They are fewer where a tree sees a small part of the points.

    Examples
    --------
    >>> from lptml.noise.evidence import n_trees
    >>> n_trees(400), n_trees(100_000)
    (300, 40)
    """
    bag = min(n, _BAG)
    left_out = (1.0 - 1.0 / n) ** bag if n > 1 else 1.0
    return int(np.ceil(min(_VOTES, _WORK / bag) / left_out))


def forest(X: Floats, codes: Ints, K: int, weight: Floats, rng: np.random.Generator, step: Advance) -> Floats:
    """(N, K) class probabilities of every point, from the trees that have not seen it.

    They are averaged with one vote for the shares of the classes, so that none is 0.
    """
    from sklearn.tree import DecisionTreeClassifier

    N, trees = len(X), n_trees(len(X))
    points = np.ascontiguousarray(X, dtype=np.float32)  # what trees work on
    share = np.bincount(codes, weights=weight, minlength=K) / weight.sum()
    total = np.tile(share, (N, 1))  # (N, K)
    votes = np.ones(N)
    for number in range(trees):
        look()
        bag = np.sort(rng.integers(N, size=min(N, _BAG)))
        out = np.ones(N, dtype=bool)
        out[bag] = False
        if not out.any():  # of a handful of points
            continue
        tree = DecisionTreeClassifier(
            max_features="sqrt", min_samples_leaf=_LEAF, random_state=int(rng.integers(2**31))
        )
        tree.fit(points[bag], codes[bag], sample_weight=weight[bag])
        total[np.ix_(out, tree.classes_)] += tree.predict_proba(points[out])
        votes += out
        step(number + 1, trees)
    return np.asarray(total / votes[:, None])


def discriminant(Z: Floats, codes: Ints, K: int, weight: Floats) -> Floats:
    """(N, K) log-density of the classes under the within-class metric, each point left out.

    Leaving a point out moves the centre of its class and takes a rank-one term from the scatter, so the
    inverse follows from the formula of Sherman and Morrison.
    """
    N, d = Z.shape
    tail = TAILS[1]
    fit: WithinClass = within_class(Z, codes, K, weight, tail=tail)
    own = np.arange(N)
    whiten = whitening(fit.scatter)
    points = Z @ whiten.T  # (N, d)
    centres = fit.centres @ whiten.T  # (K, d)
    residual = points - centres[codes]
    mass = weight * fit.tails
    of_class = np.bincount(codes, weights=mass, minlength=K)[codes]
    rest = np.maximum(of_class - mass, 1e-9 * of_class)
    # Without point i its centre moves away by mass / rest of the residual r, and the scatter loses
    # gamma r r', so that its inverse gains gamma r r' / (1 - gamma r'r).
    gamma = (1.0 - SHRINKAGE) * mass * of_class / rest / weight.sum()
    q = np.einsum("ij,ij->i", residual, residual)
    gain = gamma / np.maximum(1.0 - gamma * q, 1e-3)  # (N,)
    squares = np.empty((N, K))
    for c in range(K):
        away = points - centres[c]
        squares[:, c] = np.einsum("ij,ij->i", away, away) + gain * np.einsum("ij,ij->i", away, residual) ** 2
    stretch = np.minimum(of_class / rest, 1e6)
    squares[own, codes] = stretch**2 * (q + gain * q**2)
    prior = np.bincount(codes, weights=weight, minlength=K)
    return -(tail + d) / 2.0 * np.log1p(squares / tail) + np.log(prior / prior.sum())
