"""The paper's tables and figures, run again beside ours.

Each experiment is a module with the same four members:

``NAME``, ``TITLE``
    What it is called on the command line, and in words.
``tasks(options)``
    The independent pieces of work, as plain dictionaries (a data set, a repeat, ...).
``work(task)``
    Does one piece and returns rows of results, plain dictionaries again.
``finish(rows, options, folder)``
    Writes figures from all rows and returns the summary that goes into the JSON file.

:func:`lptml.experiments.run` does the rest: workers, progress, rows on disk as they come (so that an
interrupted run goes on where it stopped), CSV, JSON with versions and seeds.
"""

from lptml.experiments.options import Options
from lptml.experiments.runner import EXPERIMENTS, run

__all__ = ["EXPERIMENTS", "Options", "run"]
