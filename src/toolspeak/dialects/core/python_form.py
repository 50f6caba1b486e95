"""G4, calls as Python: `[f(a="x", n=2), g()]`. Literals only; nothing is ever evaluated."""

import re
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects.core.form import MORE, BodyOutcome, NonCall, Scope
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix, Problem
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.jsonspan import MAX_DEPTH, QUOTES, Quoted
from toolspeak.text.repair import Lenient
from toolspeak.toolset.check import Attempt

_LIST_HEAD = re.compile(r"\[\s{0,64}([A-Za-z_][\w.\-]{0,127})\s{0,8}\(")
_LIST_CUT = re.compile(r"\[\s{0,64}(?:[A-Za-z_][\w.\-]{0,127}\s{0,8})?\Z")
_CALL_HEAD = re.compile(r"([A-Za-z_][\w.\-]{0,127})\(")
_CALL_CUT = re.compile(r"[A-Za-z_][\w.\-]{0,127}\Z")
_BLANK = re.compile(r"\s*")
_PLAIN = re.compile(r"""[^()\[\]{}"']*""")
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w{0,127})\s*=(?!=)\s*")
_TOO_MANY_SIGNS = re.compile(r"[-+~]{64}")
_PRINT: Final = "print"  # Gemma wraps its calls in it


class Brackets:
    """Finds where the brackets that open at the start are all closed again, strings aside."""

    def __init__(self) -> None:
        """Start before the first bracket."""
        self.closed = False
        self.deep = False
        self._depth = 0
        self._quoted = Quoted()

    def feed(self, text: str, pos: int) -> int:
        """Consume; return where the last bracket closed, or the end."""
        while pos < len(text) and not self.closed:
            pos = self._quoted.skip(text, pos) if self._quoted.quote else self._outside(text, pos)
        return pos

    def _outside(self, text: str, pos: int) -> int:
        found = _PLAIN.match(text, pos)
        pos = found.end() if found else pos
        if pos == len(text):
            return pos
        char = text[pos]
        if char in QUOTES:
            self._quoted.quote = char
        elif char in "([{":
            self._depth += 1
            self.deep = self.deep or self._depth > MAX_DEPTH
        else:
            self._depth -= 1
            self.closed = self._depth <= 0
        return pos + 1


class PythonReader:
    """Reads one list of calls, or one call."""

    def __init__(self, scope: Scope) -> None:
        """Start before the list's bracket or the call's name."""
        self._scope = scope
        self._parts: list[str] = []
        self._brackets = Brackets()

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the closing bracket."""
        end = self._brackets.feed(text, pos)
        self._parts.append(text[pos:end])
        if not self._brackets.closed:
            return end, self._cut_short() if final else MORE
        return end, self._outcome("".join(self._parts))

    def _outcome(self, text: str) -> BodyOutcome:
        try:
            return tuple(parse_python_calls(text, self._scope))
        except BadJson as error:
            name = _called(text)
            known = name is not None and self._scope.tools.find(name).tool is not None
            too_deep = self._brackets.deep or _TOO_MANY_SIGNS.search(text) is not None
            if not (self._scope.sure or known) or too_deep:
                return NonCall.TEXT
            return (Attempt(name, problem=Problem.PARSE_ERROR, detail=f"arguments must be plain literals: {error}"),)

    def _cut_short(self) -> BodyOutcome:
        if not self._scope.sure:
            return NonCall.TEXT
        name = _called("".join(self._parts))
        return (Attempt(name, problem=Problem.TRUNCATED, detail="the call's brackets do not close"),)


def _called(text: str) -> str | None:
    found = _LIST_HEAD.match(text) or _CALL_HEAD.match(text)
    return None if found is None else found.group(1)


def parse_python_calls(text: str, scope: Scope) -> list[Attempt]:
    """Parse a list of calls or one call; raises BadJson."""
    return _Calls(text, scope).read()


class _Calls:
    """One pass over the text; one reader for all the literals in it."""

    def __init__(self, text: str, scope: Scope) -> None:
        self._text, self._scope, self._pos = text, scope, 0
        self._literals = Lenient(text, python=True)

    def read(self) -> list[Attempt]:
        self._skip()
        if self._here() != "[":
            return [self._call()]
        self._pos += 1
        attempts: list[Attempt] = []
        while self._another("]", first=not attempts):
            attempts.append(self._call())
        return attempts

    def _skip(self) -> None:
        found = _BLANK.match(self._text, self._pos)
        self._pos = found.end() if found else self._pos

    def _here(self) -> str:
        return self._text[self._pos : self._pos + 1]

    def _another(self, closer: str, *, first: bool) -> bool:
        """Go to the next item; return False after the closer."""
        self._skip()
        if not first and self._here() == ",":
            self._pos += 1
            self._skip()
        elif not first and self._here() != closer:
            raise BadJson(f"a comma or {closer!r} is expected", self._pos)
        if self._here() != closer:
            return True
        self._pos += 1
        return False

    def _call(self) -> Attempt:
        found = _CALL_HEAD.match(self._text, self._pos)
        if found is None:
            raise BadJson("a call is expected", self._pos)
        name, self._pos = found.group(1), found.end()
        if name == _PRINT and self._scope.tools.find(_PRINT).tool is None:
            return self._printed()
        value, fixes = self._arguments(name)
        return Attempt(name, value, fixes=fixes, sure=self._scope.sure)

    def _printed(self) -> Attempt:
        self._skip()
        attempt = self._call()
        self._skip()
        if self._here() != ")":
            raise BadJson("')' is expected", self._pos)
        self._pos += 1
        return attempt

    def _arguments(self, name: str) -> tuple[JsonObject, tuple[Fix, ...]]:
        arguments: JsonObject = {}
        positional: list[Json] = []
        while self._another(")", first=not arguments and not positional):
            for key, value in self._argument():
                if key in arguments:
                    raise BadJson(f"argument {key!r} is given twice", self._pos)
                if key is None:
                    positional.append(value)
                else:
                    arguments[key] = value
        named = self._with_positional(arguments, positional, name)
        return named, (Fix("positional"),) * bool(positional)

    def _argument(self) -> list[tuple[str | None, Json]]:
        spread = self._text.startswith("**", self._pos)
        keyword = None if spread else _KEYWORD.match(self._text, self._pos)
        self._pos = self._pos + 2 if spread else keyword.end() if keyword else self._pos
        self._literals.pos = self._pos
        value = self._literals.value()
        self._pos = self._literals.pos
        if not spread:
            return [(keyword.group(1) if keyword else None, value)]
        if not isinstance(value, dict):
            raise BadJson("** takes a dict of arguments", self._pos)
        return list(value.items())

    def _with_positional(self, arguments: JsonObject, positional: list[Json], name: str) -> JsonObject:
        """Give positional arguments the names that the schema declares, in order."""
        if not positional:
            return arguments
        tools = self._scope.tools
        tool = tools.find(name).tool
        declared = [key for key in tools.ordered(tool) if key not in arguments] if tool is not None else []
        if len(declared) < len(positional):
            raise BadJson(f"{len(positional)} positional arguments, but the tool has no names for them", self._pos)
        return {**dict(zip(declared, positional, strict=False)), **arguments}


@dataclass(frozen=True)
class Pythonic:
    """A kind of body: a list of calls, or (with `single`) calls one by one."""

    single: bool = False

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start at `[name(` or `name(`; unless the wrapper is sure, the name must be a tool's."""
        head, cut = (_CALL_HEAD, _CALL_CUT) if self.single else (_LIST_HEAD, _LIST_CUT)
        found = head.match(text, pos)
        if found is None:
            return None if not final and cut.match(text, pos) else False
        name = found.group(1)
        return scope.sure or scope.tools.find(name).tool is not None or (name == _PRINT and self.single)

    def new(self, scope: Scope) -> PythonReader:
        """Make a reader for one list or call."""
        return PythonReader(scope)


PYTHON_LIST: Final = Pythonic()
PYTHON_CALL: Final = Pythonic(single=True)
