"""Functions that are compiled once, whoever calls them."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import lptml
from lptml._dense import product
from lptml._shared import FixedMatrix, Matrices, Matrix, Shared, Vector, entry, leaf
from lptml.constraints import ConstraintSet
from lptml.constraints.counting import best_multiple, violations
from lptml.exact import Objective, exact_lptml
from lptml.exact.sdp import solve_basis
from lptml.exact.verify import verify_solution
from lptml.search import search


@leaf
def total(x: Vector) -> float:
    result = 0.0
    for i in range(x.shape[0]):
        result += x[i]
    return result


@entry
def rows(a: Matrix) -> Vector:
    out = np.empty(a.shape[0])
    for i in range(a.shape[0]):
        out[i] = total(a[i])
    return out


@entry
def summed(stack: Matrices, count: int, negative: bool) -> tuple[int, float]:
    result = 0.0
    for k in range(count):
        result += total(rows(stack[k]))
    return count, -result if negative else result


@entry
def empty(n: int) -> Vector:
    return np.empty(n)


@entry
def first(n: int) -> float:
    return empty(n)[0]


@entry
def multiply(a: FixedMatrix, b: FixedMatrix, out: Matrix) -> None:
    product(a, b, out)


def test_a_call_reaches_what_is_shared():
    stack = np.arange(24.0).reshape(2, 3, 4)
    assert summed(stack, 2, False) == (2, stack.sum())
    assert summed(stack, 1, True) == (1, -stack[0].sum())


def test_in_python_they_run_as_they_are_written():
    assert total(np.ones(3)) == 3.0


def test_errors_come_through():
    with pytest.raises(ValueError, match="too big"):
        first(1 << 60)


def test_an_entry_is_compiled_for_its_hints_and_nothing_else():
    F = ConstraintSet.from_differences(np.eye(3), [1, -1, -1], bounds=(1.0, 1.0))
    fixed = np.eye(3)  # as a process gets it from a file
    fixed.flags.writeable = False
    search(F, max_trials=2, random_state=0)
    solve_basis(F, fixed)
    solve_basis(F, fixed, regularizer=fixed, rho=10)
    exact_lptml(F, Objective("trace", fixed, original_units=True), rng=0)
    verify_solution(F, fixed, fixed, np.zeros(3))
    for constraints in (F, F.take(slice(0, None, 2))):
        best_multiple(constraints, fixed)
        violations(constraints, fixed)
    compiled = [each for each in _shared_by_lptml() if each.dispatcher.signatures]
    assert len(compiled) > 20
    for each in compiled:
        assert each.dispatcher.signatures == [each._signature.args], each.__name__


def _modules():
    for module in pkgutil.walk_packages(lptml.__path__, "lptml."):
        if "__main__" not in module.name:
            try:
                yield importlib.import_module(module.name)
            except ImportError:  # of an optional dependency
                continue


def _shared_by_lptml():
    found = {
        id(value): value
        for module in _modules()
        for value in vars(module).values()
        if isinstance(value, Shared)
    }
    return list(found.values())


def test_what_calls_a_shared_function_is_shared_itself():
    for module in _modules():
        for name, value in vars(module).items():
            if hasattr(value, "py_func") and not isinstance(value, Shared):
                called = (value.py_func.__globals__.get(each) for each in value.py_func.__code__.co_names)
                assert not any(isinstance(each, Shared) for each in called), (module.__name__, name)


def test_threads_may_begin_at_the_same_time():
    code = (
        "import numpy as np; from concurrent.futures import ThreadPoolExecutor;"
        "from lptml.constraints import ConstraintSet; from lptml.exact.sdp import solve_basis;"
        "F = ConstraintSet.from_differences([[1.0, 0.0]], [-1], bounds=(1.0, 1.0));"
        "found = ThreadPoolExecutor(8).map(lambda _: solve_basis(F, np.eye(2)).objective, range(8));"
        "assert len(set(found)) == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    "first", ["verify_solution(F, np.eye(2), np.eye(2), np.ones(1))", "best_multiple(F, np.eye(2))"]
)
def test_a_process_may_start_anywhere(first):
    code = (
        "import numpy as np; from lptml.constraints import ConstraintSet;"
        "from lptml.exact.verify import verify_solution;"
        "from lptml.constraints.counting import best_multiple;"
        f"F = ConstraintSet.from_differences([[1.0, 0.0]], [-1], bounds=(1.0, 1.0)); {first}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_product_takes_what_may_only_be_read():
    a = np.arange(6.0).reshape(2, 3)
    a.flags.writeable = False
    out = np.empty((2, 2))
    multiply(a, np.ones((3, 2)), out)
    assert (out == a @ np.ones((3, 2))).all()


def test_without_the_compiler_it_says_what_is_missing():
    code = (
        "import numpy as np; from lptml.constraints import ConstraintSet;"
        "from lptml.exact.sdp import solve_basis;"
        "solve_basis(ConstraintSet.from_differences([[1.0]], [-1], bounds=(1.0, 1.0)), np.eye(1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[-1].startswith("RuntimeError")
    assert "NUMBA_DISABLE_JIT" in done.stderr
