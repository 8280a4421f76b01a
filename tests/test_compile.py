"""The notice that compiled code is being built."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from lptml import _compile


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(_compile, "_seen", set())
    monkeypatch.setattr(_compile, "_said", False)


def kernel(*, compiled=False, on_disk=False):
    index = {"signature": "code"} if on_disk else {}
    cache = types.SimpleNamespace(_cache_file=types.SimpleNamespace(_load_index=lambda: index))
    return types.SimpleNamespace(signatures=[1] if compiled else [], _cache=cache)


def test_said_once_when_something_must_be_compiled(caplog):
    # All of them stay alive: kernels are told apart by their ids.
    ready, missing = [kernel(compiled=True), kernel(on_disk=True)], [kernel(), kernel()]
    _compile.announce(*ready)
    assert not caplog.records
    for each in missing:
        _compile.announce(each)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "once" in caplog.records[0].message


def test_an_unknown_cache_counts_as_not_compiled(caplog):
    _compile.announce(types.SimpleNamespace(signatures=[], _cache=None))
    assert len(caplog.records) == 1


@pytest.mark.slow
def test_a_fresh_installation_says_so_on_the_terminal(tmp_path):
    code = (
        "import numpy as np; from lptml.constraints import ConstraintSet;"
        "from lptml.exact.sdp import solve_basis;"
        "solve_basis(ConstraintSet.from_differences([[1.0]], [-1], bounds=(1.0, 1.0)), np.eye(1))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    said = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert "compiling" in said[0]
    assert said[1] == ""


@pytest.mark.slow
def test_a_time_limit_does_not_count_the_compilation(tmp_path):
    code = (
        "import numpy as np; from lptml import LPTML_Supervised;"
        "X = np.random.default_rng(0).normal(size=(40, 4)); y = np.arange(40) % 3;"
        "model = LPTML_Supervised(max_trials=5, time_limit=2.0, random_state=0).fit(X, y);"
        "print(model.n_trials_)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "compiling" in done.stderr
    assert done.stdout == "5\n"
