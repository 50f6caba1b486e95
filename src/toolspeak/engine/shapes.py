"""The calls of a dialect's shape, as an upstream can be told to write them: a grammar, structural tags, or a schema."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from toolspeak.dialects import OpenerPosition, Shape
from toolspeak.ir.constraint import ConstraintForm, TextGrammar, TextSchema, TextTags
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.gbnf import Rules, first_text, free_text, literal
from toolspeak.text.gbnf_schema import SchemaGrammar
from toolspeak.toolset.prepare import prepare
from toolspeak.toolset.toolset import ToolSet

MOST_CALLS: Final = 16
"""In one constrained answer: a small model that may go on does go on."""
_MOST_KNOWN: Final = 64
"""Agents send the same tools every turn, and the same tools are one tool set."""
END_OF_THOUGHT: Final = "</think>"


@dataclass(frozen=True)
class Calls:
    """Which calls an answer may have."""

    tools: ToolSet
    names: tuple[str, ...]
    most: int
    forced: bool
    """At least one, and nothing before it."""
    thinks: bool = False
    """The answer begins inside of a thought."""


@lru_cache(maxsize=_MOST_KNOWN)
def grammar(shape: Shape, calls: Calls) -> TextGrammar:
    """Describe the whole answer."""
    rules = Rules()
    rules.define("root", "")
    ways = [f"{literal(shape.named(name))} {_arguments(rules, shape, calls.tools, name)}" for name in calls.names]
    rest = f"{rules.add(' | '.join(ways))} {literal(shape.end)}"
    one = rules.add(f"{literal(shape.opening)} {rest}")
    most = min(calls.most, MOST_CALLS)
    more = f" ({literal(shape.separator)} {one}){{0,{most - 1}}}" if most > 1 else ""
    rules.define("root", _answer(rules, shape, calls, f"{one}{more}", f"{rest}{more}"))
    return TextGrammar(rules.text)


def _arguments(rules: Rules, shape: Shape, tools: ToolSet, name: str) -> str:
    values = SchemaGrammar(rules, tools.root_of(name))
    if shape.tags is None:
        return values.arguments()
    before, behind, end = shape.tags.parameter
    return values.parameters((before, behind), end)


def _answer(rules: Rules, shape: Shape, calls: Calls, whole: str, rest: str) -> str:
    """Describe an answer by its calls; `rest` is what follows the opening of the first."""
    if shape.is_whole:
        before, after = _before(rules, shape), literal(shape.around[1])
        whole = f"{before} ({whole}){'' if calls.forced else '?'} {after}"
    if shape.is_whole or calls.forced:
        return free_text(rules, END_OF_THOUGHT, f'"\\n"{{0,2}} {whole}', ends=False) if calls.thinks else whole
    then = rules.add(f"{literal(shape.opening.removeprefix(shape.mark))} {rest}")
    if shape.where is OpenerPosition.START:
        return first_text(rules, shape.mark, then)
    return free_text(rules, shape.mark, then, on_line=shape.where is OpenerPosition.LINE)


def _before(rules: Rules, shape: Shape) -> str:
    """Describe what stands before all calls: a thought too, as the first member of their object."""
    if not shape.thought:
        return literal(shape.around[0])
    first, rest = literal(shape.thinking), literal(f", {shape.around[0].removeprefix('{')}")
    return f"{first} {rules.json('string')} {rest}"


def tags(shape: Shape, calls: Calls, form: ConstraintForm) -> TextTags:
    """Describe the calls, and leave the text between them to the model."""
    each: list[Json] = [_tag(shape, calls.tools, name, form) for name in calls.names]
    once = calls.most == 1
    if calls.forced:
        apart = {"type": "tags_with_separator", "separator": shape.separator}
        return TextTags({**apart, "tags": each, "at_least_one": True, "stop_after_first": once})
    marked: JsonObject = {"type": "triggered_tags", "triggers": [shape.mark]}
    return TextTags({**marked, "tags": each, "at_least_one": False, "stop_after_first": once})


def _tag(shape: Shape, tools: ToolSet, name: str, form: ConstraintForm) -> JsonObject:
    content: JsonObject = {"type": "json_schema", "json_schema": prepare(tools.root_of(name), form)}
    return {"type": "tag", "begin": shape.begin(name), "content": content, "end": shape.end}


def schema(calls: Calls, form: ConstraintForm, key: str = "tools", thought: str = "") -> TextSchema:
    """Describe an answer that is one JSON object with all calls under a key."""
    each: list[Json] = [_call_schema(calls.tools, name, form) for name in calls.names]
    items: Json = each[0] if len(each) == 1 else {"anyOf": each}
    bounds: JsonObject = {"minItems": int(calls.forced), "maxItems": min(calls.most, MOST_CALLS)}
    listed: JsonObject = {"type": "array", "items": items, **bounds}
    properties: JsonObject = {**({thought: {"type": "string"}} if thought else {}), key: listed}
    return TextSchema(prepare(_closed(properties), form), "calls")


def _call_schema(tools: ToolSet, name: str, form: ConstraintForm) -> JsonObject:
    return _closed({"name": {"type": "string", "const": name}, "arguments": prepare(tools.root_of(name), form)})


def _closed(properties: JsonObject) -> JsonObject:
    required: list[Json] = [*properties]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
