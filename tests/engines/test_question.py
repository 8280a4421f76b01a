"""A cluster that never answers does not hold up who asks it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from lptml.engines._question import Question

pytest.importorskip("distributed")
from lptml.engines import dask as engine
from lptml.engines.errors import EngineLost

NEVER = threading.Event()


class Silent:
    """A client whose scheduler takes tasks and falls silent."""

    status = "running"
    scheduler = SimpleNamespace(address="tcp://nowhere")

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def submit(self, function: Any, *arguments: Any, key: str, **options: Any) -> Any:
        def done(call: Any) -> None:
            call(future)

        future = SimpleNamespace(key=key, status="finished", result=NEVER.wait, add_done_callback=done)
        return future

    def cancel(self, futures: Any, force: bool) -> None:
        self.cancelled.set()
        NEVER.wait()

    nthreads = NEVER.wait


def test_an_answer_an_error_and_silence() -> None:
    question = Question(lambda: 3)
    assert question.answered(60)
    assert question.answer() == 3
    question = Question(lambda: [][0])
    assert question.answered(60)
    with pytest.raises(IndexError):
        question.answer()
    assert not Question(NEVER.wait).answered(0.01)


@pytest.mark.timeout(60)
def test_a_result_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_FAREWELL_SECONDS", 0.01)
    client = Silent()
    flight = engine._Flight(client)
    flight.submit("tag", len, ())
    assert flight.land(0.01) is None
    assert flight.land(0.01) is None
    flight.abandon()
    assert client.cancelled.wait(30)
    assert len(flight) == 0


@pytest.mark.timeout(60)
def test_a_scheduler_that_does_not_say_who_works_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_START_SECONDS", 0.01)
    session = engine.DaskSession(Silent(), None)
    with pytest.raises(EngineLost, match="nowhere"):
        _ = session.workers


@pytest.mark.timeout(60)
def test_a_cluster_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_START_SECONDS", 0.01)
    monkeypatch.setattr(engine, "Client", lambda **options: NEVER.wait())
    with pytest.raises(EngineLost, match="no Dask cluster has started"):
        engine._start_cluster()


@pytest.mark.timeout(60)
def test_a_deserted_cluster_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_DESERTED_SECONDS", 0.0)
    client = Silent()
    client.nthreads = dict  # type: ignore[method-assign, assignment]  # a cluster without workers
    flight = engine._Flight(client)
    flight.submit("tag", len, ())
    with pytest.raises(EngineLost, match="no worker"):
        _land(flight, 1000)


def _land(flight: Any, times: int) -> None:
    for _ in range(times):
        flight.land(0.01)
