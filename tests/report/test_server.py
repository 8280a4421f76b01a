"""lptml review's server: who is answered, what is written down, and that a kill loses nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lptml.report.corrections import Correction, Journal, read_corrections
from lptml.report.server import ReviewServer

GIVEN = {row: "ab"[row % 2] for row in range(1, 2001)}


def decision(row: int, kind: str = "keep", **more: str) -> dict[str, object]:
    return {"row": row, "column": "y", "given": GIVEN[row], "decision": kind, "data": "abc", **more}


@contextlib.contextmanager
def running(path: Path) -> Iterator[ReviewServer]:
    def refit(standing: list[Correction]) -> str:
        return f"{len(standing)} decisions"

    journal = Journal(path, "abc")
    server = ReviewServer(journal, lambda standing, changed: f"{len(standing)} {changed}", refit, GIVEN)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        journal.close()


def ask(
    server: ReviewServer, method: str, place: str, body: object = None, **headers: str
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    sent = {"X-Lptml": "1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    text = json.dumps(body) if body is not None else None
    connection.request(method, place, text, sent)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def test_decisions_are_written_and_the_page_knows_them(tmp_path: Path) -> None:
    with running(tmp_path / "c.csv") as server:
        home = f"/{server.token}/"
        assert ask(server, "GET", home) == (200, "0 ")
        posted = [decision(1), decision(2, "change", label="=1+1"), decision(1, "unsure")]
        assert ask(server, "POST", home + "decisions", posted) == (200, "3")
        assert ask(server, "POST", home + "decisions", [decision(3), decision(3, "undo")]) == (200, "2")
        assert ask(server, "GET", home) == (200, "2 ")
        assert ask(server, "POST", home + "refit", []) == (200, "2 decisions")
        assert ask(server, "GET", home) == (200, "2 2 decisions")
    found = read_corrections(tmp_path / "c.csv")
    assert [(each.row, each.decision.value, each.label) for each in found] == [
        (1, "unsure", ""),
        (2, "change", "=1+1"),
    ]


def test_only_the_page_itself_is_answered(tmp_path: Path) -> None:
    with running(tmp_path / "c.csv") as server:
        home = f"/{server.token}/"
        host = f"127.0.0.1:{server.server_port}"
        assert ask(server, "GET", "/")[0] == 403
        assert ask(server, "GET", f"/{'x' * len(server.token)}/")[0] == 403
        assert ask(server, "GET", home, Host="evil.example")[0] == 421  # a name that was made to point here
        assert ask(server, "GET", home + "../etc/passwd")[0] == 404
        for origin in ("http://evil.example", "null", f"https://{host}.evil.example"):
            assert ask(server, "POST", home + "decisions", [decision(1)], Origin=origin)[0] == 403
        assert ask(server, "POST", home + "decisions", [decision(1)], X_Lptml="")[0] == 400
        assert ask(server, "POST", home + "decisions", [decision(1)], Origin=f"http://{host}")[0] == 200
        assert ask(server, "PUT", home)[0] == 501
        assert server.server_address[0] == "127.0.0.1"
    assert len(read_corrections(tmp_path / "c.csv")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"row": 1},
        "text",
        [7],
        [{"row": 1, "given": "z", "decision": "keep", "data": "abc"}],
        [{"row": 5000, "given": "a", "decision": "keep", "data": "abc"}],
        [decision(1, "delete")],
        [decision(1, "change")],
        [decision(1) | {"data": "xyz"}],
        [decision(1) | {"row": "1; rm"}],
    ],
)
def test_a_malformed_decision_writes_nothing(tmp_path: Path, wrong: object) -> None:
    with running(tmp_path / "c.csv") as server:
        assert ask(server, "POST", f"/{server.token}/decisions", wrong)[0] == 400
        assert ask(server, "POST", f"/{server.token}/decisions", [decision(2), 7])[0] == 400  # all or none
    assert read_corrections(tmp_path / "c.csv") == []


SERVE = """
import sys
from lptml.report.corrections import Journal
from lptml.report.server import ReviewServer
given = {row: "ab"[row % 2] for row in range(1, 2001)}
server = ReviewServer(Journal(sys.argv[1], "abc"), lambda *_: "", lambda _: "", given)
print(server.url, flush=True)
server.serve_forever()
"""


def killed(path: Path, first: int, rng: random.Random) -> list[int]:
    """Post decisions from row ``first`` on until the server is killed; the rows that were acknowledged."""
    process = subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    place = "/" + url.split("/", 3)[3]
    port = int(url.split(":")[2].split("/")[0])
    timer = threading.Timer(rng.uniform(0.0, 0.08), lambda: os.kill(process.pid, rng.choice(SIGNALS)))
    timer.start()
    done = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        for row in range(first, first + 30):
            body = json.dumps([decision(row)])
            connection.request("POST", place + "decisions", body, {"X-Lptml": "1"})
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                done.append(row)
    except (TimeoutError, OSError, http.client.HTTPException):
        pass
    timer.join()
    process.kill()
    process.wait()
    process.stdout.close()
    return done


SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_no_decision_is_lost_when_the_program_is_killed(tmp_path: Path, kills: int) -> None:
    path, rng, acknowledged = tmp_path / "c.csv", random.Random(0), []
    for kill in range(kills):
        acknowledged += killed(path, 1 + 30 * kill, rng)
        kept = {each.row for each in read_corrections(path)}
        assert set(acknowledged) <= kept
    assert len(acknowledged) > kills  # the kills fell amid decisions
    Journal(path, "abc").close()  # and the file can be gone on with
