"""The commands start without what they do not use."""

import importlib
import subprocess
import sys

import pytest

from lptml.cli.imports import deferred

LOADED = """
import sys
sys.argv = ["lptml", *{arguments!r}]
from lptml.cli import main
try:
    main()
finally:
    print(*(name for name in {names!r} if name in sys.modules))
"""


def loaded(arguments, names, folder):
    code = LOADED.format(arguments=arguments, names=names)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()


@pytest.fixture
def table(tmp_path):
    rows = "".join(f"{i % 7},{i // 7},{'ab'[i % 2]}\n" for i in range(42))
    (tmp_path / "t.csv").write_text("x,y,class\n" + rows)
    return tmp_path


def test_fit_loads_no_compiler_and_no_statistics(table):
    names = ["sklearn", "scipy.stats", "pandas", "numba", "numpy.f2py", "numpy.testing"]
    assert loaded(["fit", "t.csv", "--label", "class"], names, table) == ["sklearn"]


def test_report_needs_no_statistics(table):
    names = ["scipy.stats", "sklearn.neighbors"]
    assert loaded(["report", "t.csv", "--label", "class"], names, table) == []


def test_help_needs_neither(table):
    assert loaded(["fit", "--help"], ["sklearn", "numba", "scipy"], table) == []


def test_stand_in_loads_the_module_when_asked_and_only_then():
    sys.modules.pop("colorsys", None)
    with deferred("colorsys"):
        import colorsys

        assert "ONE_THIRD" not in vars(colorsys)
        assert colorsys.rgb_to_hsv(0.0, 0.0, 1.0)[2] == 1.0  # in the block
        assert "ONE_THIRD" in vars(sys.modules["colorsys"])
    sys.modules.pop("colorsys")
    with deferred("colorsys"):
        import colorsys as kept
    assert "colorsys" not in sys.modules
    assert pytest.approx(1 / 3) == kept.ONE_THIRD  # after it


def test_a_package_has_the_stand_in_for_as_long_as_it_is_one(monkeypatch):
    import wsgiref

    monkeypatch.delitem(sys.modules, "wsgiref.headers", raising=False)
    monkeypatch.delattr(wsgiref, "headers", raising=False)
    with deferred("wsgiref.headers"):
        assert "Headers" not in vars(wsgiref.headers)
    assert not hasattr(wsgiref, "headers")
    with deferred("wsgiref.headers"):
        kept = wsgiref.headers
        assert kept.Headers is sys.modules["wsgiref.headers"].Headers
        assert wsgiref.headers is sys.modules["wsgiref.headers"] is not kept
    assert wsgiref.headers.Headers is kept.Headers


def test_modules_that_are_loaded_stay():
    with deferred("json"):
        import json
    assert json is sys.modules["json"]


def test_what_is_not_installed_stays_missing():
    with deferred("lptml_has_no_such_module"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("lptml_has_no_such_module")
