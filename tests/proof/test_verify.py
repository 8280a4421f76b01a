"""Certificates of cells: what they prove is recomputed, and trees that leave metrics out are refused."""

import numpy as np
import pytest

from lptml.constraints import ConstraintSet
from lptml.proof import CertificateError, certify
from lptml.proof.cells import roots
from lptml.proof.verify import least_cost_of_cells


def pairs(n=100, d=2):
    rng = np.random.default_rng([n, d])
    V = rng.normal(size=(n, d))
    y = np.where(np.abs(V[:, 0]) < 0.7, 1, -1)
    y[: n // 10] *= -1
    return ConstraintSet.from_differences(V, y, bounds=(0.7, 0.7))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_no_metric_costs_less_than_a_tree_proves(d):
    """Trees that were cut at random: whatever the cells are, the bound holds."""
    rng = np.random.default_rng(d)
    constraints = pairs(60, d)
    D = constraints.D
    codes = []
    for root in roots(d):
        waiting = [(root, 0)]
        while waiting:
            box, depth = waiting.pop()
            axes = np.flatnonzero(box[1] > box[0])
            if depth == 6 or not len(axes) or rng.random() < 0.2:
                codes.append(-1)
                continue
            axis = int(rng.choice(axes))
            codes.append(axis)
            lower, upper = box.copy(), box.copy()
            lower[1, axis] = upper[0, axis] = box[:, axis].mean()
            waiting += [(upper, depth + 1), (lower, depth + 1)]
    T = 50.0 * rng.normal(size=(d, d))
    proven = least_cost_of_cells(constraints, T, np.array(codes, dtype=np.int8))
    L = rng.normal(size=(200, d, d)) * np.exp(2 * rng.normal(size=(200, 1, d)))
    costs = [constraints.best_scale(A).cost for A in np.swapaxes(L, 1, 2) @ L]
    assert 0 <= proven <= min(costs)
    assert len(roots(d)) == D


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda codes: codes[:-1], "all metrics"),
        (lambda codes: np.append(codes, np.int8(-1)), "damaged"),
        (lambda codes: codes[:0], "all metrics"),
        (lambda codes: np.full_like(codes, 3), "damaged"),
        (lambda codes: np.full_like(codes, 1), "all metrics|no inside"),
        (lambda codes: np.zeros_like(codes), "no inside"),
    ],
)
def test_trees_that_leave_metrics_out_are_refused(damage, message):
    constraints = pairs()
    certificate = certify(constraints).certificate
    with pytest.raises(CertificateError, match=message):
        least_cost_of_cells(constraints, certificate.T, damage(certificate.codes))


def test_cut_off_trees_prove_less():
    """A subtree replaced by a leaf still contains all metrics, and its bound is that of the larger cell."""
    constraints = pairs()
    certificate = certify(constraints).certificate
    coarse = np.full(3, -1, dtype=np.int8)
    assert least_cost_of_cells(constraints, certificate.T, coarse) < certificate.proven(constraints)


@pytest.mark.parametrize(
    "T",
    [
        np.ones((2, 2)),
        np.eye(3),
        np.full((2, 2), np.nan),
        np.diag([1.0, 0.0]),
        1e-20 * np.eye(2),  # without a check it would prove that all dissimilar pairs are violated
        np.diag([1.0, 1e-9]),
        np.diag([1e9, 10.0]),
    ],
)
def test_coordinates_that_leave_metrics_out_are_refused(T):
    with pytest.raises(CertificateError, match="leave metrics out"):
        least_cost_of_cells(pairs(), T, np.full(3, -1, dtype=np.int8))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0] * 500 + [-1] * 503, "no inside"),
        ([7, -1, -1, -1, -1], "damaged"),
        ([], "does not contain all"),
        ([2] * 400 + [-1] * 403, "damaged"),  # it proves something, but is too deep for compiled code
    ],
)
def test_damaged_trees_are_not_gone_on_from(codes, message):
    from dataclasses import replace

    from lptml.proof import CellCertificate

    constraints = pairs()
    found = certify(constraints, np.eye(2), time_limit=0.0)
    tree = CellCertificate(found.certificate.T, np.array(codes, dtype=np.int8))
    with pytest.raises(ValueError, match=message):
        certify(constraints, resume=replace(found, certificate=tree))
