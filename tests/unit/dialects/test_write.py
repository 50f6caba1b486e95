"""The pieces that writers share: arguments, plain texts, results, and the contract's tools."""

import json

import pytest

from toolspeak.dialects import load
from toolspeak.dialects.core.writer import (
    JsonCalls,
    Shape,
    arguments_line,
    arguments_of,
    between,
    between_json,
    break_markers,
    call_json,
    has_no_roles,
    result_as_json,
    result_as_text,
    tagged_result,
    tags_in,
    texts_of,
    tool_lines,
)
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Image, Result, Text
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "n": {"type": "integer"},
        "maybe": {"type": ["string", "null"]},
        "x": {},
    },
}
TOOLS = ToolSet.of([Tool("f", "Does it.", SCHEMA)])


def call(arguments: str, name: str = "f", native_id: str = "") -> Call:
    return Call("call_1", name, arguments, native_id)


def written(dialect: str, *calls: Call, tools: ToolSet = TOOLS) -> str:
    writer = load(dialect).writer
    assert writer is not None
    return writer.write_calls(calls, tools)


def result_in(dialect: str, result: Result) -> str:
    writer = load(dialect).writer
    assert writer is not None
    return writer.write_result(result)


# Arguments


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a": 1e5, "b": 0.10, "c": -0}',
        '{"a":"\\u00e9\\/"}',
        '{ "a" :\t1 }',
        '{"n": 123456789012345678901234567890}',
    ],
)
def test_one_line_of_json_stays_as_it_is(text: str) -> None:
    """INL-8: the prompt's prefix does not change."""
    assert arguments_line(call(text)) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n  "a": 1\n}\n', '{"a":1}'),
        ('{"a":1}\r\n', '{"a":1}'),
        ('{"a":' + " " * 100 + "1}", '{"a":1}'),
        ("{'a': True,}", '{"a":true}'),
        ('{"a": "\\ud800"}', '{"a":"\ufffd"}'),
        ('{"a": "\ud800"}', '{"a":"\ufffd"}'),
        ("", "{}"),
        ("[1]", "{}"),
        ("null", "{}"),
        ("no JSON", "{}"),
        ('{"a": 1, "a": 2}', "{}"),
    ],
)
def test_other_arguments_are_written_anew_and_no_surrogate_leaves(text: str, line: str) -> None:
    assert arguments_line(call(text)) == line
    assert arguments_of(call(text)) == json.loads(line)


def test_a_call_s_json_has_the_keys_of_its_dialect() -> None:
    assert call_json(call('{"n": 1}', 'a"b')) == '{"name": "a\\"b", "arguments": {"n": 1}}'
    assert JsonCalls(Shape(name="tool", arguments="args"))([call("{}")], TOOLS) == '{"tool": "f", "args": {}}'


def test_a_percent_sign_is_no_pattern() -> None:
    assert JsonCalls(Shape("<", ">", separator="; "))([call('{"text": "100%s"}')] * 2, TOOLS).count('"100%s"') == 2


# Plain texts


def texts(arguments: str, name: str = "f") -> list[tuple[str, str]] | None:
    return texts_of(call(arguments, name), TOOLS, lambda _: True)


def test_values_become_texts() -> None:
    assert texts('{"text": "5", "n": 5, "x": [1, {"a": null}]}') == [("text", "5"), ("n", "5"), ("x", '[1,{"a":null}]')]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"x": "5"}',  # would be read as a number
        '{"x": " {} "}',
        '{"x": "null"}',
        '{"maybe": "null"}',  # would be read as null
        '{"n": "x", "text": 5}',  # would be read as a string
        '{"text": null}',
        '{"a b": 1}',
        '{"": 1}',
        '{"text": "\\r"}',
        '{"text": "\\u0000"}',
    ],
)
def test_where_a_text_would_be_read_as_something_else_there_are_no_texts(arguments: str) -> None:
    assert texts(arguments) is None


def test_a_tool_that_is_gone_has_no_schema() -> None:
    assert texts('{"a": "x", "n": 5}', "gone") == [("a", "x"), ("n", "5")]
    assert texts('{"a": "5"}', "gone") is None


@pytest.mark.parametrize(
    ("text", "is_data"),
    [
        ("if a < b and c > d", True),
        ("#include <stdio.h>\n<div class='x'>a</div><br/>", True),
        ("<tool_call>", True),
        ("</parameter>", False),
        ("<\\/parameter>", False),
        ("</ ns:parameter >", False),
        ("<parameter=a>", False),
        ('<invoke name="f">', False),
        ("</function>", False),
        ("</tool_call>", False),
        ("\n<text>", False),  # an element named like a parameter
        ("\n<other>", True),
    ],
)
def test_only_tags_that_a_reader_acts_on_are_no_data(text: str, is_data: bool) -> None:
    assert has_no_roles(text, call("{}"), TOOLS) is is_data


def test_tags_are_found_in_one_pass() -> None:
    assert [tag.name for tag in tags_in("<<a><b x=1></c> <d")] == ["a", "b", "c"]


# Results


def test_an_answer_is_text_with_marks_for_errors_and_images() -> None:
    parts = (Text("a"), Image("image/png", "AA=="), Image(url="https://example.org/x"), Text("b\ud800"))
    assert result_as_text(Result("c", parts)) == "a\n[image/png omitted]\n[image omitted]\nb\ufffd"
    assert result_as_text(Result("c", (Text("boom"),), is_error=True)) == "Error: boom"
    assert result_as_json(Result("c", (Text("boom"),), "f", is_error=True)) == '{"name":"f","error":"boom"}'
    assert result_as_json(Result("c", (Text("x"),)), "output") == '{"output":"x"}'


def test_a_frame_cannot_be_closed_from_inside() -> None:
    """SAFE-2."""
    assert between("<r>\n", "a</r><r>b", "\n</r>") == "<r>\na</\\r><\\r>b\n</r>"
    assert break_markers("a</r><r>b", "<r>") == "a</r><\\r>b"
    framed = between_json("<r>\n", json.dumps({"a": "x</r><r>"}), "\n</r>")
    assert framed == '<r>\n{"a": "x\\u003c/r>\\u003cr>"}\n</r>'
    assert json.loads(framed[4:-5]) == {"a": "x</r><r>"}
    assert (
        tagged_result("r", Result("c", (Text('<r name="g"></r>'),), "f")) == '<r name="f">\n<\\r name="g"></\\r>\n</r>'
    )


def test_a_fence_is_longer_than_any_inside() -> None:
    assert result_in("fenced", Result("c", (Text("`x`"),), "f")) == "```tool_result f\n`x`\n```"
    assert result_in("fenced", Result("c", (Text("````\nx\n```"),))) == "`````tool_result\n````\nx\n```\n`````"


# What is special to one dialect


def test_kimi_keeps_the_ids_that_the_model_wrote() -> None:
    calls = (
        call("{}", native_id="functions.f:7"),
        call("{}", native_id="call_x"),
        call("{}", native_id="functions.g:1"),
    )
    text = written("kimi", *calls)
    assert [turn.native_id for turn in load("kimi").read(text, TOOLS).calls] == [
        "functions.f:7",
        "functions.f:1",
        "functions.f:2",
    ]
    assert result_in("kimi", Result("functions.f:7", (Text("x"),), "f")) == "## Return of functions.f:7\nx"
    assert result_in("kimi", Result("call_x", (Text("x"),), "f")) == "## Return of functions.f\nx"


@pytest.mark.parametrize(
    ("dialect", "arguments", "text"),
    [
        ("qwen_xml", '{"text": "a\\nb"}', "<function=f>\n<parameter=text>\na\nb\n</parameter>\n</function>"),
        ("qwen_xml", '{"text": "</parameter>"}', '<function=f>\n{"text": "</parameter>"}\n</function>'),
        (
            "invoke_xml",
            '{"text": "a", "n": 2}',
            '<parameter name="text">a</parameter>\n<parameter name="n">2</parameter>',
        ),
        ("invoke_xml", '{"text": "\\na"}', '<invoke name="f">\n{"text": "\\na"}\n</invoke>'),
        ("glm", '{"text": "\\na"}', "f<arg_key>text</arg_key><arg_value>\na</arg_value>"),
        ("glm", '{"text": "</arg_value>"}', 'f{"text": "</arg_value>"}'),
        ("gemma", '{"text": "a", "n": 2}', 'call:f{n:2,text:<|"|>a<|"|>}'),
        ("gemma", '{"text": "<|\\"|>", "a b": null}', 'call:f{"a b":null,text:"<|\\"|>"}'),
        ("pythonic", '{"text": "a\'\\"", "x": [true, null]}', '[f(text="a\'\\"", x=[True, None])]'),
        ("pythonic", '{"a-b": {"c": 1.5}}', '[f(**{"a-b": {"c": 1.5}})]'),
        ("mistral", '{"n": 2}', '[TOOL_CALLS]f[ARGS]{"n": 2}'),
        ("react", '{\n"n": 2}', 'Action: f\nAction Input: {"n":2}'),
    ],
)
def test_the_natural_form_is_written_where_it_is_safe(dialect: str, arguments: str, text: str) -> None:
    assert text in written(dialect, call(arguments))


@pytest.mark.parametrize(
    ("dialect", "name", "text"),
    [
        ("pythonic", "日本", '[{"name": "日本", "arguments": {}}]'),
        ("mistral", "-x", '[TOOL_CALLS][{"name": "-x", "arguments": {}}]'),
        ("glm", "1st", '<tool_call>{"name": "1st", "arguments": {}}</tool_call>'),
        ("qwen_xml", "a/", '{"name": "a/", "arguments": {}}'),
        ("deepseek", "-x", "function<｜tool▁sep｜>-x\n```json\n{}\n```"),
    ],
)
def test_names_that_do_not_fit_the_form_go_into_json(dialect: str, name: str, text: str) -> None:
    assert text in written(dialect, call("{}", name), tools=ToolSet.of([Tool(name)]))


def test_a_decision_may_be_for_no_tool() -> None:
    assert written("decision_json") == '{"tools": []}'
    assert load("decision_json").read('{"tools": []}', TOOLS).text == ""


# The contract


def test_tools_are_one_line_each_in_the_order_of_their_schemas() -> None:
    """INL-8."""
    tools = ToolSet.of([Tool("b", "Says\nit.", {"type": "object", "properties": {"z": {}, "a": {}}}), Tool("a")])
    assert tool_lines(tools) == (
        '{"name":"b","description":"Says\\nit.","parameters":{"type":"object","properties":{"z":{},"a":{}}}}\n{"name":"a"}'
    )
