"""Ways of stating the bounds."""

import numpy as np
import pytest

from lptml.constraints import LabelledPairs
from lptml.constraints.bounds import DEFAULT_RATIO, resolve_bounds, training_distances

DISTANCES = np.arange(1.0, 102.0)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("auto", (51.0 * DEFAULT_RATIO, 51.0)),
        (0.5, (25.5, 51.0)),
        (2, (102.0, 51.0)),
        (np.float32(0.5), (25.5, 51.0)),
        ((3, 4), (3.0, 4.0)),
        ([3.0, 4.0], (3.0, 4.0)),
        (("percentile", 10, 90), (11.0, 91.0)),
        (["percentile", 90, 10], (91.0, 11.0)),
    ],
)
def test_every_form(bounds, expected):
    assert resolve_bounds(bounds, DISTANCES) == pytest.approx(expected)


@pytest.mark.parametrize(
    "bounds",
    [
        "best", 0, -1.0, np.inf, np.nan, (1.0,), (0.0, 1.0), (1.0, np.inf), (1, 2, 3), ("percentile", -1, 50),
        ("percentile", 5, 101), ("percentile", "a", "b"), ("quantile", 1, 2), None, True, {"u": 1},
    ],
)  # fmt: skip
def test_everything_else_is_refused(bounds):
    with pytest.raises(ValueError, match=r"bounds"):
        resolve_bounds(bounds, DISTANCES)


def test_duplicates_do_not_make_a_bound_zero():
    distances = np.concatenate([np.zeros(50), [2.0, 3.0, 4.0]])
    u, l = resolve_bounds(("percentile", 10, 99), distances)
    assert (u, l) == (2.0, pytest.approx(np.percentile(distances, 99)))
    assert resolve_bounds("auto", np.zeros(5)) == (1.0, 1.0)
    assert resolve_bounds(("percentile", 10, 90), np.zeros(5)) == (1.0, 1.0)


def test_distances_of_every_source_are_the_same():
    X = np.random.default_rng(0).normal(size=(30, 3))
    pairs = LabelledPairs.from_labels(X, np.arange(30) % 2, bounds=(1.0, 1.0))
    listed = pairs.take(np.arange(pairs.n))
    expected = np.linalg.norm(listed.V, axis=1)
    for source in (pairs, listed, listed.V):
        np.testing.assert_allclose(training_distances(source), expected)


def test_many_pairs_are_sampled(monkeypatch):
    monkeypatch.setattr("lptml.constraints.bounds._SAMPLED_PAIRS", 100)
    X = np.random.default_rng(0).normal(size=(60, 3))
    pairs = LabelledPairs.from_labels(X, np.arange(60) % 2, bounds=(1.0, 1.0))
    some = training_distances(pairs)
    assert len(some) <= 100
    np.testing.assert_array_equal(some, training_distances(pairs))
