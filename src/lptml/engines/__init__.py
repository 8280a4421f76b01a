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

__all__ = ["Engine", "kind_of", "make_engine"]


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
        kind = kind_of(engine)
        if kind != engine:
            return _factory(kind)(engine)
        return _factory(kind)(n_jobs) if kind == "local" else _factory(kind)()
    for base in type(engine).__mro__:
        package = base.__module__.split(".")[0]
        if package in _PACKAGES:
            return _factory(_PACKAGES[package])(engine)
    if isinstance(engine, Engine):
        return engine
    raise ValueError(f"engine must be one of {sorted(_ENGINES)} or an Engine, got {engine!r}")


def kind_of(engine: str) -> str:
    """ "local", "dask" or "spark" for the name of an engine or the address of a cluster.

    Examples
    --------
    >>> from lptml.engines import kind_of
    >>> kind_of("spark"), kind_of("tcp://host:8786")
    ('spark', 'dask')
    """
    for kind, starts in _ADDRESSES.items():
        if engine.startswith(starts):
            return kind
    if engine not in _ENGINES:
        raise ValueError(f"engine must be one of {sorted(_ENGINES)} or a cluster's address, got {engine!r}")
    return engine


def _factory(kind: str) -> Callable[..., Engine]:
    module, name = _ENGINES[kind]
    try:
        factory: Callable[..., Engine] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"engine={kind!r} needs the package {error.name!r}: pip install 'lptml[{kind}]'"
        ) from error
    return factory
