"""The Python blocks of the documentation run, in order, page by page; links between pages lead somewhere."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^( *)```(?:python|pycon)\n(.*?)^\1```", re.M | re.S)
WHOLE = ("quickstart", "guide")  # pages a reader follows from top to bottom: every block must run
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """The blocks of a page, each with the line it starts at."""
    text = page.read_text("utf-8")
    return [(text[: m.start()].count("\n") + 2, m.group(2)) for m in BLOCK.finditer(text)]


def undefined(source: str, known: dict[str, object]) -> set[str]:
    """The names that a block uses and nobody has defined: then it is a sketch, not an example."""
    tree = ast.parse(source)
    own = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    own |= {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return used - own - set(known) - set(dir(builtins))


def check_imports(source: str) -> None:
    """What a sketch imports from lptml must exist."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lptml"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"


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
        elif missing := undefined(source, names):
            assert page.stem not in WHOLE, f"{page.name}, line {line}: {missing} not defined"
            check_imports(source)
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


def test_what_contributing_names_is_there() -> None:
    root = DOCS.parent
    text = re.sub(r"```.*?```", "", (root / "CONTRIBUTING.md").read_text("utf-8"), flags=re.S)
    named = {name for name in re.findall(r"`([\w./]+)`", text) if not name.startswith(".")}
    files = [*root.glob("src/**/*.py"), *root.glob("tests/**/*.py")]
    paths = {name for name in named if name.endswith((".py", "/"))}
    folders = (root, root / "src", root / "src/lptml", root / "src/lptml/search", root / "src/lptml/exact")
    assert {name for name in paths if not any((folder / name).exists() for folder in folders)} == set()
    there = set(dir(builtins)) | {"A", "v", "BaseEstimator", "LPTML_DATA", "make"}  # of the paper, of others
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                there.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                there.add(node.id if isinstance(node, ast.Name) else node.attr)
    words = {name.split(".")[-1] for name in named - paths if not (root / name).exists()}
    assert words - there == set()


def test_the_command_line_page_names_every_command() -> None:
    from lptml.cli.app import COMMANDS

    text = (DOCS / "cli.md").read_text("utf-8")
    missing = [name for name in COMMANDS if f"`lptml {name}" not in text]
    assert missing == []
