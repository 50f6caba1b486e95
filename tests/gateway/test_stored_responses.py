"""`previous_response_id` and `item_reference`: responses are stored for their tenant, within bounds (WIRE-8)."""

import json
from collections.abc import Generator
from typing import Any

import pytest
from typing_extensions import override

from testkit.protocols import answering
from testkit.scripted_upstream import ScriptedUpstream
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, key, serving, towards
from toolspeak.config.shape import Responses
from toolspeak.gateway.response_store import ResponseStore
from toolspeak.runtime.clock import Clock
from toolspeak.wires import StoredResponse

Body = dict[str, Any]
OURS, THEIRS = {"authorization": "Bearer sk-ours-key"}, {"authorization": "Bearer sk-their-key"}
TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = Answer(reasoning="Oslo, then.", calls=(("call_1", "get_weather", {"city": "Oslo"}),))
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "3 °C"}


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    keys = (key("sk-ours-key", "ours"), key("sk-their-key", "theirs"))
    with serving(config_of(towards(upstream), keys=keys)) as served:
        yield served


def ask(gateway: Served, upstream: ScriptedUpstream, said: str | Answer, headers: Body = OURS, **body: object) -> Reply:
    upstream.answers(answering(Answer(said) if isinstance(said, str) else said))
    return gateway.post("/v1/responses", {"model": "m", "tools": [TOOL], **body}, headers)


def final(reply: Reply) -> Body:
    """Return the response, also of a stream."""
    assert reply.status == 200, reply.body
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return reply.json
    last = [line for line in reply.body.decode().splitlines() if line.startswith("data: ")][-1]
    return json.loads(last.removeprefix("data: "))["response"]


def sent(upstream: ScriptedUpstream) -> list[tuple[str, object]]:
    """Return the roles and texts of the last request, or the names of the calls."""
    messages: list[Body] = upstream.asked[-1].json["messages"]
    return [
        (one["role"], [call["function"]["name"] for call in one.get("tool_calls") or ()] or one["content"])
        for one in messages
    ]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_conversation_goes_on_by_the_id_of_its_last_response_wire8(
    gateway: Served, upstream: ScriptedUpstream, streams: bool
) -> None:
    first = final(ask(gateway, upstream, CALL, input="Weather in Oslo?", instructions="Be brief.", stream=streams))
    assert (first["store"], first["previous_response_id"]) == (True, None)
    second = final(ask(gateway, upstream, "Cold.", input=[RESULT], previous_response_id=first["id"], stream=streams))
    assert second["previous_response_id"] == first["id"]
    # the instructions of an earlier request do not count, as in OpenAI's API
    history = [("user", "Weather in Oslo?"), ("assistant", ["get_weather"]), ("tool", "3 °C")]
    assert sent(upstream) == history
    final(ask(gateway, upstream, "Wet.", input="And Bergen?", previous_response_id=second["id"], stream=streams))
    assert sent(upstream) == [*history, ("assistant", "Cold."), ("user", "And Bergen?")]
    # a response can be continued twice
    final(ask(gateway, upstream, "Dry.", input="And Rome?", previous_response_id=second["id"], stream=streams))
    assert sent(upstream) == [*history, ("assistant", "Cold."), ("user", "And Rome?")]


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "bare"])
def test_an_item_is_sent_by_its_id_wire8(gateway: Served, upstream: ScriptedUpstream, typed: bool) -> None:
    first = final(ask(gateway, upstream, CALL, input="Weather in Oslo?"))
    kind = {"type": "item_reference"} if typed else {}
    references = [{**kind, "id": item["id"]} for item in first["output"]]
    question = {"role": "user", "content": "Weather in Oslo?"}
    final(ask(gateway, upstream, "Cold.", input=[question, *references, RESULT]))
    assert sent(upstream) == [("user", "Weather in Oslo?"), ("assistant", ["get_weather"]), ("tool", "3 °C")]


def test_no_tenant_reaches_a_response_of_another_wire8_safe6(gateway: Served, upstream: ScriptedUpstream) -> None:
    first = final(ask(gateway, upstream, "Our secret.", input="Say it."))
    item = first["output"][0]["id"]
    refused = ask(gateway, upstream, "", THEIRS, input="And?", previous_response_id=first["id"])
    unknown = ask(gateway, upstream, "", THEIRS, input="And?", previous_response_id="resp_none")
    assert refused.json["error"]["message"].replace(first["id"], "resp_none") == unknown.json["error"]["message"]
    replies = [
        refused,
        ask(gateway, upstream, "", THEIRS, input=[{"type": "item_reference", "id": item}]),
        gateway.ask("GET", f"/v1/responses/{first['id']}", headers=THEIRS),
        gateway.ask("DELETE", f"/v1/responses/{first['id']}", headers=THEIRS),
    ]
    assert [reply.status for reply in replies] == [400, 404, 404, 404]
    assert not any(b"secret" in reply.body for reply in replies)
    assert not upstream.asked
    assert gateway.ask("GET", f"/v1/responses/{first['id']}", headers=OURS).json == first


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_unknown_id_is_the_error_of_openai_wire8(gateway: Served, upstream: ScriptedUpstream, streams: bool) -> None:
    reply = ask(gateway, upstream, "", input="And?", previous_response_id="resp_123", stream=streams)
    assert (reply.status, reply.json["error"]) == (
        400,
        {
            "message": "Previous response with id 'resp_123' not found.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        },
    )
    reply = ask(gateway, upstream, "", input=[{"type": "item_reference", "id": "msg_1_0"}], stream=streams)
    assert (reply.status, reply.json["error"]["param"]) == (404, "input")
    assert reply.json["error"]["message"].startswith("Item with id 'msg_1_0' not found.")
    assert not upstream.asked


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_what_is_not_to_be_stored_is_not_wire8(gateway: Served, upstream: ScriptedUpstream, streams: bool) -> None:
    first = final(ask(gateway, upstream, "Cold.", input="Oslo?", store=False, stream=streams))
    assert first["store"] is False
    assert ask(gateway, upstream, "", input="And?", previous_response_id=first["id"]).status == 400
    assert gateway.ask("GET", f"/v1/responses/{first['id']}", headers=OURS).status == 404


def test_a_response_is_read_and_deleted_wire8(gateway: Served, upstream: ScriptedUpstream) -> None:
    first = final(ask(gateway, upstream, "Cold.", input="Oslo?", stream=True))
    path = f"/v1/responses/{first['id']}"
    assert gateway.ask("GET", path, headers=OURS).json == first
    deleted = gateway.ask("DELETE", path, headers=OURS)
    assert deleted.json == {"id": first["id"], "object": "response", "deleted": True}
    assert gateway.ask("GET", path, headers=OURS).json["error"]["code"] == "response_not_found"


def test_a_failed_turn_leaves_nothing_behind_wire8(gateway: Served, upstream: ScriptedUpstream) -> None:
    reply = ask(gateway, upstream, Answer("Half", error="the model is gone"), input="Oslo?", stream=True)
    events = [json.loads(line[6:]) for line in reply.body.decode().splitlines() if line.startswith("data: {")]
    created = next(event["response"]["id"] for event in events if event["type"] == "response.created")
    assert gateway.ask("GET", f"/v1/responses/{created}", headers=OURS).status == 404


def test_without_a_store_the_wire_says_what_to_do_wire8(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream), responses=Responses(entries=0))) as gateway:
        first = final(ask(gateway, upstream, "Cold.", {}, input="Oslo?"))
        reply = ask(gateway, upstream, "", {}, input="And?", previous_response_id=first["id"])
    assert first["store"] is False
    assert (reply.status, reply.json["error"]["param"]) == (400, "previous_response_id")
    assert "send the whole conversation" in reply.json["error"]["message"]


@pytest.mark.parametrize("value", [7, ["resp_1"], {"id": "resp_1"}])
def test_an_id_that_is_none_is_refused(gateway: Served, upstream: ScriptedUpstream, value: object) -> None:
    reply = ask(gateway, upstream, "", input="And?", previous_response_id=value)
    assert (reply.status, reply.json["error"]["param"]) == (400, "previous_response_id")


# ---------------------------------------------------------------- bounds


class Hand(Clock):
    """A clock that stands until it is moved."""

    at = 0.0

    @override
    def monotonic(self) -> float:
        return self.at


def stored(store: ResponseStore, *sizes: int) -> str:
    """Keep responses a, b, c … of these sizes, and return the ids that are still there."""
    names = "abcdefgh"[: len(sizes)]
    for name, size in zip(names, sizes, strict=True):
        store.keep("ours", name, StoredResponse(b"x" * (size - 1), b"y"))
    return "".join(name for name in names if store.finder("ours")(name) is not None)


@pytest.mark.parametrize(("count", "left"), [(2, "ab"), (3, "abc"), (4, "bcd")])
def test_a_tenant_has_so_many_responses_p7(count: int, left: str) -> None:
    assert stored(ResponseStore(Responses(entries=3), Hand()), *[10] * count) == left


@pytest.mark.parametrize(("last", "left"), [(9, "abc"), (10, "abc"), (11, "bc"), (30, "c"), (31, "")])
def test_a_tenant_has_so_many_bytes_p7(last: int, left: str) -> None:
    assert stored(ResponseStore(Responses(bytes=30), Hand()), 10, 10, last) == left


def test_the_responses_of_one_tenant_drop_none_of_another_p7() -> None:
    store = ResponseStore(Responses(entries=2), Hand())
    store.keep("theirs", "z", StoredResponse(b"[]", b"{}"))
    stored(store, 10, 10, 10, 10)
    assert store.finder("theirs")("z") is not None
    assert store.finder("ours")("z") is None


def test_a_response_expires_p7() -> None:
    clock = Hand()
    store = ResponseStore(Responses(seconds=60), clock)
    assert stored(store, 10) == "a"
    clock.at = 59.9
    assert store.finder("ours")("a") is not None
    clock.at = 60.0
    assert store.finder("ours")("a") is None
    assert store.drop("ours", "a") is False
