"""Run every benchmark: ``python -m benchmarks``, or some of them: ``python -m benchmarks core core_exact``.

Each module is run as a script of its own and prints the tables that docs/ quotes. Times are CPU seconds, so
other work on the machine disturbs them little; BLAS runs on one thread unless OMP_NUM_THREADS says otherwise,
because a second one that waits counts as work.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; the number of those that failed."""
    available = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    available.remove("__main__")
    unknown = sorted(set(names) - set(available))
    if unknown:
        raise SystemExit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(available)}")
    failed = 0
    for name in names or available:
        print(f"\n## {name}\n", flush=True)
        failed += (
            subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}"], env={"OMP_NUM_THREADS": "1", **os.environ}
            ).returncode
            != 0
        )
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
