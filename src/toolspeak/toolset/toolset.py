"""Compiles the tools of one request: finds names, and coerces and checks arguments.

tools = ToolSet.of(request.tools)
tools.find("functions.read_file").tool → "read_file"
tools.fit("read_file", {"path": "a", "offset": "4"}) → Fitted({"path": "a", "offset": 4}, (Fix(…),), ())
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from toolspeak.errors import BadJson, BadRequest, BadSchema, UnknownName
from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.coerce import Coerced, Coercer
from toolspeak.text.schema import Places, SchemaProblem, Validator, has_floats
from toolspeak.text.strict import dump
from toolspeak.toolset.memo import LARGEST, Cache, Memo
from toolspeak.toolset.names import Match, NameIndex, find_name

MOST_TOOLS: Final = 512
LONGEST_NAME: Final = 128

# Frames and tags contain names without escapes. With these characters a name could close a frame in the prompt, and the
# rest of it would read as an instruction (SAFE-2).
_REFUSED_IN_NAMES = frozenset(" \"'`<>[]{}")
_ANYTHING: Final[JsonObject] = {}


@dataclass(frozen=True, slots=True)
class Fitted:
    """Arguments after coercion to the tool's schema, the fixes that were applied, and the remaining problems."""

    arguments: JsonObject
    fixes: tuple[Fix, ...] = ()
    problems: tuple[SchemaProblem, ...] = ()


class _Entry:
    """One tool, with properties of its schema that are computed when they are first needed."""

    def __init__(self, tool: Tool, text: str) -> None:
        self.tool, self.text = tool, text
        # A lone surrogate is not in the text any more, but makes the schema a bad one.
        self.validator = Validator(tool.parameters, text="" if "\ufffd" in text else text)

    @property
    def places(self) -> Places:
        return self.validator.places

    @property
    def schema(self) -> JsonObject:
        return self.validator.schema

    @cached_property
    def properties(self) -> dict[str, JsonObject]:
        found = self.places.properties(self.schema)
        return {key: _one_schema(schemas) for key, schemas in found.items()}

    @cached_property
    def required(self) -> frozenset[str]:
        return self.places.required(self.schema)

    @cached_property
    def others(self) -> JsonObject:
        """The schema of properties that the tool does not name (`additionalProperties`)."""
        extra = [part.get("additionalProperties") for part in self.places.parts(self.schema)]
        return _one_schema([schema for schema in extra if isinstance(schema, dict)])

    @cached_property
    def _wants_integers(self) -> bool:
        return '"integer"' in dump(self.schema)

    def is_ready(self, value: JsonObject) -> bool:
        """Return whether coercion would change nothing. Only a valid 3.0 for an integer would still be changed."""
        return self.validator.accepts(value) and not (has_floats(value) and self._wants_integers)

    @cached_property
    def takes_others(self) -> bool:
        parts = self.places.parts(self.schema)
        named = any("properties" in part for part in parts)
        return not named or any(part.get("additionalProperties") not in (None, False) for part in parts)

    def schema_of(self, parameter: str) -> JsonObject:
        return self.properties.get(parameter, self.others)


def _one_schema(schemas: list[Json]) -> JsonObject:
    if not schemas:
        return _ANYTHING
    return schemas[0] if len(schemas) == 1 and isinstance(schemas[0], dict) else {"allOf": schemas}


class ToolSet:
    """The tools of one request. It is immutable, and shared between requests with the same tools."""

    text_bytes = 0
    """The size of the tools as text, which caches count; 0 if the set is too large for a cache."""

    def __init__(self, entries: Iterable[_Entry] = ()) -> None:
        """Take compiled entries; callers use `compile_tools` or `ToolSet.of`."""
        self._entries = {entry.tool.name: entry for entry in entries}
        self._index = NameIndex(self._entries)

    @staticmethod
    def of(tools: Sequence[Tool]) -> "ToolSet":
        """Compile the tools, or return the cached set of equal ones: agents send the same tools in every turn."""
        if not isinstance(tools, tuple):
            return _of(tools)
        known = _KNOWN.find(tools)
        if known is not None:
            return known
        made = _of(tools)
        return _KNOWN.keep(tools, made, made.text_bytes) if made.text_bytes else made

    @staticmethod
    def size_of(tools: tuple[Tool, ...]) -> int:
        """Return the size of tools as text, without writing them if they are cached. Raises BadJson."""
        known = _KNOWN.find(tools)
        if known is not None:
            return known.text_bytes
        return sum(len(tool.description) + len(dump(tool.parameters)) for tool in tools)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the request's order."""
        return self._index.names

    def tool(self, name: str) -> Tool:
        """Return the tool of exactly this name; raises UnknownName."""
        return self._entry(name).tool

    def find(self, name: str, *, counters: bool = False) -> Match:
        """Find the tool that the model means by a name (CHK-2)."""
        return find_name(name, self._index, counters=counters)

    def properties(self, name: str) -> frozenset[str]:
        """Return the parameters that a tool names."""
        return frozenset(self._entry(name).properties)

    def ordered(self, name: str) -> tuple[str, ...]:
        """Return the parameters that a tool names, in the order of its schema."""
        return tuple(self._entry(name).properties)

    def takes(self, name: str, parameters: Iterable[str]) -> bool:
        """Return whether a tool names all these parameters, or accepts additional ones."""
        entry = self._entry(name)
        return entry.takes_others or entry.properties.keys() >= set(parameters)

    def required(self, name: str) -> frozenset[str]:
        """Return the required parameters of a tool."""
        return self._entry(name).required

    def schema_of(self, name: str, parameter: str) -> JsonObject:
        """Return the schema of a parameter, or an empty one; references in it are relative to `root_of`."""
        return self._entry(name).schema_of(parameter)

    def root_of(self, name: str) -> JsonObject:
        """Return the usable part of a tool's schema."""
        return self._entry(name).schema

    def schema_text(self, name: str) -> str:
        """Return a tool's whole schema as compact JSON."""
        return self._entry(name).text

    def notes(self, name: str) -> tuple[str, ...]:
        """Return notes about the parts of a tool's schema that cannot be used, and are therefore not checked."""
        return self._entry(name).validator.notes

    def accepting(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return the tools that name all these parameters and require no others."""
        given = frozenset(keys)
        entries = self._entries.items()
        return tuple(name for name, one in entries if one.required <= given <= one.properties.keys())

    def takes_text(self, name: str, parameter: str) -> bool:
        """Return whether a parameter may be a string."""
        entry = self._entry(name)
        types = entry.places.types(entry.schema_of(parameter))
        return types is None or "string" in types

    def takes_any_text(self, name: str, parameter: str) -> bool:
        """Return whether a parameter may be any string: `typed` returns every text as it is, except for `null`."""
        entry = self._entry(name)
        return Coercer(entry.places).takes_any_text(entry.schema_of(parameter))

    def typed(self, name: str, parameter: str, raw: str) -> Coerced:
        """Return the value of a parameter that came as plain text, typed by its schema."""
        entry = self._entry(name)
        coerced = Coercer(entry.places).typed(raw, entry.schema_of(parameter))
        pointer = "/" + parameter.replace("~", "~0").replace("/", "~1")
        return replace(coerced, fixes=tuple(replace(fix, path=pointer + fix.path) for fix in coerced.fixes))

    def fit(self, name: str, value: Json, *, wrap_scalars: bool = False) -> Fitted:
        """Coerce a call's arguments to the tool's schema, then check them (CHK-3)."""
        entry = self._entry(name)
        if isinstance(value, dict) and entry.is_ready(value):
            return Fitted(value)
        coerced = Coercer(entry.places, wrap_scalars=wrap_scalars).arguments(value, entry.schema)
        if not isinstance(coerced.value, dict):
            problem = SchemaProblem("", "is not an object", "an object with the tool's arguments")
            return Fitted({}, coerced.fixes, (problem,))
        return Fitted(coerced.value, coerced.fixes, entry.validator.problems(coerced.value))

    def _entry(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownName(f"tool {name!r} is not one of {', '.join(self.names)}") from None


def compile_tools(tools: Sequence[Tool]) -> ToolSet:
    """Compile tools; raises BadRequest or BadSchema, which say which tool is wrong and why."""
    return _compiled(tools, [_text_of(tool) for tool in tools])


def _compiled(tools: Sequence[Tool], texts: Sequence[str]) -> ToolSet:
    if len(tools) > MOST_TOOLS:
        raise BadRequest(f"tools has {len(tools)} entries, at most {MOST_TOOLS} are accepted")
    entries: dict[str, _Entry] = {}
    for index, (tool, text) in enumerate(zip(tools, texts, strict=True)):
        _check_name(tool.name, f"tools[{index}].name")
        if tool.name in entries:
            raise BadRequest(f"tools[{index}].name {tool.name!r} is there twice, each name is accepted once")
        entries[tool.name] = _entry(tool, text, f"tools[{index}].parameters")
    return ToolSet(entries.values())


def _text_of(tool: Tool) -> str:
    """Return a tool's schema as JSON; empty if it is none, which compiling says better."""
    try:
        return dump(tool.parameters)
    except BadJson:
        return ""


def _check_name(name: str, where: str) -> None:
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or not _REFUSED_IN_NAMES.isdisjoint(name):
        raise BadRequest(
            f"{where} {name[:LONGEST_NAME]!r} is not accepted: 1 to {LONGEST_NAME} printable characters, "
            "without blanks, quotes, backticks, angle brackets, square brackets and braces"
        )


def _entry(tool: Tool, text: str, where: str) -> _Entry:
    try:
        entry = _Entry(tool, text)
    except BadSchema as error:
        raise BadSchema(f"{where} of {tool.name!r}: {error}") from None
    if tool.parameters.get("type") == "object":
        return entry  # most schemas say so, and are not read further before a call: most tools are never called
    types = entry.places.types(entry.schema)
    if types is not None and "object" not in types:
        raise BadSchema(f"{where} of {tool.name!r}: the type is {', '.join(sorted(types))}, object is accepted")
    return entry


_KNOWN: Final = Memo[ToolSet]()
_COMPILED: Final = Cache[tuple[tuple[str, str, str, bool], ...], ToolSet]()
"""Tool sets by the tools' texts: equal tools may come in another tuple."""


def _of(tools: Sequence[Tool]) -> ToolSet:
    """Compile tools whose tuple is not cached; equal tools may be cached by their text."""
    texts = [_text_of(tool) for tool in tools]
    if not all(texts):
        return _compiled(tools, texts)  # raises an error that says what is wrong
    key = tuple((tool.name, tool.description, text, tool.strict) for tool, text in zip(tools, texts, strict=True))
    known = _COMPILED.find(key)
    if known is not None:
        return known
    compiled = _compiled(tools, texts)
    size = sum(len(name) + len(description) + len(text) for name, description, text, _ in key)
    compiled.text_bytes = size if size <= LARGEST else 0
    return _COMPILED.keep(key, compiled, size)
