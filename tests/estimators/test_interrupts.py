"""Ctrl-C in the last lines of a fit, after an earlier one or by itself: what was learned is not lost."""

from __future__ import annotations

import signal
import warnings
from typing import Any

import numpy as np
import pytest

from lptml import LPTML, LPTMLCV, LPTML_Quadruplets, LPTML_Supervised, LPTML_SupervisedCV, LPTML_Triplets
from lptml.estimators._lptml import LPTMLBase
from lptml.learn import pipeline

FITS = [
    (LPTML, 2),
    (LPTMLCV, 2),
    (LPTML_Triplets, 3),
    (LPTML_Quadruplets, 4),
    (LPTML_Supervised, 1),
    (LPTML_SupervisedCV, 1),
]


def press(*_: Any) -> bool:
    signal.raise_signal(signal.SIGINT)
    return False


@pytest.mark.parametrize("place", [(pipeline, "_conclude"), (LPTMLBase, "_settle"), (LPTMLBase, "_report")])
@pytest.mark.parametrize(("learner", "size"), FITS)
@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_in_the_last_lines(
    monkeypatch: pytest.MonkeyPatch, learner: Any, size: int, place: Any, twice: bool
) -> None:
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(30, 3) if size == 1 else (30, size, 3))]
    if size < 3:
        data.append(np.arange(30) % 2 if size == 1 else np.where(np.arange(30) % 2, 1, -1))
    home, name = place
    last = getattr(home, name)
    pressed = []

    def pressing(*arguments: Any, **options: Any) -> Any:
        if learner in (LPTML, LPTML_Triplets, LPTML_Quadruplets, LPTML_Supervised) or name == "_report":
            pressed.append(press())  # a cross-validation that is interrupted in its folds ends
        return last(*arguments, **options)

    monkeypatch.setattr(home, name, pressing)
    callback = press if twice else None
    model = learner(max_trials=20, random_state=0, callback=callback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.fit(*data) is model
    assert np.isfinite(model.components_).all()
    assert 0 <= model.violation_rate_ <= 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
