"""What a client gets: chunks as they arrive, whole answers, errors of its own library; and what its leaving frees."""

import asyncio
import json
import threading

import pytest

from testkit.scripted_upstream import JSON, Asked, hang, listening, refuse, say
from testkit.vendor_answers import WHOLES, Answer
from tests.transport.scene import END, KINDS, WAIT_S, Kind, body, delta, says_and_hangs, streamed, text_of
from toolspeak import Mode, Settings

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
CHUNK = 32 * 1024
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@EACH
def test_a_chunk_arrives_while_the_upstream_holds_the_next_one(kind: Kind) -> None:
    go_on = threading.Event()

    async def holds(asked: Asked) -> None:
        asked.head()
        await asked.chunk(delta("first "))
        await asyncio.to_thread(go_on.wait, WAIT_S)
        await asked.chunk(delta("second") + END)
        await asked.end()

    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(holds)
        reply = client.open(body())
        first = reply.chunk()
        assert text_of(first) == "first "
        go_on.set()
        assert text_of(first + reply.rest()) == "first second"


@EACH
def test_a_whole_answer_arrives_with_its_length(kind: Kind) -> None:
    whole = json.dumps(WHOLES["openai_chat"](Answer("It is cold."))).encode()
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(say(whole, JSON))
        reply = client.open(body(stream=False))
        data = reply.rest()
        assert reply.response.status_code == 200
        assert int(reply.response.headers["content-length"]) == len(data)
        assert json.loads(data)["choices"][0]["message"]["content"] == "It is cold."


@EACH
def test_a_model_without_tool_calling_calls_a_tool(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream, settings=Settings(mode=Mode.FORCE)) as client:
        upstream.answers(
            streamed('<tool_call>\n{"name": "get_weather", ', '"arguments": {"city": "Oslo"}}\n</tool_call>')
        )
        data = client.open(body(tools=[TOOL])).rest().decode()
        assert '"name":"get_weather"' in data
        assert '"finish_reason":"tool_calls"' in data
        assert "tools" not in upstream.asked[0].json


@EACH
@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages", "/nowhere"])
def test_an_error_has_the_form_of_the_clients_protocol(kind: Kind, path: str) -> None:
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(refuse(400, {"error": {"message": "too long", "type": "invalid_request_error"}}))
        reply = client.open({"model": "m"}, path)
        assert reply.response.status_code in (400, 404)
        assert json.loads(reply.rest())["error"]["message"]


@EACH
def test_an_upstream_that_is_down_is_an_error_response(kind: Kind) -> None:
    with kind.client("http://127.0.0.1:9/v1") as client:
        reply = client.open(body())
        assert reply.response.status_code == 502
        assert "127.0.0.1:9" in json.loads(reply.rest())["error"]["message"]


@EACH
def test_a_client_that_closes_its_response_frees_the_upstream(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(says_and_hangs)
        reply = client.open(body())
        assert reply.chunk()
        reply.close()
        assert upstream.asked[0].hung_up.wait(WAIT_S)


@EACH
def test_the_read_timeout_is_the_clients_own_and_frees_the_upstream(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(streamed("warm"))
        client.open(body()).rest()
        upstream.answers(hang)
        with pytest.raises(kind.module.ReadTimeout, match=r"0\.2 s"):
            client.open(body(), timeout=0.2)
        assert upstream.wait_for(1)[0].hung_up.wait(WAIT_S)


@EACH
def test_the_read_timeout_applies_to_each_chunk(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(says_and_hangs)
        reply = client.open(body(), timeout=5.0)
        assert reply.chunk()
        with pytest.raises(kind.module.ReadTimeout):
            reply.rest()
        assert upstream.asked[0].hung_up.wait(WAIT_S)


@EACH
def test_a_client_that_does_not_read_holds_the_upstream_back(kind: Kind) -> None:
    """64 MB would fit in memory, not into the buffers between two sockets and two programs."""
    sent, most = [0], 2048

    async def floods(asked: Asked) -> None:
        asked.head()
        for _ in range(most):
            await asked.chunk(delta("x" * CHUNK))
            sent[0] += 1
        await asked.chunk(END)
        await asked.end()

    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(floods)
        reply = client.open(body())
        read = len(text_of(reply.chunk()))
        held = stalled(sent)
        assert held < most // 4, "the upstream was not held back"
        reply.close()
        assert upstream.asked[0].hung_up.wait(WAIT_S)
        assert read <= held * CHUNK


def stalled(sent: list[int]) -> int:
    """Return how many chunks were sent when no more were for a second."""
    before = -1
    while before != sent[0]:
        before = sent[0]
        threading.Event().wait(1.0)
    return before


@EACH
def test_a_slow_reader_gets_every_byte(kind: Kind) -> None:
    texts = [f"{number:04}" + "x" * CHUNK for number in range(64)]
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(streamed(*texts))
        reply = client.open(body())
        threading.Event().wait(0.5)
        assert text_of(reply.rest()) == "".join(texts)


@EACH
def test_a_stream_that_breaks_off_is_an_error_of_its_protocol(kind: Kind) -> None:
    async def breaks(asked: Asked) -> None:
        asked.head()
        await asked.chunk(delta("first "))
        asked.reset()

    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(breaks)
        data = client.open(body()).rest()
        assert text_of(data.partition(b'data: {"error"')[0]) == "first "
        assert b'"error"' in data


@EACH
def test_an_application_that_crashes_is_an_error_of_the_library(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolspeak.gateway.app import Gateway  # noqa: PLC0415 # only this test breaks it

    async def crash(*_: object) -> None:
        raise ZeroDivisionError("scripted")

    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(streamed("well"))
        assert text_of(client.open(body()).rest()) == "well"
        monkeypatch.setattr(Gateway, "handle", crash)
        with pytest.raises(kind.module.RemoteProtocolError, match="scripted") as raised:
            client.open(body())
        assert raised.value.request.method == "POST"
        monkeypatch.undo()
        assert text_of(client.open(body()).rest()) == "well"


@EACH
def test_a_forwarded_response_that_breaks_off_is_an_error_of_the_library(kind: Kind) -> None:
    async def breaks(asked: Asked) -> None:
        asked.head(200, JSON, length=1000)
        asked.writer.write(b"half")
        await asked.writer.drain()
        await asyncio.sleep(0.1)
        asked.close()

    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(breaks)
        reply = client.open({"model": "m", "input": "x"}, "/embeddings")
        with pytest.raises(kind.module.RemoteProtocolError):
            reply.rest()


@EACH
def test_a_request_of_another_library_is_refused(kind: Kind) -> None:
    with kind.client("http://127.0.0.1:9/v1") as client:
        transport = client.client._transport
        with pytest.raises(TypeError, match="not object"):
            client.loop.run(transport.handle_async_request(object())) if kind.is_async else transport.handle_request(
                object()
            )
