"""Runs an experiment: workers, progress, rows on disk as they come, and the files that remain."""

from __future__ import annotations

import csv
import importlib
import json
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from lptml._files import replacing
from lptml._version import __version__, versions
from lptml.experiments.options import Options

Row = dict[str, Any]
#: Called with (experiment, pieces done, pieces in all, message).
OnExecution = Callable[[str, int, int, str], None]

#: Name on the command line -> module, and its share of a limited time.
EXPERIMENTS = {
    "table1": "lptml.experiments.accuracy_table",
    "figure-violations": "lptml.experiments.violations",
    "figure-poisoning": "lptml.experiments.poisoning",
    "figure-dimension": "lptml.experiments.dimension",
    "figure-parallel": "lptml.experiments.parallel",
    "noise": "lptml.experiments.label_noise",
}
_SHARE = {
    "table1": 0.48,
    "figure-violations": 0.05,
    "figure-poisoning": 0.14,
    "figure-dimension": 0.08,
    "figure-parallel": 0.01,
    "noise": 0.24,
}


def load_experiment(name: str) -> Any:
    """The module of an experiment."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; known are {sorted(EXPERIMENTS)} and 'all'")
    return importlib.import_module(EXPERIMENTS[name])


def run(
    name: str, options: Options | None = None, progress: OnExecution | None = None
) -> dict[str, dict[str, Any]]:
    """Run one experiment, or ``"all"`` of them.

    Parameters
    ----------
    name : str
        A key of :data:`EXPERIMENTS`, or ``"all"``.
    options : Options, optional
        By default :meth:`Options.full`.
    progress : callable, optional
        Called with (experiment, pieces done, pieces in all, message).

    Returns
    -------
    dict
        The summary of each experiment by its name. In ``options.folder`` each leaves ``<name>.csv``,
        ``<name>.json`` and its figures as PNG and SVG.
    """
    chosen = Options.full() if options is None else options
    names = list(EXPERIMENTS) if name == "all" else [name]
    modules = [load_experiment(each) for each in names]
    chosen.folder.mkdir(parents=True, exist_ok=True)
    records, begun = {}, time.monotonic()
    for place, (each, module) in enumerate(zip(names, modules)):
        limit = np.inf
        if chosen.minutes is not None:  # what earlier experiments leave over is shared by the later ones
            left = 60.0 * chosen.minutes - (time.monotonic() - begun)
            limit = left * _SHARE[each] / sum(_SHARE[later] for later in names[place:])
        records[each] = _run_one(module, chosen, progress or _silent, limit)
    return records


def _run_one(experiment: Any, options: Options, progress: OnExecution, limit: float) -> dict[str, Any]:
    start = time.time()
    tasks, notes = experiment.tasks(options)
    for note in notes:
        progress(experiment.NAME, 0, len(tasks), note)
    rows = Rows(options.folder / f"{experiment.NAME}.rows.jsonl", options)
    waiting = [task for task in tasks if _key(task) not in rows.done]
    progress(experiment.NAME, len(tasks) - len(waiting), len(tasks), "")
    workers = 1 if getattr(experiment, "ALONE", False) else min(options.n_jobs, max(len(waiting), 1))
    results = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch=f"{2 * workers}")(
        delayed(_work)(experiment.work, task, options)
        for place, task in enumerate(waiting)
        if place == 0 or time.time() - start < limit
    )
    for finished, (task, found, seconds) in enumerate(results, start=len(tasks) - len(waiting) + 1):
        rows.add(task, found, seconds)
        progress(experiment.NAME, finished, len(tasks), "")
    ordered = rows.in_order(tasks)
    _write_csv(options.folder / f"{experiment.NAME}.csv", ordered)
    summary = experiment.finish(ordered, options, options.folder)
    record = {
        "experiment": experiment.NAME,
        "title": experiment.TITLE,
        "options": options.as_dict(),
        "summary": summary,
        "notes": notes,
        "failures": sorted({str(row["error"]) for row in ordered if row.get("error")}),
        "n_rows": len(ordered),
        "seconds": round(time.time() - start, 1),
        "seconds_of_all_pieces": round(rows.seconds, 1),
        "pieces_kept_from_earlier_runs": len(tasks) - len(waiting),
        "pieces_not_run": sum(_key(task) not in rows.done for task in tasks),
        "machine": platform.machine(),
        "versions": versions("numpy", "scipy", "scikit-learn", "numba", "joblib"),
    }
    write_atomically(
        options.folder / f"{experiment.NAME}.json", json.dumps(record, indent=2, default=float) + "\n"
    )
    return record


def _work(
    work: Callable[[Row, Options], list[Row]], task: Row, options: Options
) -> tuple[Row, list[Row], float]:
    start = time.time()
    return task, work(task, options), time.time() - start


class Rows:
    """Rows of results on disk, a line for each task done; an interrupted run leaves whole lines behind."""

    def __init__(self, path: Path, options: Options) -> None:
        self.path = path
        self.done: dict[str, list[Row]] = {}
        self.seconds = 0.0
        header = {"options": options.as_dict(), "lptml": __version__}
        if options.resume and path.exists():
            self._read(header)
        if not self.done:
            write_atomically(path, json.dumps(header) + "\n")
        elif not path.read_bytes().endswith(b"\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")  # or the next line would be lost with the one that was cut off

    def _read(self, header: Row) -> None:
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not lines or _parsed(lines[0]) != header:
            return  # another run's options: start again
        for line in lines[1:]:
            entry = _parsed(line)
            if entry is not None:  # else cut off by an interruption
                self.done[_key(entry["task"])] = entry["rows"]
                self.seconds += entry["seconds"]

    def add(self, task: Row, found: list[Row], seconds: float) -> None:
        """Append one task's rows and the time they took."""
        self.done[_key(task)] = found
        self.seconds += seconds
        entry = {"task": task, "seconds": round(seconds, 3), "rows": found}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, default=float) + "\n")

    def in_order(self, tasks: Iterable[Row]) -> list[Row]:
        """All rows, in the order of the tasks and with the task's own columns first."""
        return [{**task, **row} for task in tasks for row in self.done.get(_key(task), [])]


def _key(task: Row) -> str:
    return json.dumps(task, sort_keys=True)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _write_csv(path: Path, rows: list[Row]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old one or the new one."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _silent(experiment: str, done: int, total: int, message: str) -> None:
    pass
