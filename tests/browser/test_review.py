"""The review in Chromium: by mouse and keyboard, reloaded, downloaded, applied, learned again."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from tests.browser.pages import PHONE, Open, column, downloaded, shot

pytestmark = pytest.mark.browser
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def wine_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wine with a tenth of its labels wrong; the third class has a hostile name."""
    from lptml.noise import flip_labels

    data = load_wine()
    labels = np.array(["north", "south", EVIL])[data.target]
    noisy = flip_labels(labels, 0.1, random_state=0).labels
    folder = tmp_path_factory.mktemp("wine")
    for name, kinds in (("wine.csv", noisy), ("truth.csv", labels)):
        with (folder / name).open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["bottle", *data.feature_names, "grower"])
            writer.writerows(
                [f"b{i}", *map(str, x), kind] for i, (x, kind) in enumerate(zip(data.data, kinds))
            )
    return folder / "wine.csv"


def lptml(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "lptml", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def page_file(wine_csv: Path) -> Path:
    lptml(wine_csv.parent, "report", "wine.csv", "--label", "grower", "--key", "bottle", "-o", "wine.html")
    return wine_csv.parent / "wine.html"


def right(wine_csv: Path, clean: Path) -> float:
    with clean.open(newline="") as a, (wine_csv.parent / "truth.csv").open(newline="") as b:
        pairs = list(zip(csv.DictReader(a), csv.DictReader(b)))
    return sum(x["grower"] == y["grower"] for x, y in pairs) / len(pairs)


def left(page: Any) -> int:
    found = re.search(r"(\d+) left", page.inner_text("#left"))
    assert found
    return int(found.group(1))


def test_a_row_opens_to_its_reasons(open_page: Open, page_file: Path, tmp_path: Path) -> None:
    page = open_page(page_file)
    page.locator("#table > tbody > tr").first.click()
    text = page.inner_text(".detail")
    assert "is given as" in text
    assert "What speaks for the change" in text
    assert "Nearest trusted" in text
    assert page.locator(".detail .values tbody tr").count() >= 6
    page.click(".detail button:has-text('All 13 features')")
    assert page.locator(".detail .values tbody tr").count() == 13
    assert page.locator(".detail .strip svg").count() == 13
    shot(page, "review-open", tmp_path)
    page.locator("#table > tbody > tr").first.click()
    assert page.locator(".detail").count() == 0


def test_mouse_keyboard_reload_download_apply(
    open_page: Open,
    page_file: Path,
    wine_csv: Path,
    tmp_path: Path,
) -> None:
    page = open_page(page_file)
    wrong = left(page)
    assert wrong >= 12
    page.locator("#table > tbody > tr").first.click()
    page.click(".answers button:has-text('Change to')")  # the next row opens
    assert left(page) == wrong - 1
    page.keyboard.press("k")
    page.keyboard.press("u")
    page.keyboard.press("c")
    assert left(page) == wrong - 4
    page.keyboard.press("z")
    assert left(page) == wrong - 3
    page.keyboard.press("ArrowDown")
    opened = page.locator("#table > tbody > tr.pick").get_attribute("data-row")
    page.keyboard.press("ArrowUp")
    assert page.locator("#table > tbody > tr.pick").get_attribute("data-row") != opened
    decided = column(page, 7)
    assert [text.partition(" to ")[0] for text in decided if text] == ["change", "keep", "cannot say"]
    page.select_option("#by-decision", "keep")
    assert len(column(page, 1)) == 1
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert left(page) == wrong - 3  # kept by the browser
    assert column(page, 7) == decided
    page.click("#accept")
    assert left(page) == 0
    page.click("#undo")
    assert left(page) == wrong - 3  # all of them in one step
    page.click("#accept")
    for word in ("keep", "cannot say"):  # default decisions, once these two are taken back
        page.locator(f"#table > tbody > tr:has(td.decision:text-is('{word}'))").click()
        page.keyboard.press("c")
    rows = downloaded(page, "#corrections", tmp_path, "corrections.csv")
    assert len(rows) == wrong + 1
    assert rows[0] == ["row", "key", "column", "given", "decision", "label", "data"]
    said = lptml(wine_csv.parent, "apply", "wine.csv", str(tmp_path / "corrections.csv"), "-o", "clean.csv")
    assert said.startswith(f"{wrong} labels changed")
    assert right(wine_csv, wine_csv.parent / "clean.csv") >= 0.95
    before = wine_csv.read_text().splitlines()
    after = (wine_csv.parent / "clean.csv").read_text().splitlines()
    assert sum(a != b for a, b in zip(before, after)) == wrong


def test_a_class_that_the_table_has_not_had(
    open_page: Open, page_file: Path, wine_csv: Path, tmp_path: Path
) -> None:
    page = open_page(page_file)
    page.locator("#table > tbody > tr").first.click()
    page.select_option(".answers select", label="a new class…")
    page.locator(".answers input").press_sequentially("east <b>k</b>")
    assert set(column(page, 7)) == {""}  # keys typed into the field decide nothing
    page.locator(".answers input").press("Enter")
    assert column(page, 7)[0] == "change to east <b>k</b>"
    assert "east <b>k</b>" in page.inner_text(".answers select")  # offered for the next row too
    rows = downloaded(page, "#corrections", tmp_path, "corrections.csv")
    assert [row[5] for row in rows[1:]] == ["east <b>k</b>"]
    lptml(wine_csv.parent, "apply", "wine.csv", str(tmp_path / "corrections.csv"), "-o", "new.csv")
    assert "east <b>k</b>" in (wine_csv.parent / "new.csv").read_text()


def test_hostile_labels_stay_text(open_page: Open, page_file: Path, tmp_path: Path) -> None:
    page = open_page(page_file)  # an alert or an image would be a complaint
    page.select_option("#by-suggested", EVIL)
    page.locator("#table > tbody > tr").first.click()
    page.keyboard.press("c")
    assert EVIL in page.inner_text("#table")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    rows = downloaded(page, "#corrections", tmp_path, "corrections.csv")
    assert rows[1][5] == EVIL


def test_the_matrix_leads_to_its_rows(open_page: Open, page_file: Path) -> None:
    page = open_page(page_file)
    button = page.locator("#confusion-table button.cell").first
    number = int(button.inner_text())
    button.click()
    assert len(column(page, 1)) == number
    assert len({*column(page, 3)}) == len({*column(page, 4)}) == 1


def test_review_on_a_phone(open_page: Open, page_file: Path, tmp_path: Path) -> None:
    page = open_page(page_file, PHONE, touch=True)
    page.locator("#table > tbody > tr").first.tap()
    page.locator(".answers button").nth(1).tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    looks_like = page.locator("#table > tbody > tr[data-row] > td.class").first
    box = looks_like.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE[0]
    shot(page, "review-phone", tmp_path)


def test_review_is_served_saved_resumed_and_learned_again(
    open_page: Open,
    wine_csv: Path,
    tmp_path: Path,
) -> None:
    folder, file = wine_csv.parent, tmp_path / "c.csv"
    arguments = [
        "review",
        "wine.csv",
        "--label",
        "grower",
        "--key",
        "bottle",
        "--no-browser",
        "-o",
        str(file),
    ]
    command = [sys.executable, "-m", "lptml", *arguments, "--max-trials", "3", "--n-repeats", "1"]

    def start() -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("http://127.0.0.1:"):
                return process, line.strip()
        raise AssertionError("no address")

    process, url = start()
    page = open_page(url)
    wrong = left(page)
    page.keyboard.press("c")  # opens the first
    page.keyboard.press("c")
    page.keyboard.press("k")
    page.wait_for_selector("#saved:has-text('Saved to')")
    page.wait_for_function("document.querySelector('#left').textContent.includes('left')")
    page.wait_for_timeout(300)
    with file.open(newline="") as stream:
        kinds = [row["decision"] for row in csv.DictReader(stream)]
    assert kinds == ["change", "keep"]
    page.click("#refit")
    page.wait_for_selector("#saved:has-text('Learned again with 2 labels')", timeout=120_000)
    process.send_signal(signal.SIGINT)  # Ctrl-C
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "1 label to change, 1 to keep" in out
    assert "Next: lptml apply wine.csv" in out
    process, url = start()
    again = open_page(url)
    assert again.inner_text("#saved").startswith("Decisions so far are in")
    assert left(again) <= wrong
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
