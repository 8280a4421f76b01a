"""The review page on this machine: served to one browser, decisions on the disk before they are answered.

Only the loopback interface is listened on, on a port that the system chooses. The address carries a random
token; a request without it, from another host name (DNS rebinding) or from another origin (a page in another
tab) is refused. Nothing but the page is ever sent.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lptml.report.corrections import Correction, Journal

MOST_BYTES = 1 << 24  # of a request

#: Makes the page from the decisions that stand: ``render(decisions, changed)``.
Render = Callable[[list[Correction], str], str]
#: Learns again from the decisions that stand, and says what changed.
Refit = Callable[[list[Correction]], str]


class ReviewServer(ThreadingHTTPServer):
    """Serves a page and keeps the decisions that come back.

    Parameters
    ----------
    journal : Journal
        Where decisions go.
    render : callable
        The page, from the decisions that stand and a sentence on what changed.
    refit : callable
        Learns again and returns that sentence.
    given : dict
        The label of each row by its number in the file; a decision about anything else is refused.

    Attributes
    ----------
    url : str
        The address with its token.
    """

    daemon_threads = True

    def __init__(
        self, journal: Journal, render: Render, refit: Refit, given: dict[int, str], port: int = 0
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.journal, self.render, self.refit, self.given = journal, render, refit, given
        self.token = secrets.token_urlsafe(24)
        self.lock = threading.Lock()  # of the journal
        self.learning = threading.Lock()
        self.changed = ""
        self.hosts = {f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}"}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def accept(self, decisions: Any) -> int:
        """Check decisions and write them down; how many there were. A ValueError says what is wrong."""
        if not isinstance(decisions, list):
            raise ValueError("decisions must be a list")
        checked = []
        for each in decisions:
            if not isinstance(each, dict):
                raise ValueError("a decision must be an object")
            correction = Correction.from_cells(each)
            if correction.data != self.journal.data:
                raise ValueError("the decision is about other data")
            if self.given.get(correction.row) != correction.given:
                raise ValueError(f"row {correction.row} has no label {correction.given!r}")
            checked.append(correction)
        with self.lock:
            for correction in checked:
                self.journal.add(correction)
        return len(checked)


class _Handler(BaseHTTPRequestHandler):
    """One request: GET the page, POST decisions, POST refit."""

    server: ReviewServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send the page."""
        place = self._place()
        if place == "":
            with self.server.lock:
                standing = self.server.journal.standing()
            page = self.server.render(standing, self.server.changed).encode()
            self._send(200, page, "text/html; charset=utf-8")
        elif place is not None:
            self._send(404, b"there is nothing here")

    def do_POST(self) -> None:
        """Write decisions down, or learn again."""
        place = self._place()
        if place is None:
            return
        length = self.headers.get("Content-Length", "")
        if self.headers.get("X-Lptml") != "1" or not length.isdigit() or int(length) > MOST_BYTES:
            self._send(400, b"not a request of this page")
            return
        body = self.rfile.read(int(length))
        try:
            if place == "decisions":
                self._send(200, str(self.server.accept(json.loads(body))).encode())
            elif place == "refit":
                with self.server.learning:
                    with self.server.lock:
                        standing = self.server.journal.standing()
                    self.server.changed = self.server.refit(standing)
                self._send(200, self.server.changed.encode())
            else:
                self._send(404, b"there is nothing here")
        except (ValueError, RecursionError) as problem:
            self._send(400, str(problem).encode())
        except OSError as problem:
            self._send(507, f"could not be written: {problem}".encode())

    def _place(self) -> str | None:
        """What is asked for behind the token; None after a refusal."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts:
            self._send(421, b"another host")
        elif origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            self._send(403, b"another origin")
        else:
            token, _, place = self.path.partition("?")[0].removeprefix("/").partition("/")
            if hmac.compare_digest(token.encode(), self.server.token.encode()):
                return place
            self._send(403, b"the address lacks its token: use the one that lptml review printed")
        return None

    def _send(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src "
            "'unsafe-inline'; img-src data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if status >= 400:  # a body may be left unread
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the person's."""
