"""Commands beside the learning: ``lptml datasets``, ``bench``, ``completion`` and ``version``."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np
from click.shell_completion import get_completion_class

from lptml._version import versions
from lptml.cli.bar import progress
from lptml.cli.errors import InputError
from lptml.cli.learner import searcher
from lptml.cli.options import common, force_option
from lptml.cli.output import check_outputs, emit, note, table_kind, write_columns, write_text

BENCH_DATA = ("synthetic", "iris", "wine")
BENCH_COLUMNS = ("data", "rows", "features", "cpu_seconds", "violation_rate", "trivial_rate", "lower_bound")
BENCH_HEAD = "data               rows features    CPU s  violated   trivial    bound"
SHELLS = ("bash", "zsh", "fish")
INSTALL = {
    "bash": "lptml completion bash > ~/.local/share/bash-completion/completions/lptml",
    "zsh": "lptml completion zsh > ~/.zfunc/_lptml   (with fpath+=~/.zfunc before compinit)",
    "fish": "lptml completion fish > ~/.config/fish/completions/lptml.fish",
}
PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "joblib",
    "click",
    "rich",
    "pandas",
    "pyarrow",
    "matplotlib",
)


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
    help="Seed of a generated set, and of --wrong.",
)
@click.option(
    "--wrong",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    metavar="SHARE",
    help="Make so many of the labels wrong, to try the other commands on.",
)
@force_option
@common
def datasets(
    name: str | None,
    output: str,
    random_state: int,
    wrong: float,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """List the data sets, or write the one called NAME as a table with the column `class`.

    \b
    Examples:
      lptml datasets
      lptml datasets wine -o wine.csv
      lptml datasets wine --wrong 0.1 -o wine.csv
      lptml datasets poisoned | lptml suspects - --label class
    """
    from lptml.datasets import LOADERS, DatasetNotFound

    if name is None:
        table = {key: _first_sentence(loader) for key, loader in LOADERS.items()}
        emit({"datasets": table}, as_json=as_json, text=lambda: _dataset_list(table))
        return
    if name not in LOADERS:
        raise InputError(f"there is no data set {name!r}; there are {', '.join(LOADERS)}")
    check_outputs((output, table_kind(output)), inputs=(), force=force)
    try:
        bunch = _load_dataset(name, random_state)
    except DatasetNotFound as problem:
        raise InputError(str(problem)) from None
    classes = [str(bunch.target_names[t]) for t in bunch.target]
    if wrong:
        from lptml.noise import flip_labels

        classes = flip_labels(classes, wrong, random_state=random_state).labels.tolist()
    header = [str(f) for f in bunch.feature_names] + ["class"]
    write_columns(output, header, [*bunch.data.T, classes])
    result = {"name": name, "rows": len(classes), "features": len(header) - 1, "output": output}
    if as_json and output != "-":
        emit(result, as_json=True, text=str)
    elif output != "-":
        note(f"{output}: {len(classes)} rows, {len(header) - 1} features, label column 'class'", quiet=quiet)


def _load_dataset(name: str, random_state: int) -> Any:
    import inspect

    from lptml.datasets import LOADERS, load

    generated = "random_state" in inspect.signature(LOADERS[name]).parameters
    return load(name, **({"random_state": random_state} if generated else {}))


def _first_sentence(loader: Any) -> str:
    return (loader.__doc__ or "").strip().partition("\n")[0]


def _dataset_list(table: dict[str, str]) -> str:
    width = max(len(key) for key in table)
    return "\n".join(f"{key:{width}}  {text}" for key, text in table.items())


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Fits of each; medians are shown.",
)
@click.option(
    "--max-trials", type=click.IntRange(min=0), help="Trials of the search. [default: the estimator's]"
)
@click.option(
    "--random-state", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="First seed."
)
@common
def bench(
    names: tuple[str, ...], repeat: int, max_trials: int | None, random_state: int, as_json: bool, quiet: bool
) -> None:
    """Fit the data sets NAMES (default: synthetic, iris and wine) and show CPU time and cost.

    The first fit of each is a warm-up and not counted, so compilation does not count either.

    \b
    Examples:
      lptml bench
      lptml bench breast_cancer --repeat 1 --max-trials 2000
    """
    from lptml.datasets import LOADERS

    chosen = names or BENCH_DATA
    for name in chosen:
        if name not in LOADERS:
            raise InputError(f"there is no data set {name!r}; there are {', '.join(LOADERS)}")
    rows = []
    with progress("fitting", quiet=quiet or as_json) as advance:
        for done, name in enumerate(chosen):
            advance(done, len(chosen))
            rows.append(_measure(name, repeat, max_trials, random_state))
    emit({"rows": rows}, as_json=as_json, text=lambda: _bench_table(rows), strong=[BENCH_HEAD])


def _measure(name: str, repeat: int, max_trials: int | None, random_state: int) -> dict[str, Any]:
    """Median CPU seconds and mean rates of ``repeat`` fits."""
    from lptml.datasets import DatasetNotFound, load

    try:
        X, y = load(name, return_X_y=True)
    except DatasetNotFound as problem:
        raise InputError(str(problem)) from None
    settings: dict[str, Any] = {} if max_trials is None else {"max_trials": max_trials}
    seconds, models = [], []
    for k in range(-1, repeat):
        model = searcher(random_state=random_state + max(k, 0), **settings)
        start = time.process_time()
        model.fit(X, y)
        if k >= 0:
            seconds.append(time.process_time() - start)
            models.append(model)
    rates = {key: float(np.mean([getattr(m, f"{key}_") or 0.0 for m in models])) for key in BENCH_COLUMNS[4:]}
    return {
        "data": name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "cpu_seconds": float(np.median(seconds)),
        **rates,
    }


def _bench_table(rows: list[dict[str, Any]]) -> str:
    """The rows for a person."""
    lines = [
        f"{r['data']:16} {r['rows']:6d} {r['features']:8d} {r['cpu_seconds']:8.3f} "
        f"{r['violation_rate']:9.2%} {r['trivial_rate']:9.2%} {r['lower_bound']:8.2%}"
        for r in rows
    ]
    return "\n".join([BENCH_HEAD, *lines])


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@common
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool, quiet: bool) -> None:
    """Print the completion script of a SHELL.

    \b
    Install it once:
      lptml completion bash > ~/.local/share/bash-completion/completions/lptml
      lptml completion zsh > ~/.zfunc/_lptml   (with fpath+=~/.zfunc before compinit)
      lptml completion fish > ~/.config/fish/completions/lptml.fish
    """
    maker = get_completion_class(shell)
    assert maker is not None
    source = maker(ctx.find_root().command, {}, "lptml", "_LPTML_COMPLETE").source()
    if as_json:
        emit({"shell": shell, "script": source, "install": INSTALL[shell]}, as_json=True, text=str)
    else:
        write_text("-", source)


@click.command()
@common
def version(as_json: bool, quiet: bool) -> None:
    """Show the versions of lptml, Python and the packages it runs on.

    \b
    Examples:
      lptml version
      lptml version --json
    """
    found = versions(*PACKAGES)
    shown = {k: v for k, v in found.items() if v} if quiet else found
    emit(found, as_json=as_json, text=lambda: "\n".join(f"{k:14} {v or '-'}" for k, v in shown.items()))
