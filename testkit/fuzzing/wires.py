"""All five wires in both directions: bodies of clients, streams, whole answers and errors of upstreams.

Header: wire and direction, split seed, another wire. Content: the bytes; a request's body may begin with a line that
is its path.
"""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, Final

from testkit.fuzzing.target import Broken, Target, mutated, pieces
from testkit.golden import samples
from testkit.matrix import SCENARIOS, WIRES
from testkit.vendor_answers import STREAMS, WHOLES, error_body
from testkit.wire_requests import goldens
from toolspeak import wires
from toolspeak.errors import BadField, BadRequest
from toolspeak.ir.event import Event, Failed, Finished
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.toolset.toolset import ToolSet
from toolspeak.wires import Stamp, Wire

_HEADER: Final = 3
_DIRECTIONS: Final = ("request", "stream", "whole", "failure")
_STATUSES: Final = (200, 400, 401, 404, 405, 408, 413, 422, 429, 500, 502, 503, 529)
_STAMP: Final = Stamp("0a1b2c3d4e5f", 1_763_000_000)
_LARGEST: Final = 3_000
"""Bytes of a seed: the real requests of agents have 50 KB of tools, which only slow the search."""


@cache
def paths() -> dict[str, str]:
    """Return a path of each wire's requests."""
    return {golden.wire: golden.path for golden in goldens()}


@cache
def _asked() -> Request:
    return Request("m", (), samples()[0].tools, stream=True)


def check(data: bytes) -> None:
    """Decode an input in its direction."""
    wire, direction, seed, other = _parts(data)
    _CHECKS[direction](wire, data[_HEADER:], seed, other)


def _check_request(wire: Wire, body: bytes, _seed: int, other: Wire) -> None:
    """Check that a request is refused with the protocol's own error, or decoded and written on another wire."""
    try:
        request = wire.decode_request(*_body_and_path(wire, body))
        ToolSet.of(request.tools)
        other.encode_request(request, QUIRKS)
    except BadRequest as error:
        field = error.field if isinstance(error, BadField) else ""
        failure = Failure(FailureKind.INVALID_REQUEST, str(error), error.status, field)
        if wire.encode_failure(failure, _STAMP).status != error.status:
            raise Broken(f"{wire.name} says another status for {type(error).__name__}") from None


def _body_and_path(wire: Wire, body: bytes) -> tuple[bytes, str]:
    path, line_end, rest = body.partition(b"\n")
    if line_end and path.startswith(b"/"):
        return rest, path.decode("latin-1")
    return body, paths()[wire.name]


def _check_stream(wire: Wire, stream: bytes, seed: int, other: Wire) -> None:
    """Check that a stream ends in one `Finished` or `Failed`, however it is split, and can be encoded again."""
    whole = _decoded(wire, [stream])
    ends = [number for number, event in enumerate(whole) if isinstance(event, Finished | Failed)]
    if ends != [len(whole) - 1]:
        raise Broken(f"{wire.name}: {len(ends)} ends among {len(whole)} events")
    if fold(_decoded(wire, pieces(stream, seed))) != fold(whole):
        raise Broken(f"{wire.name} decodes another turn when the stream is split")
    other.new_encoder(_asked(), _STAMP).encode(whole)


def _decoded(wire: Wire, chunks: list[bytes]) -> list[Event]:
    decoder = wire.new_decoder(_asked(), _ids())
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


def _check_whole(wire: Wire, body: bytes, _seed: int, other: Wire) -> None:
    """Check that a whole answer folds to a turn that can be encoded again, or to a failure that can."""
    events = wire.decode_turn(_asked(), _ids(), body)
    turn = fold(events)
    if turn.failure is None:
        other.encode_turn(_asked(), _STAMP, turn)
    else:
        other.encode_failure(turn.failure, _STAMP)


def _check_failure(wire: Wire, body: bytes, seed: int, other: Wire) -> None:
    """Check that every error body becomes a failure that can be encoded again."""
    other.encode_failure(wire.decode_failure(_STATUSES[seed % len(_STATUSES)], body), _STAMP)


_CHECKS: Final = {
    "request": _check_request,
    "stream": _check_stream,
    "whole": _check_whole,
    "failure": _check_failure,
}


def _ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def _parts(data: bytes) -> tuple[Wire, str, int, Wire]:
    padded = data[:_HEADER].ljust(_HEADER, b"\0")
    wire, direction = WIRES[padded[0] % 5], _DIRECTIONS[padded[0] // 5 % 4]
    return wires.load(wire), direction, padded[1], wires.load(WIRES[padded[2] % 5])


def steps(data: bytes) -> Iterator[Callable[[], object]]:
    """Yield the decoder's work on the whole input at once."""
    wire, direction, seed, _ = _parts(data)
    content = data[_HEADER:]
    if direction == "request":
        yield lambda: _quiet_request(wire, content)
    elif direction == "stream":
        decoder = wire.new_decoder(_asked(), _ids())
        yield lambda: decoder.feed(content)
        yield decoder.finish
    elif direction == "whole":
        yield lambda: wire.decode_turn(_asked(), _ids(), content)
    else:
        yield lambda: wire.decode_failure(_STATUSES[seed % len(_STATUSES)], content)


def _quiet_request(wire: Wire, content: bytes) -> None:
    with suppress(BadRequest):
        wire.decode_request(*_body_and_path(wire, content))


# ---------------------------------------------------------------- inputs


def _head(wire: str, direction: str, seed: int = 0, other: int = 0) -> bytes:
    return bytes((_DIRECTIONS.index(direction) * 5 + WIRES.index(wire), seed % 256, other))


def seeds() -> Iterator[bytes]:
    """Yield real requests that are short, and the vendors' answers of the matrix."""
    for number, golden in enumerate(goldens()):
        body = json.dumps(golden.body, ensure_ascii=False).encode()
        if len(body) <= _LARGEST:
            line = golden.path.encode() + b"\n" if golden.wire == "gemini" else b""
            yield _head(golden.wire, "request", 0, number % 5) + line + body
    for number, (_, answer) in enumerate(SCENARIOS.values()):
        for wire in WIRES:
            yield _head(wire, "stream", number, number % 5) + STREAMS[wire](answer).encode()
            yield _head(wire, "whole", 0, number % 5) + json.dumps(WHOLES[wire](answer)).encode()
    for wire in WIRES:
        status, body = error_body(wire, "the model does not support tools, try again in 2s")
        yield _head(wire, "failure", _STATUSES.index(status)) + json.dumps(body).encode()


@cache
def _bodies() -> list[dict[str, Any]]:
    found = [golden.body for golden in goldens() if len(json.dumps(golden.body)) <= _LARGEST]
    return [*found, *(WHOLES[wire](answer) for wire in WIRES for _, answer in SCENARIOS.values())]


def mutate(data: bytes, source: random.Random) -> bytes | None:
    """Change the JSON of one line (all of a body, one event of a stream), so that the rest stays well formed."""
    lines = data[_HEADER:].split(b"\n")
    numbers = [number for number, line in enumerate(lines) if b"{" in line]
    if not numbers:
        return None
    number = source.choice(numbers)
    before, brace, rest = lines[number].partition(b"{")
    try:
        value: dict[str, Any] = json.loads(brace + rest)
        lines[number] = before + json.dumps(mutated(value, source, _bodies())).encode()
    except (ValueError, RecursionError):
        return None
    if source.randrange(4) == 0:
        lines.insert(number, lines[source.choice(numbers)])
    return data[:_HEADER] + b"\n".join(lines)


def words() -> Iterator[bytes]:
    """Yield the keys of all seeds, and JSON's and SSE's syntax."""
    yield from (
        b"data: ",
        b"event: ",
        b"data: [DONE]\n\n",
        b"\r\n",
        b":\n",
        b"\\ud800",
        b"1e400",
        b"null",
        b"[[[[",
        b"{}",
    )
    keys: set[str] = set()
    waiting: list[Json] = [*_bodies()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            keys.update(value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and 0 < len(value) < 24:
            keys.add(value)
    yield from (json.dumps(key).encode() for key in sorted(keys))


TARGET: Final = Target("wires", _HEADER, check, steps, seeds, words, mutate)
