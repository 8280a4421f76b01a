"""The attacks on labels flip exactly what they say, where they say."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from lptml.noise import (
    NoiseKind,
    flip_by_class,
    flip_clusters,
    flip_confident,
    flip_labels,
    flip_uniform,
    relabel_neighborhood,
)

KINDS = ["uniform", "class", "clusters", "confident", "adversarial"]
WITH_POINTS = ["clusters", "neighborhood", "confident"]


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 30, 30])
    return rng.standard_normal((100, 3)) + 4.0 * y[:, None], y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.333, 0.4, 1.0])
def test_exactly_the_share_is_wrong(points, kind, share):
    X, y = points
    noisy = flip_labels(y, share, kind=kind, X=X, random_state=1)
    assert noisy.n_flipped == round(share * y.size)
    assert np.array_equal(noisy.labels != y, noisy.flipped)
    assert set(noisy.labels) <= set(y)


@pytest.mark.parametrize("kind", [*KINDS, "neighborhood"])
def test_the_seed_decides(points, kind):
    X, y = points
    one, two, other = (flip_labels(y, 0.2, kind=kind, X=X, random_state=seed).labels for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", NoiseKind)
def test_neither_points_nor_labels_are_written_to(points, kind):
    X, y = (array.copy() for array in points)
    X.flags.writeable = y.flags.writeable = False  # writing to them would raise
    assert flip_labels(y, 0.3, kind=kind, X=X, random_state=0).labels is not y
    assert all(np.array_equal(*each) for each in zip((X, y), points))


@pytest.mark.parametrize(
    ("kind", "attack"),
    [
        ("uniform", lambda X, y, **options: flip_uniform(y, 0.2, **options)),
        ("class", lambda X, y, **options: flip_by_class(y, 0.2, **options)),
        ("clusters", lambda X, y, **options: flip_clusters(X, y, 0.2, **options)),
        ("neighborhood", lambda X, y, **options: relabel_neighborhood(X, y, 0.2, **options)),
        ("confident", lambda X, y, **options: flip_confident(X, y, 0.2, **options)),
    ],
)
def test_each_kind_is_a_function(points, kind, attack):
    X, y = points
    by_name = flip_labels(y, 0.2, kind=kind, X=X, random_state=7)
    assert np.array_equal(by_name.labels, attack(X, y, random_state=7).labels)


def test_adversarial_is_what_clusters_were_called(points):
    X, y = points
    clusters, earlier = (
        flip_labels(y, 0.2, kind=k, X=X, random_state=0) for k in ("clusters", "adversarial")
    )
    assert np.array_equal(clusters.labels, earlier.labels)


def test_strings_keep_their_type():
    noisy = flip_labels(np.array(["no", "yes"] * 10), 0.25, random_state=0)
    assert noisy.labels.dtype.kind == "U"
    assert noisy.n_flipped == 5


def test_uniform_flips_spread_over_all_other_classes():
    y = np.zeros(3000, dtype=int)
    y[:2] = 1, 2
    wrong = flip_labels(y, 0.9, random_state=0)
    counts = np.bincount(wrong.labels[wrong.flipped & (y == 0)], minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] - counts[2]) < 5 * np.sqrt(counts.sum())


def test_class_noise_hits_the_last_class_twice_as_often():
    y = np.repeat([0, 1], 500)
    noisy = flip_labels(y, 0.3, kind="class", random_state=0)
    assert noisy.flipped[y == 0].sum() == 100
    assert noisy.flipped[y == 1].sum() == 200


def test_class_noise_gives_the_next_class(points):
    _, y = points
    noisy = flip_labels(y, 0.2, kind="class", random_state=0)
    assert np.array_equal(noisy.labels[noisy.flipped], (y[noisy.flipped] + 1) % 3)


def test_clusters_are_neighbourhoods(points):
    X, y = points
    noisy = flip_clusters(X, y, 0.1, cluster_size=5, random_state=0)
    for i in np.flatnonzero(noisy.flipped):
        near = np.argsort(((X - X[i]) ** 2).sum(axis=1))[1:15]
        assert noisy.flipped[near].any()


@pytest.mark.parametrize("seed", range(5))
def test_a_neighbourhood_is_one_ball_of_one_class(points, seed):
    X, y = points
    k = round(0.15 * y.size)
    noisy = relabel_neighborhood(X * [1.0, 100.0, 0.01], y, 0.15, random_state=seed)
    (given,) = set(noisy.labels[noisy.flipped])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    balls = np.argsort(cdist(Z, Z), axis=1)[:, :k]
    around = [ball for ball in balls if set(np.flatnonzero(noisy.flipped)) <= set(ball)]
    assert any((noisy.labels[ball] == given).all() for ball in around)
    assert any(np.bincount(y[ball]).argmax() != given for ball in around)


def test_a_neighbourhood_of_everything_is_one_class(points):
    X, y = points
    noisy = relabel_neighborhood(X, y, 1.0, random_state=0)
    assert set(noisy.labels) < {1, 2}  # most are of class 0


def test_the_most_obvious_labels_are_flipped(points):
    X, y = points
    noisy = flip_confident(X, y, 0.1, random_state=0)
    sure = LogisticRegression().fit(X, y).predict_proba(X)[np.arange(y.size), y]
    assert sure[noisy.flipped].min() > np.median(sure)


def test_the_unit_of_a_feature_does_not_matter(points):
    X, y = points
    for kind in WITH_POINTS:
        one = flip_labels(y, 0.2, kind=kind, X=X, random_state=0)
        other = flip_labels(y, 0.2, kind=kind, X=X * [1.0, 1024.0, 0.125], random_state=0)
        assert np.array_equal(one.labels, other.labels)


def test_a_class_of_one_point_and_constant_features_are_no_obstacle():
    X = np.c_[np.linspace(0, 1, 12), np.ones(12)]
    y = np.r_[np.zeros(6, int), np.ones(5, int), 2]
    noisy = flip_confident(X, y, 0.5, random_state=0)
    assert noisy.n_flipped == 6
    assert not noisy.flipped[-1]  # no model knows its class
    assert flip_confident([[0.0], [1.0]], [0, 1], 1.0, random_state=0).n_flipped == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1], "share": 1.5}, "share"),
        ({"y": [0, 1], "share": float("nan")}, "share"),
        ({"y": [0, 1], "share": 0.5, "kind": "nope"}, "kind"),
        ({"y": [0, 0], "share": 0.5}, "one class"),
        ({"y": [], "share": 0.5}, "non-empty"),
        *(({"y": [0, 1], "share": 0.5, "kind": kind}, "points X") for kind in WITH_POINTS),
        *(({"y": [0, 1], "share": 0.5, "kind": kind, "X": [[1.0]]}, "shape") for kind in WITH_POINTS),
        *(
            ({"y": [0, 1], "share": 0.5, "kind": kind, "X": [[1.0], [np.nan]]}, "finite")
            for kind in WITH_POINTS
        ),
        (
            {"y": [0, 1], "share": 0.5, "kind": "clusters", "X": [[1.0], [2.0]], "cluster_size": 0},
            "cluster",
        ),
    ],
)
def test_bad_label_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        flip_labels(**arguments)
