"""The report in Chromium: it loads silently, sorts, filters, hovers and downloads, wide and narrow.

Needs Debian's chromium on PATH and Playwright's Python package (``make test-browser``).  Screenshots are left
in the folder named by LPTML_SCREENSHOTS, or in pytest's temporary folder.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_wine
from tests.browser.pages import DESKTOP, PHONE, Open, column, downloaded, shot

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from lptml import LPTML_SupervisedCV
    from lptml.noise import flip_labels
    from lptml.report import Origin, labels_report

    data = load_wine()
    labels = np.array([str(data.target_names[t]) for t in data.target])
    noisy = flip_labels(labels, 0.1, random_state=0).labels
    model = LPTML_SupervisedCV(max_trials=5, random_state=0).fit(data.data, noisy)
    page = labels_report(
        model,
        data.data,
        noisy,
        names=[f"bottle, {i}" for i in range(len(labels))],
        feature_names=data.feature_names,
        title="wine.csv",
        origin=Origin("class", "0123456789abcdef"),
    )
    return page.save(tmp_path_factory.mktemp("report") / "wine.html")


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("desktop", DESKTOP, "light"),
        ("dark", DESKTOP, "dark"),
        ("phone", PHONE, "light"),
        ("phone-dark", PHONE, "dark"),
    ],
)
def test_loads_at_every_width(
    open_page: Open, wine: Path, tmp_path: Path, name: str, size: tuple[int, int], scheme: str
) -> None:
    page = open_page(wine, size, scheme)
    assert page.title() == "wine.csv · lptml report"
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]  # nothing sticks out sideways
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    for chart in ("accuracy", "trust", "weights", "correlation"):
        assert page.locator(f"#{chart}-chart svg").count() == 1, chart
    assert not page.locator("#distances").is_visible()  # technical details are closed
    page.click("#details > summary")
    for chart in ("cross-validation", "distances", "search"):
        page.wait_for_selector(f"#{chart}-chart svg")
    for canvas in ("before", "after"):
        painted = page.evaluate(
            "id => { const c = document.getElementById(id);"
            " return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0); }",
            canvas,
        )
        assert painted, canvas
    assert shot(page, f"report-{name}", tmp_path).stat().st_size > 10_000


def test_text_never_overlaps_on_a_phone(open_page: Open, wine: Path) -> None:
    page = open_page(wine, PHONE)
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, input[type=search]')].filter(e => e.offsetParent)"
        ".filter(e => e.getBoundingClientRect().height < 28).map(e => e.id || e.textContent)"
    )
    assert small == []  # every control is large enough for a finger


def test_sorting(open_page: Open, wine: Path) -> None:
    page = open_page(wine)
    ranks = [int(text) for text in column(page, 1)]
    assert ranks == sorted(ranks)  # also where the probabilities are equal after rounding
    page.click("#table th button:has-text('Suspicion')")
    assert [int(text) for text in column(page, 1)] == sorted(ranks, reverse=True)
    page.click("#table th button:has-text('Row')")
    numbers = [int(text.split()[-1]) for text in column(page, 2)]
    assert numbers == sorted(numbers)  # bottle 9 stands before bottle 10
    assert page.locator("#table th[aria-sort=ascending]").inner_text().startswith("Row")


def test_filtering_and_paging(open_page: Open, wine: Path) -> None:
    page = open_page(wine)
    wrong = len(column(page, 1))
    assert page.inner_text("#count") == f"{wrong} of 178 rows, page 1 of 1"
    page.uncheck("#only")
    assert page.inner_text("#count") == "178 of 178 rows, page 1 of 8"
    page.click("#next")
    assert len(column(page, 1)) == 25
    page.select_option("#by-label", "class_1")
    assert set(column(page, 3)) == {"class_1"}
    page.select_option("#by-suggested", "class_2")
    assert set(column(page, 4)) == {"class_2"}
    page.select_option("#by-suggested", "")
    page.select_option("#by-label", "")
    page.fill("#filter", "bottle, 10")
    page.wait_for_function("document.querySelectorAll('#table > tbody > tr').length < 25")
    assert all("bottle, 10" in name for name in column(page, 2))
    page.fill("#filter", "nothing like this")
    page.wait_for_selector("text=No row matches.")


def test_download_holds_what_is_shown(open_page: Open, wine: Path, tmp_path: Path) -> None:
    page = open_page(wine)
    page.select_option("#by-label", "class_2")
    rows = downloaded(page, "#download", tmp_path, "suspects.csv")
    assert rows[0] == ["#", "Row", "Given", "Looks like", "Suspicion", "Verdict", "Decision"]
    assert len(rows) - 1 == int(page.inner_text("#count").split()[0])
    assert {row[2] for row in rows[1:]} == {"class_2"}
    assert all(row[1].startswith("bottle, ") for row in rows[1:])  # the comma was quoted


def test_hover_names_the_row_in_both_pictures(open_page: Open, wine: Path) -> None:
    page = open_page(wine)
    canvas = page.locator("#after")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    spots = [(x, y) for y in np.linspace(0.1, 0.9, 30) for x in np.linspace(0.1, 0.9, 30)]
    for x, y in spots:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if page.locator("#tip").is_visible():
            break
    text = page.inner_text("#tip")
    assert text.startswith("row bottle, ")
    assert "label class_" in text
    assert "suspicion 0." in text
    page.mouse.move(5, 5)
    assert not page.locator("#tip").is_visible()


def test_tap_names_the_row_on_a_phone(open_page: Open, wine: Path) -> None:
    page = open_page(wine, PHONE, touch=True)
    page.locator("#after").scroll_into_view_if_needed()
    box = page.locator("#after").bounding_box()
    for x, y in [(x, y) for y in np.linspace(0.2, 0.8, 12) for x in np.linspace(0.2, 0.8, 12)]:
        page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if page.locator("#tip").is_visible():
            break
    assert page.inner_text("#tip").startswith("row bottle, ")


def test_legend_zoom_theme_and_axis(open_page: Open, wine: Path) -> None:
    page = open_page(wine)
    picture = "document.getElementById('after').toDataURL()"
    whole = page.evaluate(picture)
    page.click("#legend button:has-text('class_0')")
    hidden = page.evaluate(picture)
    assert hidden != whole
    assert page.get_attribute("#legend button:has-text('class_0')", "aria-pressed") == "false"
    page.click("#legend button:has-text('class_0')")
    assert page.evaluate(picture) == whole
    page.click("button[data-zoom='1.5']")
    assert page.evaluate(picture) != whole
    page.click("button[data-zoom='0']")
    assert page.evaluate(picture) == whole
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.click("#details > summary")
    page.click("button[data-axis='seconds']")
    assert "seconds" in page.inner_text("#search-chart")


def test_a_row_of_the_table_lights_its_point(open_page: Open, wine: Path) -> None:
    page = open_page(wine)
    picture = "document.getElementById('before').toDataURL()"
    before = page.evaluate(picture)
    page.locator("#table > tbody > tr").first.click()
    assert page.locator("#table > tbody > tr.pick").count() == 1
    assert page.evaluate(picture) != before


def test_the_settings_that_were_compared(open_page: Open, wine: Path) -> None:
    page = open_page(wine)
    page.click("#details > summary")
    page.wait_for_selector("#cross-validation-chart svg")
    rows = page.locator("#cross-validation-table tbody tr")
    cells = [row.locator("td").all_inner_texts() for row in rows.all()]
    assert len(cells) == 9
    scores = [float(score.rstrip("%")) for _, _, score, *_ in cells]
    assert scores == sorted(scores, reverse=True)
    for _, _, score, behind, error, averaged in cells:
        assert float(behind.rstrip("%")) == pytest.approx(scores[0] - float(score.rstrip("%")), abs=0.011)
        if float(behind.rstrip("%")) != float(error.rstrip("%")):  # as far as two digits tell
            assert averaged == ("yes" if float(behind.rstrip("%")) < float(error.rstrip("%")) else "no")
    assert cells[0][4:] == ["0.00%", "yes"]
    assert page.locator("#cross-validation-chart circle").count() == 9
    assert page.locator("#support-table tbody tr").count() > 0


def test_pairs_report(open_page: Open, tmp_path: Path) -> None:
    from lptml.report import pairs_report

    class Plain(BaseEstimator):
        components_ = np.eye(3)

    rng = np.random.default_rng(0)
    index = np.stack([np.arange(60), (np.arange(60) + 7) % 60], axis=1)
    page = pairs_report(
        Plain(),
        rng.normal(size=(60, 3)),
        index,
        np.where(rng.random(60) < 0.5, 1, -1),
        suspicion=rng.random(60),
        n_suspects=5,
        repeats=0,
    )
    shown = open_page(page.save(tmp_path / "pairs.html"))
    assert shown.inner_text("#count") == "5 of 60 pairs, page 1 of 1"
    assert {"similar", "dissimilar"} >= set(column(shown, 3))


def test_twenty_thousand_points(open_page: Open, tmp_path: Path) -> None:
    from lptml.report import labels_report

    class Plain(BaseEstimator):
        components_ = np.eye(10)

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, 20_000)
    points = rng.normal(size=(20_000, 10)) * 2 + labels[:, None]
    names = [f"sample-{i}" for i in range(20_000)]
    report = labels_report(Plain(), points, labels, names=names, repeats=0)
    path = report.save(tmp_path / "big.html")
    assert path.stat().st_size < 15e6
    page = open_page(path)
    page.uncheck("#only")
    page.fill("#filter", "sample-19999")
    page.wait_for_function("document.querySelectorAll('#table > tbody > tr').length === 1")
    assert page.evaluate("Number(document.documentElement.dataset.ready)") > 0
    shot(page, "report-20000", tmp_path)
