"""What pytest does not collect: examples of modules whose dependencies are not installed."""

from importlib.util import find_spec

# By name, not by --doctest-ignore-import-errors, which lets test files that cannot be imported pass as well.
collect_ignore = [] if find_spec("py4j") else ["src/lptml/engines/spark.py"]
