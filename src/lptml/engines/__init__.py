"""Where trials run: this machine, a Dask cluster, a Spark cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from lptml.engines.base import Engine

#: Module and class of every engine known by name; modules are imported when they are asked for.
_ENGINES = {
    "local": ("lptml.engines.local", "LocalEngine"),
    "dask": ("lptml.engines.dask", "DaskEngine"),
    "spark": ("lptml.engines.spark", "SparkEngine"),
}

#: How the addresses of each kind of cluster begin.
_ADDRESSES = {
    "dask": ("tcp://", "tls://", "ws://", "wss://", "ucx://", "inproc://"),
    "spark": ("spark://", "k8s://", "yarn", "local[", "local-cluster["),
}
#: Packages whose objects (a client, a session) stand for an engine.
_PACKAGES = {"distributed": "dask", "pyspark": "spark"}

__all__ = ["Engine", "make_engine"]


def make_engine(engine: Any, *, n_jobs: int | None = None) -> Engine:
    """An engine by its name, by the address or an object of its cluster, or the engine itself.

    Parameters
    ----------
    engine : str, distributed.Client, pyspark.sql.SparkSession or Engine
        "local", "dask" or "spark"; the address of a Dask scheduler ("tcp://host:8786") or a Spark master
        ("spark://host:7077", "yarn"); a client, a session; or an object with the interface of
        ``engines.base.Engine``.
    n_jobs : int or None
        For the local engine; clusters have the workers they have.

    Examples
    --------
    >>> from lptml.engines import make_engine
    >>> make_engine("local", n_jobs=2).name
    'local'
    """
    if isinstance(engine, str):
        kind = next((kind for kind, starts in _ADDRESSES.items() if engine.startswith(starts)), None)
        if kind is not None:
            return _factory(kind)(engine)
        if engine not in _ENGINES:
            raise ValueError(
                f"engine must be one of {sorted(_ENGINES)} or a cluster's address, got {engine!r}"
            )
        return _factory(engine)(n_jobs) if engine == "local" else _factory(engine)()
    for base in type(engine).__mro__:
        kind = _PACKAGES.get(base.__module__.split(".")[0])
        if kind is not None:
            return _factory(kind)(engine)
    if isinstance(engine, Engine):
        return engine
    raise ValueError(f"engine must be one of {sorted(_ENGINES)} or an Engine, got {engine!r}")


def _factory(kind: str) -> Callable[..., Engine]:
    module, name = _ENGINES[kind]
    try:
        factory: Callable[..., Engine] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"engine={kind!r} needs the package {error.name!r}: pip install 'lptml[{kind}]'"
        ) from error
    return factory
