"""Cases for both drivers of the gateway: a request, the bytes of its upstream, where they are cut, and what goes wrong.

A case is generated from one number. The bytes are those of whole HTTP responses, so that cuts fall into heads, sizes
of chunks and characters as well.
"""

import json
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Final

from testkit.golden import cases as golden_cases
from testkit.protocols import WIRES, question
from testkit.scripted_upstream import JSON, SSE, STREAM_TYPE
from testkit.vendor_answers import STREAMS, WHOLES, Answer, error_body

NOTHING, CLOSES, RESETS, BAD_CHUNK, STALLS, REFUSES, NO_HTTP = (
    *("nothing", "closes", "resets", "bad chunk", "stalls", "refuses", "no HTTP"),
)
LEAVES, READS_SLOWLY = "client leaves", "client reads slowly"
FAULTS: Final = {
    NOTHING: 48,
    CLOSES: 9,
    RESETS: 9,
    BAD_CHUNK: 6,
    STALLS: 2,
    REFUSES: 6,
    NO_HTTP: 4,
    LEAVES: 10,
    READS_SLOWLY: 6,
}
"""The faults, and how often each occurs in 100 cases."""
MOST_CUTS: Final = 30
LARGE: Final = 15_000
"""Characters of an answer that is read slowly: more than sockets and buffers hold."""
MOST_TEXT: Final = 3000
SHORT: Final = "short_"
"""Prefix of the names of upstreams with a short timeout for silence."""
_STOPPED: Final = (CLOSES, RESETS, BAD_CHUNK, STALLS, LEAVES)
"""Faults that end what the upstream sends."""
PROSE: Final = "It's cold in Oslo, and it will stay so for some time: take a coat with you. " * 15
"""Text without a marker: most of it passes through a turn unread."""
_NO_HTTP: Final = (b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nx y: \0\r\n\r\n")
_INTERIM: Final = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"


@dataclass(frozen=True)
class DriverCase:
    """One case."""

    seed: int
    client: str
    upstream: str
    is_streamed: bool
    mode: str
    dialect: str
    fault: str
    response: bytes
    """What the upstream sends, head and framing included."""
    cuts: tuple[int, ...]
    """Where the upstream pauses."""
    stop: int
    """Where the fault happens: how many bytes the upstream sends, or the client reads, before it."""

    @property
    def request(self) -> bytes:
        """The client's request."""
        place = SHORT + self.upstream if self.fault == STALLS else self.upstream
        asked = question(self.client, stream=self.is_streamed, model=f"{place}:m")
        body = json.dumps(asked.body).encode()
        lines = [f"POST {asked.path} HTTP/1.1", "host: 127.0.0.1", f"x-toolspeak-mode: {self.mode}"]
        if self.dialect:
            lines.append(f"x-toolspeak-dialect: {self.dialect}")
        lines += ["content-type: application/json", f"content-length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode() + body

    @property
    def ends_with_connection(self) -> bool:
        """Whether the response has neither length nor chunks."""
        return b"connection: close" in self.response.partition(b"\r\n\r\ndata")[0][:300]

    def pieces(self) -> list[bytes]:
        """Return the upstream's writes, chunk by chunk, up to the fault."""
        sent = self.response[: self.stop] if self.fault in _STOPPED else self.response
        marks = [0, *(cut for cut in self.cuts if cut < len(sent)), len(sent)]
        return [sent[start:end] for start, end in pairwise(marks) if end > start]


def driver_case(seed: int) -> DriverCase:
    """Make a case."""
    random = Random(seed)
    client, upstream = random.choice(WIRES), random.choice(WIRES)
    is_streamed = random.random() < 0.85
    fault = random.choices(list(FAULTS), list(FAULTS.values()))[0]
    mode = random.choice(("force", "off", "auto"))
    answer, dialect = _answer(random, mode)
    if fault == READS_SLOWLY:
        answer, is_streamed = Answer("It is cold. ❄ " * (LARGE // 14)), True
    response = _response(random, answer, upstream, fault, is_streamed=is_streamed)
    cuts = tuple(sorted(random.randrange(1, len(response)) for _ in range(random.randrange(MOST_CUTS))))
    stop = random.choice(_chunk_ends(response)) if fault == BAD_CHUNK else random.randrange(1, len(response))
    return DriverCase(seed, client, upstream, is_streamed, mode, dialect, fault, response, cuts, stop)


@cache
def _texts() -> list[tuple[str, str]]:
    """Return outputs of models with their dialects; some dialects are made for one case and have no name."""
    named = [(case.raw, case.dialect.name) for case in golden_cases() if case.body == "text" and case.raw]
    return [(text, dialect) for text, dialect in named if ":" not in dialect and len(text) < MOST_TEXT]


def _answer(random: Random, mode: str) -> tuple[Answer, str]:
    if mode == "force":
        text, dialect = random.choice(_texts())
        return Answer(random.choice(("", "", f"{PROSE}\n")) + text), dialect
    call = ("call_1", "get_weather", {"city": random.choice(("Oslo", "東京", 'a "b"'))})
    return Answer(
        random.choice(("", "It is cold.", "Grüße aus 東京 🏔️", PROSE)),
        reasoning=random.choice(("", "Let me think.")),
        calls=random.choice(((), (call,), (call, ("call_2", "get_weather", {"city": "Bergen"})))),
        cut=random.random() < 0.1,
        error=random.choice(("", "", "", "", "it is too hot")),
    ), ""


def _response(random: Random, answer: Answer, wire: str, fault: str, *, is_streamed: bool) -> bytes:
    if fault == NO_HTTP:
        return random.choice(_NO_HTTP)
    status, media_type = 200, STREAM_TYPE.get(wire, SSE) if is_streamed else JSON
    if fault == REFUSES:
        status, body = error_body(wire, "the model is loading")
        content, media_type = json.dumps(body).encode(), JSON
        status = random.choice((400, 401, 404, 429, 500, status))
    elif is_streamed:
        content = STREAMS[wire](answer).encode("utf-8", "backslashreplace")
    else:
        content = json.dumps(WHOLES[wire](answer)).encode()
    framing = random.choice(("chunked", "chunked", "chunked", "length", "close"))
    head = [f"HTTP/1.1 {status} Said", f"content-type: {media_type}"]
    interim = _INTERIM if random.random() < 0.05 else b""
    if framing == "chunked" or fault == BAD_CHUNK:
        head.append("transfer-encoding: chunked")
        return interim + "\r\n".join([*head, "", ""]).encode() + _chunked(random, content)
    head.append(f"content-length: {len(content)}" if framing == "length" else "connection: close")
    return interim + "\r\n".join([*head, "", ""]).encode() + content


def _chunk_ends(response: bytes) -> list[int]:
    """Return where chunks end: in the middle of one, any bytes are content."""
    at = response.index(b"\r\n\r\n", len(_INTERIM) if response.startswith(_INTERIM) else 0) + 4
    ends = [at]
    while size := int(response[at : response.index(b"\r\n", at)], 16):
        at = response.index(b"\r\n", at) + 2 + size + 2
        ends.append(at)
    return ends


def _chunked(random: Random, content: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(content):
        size = random.randrange(1, 2000)
        piece = content[at : at + size]
        out += b"%x\r\n%b\r\n" % (len(piece), piece)
        at += size
    return bytes(out) + b"0\r\n\r\n"
