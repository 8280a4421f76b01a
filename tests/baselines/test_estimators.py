"""The baselines as scikit-learn and metric-learn estimators: contract, options, awkward data, determinism."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from lptml.baselines import (
    ITML,
    LFDA,
    LMNN,
    MCML,
    MMC,
    RCA,
    ITML_Supervised,
    MMC_Supervised,
    RCA_Supervised,
)
from lptml.datasets import load_iris, make_synthetic

SUPERVISED = [
    ITML_Supervised(random_state=0),
    LMNN(),
    MMC_Supervised(random_state=0),
    MCML(),
    LFDA(),
    RCA_Supervised(),
]
PAIRS = [ITML(), MMC()]
ids = {"ids": lambda learner: type(learner).__name__}


@parametrize_with_checks(SUPERVISED)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the checks use data that no metric fits
        check(estimator)


@pytest.mark.parametrize("learner", SUPERVISED, **ids)
def test_repeated_fits_are_identical(learner):
    X, y = load_iris(return_X_y=True)
    one, two = (clone(learner).fit(X, y).components_ for _ in range(2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("learner", SUPERVISED, **ids)
def test_accuracy_on_iris(learner):
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(clone(learner), KNeighborsClassifier(4))
    assert cross_val_score(pipeline, X, y, cv=4).mean() > 0.93


@pytest.mark.parametrize("learner", [LMNN(), MCML(), LFDA(), RCA_Supervised()], **ids)
def test_fewer_components(learner):
    X, y = load_iris(return_X_y=True)
    reduced = clone(learner).set_params(n_components=2).fit(X, y)
    assert reduced.components_.shape == (2, 4)
    score = (
        KNeighborsClassifier(4)
        .fit(reduced.transform(X[::2]), y[::2])
        .score(reduced.transform(X[1::2]), y[1::2])
    )
    assert score > 0.9
    with pytest.raises(ValueError, match="n_components"):
        clone(learner).set_params(n_components=5).fit(X, y)


@pytest.mark.parametrize("learner", SUPERVISED, **ids)
def test_unlabelled_points_do_not_count(learner):
    X, y = load_iris(return_X_y=True)
    hidden = y.copy()
    hidden[::3] = -1
    seen = hidden >= 0
    given, left_out = (clone(learner).fit(*data).components_ for data in ((X, hidden), (X[seen], y[seen])))
    assert np.allclose(given, left_out)


@pytest.mark.parametrize("learner", SUPERVISED, **ids)
def test_singular_data(learner):
    """Constant and repeated features, repeated points, a class with one point."""
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.ones(150), X[:, 0]])
    X, y = np.vstack([X, X[:10], X[:1] + 3]), np.concatenate([y, y[:10], [7]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = clone(learner).fit(X, y)
    assert np.isfinite(learner.components_).all()
    assert KNeighborsClassifier(4).fit(learner.transform(X), y).score(learner.transform(X), y) > 0.9


@pytest.mark.parametrize("learner", SUPERVISED, **ids)
def test_more_features_than_points(learner):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 40)), np.arange(20) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(clone(learner).fit(X, y).transform(X)).all()


@pytest.mark.parametrize("learner", PAIRS, **ids)
def test_pairs_contract(learner):
    X, y = make_synthetic(60, random_state=0, return_X_y=True)
    index = np.random.default_rng(0).permutation(60).reshape(30, 2)
    label = np.where(y[index[:, 0]] == y[index[:, 1]], 1, -1)
    fitted = clone(learner).fit(X[index], label, calibration_params={"strategy": "accuracy"})
    assert fitted.score(X[index], label) > 0.95
    assert np.mean(fitted.predict(X[index]) == label) > 0.9
    assert fitted.n_features_in_ == 2
    by_index = clone(learner).set_params(preprocessor=X).fit(index, label)
    assert np.allclose(by_index.components_, fitted.components_)
    assert cross_val_score(clone(learner), X[index], label, cv=3, scoring="roc_auc").mean() > 0.8


@pytest.mark.parametrize("learner", PAIRS, **ids)
def test_identical_pairs_are_no_obstacle(learner):
    pairs = np.array([[[0, 0], [0, 0]], [[1, 1], [1, 1]], [[0, 0], [0, 3]], [[0, 0], [2, 0]]], dtype=float)
    fitted = clone(learner).fit(pairs, [1, -1, 1, -1])
    assert np.isfinite(fitted.components_).all()
    with pytest.raises(ValueError, match=r"distinct|identical"):
        clone(learner).fit(pairs[:2], [1, -1])


def test_bounds_are_checked_and_used():
    X, y = load_iris(return_X_y=True)
    assert ITML_Supervised(random_state=0).fit(X, y, bounds=(1.0, 2.0)).bounds_ == (1.0, 2.0)
    for bounds in [(1.0,), (0.0, 1.0), (1.0, np.inf)]:
        with pytest.raises(ValueError, match="bounds"):
            ITML_Supervised().fit(X, y, bounds=bounds)


def test_priors():
    X, y = load_iris(return_X_y=True)
    strong = ITML_Supervised(gamma=1e-9, prior="covariance", random_state=0, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = strong.fit(X, y).get_mahalanobis_matrix()
    assert np.allclose(found, np.linalg.inv(np.cov(X.T)), rtol=1e-2)
    for prior in ["nope", np.eye(3), -np.eye(4)]:
        with pytest.raises(ValueError, match="prior"):
            ITML_Supervised(prior=prior).fit(X, y)


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (ITML_Supervised(gamma=0.0), "gamma"),
        (ITML_Supervised(gamma="1"), "gamma"),
        (ITML_Supervised(max_iter=0), "max_iter"),
        (ITML_Supervised(tol=-1.0), "tol"),
        (ITML_Supervised(n_constraints=0), "n_constraints"),
        (MMC_Supervised(diagonal="yes"), "diagonal"),
        (MMC_Supervised(regularization=-1.0), "regularization"),
        (LMNN(n_neighbors=0), "n_neighbors"),
        (LMNN(regularization=1.5), "regularization"),
        (LMNN(max_iter=True), "max_iter"),
        (MCML(tol=float("nan")), "tol"),
        (LFDA(embedding_type="round"), "embedding_type"),
        (LFDA(n_neighbors=0), "n_neighbors"),
        (RCA_Supervised(chunk_size=1), "chunk_size"),
        (RCA_Supervised(n_chunks=0), "n_chunks"),
    ],
)
def test_bad_options_are_named(learner, name):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=name):
        learner.fit(X, y)


@pytest.mark.parametrize("learner", [ITML_Supervised(max_iter=1), LMNN(max_iter=1), MCML(max_iter=1)], **ids)
def test_giving_up_is_said(learner):
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        learner.fit(X, y)


@pytest.mark.parametrize("chunks", [[0.5] * 150, [0] * 149, [-1] * 150])
def test_bad_chunks(chunks):
    X, _ = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="chunks"):
        RCA().fit(X, chunks)


def test_identical_points_have_no_distance_to_learn():
    X, y = np.ones((6, 2)), [0, 0, 0, 1, 1, 1]
    for learner in (LMNN(), MCML(), ITML_Supervised(), MMC_Supervised()):
        with pytest.raises(ValueError, match=r"identical|distinct"):
            learner.fit(X, y)
