"""Triplets and quadruplets on the command line, and pair labels as words and booleans in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sklearn.datasets import load_iris

from lptml import LPTML, LPTML_Quadruplets, LPTML_Triplets, load
from lptml.cli.app import cli
from lptml.cli.errors import INPUT, USAGE

X, y = load_iris(return_X_y=True)
FAST = ["--max-trials", "3"]


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Iris without labels, and what somebody said about it: 200 triplets and 200 quadruplets."""
    folder = tmp_path_factory.mktemp("iris")
    lines = [f"f{i},{','.join(map(str, x))}" for i, x in enumerate(X)]
    (folder / "iris.csv").write_text("id,a,b,c,d\n" + "\n".join(lines) + "\n")
    rng = np.random.default_rng(0)
    triplets, quadruplets = [], []
    while len(triplets) < 200:
        i, j, k, m = rng.choice(150, 4, replace=False)
        if y[i] == y[j] != y[k]:
            triplets.append((i, j, k))
            if y[m] != y[k]:
                quadruplets.append((i, j, k, m))
    for name, told in (("triplets", triplets), ("quadruplets", quadruplets)):
        text = "\n".join(",".join(f"f{i}" for i in each) for each in told)
        (folder / f"{name}.csv").write_text(text + "\n")
    return folder


@pytest.mark.parametrize(("kind", "cls"), [("triplets", LPTML_Triplets), ("quadruplets", LPTML_Quadruplets)])
def test_fit_is_the_estimator(folder: Path, kind: str, cls: type) -> None:
    data, told, out = str(folder / "iris.csv"), str(folder / f"{kind}.csv"), str(folder / f"{kind}.npz")
    arguments = ["--key", "id", f"--{kind}", told]
    result = json.loads(run("fit", data, *arguments, "-o", out, *FAST, "--json").stdout)
    lines = Path(told).read_text().splitlines()
    index = np.array([[int(cell[1:]) for cell in line.split(",")] for line in lines])
    assert result["comparisons"] == len(lines)
    assert result["constraints"] == kind
    expected = cls(max_trials=3, random_state=0).fit(X[index])
    np.testing.assert_array_equal(load(out).components_, expected.components_)
    scored = json.loads(run("score", out, data, *arguments, "--json").stdout)
    assert scored["accuracy"] == pytest.approx(expected.score(X[index]))
    assert scored[kind] == len(lines)
    text = run("fit", data, *arguments, "-o", out, *FAST).stdout
    assert f"150 rows, 4 features, {len(lines)} {kind}" in text
    assert text.rstrip().endswith(f"Next: lptml score {out} {data} --key id --{kind} {told}")


def test_header_weights_and_mistakes(folder: Path) -> None:
    data, told = str(folder / "iris.csv"), folder / "t.csv"
    arguments = ["fit", data, "--key", "id", "--triplets", str(told), "-o", str(folder / "m.npz"), *FAST]
    told.write_text("anchor,nearer,farther,weight\nf0,f1,f60,2\nf60,f61,f0,1\n")
    assert json.loads(run(*arguments, "--json").stdout)["comparisons"] == 2
    for text, message in {
        "f0,f1\n": "2 cells; each line is 3 keys",
        "f0,f1,f999\n": "the key 'f999' is not among",
        "f0,f1,f1\n": "compares a pair with itself",
        "f0,f1,f60,-2\n": "is no weight",
        "a,b,c\n": "holds no lines of 3 keys",
    }.items():
        told.write_text(text)
        assert message in run(*arguments, code=INPUT).stderr
    told.write_text("f0,f1,f60\n")
    assert "does not go with --triplets" in run(*arguments, "--cv", "3", code=USAGE).stderr
    assert "does not go with --triplets" in run(*arguments, "--bounds", "0.8", code=USAGE).stderr
    assert "leave --report out" in run(*arguments, "--report", "p.html", code=USAGE).stderr
    assert "not both" in run(*arguments, "--pairs", str(told), code=USAGE).stderr


def test_pair_labels_in_words() -> None:
    rng = np.random.default_rng(0)
    pairs = X[rng.integers(0, 150, (80, 2))]
    signs = np.where(rng.random(80) < 0.5, 1, -1)
    expected = LPTML(max_trials=2, random_state=0).fit(pairs, signs)
    words = np.where(signs > 0, "similar", "different")
    for labels in (signs > 0, words, words.astype(object), (signs > 0).astype(object)):
        found = LPTML(max_trials=2, random_state=0).fit(pairs, labels)
        np.testing.assert_array_equal(found.components_, expected.components_)
        assert found.score(pairs, labels) == expected.score(pairs, signs)
    with pytest.raises(ValueError, match="y must hold the numbers -1 and \\+1, booleans, or words"):
        LPTML().fit(pairs, np.where(signs > 0, "near", "far"))
