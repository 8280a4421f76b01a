"""``lptml review``: the page on this machine, decisions on the disk as they are made."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path
from typing import Any

import click
import numpy as np

from lptml.cli.bar import working
from lptml.cli.correct import decisions
from lptml.cli.errors import InputError, OutputError
from lptml.cli.learner import Corrected, corrected, learn
from lptml.cli.options import (
    DATA,
    Sectioned,
    columns,
    common,
    label_option,
    load_table,
    need_one_of,
    prepared,
    reading,
)
from lptml.cli.output import FileKind, check_outputs, emit, note
from lptml.cli.parameters import learner
from lptml.cli.prepare import Points
from lptml.cli.report import apply_command, judged, make_page


@click.command(cls=Sectioned)
@click.argument("data", type=DATA)
@label_option
@click.option(
    "-o",
    "--corrections",
    metavar="FILE",
    help="The decisions; a review that was left goes on. [default: DATA's name + .corrections.csv]",
)
@click.option("--accept", is_flag=True, help="Change what is likely wrong as suggested, without a page.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page; a free one by default.")
@click.option("--browser/--no-browser", default=True, help="Open the page, or just print its address.")
@click.option("--title", help="The title of the page. [default: DATA's name]")
@columns
@reading
@learner
@common
def review(
    data: str,
    label: str | None,
    corrections: str | None,
    accept: bool,
    port: int,
    browser: bool,
    title: str | None,
    **options: Any,
) -> None:
    """Decide about each label of DATA that looks wrong, in a page that only this machine can see.

    Each decision is on the disk before the page says so: Ctrl-C loses nothing, and the same command goes on
    where you were. "Learn again" takes your decisions as known labels and looks for what is left.

    \b
    Examples:
      lptml review wine.csv --label class
      lptml review wine.csv --label class --no-browser --port 8765
      lptml review wine.csv --label class --accept
      lptml apply wine.csv wine.corrections.csv -o wine-clean.csv
    """
    if data == "-":
        raise click.UsageError("a review needs a file to go back to: name DATA")
    file = corrections or f"{Path(data).stem}.corrections.csv"
    check_outputs((file, FileKind.TEXT), inputs=(data,), force=True)
    stages = {"learning": 6.0, "judging_labels": 2.0, "measuring_accuracy": 4.0}
    with contextlib.ExitStack() as stack:
        with working(options["quiet"], **({"judging_labels": 1.0} if accept else stages)):
            table = load_table(data, options)
            need_one_of(label, None, table)
            points = prepared(table, options, label)
            if Path(file).exists():
                decisions(file)  # says in one line what is wrong with it
            journal = stack.enter_context(contextlib.closing(_opened(file, table.digest)))
            session = ReviewSession(points, options, title, file)
            if accept:
                session.accept(journal)
            else:
                session.learn(journal.standing())
        if not accept:
            from lptml.report.server import ReviewServer

            server = stack.enter_context(
                ReviewServer(journal, session.render, session.refit, session.labels, port)
            )
            note(f"{server.url}\nCtrl-C ends the review; every decision is in {file}", keep="\n")
            if browser:
                webbrowser.open(server.url)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever(poll_interval=0.1)
        said = session.told(journal.standing())
    emit(said, as_json=options["as_json"], text=lambda: said["summary"], strong=[file])


def _opened(file: str, digest: str) -> Any:
    """The corrections file, or one line that says why it cannot be added to."""
    from lptml.report.corrections import Journal

    try:
        return Journal(file, digest)
    except ValueError as problem:
        raise InputError(str(problem)) from None
    except OSError as problem:
        raise OutputError(f"{file}: cannot be written: {problem.strerror or problem}") from None


class ReviewSession:
    """A review under way: what was learned last, and the page about it."""

    def __init__(self, points: Points, options: dict[str, Any], title: str | None, file: str) -> None:
        self.points, self.options, self.title, self.file = points, options, title, file
        assert points.y is not None
        self.labels = dict(zip(points.table.row_numbers.tolist(), map(str, points.y.tolist())))
        self.page: Any = None
        self.judged: Any = None

    def learn(self, standing: list[Any]) -> Corrected:
        """Learn from the decisions, and make the page."""
        now = corrected(self.points, standing)
        model = learn(now.points, None, self.options)
        self.judged = judged(now, None, self.options)
        self.page = make_page(model, now, None, self.judged, self.options, title=self.title)
        return now

    def refit(self, standing: list[Any]) -> str:
        """Learn again; what changed."""
        names = np.array(self.points.names)
        before = {*names[self.judged.suspects].tolist()}
        now = self.learn(standing)
        left = {*names[self.judged.suspects].tolist()}
        new = sorted(left - before)
        more = f"; new: row {', '.join(new[:10])}{', …' if len(new) > 10 else ''}" if new else ""
        return (
            f"Learned again with {int(now.trusted.sum())} labels that you vouch for: {len(left)} look wrong "
            f"now, {len(before)} did before{more}."
        )

    def render(self, standing: list[Any], changed: str) -> str:
        """The page with the decisions that stand."""
        place = {int(row): i for i, row in enumerate(self.points.table.row_numbers)}
        self.page.data["review"]["decisions"] = [
            [place[each.row], each.decision.value, each.label] for each in standing if each.row in place
        ]
        html: str = self.page.html(server={"file": self.file, "changed": changed})
        return html

    def accept(self, journal: Any) -> None:
        """Decide about what is likely wrong and undecided as it is suggested."""
        from lptml.report.corrections import Correction, Decision

        now = corrected(self.points, journal.standing())
        assert now.points.y is not None
        found = judged(now, None, self.options)
        classes = np.unique(now.points.y)
        rows = self.points.table.row_numbers
        decided = {each.row for each in journal.standing()}
        for i in np.flatnonzero(found.suspects):
            if int(rows[i]) not in decided:
                journal.add(
                    Correction(
                        int(rows[i]),
                        str(self.points.label),
                        self.labels[int(rows[i])],
                        Decision.CHANGE,
                        str(classes[found.suggested[i]]),
                        self.points.names[i] if self.options["key"] else "",
                        journal.data,
                    )
                )

    def told(self, standing: list[Any]) -> dict[str, Any]:
        """What the review came to, and the next command."""
        kinds = [each.decision.value for each in standing]
        counts = {kind: kinds.count(kind) for kind in ("change", "keep", "unsure")}
        labels = f"{counts['change']} label{'s' * (counts['change'] != 1)}"
        words = f"{labels} to change, {counts['keep']} to keep, {counts['unsure']} undecided"
        return {
            "corrections": self.file,
            **counts,
            "summary": f"{words}: {self.file}\nNext: {apply_command(self.points, self.file)}",
        }
