"""Whatever goes wrong upstream ends in the client protocol's own error, with a status that is true (WIRE-5, P6)."""

import asyncio
import json
import socket
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

from testkit.grammar import read_stream, read_whole
from testkit.protocols import WIRES, answering, error_faults, message_of, question
from testkit.scripted_upstream import SSE, Asked, Script, ScriptedUpstream, hang, listening, refuse, say
from testkit.vendor_answers import STREAMS, WHOLES, Answer
from tests.gateway.scene import Reply, Served, config_of, serving, towards
from toolspeak.runtime.transport import Timeouts

COLD = Answer("It is cold.")
CHAT = STREAMS["openai_chat"](COLD).encode()
WHOLE = json.dumps(WHOLES["openai_chat"](COLD)).encode()


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    with serving(config_of(towards(upstream, retries=0))) as served:
        yield served


def asked_both(gateway: Served, wire: str, **headers: str) -> Generator[tuple[bool, Reply]]:
    """Ask for a stream, and for a whole answer."""
    for stream in (True, False):
        asked = question(wire, stream=stream)
        yield stream, gateway.post(asked.path, asked.body, headers)


def said(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "t", "param": None, "code": None}}


async def reset(asked: Asked) -> None:
    asked.reset()
    await asyncio.sleep(0)


async def close(asked: Asked) -> None:
    asked.close()
    await asyncio.sleep(0)


async def reset_after_head(asked: Asked) -> None:
    asked.head()
    await asked.writer.drain()
    await asyncio.sleep(0.05)
    asked.reset()


async def nothing(asked: Asked) -> None:
    asked.head()
    await asked.end()


BEFORE: dict[str, tuple[Script, int, str | None]] = {
    "400": (refuse(400, said("temperature must be at most 2")), 400, None),
    "401": (refuse(401, said("bad key")), 401, None),
    "403": (refuse(403, said("not yours")), 403, None),
    "404": (refuse(404, said("model m not found")), 404, None),
    "413": (refuse(413, said("too large")), 413, None),
    "429 with a pause": (refuse(429, said("slow down"), [("retry-after", "7")]), 429, "true"),
    "429 without": (refuse(429, said("slow down")), 429, None),
    "429 with a date": (refuse(429, said("slow"), [("retry-after", "Fri, 31 Dec 2027 23:59:59 GMT")]), 429, None),
    "503": (refuse(503, said("overloaded")), 503, "true"),
    "503 with a pause": (refuse(503, said("overloaded"), [("retry-after", "3")]), 503, "true"),
    "500 that says nothing": (refuse(500, b""), 500, "true"),
    "500 in a page": (say(b"<html><h1>Oops</h1></html>", "text/html", 500), 500, "true"),
    "a redirect": (refuse(302, b"", [("location", "http://127.0.0.1:1/v1")]), 502, "false"),
    "no answer": (close, 502, "true"),
    "a reset": (reset, 502, "true"),
    "a reset after the head": (reset_after_head, 502, "true"),
    "an empty answer": (nothing, 502, "true"),
    "an error larger than any": (refuse(500, b'"' + b"x" * (2 << 20)), 500, "true"),
    "a page": (say(b"<html>Welcome to nginx!</html>", "text/html"), 502, None),
    "no JSON": (say(b'{"choices": [', "application/json"), 502, None),
    "JSON that is no answer": (say(b"[1, 2, 3]", "application/json"), 502, None),
    "an error in a 200": (say(json.dumps(said("the model fell over")).encode(), "application/json"), 502, None),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", BEFORE.values(), ids=BEFORE.keys())
def test_an_error_before_the_first_byte_is_a_plain_one_wire5(
    gateway: Served, upstream: ScriptedUpstream, wire: str, case: tuple[Script, int, str | None]
) -> None:
    script, status, again = case
    upstream.answers(script)
    wanted = 529 if (status, wire) == (503, "anthropic") else status
    for stream, reply in asked_both(gateway, wire):
        assert reply.status == wanted, (stream, reply)
        assert reply.headers["content-type"] == "application/json"
        assert error_faults(wire, wanted, reply.json) == []
        assert message_of(wire, reply.json)
        if again or status < 500:
            assert reply.headers.get("x-should-retry") == again, (stream, reply)
        else:
            assert reply.headers["x-should-retry"] in ("true", "false")
    assert len(upstream.asked) == 2


@pytest.mark.parametrize("wire", WIRES)
def test_a_pause_that_the_upstream_asks_for_reaches_the_client_wire5(
    gateway: Served, upstream: ScriptedUpstream, wire: str
) -> None:
    for said_so, heard in (("7", "7"), ("0", "1"), ("86400", "86400")):
        upstream.answers(refuse(429, said("slow down"), [("retry-after", said_so)]))
        assert [reply.headers["retry-after"] for _, reply in asked_both(gateway, wire)] == [heard, heard]
    upstream.answers(refuse(429, said("Rate limit reached, please try again in 1m30s")))
    assert [reply.headers["retry-after"] for _, reply in asked_both(gateway, wire)] == ["90", "90"]
    upstream.answers(refuse(429, said("slow down")))
    assert ["retry-after" in reply.headers for _, reply in asked_both(gateway, wire)] == [False, False]


def test_the_words_of_the_upstream_reach_the_client_wire5(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(refuse(400, said("temperature must be at most 2")))
    for wire in WIRES:
        for _, reply in asked_both(gateway, wire):
            assert "temperature must be at most 2" in message_of(wire, reply.json)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_safe6(gateway: Served, upstream: ScriptedUpstream, status: int) -> None:
    """It could lead our key to somebody else, or a question to another place of the same server."""
    with listening() as bait:
        bait.answers(answering(COLD))
        for target in (f"{bait.url}/chat/completions", "/v1/elsewhere"):
            upstream.answers(refuse(status, b"", [("location", target)]))
            assert [reply.status for _, reply in asked_both(gateway, "openai_chat")] == [502, 502]
            assert [asked.path for asked in upstream.asked] == ["/v1/chat/completions"] * 2
        assert not bait.asked
        assert not bait.listings


# ---------------------------------------------------------------- in mid-stream


def begun(ending: Script) -> Script:
    """Say half of the text, and then this."""

    async def script(asked: Asked) -> None:
        asked.head()
        await asked.chunk(b"\n\n".join(CHAT.split(b"\n\n")[:3]) + b"\n\n")
        await asyncio.sleep(0.02)
        await ending(asked)

    return script


async def rubbish(asked: Asked) -> None:
    await asked.chunk(b"data: {this is not JSON}\n\n")
    await asked.end()


async def clean_end(asked: Asked) -> None:
    await asked.end()


async def half_a_line(asked: Asked) -> None:
    await asked.chunk(b'data: {"choices": [{"index": 0, "delta": {"cont')
    await asked.end()


async def error_event(asked: Asked) -> None:
    await asked.chunk(b'data: {"error": {"message": "the model fell over", "type": "server_error"}}\n\n')
    await asked.end()


async def endless_line(asked: Asked) -> None:
    await asked.chunk(b"data: ")
    for _ in range(40):
        await asked.chunk(b"x" * (1 << 18))
    await asked.end()


ENDINGS: dict[str, Script] = {
    "a reset": reset,
    "closed": close,
    "an end without an end": clean_end,
    "rubbish": rubbish,
    "half a line": half_a_line,
    "an error": error_event,
    "a line without end": endless_line,
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_an_error_in_mid_stream_is_the_protocols_own_p6(
    gateway: Served, upstream: ScriptedUpstream, wire: str, ending: Script
) -> None:
    upstream.answers(begun(ending))
    asked = question(wire, stream=True)
    reply = gateway.post(asked.path, asked.body)
    assert reply.status == 200
    found = read_stream(wire, reply.body)
    assert found.error
    assert found.text.startswith("It")
    assert len(upstream.asked) == 1, "what was seen cannot be asked for again"


@pytest.mark.parametrize("wire", WIRES)
def test_half_an_answer_is_no_whole_one_p6(gateway: Served, upstream: ScriptedUpstream, wire: str) -> None:
    async def half(asked: Asked) -> None:
        asked.head(200, "application/json", length=len(WHOLE))
        asked.writer.write(WHOLE[:100])
        await asked.writer.drain()
        asked.close()

    upstream.answers(half)
    asked = question(wire)
    reply = gateway.post(asked.path, asked.body)
    assert (reply.status, error_faults(wire, 502, reply.json)) == (502, [])


# ---------------------------------------------------------------- another form than asked for


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("media_type", ["application/json", "application/json; charset=utf-8"])
def test_a_whole_answer_instead_of_a_stream_is_streamed(
    gateway: Served, upstream: ScriptedUpstream, wire: str, media_type: str
) -> None:
    upstream.answers(say(WHOLE, media_type))
    asked = question(wire, stream=True)
    found = read_stream(wire, gateway.post(asked.path, asked.body).body)
    assert (found.text, found.error) == (COLD.text, "")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("media_type", [SSE, "Text/Event-Stream; charset=utf-8"])
def test_a_stream_instead_of_a_whole_answer_is_collected(
    gateway: Served, upstream: ScriptedUpstream, wire: str, media_type: str
) -> None:
    upstream.answers(say(CHAT, media_type))
    asked = question(wire)
    assert read_whole(wire, gateway.post(asked.path, asked.body).body).text == COLD.text


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/octet-stream"])
def test_a_stream_under_a_strange_name_is_still_one(
    gateway: Served, upstream: ScriptedUpstream, media_type: str
) -> None:
    upstream.answers(say(CHAT, media_type))
    asked = question("anthropic", stream=True)
    assert read_stream("anthropic", gateway.post(asked.path, asked.body).body).text == COLD.text


def test_an_answer_larger_than_any_is_given_up_p7(gateway: Served, upstream: ScriptedUpstream) -> None:
    async def endless(asked: Asked) -> None:
        asked.head(200, "application/json")
        while not asked.hung_up.is_set():
            await asked.chunk(b" " * (1 << 20))

    upstream.answers(endless)
    asked = question("openai_chat")
    assert gateway.post(asked.path, asked.body).status == 502
    assert upstream.asked[0].hung_up.wait(10)


# ---------------------------------------------------------------- nobody there, or too late


@pytest.mark.parametrize("wire", WIRES)
def test_nobody_listens_wire5(wire: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with listening() as upstream:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
            with serving(config_of(towards(upstream, url=url, retries=0))) as gateway:
                for _, reply in asked_both(gateway, wire):
                    assert (reply.status, reply.headers["x-should-retry"]) == (502, "true")
                    assert error_faults(wire, 502, reply.json) == []
                    assert "no connection" in message_of(wire, reply.json)


def test_nobody_takes_the_connection_wire5() -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(2):  # now its queue is full, and the next one is not even refused
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        upstream = stack.enter_context(listening())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        timeouts = Timeouts(connect=0.3)
        gateway = stack.enter_context(serving(config_of(towards(upstream, url=url, retries=0, timeouts=timeouts))))
        asked = question("openai_chat")
        reply = gateway.post(asked.path, asked.body)
        assert (reply.status, reply.headers["x-should-retry"]) == (504, "true")
        assert "timeouts.connect" in message_of("openai_chat", reply.json)


async def head_then_nothing(asked: Asked) -> None:
    asked.head()
    await hang(asked)


@pytest.mark.parametrize("script", [hang, head_then_nothing], ids=["no head", "no byte"])
def test_an_upstream_that_says_nothing_is_given_up_wire5(upstream: ScriptedUpstream, script: Script) -> None:
    upstream.answers(script)
    timeouts = Timeouts(first_byte=0.2, total=0.4)  # a whole answer has its first byte at its end
    with serving(config_of(towards(upstream, timeouts=timeouts))) as gateway:
        for wire in WIRES:
            for stream, reply in asked_both(gateway, wire):
                assert (reply.status, reply.headers["x-should-retry"]) == (504, "true")
                assert error_faults(wire, 504, reply.json) == []
                assert ("timeouts.first_byte" if stream else "timeouts.") in message_of(wire, reply.json)
    assert len(upstream.asked) == 10, "it may be at work: to ask again would only add to that"
    assert all(asked.hung_up.wait(10) for asked in upstream.asked)


def test_an_upstream_that_stops_is_given_up_p6(upstream: ScriptedUpstream) -> None:
    upstream.answers(begun(hang))
    with serving(config_of(towards(upstream, timeouts=Timeouts(idle=0.2)))) as gateway:
        for wire in WIRES:
            asked = question(wire, stream=True)
            found = read_stream(wire, gateway.post(asked.path, asked.body).body)
            assert "timeouts.idle" in found.error
    assert all(asked.hung_up.wait(10) for asked in upstream.asked)


def test_an_upstream_that_never_ends_is_given_up_p6(upstream: ScriptedUpstream) -> None:
    async def drip(asked: Asked) -> None:
        while not asked.hung_up.is_set():
            await asked.chunk(CHAT.split(b"\n\n")[1] + b"\n\n")
            await asyncio.sleep(0.02)

    upstream.answers(begun(drip))
    with serving(config_of(towards(upstream, timeouts=Timeouts(total=0.5)))) as gateway:
        asked = question("anthropic", stream=True)
        found = read_stream("anthropic", gateway.post(asked.path, asked.body).body)
        assert "timeouts.total" in found.error
