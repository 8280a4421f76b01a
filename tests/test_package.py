"""What a newcomer meets first: the package, its names, the README's example and the demonstration."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lptml

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", lptml.__all__)
def test_every_public_name_is_there_and_documented(name):
    thing = getattr(lptml, name)
    assert name == "__version__" or thing.__doc__
    assert not hasattr(thing, "fit") or "\n    References\n" in thing.__doc__  # each has authors to name


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="LPTMLL"):
        _ = lptml.LPTMLL


@pytest.mark.parametrize("statement", ["import lptml", "from lptml import LPTML, LPTML_Supervised, ITML"])
def test_importing_does_not_load_the_compiler(statement):
    code = f"{statement}; import sys; print(sorted({{'numba', 'matplotlib', 'dask'}} & {{*sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_the_example_of_the_readme_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(example.splitlines()) <= 13
    exec(compile(example, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "likely wrong" in out
    assert float(re.findall(r"right about ([\d.]+)%", out)[0]) > 90


def test_the_demonstration_finds_the_poison(tmp_path, capsys):
    from lptml.demo import main

    main(str(tmp_path))
    out = capsys.readouterr().out
    euclidean, learned = (float(number) for number in re.findall(r"(?:Euclidean|learned) +([\d.]+)", out))
    assert learned > 0.99 > euclidean
    assert out.count("planted\n") == 5
    assert (tmp_path / "poisoned.png").stat().st_size > 10_000


def test_whatever_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    users = [line for name, lines in extras.items() if name not in ("test", "docs") for line in lines]
    declared = {re.split(r"[^\w-]", line)[0] for line in [*project["dependencies"], *users]}
    imported = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.split(".")[0])
    others = imported - sys.stdlib_module_names
    names = {"sklearn": "scikit-learn", "distributed": "dask"}
    assert {names.get(name, name) for name in others} == declared


def test_one_version_everywhere() -> None:
    root = Path(__file__).parent.parent
    heading = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text("utf-8"), re.M)
    cited = re.search(r"^version: (\S+)", (root / "CITATION.cff").read_text("utf-8"), re.M)
    assert heading is not None
    assert cited is not None
    assert heading.group(1) == cited.group(1) == lptml.__version__
