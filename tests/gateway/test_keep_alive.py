"""A client that waits hears on time that we are there, in its protocol's own way (CHK-7)."""

import asyncio
import json
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

from testkit.grammar import read_stream, read_whole
from testkit.protocols import WIRES, question
from testkit.scripted_upstream import SSE, Asked, Script, ScriptedUpstream
from testkit.vendor_answers import STREAMS, WHOLES, Answer
from tests.gateway.scene import Served, Watched, config_of, serving, towards
from toolspeak.config.shape import Server
from toolspeak.gateway import turns
from toolspeak.ir.event import Event, Finished

BEAT = 0.1
SAYS = {
    "openai_chat": (b": keep-alive\n\n", b": keep-alive\n\n"),
    "openai_responses": (b": keep-alive\n\n", b": keep-alive\n\n"),
    "anthropic": (b": keep-alive\n\n", b'event: ping\ndata: {"type":"ping"}\n\n'),
    "gemini": (b"\n", b"\n"),
}
"""What says nothing before the first event, and after it; Ollama's is an empty line of its own form."""
COLD = Answer("It is cold.")
CALL = '```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    with serving(config_of(towards(upstream, retries=0), server=Server(keep_alive=BEAT))) as served:
        upstream.answers(paused(COLD, 0, 0))
        watched(served)  # the first request of each wire loads it
        yield served


def watched(gateway: Served, **headers: str) -> list[tuple[str, Watched]]:
    """Ask on all wires at once: waiting one after the other takes long."""

    def watch(wire: str) -> tuple[str, Watched]:
        asked = question(wire, stream=True)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return wire, gateway.watch(asked.path, asked.body, sent)

    with ThreadPoolExecutor(len(WIRES)) as pool:
        return list(pool.map(watch, WIRES))


def says_nothing(wire: str, piece: bytes) -> bool:
    """Tell whether a piece is a keep-alive."""
    if wire == "ollama":
        line: dict[str, Any] = json.loads(piece) if piece.count(b"\n") == 1 else {}
        return line.get("done") is False and line["message"] == {"role": "assistant", "content": ""}
    return piece in SAYS[wire]


def beats(wire: str, seen: Watched) -> list[float]:
    """Return when keep-alives came."""
    return [at for at, piece in seen.pieces if piece and says_nothing(wire, piece)]


def most(seen: Watched) -> float:
    """Return how many keep-alives there can be: one for each silence of this length."""
    return seen.pieces[-1][0] / BEAT


def on_time(wire: str, seen: Watched) -> bool:
    """Tell whether they came one beat after the other; a busy machine may be late now and then."""
    times = beats(wire, seen)
    return BEAT * 0.9 < median(later - earlier for earlier, later in pairwise(times)) < BEAT * 2


def after(seconds: float, script: Script) -> Script:
    async def late(asked: Asked) -> None:
        await asyncio.sleep(seconds)
        await script(asked)

    return late


def paused(answer: Answer, at: int, seconds: float) -> Script:
    """Stream, with a pause before the event of this number."""

    async def script(asked: Asked) -> None:
        asked.head()
        events = STREAMS["openai_chat"](answer).encode().split(b"\n\n")[:-1]
        for number, event in enumerate(events):
            if number == at:
                await asyncio.sleep(seconds)
            await asked.chunk(event + b"\n\n")
        await asked.end()

    return script


def test_before_the_first_byte_and_the_answer_ends_well_chk7(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(paused(COLD, 0, BEAT * 6.5))
    for wire, seen in watched(gateway):
        assert seen.status == 200
        assert 3 <= len(beats(wire, seen)) <= most(seen), wire
        assert on_time(wire, seen)
        assert seen.gaps[0] > BEAT * 0.9, "the head waits until there is something to say"
        found = read_stream(wire, seen.body)
        assert (found.text, found.error) == (COLD.text, "")


def test_while_the_upstream_gives_no_head_at_all_chk7(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(after(BEAT * 5.5, paused(COLD, 0, 0)))
    for wire, seen in watched(gateway):
        assert 2 <= len(beats(wire, seen)) <= most(seen), wire
        assert read_stream(wire, seen.body).text == COLD.text


def test_in_mid_stream_chk7(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(paused(COLD, 3, BEAT * 5.5))
    for wire, seen in watched(gateway):
        assert 2 <= len(beats(wire, seen)) <= most(seen), wire
        assert on_time(wire, seen)
        assert read_stream(wire, seen.body).text == COLD.text


def steadily(answer: Answer) -> Script:
    """Write without a pause that would call for a keep-alive."""

    async def script(asked: Asked) -> None:
        asked.head()
        for event in STREAMS["openai_chat"](answer).encode().split(b"\n\n")[:-1]:
            await asked.chunk(event + b"\n\n")
            await asyncio.sleep(BEAT / 8)
        await asked.end()

    return script


@pytest.mark.parametrize("release", ["checked", "buffered"])
def test_while_a_call_is_held_chk7(gateway: Served, upstream: ScriptedUpstream, release: str) -> None:
    """The upstream writes all the time; the client may not see it yet."""
    upstream.answers(steadily(Answer(CALL)))
    for wire, seen in watched(gateway, x_toolspeak_mode="force", x_toolspeak_release=release):
        assert len(beats(wire, seen)) >= 2, wire
        assert on_time(wire, seen)
        found = read_stream(wire, seen.body)
        assert [(call.name, call.arguments) for call in found.calls] == [("get_weather", {"city": "Oslo"})]


async def overloaded(asked: Asked) -> None:
    await asked.whole(503, b'{"error": {"message": "the model fell over"}}')


async def reset(asked: Asked) -> None:
    asked.reset()
    await asyncio.sleep(0)


@pytest.mark.parametrize("failure", [overloaded, reset], ids=["503", "reset"])
def test_an_error_after_a_keep_alive_is_the_protocols_own_in_the_stream_p6(
    gateway: Served, upstream: ScriptedUpstream, failure: Script
) -> None:
    upstream.answers(after(BEAT * 3.5, failure))
    for wire, seen in watched(gateway):
        assert seen.status == 200
        assert beats(wire, seen), wire
        assert read_stream(wire, seen.body).error


def test_none_comes_after_the_last_event_chk7(
    gateway: Served, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit: Any = vars(turns)["_Stream"].emit

    async def emit_on_a_busy_machine(stream: Any, events: Sequence[Event]) -> None:  # noqa: ANN401 # it is private
        await emit(stream, events)
        if isinstance(events[-1], Finished):
            await asyncio.sleep(BEAT * 3)  # the response is not ended yet

    monkeypatch.setattr("toolspeak.gateway.turns._Stream.emit", emit_on_a_busy_machine)
    upstream.answers(paused(COLD, 0, 0))
    for wire, seen in watched(gateway):
        assert beats(wire, seen) == [], wire
        assert read_stream(wire, seen.body).text == COLD.text


def test_who_hears_something_anyway_gets_none(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(steadily(Answer("It is cold. " * 5)))
    for wire, seen in watched(gateway):
        assert seen.pieces[-1][0] > BEAT * 2
        assert beats(wire, seen) == [] or max(seen.gaps) > BEAT, wire


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_answer_waits_in_silence(gateway: Served, upstream: ScriptedUpstream, wire: str) -> None:
    async def late(asked: Asked) -> None:
        await asyncio.sleep(BEAT * 2)
        await asked.whole(200, json.dumps(WHOLES["openai_chat"](COLD)).encode())

    upstream.answers(late)
    asked = question(wire)
    reply = gateway.post(asked.path, asked.body)
    assert reply.status == 200
    assert read_whole(wire, reply.body).text == COLD.text


def test_googles_stream_as_an_array_stays_one(gateway: Served, upstream: ScriptedUpstream) -> None:
    """Without `alt=sse` the stream is a JSON array, in which only space says nothing."""
    upstream.answers(paused(COLD, 3, BEAT * 3.5))
    asked = question("gemini", stream=True)
    seen = gateway.watch(asked.path.removesuffix("?alt=sse"), asked.body)
    assert seen.headers["content-type"] == "application/json"
    chunks = json.loads(seen.body)
    assert "".join(part["text"] for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]) == COLD.text
    assert [piece for _, piece in seen.pieces if piece and not piece.strip()]


def test_a_client_that_leaves_while_it_is_kept_alive_is_noticed(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(after(30, paused(COLD, 0, 0)))
    asked = question("openai_chat", stream=True)
    body = json.dumps(asked.body).encode()
    connection = gateway.connect()
    connection.sendall(
        b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (asked.path.encode(), len(body))
    )
    connection.sendall(body)
    assert SSE.encode() in connection.recv(4096)
    connection.close()
    assert upstream.wait_for(1)[0].hung_up.wait(1)
