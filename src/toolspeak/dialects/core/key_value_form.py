"""G5, `call:name{key:<|"|>text<|"|>,n:3}`: bare keys, and strings between two quote tokens (Gemma 4, FunctionGemma)."""

import re
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects.core.form import MORE, BodyOutcome, NonCall, Scope
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Problem
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.jsonspan import MAX_DEPTH
from toolspeak.text.repair import Lenient
from toolspeak.text.scan import Markers
from toolspeak.toolset.check import Attempt

QUOTES: Final = ('<|"|>', "<escape>")
# Gemma 4 loses `call` before the colon at times: `<|tool_call>:get_weather{…}` (vllm#53431).
_HEAD = re.compile(r"(?:call)?:\s?([^\s{}<>]{1,128})\s?(?=\{)")
_HEAD_CUT = re.compile(r"(?:c(?:a(?:l(?:l)?)?)?|(?:call)?:\s?[^\s{}<>]{0,128}\s?)\Z")
_OUTSIDE = Markers((*QUOTES, '"', "{", "}", "[", "]"))
_INSIDE = {quote: Markers((quote,)) for quote in QUOTES} | {'"': Markers(('"', "\\"))}
# Gemma's template writes keys as they are, blanks inside too: `{Basic LLM Chain:{…}}` (ollama#18390).
_KEY = re.compile(r"""[^\s:{}\[\],"<>](?:[^\n:{}\[\],"<>]{0,254}[^\s:{}\[\],"<>])?""")
_COLON = re.compile(r"\s*:\s*")
_BLANK = re.compile(r"\s*")


class KeyValueReader:
    """Reads one call: collects it up to the brace that closes it, then parses."""

    def __init__(self, scope: Scope) -> None:
        """Start before `call:`."""
        self._scope = scope
        self._parts: list[str] = []
        self._depth = 0
        self._quote = ""
        self._escaped = False

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the closing brace."""
        while pos < len(text):
            pos, literal = self._next(text, pos, final=final)
            if not literal:
                break
            self._note(literal)
            if self._depth == 0 and not self._quote:
                return pos, self._outcome("".join(self._parts))
        return pos, self._cut_short() if final else MORE

    def _next(self, text: str, pos: int, *, final: bool) -> tuple[int, str]:
        """Consume through the next character that matters; return it, or nothing to wait."""
        if self._escaped:
            self._escaped = False
            self._parts.append(text[pos])
            return pos + 1, "escaped"
        hit = (_INSIDE[self._quote] if self._quote else _OUTSIDE).search(text, pos, final=final)
        end = len(text) if hit is None else hit.start + len(hit.literal)
        self._parts.append(text[pos:end])
        return end, "" if hit is None else hit.literal

    def _note(self, literal: str) -> None:
        if literal == "\\":
            self._escaped = True
        elif literal == self._quote:
            self._quote = ""
        elif literal in ("{", "["):
            self._depth += 1
        elif literal in ("}", "]"):
            self._depth -= 1
        elif literal != "escaped":
            self._quote = literal

    def _outcome(self, text: str) -> BodyOutcome:
        found = _HEAD.match(text)
        name = found.group(1) if found else None
        try:
            value = _Values(text, found.end() if found else 0).object(0)
        except BadJson as error:
            return self._rejected(name, Problem.PARSE_ERROR, f"the arguments cannot be read: {error}")
        return (Attempt(name, value, sure=self._scope.sure),)

    def _cut_short(self) -> BodyOutcome:
        found = _HEAD.match("".join(self._parts))
        return self._rejected(found.group(1) if found else None, Problem.TRUNCATED, "the call's braces do not close")

    def _rejected(self, name: str | None, problem: Problem, detail: str) -> BodyOutcome:
        if not self._scope.sure:
            return NonCall.TEXT
        return (Attempt(name, problem=problem, detail=detail),)


class _Values:
    """Parses the braces' inside; values that are no objects, lists or token-quoted strings are plain literals."""

    def __init__(self, text: str, pos: int) -> None:
        self._text, self._pos = text, pos
        self._literals = Lenient(text, python=True)

    def object(self, depth: int) -> JsonObject:
        """Read `{key:value,…}`."""
        members: JsonObject = {}
        self._pos += 1
        while self._another("}"):
            key = self._key()
            if key in members:
                raise BadJson(f"the same key twice: {key!r}", self._pos)
            members[key] = self._value(depth + 1)
        return members

    def _key(self) -> str:
        """Read a bare key or a JSON string, and the colon."""
        found = _KEY.match(self._text, self._pos)
        self._pos = found.end() if found else self._pos
        key = found.group() if found else self._literal()
        colon = _COLON.match(self._text, self._pos)
        if colon is None or not isinstance(key, str):
            raise BadJson("a key is expected", self._pos)
        self._pos = colon.end()
        return key

    def _skip(self) -> None:
        found = _BLANK.match(self._text, self._pos)
        self._pos = found.end() if found else self._pos

    def _another(self, closer: str) -> bool:
        self._skip()
        if self._text.startswith(",", self._pos):
            self._pos += 1
            self._skip()
            return self._another(closer) if self._text.startswith(closer, self._pos) else True
        if self._text.startswith(closer, self._pos):
            self._pos += 1
            return False
        return True

    def _value(self, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise BadJson(f"nested deeper than {MAX_DEPTH}", self._pos)
        for quote in QUOTES:
            if self._text.startswith(quote, self._pos):
                return self._string(quote)
        char = self._text[self._pos : self._pos + 1]
        if char == "{":
            return self.object(depth)
        if char == "[":
            return self._list(depth)
        return self._literal()

    def _literal(self) -> Json:
        self._literals.pos = self._pos
        value = self._literals.value()
        self._pos = self._literals.pos
        return value

    def _list(self, depth: int) -> Json:
        items: list[Json] = []
        self._pos += 1
        while self._another("]"):
            items.append(self._value(depth + 1))
        return items

    def _string(self, quote: str) -> str:
        start = self._pos + len(quote)
        end = self._text.find(quote, start)
        if end < 0:
            raise BadJson("a string does not end", start)
        self._pos = end + len(quote)
        return self._text[start:end]


@dataclass(frozen=True)
class KeyValue:
    """The kind of body that starts with `call:`; after a marker of calls, the colon alone is enough."""

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start at `call:name{`; at `:name{` only if the wrapper is sure."""
        if not scope.sure and text.startswith(":", pos):
            return False
        if _HEAD.match(text, pos):
            return True
        return None if not final and _HEAD_CUT.match(text, pos) else False

    def new(self, scope: Scope) -> KeyValueReader:
        """Make a reader for one call."""
        return KeyValueReader(scope)


KEY_VALUE: Final = KeyValue()
