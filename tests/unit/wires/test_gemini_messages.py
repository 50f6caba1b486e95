"""What the messages of Gemini's clients say, and that it goes on as it came."""

import json
from typing import Any

import pytest

from toolspeak.errors import BadField
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, Role, Text, Vendor
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.ir.request import Request
from toolspeak.wires import load

WIRE = load("gemini")
Body = dict[str, Any]
PNG = {"mimeType": "image/png", "data": "iVBORw0KGgoAAA"}


def decode(**body: object) -> Request:
    return WIRE.decode_request(json.dumps(body).encode(), "/v1beta/models/m:generateContent")


def encode(request: Request) -> Body:
    return json.loads(WIRE.encode_request(request, QUIRKS).body)


def again(**body: object) -> Body:
    return encode(decode(**body))


def parts_of(*parts: Body, role: str = "user") -> tuple[Part, ...]:
    messages = decode(contents=[{"role": role, "parts": list(parts)}]).messages
    return tuple(part for message in messages for part in message.parts)


def parts_again(*parts: Body, role: str = "user") -> list[Body]:
    (content,) = again(contents=[{"role": role, "parts": list(parts)}])["contents"]
    assert content["role"] == role
    return content["parts"]


def call(name: str = "f", id: str = "", **args: object) -> Body:
    return {"functionCall": {"name": name, "args": args} | ({"id": id} if id else {})}


def answer(response: Body, name: str = "f", id: str = "", **more: object) -> Body:
    return {"functionResponse": {"name": name, "response": response, **more} | ({"id": id} if id else {})}


def history(*pairs: tuple[str, list[Body]]) -> tuple[Message, ...]:
    return decode(contents=[{"role": role, "parts": parts} for role, parts in pairs]).messages


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    "system",
    [
        "Be kind.",
        {"parts": [{"text": "Be kind."}]},
        {"parts": {"text": "Be kind."}},
        {"role": "user", "parts": [{"text": "Be kind."}]},
        {"text": "Be kind."},
    ],
)
def test_the_system_speaks_in_any_form(system: object) -> None:
    for key in ("systemInstruction", "system_instruction"):
        request = decode(**{key: system}, contents=[])
        assert [(message.role, message.parts) for message in request.messages] == [(Role.SYSTEM, (Text("Be kind."),))]
        assert encode(request)["systemInstruction"]["parts"] == [{"text": "Be kind."}]


def test_no_system_is_none() -> None:
    assert decode(systemInstruction="", contents=[]).messages == ()
    assert "systemInstruction" not in again(contents=[])


def test_what_other_systems_say_is_put_together() -> None:
    said = (Message(Role.SYSTEM, (Text("a"),)), Message(Role.USER, (Text("b"),)), Message(Role.SYSTEM, (Text("c"),)))
    body = encode(Request("m", said))
    assert body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "c"}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "b"}]}]


def test_contents_have_a_role_or_are_the_users_and_may_stand_alone() -> None:
    assert decode(contents={"parts": {"text": "hi"}}).messages == (Message(Role.USER, (Text("hi"),)),)
    assert decode(contents=[{"role": "model", "parts": [{"text": "hi"}]}]).messages[0].role is Role.ASSISTANT
    empty: list[Body] = [{"role": "user"}, {"role": "user", "parts": []}]
    assert decode(contents=empty).messages == ()


def test_an_unknown_role_is_named() -> None:
    contents: list[Body] = [{"parts": []}, {"role": "system", "parts": []}]
    with pytest.raises(BadField) as error:
        decode(contents=contents)
    assert error.value.field == "contents[1].role"


def test_a_message_that_says_nothing_is_left_out() -> None:
    for nothing in ((), (Text(""),), (Reasoning(""),)):
        said = (Message(Role.USER, (Text("a"),)), Message(Role.ASSISTANT, nothing), Message(Role.USER, (Text("b"),)))
        contents = encode(Request("m", said))["contents"]
        assert contents == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]


def test_turns_alternate() -> None:
    said = [{"role": "user", "parts": [{"text": "a"}]}, {"parts": [{"text": "b"}]}]
    assert again(contents=said)["contents"] == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]


def test_a_thought_is_reasoning_wire7() -> None:
    thought = {"text": "Hm", "thought": True}
    assert parts_of(thought, role="model") == (Reasoning("Hm"),)
    assert parts_again(thought, role="model") == [thought]


def test_the_signature_of_a_call_stands_before_it() -> None:
    signed = call(city="Oslo") | {"thought_signature": "c2ln"}
    signature, called = parts_of(signed, role="model")
    assert signature == Reasoning("", "c2ln")
    assert called == Call("call_0", "f", '{"city":"Oslo"}')


SIGNED: dict[str, list[Body]] = {
    "on the call": [call("f", "a") | {"thoughtSignature": "c2ln"}, call("g", "b")],
    "behind a thought": [{"text": "Hm", "thought": True}, call("f", "a") | {"thoughtSignature": "c2ln"}],
    "on the thought": [{"text": "Hm", "thought": True, "thoughtSignature": "c2ln"}, call("f", "a")],
    "on the text": [{"text": "Hm", "thoughtSignature": "c2ln"}, call("f", "a")],
    "on both": [{"text": "Hm", "thoughtSignature": "YQ=="}, call("f", "a") | {"thoughtSignature": "c2ln"}],
    "on nothing": [{"text": "Hm"}, {"text": "", "thoughtSignature": "c2ln"}],
    "skipped": [call("f", "a") | {"thoughtSignature": "skip_thought_signature_validator"}],
}


@pytest.mark.parametrize("name", SIGNED)
def test_signatures_come_back_where_they_stood(name: str) -> None:
    body = again(contents=[{"role": "model", "parts": SIGNED[name]}])
    assert body["contents"][0] == {"role": "model", "parts": SIGNED[name]}


def test_calls_of_other_models_are_marked_on_the_first_of_a_turn() -> None:
    turn = Message(Role.ASSISTANT, (Text("Hm"), Call("a", "f", "{}"), Call("b", "f", "{}")))
    parts = encode(Request("m", (turn,)))["contents"][0]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [None, "skip_thought_signature_validator", None]


@pytest.mark.parametrize("thought", [Reasoning("Hm", "c2ln"), Reasoning("", "c2ln")])
def test_a_signature_of_another_wire_goes_to_the_call_behind_it(thought: Reasoning) -> None:
    turn = Message(Role.ASSISTANT, (thought, Call("a", "f", "{}")))
    *before, called = encode(Request("m", (turn,)))["contents"][0]["parts"]
    assert called["thoughtSignature"] == "c2ln"
    assert before == ([{"text": "Hm", "thought": True}] if thought.text else [])


def test_a_signature_of_another_wire_without_a_call_stays_with_its_thought() -> None:
    turn = Message(Role.ASSISTANT, (Reasoning("Hm", "c2ln"), Reasoning(""), Text("Hi"), Text("")))
    parts = encode(Request("m", (turn,)))["contents"][0]["parts"]
    assert parts == [{"text": "Hm", "thought": True, "thoughtSignature": "c2ln"}, {"text": "Hi"}]


@pytest.mark.parametrize("args", [{"args": {"a_b": {"mime_type": 1}}}, {"args": {}}, {}, {"args": None}])
def test_arguments_are_never_respelled(args: Body) -> None:
    (called,) = parts_of({"function_call": {"name": "f", "id": "x", **args}}, role="model")
    assert called == Call("x", "f", json.dumps(args.get("args") or {}, separators=(",", ":")))


def test_fields_of_a_part_that_only_the_vendor_knows_come_back() -> None:
    part: Body = {"functionCall": {"id": "a", "name": "f", "args": {}, "zone": 1}, "partMetadata": {"x_y": 1}}
    assert again(contents=[{"role": "model", "parts": [part]}])["contents"][0]["parts"] == [part]
    text = {"text": "hi", "partMetadata": {"x_y": 1}}
    assert parts_again(text) == [text]


def test_images_are_read_and_other_data_is_left_to_the_vendor() -> None:
    image = {"inline_data": {"mime_type": "image/png", "data": "AAAA", "display_name": "a.png"}, "mediaResolution": {}}
    assert parts_of(image)[0] == Image(
        "image/png", "AAAA", vendor=Vendor("gemini", {"mediaResolution": {}, "inlineData": {"displayName": "a.png"}})
    )
    assert parts_again(image) == [
        {"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": "a.png"}, "mediaResolution": {}}
    ]


@pytest.mark.parametrize(
    ("part", "label"),
    [
        ({"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}, "thoughtSignature": "c2ln"}, "audio/wav"),
        ({"fileData": {"fileUri": "https://x/y.pdf"}}, "fileData"),
        ({"executableCode": {"language": "PYTHON", "code": "1"}, "thought": True}, "executableCode"),
        ({"toolCall": {"x": 1}}, "toolCall"),
        ({}, "part"),
    ],
)
def test_parts_that_nobody_else_knows_are_kept_whole(part: Body, label: str) -> None:
    (opaque,) = parts_of(part)
    assert opaque == Opaque(Vendor("gemini", part), label)
    assert parts_again(part) == [part]


def test_parts_of_other_wires_are_named() -> None:
    image, other = Image(url="https://x/y.png"), Opaque(Vendor("anthropic", {"type": "document"}), "document")
    body = encode(Request("m", (Message(Role.USER, (image, other, Image(data="AAAA"))),)))
    assert body["contents"][0]["parts"] == [
        {"fileData": {"fileUri": "https://x/y.png"}},
        {"text": "[document omitted]"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    ]


# ---------------------------------------------------------------- results

RESPONSES: dict[str, tuple[Body, tuple[Text, ...], bool]] = {
    "output": ({"output": "ok"}, (Text("ok"),), False),
    "error": ({"error": "no"}, (Text("no"),), True),
    "content": ({"content": "ok"}, (Text("ok"),), False),
    "result": ({"result": "ok"}, (Text("ok"),), False),
    "return_value": ({"return_value": "ok"}, (Text("ok"),), False),
    "name and content": ({"name": "f", "content": "ok"}, (Text("ok"),), False),
    "an object": ({"content": {"text": "ok"}}, (Text('{"content":{"text":"ok"}}'),), False),
    "more": ({"output": "ok", "error": ""}, (Text('{"output":"ok","error":""}'),), False),
    "more, and an error": ({"output": "", "error": {"code": 1}}, (Text('{"output":"","error":{"code":1}}'),), True),
    "another key": ({"mime_type": "x"}, (Text('{"mime_type":"x"}'),), False),
    "only a name": ({"name": "f"}, (Text('{"name":"f"}'),), False),
    "nothing": ({}, (), False),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_what_a_tool_said_is_found_and_comes_back_in_its_own_form(name: str) -> None:
    response, content, is_error = RESPONSES[name]
    contents = [{"role": "model", "parts": [call(id="a")]}, {"role": "user", "parts": [answer(response, id="a")]}]
    (_, message) = decode(contents=contents).messages
    (result,) = message.parts
    assert message.role is Role.TOOL
    assert isinstance(result, Result)
    assert (result.call_id, result.content, result.is_error) == ("a", content, is_error)
    assert again(contents=contents)["contents"] == contents


def test_results_without_ids_are_paired_by_name_or_position() -> None:
    called = [call("f"), call("g"), call("f")]
    answers = [answer({"output": "2"}, "g"), answer({"output": "1"}, "f"), answer({"output": "3"}, "a-uuid")]
    body = again(contents=[{"role": "model", "parts": called}, {"role": "function", "parts": answers}])
    calls, results = body["contents"]
    ids = [part["functionCall"]["id"] for part in calls["parts"]]
    assert len(set(ids)) == 3
    assert results["role"] == "user"
    said = [part["functionResponse"] for part in results["parts"]]
    assert [(one["id"], one["name"], one["response"]["output"]) for one in said] == [
        (ids[0], "f", "1"),
        (ids[1], "g", "2"),
        (ids[2], "f", "3"),
    ]


def test_what_stands_beside_results_is_the_users() -> None:
    messages = history(
        ("model", [call(id="a")]),
        ("user", [answer({"output": "x"}, id="a"), {"inlineData": PNG}, {"text": "Look."}]),
    )
    assert [(message.role, len(message.parts)) for message in messages] == [
        (Role.ASSISTANT, 1),
        (Role.TOOL, 1),
        (Role.USER, 2),
    ]
    assert messages[2].parts == (Image("image/png", PNG["data"]), Text("Look."))
    _, said = encode(Request("m", messages, extra={"gemini": {}}))["contents"]
    assert said["parts"][1:] == [{"inlineData": PNG}, {"text": "Look."}]


def test_media_inside_a_result_stay_there() -> None:
    media = [{"inlineData": PNG}, {"fileData": {"fileUri": "gs://x"}}]
    said = answer({"output": "x"}, id="a", parts=media, willContinue=False)
    contents = [{"role": "model", "parts": [call(id="a")]}, {"role": "user", "parts": [said]}]
    (_, message) = decode(contents=contents).messages
    (result,) = message.parts
    assert isinstance(result, Result)
    assert result.content[1:] == (
        Image("image/png", PNG["data"]),
        Opaque(Vendor("gemini", {"fileData": {"fileUri": "gs://x"}}), "fileData"),
    )
    assert again(contents=contents)["contents"] == contents


def other_results(*results: Result, nested: bool = False) -> list[Body]:
    calls = tuple(Call(result.call_id, "f", "{}") for result in results)
    request = Request("m", (Message(Role.ASSISTANT, calls), Message(Role.TOOL, results[::-1])))
    return json.loads(WIRE.encode_request(request, Quirks(image_results=nested)).body)["contents"][1]["parts"]


def test_results_of_other_wires_stand_in_one_content_in_the_calls_order() -> None:
    parts = other_results(Result("a", (Text("1"), Text("2"))), Result("b", (Text("no"),), is_error=True))
    assert parts == [
        answer({"output": "1\n2"}, id="a"),
        answer({"error": "no"}, id="b"),
    ]


def test_images_of_other_wires_follow_the_results_or_stand_in_them() -> None:
    results = (Result("a", (Text("1"), Image("image/png", "AAAA"))), Result("b", (Text("2"),)))
    first, second, image = other_results(*results)
    assert first["functionResponse"]["response"]["output"] == "1\n[image: it follows behind the results]"
    assert second == answer({"output": "2"}, id="b")
    assert image == {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    first, second = other_results(*results, nested=True)
    assert first["functionResponse"]["parts"] == [image]
    assert first["functionResponse"]["response"] == {"output": "1"}


def test_a_call_without_a_result_gets_one() -> None:
    body = again(contents=[{"role": "model", "parts": [call()]}, {"role": "user", "parts": [{"text": "Go on."}]}])
    _, said = body["contents"]
    assert "error" in said["parts"][0]["functionResponse"]["response"]
    assert said["parts"][1] == {"text": "Go on."}


def test_arguments_that_are_no_object_are_kept_as_they_are() -> None:
    turn = Message(Role.ASSISTANT, (Call("a", "f", '{"x":'), Call("b", "f", "[1]"), Call("c", "f", "")))
    parts = encode(Request("m", (turn,)))["contents"][0]["parts"]
    assert [part["functionCall"]["args"] for part in parts] == [{"arguments": '{"x":'}, {"arguments": [1]}, {}]
