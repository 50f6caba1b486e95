"""G1, calls as JSON: one object, several in a row, or an array, inside any wrapper.

    {"name": …, "arguments": …}   {"tool": …, "args": …}   {"function": {"name": …, "arguments": …}}
    {"tool_calls": [ … ]}         {"get_weather": { … }}   [ … ]

The end of the JSON value decides, not the wrapper's closer: a closer inside a string is data. Only where the value is
broken does the first ender after the break end it, and then the body is repaired.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from toolspeak.dialects.core.form import MORE, BodyOutcome, NonCall, Scope
from toolspeak.dialects.core.growth import Growth, StrictSource
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.jsonspan import MAX_BLANKS, JsonSpan, SpanStatus
from toolspeak.text.repair import Repaired, repair
from toolspeak.text.strict import parse
from toolspeak.toolset.check import Attempt, is_schema

# Models have been seen to use all of these keys. A key is never searched inside the arguments: a tool may have an
# argument that is called `name`.
NAME_KEYS: Final = ("name", "tool_name", "tool", "function", "action", "recipient", "function_name")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "params", "args", "input", "action_input", "tool_input")
ID_KEYS: Final = ("id", "tool_call_id", "call_id")
ENVELOPE_KEYS: Final = ("tool_calls", "tools", "tool_call", "function_call", "calls", "command")
CALL_KEYS: Final = frozenset(
    {*NAME_KEYS, *ARGUMENT_KEYS, *ID_KEYS, *ENVELOPE_KEYS, "type", "index", "thoughts", "thought"}
)
FILLED_IN: Final = Fix("definition_filled_in")
"""The call is the tool's definition with values in place of the schema."""
_DEFINITION_KEYS: Final = frozenset({"description", "required", "strict"})
"""What a tool's definition has beside its name and its schema."""
_MAX_ENVELOPES = 3
_MOST_BEFORE_ARGUMENTS = 8
"""Members that may be before the arguments of a call that streams."""


def attempts_in(value: Json, scope: Scope, depth: int = 0) -> tuple[Attempt, ...] | NonCall:
    """Return the calls that a JSON value holds, or TEXT where it is no call and need not be one."""
    if isinstance(value, list):
        return _each(value, scope, depth)
    if not isinstance(value, dict):
        return _wrong_shape(scope)
    inner = _enveloped(value)
    if inner is not None and depth < _MAX_ENVELOPES:
        if inner == [] and scope.no_calls_is_answer:
            return NonCall.DEBRIS
        return attempts_in(inner, scope, depth + 1)
    return _single(value, scope)


def _each(items: list[Json], scope: Scope, depth: int) -> tuple[Attempt, ...] | NonCall:
    found: list[Attempt] = []
    for item in items:
        attempts = attempts_in(item, scope, depth + 1) if isinstance(item, dict) else NonCall.TEXT
        if isinstance(attempts, tuple):
            found.extend(attempts)
        elif not scope.sure:
            return NonCall.TEXT
    if len(found) < len(items) or not items:
        misfit = _wrong_shape(scope)
        return (*found, *misfit) if isinstance(misfit, tuple) else NonCall.TEXT
    return tuple(found)


def _wrong_shape(scope: Scope) -> tuple[Attempt, ...] | NonCall:
    if not scope.sure:
        return NonCall.TEXT
    return (Attempt(None, problem=Problem.PARSE_ERROR, detail="a call is an object with a name and arguments"),)


def _enveloped(value: JsonObject) -> Json:
    tool = value.get("tool")
    if isinstance(tool, dict) and name_in(tool)[0] is not None and len(value) == 1:
        return tool  # GLM 4.7
    for key in ENVELOPE_KEYS:
        inner = value.get(key)
        if isinstance(inner, list | dict) and not any(isinstance(value.get(name), str) for name in NAME_KEYS[:3]):
            return inner
    return None


def _single(value: JsonObject, scope: Scope) -> tuple[Attempt, ...] | NonCall:
    name, key = name_in(value)
    if name is None:
        return _by_its_key(value, scope)
    function = value.get(key)
    inner = function if isinstance(function, dict) else {}
    native_id = next((str(value[key]) for key in ID_KEYS if isinstance(value.get(key), str)), "")
    found = _arguments({**value, **{k: v for k, v in inner.items() if k in ARGUMENT_KEYS}}, name, scope)
    if found is None or (not scope.sure and is_schema(found[0])):
        return NonCall.TEXT
    arguments, fixes = found
    if foreign := _foreign_keys(value, arguments):
        if foreign <= _DEFINITION_KEYS and _fills_in(arguments, name, scope):
            fixes = (FILLED_IN, *fixes)
        elif not scope.sure:
            return NonCall.TEXT
    fixes = fixes if key == "name" else (Fix("name_key"), *fixes)
    if not name:
        detail = "the call's name is empty"
        return (Attempt(name, problem=Problem.PARSE_ERROR, detail=detail, sure=scope.sure),)
    return (Attempt(name, arguments, native_id=native_id, fixes=fixes, sure=scope.sure),)


def name_in(value: Mapping[str, Json]) -> tuple[str | None, str]:
    """Return the name of the called tool and the key that holds it."""
    for key in NAME_KEYS:
        named = value.get(key)
        if isinstance(named, str):
            return named, key
        if key == "function" and isinstance(named, dict) and isinstance(named.get("name"), str):
            return str(named["name"]), key
    return None, ""


def _by_its_key(value: JsonObject, scope: Scope) -> tuple[Attempt, ...] | NonCall:
    """Read `{"get_weather": {…}}`; a thought may be beside it (Apertus writes the tool's name as the key)."""
    named = [key for key in value if key not in ("thought", "thoughts")]
    if len(named) == 1 and scope.tools.find(named[0]).tool is not None and isinstance(value[named[0]], dict):
        return (Attempt(named[0], value[named[0]], fixes=(Fix("name_as_key"),), sure=scope.sure),)
    if not scope.sure:
        return NonCall.TEXT
    return (Attempt(None, problem=Problem.PARSE_ERROR, detail="the call has no name"),)


def _arguments(value: JsonObject, name: str, scope: Scope) -> tuple[Json, tuple[Fix, ...]] | None:
    keys = [key for key in ARGUMENT_KEYS if key in value]
    if "arguments" in keys:
        return _decoded(value["arguments"])
    if len(keys) == 1:
        arguments, fixes = _decoded(value[keys[0]])
        return arguments, (Fix("arguments_key"), *fixes)
    # Small models write the arguments beside the name, without a key for them.
    beside = {key: item for key, item in value.items() if key not in {*NAME_KEYS, *ID_KEYS, "type"}}
    if beside and _are_properties(beside, name, scope):
        return beside, (Fix("arguments_beside_name"),)
    # A bare object with a name and nothing that looks like arguments is some other JSON (a package.json, say).
    return ({}, (Fix("no_arguments"),)) if scope.sure else None


def _foreign_keys(value: JsonObject, arguments: Json) -> set[str]:
    """Return the keys that no call has: with its output beside it, it is the record of a call."""
    are_beside = isinstance(arguments, dict) and not any(key in value for key in ARGUMENT_KEYS)
    beside = arguments.keys() if isinstance(arguments, dict) and are_beside else ()
    return value.keys() - CALL_KEYS - set(beside)


def _fills_in(arguments: Json, name: str, scope: Scope) -> bool:
    """Return whether these are values for a tool, every required one among them, where its schema could stand.

    Qwen2.5-Coder 0.5B copies the tool's definition from the prompt, description and all, and writes the values in place
    of the schema: seven of sixty answers on development tasks.
    """
    if not isinstance(arguments, dict) or not arguments:
        return False
    return scope.tools.find(name).tool in scope.tools.accepting(arguments)


def _are_properties(beside: JsonObject, name: str, scope: Scope) -> bool:
    tool = scope.tools.find(name).tool
    return tool is not None and beside.keys() <= scope.tools.properties(tool)


def _decoded(arguments: Json) -> tuple[Json, tuple[Fix, ...]]:
    """Decode arguments that are a JSON string holding an object: exactly one level.

    Models that imitate OpenAI's API, where arguments are a string, encode them twice.
    """
    if not isinstance(arguments, str):
        return arguments, ()
    try:
        inner = parse(arguments)
    except BadJson:
        return arguments, ()
    return (inner, (Fix("decoded_string"),)) if isinstance(inner, dict) else (arguments, ())


_STRING = r"""(?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)')"""
_NAMED = re.compile(rf"""["'](?:{"|".join(NAME_KEYS)})["']\s*+:\s*+{_STRING}""")
_BLANK = re.compile(r"\s*")


class JsonBody:
    """Collects one JSON value, broken or not, and its text."""

    def __init__(self, scope: Scope) -> None:
        """Start before the value's first character."""
        self.span = JsonSpan()
        self._scope = scope
        self._parts: list[str] = []
        self._source: StrictSource | None = None
        self.closed = False
        """The value ended by its own grammar, or an explicit ender was seen."""

    def grow_as(self, name: str | None, native_id: str = "") -> None:
        """Tell the value while it is written: it is the arguments of a call of `name`."""
        if self._scope.growth is not None and name is not None:
            self._scope.growth.begin(name, native_id)
            self._source = StrictSource(self._scope.growth)

    @property
    def text(self) -> str:
        """All of the value's text so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, bool]:
        """Consume; return where it stopped, and whether the value is over."""
        if self.span.status is SpanStatus.OPEN:
            end = self.span.feed(text, pos)
            self._parts.append(text[pos:end])
            if self._source is not None:
                self._source.feed(text[pos:end])
            pos = end
        if self.span.status is SpanStatus.BROKEN:
            return self._to_ender(text, pos, final=final)
        self.closed = self.span.status is SpanStatus.DONE
        return pos, final or self.span.status is not SpanStatus.OPEN

    def _to_ender(self, text: str, pos: int, *, final: bool) -> tuple[int, bool]:
        if not self._scope.sure:
            return self._at_break(text, pos, final=final)
        hit = self._scope.enders.search(text, pos, final=final)
        end = len(text) if hit is None else hit.start
        self._parts.append(text[pos:end])
        self.closed = hit is not None and hit.literal != ""
        return end, self.closed or final

    def _at_break(self, text: str, pos: int, *, final: bool) -> tuple[int, bool]:
        """Let go of text that may be anything: only an ender right here makes it a value."""
        ender = self._scope.enders.match(text, pos, final=final) if pos < len(text) else ""
        self.closed = bool(ender)
        return pos, final or ender != ""

    def value(self) -> Repaired:
        """Parse, repairing what can be repaired without guessing; raises BadJson."""
        if self.span.status is SpanStatus.DONE:
            try:
                return Repaired(parse(self.text), ())
            except BadJson:
                pass
        return repair(self.text, closed=self.closed)

    def attempt(
        self, name: str | None, *, native_id: str = "", fixes: tuple[Fix, ...] = (), sure: bool = True
    ) -> Attempt:
        """Return the attempt to call `name` with this value as its arguments, or what is wrong with it."""
        problem, detail = self.problem(), "the arguments' JSON does not end"
        if problem is None:
            try:
                repaired = self.value()
            except BadJson as error:
                problem, detail = Problem.PARSE_ERROR, f"the arguments are not JSON: {error}"
            else:
                source, fixes = (None if repaired.fixes else self.text), (*fixes, *repaired.fixes)
                return Attempt(name, repaired.value, source=source, native_id=native_id, fixes=fixes, sure=sure)
        return Attempt(name, problem=problem, detail=detail, native_id=native_id)

    def problem(self) -> Problem | None:
        """Tell what the end of the text makes of this value: truncated, or nothing yet."""
        cut_short = self.span.status in (SpanStatus.OPEN, SpanStatus.RUNAWAY)
        return Problem.TRUNCATED if cut_short and not self.closed else None


class _GrowingArguments:
    """Tells the arguments of `{"name": …, "arguments": {…}}` while they are written, if the name comes first."""

    def __init__(self, body: JsonBody, growth: Growth) -> None:
        """Start before the object's first character."""
        self._body, self._growth, self._source = body, growth, StrictSource(growth)
        self._seen = 0  # members before the arguments
        self._looked_at = self._start = -1
        self._name: str | None = None
        self._is_over = False

    def tell(self, piece: str, before: int) -> None:
        """Take the next piece of the object, which is `before` characters after its start."""
        if self._is_over:
            return
        if self._start < 0:
            self._start = self._find()
            if self._start < 0:
                return
            self._growth.begin(self._name or "")
            piece, before = self._body.text[self._start :], self._start
        members = self._body.span.members
        self._is_over = len(members) > self._seen
        end = members[self._seen].value[1] if self._is_over else self._body.span.length
        self._source.feed(piece[: max(0, end - before)])

    def _find(self) -> int:
        """Return where the arguments begin; below 0 if they are not there yet, or never will be."""
        span = self._body.span
        while self._seen < len(span.members) and not self._is_over:
            (key, value), name = span.members[self._seen], self._body.text
            if self._are_arguments(key, value[0]):
                return value[0]
            if self._name is None and name[slice(*key)] == '"name"':
                self._name = _string_in(name[slice(*value)])
            self._seen += 1
            self._is_over = self._seen > _MOST_BEFORE_ARGUMENTS
        opened = span.open_member
        if self._is_over or opened is None or opened[1] == self._looked_at:
            return -1
        self._looked_at = opened[1]
        return opened[1] if self._are_arguments(*opened) else -1

    def _are_arguments(self, key: tuple[int, int], start: int) -> bool:
        text = self._body.text
        are = text[key[0] + 1 : key[1] - 1] in ARGUMENT_KEYS and text[start] == "{"
        self._is_over = are and self._name is None
        return are and not self._is_over


def _string_in(text: str) -> str | None:
    try:
        value = parse(text)
    except BadJson:
        return None
    return value if isinstance(value, str) else None


class JsonReader:
    """Reads one JSON value that holds calls."""

    def __init__(self, scope: Scope) -> None:
        """Start before the value's first character."""
        self._scope = scope
        self._body = JsonBody(scope)
        self._plausible = scope.sure
        self._fed = 0
        self._passing = False
        self._span = self._body.span
        self._growing = None if scope.growth is None else _GrowingArguments(self._body, scope.growth)

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the end of the value."""
        if self._passing:
            return self._pass(text, pos, final=final)
        start, before = pos, self._fed
        pos, over = self._body.feed(text, pos, final=final)
        self._fed += pos - start
        if self._growing is not None:
            self._growing.tell(text[start:pos], before)
        first_key = self._body.span.first_key
        if not self._plausible and first_key is not None:
            self._plausible = self._is_ours(self._body.text[slice(*first_key)].strip("\"'"))
            if not self._plausible:
                self._passing, self._span = True, JsonSpan()
                self._span.feed(self._body.text[: first_key[1]])
                return start + first_key[1] - before, NonCall.SHOWN
        return pos, self._outcome() if over else MORE

    def _pass(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Let ordinary JSON go on as text up to its end: markers in its strings mean nothing."""
        end = self._span.feed(text, pos)
        if final or self._span.status is not SpanStatus.OPEN:
            return end, NonCall.TEXT
        return end, NonCall.SHOWN if end > pos else MORE

    def _is_ours(self, key: str) -> bool:
        return key in CALL_KEYS or self._scope.tools.find(key).tool is not None

    def _outcome(self) -> BodyOutcome:
        problem = self._body.problem()
        if problem is not None:
            return self._rejected(problem, "the call's JSON does not end")
        try:
            repaired = self._body.value()
        except BadJson as error:
            return self._rejected(Problem.PARSE_ERROR, f"the call is not JSON: {error}")
        found = attempts_in(repaired.value, self._scope)
        if isinstance(found, NonCall):
            return found
        return tuple(self._with_source(attempt, repaired) for attempt in found)

    def _with_source(self, attempt: Attempt, repaired: Repaired) -> Attempt:
        source = None if repaired.fixes else self._arguments_text()
        return replace(attempt, source=source, fixes=(*repaired.fixes, *attempt.fixes))

    def _arguments_text(self) -> str | None:
        """Return the arguments as the model wrote them: floats and spacing stay untouched."""
        text = self._body.text
        for (key_start, key_end), (start, end) in self._body.span.members:
            if text[key_start + 1 : key_end - 1] in ARGUMENT_KEYS and text[start] == "{":
                return text[start:end]
        return None

    def _rejected(self, problem: Problem, detail: str) -> BodyOutcome:
        if not self._scope.sure:
            return NonCall.TEXT
        runaway = self._body.span.status is SpanStatus.RUNAWAY
        return (Attempt(peek_name(self._body.text), problem=problem, detail=detail, cut=runaway),)


def peek_name(text: str) -> str | None:
    """Return the tool's name out of a broken body, for the complaint."""
    found = _NAMED.search(text)
    return None if found is None else found.group(1) or found.group(2) or ""


class JsonForm:
    """Starts at `{`, or at `[` that is not a list of Python calls."""

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Tell a JSON array from a Python list by what follows the bracket."""
        if text[pos] == "{":
            return True
        if text[pos] != "[":
            return False
        found = _BLANK.match(text, pos + 1)
        after = found.end() if found else pos + 1
        if after - pos > MAX_BLANKS:
            return scope.sure
        if after == len(text):
            return scope.sure if final else None
        if not scope.sure:
            return text[after] == "{"
        return not (text[after].isalpha() or text[after] == "_")

    def new(self, scope: Scope) -> JsonReader:
        """Make a reader for one value."""
        return JsonReader(scope)


JSON: Final = JsonForm()
