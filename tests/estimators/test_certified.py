"""CertifiedKNeighborsClassifier: scikit-learn's contract, and promises that refitting cannot break."""

import pickle
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from lptml import CertifiedKNeighborsClassifier, load, save
from lptml.certified import attack_labels, decide
from lptml.estimators.certified import budget_counts, cross_certify
from lptml.estimators.io import ModelFileError


@parametrize_with_checks([CertifiedKNeighborsClassifier(), CertifiedKNeighborsClassifier(n_neighbors=5)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def halves(load_table):
    X, y = load_table(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order[::2]], y[order[::2]], X[order[1::2]], y[order[1::2]]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["auto", 3, 7]), st.integers(2, 3))
def test_refits_with_every_flip_within_the_radius(seed, n_neighbors, K):
    rng = np.random.default_rng(seed)
    y = np.arange(9) % K
    X = rng.normal(size=(9, 2)) + 3.0 * y[:, None]
    Q = X[:3] + rng.normal(size=(3, 2)) * 0.3
    model = CertifiedKNeighborsClassifier(n_neighbors).fit(X, y)
    radius, before = model.certified_radius(Q), model.predict(Q)
    for r in range(1, min(radius.max(), 2) + 1):
        for rows in combinations(range(9), r):
            for new in product(range(K), repeat=r):
                labels = y.copy()
                labels[list(rows)] = new
                after = CertifiedKNeighborsClassifier(n_neighbors).fit(X, labels).predict(Q)
                assert (after == before)[radius >= r].all()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["auto", 9]),
    st.sampled_from(["plant", "remove", "alter"]),
    st.data(),
)
def test_refits_with_changed_points_within_the_radius(seed, n_neighbors, attack, data):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X, reference = (rng.normal(size=(40, 2)) + 6.0 * y[:, None] for _ in range(2))
    Q = X[:6]
    model = CertifiedKNeighborsClassifier(n_neighbors).fit(X, y, reference=reference)
    radius, before = model.certified_radius(Q, attack=attack), model.predict(Q)
    assert radius.max() > 0
    m = data.draw(st.integers(1, int(radius.max())))
    victim = Q[0]
    others = np.flatnonzero(y == y[0])
    nearest = others[np.argsort(np.linalg.norm(X[others] - victim, axis=1))][:m]
    keep = np.arange(40) if attack == "plant" else np.setdiff1d(np.arange(40), nearest)
    added = 0 if attack == "remove" else m
    points = np.r_[X[keep], victim + 0.01 * rng.normal(size=(added, 2))]
    labels = np.r_[y[keep], np.full(added, 1 - y[0])]
    after = CertifiedKNeighborsClassifier(n_neighbors).fit(points, labels, reference=reference).predict(Q)
    assert (after == before)[radius >= m].all()


@pytest.mark.parametrize("load_table", [load_iris, load_wine])
def test_attacks_never_change_a_certified_answer(load_table):
    X, y, Q, _ = halves(load_table)
    model = CertifiedKNeighborsClassifier().fit(X, y)
    radius, before = model.certified_radius(Q), model.predict(Q)
    tight = []
    (ballot,) = model._ballots(Q)
    for q, labels in enumerate(attack_labels(ballot, model.codes_, 3, len(y))):
        cost = (labels != y).sum()
        assert cost > radius[q]
        tight.append(cost <= radius[q] + 2)
        if q % 10 == 0:
            refitted = CertifiedKNeighborsClassifier().fit(X, labels)
            assert refitted.predict(Q[q : q + 1])[0] != before[q]
    assert np.mean(tight) > 0.5


def test_certified_at_most_attacked_at_most_accurate():
    X, y, Q, truth = halves(load_breast_cancer)
    model = CertifiedKNeighborsClassifier().fit(X, y)
    Q, truth = Q[:40], truth[:40]
    certified = model.certified_accuracy(Q, truth, [0, 0.01, 0.05])
    attacked = model.attacked_accuracy(Q, truth, [0, 0.01, 0.05])
    assert certified[0] == model.score(Q, truth)
    assert (certified <= attacked).all()
    assert certified[1] > 0.8
    assert (np.diff(certified) <= 0).all()


def test_without_a_reference_points_are_not_certified():
    X, y, Q, _ = halves(load_wine)
    model = CertifiedKNeighborsClassifier().fit(X, y)
    assert not model.certified_radius(Q, attack="plant").any()
    trusted = CertifiedKNeighborsClassifier().fit(X, y, reference=X)
    assert np.median(trusted.certified_radius(Q, attack="alter")) > 3
    assert trusted.score(Q, _) > 0.9


def test_texts_files_and_pickles(tmp_path):
    X, y, Q, _ = halves(load_iris)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for reference in (None, X[::2]):
        model = CertifiedKNeighborsClassifier().fit(X, names, reference=reference)
        for again in (pickle.loads(pickle.dumps(model)), load(save(model, tmp_path / "m.npz"))):
            np.testing.assert_array_equal(again.predict(Q), model.predict(Q))
            np.testing.assert_array_equal(again.certified_radius(Q), model.certified_radius(Q))


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("codes_", np.full(75, 7)), ("codes_", np.zeros(3, int)), ("points_", np.full((75, 4), np.nan)),
     ("points_", np.zeros((75, 2))), ("reference_", np.zeros((3, 9)))],
)  # fmt: skip
def test_files_that_no_fit_wrote(tmp_path, attribute, value):
    X, y, _, _ = halves(load_iris)
    model = CertifiedKNeighborsClassifier().fit(X, y)
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=attribute.rstrip("_")):
        load(save(model, tmp_path / "m.npz"))


def test_bad_input_is_named():
    X, y, Q, truth = halves(load_iris)
    with pytest.raises(ValueError, match="n_neighbors"):
        CertifiedKNeighborsClassifier(n_neighbors=0).fit(X, y)
    with pytest.raises(ValueError, match="doubt"):
        CertifiedKNeighborsClassifier(doubt=1.1).fit(X, y)
    with pytest.raises(ValueError, match="reference"):
        CertifiedKNeighborsClassifier().fit(X, y, reference=X[:, :2])
    with pytest.raises(ValueError, match="reference"):
        CertifiedKNeighborsClassifier().fit(X, y, reference=X * np.nan)
    with pytest.raises(NotFittedError):
        CertifiedKNeighborsClassifier().certified_radius(X)
    with pytest.raises(NotFittedError):
        CertifiedKNeighborsClassifier().predict(X)
    model = CertifiedKNeighborsClassifier().fit(X, y)
    with pytest.raises(ValueError, match="attack"):
        model.certified_radius(Q, attack="rotate")
    with pytest.raises(ValueError, match="labels for"):
        model.certified_accuracy(Q, truth[:-1])
    for budgets in ([], ["a"], [-1], [1.5], [np.nan], [[1]], [True]):
        with pytest.raises(ValueError, match="budgets"):
            budget_counts(budgets, 10)


def test_doubt_hands_answers_to_the_second_vote():
    X, y, Q, truth = halves(load_breast_cancer)
    sharp = CertifiedKNeighborsClassifier(doubt=1.0).fit(X, y)
    outcome = [decide(ballot, sharp.codes_, 2) for ballot in sharp._ballots(Q)]
    assert not np.concatenate([part.first for part in outcome]).any()
    wide = CertifiedKNeighborsClassifier(doubt=0.0).fit(X, y)
    assert sharp.score(Q, truth) > wide.score(Q, truth)
    assert sharp.certified_radius(Q).mean() < wide.certified_radius(Q).mean()


def test_halves_certify_each_other():
    X, y = load_wine(return_X_y=True)
    found = cross_certify(X, y, [0, 0.05])
    assert found.n_training == 89
    assert found.accuracy[0] > 0.92
    assert found.accuracy[1] > 0.8
    assert "among the 89 they come from" in str(found)
    drawn = cross_certify(X, y, most=50)
    assert len(drawn.radius) == 50
    assert "among the 25 they come from (50 rows drawn at random of 178)." in str(drawn)
    assert "drawn" not in str(found)
    for rows in ([0, 177], [0, 1, 177]):  # a half of one class, or of one point
        assert not cross_certify(X[rows], y[rows]).radius.any()


def test_the_space_of_the_second_metric():
    X, y, Q, truth = halves(load_wine)
    model = CertifiedKNeighborsClassifier().fit(X, y)
    Z, ZQ = model.transform(X), model.transform(Q)
    nearest = y[((ZQ[:, None] - Z) ** 2).sum(axis=2).argmin(axis=1)]
    assert np.mean(nearest == truth) > 0.9
    assert np.mean(y[((Q[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)] == truth) < 0.8


def test_more_voters_than_points():
    X, y, Q, _ = halves(load_iris)
    model = CertifiedKNeighborsClassifier(n_neighbors=1000).fit(X, y)
    assert model.n_neighbors_ == len(X)
    assert len(model.predict(Q)) == len(Q)
