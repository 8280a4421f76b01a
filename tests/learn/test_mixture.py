"""The likelihood of blurred and wrong labels, against numbers made without it."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import logistic

from lptml.constraints import ConstraintSet
from lptml.learn.mixture import likeliest, log_likelihood, share_of_coins


def draw(n, wrong=0.0, blur=0.0, seed=0, d=3):
    """Pairs of a known metric diag(1, 1/4, 0, ...), of which some labels are blurred or wrong."""
    rng = np.random.default_rng(seed)
    A = np.diag(np.r_[1.0, 0.25, np.zeros(d - 2)])
    V = 1.5 * rng.normal(size=(n, d))
    length = np.sqrt(np.einsum("ij,jk,ik->i", V, A, V))
    near = length + blur * rng.logistic(size=n) <= 1.0
    y = np.where(near ^ (rng.random(n) < wrong), 1, -1)
    return ConstraintSet.from_differences(V, y, bounds=(1.0, 1.0)), A


def test_the_likelihood_is_that_of_the_model():
    pairs, A = draw(50, wrong=0.2, blur=0.1)
    length = np.array([np.sqrt(v @ A @ v) for v in pairs.V])
    similar = 0.3 / 2 + 0.7 * logistic.cdf(1.0 - length, scale=0.1)
    expected = np.log(np.where(pairs.sign > 0, similar, 1.0 - similar))
    np.testing.assert_allclose(log_likelihood(pairs, A, 0.1, 0.3), expected)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.02, 0.2]))
def test_no_other_share_of_coins_is_likelier(seed, temperature):
    pairs, A = draw(80, wrong=0.15, blur=0.1, seed=seed)
    best = log_likelihood(pairs, A, temperature, share_of_coins(pairs, A, temperature)).sum()
    for eps in np.linspace(0.01, 0.97, 25):
        assert log_likelihood(pairs, A, temperature, eps).sum() <= best + 1e-6


def test_the_result_is_likelier_than_the_start_and_than_its_surroundings():
    pairs, _ = draw(600, wrong=0.1, blur=0.1)
    start = np.eye(3)

    def likelihood(A):
        return log_likelihood(pairs, A, 0.1, share_of_coins(pairs, A, 0.1)).sum()

    A = likeliest(pairs, start, 0.1)
    assert likelihood(A) > likelihood(start)
    rng = np.random.default_rng(0)
    L = np.linalg.cholesky(A + 1e-12 * np.eye(3)).T
    for _ in range(30):
        moved = L + 0.05 * rng.normal(size=(3, 3))
        assert likelihood(moved.T @ moved) <= likelihood(A) + 1e-3


@pytest.mark.parametrize(("wrong", "blur"), [(0.1, 0.0), (0.0, 0.15), (0.1, 0.1)])
def test_it_recovers_the_metric(wrong, blur):
    pairs, truth = draw(20_000, wrong, blur)
    A = likeliest(pairs, np.eye(3), 0.1 if blur else 0.03)
    assert np.abs(A - truth).max() < 0.06


def test_wrong_labels_far_out_pull_no_more_than_others():
    pairs, truth = draw(2000)
    V, sign = pairs.V.copy(), pairs.sign.copy()
    V[:100], sign[:100] = 1e3 * V[:100], 1  # far apart, and called similar
    A = likeliest(ConstraintSet.from_differences(V, sign, bounds=(1.0, 1.0)), truth, 0.03)
    assert np.abs(A - truth).max() < 0.1


def test_weights_count_as_copies_and_units_do_not_matter():
    pairs, _ = draw(200, wrong=0.1)
    V, sign = pairs.V, pairs.sign
    double = ConstraintSet.from_differences(V, sign, bounds=(1.0, 1.0), weight=np.full(200, 2.0))
    twice = ConstraintSet.from_differences(
        np.concatenate([V, V]), np.concatenate([sign, sign]), bounds=(1.0, 1.0)
    )
    np.testing.assert_allclose(
        likeliest(double, np.eye(3), 0.1), likeliest(twice, np.eye(3), 0.1), rtol=1e-2, atol=1e-3
    )
    other = ConstraintSet.from_differences(8.0 * V, sign, bounds=(2.0, 2.0))
    np.testing.assert_allclose(
        16.0 * likeliest(other, np.eye(3) / 16, 0.1), likeliest(pairs, np.eye(3), 0.1), rtol=1e-2, atol=1e-3
    )


def test_rank_penalty_and_deadline():
    pairs, _ = draw(400, wrong=0.1)
    assert np.linalg.matrix_rank(likeliest(pairs, np.eye(3), 0.1, rank=1), tol=1e-9) == 1
    small = likeliest(pairs, np.eye(3), 0.1, penalty=1e3 * np.eye(3))
    assert np.trace(small) < 0.1 * np.trace(likeliest(pairs, np.eye(3), 0.1))
    late = likeliest(pairs, np.eye(3), 0.1, deadline=time.monotonic() - 1.0)
    np.testing.assert_allclose(late, np.eye(3), atol=1e-9)
