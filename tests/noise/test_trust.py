"""Trust in labels: what others say, leaving each point out; the share of wrong labels; degenerate input."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from lptml.datasets import load_breast_cancer, load_iris, load_wine, make_poisoned
from lptml.noise import flip_labels
from lptml.noise.trust import _basis_functions, _centres, _surroundings, calibrate, trust_labels
from lptml.points.scatter import robust_scale


def two_clusters(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    return rng.normal(size=(n, 2)) + np.where(y == 1, 4.0, -4.0)[:, None] * [1.0, 0.0], y


def test_clean_labels_are_not_suspected():
    for load in (load_iris, load_wine):
        X, y = load(return_X_y=True)
        trust = trust_labels(X, y, 3)
        assert trust.noise_rate < 0.02
        assert trust.suspects.sum() <= 2
        assert np.array_equal(trust.posterior.argmax(axis=1)[~trust.suspects], y[~trust.suspects])


#: ROC AUC at 10, 20 and 30% flipped labels, means over ten halves of the data: what the project promises.
PROMISED = [
    (load_iris, (0.990, 0.985, 0.992)),
    (load_wine, (0.991, 0.991, 0.992)),
    (load_breast_cancer, (0.986, 0.983, 0.968)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("load", "least"), PROMISED)
def test_flipped_labels_are_found_and_counted(load, least):
    X, y = load(return_X_y=True)
    for share, bar in zip((0.1, 0.2, 0.3), least):
        found, rates = [], []
        for seed in range(10):
            half, _, labels, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
            noisy = flip_labels(labels, share, random_state=seed)
            trust = trust_labels(half, noisy.labels, y.max() + 1)
            found.append(roc_auc_score(noisy.flipped, trust.suspicion))
            rates.append(trust.noise_rate)
            assert ((trust.suspicion >= 0) & (trust.suspicion <= 1)).all()
            assert np.allclose(trust.probability.sum(axis=1), 1)
            assert np.allclose(trust.posterior.sum(axis=1), 1)
        assert np.mean(found) > bar, (share, np.round(found, 3))
        assert abs(np.mean(rates) - share) < 0.05


def test_a_point_never_vouches_for_itself():
    X, y = two_clusters()
    other = y.copy()
    other[7] = 1 - y[7]
    weight = np.ones(len(y))
    basis = _basis_functions(X, np.random.default_rng(0))
    given, changed = (_surroundings_raw(basis, labels, weight) for labels in (y, other))
    assert np.allclose(given[7], changed[7], atol=1e-9)
    keep = np.arange(len(y)) != 7
    # Without its own row the least-squares witness says the same.
    rows = np.column_stack([basis, np.ones(len(y))])
    penalty = np.diag(np.r_[np.full(basis.shape[1], 0.5), 1e-6 * len(y)])
    solution = np.linalg.solve(rows[keep].T @ rows[keep] + penalty, rows[keep].T @ np.eye(2)[y[keep]])
    assert np.allclose(rows[7] @ solution, given[7], atol=1e-6)


def _surroundings_raw(basis, labels, weight):
    """Left-out predictions before calibration, recovered through the calibrated log-odds' argument."""
    import lptml.noise.trust as module

    seen = {}
    calibrate_ = module.calibrate
    try:
        module.calibrate = lambda evidence, codes: seen.update(E=evidence) or calibrate_(evidence, codes)
        _surroundings(basis, labels, 2, weight)
    finally:
        module.calibrate = calibrate_
    return seen["E"] / 4.0


def test_the_witness_of_the_centres_prefers_the_true_class_of_a_wrong_label():
    X, y = two_clusters()
    y[3] = 1
    evidence = _centres(X, y, 2, np.ones(len(y)), 4.0)
    assert evidence[3, 0] > evidence[3, 1]


def test_poison_is_suspected():
    data = make_poisoned(random_state=0)
    suspicion = trust_labels(data.data, data.target, 2).suspicion
    assert np.sort(suspicion)[-5:].min() > 0.5
    assert set(np.argsort(-suspicion)[:5]) == set(np.flatnonzero(data.poisoned))


def test_calibration_recovers_the_share_of_wrong_labels():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=2000)
    evidence = 8.0 * np.eye(3)[truth] + rng.normal(size=(2000, 3))
    labels = flip_labels(truth, 0.25, random_state=1).labels
    assert abs(calibrate(evidence, labels).noise_rate - 0.25) < 0.02


def test_robust_scale_ignores_poison_and_keeps_rare_and_constant_features():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), np.zeros(200), rng.random(200) < 0.1])
    X[:5, 0] = 1e9
    scale = robust_scale(X)
    assert 0.7 < scale[0] < 1.4
    assert scale[1] == 1.0
    assert np.isclose(scale[2], X[:, 2].std())


@pytest.mark.parametrize("case", ["one class", "two points", "constant", "duplicates", "empty class", "wide"])
def test_degenerate_input(case):
    rng = np.random.default_rng(0)
    X, y, K = rng.normal(size=(12, 3)), np.repeat([0, 1], 6), 2
    if case == "one class":
        y, K = np.zeros(12, dtype=int), 1
    elif case == "two points":
        X, y = X[:2], np.array([0, 1])
    elif case == "constant":
        X = np.zeros((12, 3))
    elif case == "duplicates":
        X = np.repeat(X[:2], 6, axis=0)
    elif case == "empty class":
        K = 4
    else:
        X = rng.normal(size=(12, 50))
    with np.errstate(all="raise", under="ignore"):
        trust = trust_labels(X, y, K)
    assert trust.probability.shape == (len(X), K)
    assert np.isfinite(trust.suspicion).all()


def test_many_points_use_landmarks_and_repeat_bit_for_bit():
    X, y = two_clusters(1500)
    noisy = flip_labels(y, 0.2, random_state=0)
    first, second = (
        trust_labels(X, noisy.labels, 2, rng=np.random.default_rng(3)).suspicion for _ in range(2)
    )
    assert np.array_equal(first, second)
    assert roc_auc_score(noisy.flipped, first) > 0.99
