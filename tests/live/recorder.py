"""Stands between the gateway and the model, and keeps what the model was asked and what it wrote.

It changes no byte, unless it drops fields of requests, as servers do that know no tools.

with Recorder(server.url) as recorder:
… requests to recorder.url …
recorder.exchanges
"""

import http.client
import json
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from typing_extensions import override

TIMEOUT_S = 3600
PASSED_ON = {"content-type"}
_LIST = "/v1/models"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to the model, and its answer."""

    asked: dict[str, Any]
    status: int
    wrote: str
    """The model's text, as the server gave it."""
    called: str
    """What the server itself took for calls."""
    end: str
    tokens: tuple[int, int]
    seconds: float


class Recorder(ThreadingHTTPServer):
    """A relay to one server."""

    daemon_threads = True

    def __init__(self, url: str, drops: Collection[str] = ()) -> None:
        """Take a free port; `drops` are fields of requests that do not reach the server."""
        split = urlsplit(url)
        self.target = (split.hostname or "", split.port or 80)
        self.drops = drops
        self.exchanges: list[Exchange] = []
        super().__init__(("127.0.0.1", 0), _Relay)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    @override
    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    @override
    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder  # pyright: ignore[reportIncompatibleVariableOverride]  # it serves a Recorder only

    def do_GET(self) -> None:
        if self.server.drops and self.path != _LIST:  # such a server does not describe itself either
            self.send_error(http.client.NOT_FOUND)
        else:
            self._pass(b"")

    def do_POST(self) -> None:
        self._pass(self.rfile.read(int(self.headers.get("content-length", "0"))))

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: this is kept, not told."""

    def _pass(self, body: bytes) -> None:
        started, answered = time.perf_counter(), bytearray()
        connection = http.client.HTTPConnection(*self.server.target, timeout=TIMEOUT_S)
        status = 0
        try:
            connection.request(self.command, self.path, self._kept(body) or None, {"content-type": "application/json"})
            response = connection.getresponse()
            status = response.status
            self._answer(response, answered)
        except ConnectionError:
            self.close_connection = True  # one side hung up: so does the other
        finally:
            connection.close()
            if self.command == "POST":
                self.server.exchanges.append(_exchange(body, status, bytes(answered), time.perf_counter() - started))

    def _kept(self, body: bytes) -> bytes:
        if not self.server.drops or not body:
            return body
        fields = json.loads(body)
        return json.dumps({key: value for key, value in fields.items() if key not in self.server.drops}).encode()

    def _answer(self, response: http.client.HTTPResponse, answered: bytearray) -> None:
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() in PASSED_ON:
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while chunk := response.read1(65536):
            answered += chunk
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")


def _exchange(body: bytes, status: int, answered: bytes, seconds: float) -> Exchange:
    text, calls, end, tokens = "", "", "", (0, 0)
    for piece in _pieces(answered):
        for choice in piece.get("choices") or ():
            said: dict[str, Any] = choice.get("delta") or choice.get("message") or {}
            text += said.get("content") or ""
            calls += json.dumps(said["tool_calls"]) if said.get("tool_calls") else ""
            end = choice.get("finish_reason") or end
        if usage := piece.get("usage"):
            tokens = (usage["prompt_tokens"], usage["completion_tokens"])
    return Exchange(json.loads(body), status, text, calls, end or "closed", tokens, round(seconds, 1))


def _pieces(answered: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of a stream, or the one of a whole answer."""
    for line in (answered,) if answered.startswith(b"{") else answered.split(b"\n\n"):
        data = line.removeprefix(b"data:").strip()
        if data.startswith(b"{") and data.endswith(b"}"):  # not [DONE], and not a piece that was cut
            yield json.loads(data)
