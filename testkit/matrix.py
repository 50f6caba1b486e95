"""The matrix: every client wire over every upstream wire, streamed and whole, in eleven scenarios (WIRE-2, WIRE-3).

A cell takes the whole path in memory: a client's body, decoded, encoded for the upstream, and parsed by a reader that
is independent of toolspeak; the upstream's bytes, cut at random, decoded, encoded for the client, and read by the
grammar of the client's wire, which is independent too.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, product

from testkit.grammar import Seen, read_stream, read_whole
from testkit.vendor_answers import CARRIES_SIGNATURES, STREAMS, WHOLES, Answer, error_body
from testkit.vendor_requests import QUESTION, RESULT, SCHEMA, SYSTEM, UNDERSTAND, WRITE, Ask
from toolspeak import wires
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.wires import Stamp, Wire

WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini", "ollama")
OSLO = ("call_a", "get_weather", {"city": 'Oslo "ø" \n🙂'})
BERGEN = ("call_b", "get_weather", {"city": "Bergen", "deep": {"list": [1, 2.5, None, True]}})
TEXT = "It is cold: -3 °C 🙂 in “Oslo”.\nTake a coat."
THOUGHT, SIGNATURE = "The user wants weather. I call the tool.", "c2lnbmF0dXJl/+=="
BROKEN = "the model fell over"
REFUSED, BROKEN_OFF = "error before the first byte", "error in mid-stream"
STAMP = Stamp("0a1b2c3d4e5f", 1_763_000_000)

SCENARIOS: dict[str, tuple[Ask, Answer]] = {
    "text": (Ask(stream=True), Answer(TEXT)),
    "one call": (Ask(stream=True), Answer(calls=(OSLO,))),
    "parallel calls": (Ask(stream=True), Answer(calls=(OSLO, BERGEN))),
    "text then call": (Ask(stream=True), Answer(TEXT, calls=(OSLO,))),
    "reasoning then call": (Ask(stream=True), Answer("", THOUGHT, SIGNATURE, calls=(OSLO,))),
    "result continuation": (Ask(stream=True, history=True), Answer(TEXT)),
    "image result": (Ask(stream=True, history=True, image=True), Answer(TEXT)),
    "forced choice": (Ask(stream=True, forced=True), Answer(calls=(OSLO,))),
    REFUSED: (Ask(stream=True), Answer(error=BROKEN)),
    BROKEN_OFF: (Ask(stream=True), Answer(TEXT, error=BROKEN)),
    "truncated by length": (Ask(stream=True), Answer(TEXT, cut=True)),
}
STOPS = {  # as each vendor names it: plain, with calls, cut
    "openai_chat": ("stop", "tool_calls", "length"),
    "openai_responses": ("completed", "completed", "max_output_tokens"),
    "anthropic": ("end_turn", "tool_use", "max_tokens"),
    "gemini": ("STOP", "STOP", "MAX_TOKENS"),
    "ollama": ("stop", "stop", "length"),
}


@dataclass(frozen=True)
class Cell:
    """One combination of wires, scenario and streaming."""

    client: str
    upstream: str
    stream: bool
    scenario: str

    @property
    def name(self) -> str:
        return f"{self.client} over {self.upstream}, {'streamed' if self.stream else 'whole'}: {self.scenario}"


def cells() -> Iterator[Cell]:
    """Yield all 550."""
    for client, upstream, stream, scenario in product(WIRES, WIRES, (True, False), SCENARIOS):
        yield Cell(client, upstream, stream, scenario)


def check(cell: Cell) -> list[str]:
    """Run a cell; return what is wrong."""
    ask, answer = SCENARIOS[cell.scenario]
    ask = replace(ask, stream=cell.stream)
    client, upstream = wires.load(cell.client), wires.load(cell.upstream)
    path, body = WRITE[cell.client](ask)
    request = client.decode_request(json.dumps(body).encode(), path)
    wrong = _request_faults(cell, ask, request, upstream)
    if cell.scenario == REFUSED:
        return wrong + _refusal_faults(cell, answer, client, upstream)
    if cell.stream:
        return wrong + _stream_faults(cell, answer, request, client, upstream)
    return wrong + _whole_faults(cell, answer, request, client, upstream)


def _request_faults(cell: Cell, ask: Ask, request: Request, upstream: Wire) -> list[str]:
    sent = upstream.encode_request(request, QUIRKS)
    return request_faults(cell, ask, sent.path, sent.body)


def request_faults(cell: Cell, ask: Ask, path: str, body: bytes) -> list[str]:
    """Return what is wrong with a request that the upstream gets; `path` comes after the base URL."""
    seen = UNDERSTAND[cell.upstream](path, json.loads(body))
    can_force = cell.client != "ollama" or cell.upstream == "ollama"  # Ollama clients cannot force a call
    wanted = {
        "system": (seen.system, SYSTEM),
        "user": (seen.user, QUESTION),
        "tools": (seen.tools, ("get_weather",)),
        "schema": (seen.schema, SCHEMA),
        "limit": (seen.limit, 99),
        "stream": (seen.stream, cell.stream),
        "forced": (seen.forced, (ask.forced and can_force) or cell.upstream == "ollama"),
        "call": (seen.call, ("get_weather", {"city": "Oslo"}) if ask.history else None),
        "result": (seen.result.splitlines()[:1], [RESULT] if ask.history else []),
        "paired": (seen.paired, True),
        "image": (seen.image, ask.image),
    }
    return [f"upstream's {name}: {got!r}, not {want!r}" for name, (got, want) in wanted.items() if got != want]


def _ids() -> Iterator[str]:
    return (f"call_fresh{number}" for number in count())


def _stream_faults(cell: Cell, answer: Answer, request: Request, client: Wire, upstream: Wire) -> list[str]:
    decoder, encoder = upstream.new_decoder(request, _ids()), client.new_encoder(request, STAMP)
    out = b""
    for piece in _cut(STREAMS[cell.upstream](answer).encode(), cell.name):
        out += encoder.encode(decoder.feed(piece))
    out += encoder.encode(decoder.finish())
    return answer_faults(cell, answer, 200, out)


def _whole_faults(cell: Cell, answer: Answer, request: Request, client: Wire, upstream: Wire) -> list[str]:
    turn = fold(upstream.decode_turn(request, _ids(), whole_answer(cell, answer)))
    if turn.failure is not None:
        said = client.encode_failure(turn.failure, STAMP)
        return answer_faults(cell, answer, said.status, said.body)
    return answer_faults(cell, answer, 200, client.encode_turn(request, STAMP, turn))


def whole_answer(cell: Cell, answer: Answer) -> bytes:
    """Return the upstream's body of a cell without a stream; one that fails in the middle is half of it."""
    body = json.dumps(WHOLES[cell.upstream](answer)).encode()
    return body[: len(body) // 2] if answer.error else body


def _refusal_faults(cell: Cell, answer: Answer, client: Wire, upstream: Wire) -> list[str]:
    status, body = error_body(upstream.name, BROKEN)
    failure = upstream.decode_failure(status, json.dumps(body).encode())
    said = client.encode_failure(failure, STAMP)
    wrong = [] if failure.kind == "transient" else [f"the failure is {failure.kind}, not transient"]
    return wrong + answer_faults(cell, answer, said.status, said.body)


def answer_faults(cell: Cell, answer: Answer, status: int, body: bytes) -> list[str]:
    """Return what is wrong with a response that the client gets."""
    if status == 200:
        return _seen_faults(cell, answer, (read_stream if cell.stream else read_whole)(cell.client, body))
    refused = cell.scenario == REFUSED and status in (503, 529) and BROKEN in message_of(body)
    broken_off = cell.scenario == BROKEN_OFF and not cell.stream and status == 502 and message_of(body)
    return [] if refused or broken_off else [f"the client gets {status} {body!r}"]


def _seen_faults(cell: Cell, answer: Answer, seen: Seen) -> list[str]:
    plain, calls, cut = STOPS[cell.client]
    stop = cut if answer.cut else calls if answer.calls else plain
    carried = {cell.client, cell.upstream} <= CARRIES_SIGNATURES and answer.signature
    wanted = {
        "text": (seen.text, answer.text),
        "reasoning": (seen.reasoning, answer.reasoning),
        "calls": ([(call.name, call.arguments) for call in seen.calls], [call[1:] for call in answer.calls]),
        "ids": ([call.id for call in seen.calls], [call[0] for call in answer.calls]),
        "signatures": (seen.signatures, (answer.signature,) if carried else seen.signatures),
        "error": (BROKEN in seen.error, bool(answer.error)),
        "stop": (seen.stop, seen.stop if answer.error else stop),
        "usage": (seen.usage, seen.usage if answer.error else (11, 7)),
    }
    return [f"client's {name}: {got!r}, not {want!r}" for name, (got, want) in wanted.items() if got != want]


def message_of(body: bytes) -> str:
    """Return the message of an error body, as each vendor's SDK finds it."""
    error = json.loads(body)["error"]
    return str(error if isinstance(error, str) else error["message"])


def _cut(data: bytes, seed: str) -> Iterator[bytes]:
    chance = random.Random(seed)
    while data:
        size = chance.randint(1, 90)
        yield data[:size]
        data = data[size:]
