"""The table of what a model file may name: no parameter of any class is restored that is not in it."""

from __future__ import annotations

import inspect
import socket
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import BaseEstimator
from tests.model_files import edited, fitted, members, sound, write

import lptml
from lptml import LPTML, load
from lptml.cli.app import cli
from lptml.estimators.io import ModelFileError
from lptml.estimators.model_classes import (
    CLASSES,
    FITTED,
    PASSED_OVER,
    Kind,
    Mapped,
    Several,
    admits,
    find_class,
    in_words,
)

#: Parameters that say what a fit does to its surroundings; a file has no say in them.
NEVER_RESTORED = PASSED_OVER | {"callback", "checkpoint"}
EVERY_PARAMETER = [
    (name, parameter) for name in CLASSES for parameter in inspect.signature(find_class(name)).parameters
]
#: What no parameter may be restored to: an address, a path, a name of something to run.
ACTIVE = ["tcp://127.0.0.1:8786", "spark://127.0.0.1:7077", "dask", "/etc/passwd", "os.system", ["yarn"]]


@pytest.mark.parametrize(("name", "parameter"), EVERY_PARAMETER)
def test_every_parameter_has_a_type_or_is_never_restored(name, parameter, tmp_path):
    restored = parameter in CLASSES[name].parameters
    assert restored != (parameter in NEVER_RESTORED), "every parameter is on just one of the two lists"
    default = inspect.signature(find_class(name)).parameters[parameter].default
    for value in ACTIVE:
        spoilt = edited(sound(name), lambda h, value=value: h["model"]["params"].update({parameter: value}))
        path = write(tmp_path / "evil.npz", spoilt)
        if parameter not in PASSED_OVER:
            with pytest.raises(ModelFileError, match=parameter):
                load(path)
            continue
        with pytest.warns(UserWarning, match=parameter):
            assert getattr(load(path), parameter) == default


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_in_the_table_comes_back(name, tmp_path):
    model = fitted(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load(write(tmp_path / "model.npz", sound(name)))
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    assert set(CLASSES[name].needs) <= set(vars(again))


@pytest.mark.parametrize("name", CLASSES)
def test_the_table_knows_the_classes_as_they_are(name):
    cls, domains = find_class(name), CLASSES[name].parameters
    signature = inspect.signature(cls).parameters
    assert set(domains) <= set(signature)
    for parameter, domain in domains.items():
        if signature[parameter].default is not inspect.Parameter.empty:
            assert admits(domain, signature[parameter].default)
        for constraint in getattr(cls, "_parameter_constraints", {}).get(parameter, []):
            for option in getattr(constraint, "options", []):
                assert admits(domain, option), f"{parameter}={option!r} could not be saved"


def test_every_estimator_can_be_in_a_file():
    exported = {name for name in lptml.__all__ if inspect.isclass(getattr(lptml, name))}
    assert {name for name in exported if issubclass(getattr(lptml, name), BaseEstimator)} == set(CLASSES)


def test_what_earlier_versions_wrote_of_a_choice_that_is_gone_is_passed_over(tmp_path):
    """Files named a validation, and left trials and constraints to it; the metric in them is what it was."""
    gone = {"validation": "neighbors", "max_trials": "auto", "constraints": "auto"}
    old = edited(sound("LPTML_Supervised"), lambda h: h["model"]["params"].update(gone))
    with pytest.warns(UserWarning, match="earlier version: what it says of constraints, max_trials, valid"):
        again = load(write(tmp_path / "old.npz", old))
    assert (again.max_trials, again.constraints) == (100, "triplets")
    np.testing.assert_array_equal(again.components_, fitted("LPTML_Supervised").components_)
    for name, value in [*(dict.fromkeys(gone, "tcp://127.0.0.1:1").items()), ("validation", ["auto"])]:
        evil = edited(
            sound("LPTML_Supervised"), lambda h, n=name, v=value: h["model"]["params"].update({n: v})
        )
        with pytest.raises(ModelFileError, match=name):
            load(write(tmp_path / "evil.npz", evil))


def test_a_file_does_not_decide_where_a_fit_runs(tmp_path):
    """An engine's address in a file was once connected to by the refit of a report."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    table = tmp_path / "data.csv"
    table.write_text("a,b,y\n" + "".join(f"{a!r},{b!r},{c}\n" for (a, b), c in zip(X.tolist(), y)))
    model, evil = tmp_path / "model.npz", tmp_path / "evil.npz"
    fit = ["fit", str(table), "--label", "y", "-o", str(model), "--max-trials", "2"]
    assert CliRunner().invoke(cli, fit).exit_code == 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        write(evil, edited(members(model), lambda h: h["model"]["params"].update(engine=address, n_jobs=7)))
        with pytest.warns(UserWarning, match="names engine, n_jobs, which a model file does not decide"):
            loaded = load(evil)
        assert (loaded.engine, loaded.n_jobs) == ("local", None)
        page = ["report", str(table), "--label", "y", "--model", str(evil), "-o", str(tmp_path / "page.html")]
        result = CliRunner().invoke(cli, page)
        assert result.exit_code == 0, result.output
        assert "note: " in result.stderr
        assert "names engine, n_jobs" in result.stderr
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # no one has knocked
            server.accept()


def test_a_model_within_a_model_has_no_more_say(tmp_path):
    for place in ("params", "fitted"):

        def spoil(header, place=place):
            key = "estimator" if place == "params" else "estimator_"
            header["model"][place][key]["value"]["params"].update(engine="tcp://127.0.0.1:8786")

        path = write(tmp_path / "evil.npz", edited(sound("LabelCleaner"), spoil))
        with pytest.warns(UserWarning, match="names engine"):
            model = load(path)
        assert model.estimator.engine == model.estimator_.engine == "local"


def test_models_are_where_the_table_has_them_and_nowhere_else(tmp_path):
    inner = {"$": "estimator", "value": {"class": "LPTML", "params": {}, "fitted": {}}}
    for change in (
        lambda h: h["model"]["params"].update(preprocessor=inner),
        lambda h: h["model"]["params"].update(bounds={"$": "tuple", "value": [inner, 1.0]}),
        lambda h: h["model"]["fitted"].update(extra_=inner),
        lambda h: h["model"]["fitted"].update(status_=inner),
    ):
        with pytest.raises(ModelFileError):
            load(write(tmp_path / "evil.npz", edited(sound("LPTML"), change)))


def test_files_of_earlier_versions_load_without_a_word(tmp_path):
    old = edited(
        sound("LPTML"), lambda h: h["model"]["params"].update(engine="local", n_jobs=None, verbose=0)
    )
    path = write(tmp_path / "old.npz", old)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(path).get_params() == fitted("LPTML").get_params()


DOMAINS = [
    ((None,), [None], [0, "", False]),
    ((bool,), [True, np.bool_(False)], [0, 1, None, "True"]),
    ((int,), [0, -5, np.int64(3)], [True, 1.0, "1", None, 10**30]),
    ((float,), [0.5, 2, np.float32(1), float("inf")], [True, "0.5", 10**30, None, [1.0]]),
    (("a", "b"), ["a", "b"], ["c", "", "ab", ["a"], None]),
    ((Several((float, "percentile")),), [(), (1.0, 2.0), ["percentile", 1]], ["percentile", ("x",), {1: 2}]),
    ((Several((float,), 2),), [(1.0, 2.0)], [(1.0,), (1.0, 2.0, 3.0)]),
    ((Mapped((float,), (float,)),), [{}, {1: 2.0, -1: 1}], [{"1": 2}, {1: "2"}, [1]]),
    ((Kind.ARRAY,), [np.ones(2)], [[1.0], np.array(["a"]), np.array([print])]),
    ((Kind.LIKE_ARRAY,), [np.ones(2), [[1.0, 0], [0, True]], ()], ["ab", ["a"], [print], np.array(["a"])]),
    (
        (Kind.LABELS,),
        [np.array(["a"]), np.array(["a", 1, None], object)],
        [["a"], np.array([print]), np.eye(2)],
    ),
    (
        (Kind.SETTINGS,),
        [np.array([None, 0.5, "a"], object), np.array([np.eye(2), "within", [[1.0]]], object)],
        [[0.5], np.array([print]), np.array([{}]), np.eye(2), np.array(["a"])],
    ),
    ((Kind.MODEL,), [LPTML()], [LPTML, BaseEstimator(), "LPTML", None]),
]


@pytest.mark.parametrize(("domain", "inside", "outside"), DOMAINS, ids=[in_words(d) for d, _, _ in DOMAINS])
def test_domains(domain, inside, outside):
    assert all(admits(domain, value) for value in inside)
    assert not any(admits(domain, value) for value in outside)


def test_no_domain_takes_any_text():
    """A text that is not one of a few options could be an address or a path."""
    for name, each in CLASSES.items():
        for parameter, domain in each.parameters.items():
            assert not admits(domain, "any text at all"), f"{parameter} of {name}"
    assert [name for name, domain in FITTED.items() if admits(domain, "any text")] == ["status_"]
