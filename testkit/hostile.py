"""Random tools, calls and texts that do their best to break a dialect, from any `random.Random`.

Values are JSON texts, so that numbers keep their spelling. Their strings are made of every marker of every dialect, of
quotes, fences, line ends, control characters and lone surrogates. They always fit the tool's schema: a call
that does not fit is a complaint, and is never written.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from toolspeak.dialects import load, names
from toolspeak.dialects.core.grammar import MarkupGrammar
from toolspeak.ir.json import Json, JsonObject, as_list, as_object
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

NAMES: Final = (
    *("f", "f2", "get_weather", "mcp__files__read", "a.b-c", "größe", "日本", "x", "x:1", "ns/tool", "ns/", "_"),
    *("functions.f", "tool", "function", "functions", "json", "print", "name", "tool_call", "and", "Thought"),
)
ODD_NAMES: Final = ("1st", "-x", "$x", "#1", "(a)", "a=b", "=", "a,b;c", "f|g", "|", "/", "…", "\\n", "~~~", "**")
KEYS: Final = ("a", "city", "text", "n", "name", "arguments", "parameter", "k2", "größe", "x-y", "value", "input")
ODD_KEYS: Final = (
    *("", " ", "a b", "a\nb", '"', "\\", "a=b", "</k>", "<a>", "a:b", "{", "😀", "k" * 300, "\0", "b,", "*"),
)
BLANKS: Final = ("", " ", "  ", "\t", "\n", "\n\n", "\r\n", "\r", "\x85", "\u2028", "\xa0", "\u200b", "\ufeff")
WORDS: Final = (
    *("a", "Oslo S", "Ünïcödé", "日本語", "😀", "\U0010ffff", "…", "x < y", "a & b", "&lt;", "&quot;", "$1"),
    *("\0", "\x1b", "\x7f", "\ud800", "\udfff", "\ufffd", "#include <stdio.h>\n", "<b>bold</b>", "a<b>c</b>"),
)
SYNTAX: Final = (
    *('"', "'", '"""', "'''", "`", "``", "```", "````", "~~~", "\\", "\\n", "\\u0041", "\\/", "\\ud83d"),
    *("{", "}", "[", "]", "(", ")", "<", ">", "</", ",", ":", ";", "=", "**", "#", "//", "/*", "<|", "|>", "-->"),
)
JSON_LIKE: Final = (
    *("5", "-0", "1e5", "007", "1.", "true", "True", "null", "None", "{}", "[]", '"x"', '{"a": 1}', "[1, 2]"),
    *("{'a': 1}", '{"name": "f", "arguments": {}}', '\n{"tool": "f", "args": {}}\n', "[f()]", "f{}", "call:f{"),
)
MARKUP: Final = (
    *("<![CDATA[", "]]>", "<parameter=a>", "\n<parameter=city>\n", '<parameter name="a">', "\n</parameter>\n"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "\n<city>", "</city>", "<a>", "</a>", "<\\/a>"),
    *("</ parameter >", "<\\/parameter>", "<function=f>", "</function>", '<invoke name="f">', "</invoke>"),
    *("</tool_call>\n<tool_call>", "\nAction: f\nAction Input: {}\n", "\nObservation: x", "functions.f:0"),
    *("```tool_call\n", "\n```\n", "\n```json action\n", '<|"|>', "<escape>"),
)
NUMBERS: Final = ("0", "-0", "1", "-1", "42", "9007199254740993", "-123456789012345678901234567890", "1" + "0" * 99)
FLOATS: Final = ("0.0", "-0.0", "1e5", "1E+2", "-2.5e-3", "0.10", "1.0", "3.141592653589793", "1e300", "5e-324")
TEXTS: Final = (
    *("I look it up.", "Sure: 2 < 3 and a & b.", "Ünïcödé 😀 日本", "# Head\n\n- one\n- two", "1. first\n2. second\n"),
    *(
        "Use `<tool_call>` or `[TOOL_CALLS]` for that.",
        "```python\nprint('<tool_call>{}')\n```",
        "> quoted: <tool_call>",
    ),
    *("a\tb  c", "{not json}", '{"a": 1}', "[1]", "```sh\nAction: f\n```", "x = f(1)", "**bold** `code` _it_"),
    *("  indented", "the end…"),
)
DEEP: Final = 55
ALL_TYPES: Final[list[Json]] = ["string", "integer", "number", "boolean", "null", "array", "object"]
INTEGER: Final[JsonObject] = {"type": "integer"}
STRING: Final[JsonObject] = {"type": "string"}
SCHEMAS: Final[tuple[JsonObject, ...]] = (
    *(STRING, STRING, STRING, INTEGER, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {}),
    *({"type": "array"}, {"type": "array", "items": INTEGER}, {"type": "array", "items": STRING}, {"type": "object"}),
    *(
        {"type": ["string", "null"]},
        {"type": ["integer", "null"]},
        {"anyOf": [INTEGER, STRING]},
        {"description": "any"},
    ),
    {"type": "object", "properties": {"text": STRING, "n": INTEGER}, "required": ["text"]},
    {"type": "string", "enum": ["C", "F", "null", "5"]},
)


@cache
def pieces() -> tuple[tuple[str, ...], ...]:
    """Return the parts of strings, by kind: every literal of every dialect, and more."""
    literals = {literal for name in names() for literal in literals_of(load(name).grammar)}
    return BLANKS, WORDS, SYNTAX, JSON_LIKE, MARKUP, tuple(sorted(literals))


def literals_of(grammar: MarkupGrammar) -> Iterator[str]:
    """Yield every literal that a grammar looks for."""
    for wrapper in grammar.wrappers:
        yield from (*wrapper.openers, *wrapper.closers)
    for mark in grammar.reasoning:
        yield from (mark.opener, *mark.closers, *mark.stops)
    yield from (label.literal for label in grammar.labels)
    yield from (special.literal for special in grammar.specials)
    yield from (*grammar.closers, *grammar.results, *grammar.result_lines)


@dataclass(frozen=True)
class Example:
    """Calls of some tools, and the text around them."""

    tools: ToolSet
    calls: tuple[Call, ...]
    before: str = ""
    after: str = ""


def example(source: Random, tools: ToolSet) -> Example:
    """Make calls of these tools."""
    calls = tuple(call(source, tools) for _ in range(source.choice((1, 1, 2, 3))))
    before, after = source.choice(("", *TEXTS)), source.choice(("", *TEXTS))
    return Example(tools, calls, before, after)


def tool_set(source: Random) -> ToolSet:
    """Make one to three tools."""
    chosen = {source.choice(NAMES + ODD_NAMES) for _ in range(source.choice((1, 2, 3)))}
    return ToolSet.of([Tool(name, "Does it.", parameters(source)) for name in sorted(chosen)])


def parameters(source: Random) -> JsonObject:
    """Make the schema of a tool's arguments."""
    keys = {source.choice(ODD_KEYS if source.randrange(8) == 0 else KEYS) for _ in range(source.randrange(5))}
    properties: dict[str, Json] = {key: source.choice(SCHEMAS) for key in sorted(keys)}
    schema: JsonObject = {"type": "object"}
    if properties:
        schema |= {"properties": properties, "required": [key for key in properties if source.randrange(2)]}
    return schema | {"additionalProperties": True} if source.randrange(4) == 0 else schema


def call(source: Random, tools: ToolSet) -> Call:
    """Make a call that fits its tool's schema."""
    name = source.choice(tools.names)
    schema = tools.tool(name).parameters
    properties, required = as_object(schema.get("properties")), as_list(schema.get("required"))
    given = [key for key in properties if key in required or source.randrange(2)]
    members = {key: value(source, properties[key]) for key in given}
    if not properties or "additionalProperties" in schema:
        extra = (source.choice(source.choice((KEYS, ODD_KEYS))) for _ in range(source.randrange(3)))
        members |= {key: value(source, {}) for key in extra if key not in properties}
    native_id = source.choice(("", "call_1", f"functions.{name}:7", "functions.other:1"))
    return Call("call_1", name, object_text(source, members), native_id)


def value(source: Random, of: Json, depth: int = 0) -> str:
    """Make a JSON text that the schema accepts."""
    schema = as_object(of)
    if "enum" in schema:
        return json.dumps(source.choice(as_list(schema["enum"])))
    if "anyOf" in schema:
        return value(source, source.choice(as_list(schema["anyOf"])), depth)
    if "type" not in schema and source.randrange(100) == 0:
        return "[" * DEEP + "]" * DEEP
    kinds = schema.get("type", ALL_TYPES)
    match kinds if isinstance(kinds, str) else source.choice(as_list(kinds)):
        case "string":
            return json.dumps(string(source), ensure_ascii=source.randrange(2) == 0)
        case "integer":
            return source.choice(NUMBERS)
        case "number":
            return source.choice(NUMBERS + FLOATS)
        case "array":
            items = [value(source, schema.get("items", {}), depth + 1) for _ in range(_few(source, depth))]
            return f"[{source.choice((', ', ',')).join(items)}]"
        case "object":
            return object_text(source, _members(source, schema, depth))
        case "boolean":
            return source.choice(("true", "false"))
        case _:
            return "null"


def _members(source: Random, schema: JsonObject, depth: int) -> dict[str, str]:
    if "properties" in schema:
        return {key: value(source, below, depth + 1) for key, below in as_object(schema["properties"]).items()}
    keys = {source.choice(source.choice((KEYS, ODD_KEYS))) for _ in range(_few(source, depth))}
    return {key: value(source, {}, depth + 1) for key in sorted(keys)}


def _few(source: Random, depth: int) -> int:
    return source.randrange(max(1, 4 - depth))


def object_text(source: Random, members: Mapping[str, str]) -> str:
    """Write an object with some blanks."""
    colon, comma, edge = source.choice(
        ((": ", ", ", ""), (":", ",", ""), (": ", ",\n  ", "\n"), (" :\t", " ,\r\n", " "))
    )
    inner = comma.join(f"{json.dumps(key, ensure_ascii=False)}{colon}{text}" for key, text in members.items())
    return f"{{{edge}{inner}{edge}}}"


def string(source: Random) -> str:
    """Make a hostile string."""
    if source.randrange(40) == 0:
        return source.choice(source.choice(pieces())) * source.randrange(1, 300)
    joined = "".join(source.choice(source.choice(pieces())) for _ in range(source.choice((0, 1, 1, 2, 3, 5))))
    return joined if "\ud800\udfff" not in joined else "\ud800"  # those two would be a pair
