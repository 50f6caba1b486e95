"""Constrained decoding for emulated calls: which constraint each request of a turn sends to its upstream (CHK-8).

    off      no constraint
    retry    calls only, if a call must come or a bad one is to be written again
    text     from the first request on: text is free, and a call that is begun can only be a valid one
    json     the whole answer is JSON

Upstreams have three forms of it: a grammar of the whole answer (llama.cpp), structural tags inside of free text (vLLM,
SGLang), and a schema, which leaves no free text at all. Calls under a schema are read like any bare JSON.

The answer is checked like any other. Some servers accept a constraint and ignore it, and some break over it: then the
request is sent again without it, and the outcome says so (`Kept`).

Each kind of server supports another part of JSON Schema, so `prepare` rewrites a tool's schema for it. References
are expanded, because a schema inside of another one has lost its root. Keywords that a server does not know are left
out; demands of the server are added. The answer is still checked against the tool's own schema (CHK-3), so a keyword
that is left out is only not enforced early.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from toolspeak.dialects import Dialect, OpenerPosition, Shape, load
from toolspeak.engine.answer import ReadAnswer
from toolspeak.engine.effects import Kept
from toolspeak.engine.plan import DECISION_DIALECT, Plan
from toolspeak.engine.trouble import Kind, Trouble, must_call
from toolspeak.facts.model import Constrain
from toolspeak.ir.complaint import Problem
from toolspeak.ir.constraint import Constraint, ConstraintForm, TextGrammar, TextSchema, TextTags
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import ChoiceMode, ToolChoice
from toolspeak.text.gbnf import Rules, SchemaGrammar, first_text, free_text, literal
from toolspeak.text.schema import Places
from toolspeak.toolset.toolset import ToolSet

_MOST_NODES: Final = 4_000
_DEEPEST: Final = 16
_LARGEST: Final = 1_000
"""The largest count or length that is sent: a grammar writes it out."""
_WORDS: Final = frozenset(("type", "description", "enum", "const", "properties", "required", "items", "anyOf"))
_COUNTS: Final = frozenset(("minItems", "maxItems"))
_LENGTHS: Final = frozenset(("minLength", "maxLength"))
_RANGES: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
_TEXT_OF_JSON: Final[JsonObject] = {"type": "string", "description": "a JSON object, as text"}


@dataclass(frozen=True, slots=True)
class _Subset:
    """The part of JSON Schema that one kind of server supports."""

    keywords: frozenset[str]
    closed: bool = False
    """Whether every object must have `additionalProperties: false`."""
    all_required: bool = False
    """Whether every property must be required; optional ones may then be null, which coercion drops again."""


_GRAMMARS: Final = _Subset(_WORDS | _COUNTS | _LENGTHS | _RANGES | {"prefixItems", "additionalProperties"})
_SUBSETS: Final[Mapping[ConstraintForm, _Subset]] = {
    ConstraintForm.STRICT: _Subset(_WORDS | _COUNTS | _RANGES, closed=True, all_required=True),
    ConstraintForm.ANTHROPIC: _Subset(_WORDS, closed=True),
    ConstraintForm.GEMINI: _Subset(
        (_WORDS | _COUNTS | {"minimum", "maximum", "prefixItems", "additionalProperties"}) - {"const"}
    ),
}


def prepare(schema: JsonObject, form: ConstraintForm) -> JsonObject:
    """Return a copy of a schema that servers of this form accept."""
    return _Preparing(schema, _SUBSETS.get(form, _GRAMMARS)).at(schema, 0)


class _Preparing:
    """Copies one schema."""

    def __init__(self, root: JsonObject, subset: _Subset) -> None:
        self._places, self._subset, self._left = Places(root), subset, _MOST_NODES

    def at(self, schema: Json, depth: int) -> JsonObject:
        """Return the copy of one subschema. Too deep, or inside of an endless reference, it is `{}`: any value."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return {}
        merged = _merged(self._places.parts(schema))
        kept: JsonObject = {}
        if "const" in merged and "const" not in self._subset.keywords:
            kept["enum"] = [merged["const"]]
        for key, value in merged.items():
            if key in self._subset.keywords and (copied := self._keyword(key, value, depth)) is not None:
                kept[key] = copied
        return self._finished(kept)

    def _keyword(self, key: str, value: Json, depth: int) -> Json:
        match key:
            case "properties" if isinstance(value, dict):
                return {name: self.at(inner, depth + 1) for name, inner in value.items()}
            case "items":
                return self.at(value, depth + 1)
            case "additionalProperties":
                return self.at(value, depth + 1) if isinstance(value, dict) else value
            case "anyOf" | "prefixItems" if isinstance(value, list):
                return [self.at(inner, depth + 1) for inner in value]
            case "minItems" | "maxItems" | "minLength" | "maxLength":
                return value if isinstance(value, int) and value <= _LARGEST else None
            case _:
                return value

    def _finished(self, kept: JsonObject) -> JsonObject:
        properties = kept.get("properties")
        if kept.get("type") != "object" or not self._subset.closed:
            return kept
        if not isinstance(properties, dict) or not properties:
            return {**_TEXT_OF_JSON} if "properties" not in kept else {**kept, "additionalProperties": False}
        return {
            **(_all_required(kept, properties) if self._subset.all_required else kept),
            "additionalProperties": False,
        }


def _all_required(schema: JsonObject, properties: JsonObject) -> JsonObject:
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    names: list[Json] = [*properties]
    or_null: JsonObject = {
        name: inner if name in needed else {"anyOf": [inner, {"type": "null"}]} for name, inner in properties.items()
    }
    return {**schema, "properties": or_null, "required": names}


def _merged(parts: list[JsonObject]) -> JsonObject:
    """Merge schemas that all apply: the union of their properties, and the first value of any other keyword."""
    if len(parts) == 1 and "oneOf" not in parts[0]:
        return parts[0]
    merged: JsonObject = {}
    for part in parts:
        for key, value in part.items():
            word, known = ("anyOf" if key == "oneOf" else key), merged.get("anyOf" if key == "oneOf" else key)
            if word == "properties" and isinstance(known, dict) and isinstance(value, dict):
                merged[word] = {**value, **known}
            elif word == "required" and isinstance(known, list) and isinstance(value, list):
                merged[word] = list(dict.fromkeys([*known, *value]))
            else:
                merged.setdefault(word, value)
    return merged


MOST_CALLS: Final = 16
"""Calls in one constrained answer. A small model that may write another call writes it."""
_MOST_KNOWN: Final = 64
"""Grammars that are cached. Agents send the same tools in every turn, and equal tools share one tool set."""
END_OF_THOUGHT: Final = "</think>"
"""The end of reasoning that a template has opened; before it, a grammar must leave the text free."""


@dataclass(frozen=True)
class AllowedCalls:
    """The calls that an answer may have."""

    tools: ToolSet
    names: tuple[str, ...]
    most: int
    forced: bool
    """Whether at least one call must come, with nothing before it."""
    thinks: bool = False
    """Whether the answer begins inside of reasoning."""


@lru_cache(maxsize=_MOST_KNOWN)
def grammar(shape: Shape, calls: AllowedCalls) -> TextGrammar:
    """Return a GBNF grammar of the whole answer, for llama.cpp."""
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


def _answer(rules: Rules, shape: Shape, calls: AllowedCalls, whole: str, rest: str) -> str:
    """Return the expression of an answer; `whole` are its calls, `rest` the same after the opening of the first."""
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
    """Return the expression before all calls; in some dialects it has a thought, as first member of the object."""
    if not shape.thought:
        return literal(shape.around[0])
    first, rest = literal(shape.thinking), literal(f", {shape.around[0].removeprefix('{')}")
    return f"{first} {rules.json('string')} {rest}"


def tags(shape: Shape, calls: AllowedCalls, form: ConstraintForm) -> TextTags:
    """Return structural tags for the calls; the text between them is free."""
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


def calls_schema(calls: AllowedCalls, form: ConstraintForm, key: str = "tools", thought: str = "") -> TextSchema:
    """Return the schema of an answer that is one JSON object with all calls under `key`."""
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


REFUSES_CONSTRAINT: Final = frozenset(
    (
        FailureKind.INVALID_REQUEST,
        FailureKind.NATIVE_PARSER_FAILED,
        FailureKind.MODEL_SCHEMA_ERROR,
        FailureKind.TOOLS_UNSUPPORTED,
        FailureKind.TRANSIENT,
        FailureKind.OTHER,
    )
)
"""The errors of a server that does not support a constraint, or breaks over it.

They are many, since few servers say so clearly. A wrong guess costs one request without the constraint.
"""
AS_JSON: Final = (
    'Answer with one JSON object: {"tools": [{"name": "<tool name>", "arguments": {"<argument>": "<value>"}}]}'
)
"""The words that go with a schema: it leaves no other form, whatever form the contract teaches."""
_TAGS: Final = (ConstraintForm.VLLM, ConstraintForm.SGLANG)
_BEFORE_MARK: Final = {OpenerPosition.START: r"\A", OpenerPosition.LINE: r"(?:\A|(?<=\n))", OpenerPosition.ANYWHERE: ""}
_UNKNOWN: Final = (Problem.UNKNOWN_TOOL, Problem.AMBIGUOUS)


class Constraining:
    """Chooses the constraint of each request of one emulated turn, and remembers whether the upstream refused one."""

    def __init__(self, plan: Plan, dialect: Dialect, tools: ToolSet, choice: ToolChoice, most: int) -> None:
        """Take the plan and the tools, with the answer tool if there is one; `most` is the limit of calls."""
        self._plan, self._tools, self._choice, self._most = plan, tools, choice, most
        self._form = plan.facts.quirks.constraint
        self._shape = dialect.writer.shape if dialect.writer else None
        self._refused = self._is_forced = False

    def first(self) -> Constraint | None:
        """Return the constraint of the first request; None for no constraint."""
        if self._off or (self._plan.settings.constraint is Constrain.RETRY and not must_call(self._choice)):
            return None
        return self._forced(self._allowed()) if must_call(self._choice) else self._free()

    def again(self, trouble: Trouble) -> Constraint | None:
        """Return the constraint of a retry after this trouble; None for no constraint.

        After bad calls of known tools, only calls of these tools are allowed, and no more than there were. After an
        unknown tool the model is free again: it may have meant to answer in words.
        """
        if self._off or trouble.kind is Kind.REPEATED:
            return None
        complaints = trouble.complaints
        unknown = any(complaint.problem in _UNKNOWN for complaint in complaints)
        if trouble.kind is Kind.NO_CALL or must_call(self._choice):
            return self._forced(self._allowed())
        if trouble.kind is not Kind.BAD_CALLS or unknown:
            return self._free()
        named = dict.fromkeys(complaint.name for complaint in complaints)
        meant = tuple(name for name in self._tools.names if name in named)
        return self._forced(meant if len(meant) == len(named) else self._allowed(), len(complaints))

    def judged(self, asked: Constraint | None, answer: ReadAnswer) -> Kept:
        """Return what became of a request's constraint. After a refusal, no later request of the turn has one."""
        if asked is None:
            return Kept.UNASKED
        if answer.failure is not None:
            self._refused = answer.failure.kind in REFUSES_CONSTRAINT
            return Kept.REFUSED if self._refused else Kept.UNASKED
        return Kept.KEPT if self._keeps(asked, answer.said) else Kept.IGNORED

    def _keeps(self, asked: Constraint, said: str) -> bool:
        """Return whether the constraint allows the text, as far as the beginning of its first call shows.

        This detects servers that accept the field and ignore it. A full parse of the grammar would cost more than that
        is worth, because the calls are checked in any case.
        """
        if isinstance(asked, TextSchema):
            return said.lstrip().startswith("{")
        shape = self._shape or _decision_shape()
        begins = [shape.around[0] + shape.begin(name) for name in self._tools.names]
        begins = [shape.thinking] if shape.thought else begins
        if self._is_forced or shape.is_whole:
            begins += () if self._is_forced else ("".join(shape.around),)
            return _begins_with(said.rpartition(END_OF_THOUGHT)[2].lstrip(), begins)
        found = re.search(_BEFORE_MARK[shape.where] + re.escape(shape.mark), said)
        return found is None or _begins_with(said[found.start() :], begins)

    @property
    def _off(self) -> bool:
        return self._refused or self._plan.settings.constraint is Constrain.OFF

    def _allowed(self) -> tuple[str, ...]:
        named = self._choice.mode is ChoiceMode.NAMED
        return tuple(name for name in self._tools.names if not named or name == self._choice.name)

    def _forced(self, names: tuple[str, ...], most: int = MOST_CALLS) -> Constraint:
        self._is_forced = True
        calls = AllowedCalls(
            self._tools, names, min(most, self._most), forced=True, thinks=self._plan.facts.starts_in_reasoning
        )
        shape, form = self._shape, self._form
        if form is ConstraintForm.LLAMACPP:
            return grammar(shape or _decision_shape(), calls)
        if shape is not None and self._has_tags:
            return tags(shape, calls, form)
        return self._schema(calls)

    def _free(self) -> Constraint | None:
        """Return a constraint that leaves text free; None if the upstream has no such constraint."""
        self._is_forced = False
        shape, form = self._shape, self._form
        if shape is None:
            return None
        forced = bool(shape.thought)  # in such a dialect the answer in words is a call too
        calls = AllowedCalls(
            self._tools, self._allowed(), self._most, forced=forced, thinks=self._plan.facts.starts_in_reasoning
        )
        if form is ConstraintForm.LLAMACPP:
            return grammar(shape, calls)
        if shape.is_whole:
            return self._schema(calls)
        return tags(shape, calls, form) if self._has_tags else None

    @property
    def _has_tags(self) -> bool:
        """Whether the calls can be written as structural tags: the arguments are JSON, and text surrounds the calls."""
        shape = self._shape
        is_json = shape is not None and not shape.is_whole and shape.tags is None
        return is_json and self._form in _TAGS

    def _schema(self, calls: AllowedCalls) -> TextSchema:
        """Return a schema of the whole answer: the dialect's own if it is JSON, else that of a decision."""
        shape, form = self._shape, self._form
        if shape is None or not shape.is_whole:
            return calls_schema(calls, form)
        return calls_schema(calls, form, shape.key, shape.thought)


def words_for(constraint: Constraint | None, dialect: Dialect) -> tuple[str, ...]:
    """Return the words for the model if a constraint enforces another form than its contract teaches."""
    shape = dialect.writer.shape if dialect.writer else None
    taught = shape is not None and (shape.is_whole or not isinstance(constraint, TextSchema))
    return () if constraint is None or taught else (AS_JSON,)


def _begins_with(text: str, begins: Iterable[str]) -> bool:
    """Return whether a text begins with one of these, or is the beginning of one."""
    return any(text.startswith(begin) or begin.startswith(text) for begin in begins)


def _decision_shape() -> Shape:
    """Return the shape of a decision, which every reader reads; it serves dialects without a shape."""
    writer = load(DECISION_DIALECT).writer
    if writer is None or writer.shape is None:
        raise AssertionError(f"dialect {DECISION_DIALECT!r} has no shape")
    return writer.shape
