"""How many labels must be wrong, against all subsets of points."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from lptml.constraints import LabelledPairs
from lptml.exact import exact_lptml, make_objective
from lptml.exact.solution import Status
from lptml.proof import (
    CertificateError,
    CertificationInterruptedWarning,
    Proof,
    certify_labels,
    check_cost,
    read_proof,
    write_proof,
)
from lptml.proof.labels import _Run
from lptml.proof.verify import _can_hit


def least_by_enumeration(X, y):
    """The least number of points to leave out, by trying all."""
    for number in range(len(X)):
        for gone in combinations(range(len(X)), number):
            kept = np.setdiff1d(np.arange(len(X)), gone)
            if len(np.unique(y[kept])) < 2:
                return number
            pairs = LabelledPairs.from_labels(X[kept], y[kept], bounds=(1.0, 1.0))
            constraints = pairs.take(np.arange(pairs.n))
            if exact_lptml(constraints, make_objective("trace", X.shape[1]), rng=0).status is Status.OPTIMAL:
                return number
    return len(X)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_number_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 2))
    y = (X[:, 0] + 0.7 * rng.normal(size=9) > 0).astype(int)
    y[:2] = 0, 1
    found = certify_labels(X, y, time_limit=20.0)
    assert found.proof is Proof.OPTIMAL
    assert found.lower_bound == found.cost == least_by_enumeration(X, y)
    assert found.verify() == found.lower_bound
    check_cost(found)


def test_proofs_about_labels_in_files(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), rng.integers(2, size=25)
    found = certify_labels(X, y, time_limit=5.0)
    write_proof(tmp_path / "labels.npz", found)
    read = read_proof(tmp_path / "labels.npz")
    assert read.verify() == found.lower_bound > 0
    check_cost(read)
    assert "labels must be wrong" in read.statement
    with pytest.raises(CertificateError, match="explain"):
        check_cost(replace(read, given_up=read.given_up[1:], cost=read.cost - 1))
    with pytest.raises(CertificateError, match="proves"):
        replace(read, lower_bound=read.lower_bound + 1).verify()


def test_hitting_sets_against_all_subsets():
    rng = np.random.default_rng(0)
    for _ in range(200):
        sets = [int(rng.integers(1, 64)) for _ in range(int(rng.integers(1, 8)))]
        least = min(bits.bit_count() for bits in range(64) if all(bits & each for each in sets))
        assert [_can_hit(sets, number) for number in range(7)] == [number >= least for number in range(7)]


def test_two_points_are_put_back_for_a_third():
    """One point of another class between two of one: without it all is well, without both others, too."""
    pairs = LabelledPairs.from_labels(np.array([[0.0], [1.0], [1.0], [1.0]]), [0, 1, 0, 1], bounds=(1.0, 1.0))
    run = _Run(pairs, 0)
    removed = np.array([False, True, False, True])
    A = run._exchange(removed, np.random.default_rng(0), np.inf)
    assert removed.tolist() == [False, False, True, False]
    kept = ~removed[run.points].any(axis=1)
    assert not run.constraints.violated(A)[kept].any()
    assert run._exchange(removed, np.random.default_rng(0), np.inf) is None


def test_what_cannot_be_checked_in_time_is_not_claimed():
    rng = np.random.default_rng(0)
    pairs = LabelledPairs.from_labels(rng.normal(size=(25, 3)), rng.integers(2, size=25), bounds=(1.0, 1.0))
    run = _Run(pairs, 0)
    assert run.go_on()
    before = run.proven
    assert before > 0
    while len(run.hit) <= before:
        run._add(run._collect(np.random.default_rng(run.rounds))[0])
        run._hit()
        run.rounds += 1
    run.deadline = 0.0
    assert not run._prove()
    result = run.result(0.0)
    assert result.lower_bound == before == result.verify()


@pytest.mark.parametrize(
    ("options", "named"), [({"time_limit": -1.0}, "time_limit"), ({"bounds": (0, 1)}, "bound")]
)
def test_bad_options_are_named(options, named):
    with pytest.raises(ValueError, match=named):
        certify_labels(np.eye(4), [0, 0, 1, 1], **options)


def test_too_many_points_are_refused():
    with pytest.raises(ValueError, match="X must"):
        certify_labels(np.zeros((1501, 1)), np.arange(1501) % 2)


def test_an_interrupt_is_gone_on_from(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), rng.integers(2, size=25)

    def interrupt(bound, cost):
        if bound >= 2:
            raise KeyboardInterrupt

    with pytest.warns(CertificationInterruptedWarning):
        first = certify_labels(X, y, callback=interrupt)
    assert first.interrupted
    assert first.proof is Proof.BOUNDED
    write_proof(tmp_path / "labels.npz", first)
    bounds = []
    again = certify_labels(
        X, y, resume=read_proof(tmp_path / "labels.npz"), callback=lambda bound, _: bounds.append(bound)
    )
    assert bounds[0] >= first.lower_bound >= 2  # from where it was, not from nothing
    assert again.cost <= first.cost
    assert again.lower_bound > first.lower_bound
    assert again.verify() == again.lower_bound
    with pytest.raises(ValueError, match="resume"):
        certify_labels(X, np.roll(y, 1), resume=first)
