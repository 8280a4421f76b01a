"""The report: what stands in the page, that it needs no network, and that hostile names stay text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

from lptml import LPTML, LPTML_Supervised, LPTML_SupervisedCV
from lptml.noise.trust import Trust
from lptml.report import Origin, Page, labels_report, pairs_report, views, words
from lptml.report.accuracy import AFTER, neighbour_accuracy

X, codes = load_iris(return_X_y=True)
y = np.array(["setosa", "versicolor", "virginica"])[codes]


@pytest.fixture(scope="module")
def model() -> LPTML_Supervised:
    return LPTML_Supervised(
        max_trials=3, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0
    ).fit(X, y)


def judgement(labels: np.ndarray, doubt: np.ndarray) -> Trust:
    """A judgement that anybody could have made: so much doubt of each label, the next class suggested."""
    classes, given = np.unique(labels, return_inverse=True)
    n, K = len(given), len(classes)
    probability = np.full((n, K), 1e-3)
    probability[np.arange(n), given] = 1.0 - doubt
    probability[np.arange(n), (given + 1) % K] = np.maximum(doubt, 2e-3)
    probability /= probability.sum(axis=1, keepdims=True)
    return Trust(
        codes=given,
        probability=probability,
        suspicion=doubt,
        noise_rate=float(doubt.mean()),
        noise_interval=(0.0, 1.0),
        outlyingness=np.ones(n),
        trusted=np.zeros(n, dtype=bool),
    )


def doubts(n: int, wrong: int) -> np.ndarray:
    """Doubt above one half of so many labels, below of the others."""
    doubt = np.random.default_rng(0).uniform(0, 0.4, n)
    doubt[np.random.default_rng(1).choice(n, wrong, replace=False)] += 0.55
    return doubt


@pytest.fixture(scope="module")
def judged() -> Trust:
    return judgement(y, doubts(150, 7))


def embedded(page: Page) -> dict:
    text = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.html(), re.S)
    assert text is not None
    return json.loads(text.group(1))


def test_every_section_and_number(model: LPTML_Supervised, judged: Trust) -> None:
    page = labels_report(model, X, y, judged=judged, title="Iris", repeats=1)
    html = page.html()
    order = [
        "confusion",
        "suspects",
        "accuracy",
        "map",
        "features",
        "details",
        "distances",
        "search",
        "support",
    ]
    places = [html.index(f'id="{section}"') for section in order]
    assert places == sorted(places)  # what people ask first; technical details closed at the end
    assert '<details class="card" id="details">' in html
    data = embedded(page)
    assert data["points"]["n"] == 150
    assert len(data["points"]["before"]) == len(data["points"]["after"]) == 300
    assert sum(data["table"]["suspect"]) == 7
    assert data["points"]["suspects"] == np.flatnonzero(judged.suspicion > 0.5).tolist()
    rows = data["accuracy"]["rows"]
    names = ["Euclidean", "standardised", "learned metric", AFTER]
    assert [(row["name"], row["against"]) for row in rows] == [
        (name, against) for against in ("given", "trust") for name in names
    ]
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows)
    assert data["distances"]["u"] == pytest.approx(model.bounds_[0])
    assert data["history"]["final"] == pytest.approx(model.violation_rate_)
    assert data["history"]["trivial"] == pytest.approx(model.trivial_rate_)
    assert len(data["support"]["rows"]) == min(len(model.support_), 200)
    assert "7 look wrong one by one" in page.summary
    assert np.sum(data["confusion"]["counts"]) == 7
    assert "wrong labels among the 75 they come from." in page.notes["accuracy"]
    assert f"{model.violation_rate_:.1%}" in html


def test_no_address_outside_the_page(model: LPTML_Supervised, judged: Trust) -> None:
    html = labels_report(model, X, y, judged=judged, repeats=0).html()
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:)""", html)
    assert re.findall(r"https?://[^\s\"']+", html) == ["http://www.w3.org/2000/svg"]  # a name, never fetched
    assert "@import" not in html
    assert "url(" not in html


def test_hostile_names_stay_text(model: LPTML_Supervised, judged: Trust) -> None:
    evil = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
    names = [evil + str(i) for i in range(150)]
    labels = np.where(codes == 0, evil, y)
    judged = judgement(labels, doubts(150, 7))
    page = labels_report(
        model,
        X,
        labels,
        judged=judged,
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


def test_pairs() -> None:
    rng = np.random.default_rng(1)
    index = rng.permuted(np.tile(np.arange(150), (120, 1)), axis=1)[:, :2]
    labels = np.where(codes[index[:, 0]] == codes[index[:, 1]], 1, -1)
    model = LPTML(max_trials=3, random_state=0).fit(X[index], labels)
    doubt = np.random.default_rng(0).random(120)
    page = pairs_report(model, X, index, labels, suspicion=doubt, n_suspects=5, repeats=1)
    data = embedded(page)
    assert data["table"]["noun"] == "pairs"
    assert data["table"]["n"] == 120
    assert {"similar", "dissimilar"} == set(data["table"]["columns"][2]["values"])
    learned = next(row for row in data["accuracy"]["rows"] if row["ours"])
    assert 0.5 < learned["mean"] <= 1
    assert "ROC AUC" in page.summary
    with pytest.raises(ValueError, match="same number of rows"):
        pairs_report(model, X, index, labels[:5], suspicion=doubt[:5], n_suspects=1)


@pytest.fixture(scope="module")
def chosen() -> LPTML_SupervisedCV:
    return LPTML_SupervisedCV(max_trials=5, n_repeats=1, random_state=0).fit(X, y)


def test_the_cross_validation_is_shown_as_it_was(chosen: LPTML_SupervisedCV, judged: Trust) -> None:
    page = labels_report(chosen, X, y, judged=judged, repeats=0)
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


def test_the_search_shown_is_that_of_this_metric(chosen: LPTML_SupervisedCV, judged: Trust) -> None:
    page = labels_report(chosen, X, y, judged=judged, repeats=0)
    history = embedded(page)["history"]
    assert history["final"] == pytest.approx(chosen.violation_rate_)
    assert min(history["best"]) == pytest.approx(min(rate for _, rate, _ in chosen.history_), abs=1e-6)
    assert (np.diff(history["best"]) <= 0).all()
    assert history["end"]["trial"] == chosen.n_trials_ == 5
    assert "in 5 trials of the search and then in refinement" in page.notes["search"]
    assert dict(page.details)["Search"].startswith("5 trials")
    assert "what that of the best setting, before the average, satisfies" in page.notes["support"]


def test_triplets_have_no_bounds(chosen: LPTML_SupervisedCV, judged: Trust) -> None:
    page = labels_report(chosen, X, y, judged=judged, repeats=0)
    distances = embedded(page)["distances"]
    assert (distances["u"], distances["l"]) == (None, None)
    assert "Bounds" not in dict(page.details)
    assert "left of u" not in page.notes["distances"]
    assert (
        f"{chosen.violation_rate_:.1%} of the weight of the triplets;"
        in dict(page.details)["Violated constraints"]
    )


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (None, "not asked"),
        (0.0, "nothing is proven"),
        (0.05, "less than 5.00%, so this one violates at most 2 times as much"),
        (0.1, "no metric violates less"),
    ],
)
def test_how_far_from_the_best_possible(bound: float | None, said: str) -> None:
    assert said in words.least_possible(SimpleNamespace(lower_bound_=bound, violation_rate_=0.1))


def test_one_setting_is_no_cross_validation(model: LPTML_Supervised, judged: Trust) -> None:
    page = labels_report(model, X, y, judged=judged, repeats=0)
    assert embedded(page)["cross_validation"] is None
    assert 'id="cross-validation"' not in page.html()
    assert f"{model.violation_rate_:.1%} of the pairs;" in dict(page.details)["Violated constraints"]
    assert "left of u" in page.notes["distances"]
    assert "violates more" not in page.notes["search"]  # the count is all that counts


def test_why_a_metric_violates_more_than_the_least_met(judged: Trust) -> None:
    sepals = np.diag([1.0, 1.0, 0.01, 0.01])
    prior = LPTML_Supervised(max_trials=20, prior=sepals, shrinkage=1.0, random_state=0).fit(X, y)
    page = labels_report(prior, X, y, judged=judged, repeats=0)
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


def test_progress_is_told_of_every_split(judged: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    def certify(*_: object, most: int) -> str:
        assert told[-1] == (8, 9)  # the bar must not stand full while answers are certified
        return "certified"

    monkeypatch.setattr("lptml.report.build.cross_certify", certify)
    model = LPTML_Supervised(
        max_trials=0, constraints="all", temperature=0.0, shrinkage=0.0, random_state=0
    ).fit(X, y)
    labels_report(model, X, y, judged=judged, repeats=2, progress=lambda *now: told.append(now))
    splits = [(done, 9) for done in range(9)]  # two halves, twice, before and after correction
    assert told == [*splits, (1, 1)]


def test_any_estimator_with_components(judged: Trust) -> None:
    class Plain(BaseEstimator):
        components_ = np.eye(4)

    page = labels_report(Plain(), X, y, judged=judged, repeats=0)
    data = embedded(page)
    assert data["history"] is None
    assert data["support"] is None
    assert 'id="search"' not in page.html()
    calm = labels_report(Plain(), X, y, judged=judgement(y, doubts(150, 0)), repeats=0)
    assert "None looks wrong one by one." in calm.summary


def test_mismatched_input_is_refused(model: LPTML_Supervised, judged: Trust) -> None:
    with pytest.raises(ValueError, match="y has 10 entries where X has 150 rows"):
        labels_report(model, X, y[:10], judged=judged)
    with pytest.raises(ValueError, match=r"y must be one label for each point, got shape \(150, 2\)"):
        labels_report(model, X, [(label, 0) for label in codes], judged=judged)
    with pytest.raises(ValueError, match="suspicion has 3 entries"):
        labels_report(model, X, y, judged=judgement(y[:3], doubts(3, 0)))
    with pytest.raises(ValueError, match="names has 1 entries"):
        labels_report(model, X, y, judged=judged, names=["a"])


def test_twenty_thousand_points_stay_small(tmp_path: Path) -> None:
    class Plain(BaseEstimator):
        components_ = np.eye(10)

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, 20_000)
    points = rng.normal(size=(20_000, 10)) + labels[:, None]
    names = [f"sample number {i}" for i in range(20_000)]
    judged = judgement(labels, doubts(20_000, 900))
    page = labels_report(Plain(), points, labels, judged=judged, names=names, repeats=0)
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


def test_wrong_labels_do_not_count_where_labels_are_trusted() -> None:
    """The truth is known here: agreement with noisy labels is far from it, trusted accuracy is near."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 400)
    points = rng.normal(size=(400, 2)) * 0.6 + 2.0 * truth[:, None]
    flipped = rng.random(400) < 0.2
    given = np.where(flipped, 1 - truth, truth)
    rows, _ = neighbour_accuracy(
        LPTML_Supervised(max_trials=0, random_state=0),
        points,
        given,
        trust=np.where(flipped, 0.05, 0.98),
        corrected=truth,
        k=9,
    )
    found = {(row.name, row.against): row for row in rows}
    assert found["learned metric", "given"].high < 0.86
    assert found["learned metric", "trust"].mean > 0.93
    after = found[AFTER, "trust"]
    assert after.mean >= found["learned metric", "trust"].mean - 0.01


def test_each_suspect_has_its_reasons(judged: Trust) -> None:
    class Plain(BaseEstimator):
        components_ = np.eye(4)

    origin = Origin("species", "abc", rows=range(11, 161), command="lptml apply")
    review = embedded(labels_report(Plain(), X, y, judged=judged, repeats=0, origin=origin))["review"]
    assert (review["column"], review["digest"], review["rows"][0]) == ("species", "abc", 11)
    for i in np.flatnonzero(judged.suspects):
        reasons = review["open"][str(i)]
        assert len(reasons["near"]) == 3
        assert i not in reasons["near"]
        assert not judged.suspects[reasons["near"]].any()
        np.testing.assert_allclose(
            review["values"][str(i)], X[i][[int(f[1]) for f in review["features"]]], rtol=1e-3
        )
    members = X[(codes == 0) & (judged.suspicion < 0.5)]
    place = review["features"].index("x2")
    assert review["typical"][0][1][place] == pytest.approx(np.median(members[:, 2]), rel=1e-3)
