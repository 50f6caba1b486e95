"""A constraint as each upstream takes it, to the letter of its body (CHK-8)."""

import json
from dataclasses import replace
from typing import Any

import pytest

from toolspeak.engine.plan import decide
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.turn import take_turn
from toolspeak.facts.model import Constrain, ModelFacts
from toolspeak.ir.constraint import Constraint, ConstraintForm, TextGrammar, TextSchema, TextTags
from toolspeak.ir.event import Finished, StopReason, TextDelta
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
from toolspeak.runtime.drive import drive_sync
from toolspeak.testing import ScriptedUpstream
from toolspeak.upstreams import load as load_upstream
from toolspeak.upstreams import names as upstream_names
from toolspeak.wires import load, names

SCHEMA = TextSchema({"type": "object"}, "calls")
TAGS = TextTags({"type": "triggered_tags"})
GRAMMAR = TextGrammar('root ::= "x"\n')
TOOL = Tool(
    "get_weather",
    "Tell the weather.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 2}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
    },
)
ASK = Request("m", (Message(Role.USER, (Text("Oslo?"),)),))


def written(
    constraint: Constraint, wire: str = "openai_chat", form: ConstraintForm = ConstraintForm.NONE, base: Request = ASK
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what the constraint adds to a body, and what was dropped."""
    quirks, encode = Quirks(constraint=form), load(wire).encode_request
    outgoing = encode(replace(base, constraint=constraint), quirks)
    plain = json.loads(encode(base, quirks).body)
    body = json.loads(outgoing.body)
    return {key: value for key, value in body.items() if plain.get(key) != value}, outgoing.dropped


STRICT_SCHEMA = {"type": "json_schema", "json_schema": {"name": "calls", "schema": {"type": "object"}, "strict": True}}
LOOSE_SCHEMA = {"type": "json_schema", "json_schema": {"name": "calls", "schema": {"type": "object"}}}
BODIES: list[tuple[ConstraintForm, Constraint, dict[str, Any]]] = [
    (ConstraintForm.LLAMACPP, GRAMMAR, {"grammar": GRAMMAR.gbnf}),
    (ConstraintForm.LLAMACPP, SCHEMA, {"response_format": LOOSE_SCHEMA}),
    (ConstraintForm.VLLM, TAGS, {"response_format": {"type": "structural_tag", "format": TAGS.format}}),
    (ConstraintForm.VLLM, SCHEMA, {"response_format": STRICT_SCHEMA}),
    (ConstraintForm.VLLM, GRAMMAR, {"structured_outputs": {"grammar": GRAMMAR.gbnf}}),
    (ConstraintForm.SGLANG, TAGS, {"response_format": {"type": "structural_tag", "format": TAGS.format}}),
    (ConstraintForm.SGLANG, GRAMMAR, {"ebnf": GRAMMAR.gbnf}),
    (ConstraintForm.OLLAMA, SCHEMA, {"response_format": LOOSE_SCHEMA}),
    (ConstraintForm.JSON_SCHEMA, SCHEMA, {"response_format": LOOSE_SCHEMA}),
    (ConstraintForm.STRICT, SCHEMA, {"response_format": STRICT_SCHEMA}),
]


@pytest.mark.parametrize(("form", "constraint", "body"), BODIES)
def test_servers_of_the_chat_wire_have_each_their_own_words_chk8(
    form: ConstraintForm, constraint: Constraint, body: dict[str, Any]
) -> None:
    assert written(constraint, form=form) == (body, ())


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("ollama", {"format": {"type": "object"}}),
        ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}),
        (
            "gemini",
            {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}},
        ),
        (
            "openai_responses",
            {
                "text": {
                    "format": {"type": "json_schema", "name": "calls", "strict": True, "schema": {"type": "object"}}
                }
            },
        ),
    ],
)
def test_the_other_wires_have_one_word_for_a_schema_chk8(wire: str, body: dict[str, Any]) -> None:
    assert written(SCHEMA, wire) == (body, ())


@pytest.mark.parametrize("constraint", [GRAMMAR, TAGS])
@pytest.mark.parametrize("wire", names())
def test_what_a_wire_has_no_word_for_is_left_out_and_told_chk8(wire: str, constraint: Constraint) -> None:
    assert written(constraint, wire, ConstraintForm.OLLAMA) == ({}, (f"constraint: {type(constraint).__name__}",))


@pytest.mark.parametrize("wire", names())
def test_a_constraint_never_stands_beside_tools_chk8(wire: str) -> None:
    body, dropped = written(SCHEMA, wire, ConstraintForm.STRICT, replace(ASK, tools=(TOOL,)))
    assert (body, dropped) == ({}, ("constraint: TextSchema",))


def test_nor_beside_the_server_s_own_tools_chk8() -> None:
    hosted = replace(ASK, extra={"openai_chat": {"tools": [{"type": "web_search"}]}})
    assert written(SCHEMA, form=ConstraintForm.STRICT, base=hosted) == ({}, ("constraint: TextSchema",))


# ---------------------------------------------------------------- whole turns, preset by preset

FORCED = replace(ASK, tools=(TOOL,), choice=ToolChoice(ChoiceMode.REQUIRED, parallel=False))
CLOSED = {"additionalProperties": False}
CITY: dict[str, Any] = {"type": "string", "minLength": 2}
DAYS: dict[str, Any] = {"type": "integer", "minimum": 1}


def of_calls(city: dict[str, Any], days: dict[str, Any], required: list[str], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    arguments = {"type": "object", "properties": {"city": city, "days": days}, "required": required, **more}
    call = {"name": {"type": "string", "const": "get_weather"}, "arguments": arguments}
    item = {"type": "object", "properties": call, "required": ["name", "arguments"], **CLOSED}
    tools = {"type": "array", "items": item, "minItems": 1, "maxItems": 1}
    return {"type": "object", "properties": {"tools": tools}, "required": ["tools"], **CLOSED}


PRESETS: dict[str, dict[str, Any]] = {
    "ollama": {"format": of_calls(CITY, DAYS, ["city"])},
    "lmstudio": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "calls", "schema": of_calls(CITY, DAYS, ["city"])},
        }
    },
    "openai": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "calls",
                "schema": of_calls({"type": "string"}, {"anyOf": [DAYS, {"type": "null"}]}, ["city", "days"], **CLOSED),
                "strict": True,
            },
        }
    },
    "gemini": {
        "responseMimeType": "application/json",
        "responseJsonSchema": json.loads(
            json.dumps(of_calls({"type": "string"}, DAYS, ["city"])).replace(
                '"const": "get_weather"', '"enum": ["get_weather"]'
            )
        ),
    },
    "vllm": {
        "response_format": {
            "type": "structural_tag",
            "format": {
                "type": "tags_with_separator",
                "separator": "\n",
                "tags": [
                    {
                        "type": "tag",
                        "begin": '```tool_call\n{"name": "get_weather", "arguments": ',
                        "content": {"type": "json_schema", "json_schema": TOOL.parameters},
                        "end": "}\n```",
                    }
                ],
                "at_least_one": True,
                "stop_after_first": True,
            },
        }
    },
}
PRESETS["sglang"] = PRESETS["vllm"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_whole_turn_asks_each_server_in_its_words_chk8(preset: str) -> None:
    upstream = load_upstream(preset)
    sent = ScriptedUpstream([TextDelta("x"), Finished(StopReason.END)])
    settings = Settings(Mode.FORCE, constraint=Constrain.RETRY, retries=0)
    plan = decide(FORCED, settings, ModelFacts(quirks=upstream.quirks))
    drive_sync(take_turn(FORCED, plan, emulated_ids(1)), sent, lambda _: None)
    outgoing = load(upstream.wire).encode_request(sent.requests[0], upstream.quirks)
    body = json.loads(outgoing.body)
    body = body.get("generationConfig", body)
    assert {key: body[key] for key in PRESETS[preset]} == PRESETS[preset]
    assert "tools" not in body
    assert outgoing.dropped == ()


def test_anthropic_gets_no_bounds_that_it_refuses_chk8() -> None:
    upstream = load_upstream("anthropic")
    plan = decide(FORCED, Settings(Mode.FORCE, retries=0), ModelFacts(quirks=upstream.quirks))
    sent = ScriptedUpstream([TextDelta("x"), Finished(StopReason.END)])
    drive_sync(take_turn(FORCED, plan, emulated_ids(1)), sent, lambda _: None)
    body = json.loads(load("anthropic").encode_request(sent.requests[0], upstream.quirks).body)
    text = json.dumps(body["output_config"]["format"]["schema"])
    assert not any(word in text for word in ("minLength", "minimum", "maxItems"))
    assert text.count('"additionalProperties": false') == text.count('"type": "object"')


def test_every_preset_s_form_is_one_that_its_wire_can_write_chk8() -> None:
    for name in upstream_names():
        upstream = load_upstream(name)
        form = upstream.quirks.constraint
        if form is not ConstraintForm.NONE:
            assert written(SCHEMA, upstream.wire, form)[1] == ()
