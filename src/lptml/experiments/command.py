"""``lptml reproduce``: the paper's tables and figures from the shell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lptml.experiments.options import Options

_NAMES = ["table1", "figure-violations", "figure-poisoning", "figure-dimension", "figure-parallel", "noise"]


@click.command("reproduce")
@click.argument(
    "experiment", type=click.Choice([*_NAMES, "all", "document"]), default="all", metavar="[EXPERIMENT]"
)
@click.option(
    "--quick/--full",
    "quick",
    default=False,
    help="A little of everything (about two minutes), or the paper's numbers.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for CSV, JSON and figures.",
)
@click.option(
    "--document",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as a Markdown page, with its figures in a folder beside it.",
)
@click.option("--repeats", type=click.IntRange(min=1), help="Executions for accuracies (paper: 50).")
@click.option(
    "--few-repeats",
    type=click.IntRange(min=1),
    help="Executions over iterations and under attacks on labels (paper: 10).",
)
@click.option("--noise-repeats", type=click.IntRange(min=1), help="Executions under uniform label noise.")
@click.option("--folds", type=click.IntRange(min=2), help="Folds of the cross-validation (paper: 2).")
@click.option("--neighbors", type=click.IntRange(min=1), help="k of k-NN (paper: 4).")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    help="Iterations t of the plain search in the table (paper: 2000).",
)
@click.option(
    "--plain-dimension",
    type=click.IntRange(min=1),
    help="Above this many features the plain search gets fewer trials.",
)
@click.option(
    "--pairs", type=click.IntRange(min=0), help="Pairs of each kind for the plain search; 0: all pairs."
)
@click.option(
    "--most-points",
    type=click.IntRange(min=20),
    help="Sample larger data sets down to this size in each execution.",
)
@click.option("--dataset", "datasets", multiple=True, help="Only this data set; may be repeated.")
@click.option("--method", "methods", multiple=True, help="Only this method; may be repeated.")
@click.option(
    "--workers",
    multiple=True,
    type=click.IntRange(min=1),
    help="Numbers of workers in the parallel figure; may be repeated.",
)
@click.option("--n-jobs", type=click.IntRange(min=1), help="Worker processes.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Start no new piece of work after this long.",
)
@click.option("--seed", type=int, help="Everything random derives from it.")
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    help="Folder with Ionosphere and Soybean (else LPTML_DATA, the cache, the network).",
)
@click.option(
    "--resume/--restart",
    "resume",
    default=True,
    show_default=True,
    help="Go on with an interrupted run of the same options, or begin again.",
)
def reproduce(experiment: str, quick: bool, output: Path, page: Path | None, **given: Any) -> None:
    """Run the paper's tables and figures again, with the baselines, and draw its values into ours.

    EXPERIMENT is one of the tables and figures, "all" of them, or "document", which only writes the page from
    the results in the output folder.
    """
    from lptml.experiments.document import write_page
    from lptml.experiments.runner import run

    if experiment == "document":
        click.echo(f"wrote {write_page(output, page or Path('reproduction.md'))}")
        return
    options = make_options(quick, output, given)
    with _Bars() as bars:
        records = run(experiment, options, bars)
    for name, record in records.items():
        left = f", {record['pieces_not_run']} pieces left for a next run" if record["pieces_not_run"] else ""
        failures = f", {len(record['failures'])} kinds of failure" if record["failures"] else ""
        figures = ", ".join(record["summary"].get("figures", []))
        click.echo(f"{name}: {record['n_rows']} rows in {record['seconds']:.0f} s{failures}{left}; {figures}")
    click.echo(f"results are in {output}")
    if page is not None:
        click.echo(f"wrote {write_page(output, page)}")


def make_options(quick: bool, output: Path, given: dict[str, Any]) -> Options:
    """The mode's options with those that were given on the command line."""
    changes = {key: value for key, value in given.items() if value is not None and value != ()}
    base = Options.quick(folder=output) if quick else Options.full(folder=output)
    try:
        return replace(base, **changes)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


class _Bars:
    """A progress bar for each experiment, on the terminal's error stream."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.name = ""

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def __call__(self, name: str, done: int, total: int, message: str) -> None:
        from tqdm import tqdm

        if message:
            click.echo(f"{name}: {message}", err=True)
            return
        if name != self.name:
            self.__exit__()
            self.name, self.bar = name, tqdm(total=total, desc=name, unit="piece")
        self.bar.update(done - self.bar.n)
