"""Suspects among labels and among labels of bare pairs."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lptml
from lptml.noise import flip_labels, flip_pairs
from lptml.noise.suspects import (
    COLUMNS,
    judge,
    judge_pairs,
    pair_suspects,
    pair_suspicion,
    suspect_columns,
    suspects,
)
from lptml.noise.tables import as_table


def wine_pairs(n=600):
    X, y = load_wine(return_X_y=True)
    i, j = np.random.default_rng(0).integers(len(X), size=(2, n))
    i, j = i[i != j], j[i != j]
    return np.stack([X[i], X[j]], axis=1), np.where(y[i] == y[j], 1, -1)


def test_strings_weights_and_unlabelled_points():
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 0.1, random_state=0)
    plain = lptml.suspicion(X, noisy.labels)
    names = np.array(["red", "white", "rose"])[noisy.labels]
    assert roc_auc_score(noisy.flipped, lptml.suspicion(X, names)) > 0.98
    assert np.allclose(lptml.suspicion(X, noisy.labels, sample_weight=np.full(len(y), 2.0)), plain)
    hidden = noisy.labels.copy()
    hidden[:20] = -1
    assert (lptml.suspicion(X, hidden)[:20] == 0).all()
    assert len(judge(X, hidden).suspicion) == len(y) - 20


def test_wrong_labels_of_pairs_are_found():
    pairs, y = wine_pairs()
    noisy = flip_pairs(y, 0.2, random_state=0)
    judged = judge_pairs(pairs, noisy.labels)
    assert roc_auc_score(noisy.flipped, judged.suspicion) > 0.93
    assert abs(judged.noise_rate - 0.2) < 0.08
    assert np.array_equal(pair_suspicion(pairs, noisy.labels), judged.suspicion)
    by_difference = pair_suspicion(pairs[:, 0] - pairs[:, 1], noisy.labels)
    assert np.array_equal(by_difference, judged.suspicion)


def test_one_kind_of_pairs_or_too_few_are_not_judged():
    pairs, y = wine_pairs(40)
    assert (pair_suspicion(pairs, np.ones(len(y))) == 0).all()
    assert (pair_suspicion(pairs[:4], [1, 1, -1, -1]) == 0).all()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "one label for each point"),
        (np.full((3, 2), np.nan), [0, 1, 1], "NaN"),
        (np.zeros((3, 2)), [-1, -1, -1], "labels no point"),
    ],
)
def test_bad_input_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        lptml.suspicion(X, y)


def test_bad_pairs_are_named():
    with pytest.raises(ValueError, match="similar"):
        pair_suspicion(np.zeros((3, 2)), [1, 2, -1])


def test_the_table_of_suspects():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.index = [f"bottle {i}" for i in range(len(X))]
    noisy = flip_labels(y, 0.1, random_state=0)
    names = np.array(["red", "white", "rose"])
    table = suspects(X, names[noisy.labels])
    assert tuple(table.columns) == COLUMNS
    assert len(table) == len(X)
    assert table.suspicion.is_monotonic_decreasing
    assert (table.index == X.index[table.row]).all()
    assert np.array_equal(table.label, names[noisy.labels][table.row])
    wrong = table[noisy.flipped[table.row] & (table.verdict == "likely wrong")]
    assert len(wrong) >= 12
    assert (wrong.suggested.to_numpy() == names[y.to_numpy()[wrong.row]]).mean() > 0.9
    for row, near, features in zip(wrong.row, wrong.neighbors, wrong.features):
        assert row not in near
        assert len(near) == 3
        assert set(features) <= set(X.columns)
    agree = [names[noisy.labels[list(near)]] == s for near, s in zip(wrong.neighbors, wrong.suggested)]
    assert np.mean(agree) > 0.8
    assert np.allclose(
        lptml.suspicion(X, names[noisy.labels])[table.row], table.suspicion
    )  # one computation behind both
    few = suspects(X, names[noisy.labels], top=5, n_reasons=2)
    assert [len(near) for near in few.neighbors] == [3, 3, 0, 0, 0]


def test_the_table_without_pandas(monkeypatch):
    X, y = load_wine(return_X_y=True)
    columns = suspect_columns(judge(X, y), X, y, [f"f{j}" for j in range(13)], top=4)
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = as_table(columns)
    assert table.dtype.names == COLUMNS
    assert len(table) == 4
    assert table["verdict"][0] in {"likely wrong", "ambiguous", "fine"}


def test_probabilities_of_another_model():
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 0.1, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    P = cross_val_predict(model, X, noisy.labels, cv=5, method="predict_proba")
    found = judge(X, noisy.labels, probabilities=P)
    assert roc_auc_score(noisy.flipped, found.suspicion) > 0.95
    assert np.array_equal(found.probability.argmax(axis=1), P.argmax(axis=1))
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = judge(X[order], noisy.labels[order], probabilities=P[order])
    assert np.array_equal(shuffled.suspicion, found.suspicion[order])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probabilities": np.ones((4, 3)) / 3}, "probabilities must have a row"),
        ({"probabilities": np.ones((4, 2))}, "sum to 1"),
        ({"probabilities": [[2.0, -1.0]] * 4}, "negative"),
        ({"trusted": [1, 0, 0, 0]}, "trusted must be 4 booleans"),
        ({"trusted": [True]}, "trusted must be 4 booleans"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        lptml.suspicion(np.arange(8.0).reshape(4, 2), [0, 0, 1, 1], **options)


def test_bad_tables_are_named():
    X, y = np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]
    for options in ({"top": -1}, {"n_reasons": -1}, {"feature_names": ["one"]}):
        with pytest.raises(ValueError, match=next(iter(options))):
            suspects(X, y, **options)
    with pytest.raises(ValueError, match="feature_names"):
        pair_suspects(X, [1, 1, -1, -1], feature_names=["one"])


def test_the_table_of_pairs_and_pairs_that_say_nothing():
    pairs, y = wine_pairs()
    noisy = flip_pairs(y, 0.1, random_state=0)
    table = pair_suspects(pairs, noisy.labels)
    assert tuple(table.columns) == tuple(name for name in COLUMNS if name != "neighbors")
    called = table[table.suspicion > 0.9]
    assert noisy.flipped[called.row].mean() > 0.85
    assert (table.label[noisy.labels[table.row] == 1] == "similar").all()
    rng = np.random.default_rng(0)
    nothing = judge_pairs(rng.normal(size=(300, 3)), rng.choice([-1, 1], size=300))
    assert not nothing.can_judge
    assert (nothing.suspicion > 0.9).sum() == 0


def test_the_learner_tells_the_same():
    X, y = load_wine(return_X_y=True)
    noisy = flip_labels(y, 0.1, random_state=0)
    twice = np.r_[np.arange(len(y)), np.arange(20)]  # rows that occur twice count twice
    model = lptml.LPTML_Supervised(max_trials=1, random_state=0).fit(X[twice], noisy.labels[twice])
    assert np.array_equal(model.suspicion_, lptml.suspicion(X[twice], noisy.labels[twice]))
    model.fit(X, noisy.labels)
    cleaner = lptml.LabelCleaner(LogisticRegression(max_iter=5000)).fit(X, noisy.labels)
    assert np.array_equal(cleaner.suspicion_, model.suspicion_)
    assert cleaner.can_judge_
    assert cleaner.noise_interval_[0] < 0.1 < cleaner.noise_interval_[1] + 0.02
