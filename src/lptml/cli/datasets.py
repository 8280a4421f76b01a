"""``lptml datasets``: list them, or write one as a table."""

from __future__ import annotations

from typing import Any

import click

from lptml.cli.errors import InputError
from lptml.cli.options import common, force_option
from lptml.cli.output import check_outputs, emit, note, table_kind, write_columns


@click.command()
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Where to write NAME (.csv, .tsv, .parquet, .npz; - is stdout).",
)
@click.option(
    "--random-state",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of a generated set.",
)
@force_option
@common
def datasets(
    name: str | None, output: str, random_state: int, force: bool, as_json: bool, quiet: bool
) -> None:
    """List the data sets, or write the one called NAME as a table with the column `class`.

    \b
    Examples:
      lptml datasets
      lptml datasets wine -o wine.csv
      lptml datasets poisoned | lptml suspects - --label class
    """
    from lptml.datasets import LOADERS, DatasetNotFound

    if name is None:
        table = {key: _summary(loader) for key, loader in LOADERS.items()}
        emit({"datasets": table}, as_json=as_json, text=lambda: _listing(table))
        return
    if name not in LOADERS:
        raise InputError(f"there is no data set {name!r}; there are {', '.join(LOADERS)}")
    check_outputs((output, table_kind(output)), inputs=(), force=force)
    try:
        bunch = _load(name, random_state)
    except DatasetNotFound as problem:
        raise InputError(str(problem)) from None
    classes = [str(bunch.target_names[t]) for t in bunch.target]
    header = [str(f) for f in bunch.feature_names] + ["class"]
    write_columns(output, header, [*bunch.data.T, classes])
    result = {"name": name, "rows": len(classes), "features": len(header) - 1, "output": output}
    if as_json and output != "-":
        emit(result, as_json=True, text=str)
    elif output != "-":
        note(f"{output}: {len(classes)} rows, {len(header) - 1} features, label column 'class'", quiet=quiet)


def _load(name: str, random_state: int) -> Any:
    import inspect

    from lptml.datasets import LOADERS, load

    generated = "random_state" in inspect.signature(LOADERS[name]).parameters
    return load(name, **({"random_state": random_state} if generated else {}))


def _summary(loader: Any) -> str:
    return (loader.__doc__ or "").strip().partition("\n")[0]


def _listing(table: dict[str, str]) -> str:
    width = max(len(key) for key in table)
    return "\n".join(f"{key:{width}}  {text}" for key, text in table.items())
