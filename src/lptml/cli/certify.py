"""``lptml certify`` and ``lptml verify``: how little can be violated at all, and is the proof right?"""

from __future__ import annotations

import time
from typing import Any

import click

from lptml.cli.errors import INTERRUPTED, InputError, OutputError
from lptml.cli.options import (
    DATA,
    Sectioned,
    columns,
    common,
    force_option,
    label_option,
    load_table,
    need_one_of,
    pairs_option,
    prepared,
    reading,
)
from lptml.cli.output import FileKind, check_outputs, emit, note
from lptml.cli.pairs import read_pairs
from lptml.cli.readers import read_bytes

_EVERY = 5.0  # seconds between two lines of progress


@click.command(cls=Sectioned)
@click.argument("data", type=DATA)
@label_option
@pairs_option
@click.option("-o", "--output", metavar="FILE", help="Where to store the proof, for lptml verify.")
@click.option("--resume", metavar="FILE", help="Go on from an earlier proof for the same data.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0.0),
    default=60.0,
    show_default=True,
    help="Seconds after which to stop with what is proven.",
)
@click.option(
    "--ratio",
    type=click.FloatRange(min=0.0, min_open=True),
    default=1.0,
    show_default=True,
    help="u / l: similar pairs shall be at most u apart, dissimilar ones at least l.",
)
@click.option(
    "--wrong-labels",
    is_flag=True,
    help="Bound the number of labels that must be wrong, not that of violated pairs.",
)
@force_option
@columns
@reading
@common
def certify(
    data: str,
    label: str | None,
    pairs: str | None,
    output: str | None,
    resume: str | None,
    time_limit: float,
    ratio: float,
    wrong_labels: bool,
    force: bool,
    **options: Any,
) -> None:
    """Prove how few of the pairs of DATA any metric violates: all pairs of labelled rows, or those of FILE.

    Ctrl-C stops with what is proven so far. Of more features than rows the proof holds the coordinates of
    the rows in the subspace that they span: no metric can tell more than that.

    \b
    Examples:
      lptml certify wine.csv --label class --features alcohol,color_intensity
      lptml certify iris.csv --label class --time-limit 300 -o iris.proof.npz
      lptml certify iris.csv --label class --wrong-labels
      lptml verify iris.proof.npz
    """
    if wrong_labels and pairs is not None:
        raise click.UsageError("--wrong-labels goes with --label")
    if output == "-":
        raise click.UsageError("a proof is a binary file: name it with -o FILE")
    check_outputs(
        *([] if output is None else [(output, FileKind.PROOF)]),
        inputs=(data, pairs, None if resume == output else resume),
        force=force,
    )
    table = load_table(data, options)
    need_one_of(label, pairs, table)
    points = prepared(table, options, None if pairs else label)
    joined = read_pairs(pairs, points.names, key=options["key"]) if pairs else None
    from lptml import proof  # after the usage errors, which answer at once
    from lptml.cli.learner import noted
    from lptml.constraints import ConstraintSet, LabelledPairs
    from lptml.constraints.span import span_of_points

    X = span_of_points(points.X).coordinates(points.X)  # n points have n - 1 dimensions at most
    y: Any = points.y
    tell = _Lines(options["quiet"] or options["as_json"])
    earlier = None if resume is None else _stored(resume)
    with noted(options["quiet"]):
        if wrong_labels:
            found = proof.certify_labels(
                X, y, bounds=(ratio, 1.0), time_limit=time_limit, callback=tell, resume=earlier
            )
        else:
            source: ConstraintSet | LabelledPairs
            if joined is None:
                source = LabelledPairs.from_labels(X, y, bounds=(ratio, 1.0))
            else:
                if joined.y is None:
                    raise InputError("has no column of labels", str(pairs))
                source = ConstraintSet.from_pairs(
                    X[joined.index], joined.y, bounds=(ratio, 1.0), weight=joined.weight
                )
            found = proof.certify(source, time_limit=time_limit, callback=tell, resume=earlier)
    if output is not None:
        try:
            proof.write_proof(output, found)
        except OSError as problem:
            raise OutputError(f"{output}: cannot be written: {problem.strerror or problem}") from None
    result = _result(found, output)
    emit(result, as_json=options["as_json"], text=lambda: _summary(found, output))
    if found.interrupted:
        click.get_current_context().exit(INTERRUPTED)


@click.command()
@click.argument("file", type=click.Path())
@common
def verify(file: str, as_json: bool, quiet: bool) -> None:
    """Check the proof in FILE: count what its metric violates, and recompute what its certificate proves.

    \b
    Example:
      lptml verify iris.proof.npz
    """
    from lptml.proof import check_cost

    found = _stored(file)
    proven = found.verify()
    check_cost(found)
    result = {**_result(found, file), "verified": True, "proven": proven}
    emit(result, as_json=as_json, text=lambda: f"{file}: verified. {found.statement}")


def _stored(file: str) -> Any:
    """A proof from a file, or one line that says what is wrong with it."""
    from lptml.proof import read_proof

    read_bytes(file)
    return read_proof(file)


class _Lines:
    """Lines on standard error: cost, bound and gap, now and then."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.began = self.last = time.monotonic()

    def __call__(self, lower_bound: float, cost: float) -> bool:
        now = time.monotonic()
        if now - self.last >= _EVERY:
            self.last = now
            gap = f"{cost / lower_bound:.2f} times the bound" if lower_bound > 0 else "nothing proven yet"
            text = f"{now - self.began:.0f} s: cost {cost:g}, bound {lower_bound:g}: {gap}"
            note(text, quiet=self.quiet)
        return False


def _result(found: Any, file: str | None) -> dict[str, Any]:
    return {
        "cost": found.cost,
        "lower_bound": found.lower_bound,
        "total": found.total_weight,
        "optimal": found.proof.name == "OPTIMAL",
        "ratio": found.ratio if found.lower_bound > 0 or found.cost == 0 else None,
        "statement": found.statement,
        "seconds": found.seconds,
        "proof": file,
    }


def _summary(found: Any, output: str | None) -> str:
    lines = [found.statement, f"time   {found.seconds:.1f} s"]
    return "\n".join(lines + ([] if output is None else [f"proof  {output}"]))
