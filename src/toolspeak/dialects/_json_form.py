"""G1, calls as JSON: one object, several in a row, or an array; whatever wrapper stands around them.

The end of the JSON value decides, not the wrapper's closer: a closer inside a string is data. Only where the value is
broken does the first ender after the break end it, and then the body goes to repair.
"""

import re
from dataclasses import replace
from typing import Final

from toolspeak.dialects._attempt import MORE, Mark, Outcome, Scope
from toolspeak.dialects._calls import ARGUMENT_KEYS, CALL_KEYS, NAME_KEYS, attempts_in
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Problem
from toolspeak.ir.fix import Fix
from toolspeak.text.jsonspan import MAX_BLANKS, JsonSpan, Status
from toolspeak.text.repair import Repaired, repair
from toolspeak.text.strict import parse
from toolspeak.toolset.check import Attempt

_STRING = r"""(?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)')"""
_NAMED = re.compile(rf"""["'](?:{"|".join(NAME_KEYS)})["']\s*+:\s*+{_STRING}""")
_BLANK = re.compile(r"\s*")


class JsonBody:
    """Collects one JSON value, broken or not, and the text that it stands in."""

    def __init__(self, scope: Scope) -> None:
        """Start before the value's first character."""
        self.span = JsonSpan()
        self._scope = scope
        self._parts: list[str] = []
        self.closed = False
        """The value ended by its own grammar, or an explicit ender was seen."""

    @property
    def text(self) -> str:
        """All of the value's text so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, bool]:
        """Consume; return where it stopped, and whether the value is over."""
        if self.span.status is Status.OPEN:
            end = self.span.feed(text, pos)
            self._parts.append(text[pos:end])
            pos = end
        if self.span.status is Status.BROKEN:
            return self._to_ender(text, pos, final=final)
        self.closed = self.span.status is Status.DONE
        return pos, final or self.span.status is not Status.OPEN

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
        if self.span.status is Status.DONE:
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
        cut_short = self.span.status in (Status.OPEN, Status.RUNAWAY)
        return Problem.TRUNCATED if cut_short and not self.closed else None


class JsonForm:
    """Reads one JSON value that holds calls."""

    def __init__(self, scope: Scope) -> None:
        """Start before the value's first character."""
        self._scope = scope
        self._body = JsonBody(scope)
        self._plausible = scope.sure
        self._fed = 0
        self._passing = False
        self._span = self._body.span

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, Outcome]:
        """Consume up to the end of the value."""
        if self._passing:
            return self._pass(text, pos, final=final)
        start, before = pos, self._fed
        pos, over = self._body.feed(text, pos, final=final)
        self._fed += pos - start
        first_key = self._body.span.first_key
        if not self._plausible and first_key is not None:
            self._plausible = self._is_ours(self._body.text[slice(*first_key)].strip("\"'"))
            if not self._plausible:
                self._passing, self._span = True, JsonSpan()
                self._span.feed(self._body.text[: first_key[1]])
                return start + first_key[1] - before, Mark.SHOWN
        return pos, self._outcome() if over else MORE

    def _pass(self, text: str, pos: int, *, final: bool) -> tuple[int, Outcome]:
        """Let ordinary JSON go on as text up to its end: markers in its strings mean nothing."""
        end = self._span.feed(text, pos)
        if final or self._span.status is not Status.OPEN:
            return end, Mark.TEXT
        return end, Mark.SHOWN if end > pos else MORE

    def _is_ours(self, key: str) -> bool:
        return key in CALL_KEYS or self._scope.tools.find(key).tool is not None

    def _outcome(self) -> Outcome:
        problem = self._body.problem()
        if problem is not None:
            return self._rejected(problem, "the call's JSON does not end")
        try:
            repaired = self._body.value()
        except BadJson as error:
            return self._rejected(Problem.PARSE_ERROR, f"the call is not JSON: {error}")
        found = attempts_in(repaired.value, self._scope)
        if isinstance(found, Mark):
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

    def _rejected(self, problem: Problem, detail: str) -> Outcome:
        if not self._scope.sure:
            return Mark.TEXT
        runaway = self._body.span.status is Status.RUNAWAY
        return (Attempt(peek_name(self._body.text), problem=problem, detail=detail, cut=runaway),)


def peek_name(text: str) -> str | None:
    """Return the tool's name out of a broken body, for the complaint."""
    found = _NAMED.search(text)
    return None if found is None else found.group(1) or found.group(2) or ""


class _JsonKind:
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

    def new(self, scope: Scope) -> JsonForm:
        """Make a reader for one value."""
        return JsonForm(scope)


JSON: Final = _JsonKind()
