"""A small server on loopback: it reads requests by our wires, lets the scripted model answer, writes by our wires.

What no client would tell is collected in `JudgedServer.faults`: an exception in a wire, a history read wrong, bytes
that break the vendor's grammar.
"""

import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import cast

from typing_extensions import override

from testkit.grammar import GrammarError, read_stream, read_whole
from tests.judges.model import Batches, batches, faults_of
from toolspeak import wires
from toolspeak.errors import BadField, BadRequest
from toolspeak.ir.event import Failed
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.wires import Stamp, Wire

PATHS = {
    "openai_chat": r"/v1/chat/completions",
    "openai_responses": r"/v1/responses",
    "anthropic": r"/v1/messages",
    "gemini": r"/v1(?:beta)?/models/[^/:]+:(?:generateContent|streamGenerateContent)",
    "ollama": r"/api/chat",
}
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was sent: to which request (None: one that could not be read), with which status, to the byte."""

    wire: Wire
    request: Request | None
    status: int
    body: bytes


class JudgedServer(ThreadingHTTPServer):
    """Serves on a free port until it is left."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[Answer] = []
        self.faults: list[str] = []
        self._numbers = count(1)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stamp(self) -> Stamp:
        return Stamp(f"judged{next(self._numbers):06}", int(time.time()))

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Keep what broke; a client that hangs up broke nothing."""
        if not isinstance(sys.exception(), ConnectionError):
            self.faults.append(traceback.format_exc())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _judged(self) -> JudgedServer:
        return cast("JudgedServer", self.server)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        path = self.path.partition("?")[0]
        name = next((name for name, pattern in PATHS.items() if re.fullmatch(pattern, path)), None)
        if name is None:
            self._judged.faults.append(f"no wire serves {self.path}")
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        wire, stamp = wires.load(name), self._judged.stamp()
        try:
            request = wire.decode_request(body, self.path)
        except BadRequest as error:
            self._fail(wire, None, stamp, failure_of(error))
            return
        self._judged.faults += faults_of(request)
        self._answer(wire, request, stamp)

    def _answer(self, wire: Wire, request: Request, stamp: Stamp) -> None:
        turn = batches(request, stamp.id)
        if isinstance(turn[0][0], Failed):
            self._fail(wire, request, stamp, turn[0][0].failure)
        elif request.stream:
            self._stream(wire, request, stamp, turn)
        else:
            self._fold(wire, request, stamp, turn)

    def _fail(self, wire: Wire, request: Request | None, stamp: Stamp, failure: Failure) -> None:
        error = wire.encode_failure(failure, stamp)
        self._judged.answers.append(Answer(wire, request, error.status, error.body))
        self._whole(error.status, error.body, stamp.id)

    def _fold(self, wire: Wire, request: Request, stamp: Stamp, turn: Batches) -> None:
        folded = fold(event for batch in turn for event in batch)
        if folded.failure is not None:
            self._fail(wire, request, stamp, folded.failure)
            return
        body = wire.encode_turn(request, stamp, folded)
        self._judged.answers.append(Answer(wire, request, HTTPStatus.OK, body))
        self._whole(HTTPStatus.OK, body, stamp.id)

    def _stream(self, wire: Wire, request: Request, stamp: Stamp, turn: Batches) -> None:
        pieces = [piece for piece in pieces_of(wire, request, stamp, turn) if piece]  # an empty chunk would end it
        self._judged.answers.append(Answer(wire, request, HTTPStatus.OK, b"".join(pieces)))
        self._head(HTTPStatus.OK, wire.stream_type(request), stamp.id)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _whole(self, status: int, body: bytes, id: str) -> None:
        self._head(status, JSON, id)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status: int, media_type: str, id: str) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("request-id", f"req_{id}")
        self.send_header("x-request-id", f"req_{id}")

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def pieces_of(wire: Wire, request: Request, stamp: Stamp, turn: Batches) -> Iterator[bytes]:
    """Write a stream, with something to keep it alive in front of the first event and of every second one."""
    encoder = wire.new_encoder(request, stamp)
    for number, batch in enumerate(turn):
        if number % 2 == 0:
            yield encoder.keep_alive()
        yield encoder.encode(batch)


def grammar_faults(answer: Answer) -> Iterator[str]:
    """Say what the vendor's grammar has against an answer."""
    if answer.status != HTTPStatus.OK or answer.request is None:
        return
    read = read_stream if answer.request.stream else read_whole
    try:
        read(answer.wire.name, answer.body)
    except GrammarError as error:
        yield f"{answer.wire.name} {answer.request.model}: {error}"


def failure_of(error: BadRequest) -> Failure:
    """Say what was wrong with a request."""
    field = error.field if isinstance(error, BadField) else ""
    return Failure(FailureKind.INVALID_REQUEST, str(error), HTTPStatus.BAD_REQUEST, field)
