"""Validation chooses among metrics, and never trusts a handful of points."""

import numpy as np
import pytest

from lptml.datasets import load_iris, load_wine
from lptml.selection import Tried, _deal, _winner, select


def test_a_learned_metric_wins_on_wine_and_repeats_bit_for_bit():
    X, y = load_wine(return_X_y=True)
    first, second = (select(X[::2], y[::2], constraints="all", random_state=1) for _ in range(2))
    assert np.array_equal(first.A, second.A)
    assert np.allclose(first.A, first.components.T @ first.components)
    scores = {tried.name: tried.score for tried in first.table}
    assert scores[first.name] >= scores["standardised"] > scores["identity"]
    assert len(first.suspicion) == len(X[::2])


def test_rank_and_bounds_are_kept():
    X, y = load_iris(return_X_y=True)
    chosen = select(X, y, constraints="all", n_components=2, bounds=(1.0, 2.0))
    assert chosen.components.shape == (2, 4)
    assert chosen.bounds == (1.0, 2.0)


def test_the_default_stands_unless_clearly_beaten():
    def tried(name, advantage, error):
        return Tried(name, None, 0.9, advantage, error, 0.0)

    default = tried("standardised", 0.0, 0.01)
    assert _winner([default, tried("within classes", 0.01, 0.05)], 0.1).name == "standardised"
    assert _winner([default, tried("within classes", 0.05, 0.05)], 0.1).name == "within classes"
    assert _winner([default, tried("within classes", 0.05, 0.05)], 1.5).name == "standardised"
    assert _winner([default, tried("identity", 0.04, 0.05)], 0.1).name == "standardised"


def test_every_class_is_dealt_to_every_fold():
    codes = np.repeat([0, 1, 2], [30, 9, 3])
    rows, fold = _deal(codes, np.random.default_rng(0))
    assert np.array_equal(rows, np.arange(42))
    for c in range(3):
        assert set(fold[codes == c]) == {0, 1, 2}


def test_no_time_leaves_the_default():
    X, y = load_iris(return_X_y=True)
    chosen = select(X, y, time_limit=0.0)
    assert [tried.name for tried in chosen.table] == ["standardised"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraints": "some"}, "constraints must be"),
        ({"n_components": 9}, "n_components must lie"),
        ({"initial_metric": np.eye(3)}, "initial_metric must have shape"),
        ({"initial_metric": -np.eye(4)}, "positive semidefinite"),
    ],
)
def test_bad_options_are_named(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        select(X, y, **options)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="two classes"):
        select(np.zeros((4, 2)), np.zeros(4))
