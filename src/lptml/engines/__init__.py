"""Where trials run: this machine, a Dask cluster, a Spark cluster."""

from __future__ import annotations

import importlib

from lptml.engines.base import Engine

#: Module and class of every engine known by name; modules are imported when they are asked for.
_ENGINES = {
    "local": ("lptml.engines.local", "LocalEngine"),
    "dask": ("lptml.engines.dask", "DaskEngine"),
    "spark": ("lptml.engines.spark", "SparkEngine"),
}

__all__ = ["Engine", "make_engine"]


def make_engine(engine: str | Engine, *, n_jobs: int | None = None) -> Engine:
    """An engine by its name, or the engine itself.

    Parameters
    ----------
    engine : "local", "dask", "spark" or an object with the interface of ``engines.base.Engine``
    n_jobs : int or None
        For the local engine; clusters have the workers they have.

    Examples
    --------
    >>> from lptml.engines import make_engine
    >>> make_engine("local", n_jobs=2).name
    'local'
    """
    if not isinstance(engine, str):
        if isinstance(engine, Engine):
            return engine
        raise ValueError(f"engine must be one of {sorted(_ENGINES)} or an Engine, got {engine!r}")
    if engine not in _ENGINES:
        raise ValueError(f"engine must be one of {sorted(_ENGINES)}, got {engine!r}")
    module, name = _ENGINES[engine]
    try:
        factory = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"engine={engine!r} needs the package {error.name!r}: pip install 'lptml[{engine}]'"
        ) from error
    made: Engine = factory(n_jobs=n_jobs) if engine == "local" else factory()
    return made
