"""The report as one HTML page: template, style, script and data in a single file that needs no network."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from lptml._files import replacing

SCRIPTS = ("base.js", "scatter.js", "csv.js", "table.js", "review.js", "charts.js")


@dataclass(frozen=True)
class Tile:
    """One of the key figures at the top; ``tone`` is "", "good", "warn" or "accent"."""

    name: str
    value: str
    note: str
    tone: str = ""


@dataclass(frozen=True)
class Page:
    """All that the template shows.

    Attributes
    ----------
    meta : dict
        title, subtitle, before, after, classes, version, what was noticed, and the titles of sections.
    summary : str
        The answer in a few sentences.
    tiles : list of Tile
    notes : dict
        The sentence above each figure, by section.
    details : list of (str, str)
    data : dict
        What the script draws: points, table, and review, confusion, accuracy, cross_validation, weights,
        distances, history, support or None.
    """

    meta: dict[str, Any]
    summary: str
    tiles: list[Tile]
    notes: dict[str, str]
    details: list[tuple[str, str]]
    data: dict[str, Any] = field(repr=False)

    @property
    def sections(self) -> list[tuple[str, str]]:
        """The sections that have something to show, in the order of the page."""
        optional = {
            "confusion": ("Classes", "confusion"),
            "suspects": ("Review" if self.data.get("review") else "Suspects", "table"),
            "accuracy": ("Before and after", "accuracy"),
            "map": ("Points", "points"),
            "features": ("Features", "weights"),
        }
        shown = [(i, name) for i, (name, key) in optional.items() if self.data.get(key) is not None]
        return [*shown, ("details", "Technical details")]

    @property
    def technical(self) -> set[str]:
        """What the technical details have something to show of."""
        keys = {"cross-validation": "cross_validation", "search": "history"}
        names = ("cross-validation", "distances", "search", "support")
        return {name for name in names if self.data.get(keys.get(name, name)) is not None}

    def html(self, *, server: dict[str, Any] | None = None) -> str:
        """The page; ``server`` is what a page needs to know that is served by ``lptml review``."""
        try:
            import jinja2
            from markupsafe import Markup
        except ImportError:
            raise ImportError("the report needs jinja2: pip install 'lptml[cli]'") from None

        files = resources.files("lptml.report")
        read = {n: (files / n).read_text("utf-8") for n in ("page.html", "page.css", *SCRIPTS)}
        environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        script = "".join(read[name] for name in SCRIPTS)
        return environment.from_string(read["page.html"]).render(
            meta=self.meta,
            summary=self.summary,
            tiles=[asdict(tile) for tile in self.tiles],
            notes=self.notes,
            details=self.details,
            sections=self.sections,
            shown={i for i, _ in self.sections} | self.technical,
            review=self.data.get("review") is not None,
            server=server,
            css=Markup(read["page.css"]),
            js=Markup('"use strict";(() => {\n' + script + "})();\n"),
            data=Markup(
                _embedded({**self.data, "meta": {"classes": self.meta["classes"]}, "server": server})
            ),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path."""
        target = Path(path)
        with replacing(target) as temporary:
            temporary.write_text(self.html(), encoding="utf-8")
        return target


def _embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
