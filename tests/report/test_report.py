"""The report: what stands in the page, that it needs no network, and that hostile names stay text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

from lptml import LPTML, LPTML_Supervised, LPTML_SupervisedCV
from lptml.report import Page, labels_report, pairs_report, views
from lptml.report.accuracy import neighbour_accuracy

X, codes = load_iris(return_X_y=True)
y = np.array(["setosa", "versicolor", "virginica"])[codes]


@pytest.fixture(scope="module")
def model() -> LPTML_Supervised:
    return LPTML_Supervised(
        max_trials=3, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0
    ).fit(X, y)


@pytest.fixture(scope="module")
def suspicion() -> np.ndarray:
    return np.random.default_rng(0).random(150)


def embedded(page: Page) -> dict:
    text = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.html(), re.S)
    assert text is not None
    return json.loads(text.group(1))


def test_every_section_and_number(model: LPTML_Supervised, suspicion: np.ndarray) -> None:
    page = labels_report(model, X, y, suspicion=suspicion, n_suspects=7, title="Iris", repeats=1)
    html = page.html()
    for section in ("map", "suspects", "accuracy", "features", "distances", "search", "support", "details"):
        assert f'id="{section}"' in html
    data = embedded(page)
    assert data["points"]["n"] == 150
    assert len(data["points"]["before"]) == len(data["points"]["after"]) == 300
    assert sum(data["table"]["suspect"]) == 7
    assert sorted(data["points"]["suspects"]) == sorted(np.argsort(-suspicion)[:7].tolist())
    rows = data["accuracy"]["rows"]
    assert [row["name"] for row in rows] == ["Euclidean", "standardised", "learned metric"]
    assert data["distances"]["u"] == pytest.approx(model.bounds_[0])
    assert data["history"]["final"] == pytest.approx(model.violation_rate_)
    assert data["history"]["trivial"] == pytest.approx(model.trivial_rate_)
    assert len(data["support"]["rows"]) == min(len(model.support_), 200)
    assert "7 of 150 labels look wrong." in page.summary
    assert "wrong labels among the 75 they come from." in page.summary
    assert f"{model.violation_rate_:.1%}" in html


def test_no_address_outside_the_page(model: LPTML_Supervised, suspicion: np.ndarray) -> None:
    html = labels_report(model, X, y, suspicion=suspicion, n_suspects=3, repeats=0).html()
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:)""", html)
    assert re.findall(r"https?://[^\s\"']+", html) == ["http://www.w3.org/2000/svg"]  # a name, never fetched
    assert "@import" not in html
    assert "url(" not in html


def test_hostile_names_stay_text(model: LPTML_Supervised, suspicion: np.ndarray) -> None:
    evil = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
    names = [evil + str(i) for i in range(150)]
    labels = np.where(codes == 0, evil, y)
    page = labels_report(
        model,
        X,
        labels,
        suspicion=suspicion,
        n_suspects=3,
        names=names,
        feature_names=[evil] * 4,
        title=evil,
        repeats=0,
    )
    html = page.html()
    assert evil not in html
    assert "<img" not in html
    assert html.count("<script") == 2
    assert embedded(page)["points"]["names"][0] == names[0]


def test_pairs(suspicion: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    index = rng.permuted(np.tile(np.arange(150), (120, 1)), axis=1)[:, :2]
    verdicts = np.where(codes[index[:, 0]] == codes[index[:, 1]], 1, -1)
    model = LPTML(max_trials=3, random_state=0).fit(X[index], verdicts)
    page = pairs_report(model, X, index, verdicts, suspicion=suspicion[:120], n_suspects=5, repeats=1)
    data = embedded(page)
    assert data["table"]["noun"] == "pairs"
    assert data["table"]["n"] == 120
    assert {"similar", "dissimilar"} == set(data["table"]["columns"][2]["values"])
    learned = next(row for row in data["accuracy"]["rows"] if row["ours"])
    assert 0.5 < learned["mean"] <= 1
    assert "ROC AUC" in page.summary
    with pytest.raises(ValueError, match="same number of rows"):
        pairs_report(model, X, index, verdicts[:5], suspicion=suspicion[:5], n_suspects=1)


@pytest.fixture(scope="module")
def chosen() -> LPTML_SupervisedCV:
    return LPTML_SupervisedCV(max_trials=5, n_repeats=1, random_state=0).fit(X, y)


def test_the_cross_validation_is_shown_as_it_was(chosen: LPTML_SupervisedCV, suspicion: np.ndarray) -> None:
    page = labels_report(chosen, X, y, suspicion=suspicion, n_suspects=0, repeats=0)
    found, results = embedded(page)["cross_validation"], chosen.cv_results_
    order = np.argsort(-results["mean_test_score"], kind="stable")
    np.testing.assert_allclose(found["score"], results["mean_test_score"][order], atol=1e-6)
    np.testing.assert_allclose(found["error"], results["standard_error"][order], atol=1e-6)
    assert found["averaged"] == results["averaged"][order].tolist()
    best = chosen.best_params_
    assert found["parameters"] == ["prior", "shrinkage"]
    assert found["values"][0] == [best["prior"], f"{best['shrinkage']:g}"]
    assert len({*map(tuple, found["values"])}) == len(results["params"]) == 9
    html = page.html()
    assert 'id="cross-validation"' in html
    assert f"the plain average of the {sum(found['averaged'])} settings" in html
    assert dict(page.details)["Cross-validation"].startswith(f"9 settings, {sum(found['averaged'])} averaged")


def test_the_search_shown_is_that_of_this_metric(chosen: LPTML_SupervisedCV, suspicion: np.ndarray) -> None:
    page = labels_report(chosen, X, y, suspicion=suspicion, n_suspects=0, repeats=0)
    history = embedded(page)["history"]
    assert history["final"] == pytest.approx(chosen.violation_rate_)
    assert min(history["best"]) == pytest.approx(min(rate for _, rate, _ in chosen.history_), abs=1e-6)
    assert (np.diff(history["best"]) <= 0).all()
    assert history["end"]["trial"] == chosen.n_trials_ == 5
    assert "in 5 trials of the search and then in refinement" in page.notes["search"]
    assert dict(page.details)["Search"].startswith("5 trials")
    assert "what that of the best setting, before the average, satisfies" in page.notes["support"]


def test_triplets_have_no_bounds(chosen: LPTML_SupervisedCV, suspicion: np.ndarray) -> None:
    page = labels_report(chosen, X, y, suspicion=suspicion, n_suspects=0, repeats=0)
    distances = embedded(page)["distances"]
    assert (distances["u"], distances["l"]) == (None, None)
    assert "Bounds" not in dict(page.details)
    assert "left of u" not in page.notes["distances"]
    assert f"{chosen.violation_rate_:.1%} of the triplets it was learned from" in page.summary


def test_one_setting_is_no_cross_validation(model: LPTML_Supervised, suspicion: np.ndarray) -> None:
    page = labels_report(model, X, y, suspicion=suspicion, n_suspects=0, repeats=0)
    assert embedded(page)["cross_validation"] is None
    assert 'id="cross-validation"' not in page.html()
    assert f"{model.violation_rate_:.1%} of the pairs it was learned from" in page.summary
    assert "left of u" in page.notes["distances"]
    assert "violates more" not in page.notes["search"]  # the count is all that counts


def test_why_a_metric_violates_more_than_the_least_met(suspicion: np.ndarray) -> None:
    sepals = np.diag([1.0, 1.0, 0.01, 0.01])
    prior = LPTML_Supervised(max_trials=20, prior=sepals, shrinkage=1.0, random_state=0).fit(X, y)
    page = labels_report(prior, X, y, suspicion=suspicion, n_suspects=0, repeats=0)
    reasons = "how clear the margins are (temperature 0.15) and how near the prior is (shrinkage 1)"
    assert min(embedded(page)["history"]["best"]) < prior.violation_rate_
    assert f"violates more, because it counts as well {reasons}." in page.notes["search"]


def test_settings_are_told_by_what_they_differ_in() -> None:
    matrices = np.eye(2), 2 * np.eye(2)
    grid = [{"prior": A, "n_components": k, "temperature": 0.1} for A in matrices for k in (None, 1)]
    assert views.differences(grid) == (
        ["prior", "n_components"],
        [["matrix 1", "all"], ["matrix 1", "1"], ["matrix 2", "all"], ["matrix 2", "1"]],
    )
    alone = views.differences(grid[1:2])
    assert alone == (["prior", "n_components", "temperature"], [["matrix 1", "1", "0.1"]])


def test_progress_is_told_of_every_split(suspicion: np.ndarray) -> None:
    told: list[tuple[int, int]] = []
    model = LPTML_Supervised(
        max_trials=0, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0
    ).fit(X, y)
    labels_report(
        model, X, y, suspicion=suspicion, n_suspects=0, repeats=2, progress=lambda *now: told.append(now)
    )
    assert told == [(done, 4) for done in range(5)]


def test_any_estimator_with_components(suspicion: np.ndarray) -> None:
    class Plain(BaseEstimator):
        components_ = np.eye(4)

    page = labels_report(Plain(), X, y, suspicion=suspicion, n_suspects=0, repeats=0)
    data = embedded(page)
    assert data["history"] is None
    assert data["support"] is None
    assert 'id="search"' not in page.html()
    assert "None of the 150 labels looks wrong." in page.summary


def test_mismatched_input_is_refused(model: LPTML_Supervised, suspicion: np.ndarray) -> None:
    with pytest.raises(ValueError, match="y has 10 entries where X has 150 rows"):
        labels_report(model, X, y[:10], suspicion=suspicion, n_suspects=0)
    with pytest.raises(ValueError, match=r"y must be one label for each point, got shape \(150, 2\)"):
        labels_report(model, X, [(label, 0) for label in codes], suspicion=suspicion, n_suspects=0)
    with pytest.raises(ValueError, match="suspicion has 3 entries"):
        labels_report(model, X, y, suspicion=suspicion[:3], n_suspects=0)
    with pytest.raises(ValueError, match="names has 1 entries"):
        labels_report(model, X, y, suspicion=suspicion, n_suspects=0, names=["a"])


def test_twenty_thousand_points_stay_small(tmp_path: Path) -> None:
    class Plain(BaseEstimator):
        components_ = np.eye(10)

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, 20_000)
    points = rng.normal(size=(20_000, 10)) + labels[:, None]
    names = [f"sample number {i}" for i in range(20_000)]
    page = labels_report(
        Plain(), points, labels, suspicion=rng.random(20_000), n_suspects=900, names=names, repeats=0
    )
    assert page.save(tmp_path / "big.html").stat().st_size < 15e6


class ByHeart(BaseEstimator):
    """Maps every row that it was fitted on to its label: with more features than rows, one direction does."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> ByHeart:
        self.components_ = np.linalg.lstsq(X, y.astype(float), rcond=None)[0][None, :]
        return self


def test_accuracy_is_measured_on_unseen_rows() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(60, 80)), rng.integers(0, 2, 60)
    seen = points @ ByHeart().fit(points, labels).components_.T
    np.testing.assert_allclose(seen.ravel(), labels, atol=1e-9)  # of what it knows, it knows all
    rows, splits = neighbour_accuracy(ByHeart(), points, labels, repeats=3)
    assert splits == 6
    assert rows[-1].ours
    assert rows[-1].mean < 0.75


def test_likely_labels_listen_to_trusted_neighbours() -> None:
    Z = np.arange(9.0)[:, None]
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    doubt = np.where(np.arange(9) < 3, 0.99, 0.0)
    assert views.likely_labels(Z, labels, doubt, k=4)[2] == 1
    assert views.likely_labels(Z, labels, np.zeros(9), k=2)[1] == 0
