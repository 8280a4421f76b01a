"""The threshold is the best of all possible ones, for every strategy, with ties and weights."""

import numpy as np
import pytest

from lptml.estimators._thresholds import best_threshold, check_calibration


def merits(threshold, distances, y, w, beta):
    accepted = distances <= threshold
    tp, fp = w[accepted & (y == 1)].sum(), w[accepted & (y == -1)].sum()
    positives, negatives = w[y == 1].sum(), w[y == -1].sum()
    f = (1 + beta**2) * tp / (tp + fp + beta**2 * positives)
    return {"accuracy": tp + negatives - fp, "f_beta": f, "tpr": tp / positives, "tnr": 1 - fp / negatives}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_no_other_threshold_is_better(seed, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    distances = rng.integers(0, 8, n) / 2.0  # many ties
    y = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    y[:2] = 1, -1
    w = rng.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    beta, rate = float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([0.0, 0.4, 0.9, 1.0]))
    others = [merits(t, distances, y, w, beta) for t in np.arange(-1, 6, 0.25)]

    def found(strategy, **options):
        t = best_threshold(distances, y, strategy=strategy, weight=w if weighted else None, **options)
        return merits(t, distances, y, w, beta)

    assert found("accuracy")["accuracy"] == max(m["accuracy"] for m in others)
    assert found("f_beta", beta=beta)["f_beta"] == pytest.approx(max(m["f_beta"] for m in others))
    best = found("max_tpr", min_rate=rate)
    assert best["tnr"] >= rate - 1e-9
    assert best["tpr"] == max(m["tpr"] for m in others if m["tnr"] >= rate - 1e-9)
    best = found("max_tnr", min_rate=rate)
    assert best["tpr"] >= rate - 1e-9
    assert best["tnr"] == max(m["tnr"] for m in others if m["tpr"] >= rate - 1e-9)


def test_threshold_keeps_clear_of_the_distances():
    distances, y = np.array([1.0, 2.0, 3.0]), np.array([1, 1, -1], dtype=np.int8)
    assert best_threshold(distances, y) == 2.5
    assert best_threshold(distances, -y) == 0.5  # the best is to accept no pair
    assert best_threshold(distances, np.ones(3, dtype=np.int8)) > 3.0


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"strategy": "best"}, "strategy"),
        ({"strategy": "max_tpr"}, "min_rate"),
        ({"strategy": "max_tnr", "min_rate": 1.5}, "min_rate"),
        ({"strategy": "max_tnr", "min_rate": "high"}, "min_rate"),
        ({"strategy": "max_tpr", "min_rate": float("nan")}, "min_rate"),
        ({"strategy": "accuracy", "min_rate": 0.5}, "min_rate has no effect"),
        ({"strategy": "f_beta", "beta": None}, "beta"),
        ({"strategy": "accuracy", "beta": 2.0}, "beta has no effect"),
    ],
)
def test_bad_options_are_named(options, names):
    with pytest.raises(ValueError, match=names):
        check_calibration(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": "f_beta", "beta": 0.1},
        {"strategy": "max_tpr", "min_rate": 0},
        {"strategy": "max_tnr", "min_rate": 1},
    ],
)
def test_good_options_pass(options):
    check_calibration(**options)
