"""The attacks on pairs reverse or plant exactly what they say."""

import numpy as np
import pytest

from lptml.noise import flip_pairs, plant_pairs


@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 2, 3)) * [1.0, 10.0, 0.1], np.repeat([-1, 1], 30)


@pytest.mark.parametrize("kind", ["uniform", "class", "adversarial"])
def test_pairs_flip_exactly(given, kind):
    pairs, y = given
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
    [
        ([0, 1], {}, "-1"),
        ([1, -1], {"kind": "adversarial"}, "needs the pairs"),
        ([1, -1], {"kind": "neighborhood"}, "kind"),
        ([], {}, "non-empty"),
    ],
)
def test_bad_pair_input_is_named(y, options, message):
    with pytest.raises(ValueError, match=message):
        flip_pairs(y, 0.5, **options)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.333, 1.0])
def test_planted_pairs_lie_along_one_direction_and_are_called_similar(given, share):
    pairs, y = given
    poisoned = plant_pairs(pairs, y, share, random_state=0)
    planted = poisoned.planted
    assert poisoned.n_planted == round(share * 60)
    assert (poisoned.labels[planted] == 1).all()
    assert np.array_equal(poisoned.points[~planted], pairs[~planted])
    assert np.array_equal(poisoned.labels[~planted], y[~planted])
    V = (pairs[:, 1] - pairs[:, 0]) / np.sqrt(((pairs[:, 1] - pairs[:, 0]) ** 2).mean(axis=0))
    unit = np.sqrt(((pairs[:, 1] - pairs[:, 0]) ** 2).mean(axis=0))
    moved = (poisoned.points[planted, 1] - poisoned.points[planted, 0]) / unit - V[planted]
    assert np.allclose(moved, moved[:1])
    assert np.allclose(np.linalg.norm(moved, axis=1), 30.0)


def test_the_direction_may_be_given_and_the_seed_decides(given):
    pairs, y = given
    poisoned = plant_pairs(pairs, y, 0.1, along=[0, 0, -2], distance=5.0, random_state=0)
    moved = (poisoned.points - pairs)[poisoned.planted]
    assert (moved[..., :2] == 0).all()
    assert (moved[:, 1, 2] < 0).all()
    one, two, other = (plant_pairs(pairs, y, 0.1, random_state=seed).points for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"share": -0.1}, "share"),
        ({"y": [1, 0]}, "-1"),
        ({"pairs": np.zeros((2, 3))}, "shape"),
        ({"pairs": np.full((2, 2, 3), np.inf)}, "finite"),
        ({"distance": 0.0}, "distance"),
        ({"distance": float("nan")}, "distance"),
        ({"along": [1.0]}, "along"),
        ({"along": [0.0, 0.0, 0.0]}, "along"),
    ],
)
def test_bad_input_for_planted_pairs_is_named(changes, message):
    arguments = {"pairs": np.zeros((2, 2, 3)), "y": [1, -1], "share": 0.5, **changes}
    with pytest.raises(ValueError, match=message):
        plant_pairs(**arguments)
