"""The leaves of a forest: points are near that fall into the same leaves.

The trees are scikit-learn's extremely randomised trees (Geurts et al. 2006), grown on the labels as far as
they are trusted. The share of trees in which two points share a leaf is a kernel (Breiman 2000), and f(x)
has the leading features of its space, after Nyström's method: with landmarks among the points, every leaf
has a vector, and

    f(x) = mean over the trees of the vector of the leaf that x falls into.

What is kept of the trees are plain arrays, and a point finds its leaves by a few lines of NumPy.

References
----------
Breiman, L. (2000). Some infinity theory for predictor ensembles. Technical report 577, UC Berkeley.
Geurts, P., Ernst, D. and Wehenkel, L. (2006). Extremely randomized trees. Machine Learning 63 (1), 3-42.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lptml.constraints import Floats, Ints
from lptml.maps._evidence import Arrays, Evidence, check_settings
from lptml.points.scatter import robust_scale

TREES = 100
GROWN = 10_000  # points that trees are grown on, at most; of more points these are drawn
LEAVES = 2048  # of a tree at most
LANDMARKS = 500
_BLOCK = 1024
_LARGEST = 1e30


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees as flat arrays: a node splits by ``x[feature] <= threshold``, or is a leaf.

    Examples
    --------
    >>> import numpy as np
    >>> trees = Trees(children=np.array([[1, 2], [-1, -1], [-2, -2]]), feature=np.array([0, 0, 0]),
    ...               threshold=np.array([0.5, 0.0, 0.0]), roots=np.array([0]),
    ...               centre=np.zeros(1), scale=np.ones(1))
    >>> trees.leaves(np.array([[0.0], [1.0]]))
    array([[0],
           [1]])
    """

    children: Ints
    """(nodes, 2) left and right; of a leaf -1 - its number."""
    feature: Ints
    """(nodes,)"""
    threshold: Floats
    """(nodes,)"""
    roots: Ints
    """(trees,)"""
    centre: Floats
    scale: Floats
    """(d,) subtracted from the features, and what they are divided by, before they are compared."""

    @property
    def n_leaves(self) -> int:
        """Of all trees together."""
        return int((self.children[:, 0] < 0).sum())

    def leaves(self, X: Floats) -> Ints:
        """(n, trees) the number of the leaf that each point falls into in each tree."""
        blocks = [self._leaves(X[i : i + _BLOCK]) for i in range(0, len(X), _BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.roots)), dtype=np.int64)

    def _leaves(self, X: Floats) -> Ints:
        Z = in_single(X, self.centre, self.scale)
        rows = np.repeat(np.arange(len(X)), len(self.roots))
        at = np.tile(self.roots, len(X))
        found = np.empty(at.size, dtype=np.int64)
        places = np.arange(at.size)
        while len(places):
            right = Z[rows, self.feature[at]] > self.threshold[at]
            down = self.children[at, right.astype(np.int64)]
            ended = down < 0
            found[places[ended]] = -1 - down[ended]
            inner = ~ended
            places, rows, at = places[inner], rows[inner], down[inner]
        return found.reshape(len(X), len(self.roots))

    def check(self, d: int) -> None:
        """ValueError unless these are trees over d features that every point finds its way through."""
        nodes = len(self.children)
        inner = self.children[:, 0] >= 0
        after = np.arange(nodes)[inner, None]
        leaf = -1 - self.children[~inner]
        sound = (
            self.children.shape == (nodes, 2)
            and self.feature.shape == self.threshold.shape == (nodes,)
            and self.centre.shape == self.scale.shape == (d,)
            and (self.scale > 0).all()
            and self.roots.ndim == 1
            and len(self.roots) > 0
            and ((self.roots >= 0) & (self.roots < nodes)).all()
            and ((self.children[inner] > after) & (self.children[inner] < nodes)).all()  # downwards: it ends
            and (np.sort(leaf[:, 0]) == np.arange(len(leaf))).all()
            and (leaf[:, 0] == leaf[:, 1]).all()
            and ((self.feature >= 0) & (self.feature < d)).all()
            and np.isfinite(self.threshold).all()
        )
        if not sound:
            raise ValueError("the arrays of a forest do not describe trees")


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees, and the points that each of them was not grown on."""

    trees: Trees
    left_out: NDArray[np.bool_]
    """(n, trees)"""


def grow(
    X: Floats,
    beliefs: Floats,
    weight: Floats | None,
    *,
    n_trees: int = TREES,
    min_leaf: int = 1,
    seed: int = 0,
) -> Grown:
    """Grow trees on class memberships (n, K), certain or not, each on a bootstrap sample of the points.

    The variance of memberships is Gini's impurity where they are certain.
    """
    from sklearn.ensemble import ExtraTreesRegressor  # takes a second to import

    rows = np.arange(len(X))
    if len(rows) > GROWN:
        rows = np.sort(np.random.default_rng(seed).permutation(rows)[:GROWN])
    forest = ExtraTreesRegressor(
        n_trees,
        min_samples_leaf=min_leaf,
        max_features="sqrt",
        max_leaf_nodes=LEAVES if len(rows) > LEAVES else None,
        bootstrap=True,
        random_state=seed,
    )
    centre, scale = np.median(X, axis=0), robust_scale(X)
    Z = in_single(X[rows], centre, scale)
    forest.fit(Z, beliefs[rows], sample_weight=None if weight is None else weight[rows])
    left_out = np.ones((len(X), n_trees), dtype=bool)
    for tree, drawn in enumerate(forest.estimators_samples_):
        left_out[rows[drawn], tree] = False
    return Grown(flatten([each.tree_ for each in forest.estimators_], centre, scale), left_out)


def in_single(X: Floats, centre: Floats, scale: Floats) -> NDArray[np.float32]:
    """The features in single precision, as scikit-learn's trees see them, whatever their units."""
    return np.clip((X - centre) / scale, -_LARGEST, _LARGEST).astype(np.float32)


def flatten(trees: list[Any], centre: Floats, scale: Floats) -> Trees:
    """scikit-learn's trees, grown on (X - centre) / scale, as one set of arrays."""
    children, features, thresholds, roots = [], [], [], []
    nodes = leaves = 0
    for tree in trees:
        both = np.stack([tree.children_left, tree.children_right], axis=1)
        leaf = both[:, 0] < 0
        numbered = np.where(leaf, -leaves - np.cumsum(leaf), 0)[:, None]
        children.append(np.where(leaf[:, None], numbered, both + nodes))
        features.append(np.maximum(tree.feature, 0))
        thresholds.append(np.where(leaf, 0.0, tree.threshold))
        roots.append(nodes)
        nodes, leaves = nodes + len(leaf), leaves + int(leaf.sum())
    return Trees(
        np.concatenate(children).astype(np.int64),
        np.concatenate(features).astype(np.int64),
        np.concatenate(thresholds),
        np.array(roots, dtype=np.int64),
        centre,
        scale,
    )


@dataclass(eq=False)
class ForestMap:
    """The ``components`` leading features of the kernel of a forest grown on labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lptml.maps import Evidence, ForestMap
    >>> X, y = load_iris(return_X_y=True)
    >>> f = ForestMap(components=10).fit(Evidence.of_points(X, labels=y))
    >>> f.transform(X).shape
    (150, 10)
    """

    components: int = 32
    n_trees: int = TREES
    min_leaf: int = 1
    seed: int = 0
    metric: Floats | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(self, evidence: Evidence) -> Self:
        """Grow the trees and give every leaf its vector."""
        if evidence.labels is None:
            raise ValueError('map="forest" is grown on the classes of points: pairs and triplets have none')
        memberships = np.eye(int(evidence.labels.max()) + 1)[evidence.labels]
        self.trees = grow(
            evidence.X,
            memberships,
            evidence.trust,
            n_trees=self.n_trees,
            min_leaf=self.min_leaf,
            seed=self.seed,
        ).trees
        some = np.sort(np.random.default_rng(self.seed).permutation(len(evidence.X))[:LANDMARKS])
        at = self.trees.leaves(evidence.X[some])  # (m, trees)
        share = np.zeros((len(some), len(some)))
        for leaf in at.T:
            share += leaf[:, None] == leaf
        values, Q = np.linalg.eigh(share / at.shape[1])
        order = np.argsort(-values, kind="stable")[: self.components]
        order = order[values[order] > 1e-10 * values[order[0]]]
        directions = Q[:, order] / np.sqrt(values[order])  # (m, q)
        self.vectors = np.zeros((self.trees.n_leaves, len(order)))
        for leaf in at.T:
            np.add.at(self.vectors, leaf, directions)
        return self

    def transform(self, X: Floats) -> Floats:
        """(n, q)"""
        out = np.empty((len(X), self.vectors.shape[1]))
        for i in range(0, len(X), _BLOCK):
            rows = slice(i, i + _BLOCK)
            out[rows] = self.vectors[self.trees.leaves(X[rows])].mean(axis=1)
        return out

    def arrays(self) -> Arrays:
        """The trees, and the vectors of their leaves."""
        trees: dict[str, NDArray[Any]] = vars(self.trees)
        return {**trees, "vectors": self.vectors}

    @classmethod
    def restore(cls, arrays: Arrays) -> Self:
        """The map of that state."""
        found = cls()
        whole = {name: np.asarray(arrays[name], dtype=np.int64) for name in ("children", "feature", "roots")}
        real = {name: np.asarray(arrays[name], dtype=np.float64) for name in ("threshold", "centre", "scale")}
        parts: dict[str, Any] = whole | real
        found.trees = Trees(**parts)
        found.vectors = np.asarray(arrays["vectors"], dtype=np.float64)
        found.trees.check(len(found.trees.centre))
        if found.vectors.ndim != 2 or len(found.vectors) != found.trees.n_leaves:
            raise ValueError("every leaf of a forest needs a vector")
        return found
