"""What one request may contain (SAFE-7)."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak import wires
from toolspeak.errors import BadField, TooLarge
from toolspeak.ir.json import Json
from toolspeak.wires.limits import RequestLimits, check_body, decode_within

CHAT = wires.load("openai_chat")
SMALL = RequestLimits(
    json_values=400, messages=8, parts=20, text_characters=2000, tools=4, tools_bytes=1200, schema_bytes=500
)


def decoded(body: dict[str, Any], limits: RequestLimits = SMALL) -> None:
    decode_within(limits, CHAT, json.dumps({"model": "m", **body}).encode(), "/v1/chat/completions")


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


def tool(name: str, size: int) -> dict[str, Any]:
    empty: dict[str, Any] = {"type": "object", "properties": {}, "description": ""}
    schema = {**empty, "description": "x" * (size - len(json.dumps(empty, separators=(",", ":"))))}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def parts(number: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * number}]}


Body = dict[str, Any]


def messages(number: int) -> Body:
    return said(*["a"] * number)


def tools(number: int) -> Body:
    return {**said("a"), "tools": [tool(f"t{index}", 60) for index in range(number)]}


def characters(number: int) -> Body:
    return said("x" * (number - 5), "y" * 5)


def one_schema(size: int) -> Body:
    return {**said("a"), "tools": [tool("t", size)]}


def all_schemas(size: int) -> Body:
    return {**said("a"), "tools": [tool("a", 400), tool("b", 400), tool("c", size - 800)]}


LIMITS: dict[str, tuple[int, Callable[[int], Body], type[BadField], str]] = {
    "messages": (8, messages, BadField, "limits.messages"),
    "parts": (20, parts, BadField, "limits.parts"),
    "tools": (4, tools, BadField, "limits.tools"),
    "text": (2000, characters, TooLarge, "limits.text_characters"),
    "one schema": (500, one_schema, TooLarge, "limits.schema_bytes"),
    "all schemas": (1200, all_schemas, TooLarge, "limits.tools_bytes"),
}


@pytest.mark.parametrize(("most", "body", "error", "setting"), LIMITS.values(), ids=LIMITS.keys())
def test_each_limit_holds_at_its_value_and_one_above_safe7(
    most: int, body: Callable[[int], Body], error: type[BadField], setting: str
) -> None:
    decoded(body(most - 1))
    decoded(body(most))
    with pytest.raises(error, match=setting):
        decoded(body(most + 1))


@pytest.mark.parametrize("wire", wires.names())
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed_safe7(wire: str) -> None:
    body = b'{"x":[' + b"0," * 500 + b"0]}"
    with pytest.raises(TooLarge, match="json_values"):
        decode_within(SMALL, wires.load(wire), body, "/v1beta/models/m:generateContent")
    assert TooLarge.status == 413


def test_escapes_are_counted_and_plain_text_is_not_safe7() -> None:
    limits = RequestLimits(json_escapes=40)
    check_body(b'"' + b"\\u00e9" * 40 + b"e" * 500 + b'"', limits)
    with pytest.raises(TooLarge, match="json_escapes"):
        check_body(b'"' + b"\\u00e9" * 41 + b'"', limits)


def test_commas_and_brackets_in_strings_cost_nothing_safe7() -> None:
    decoded(said("{[,,]}" * 150, '\\",[' * 50))
    decoded({**said("a"), "stop": ["," * 300, "[" * 300, '"' * 300, "\\" * 301]})


def values(value: Json) -> int:
    """Count members and elements; an empty array is one value."""
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return max(1, len(value)) + sum(map(values, inner))


TREES: st.SearchStrategy[Json] = st.recursive(
    st.text(st.sampled_from('",[]{}\\a\n'), max_size=6) | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(TREES, min_size=1, max_size=6))
def test_values_are_counted_exactly_safe7(tree: list[Json]) -> None:
    body, count = json.dumps(tree).encode(), values(tree)
    check_body(body, RequestLimits(json_values=count))
    with pytest.raises(TooLarge):
        check_body(body, RequestLimits(json_values=count - 1))


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "a string without an end": lambda size: b'"' + b'\\"' * (size // 2),
    "quotes": lambda size: b'"' * size,
    "backslashes": lambda size: b'"' + b"\\" * (size + 1),
    "brackets": lambda size: b"[" * size,
    "empty strings": lambda size: b'"",' * (size // 3),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_counting_takes_linear_time_safe7(make: Callable[[int], bytes]) -> None:
    def count(body: bytes) -> None:
        with suppress(TooLarge):
            check_body(body, RequestLimits(json_values=10))

    assert growth(count, make(4_000_000), make(8_000_000)) < BAR
