"""Planted points are as many and as far as they should be, and wrongly labelled."""

import numpy as np
import pytest

from lptml.noise import plant_points


@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    return rng.standard_normal((80, 4)) * [1.0, 10.0, 0.1, 0.0], np.arange(80) % 3


@pytest.mark.parametrize("share", [0.0, 0.05, 0.333, 1.0])
def test_exactly_the_share_is_moved_and_wrong(given, share):
    X, y = given
    poisoned = plant_points(X, y, share, random_state=0)
    assert poisoned.n_planted == round(share * 80)
    assert np.array_equal(poisoned.planted, poisoned.labels != y)
    assert np.array_equal(poisoned.planted, (poisoned.points != X).any(axis=1))


@pytest.mark.parametrize("n_clumps", [1, 3, 8])
def test_each_clump_has_its_direction(given, n_clumps):
    X, y = given
    poisoned = plant_points(X, y, 0.1, distance=7.0, n_clumps=n_clumps, random_state=0)
    moved = ((poisoned.points - X)[poisoned.planted] / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)).round(
        9
    )
    directions, sizes = np.unique(moved, axis=0, return_counts=True)
    assert len(directions) == n_clumps
    assert sizes.max() - sizes.min() <= 1
    assert (np.linalg.norm(directions, axis=1) <= 7.0 + 1e-6).all()


def test_the_distance_is_in_standard_deviations():
    X = np.random.default_rng(0).standard_normal((50, 2)) * [1.0, 100.0]
    poisoned = plant_points(X, np.arange(50) % 2, 0.1, distance=12.0, random_state=0)
    moved = (poisoned.points - X)[poisoned.planted] / X.std(axis=0)
    assert np.allclose(np.linalg.norm(moved, axis=1), 12.0)


def test_the_seed_decides(given):
    X, y = given
    one, two, other = (plant_points(X, y, 0.2, random_state=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.points, two.points)
    assert np.array_equal(one.labels, two.labels)
    assert not np.array_equal(one.points, other.points)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"share": 2.0}, "share"),
        ({"y": [1, 1]}, "one class"),
        ({"X": [[1.0], [np.nan]]}, "finite"),
        ({"X": [[1.0]]}, "shape"),
        ({"distance": -1.0}, "distance"),
        ({"distance": float("inf")}, "distance"),
        ({"n_clumps": 0}, "n_clumps"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"X": [[0.0], [1.0]], "y": [0, 1], "share": 0.5, **changes}
    with pytest.raises(ValueError, match=message):
        plant_points(**arguments)
