"""``lptml bench``: how long a fit takes here, and what it reaches."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from lptml.cli.errors import InputError
from lptml.cli.options import common
from lptml.cli.output import emit, progress

DEFAULT = ("synthetic", "iris", "wine")
COLUMNS = ("data", "rows", "features", "cpu_seconds", "violation_rate", "trivial_rate", "lower_bound")

HEAD = f"{'data':16} {'rows':>6} {'features':>8} {'CPU s':>8} {'violated':>9} {'trivial':>9} {'bound':>8}"


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

    chosen = names or DEFAULT
    for name in chosen:
        if name not in LOADERS:
            raise InputError(f"there is no data set {name!r}; there are {', '.join(LOADERS)}")
    rows = []
    with progress("fitting", quiet=quiet or as_json) as advance:
        for done, name in enumerate(chosen):
            advance(done, len(chosen))
            rows.append(measure(name, repeat, max_trials, random_state))
    emit({"rows": rows}, as_json=as_json, text=lambda: table(rows), strong=[HEAD])


def measure(name: str, repeat: int, max_trials: int | None, random_state: int) -> dict[str, Any]:
    """Median CPU seconds and mean rates of ``repeat`` fits."""
    from lptml.datasets import DatasetNotFound, load
    from lptml.estimators import LPTML_Supervised

    try:
        X, y = load(name, return_X_y=True)
    except DatasetNotFound as problem:
        raise InputError(str(problem)) from None
    settings: dict[str, Any] = {} if max_trials is None else {"max_trials": max_trials}
    seconds, models = [], []
    for k in range(-1, repeat):
        model = LPTML_Supervised(validation=None, random_state=random_state + max(k, 0), **settings)
        start = time.process_time()
        model.fit(X, y)
        if k >= 0:
            seconds.append(time.process_time() - start)
            models.append(model)
    rates = {key: float(np.mean([getattr(m, f"{key}_") for m in models])) for key in COLUMNS[4:]}
    return {
        "data": name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "cpu_seconds": float(np.median(seconds)),
        **rates,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows for a person."""
    lines = [
        f"{r['data']:16} {r['rows']:6d} {r['features']:8d} {r['cpu_seconds']:8.3f} "
        f"{r['violation_rate']:9.2%} {r['trivial_rate']:9.2%} {r['lower_bound']:8.2%}"
        for r in rows
    ]
    return "\n".join([HEAD, *lines])
