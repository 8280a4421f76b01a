"""The notice that code is being compiled, and what happens where it cannot be kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lptml

SOLVE = """
import numpy as np
from lptml.constraints import ConstraintSet
from lptml.exact.sdp import solve_basis
for _ in range(2):
    solution = solve_basis(ConstraintSet.from_differences([[1.0]], [-1], bounds=(1.0, 1.0)), np.eye(1))
print(solution.status.name)
"""

FIT = """
import numpy as np
from lptml import LPTML_Supervised
X = np.random.default_rng(0).normal(size=(40, 4))
model = LPTML_Supervised(max_trials=5, time_limit=2.0, random_state=0).fit(X, np.arange(40) % 3)
print(model.n_trials_)
"""


def run(code, **environment):
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout.strip(), process.stderr.splitlines()


@pytest.mark.slow
def test_a_fresh_installation_says_once_that_it_compiles(tmp_path):
    answer, said = run(SOLVE, NUMBA_CACHE_DIR=str(tmp_path))
    assert answer == "OPTIMAL"
    assert len(said) == 1
    assert "compiling" in said[0]
    assert "once for this installation" in said[0]
    assert run(SOLVE, NUMBA_CACHE_DIR=str(tmp_path)) == ("OPTIMAL", [])


@pytest.mark.slow
def test_without_a_folder_for_compiled_code_it_compiles_in_every_process(tmp_path):
    # Files where folders belong: nothing can be written there, not even by root.
    package = tmp_path / "lptml"
    shutil.copytree(Path(lptml.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *filter(Path.is_dir, package.rglob("*"))]:
        (folder / "__pycache__").write_text("")
    nowhere = str(package / "__pycache__")
    places = {
        "HOME": nowhere,
        "XDG_CACHE_HOME": nowhere,
        "NUMBA_CACHE_DIR": nowhere,
        "PYTHONPATH": str(tmp_path),
    }
    for _ in range(2):
        answer, said = run(SOLVE, **places)
        assert answer == "OPTIMAL"
        assert len(said) == 1
        assert "in every process" in said[0]
        assert "NUMBA_CACHE_DIR" in said[0]


def test_without_the_compiler_the_same_code_runs_as_python():
    assert run(SOLVE, NUMBA_DISABLE_JIT="1") == ("OPTIMAL", [])


@pytest.mark.slow
def test_a_time_limit_does_not_count_the_compilation(tmp_path):
    answer, said = run(FIT, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling" in said[0]
    assert answer == "5"
