"""Run every benchmark: ``python -m benchmarks``, or some of them: ``python -m benchmarks core core_exact``.

Each module prints the tables that docs/ quotes. Times are CPU seconds, so other work on the machine disturbs
them little; run with one BLAS thread (OMP_NUM_THREADS=1) to compare with the documentation.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def main(names: list[str]) -> None:
    folder = Path(__file__).parent
    for name in names or sorted(module.name for module in pkgutil.iter_modules([str(folder)])):
        if name.startswith("_"):
            continue
        module = importlib.import_module(f"benchmarks.{name}")
        run = getattr(module, "main", None)
        if run is not None:
            print(f"\n## {name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
