"""Kept rounds, written out as three vendors have them: losslessly, and in the order of what was said (RUN-2)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.wire_turns import ARGUMENTS, NAMES, SAID
from toolspeak import wires
from toolspeak.agent.runs.runs import FORMS, export_messages
from toolspeak.errors import BadField
from toolspeak.ir.message import Call, Image, Message, Reasoning, Result, Role, Text, part_text
from toolspeak.ir.round import Before, Compact, Round, expand
from toolspeak.text.strict import dump, parse


def said(role: Role, *texts: str) -> Message:
    return Message(role, tuple(map(Text, texts)))


def done(id: str, name: str, arguments: dict[str, Any], result: dict[str, Any], before: str) -> Round:
    call = Call(id, name, json.dumps(arguments))
    return Round((Text(before),), (call,), (Result(id, (Text(json.dumps(result)),), name),))


# ---------------------------------------------------------------- the examples that the form was laid down with

SUNNY = '{"temp": 22, "condition": "sunny"}'
LOOKED_UP = done(
    "call_1",
    "weather_lookup",
    {"city": "Tokyo"},
    {"temp": 22, "condition": "sunny"},
    "Let me check the weather for you...",
)
TOKYO = Compact(said(Role.ASSISTANT, "The weather in Tokyo is 22°C and sunny!"), (LOOKED_UP,))

FOUND = '{"repos": [{"name": "swift", "owner": "apple", "stars": 65000}]}'
STARRED = Compact(
    said(Role.ASSISTANT, "Done! I've starred apple/swift - it has 65,000 stars!"),
    (
        done(
            "call_1",
            "github_search",
            {"query": "language:swift", "sort": "stars"},
            {"repos": [{"name": "swift", "owner": "apple", "stars": 65000}]},
            "I'll search for the top Swift repository...",
        ),
        done(
            "call_2",
            "github_star",
            {"owner": "apple", "repo": "swift"},
            {"success": True},
            "Found it! Now let me star it for you...",
        ),
    ),
)


def openai_call(id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}


def anthropic_call(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": arguments}]}


def anthropic_result(id: str, text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}


def model(text: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": text}]}


def gemini_call(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": [{"functionCall": {"id": id, "name": name, "args": arguments}}]}


def gemini_result(id: str, name: str, text: str) -> dict[str, Any]:
    response = {"id": id, "name": name, "response": {"output": text}}
    return {"role": "function", "parts": [{"functionResponse": response}]}


def test_one_round_as_openai_and_ollama_have_it_run2() -> None:
    assert export_messages([TOKYO], "openai") == [
        {"role": "assistant", "content": "Let me check the weather for you..."},
        openai_call("call_1", "weather_lookup", '{"city": "Tokyo"}'),
        {"role": "tool", "tool_call_id": "call_1", "content": SUNNY},
        {"role": "assistant", "content": "The weather in Tokyo is 22°C and sunny!"},
    ]


def test_one_round_as_anthropic_has_it_run2() -> None:
    assert export_messages([TOKYO], "anthropic") == [
        {"role": "assistant", "content": "Let me check the weather for you..."},
        anthropic_call("call_1", "weather_lookup", {"city": "Tokyo"}),
        anthropic_result("call_1", SUNNY),
        {"role": "assistant", "content": "The weather in Tokyo is 22°C and sunny!"},
    ]


def test_one_round_as_gemini_has_it_run2() -> None:
    assert export_messages([TOKYO], "gemini") == [
        model("Let me check the weather for you..."),
        gemini_call("call_1", "weather_lookup", {"city": "Tokyo"}),
        gemini_result("call_1", "weather_lookup", SUNNY),
        model("The weather in Tokyo is 22°C and sunny!"),
    ]


def test_two_rounds_as_openai_and_ollama_have_them_run2() -> None:
    assert export_messages([STARRED], "openai") == [
        {"role": "assistant", "content": "I'll search for the top Swift repository..."},
        openai_call("call_1", "github_search", '{"query": "language:swift", "sort": "stars"}'),
        {"role": "tool", "tool_call_id": "call_1", "content": FOUND},
        {"role": "assistant", "content": "Found it! Now let me star it for you..."},
        openai_call("call_2", "github_star", '{"owner": "apple", "repo": "swift"}'),
        {"role": "tool", "tool_call_id": "call_2", "content": '{"success": true}'},
        {"role": "assistant", "content": "Done! I've starred apple/swift - it has 65,000 stars!"},
    ]


def test_two_rounds_as_anthropic_has_them_run2() -> None:
    assert export_messages([STARRED], "anthropic") == [
        {"role": "assistant", "content": "I'll search for the top Swift repository..."},
        anthropic_call("call_1", "github_search", {"query": "language:swift", "sort": "stars"}),
        anthropic_result("call_1", FOUND),
        {"role": "assistant", "content": "Found it! Now let me star it for you..."},
        anthropic_call("call_2", "github_star", {"owner": "apple", "repo": "swift"}),
        anthropic_result("call_2", '{"success": true}'),
        {"role": "assistant", "content": "Done! I've starred apple/swift - it has 65,000 stars!"},
    ]


def test_two_rounds_as_gemini_has_them_run2() -> None:
    assert export_messages([STARRED], "gemini") == [
        model("I'll search for the top Swift repository..."),
        gemini_call("call_1", "github_search", {"query": "language:swift", "sort": "stars"}),
        gemini_result("call_1", "github_search", FOUND),
        model("Found it! Now let me star it for you..."),
        gemini_call("call_2", "github_star", {"owner": "apple", "repo": "swift"}),
        gemini_result("call_2", "github_star", '{"success": true}'),
        model("Done! I've starred apple/swift - it has 65,000 stars!"),
    ]


# ---------------------------------------------------------------- what else a message may have


@pytest.mark.parametrize("form", FORMS)
def test_the_list_is_plain_json_run2(form: str) -> None:
    rows = export_messages([TOKYO, STARRED], form)
    assert json.loads(json.dumps(rows)) == rows


@pytest.mark.parametrize("form", FORMS)
def test_several_results_of_one_round_stay_together_run2(form: str) -> None:
    calls = (Call("1", "a", "{}"), Call("2", "b", "{}"))
    both = Round((), calls, tuple(Result(call.id, (Text("x"),), call.name) for call in calls))
    rows = export_messages([Compact(said(Role.ASSISTANT), (both,))], form)
    assert [row["role"] for row in rows] == {
        "openai": ["assistant", "tool", "tool"],
        "anthropic": ["assistant", "user"],
        "gemini": ["model", "function"],
    }[form]


@pytest.mark.parametrize("form", FORMS)
def test_what_the_system_and_the_user_say_is_in_its_place_run2(form: str) -> None:
    kept = [Compact(said(Role.SYSTEM, "Be brief.")), Compact(said(Role.USER, "Weather?")), TOKYO]
    assert [row["role"] for row in export_messages(kept, form)][:2] == ["system", "user"]
    assert "Be brief." in json.dumps(export_messages(kept, form)[0])


@pytest.mark.parametrize(
    "before",
    [(Reasoning("Cold?"), Text("Hm."), Reasoning("", "c2ln")), (Text("Hm."), Reasoning("Cold?", "c2ln"))],
    ids=["alone", "on a thought"],
)
def test_geminis_signature_stands_on_its_call_run2(before: tuple[Before, ...]) -> None:
    rows = export_messages(
        [Compact(said(Role.ASSISTANT), (Round(before, LOOKED_UP.calls, LOOKED_UP.results),))], "gemini"
    )
    call = {"functionCall": {"id": "call_1", "name": "weather_lookup", "args": {"city": "Tokyo"}}}
    assert rows[1]["parts"] == [{**call, "thoughtSignature": "c2ln"}]
    assert "c2ln" not in json.dumps(rows[0])


def test_anthropics_signed_thoughts_come_along_run2() -> None:
    thought = Round((Reasoning("Cold?", "sig"), Text("Hm.")), LOOKED_UP.calls, LOOKED_UP.results)
    rows = export_messages([Compact(said(Role.ASSISTANT), (thought,))], "anthropic")
    assert rows[0]["content"] == [
        {"type": "thinking", "thinking": "Cold?", "signature": "sig"},
        {"type": "text", "text": "Hm."},
    ]


def test_ids_that_came_twice_are_parted_run2() -> None:
    rows = export_messages([Compact(said(Role.ASSISTANT), (LOOKED_UP, LOOKED_UP))], "openai")
    results = [row["tool_call_id"] for row in rows if row["role"] == "tool"]
    assert len(set(results)) == 2
    assert [call["id"] for row in rows for call in calls_in(row)] == results


def calls_in(row: dict[str, Any]) -> list[dict[str, Any]]:
    return row.get("tool_calls", [])


def test_an_unknown_form_is_named_run2() -> None:
    with pytest.raises(BadField, match="'cohere' is not one of openai, anthropic, gemini"):
        export_messages([TOKYO], "cohere")


# ---------------------------------------------------------------- read back

PIECES = st.lists(SAID, min_size=1, max_size=3).map(lambda texts: tuple(map(Text, texts)))
BEFORE = st.lists(
    st.one_of(st.builds(Text, SAID), st.builds(Reasoning, SAID, st.sampled_from(("", "c2ln")))), max_size=3
)


@st.composite
def compacts(draw: st.DrawFn) -> list[Compact]:
    """Draw what a user said, and what a run made of it, several times."""
    kept: list[Compact] = []
    for turn in range(draw(st.integers(1, 2))):
        kept.append(Compact(said(Role.USER, draw(SAID))))
        rounds = [draw(one_round(f"{turn}_{number}")) for number in range(draw(st.integers(0, 2)))]
        final = (draw(SAID),) if not rounds or draw(st.booleans()) else ()
        kept.append(Compact(said(Role.ASSISTANT, *final), tuple(rounds)))
    return kept


@st.composite
def one_round(draw: st.DrawFn, id: str) -> Round:
    made = draw(st.lists(ARGUMENTS, min_size=1, max_size=2))
    calls = tuple(Call(f"call_{id}_{n}", draw(NAMES), arguments) for n, arguments in enumerate(made))
    results = tuple(Result(call.id, draw(PIECES), call.name, draw(st.booleans())) for call in calls)
    return Round(tuple(draw(BEFORE)), calls, results)


def read_back(rows: list[Any], form: str) -> tuple[Message, ...]:
    key, path = ("contents", "v1beta/models/m:generateContent") if form == "gemini" else ("messages", "")
    wire = wires.load("openai_chat" if form == "openai" else form)
    return wire.decode_request(json.dumps({"model": "m", key: rows}).encode(), path).messages


def flat(messages: tuple[Message, ...], *, errors: bool) -> list[tuple[object, ...]]:
    """Tell calls, results and texts, in their order; neighbouring texts of one speaker are one."""
    told: list[tuple[object, ...]] = []
    for message in messages:
        for part in message.parts:
            match part:
                case Text(text) if told and told[-1][0] == message.role:
                    told[-1] = (message.role, f"{told[-1][1]}{text}")
                case Text(text):
                    told.append((message.role, text))
                case Call():
                    told.append(("call", part.id, part.name, dump(parse(part.arguments))))
                case Result():
                    words = "\n".join(map(part_text, part.content))
                    told.append(("result", part.call_id, part.name, words, part.is_error and errors))
                case _:
                    pass
    return told


@pytest.mark.parametrize("form", FORMS)
@given(kept=compacts())
def test_what_is_written_is_read_back_in_order_run2(form: str, kept: list[Compact]) -> None:
    """OpenAI has no word for a result that is an error; all else comes back from every form."""
    errors = form != "openai"
    assert flat(read_back(export_messages(kept, form), form), errors=errors) == flat(expand(kept), errors=errors)


def test_pictures_of_results_are_not_lost_run2() -> None:
    seen = Round((), LOOKED_UP.calls, (Result("call_1", (Text("Look:"), Image("image/png", "QUJD"))),))
    for form in FORMS:
        assert "QUJD" in json.dumps(export_messages([Compact(said(Role.ASSISTANT), (seen,))], form)), form
