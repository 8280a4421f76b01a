"""Trust in labels: calibrated, silent where nothing can be told, blind to the order of rows and to units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from lptml.datasets import load_breast_cancer, load_iris, load_wine
from lptml.noise import flip_labels, plant_points
from lptml.noise.evidence import discriminant, forest
from lptml.noise.noise_model import detected, fit_noise, mixed_suspicion, shortest
from lptml.noise.outlying import outlyingness
from lptml.noise.trust import Verdict, trust_labels
from lptml.points.scatter import SHRINKAGE, robust_scale, within_class


def two_clusters(n=60, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    return rng.normal(size=(n, 2)) + np.where(y == 1, apart, -apart)[:, None] * [1.0, 0.0], y


def overlapping(n, seed=0):
    """Classes whose true probabilities are known: nobody's label is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * X[:, 0]))).astype(np.int64)


def test_clean_labels_are_not_suspected():
    for load in (load_iris, load_wine):
        X, y = load(return_X_y=True)
        trust = trust_labels(X, y, 3)
        assert trust.can_judge
        assert trust.noise_interval[1] < 0.04
        assert trust.suspects.sum() <= 2


def test_overlap_is_not_noise():
    X, y = overlapping(1500)
    trust = trust_labels(X, y, 2)
    assert (trust.suspicion > 0.9).mean() < 0.02
    assert trust.suspicion.mean() < 0.05
    assert not trust.can_judge  # a label flipped here would not be seen
    assert "too little" in trust.why
    assert set(trust.verdicts[~trust.suspects]) == {Verdict.CANNOT_JUDGE}


def test_features_that_say_nothing_cannot_judge():
    rng = np.random.default_rng(0)
    trust = trust_labels(rng.normal(size=(200, 3)), rng.integers(3, size=200), 3)
    assert not trust.can_judge
    assert trust.noise_interval[1] - trust.noise_interval[0] > 0.2


def test_one_feature_of_wine_with_wrong_labels_is_no_reassurance():
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 17 / 178, random_state=0)
    trust = trust_labels(X[:, [7]], noisy.labels, 3)
    assert not trust.can_judge


def test_the_interval_holds_the_true_share_and_calls_are_right():
    right = []
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        noisy = flip_labels(y, 0.1, random_state=0)
        trust = trust_labels(X, noisy.labels, int(y.max()) + 1)
        low, high = trust.noise_interval
        assert low <= 0.1 <= high + 0.02
        right += noisy.flipped[trust.suspicion > 0.9].tolist()
        assert roc_auc_score(noisy.flipped, trust.suspicion) > 0.98
    assert np.mean(right) > 0.9


def test_probabilities_of_the_noise_model_against_simulation():
    rng = np.random.default_rng(0)
    truth_p = rng.beta(0.3, 0.3, size=20_000)
    truth = (rng.random(20_000) < truth_p).astype(np.int64)
    noisy = np.where(rng.random(20_000) < 0.15, 1 - truth, truth)
    E = np.log(np.stack([1 - truth_p, truth_p], axis=1) + 1e-12)
    fitted = fit_noise(E, noisy)
    assert abs(fitted.noise_rate - 0.15) < 0.02
    wrong = noisy != truth
    for low in np.arange(0.0, 1.0, 0.2):
        of = (fitted.suspicion >= low) & (fitted.suspicion < low + 0.2)
        assert abs(fitted.suspicion[of].mean() - wrong[of].mean()) < 0.05, low
    seen = fitted.suspicion[wrong] > 0.5
    assert abs(detected(np.exp(E), 0.15) - seen.mean()) < 0.05


def test_the_interval_is_the_shortest_that_holds_nine_tenths():
    rates = np.linspace(0.0, 1.0, 801)
    falling = np.exp(-20.0 * rates)
    assert np.allclose(shortest(rates, falling / falling.sum()), (0.0, np.log(10.0) / 20.0), atol=2e-3)
    normal = np.exp(-(((rates - 0.4) / 0.05) ** 2) / 2.0)
    spread = 1.6449 * 0.05
    assert np.allclose(shortest(rates, normal / normal.sum()), (0.4 - spread, 0.4 + spread), atol=5e-3)


def test_the_rigid_model_speaks_as_far_as_it_knows_anything():
    rng = np.random.default_rng(0)
    odds = 6.0 * rng.normal(size=500)
    y = (odds > 0).astype(np.int64)
    y[:20] = 1 - y[:20]
    clear, blank = np.stack([0.0 * odds, odds], axis=1), rng.normal(size=(500, 2))
    knows, guesses = fit_noise(clear, y), fit_noise(blank, y)
    assert np.allclose(mixed_suspicion(knows, knows), knows.suspicion)
    assert np.abs(mixed_suspicion(knows, guesses) - knows.suspicion).max() < 0.02
    both = mixed_suspicion(guesses, knows)  # never more than half of what is said
    assert np.allclose(both, np.maximum(guesses.suspicion, knows.suspicion / 2.0))


def test_a_neighbourhood_of_wrong_labels_does_not_vouch_for_itself():
    X, y = two_clusters(300, apart=2.0)
    noisy = flip_labels(y, 0.1, kind="neighborhood", X=X, random_state=0)
    trust = trust_labels(X, noisy.labels, 2)
    local = forest(X, noisy.labels, 2, np.ones(300), np.random.default_rng(0), lambda done, total: None)
    alone = roc_auc_score(noisy.flipped, 1.0 - local[np.arange(300), noisy.labels])
    assert roc_auc_score(noisy.flipped, trust.suspicion) > max(alone, 0.9)


def test_the_discriminant_leaves_each_point_out():
    X, y = two_clusters(40, apart=1.0)
    weight = np.ones(40)
    scores = discriminant(X, y, 2, weight)
    fit = within_class(X, y, 2, weight, tail=50.0)
    # The same by brute force, with the weights of the t distribution held at those of the whole fit.
    for i in (3, 30):
        keep = np.arange(40) != i
        mass = fit.tails * keep
        centres = np.stack([(mass * (y == c)) @ X / (mass * (y == c)).sum() for c in (0, 1)])
        residual = X - centres[y]
        raw = (residual * mass[:, None]).T @ residual / 40
        scatter = (1 - SHRINKAGE) * raw
        full = X - fit.centres[y]
        scatter += SHRINKAGE * np.diag(np.diag((full * fit.tails[:, None]).T @ full / 40))
        squares = [(X[i] - c) @ np.linalg.solve(scatter, X[i] - c) for c in centres]
        expected = -26.0 * np.log1p(np.array(squares) / 50.0)
        assert np.isclose(scores[i, 0] - scores[i, 1], expected[0] - expected[1], atol=0.02)


def test_the_forest_does_not_hear_the_label_it_judges():
    X, y = two_clusters(60, apart=0.0)
    other = y.copy()
    other[7] = 1 - y[7]
    first, second = (
        forest(X, labels, 2, np.ones(60), np.random.default_rng(0), lambda done, total: None)
        for labels in (y, other)
    )
    share = 1 / 60 / (1 + 110 * 0.7)  # the share of the classes is one vote of many
    assert np.allclose(first[7], second[7], atol=share)


def test_agrees_with_the_forest_of_scikit_learn():
    from sklearn.ensemble import RandomForestClassifier

    X, y = overlapping(600)
    ours = forest(X, y, 2, np.ones(600), np.random.default_rng(0), lambda done, total: None)
    theirs = RandomForestClassifier(300, min_samples_leaf=5, oob_score=True, random_state=0).fit(X, y)
    assert np.corrcoef(ours[:, 1], theirs.oob_decision_function_[:, 1])[0, 1] > 0.95
    assert np.abs(ours - theirs.oob_decision_function_).mean() < 0.05


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-6, 1e6))
def test_order_units_and_repetition_do_not_matter(seed, unit):
    X, y = two_clusters(40, seed=seed % 1000, apart=1.0)
    order = np.random.default_rng(seed).permutation(40)
    trust, again = trust_labels(X, y, 2), trust_labels(X, y, 2)
    assert np.array_equal(trust.suspicion, again.suspicion)
    assert np.array_equal(trust_labels(X[order], y[order], 2).suspicion, trust.suspicion[order])
    assert np.allclose(trust_labels(X * unit, y, 2).suspicion, trust.suspicion, atol=0.05)
    for P in (trust.probability, trust.posterior):
        assert np.allclose(P.sum(axis=1), 1)
    assert ((trust.suspicion >= 0) & (trust.suspicion <= 1)).all()
    assert np.allclose(trust.posterior[np.arange(40), y], trust.trust)


def test_trusted_labels_are_believed():
    X, y = two_clusters(200)
    noisy = flip_labels(y, 0.1, random_state=0)
    right = ~noisy.flipped & (np.arange(200) % 2 == 0)
    plain = trust_labels(X, noisy.labels, 2)
    trust = trust_labels(X, noisy.labels, 2, trusted=right)
    assert (trust.suspicion[right] == 0).all()
    assert set(trust.verdicts[right]) == {Verdict.FINE}
    assert trust.suspicion[noisy.flipped].min() > 0.5
    assert trust.noise_rate > plain.noise_rate  # all wrong ones are among those that are left
    # Labels that contradict the features and are right all the same: so may others be.
    odd = trust_labels(X, noisy.labels, 2, trusted=noisy.flipped & (np.arange(200) < 100))
    assert odd.suspicion[noisy.flipped].max() < plain.suspicion[noisy.flipped].min()


@pytest.mark.parametrize("clumps", [1, 3])
@pytest.mark.parametrize("d", [2, 10, 50])
def test_planted_points_are_outlying_and_it_is_not_their_label(d, clumps):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, d)), np.arange(300) % 2
    poisoned = plant_points(X, y, 0.05 * clumps, distance=30.0, n_clumps=clumps, random_state=0)
    out = outlyingness(poisoned.points)
    assert roc_auc_score(poisoned.planted, out) > 0.99
    assert np.isclose(np.median(out), 1.0)
    trust = trust_labels(poisoned.points, poisoned.labels, 2)
    assert np.allclose(trust.outlyingness, out)


@pytest.mark.parametrize(("share", "clumps"), [(0.05, 1), (0.09, 3), (0.2, 1)])
def test_points_that_break_how_features_vary_together_are_outlying(share, clumps):
    rng = np.random.default_rng(0)
    X = 2.0 * rng.normal(size=(300, 2)) @ rng.normal(size=(2, 20)) + 0.2 * rng.normal(size=(300, 20))
    X[:40] *= 3.0  # far out along their rule
    y = np.arange(300) % 2
    poisoned = plant_points(X, y, share, distance=5.0, n_clumps=clumps, random_state=0)
    centred = poisoned.points - np.median(poisoned.points, axis=0)
    plain = np.linalg.norm(centred / robust_scale(poisoned.points), axis=1)
    assert roc_auc_score(poisoned.planted, plain) < 0.93
    assert roc_auc_score(poisoned.planted, outlyingness(poisoned.points)) > 0.99


def test_outlyingness_of_points_that_coincide_and_of_any_order():
    assert (outlyingness(np.zeros((3, 5))) == 1.0).all()
    assert outlyingness(np.r_[np.zeros((9, 5)), np.ones((1, 5))]).argmax() == 9
    X = np.random.default_rng(0).normal(size=(30, 50))
    assert np.allclose(outlyingness(X[::-1]), outlyingness(X)[::-1])


def test_robust_scale_ignores_poison_and_keeps_rare_and_constant_features():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), np.zeros(200), rng.random(200) < 0.1])
    X[:5, 0] = 1e9
    scale = robust_scale(X)
    assert 0.7 < scale[0] < 1.4
    assert scale[1] == 1.0
    assert np.isclose(scale[2], X[:, 2].std())


@pytest.mark.parametrize(
    "case", ["one class", "two points", "constant", "duplicates", "empty class", "wide", "single", "huge"]
)
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
    elif case == "single":
        y = np.r_[1, np.zeros(11, dtype=int)]
    elif case == "huge":
        X = X * 1e90
    else:
        X = rng.normal(size=(12, 50))
    with np.errstate(all="raise", under="ignore"):
        trust = trust_labels(X, y, K)
    assert trust.probability.shape == (len(X), K)
    assert np.isfinite(trust.suspicion).all()
    assert np.isfinite(trust.outlyingness).all()
    assert (trust.suggested != trust.codes).all() or K == 1
    assert len(trust.verdicts) == len(X)


def test_progress_is_told():
    told = []
    X, y = two_clusters()
    trust_labels(X, y, 2, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


#: ROC AUC at 10, 20 and 30% flipped labels, means over ten halves of the data: what the project promises.
PROMISED = [
    (load_iris, (0.985, 0.980, 0.975)),
    (load_wine, (0.991, 0.991, 0.980)),
    (load_breast_cancer, (0.986, 0.983, 0.968)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("load", "least"), PROMISED)
def test_flipped_labels_are_found_and_counted(load, least):
    X, y = load(return_X_y=True)
    held = 0
    for share, bar in zip((0.1, 0.2, 0.3), least):
        found = []
        for seed in range(10):
            half, _, labels, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
            noisy = flip_labels(labels, share, random_state=seed)
            trust = trust_labels(half, noisy.labels, y.max() + 1)
            found.append(roc_auc_score(noisy.flipped, trust.suspicion))
            low, high = trust.noise_interval
            held += low <= noisy.flipped.mean() <= high
        assert np.mean(found) > bar, (share, np.round(found, 3))
    assert held >= 25  # of 30 intervals of 90%
