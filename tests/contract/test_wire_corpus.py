"""The cases of the failure corpus that are the wires' own: errors, histories, native streams, ends."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from testkit import golden
from testkit.grammar import read_stream
from toolspeak import wires
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.quirks import QUIRKS, IdForm, Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import fold
from toolspeak.wires import Stamp

Case = dict[str, Any]

CASES: dict[str, Case] = {
    case["id"]: case for case in map(json.loads, (golden.CASES / "failures.jsonl").read_text().splitlines())
}
STAMP = Stamp("abc", 1)
CLASSIFIED = [id for id, case in CASES.items() if case["dialect_hint"] == "http_error"]
ORDERED = [id for id, case in CASES.items() if "events" in case["expect"]]
CUT = [id for id, case in CASES.items() if case["group"] == "disconnect" and case.get("stream_end") == "reset"]


def ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def named(prefix: str) -> Case:
    return next(case for id, case in CASES.items() if id.startswith(prefix))


@pytest.mark.parametrize("id", CLASSIFIED)
def test_an_upstreams_error_is_of_the_right_kind_wire5(id: str) -> None:
    case = CASES[id]
    failure = wires.load("openai_chat").decode_failure(case["http_status"], case["raw_output"].encode())
    assert failure.kind == case["expect"]["classify"]
    for name in wires.names():
        said = wires.load(name).encode_failure(failure, STAMP)
        assert said.status >= 400
        assert failure.message in json.dumps(json.loads(said.body), ensure_ascii=False).replace('\\"', '"')


def native(case: Case) -> list[Event]:
    tools = tuple(Tool(tool["name"]) for tool in case["tools"])
    decoder = wires.load("openai_chat").new_decoder(Request("m", (), tools), ids())
    events: list[Event] = []
    for delta in case["native_deltas"]:
        body: Case = {"tool_calls": delta} if isinstance(delta, list) else delta
        choice = {"index": 0, "delta": body, "finish_reason": body.get("finish_reason")}
        events += decoder.feed(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
    return events + decoder.finish()


@pytest.mark.parametrize("id", ORDERED)
def test_the_events_of_a_native_stream_leave_in_order_wire3(id: str) -> None:
    data = wires.load("anthropic").new_encoder(Request("m", ()), STAMP).encode(native(CASES[id]))
    read_stream("anthropic", data)
    assert list(outlined(data)) == CASES[id]["expect"]["events"]


def outlined(data: bytes) -> Iterator[str]:
    """Say in short what each event of an Anthropic stream is."""
    for frame in data.decode().split("\n\n")[:-1]:
        body = json.loads(frame.partition("data: ")[2])
        words = [body["type"], *([str(body["index"])] if "index" in body else [])]
        if "content_block" in body:
            words.append(body["content_block"]["type"])
        if "delta" in body:
            words.append(body["delta"].get("type", "").removesuffix("_delta") or body["delta"]["stop_reason"])
        yield ":".join(words)


@pytest.mark.parametrize("id", CUT)
@pytest.mark.parametrize("client", wires.names())
def test_a_broken_connection_ends_in_the_clients_own_error_p6(id: str, client: str) -> None:
    decoder = wires.load("openai_chat").new_decoder(Request("m", ()), ids())
    events = decoder.feed(CASES[id]["raw_output"].encode()) + decoder.finish()
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.failure.kind is FailureKind.DISCONNECTED
    assert fold(events).text == CASES[id]["expect"]["text"]
    if len(events) > 1:
        assert read_stream(client, wires.load(client).new_encoder(Request("m", ()), STAMP).encode(events)).error
    else:
        assert wires.load(client).encode_failure(last.failure, STAMP).status == 502


def chat_history(case: Case, quirks: Quirks = QUIRKS, upstream: str = "openai_chat") -> Case:
    body = json.dumps({"model": "m", "messages": case["messages"]}).encode()
    request = wires.load("openai_chat").decode_request(body, "")
    return json.loads(wires.load(upstream).encode_request(request, quirks).body)


@pytest.mark.parametrize(
    ("prefix", "form", "id"), [("id-001", IdForm.MISTRAL, None), ("id-002", IdForm.KIMI, "functions.shell:0")]
)
def test_ids_are_those_that_the_upstream_wants_wire6(prefix: str, form: IdForm, id: str | None) -> None:
    call, result = chat_history(named(prefix), Quirks(ids=form))["messages"]
    written = call["tool_calls"][0]["id"]
    assert written == result["tool_call_id"] == (id or written)
    assert form is not IdForm.MISTRAL or (len(written) == 9 and written.isalnum())


def test_a_call_without_result_gets_an_error_before_the_user_speaks_id_004() -> None:
    messages = chat_history(named("id-004"))["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user"]
    assert [message.get("tool_call_id") for message in messages[1:3]] == ["a", "b"]


def test_text_between_call_and_result_comes_before_the_call_id_005() -> None:
    said, result = chat_history(named("id-005"))["messages"]
    assert (said["content"], said["tool_calls"][0]["id"], result["content"]) == ("Running it now.", "a", "x")


def test_results_are_one_turn_in_the_order_of_the_calls_id_006() -> None:
    contents = chat_history(named("id-006"), upstream="gemini")["contents"]
    responses = [part["functionResponse"]["response"] for part in contents[1]["parts"]]
    assert [json.dumps(response) for response in responses] == ['{"output": "1"}', '{"output": "2"}']


def test_the_signature_of_a_call_goes_back_with_it_id_007() -> None:
    gemini = wires.load("gemini")
    part: Case = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    answer: Case = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    turn = fold(gemini.decode_turn(Request("m", ()), ids(), json.dumps(answer).encode()))
    said = Message(Role.ASSISTANT, tuple(part for part in turn.parts if isinstance(part, Reasoning | Call)))
    (call,) = turn.calls
    request = Request("m", (said, Message(Role.TOOL, (Result(call.id, (Text("x"),), "f"),))))
    contents = json.loads(gemini.encode_request(request, QUIRKS).body)["contents"]
    assert "c2ln" in [part.get("thoughtSignature") for content in contents for part in content["parts"]]


@pytest.mark.parametrize(("quirks", "content"), [(QUIRKS, None), (Quirks(null_content=False), "")])
def test_a_message_that_only_calls_has_the_empty_text_that_the_upstream_takes_id_008(
    quirks: Quirks, content: str | None
) -> None:
    assert chat_history(named("id-008"), quirks)["messages"][0]["content"] == content


def test_an_object_as_a_result_is_its_json_ro_003() -> None:
    orphan = {**named("ro-003")["messages"][0]}
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
    assert chat_history({"messages": [call, orphan]})["messages"][1]["content"] == '{"ok":true,"n":2}'


def test_fresh_ids_never_collide_with_those_of_the_request_id_003() -> None:
    used = Message(Role.ASSISTANT, (Call("fresh0", "f", "{}"),))
    decoder = wires.load("openai_chat").new_decoder(Request("m", (used,), (Tool("f"),)), ids())
    call = {"index": 0, "function": {"name": "f", "arguments": "{}"}}
    events = decoder.feed(f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [call]}}]})}\n\n".encode())
    assert [call.id for call in fold(events + decoder.feed(b"data: [DONE]\n\n")).calls] == ["fresh1"]
