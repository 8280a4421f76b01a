"""The Python blocks of the documentation run, in order, page by page; links between pages lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^( *)```(?:python|pycon)\n(.*?)^\1```", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """The blocks of a page, each with the line it starts at."""
    text = page.read_text("utf-8")
    return [(text[: m.start()].count("\n") + 2, m.group(2)) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.stem)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for line, source in blocks(page):
        if source.lstrip().startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(source, names, page.stem, str(page), line)
            assert doctest.DocTestRunner(optionflags=flags).run(example, clear_globs=False).failed == 0
            names.update(example.globs)
        else:
            exec(compile("\n" * (line - 1) + source, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    generated = ("auto_examples", "generated")
    for target in LINK.findall(page.read_text("utf-8")):
        path = target.partition("#")[0]
        if path.startswith(generated):
            continue
        assert (page.parent / path).exists(), f"{page.name} links to {target}"


def test_the_command_line_page_names_every_command() -> None:
    from lptml.cli.app import COMMANDS

    text = (DOCS / "cli.md").read_text("utf-8")
    missing = [name for name in COMMANDS if f"`lptml {name}" not in text]
    assert missing == []
