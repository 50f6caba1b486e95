"""News of calls while they are written (CHK-7): what is told does not depend on the chunks, and is the call."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.damage import damaged, fragments, texts
from testkit.own_markup import FORMS, TOOLS, Form, proofs
from testkit.roundtrip import example_for, text_of
from testkit.splits import at_random, by_characters
from toolspeak.dialects import Dialect, ReadOptions, load
from toolspeak.dialects.core.growth import Growth, StrictSource
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Item, PartialCall, split
from toolspeak.text.repair import repair
from toolspeak.toolset.toolset import ToolSet

GROWING = ("deepseek", "fenced", "glm", "hermes", "invoke_xml", "kimi", "mistral", "qwen_xml")
"""The dialects that toolspeak teaches whose calls leave while they are written."""
WRITE = Tool(
    "write_file",
    "",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "mode": {"type": "integer"},
            "note": {"type": ["string", "null"]},
            "kind": {"enum": ["text", "binary"]},
        },
    },
)
FILE = 'def main():\n    """Say \\n."""\n    return "</b>", 1 < 2\n\n' * 12
CASES, FRAGMENTS = texts(), fragments()
CALL = Call("c", "write_file", json.dumps({"path": "a/b.py", "mode": 4, "content": FILE, "note": None, "kind": "text"}))


def items_of(dialect: Dialect, tools: ToolSet, pieces: tuple[str, ...], *, grows: bool = True) -> list[Item]:
    reader = dialect.reader(tools, options=ReadOptions(tells_growth=grows))
    return [*(item for piece in pieces for item in reader.read(piece)), *reader.read_end()]


def grown(items: list[Item]) -> list[tuple[str, Item]]:
    """Return the JSON that was told of each call, with what became of that call."""
    found, json = list[tuple[str, Item]](), ""
    for item in items:
        if isinstance(item, PartialCall):
            json += item.json
        elif json:
            found.append((json, item))
            json = ""
    return found


def told(items: list[Item]) -> list[str]:
    return [json for json, _ in grown(items)]


def assert_told_as_read(dialect: Dialect, tools: ToolSet, text: str, seed: int) -> None:
    """Fail if a call was told otherwise than it was read, or otherwise in other chunks."""
    whole = items_of(dialect, tools, (text,))
    for text_told, item in grown(whole):
        assert not isinstance(item, Call) or item.fixes or json.loads(text_told) == json.loads(item.arguments)
    for pieces in (by_characters(text), *at_random(text, 2, seed)):
        assert told(items_of(dialect, tools, pieces)) == told(whole)


@pytest.mark.parametrize("name", GROWING)
def test_a_call_is_told_while_it_is_written_chk7(name: str) -> None:
    tools = ToolSet.of([WRITE])
    dialect = load(name)
    assert dialect.writer is not None
    text = dialect.writer.write_calls((CALL,), tools)
    items = items_of(dialect, tools, by_characters(text))
    news = [item for item in items if isinstance(item, PartialCall)]
    assert json.loads("".join(item.json for item in news)) == json.loads(CALL.arguments)
    assert len(news) > 0.8 * len(FILE)
    assert {item.name for item in news} == {"write_file"}
    assert text.startswith("".join(item.raw for item in news))


@pytest.mark.parametrize("name", GROWING)
@given(seed=st.integers(0, 2**32))
def test_what_is_told_does_not_depend_on_the_chunks_and_is_the_call_chk7(name: str, seed: int) -> None:
    made = example_for(name, Random(seed))
    assert_told_as_read(load(name), made.tools, text_of(load(name), made), seed)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.dialect)
def test_files_with_own_markup_are_told_as_they_are_read_chk7(form: Form) -> None:
    for made in proofs(8 * len(FORMS)):
        if made.form is form:
            assert_told_as_read(load(form.dialect), TOOLS, made.text, made.seed)


@given(seed=st.integers(0, 2**32))
def test_news_change_nothing_of_what_is_read_chk7(seed: int) -> None:
    source = Random(seed)
    case = source.choice(CASES)
    text, tools = damaged(case.raw, CASES, FRAGMENTS, source), ToolSet.of(case.tools)
    for dialect in (case.dialect, load("any")):
        quiet = items_of(dialect, tools, (text,), grows=False)
        assert split(items_of(dialect, tools, (text,))) == split(quiet)
        assert_told_as_read(dialect, tools, text, seed)


@pytest.mark.parametrize(
    "source",
    [
        '{"a": "one\ntwo\tthree"}',
        r'{"pattern": "\d+\.\w", "quote": "it\'s"}',
        r'{"a": "x\\", "b": "\"y\"", "c": "\u00e9\ud83d\ude00"}',
        '{"a": {"b": ["x", 1.50, true, null]}}',
        '{"a": "\\\n"}',
    ],
)
def test_the_models_json_is_told_as_strict_json_with_the_value_that_repair_reads_chk7(source: str) -> None:
    for pieces in ((source,), by_characters(source)):
        growth = Growth()
        strict = StrictSource(growth)
        for piece in pieces:
            strict.feed(piece)
        assert json.loads(growth.take()) == repair(source, closed=True).value


@pytest.mark.parametrize(
    "text",
    [
        'Here: {"name": "write_file", "arguments": {"path": "a", "content": "b"}}',
        '```json\n{"name": "write_file", "arguments": {"path": "a", "content": "b"}}\n```',
        '<tool_call>{"arguments": {"path": "a", "content": "b"}, "name": "write_file"}</tool_call>',
        '<tool_call>[{"name": "write_file", "arguments": {"path": "a", "content": "b"}}]</tool_call>',
        "<think>I write <tool_call><function=write_file><parameter=content>a file",
        'In code: `<tool_call>{"name": "write_file", "arguments": {"path": "a"}}</tool_call>`',
        "<function=write_file>\n<parameter=content>\nunsure\n</parameter>\n</function>",
    ],
)
def test_where_a_call_is_certain_only_at_its_end_nothing_is_told_chk7(text: str) -> None:
    tools = ToolSet.of([WRITE])
    for dialect in (load("hermes"), load("any")):
        assert told(items_of(dialect, tools, by_characters(text))) == []
