"""Counting through single precision gives the count of double precision, wherever the bounds lie."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lptml.constraints.constraint_set as module
from lptml.constraints import TOLERANCE, ConstraintSet
from lptml.constraints.single_precision import lengths


@pytest.fixture(autouse=True)
def _always_single(monkeypatch):
    monkeypatch.setattr(module, "_SINGLE", 0)
    monkeypatch.setattr(module, "_FEW", 0)


def _random(rng, n, d, spread, triplets):
    size = 10.0 ** rng.uniform(-spread, spread, size=d)
    V = rng.normal(size=(n, d)) * size
    W = rng.normal(size=(n, d)) * size * 0.5 if triplets else None
    B = rng.normal(size=(d, d)) / size
    return V, W, B.T @ B


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    d=st.integers(1, 40),
    spread=st.sampled_from([0.0, 3.0, 12.0, 20.0]),
    triplets=st.booleans(),
    off=st.sampled_from([0.0, 1e-9, 2e-7, 1e-6, 1e-4]),
)
def test_the_count_is_that_of_double_precision(seed, d, spread, triplets, off):
    rng = np.random.default_rng(seed)
    V, W, A = _random(rng, 200, d, spread, triplets)
    values = np.einsum("ij,jk,ik->i", V, A, V)
    if W is not None:
        values -= np.einsum("ij,jk,ik->i", W, A, W)
    # Bounds hug the values, so that single precision alone would decide many rows wrongly.
    bound = np.abs(values) * (1 + off * rng.choice([-1, 1], size=200)) + 1e-300
    sign = rng.choice([-1, 1], size=200).astype(np.int8)
    weight = rng.integers(1, 9, size=200).astype(float)
    set_ = ConstraintSet(V=V, W=W, sign=sign, bound=bound, weight=weight)
    stack = np.stack([A, 4.0 * A, np.zeros_like(A)])
    assert np.array_equal(set_.cost(stack), set_.violated(stack) @ weight)
    assert set_.cost(A) == set_.cost(stack)[0]


def test_rows_in_doubt_are_decided_in_double_precision():
    """Whole numbers: the squared length is exact, and a bound one part in 10^6 off must be seen."""
    v = np.array([[3001.0, 4001.0, 17.0]])
    square = float(3001**2 + 4001**2 + 17**2)
    for factor, violated in ((1 - 3 * TOLERANCE, 1.0), (1 - TOLERANCE / 2, 0.0), (1 + TOLERANCE, 0.0)):
        above = ConstraintSet(
            V=v, W=None, sign=np.array([1], np.int8), bound=np.array([square * factor]), weight=np.ones(1)
        )
        assert above.cost(np.eye(3)) == violated


@pytest.mark.parametrize("size", [1e-40, 1e-20, 1e20, 1e40])
def test_numbers_beyond_single_precision_are_counted_right(size):
    rng = np.random.default_rng(0)
    V = rng.normal(size=(100, 3)) * size
    bound = np.full(100, 3.0 * size**2)
    sign = rng.choice([-1, 1], size=100).astype(np.int8)
    set_ = ConstraintSet(V=V, W=None, sign=sign, bound=bound, weight=np.ones(100))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        assert set_.cost(np.eye(3)) == set_.violated(np.eye(3)).sum() > 0


def test_lengths_are_never_too_short():
    rng = np.random.default_rng(1)
    V = rng.normal(size=(5000, 7)) * [1e-9, 1e9, 1, 2, 3, 4, 0]
    scale, (found,) = lengths([V])
    assert (found.astype(float) >= np.linalg.norm(V / scale, axis=1)).all()
