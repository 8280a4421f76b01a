"""Where trials run: this machine, a Dask cluster, a Spark cluster.

Beside the search: an engine runs batches of the steps in ``lptml.search.trial``, through the contract in
``lptml.search.engine``. ``partitioned`` holds constraints that stay where they are.
"""

from lptml.search.engine import Engine, kind_of, make_engine

__all__ = ["Engine", "kind_of", "make_engine"]
