"""Chromium, and the pages that are opened in it: fixtures and helpers of the browser tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.pages import DESKTOP, Open

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: make test-browser")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs Chromium on PATH (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open a file; whatever the page complains about, or asks a network for, fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_file(
        path: Path | str, size: tuple[int, int] = DESKTOP, scheme: str = "light", touch: bool = False
    ) -> Any:
        address = path if isinstance(path, str) else path.as_uri()
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, has_touch=touch
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:", "blob:", address))
                else complaints.append(f"request {request.url}")
            ),
        )
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert complaints == []
