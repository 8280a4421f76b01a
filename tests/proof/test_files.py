"""Proofs in files: what is written is read again, and what was changed by hand is found out."""

from dataclasses import replace

import numpy as np
import pytest
from tests.proof.test_verify import pairs

from lptml._archive import ModelFileError, open_archive, write_archive
from lptml.constraints import ConstraintSet
from lptml.proof import CertificateError, certify, certify_labels, check_cost, read_proof, write_proof


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pairs.proof.npz"


@pytest.mark.parametrize("kind", ["pairs", "triplets"])
def test_a_proof_survives_the_file(path, kind):
    constraints = pairs()
    if kind == "triplets":
        points = np.random.default_rng(0).normal(size=(20, 3, 2))
        constraints = ConstraintSet.from_triplets(points)
    certified = certify(constraints, time_limit=1.0)
    write_proof(path, certified)
    read = read_proof(path)
    assert read.lower_bound == certified.lower_bound
    assert read.proof is certified.proof
    assert read.statement == certified.statement
    assert read.verify() == certified.verify()
    check_cost(read)


def test_a_proof_in_a_file_is_gone_on_from(path):
    constraints = pairs(400, 3)
    write_proof(path, certify(constraints, callback=lambda bound, cost: bound > 20))
    assert certify(constraints, resume=read_proof(path)).lower_bound == certify(constraints).lower_bound


def test_false_claims_are_found_out(path):
    certified = certify(pairs())
    write_proof(path, replace(certified, cost=certified.cost - 1))
    with pytest.raises(CertificateError, match="violates"):
        check_cost(read_proof(path))
    write_proof(path, replace(certified, lower_bound=certified.lower_bound + 1))
    with pytest.raises(CertificateError, match="proves"):
        read_proof(path).verify()


def test_a_gap_is_not_called_an_optimum(path):
    write_proof(path, certify(pairs(400, 3), callback=lambda bound, cost: bound > 20))
    change(path, {"proof": "OPTIMAL"})  # as files said once
    assert "best possible" not in read_proof(path).statement


def test_a_part_of_the_constraints_is_called_a_part(path):
    write_proof(path, certify(pairs()))
    change(path, {"total_weight": 1000.0})
    assert "the proof has 100 of them" in read_proof(path).statement


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"total_weight": 1000.0}, {}),
        ({}, {"points": np.arange(56).reshape(28, 2)}),
        ({}, {"points": np.argwhere(np.triu(np.ones((8, 8)), 1))[::-1]}),
        ({"cost": 2.0}, {"given_up": np.array([7, 7])}),
    ],
)
def test_proofs_about_labels_that_name_other_points_are_refused(path, header, arrays):
    X = np.array([0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3])[:, None]
    certified = certify_labels(X, [0, 0, 0, 0, 1, 1, 1, 0])
    assert certified.verify() == certified.cost == 1
    write_proof(path, certified)
    change(path, header, **arrays)
    with pytest.raises(ValueError):
        check_cost(read_proof(path))


def change(path, header=None, **arrays):
    """Write the file anew with something else in it."""
    with open_archive(path, "proof") as archive:
        found = {name: archive.take(name) for name in sorted(archive.names)}
        write_archive(path, {**archive.header, **(header or {})}, {**found, **arrays})


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"format": "lptml-model-3"}, {}),
        ({"certificate": "trust"}, {}),
        ({"lower_bound": -1.0}, {}),
        ({"cost": "7"}, {}),
        ({"total_weight": 50.0}, {}),
        ({}, {"sign": np.zeros(100, dtype=np.int8)}),
        ({}, {"bound": -np.ones(100)}),
        ({}, {"weight": np.ones(99)}),
        ({}, {"V": np.full((100, 2), np.nan)}),
        ({}, {"A": -np.eye(2)}),
        ({}, {"codes": np.zeros(5)}),
    ],
)
def test_what_is_no_proof_is_refused(path, header, arrays):
    write_proof(path, certify(pairs()))
    change(path, header, **arrays)
    with pytest.raises(ModelFileError):
        read_proof(path)
