"""The entry point for ``spark-submit``: learn a metric from files on the cluster's file system.

    script=$(python -m lptml.engines.submit --where)
    spark-submit --master yarn $script --input hdfs:///pairs --output metric.json

The input is a folder of Parquet files (points and pairs, or differences: see ``lptml.engines.partitioned``)
or files of one JSON constraint a line, [point, point, "S" or "D"], as the paper's own MapReduce program
reads. Lines of JSON are written as Parquet first when ``--convert`` names a folder. The output is a JSON
file on the driver's machine, and its summary goes to standard output. ``--engine`` runs the same on Dask,
or on this machine.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # as a script its folder comes first on the path, and dask.py in it is not Dask
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]

import argparse
import json
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn and write; returns the exit code: 0, or 2 for an input or a cluster that cannot be used."""
    options = _parser().parse_args(arguments)
    if options.where:
        print(os.path.abspath(__file__))
        return 0
    if options.input is None or options.output is None:
        print("submit: --input and --output are required", file=sys.stderr)
        return 2
    from lptml._files import replacing
    from lptml.engines.errors import EngineLost

    try:
        result = run(options)
        with replacing(options.output) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")
    except (ValueError, EngineLost, OSError) as error:
        print(f"submit: {error}", file=sys.stderr)
        return 2
    print(json.dumps({name: value for name, value in result.items() if name != "metric"}))
    return 0


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Open the constraints, learn, and describe what was found."""
    from lptml.engines.partitioned import from_json, from_parquet, json_to_parquet
    from lptml.learn import learn
    from lptml.search.engine import make_engine

    engine = make_engine(options.engine)
    bounds: Any = tuple(options.bounds) if options.bounds else "auto"
    if options.percentiles:
        bounds = ("percentile", *options.percentiles)
    folder = options.input
    if options.convert:
        json_to_parquet(options.input, options.convert, engine=engine)
        folder = options.convert
    lines = options.json and not options.convert  # else they are a table by now
    source = (from_json if lines else from_parquet)(folder, bounds=bounds, engine=engine)
    learned = learn(
        source,
        max_trials=options.trials,
        refine=not options.no_refine,
        engine=engine,
        random_state=options.seed,
        checkpoint=options.checkpoint,
        time_limit=options.time_limit,
    )
    return {
        "n_constraints": source.n,
        "n_features": source.d,
        "n_partitions": len(source.parts),
        "bounds": list(source.bounds),
        "cost": learned.cost,
        "violation_rate": learned.violation_rate,
        "trivial_rate": learned.trivial_rate,
        "n_trials": learned.n_trials,
        "status": learned.status.name,
        "random_state": options.seed,
        "metric": learned.A.tolist(),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="submit", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--input", help="folder or URI that all workers see")
    add("--output", help="JSON file for the metric")
    add("--json", action="store_true", help="the input holds one JSON constraint a line")
    add("--convert", metavar="FOLDER", help="write lines of JSON as Parquet here first (implies --json)")
    add("--bounds", nargs=2, type=float, metavar=("U", "L"), help="upper and lower distance")
    add("--percentiles", nargs=2, type=float, metavar=("A", "B"), help="bounds at these percentiles")
    add("--trials", type=int, default=500, help="trials of the search (default 500)")
    add("--no-refine", action="store_true", help="the paper's search alone")
    add("--seed", type=int, default=0, help="the same number gives the same metric (default 0)")
    add("--checkpoint", help="file to keep the state of the search in, and to go on from")
    add("--time-limit", type=float, metavar="SECONDS")
    add("--engine", default="spark", help='"spark", "dask", "local" or the address of a cluster')
    add("--where", action="store_true", help="print the path of this script and leave")
    return parser


if __name__ == "__main__":
    sys.exit(main())
