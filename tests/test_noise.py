"""The injectors flip exactly what they say, where they say."""

import numpy as np
import pytest

from lptml.noise import flip_labels, flip_pairs

KINDS = ["uniform", "class", "adversarial"]


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides(points, kind):
    X, y = points
    one, two, other = (flip_labels(y, 0.2, kind=kind, X=X, random_state=seed).labels for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


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


def test_adversarial_noise_comes_in_neighbourhoods(points):
    X, y = points
    noisy = flip_labels(y, 0.1, kind="adversarial", X=X, cluster_size=5, random_state=0)
    for i in np.flatnonzero(noisy.flipped):
        near = np.argsort(((X - X[i]) ** 2).sum(axis=1))[1:15]
        assert noisy.flipped[near].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1], "share": 1.5}, "share"),
        ({"y": [0, 1], "share": float("nan")}, "share"),
        ({"y": [0, 1], "share": 0.5, "kind": "nope"}, "kind"),
        ({"y": [0, 0], "share": 0.5}, "one class"),
        ({"y": [], "share": 0.5}, "non-empty"),
        ({"y": [0, 1], "share": 0.5, "kind": "adversarial"}, "points X"),
        ({"y": [0, 1], "share": 0.5, "kind": "adversarial", "X": [[1.0]]}, "shape"),
        (
            {"y": [0, 1], "share": 0.5, "kind": "adversarial", "X": [[1.0], [2.0]], "cluster_size": 0},
            "cluster",
        ),
    ],
)
def test_bad_label_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        flip_labels(**arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_flip_exactly(kind):
    rng = np.random.default_rng(0)
    pairs, y = rng.standard_normal((60, 2, 3)), np.repeat([-1, 1], 30)
    noisy = flip_pairs(y, 0.2, kind=kind, pairs=pairs, random_state=0)
    assert noisy.n_flipped == 12
    assert np.array_equal(noisy.labels, np.where(noisy.flipped, -y, y))
    assert np.array_equal(noisy.labels, flip_pairs(y, 0.2, kind=kind, pairs=pairs, random_state=0).labels)


def test_adversarial_pairs_are_the_most_misleading():
    pairs = np.zeros((8, 2, 1))
    pairs[:, 0, 0] = [1, 2, 3, 4, 1, 2, 3, 4]
    y = np.repeat([-1, 1], 4)
    noisy = flip_pairs(y, 0.25, kind="adversarial", pairs=pairs, random_state=0)
    assert np.flatnonzero(noisy.flipped).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [([0, 1], {}, "-1"), ([1, -1], {"kind": "adversarial"}, "needs the pairs"), ([], {}, "non-empty")],
)
def test_bad_pair_input_is_named(y, options, message):
    with pytest.raises(ValueError, match=message):
        flip_pairs(y, 0.5, **options)
