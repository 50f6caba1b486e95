"""Our reading of `response_template`s against the reader of transformers, which defines them.

The published templates are data of two packages under the Apache License 2.0: trl 1.16 (`chat_template_utils.py`) and
transformers 5.22 (`cli/serving/utils.py`).
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testkit.golden import samples
from toolspeak import dialects
from toolspeak.dialects import Dialect, ReadOptions
from toolspeak.dialects.core.patterns import alternatives, example_text
from toolspeak.dialects.response_template import template_dialect
from toolspeak.dialects.template_export import Unfit, export
from toolspeak.errors import BadField
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import fold
from toolspeak.toolset.toolset import ToolSet

Template = dict[str, Any]
ANCHOR = "<|im_start|>assistant\n"
PUBLISHED: dict[str, Template] = json.loads(
    (Path(__file__).parents[2] / "testkit/golden/response_templates.json").read_text(encoding="utf-8")
)
REFUSED = {
    "trl: lfm2_2_5": "fields.tool_calls.content_args.tag_pattern",  # Python values, by a pattern of nested brackets
    "trl: deepseek_r1_distill": "fields",  # it describes no call
}
EXPORTED: dict[str, Template] = {
    dialect.name: found for dialect in dialects.installed() if not isinstance(found := export(dialect, ANCHOR), Unfit)
}
TOOLS = (
    Tool(
        "find_bus",
        parameters={
            "type": "object",
            "properties": {
                "stop": {"type": "string"},
                "limit": {"type": "integer"},
                "far": {"type": "number"},
                "express": {"type": "boolean"},
                "lines": {"type": "array", "items": {"type": "string"}},
                "filters": {"type": "object"},
            },
        },
    ),
    Tool("now", parameters={"type": "object", "properties": {}}),
    Tool(
        "write_note",
        parameters={"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}},
    ),
)
CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("find_bus", {"stop": "Oslo S", "limit": 2}),
    (
        "find_bus",
        {"stop": "Ås – 北京 🚌", "far": 2.5, "express": True, "lines": ["31", "31E"], "filters": {"a": [1, None]}},
    ),
    ("write_note", {"path": "a b.txt", "text": "two lines:\n  x < y && \"q\" 's' {not json} </p>"}),
    ("now", {}),
)
TURNS = {
    "one call": ("", CALLS[:1]),
    "a text before it": ("I look it up.", CALLS[:1]),
    "values of all kinds": ("", CALLS[1:2]),
    "markup and newlines in a value": ("Here:", CALLS[2:3]),
    "no arguments": ("", CALLS[3:]),
    "several": ("I look it up.", CALLS),
    "only text": ("There is no bus < 5 minutes.", ()),
}


class Read(NamedTuple):
    calls: list[tuple[str, dict[str, Any]]]
    text: str
    reasoning: str


@cache
def reader() -> Callable[..., dict[str, Any]]:
    """Import transformers, which takes seconds, only where it is used."""
    found: Callable[..., dict[str, Any]] = vars(import_module("transformers.utils.chat_parsing"))["parse_response"]
    return found


def theirs(template: Template, text: str, tools: Sequence[Tool] = TOOLS, prefix: str = "") -> Read:
    """Read a text with the reader of transformers; values in tags are typed by the schema, as ours are."""
    offered = [{"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}} for tool in tools]
    message = reader()(text, template, prefix=prefix, tools=offered)
    functions = [call["function"] for call in message.get("tool_calls", [])]
    reasoning = next((message[name] for name in ("reasoning_content", "thinking") if name in message), "")
    calls = [(function["name"], function["arguments"]) for function in functions]
    return Read(calls, message.get("content", "").strip(), reasoning)


def ours(dialect: Dialect, text: str, tools: Sequence[Tool] = TOOLS, *, opened: bool = False) -> Read:
    turn = dialect.read(text, tools, ReadOptions(starts_in_reasoning=opened))
    assert not turn.complaints
    calls = [(call.name, json.loads(call.arguments)) for call in turn.calls]
    return Read(calls, turn.text.strip(), turn.reasoning.strip())


def marked(field: Template, key: str, groups: dict[str, str]) -> str:
    """Write the mark at which a field opens or closes: the first that its template allows."""
    if f"{key}_pattern" in field:
        return example_text(alternatives(field[f"{key}_pattern"])[0], groups)
    literals = field.get(key, "")
    return literals if isinstance(literals, str) else literals[0]


def as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_key_values(value: Json, quote: str) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{as_key_values(inner, quote)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(as_key_values(inner, quote) for inner in value)}]"
    return f"{quote}{value}{quote}" if isinstance(value, str) else json.dumps(value)


def written_calls(template: Template, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Write calls as a template describes them."""
    field = template["fields"]["tool_calls"]
    args: Template = field.get("content_args", {})
    function: Any = field["transform"]["function"]
    if not calls:
        return ""

    def whole(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        keys = ("name", "arguments") if function == "{content}" else (function["name"], function["arguments"])
        names = [key.strip("{}").removeprefix("content.") for key in keys]
        return {names[0]: name, names[1]: arguments}

    def body(name: str, arguments: dict[str, Any]) -> str:
        if field["content"] == "xml-inline":
            tag = alternatives(args["tag_pattern"])[0]
            return "".join(example_text(tag, {"key": key, "value": as_text(value)}) for key, value in arguments.items())
        if "string_delims" in args:
            return as_key_values(arguments, args["string_delims"][0][0])
        captured = function != "{content}" and function["name"] == "{name}"
        return json.dumps(arguments if captured else whole(name, arguments), ensure_ascii=False)

    def call(name: str, inner: str) -> str:
        return marked(field, "open", {"name": name}) + inner + marked(field, "close", {})

    if field.get("transform_each"):
        return call("", json.dumps([whole(*each) for each in calls], ensure_ascii=False))
    # Where a template does not take the blanks between calls, they become a text that replaces the one before.
    takes_blanks = r"\s*" in (field.get("open_pattern", "")[:3], field.get("close_pattern", "")[-3:])
    return ("\n" if takes_blanks else "").join(call(name, body(name, arguments)) for name, arguments in calls)


def turn_of(template: Template, text: str, calls: Sequence[tuple[str, dict[str, Any]]], *, thinks: bool) -> str:
    """Write a whole turn as a template describes it."""
    fields = template["fields"]
    thinking = next((fields[name] for name in ("thinking", "reasoning_content") if name in fields), None)
    thought = marked(thinking, "open", {}) + "Two buses?" + marked(thinking, "close", {}) if thinks and thinking else ""
    content = fields["content"]
    opens, closes = (
        marked(content, "open", {}),
        marked(content, "close", {}) if {"open", "open_pattern"} & {*content} else "",
    )
    said = f"{opens}{text}{closes}" if text else ""
    return "\n".join(part for part in (thought, said, written_calls(template, calls)) if part)


def shown(calls: Sequence[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [*calls]


# ---------------------------------------------------------------- exports


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_dialect_reads_the_same_there_and_here(name: str, turn: str) -> None:
    text, calls = TURNS[turn]
    template = EXPORTED[name]
    for thinks in (False, True):
        raw = turn_of(template, text, calls, thinks=thinks)
        wanted = Read(shown(calls), text, "Two buses?" if thinks else "")
        assert theirs(template, raw) == wanted
        assert ours(dialects.load(name), raw) == wanted
        assert ours(template_dialect(template, name), raw) == wanted


WRITTEN = [name for name in EXPORTED if dialects.load(name).writer is not None]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", WRITTEN)
def test_what_our_writer_writes_is_read_there(name: str, turn: str) -> None:
    text, calls = TURNS[turn]
    writer = dialects.load(name).writer
    assert writer is not None
    history = [Call(f"c{index}", each, json.dumps(given)) for index, (each, given) in enumerate(calls)]
    raw = f"{text}\n{writer.write_calls(history, ToolSet.of(TOOLS))}" if calls else text
    assert theirs(EXPORTED[name], raw) == ours(dialects.load(name), raw) == Read(shown(calls), text, "")


OTHER_FORMS = {
    "D13-command-r": "a fence after `Action:`",
    "D13-cohere-cofl": "tags of the newest models",
    "D16-deepseek-v3": "the form before V3.1",
    "D22-dsml-v4": "a call as an empty tag",
    "D08-granite20b": "another mark",
    "D38-harmony-analysis": "a call in the channel of the reasoning",
    "D26-minimax-m3": "parameters as elements",
    "D11-mistral-v3": "a list, before v11",
}
"""A template describes one form of a dialect that has several."""


@pytest.mark.parametrize("name", EXPORTED)
def test_the_samples_of_a_dialect_are_read_there_but_for_its_other_forms(name: str) -> None:
    cases = [case for case in samples() if case.dialect.name == name and not case.id.startswith("BAD")]
    for case in cases:
        wanted = [(call["name"], call["arguments"]) for call in case.calls]
        if case.id not in OTHER_FORMS:
            assert theirs(EXPORTED[name], case.raw, case.tools).calls == wanted, case.id


def test_every_dialect_is_exported_or_has_a_reason() -> None:
    reasons = {
        dialect.name: found.reason
        for dialect in dialects.installed()
        if isinstance(found := export(dialect, ANCHOR), Unfit)
    }
    assert {*reasons, *EXPORTED} == {*dialects.names()}
    assert len(EXPORTED) >= 30
    assert not [name for name, reason in reasons.items() if "no template for it" in reason]


# ---------------------------------------------------------------- published templates

ACCEPTED = [name for name in PUBLISHED if name not in REFUSED]
BARE = "trl: llama3"
OPENED = "trl: nemotron_3"


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", ACCEPTED)
def test_a_published_template_reads_the_same_there_and_here(name: str, turn: str) -> None:
    text, calls = TURNS[turn]
    template = PUBLISHED[name]
    calls = calls[:1] if name == BARE else calls  # its mark is `{`, and ours is a message of one call and nothing else
    text = "" if name == BARE and calls else text
    raw = turn_of(template, text, calls, thinks=False)
    wanted = Read(shown(calls), text, "")
    assert theirs(template, raw) == wanted
    assert ours(template_dialect(template, name), raw) == wanted


@pytest.mark.parametrize("name", [name for name in ACCEPTED if name not in (BARE, OPENED)])
def test_reasoning_of_a_published_template_is_the_same_there_and_here(name: str) -> None:
    raw = turn_of(PUBLISHED[name], "I look it up.", CALLS[:2], thinks=True)
    wanted = Read(shown(CALLS[:2]), "I look it up.", "Two buses?")
    assert theirs(PUBLISHED[name], raw) == ours(template_dialect(PUBLISHED[name], name), raw) == wanted


def test_reasoning_that_the_prompt_has_opened_is_the_same_where_the_facts_say_so() -> None:
    template = PUBLISHED[OPENED]
    raw = f"Two buses?</think>\n{written_calls(template, CALLS[:1])}"
    prefix = "<|im_start|>assistant\n<think>\n"
    wanted = Read(shown(CALLS[:1]), "", "Two buses?")
    assert theirs(template, raw, prefix=prefix) == ours(template_dialect(template, OPENED), raw, opened=True) == wanted


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_cut_changes_nothing(name: str) -> None:
    dialect, raw = template_dialect(PUBLISHED[name], name), turn_of(PUBLISHED[name], "Yes.", CALLS, thinks=True)
    whole = dialect.read(raw, TOOLS)
    for size in (1, 2, 3, 7):
        pieces = dialect.reader(TOOLS)
        events = [event for at in range(0, len(raw), size) for event in pieces.feed(raw[at : at + size])]
        assert fold((*events, *pieces.finish())) == whole


@pytest.mark.parametrize("name", REFUSED)
def test_a_template_beyond_us_is_refused_with_its_field(name: str) -> None:
    with pytest.raises(BadField, match=f"^{re.escape(REFUSED[name])}: "):
        template_dialect(PUBLISHED[name], name)


# ---------------------------------------------------------------- where ours rightly differs

QWEN = "trl: qwen3"
BROKEN = {
    "a mark inside a string": '<tool_call>{"name": "write_note", "arguments": {"text": "</tool_call>"}}</tool_call>',
    "a missing brace": '<tool_call>{"name": "find_bus", "arguments": {"stop": "Oslo S"}</tool_call>',
}


@pytest.mark.parametrize("case", BROKEN)
def test_theirs_raises_where_ours_reads_or_repairs(case: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        theirs(PUBLISHED[QWEN], BROKEN[case])
    assert len(ours(template_dialect(PUBLISHED[QWEN], QWEN), BROKEN[case]).calls) == 1


def test_theirs_returns_a_call_that_was_cut_and_ours_complains_p3() -> None:
    template = PUBLISHED["trl: qwen3_5"]
    raw = "<tool_call>\n<function=find_bus>\n<parameter=stop>\nOslo S\n</parameter>\n<parameter=limit>\n2"
    assert theirs(template, raw).calls == [("find_bus", {"stop": "Oslo S"})]
    turn = template_dialect(template, "qwen").read(raw, TOOLS)
    assert not turn.calls
    assert [complaint.problem.value for complaint in turn.complaints] == ["truncated"]


def test_theirs_returns_a_quoted_example_and_ours_shows_it_p5() -> None:
    raw = 'Write it like this:\n```xml\n<tool_call>{"name": "now", "arguments": {}}</tool_call>\n```\nThat is all.'
    assert theirs(PUBLISHED[QWEN], raw).calls == [("now", {})]
    assert ours(template_dialect(PUBLISHED[QWEN], QWEN), raw) == Read([], raw, "")


def test_theirs_strips_a_value_and_ours_keeps_it_p2() -> None:
    raw = "<tool_call>\n<function=write_note>\n<parameter=text>\n  indented\n\n</parameter>\n</function>\n</tool_call>"
    template = PUBLISHED["trl: qwen3_5"]
    assert theirs(template, raw).calls == [("write_note", {"text": "indented"})]
    assert ours(template_dialect(template, "qwen"), raw).calls == [("write_note", {"text": "  indented\n"})]


def test_theirs_keeps_the_last_text_and_ours_all_of_it_p1() -> None:
    raw = 'Before. <tool_call>{"name": "now", "arguments": {}}</tool_call> After.'
    assert theirs(PUBLISHED[QWEN], raw).text == "After."
    assert "Before." in ours(template_dialect(PUBLISHED[QWEN], QWEN), raw).text
