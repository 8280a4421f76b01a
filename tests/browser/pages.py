"""What the browser tests do with a page."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

DESKTOP, PHONE = (1280, 900), (390, 844)
Open = Callable[..., Any]


def shot(page: Any, name: str, tmp_path: Path) -> Path:
    folder = Path(os.environ.get("LPTML_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", full_page=True)
    return folder / f"{name}.png"


def column(page: Any, number: int) -> list[str]:
    cells = page.locator(f"#table > tbody > tr[data-row] > td:nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def downloaded(page: Any, button: str, folder: Path, name: str) -> list[list[str]]:
    with page.expect_download() as caught:
        page.click(button)
    assert caught.value.suggested_filename == name
    caught.value.save_as(folder / name)
    with (folder / name).open(newline="") as stream:
        return list(csv.reader(stream))
