"""Checks attempted calls against the tools of a request: native calls and calls in text alike (CHK-1, CHK-2, CHK-3).

    Attempt("get_wether", {"city": "Oslo"})   ->   Call("call_0", "get_weather", '{"city":"Oslo"}', fixes=…)
    Attempt("get_weather", {})                ->   CallRejected(SCHEMA_ERROR, "/city is missing")

A dialect's grammar reads an `Attempt` from model text; the engine makes one from a native call. An attempt whose markup
leaves no doubt (`sure`) becomes a call, or a complaint that the model can correct. An attempt without such markup
becomes a call only if it passes every check, and is plain text otherwise: a `package.json` has a name, too.

Native and textual calls are checked here and nowhere else. Servers do not check what their models write: a native call
may have an unknown name, or arguments that do not match the schema.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from typing_extensions import override

from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Complaint, Fix, Problem
from toolspeak.ir.event import CallRejected
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.tool import ChoiceMode, ToolChoice
from toolspeak.text.repair import repair
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet

TextKind: TypeAlias = Literal["by_schema", "string", "json"]


@dataclass(frozen=True, slots=True)
class TextArg:
    """An argument whose value came as plain text, as between tags. `kind` is the type that the markup declares."""

    key: str
    text: str
    kind: TextKind = "by_schema"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that the model attempted. Its arguments are a `value`, or `texts` that only the schema can type.

    `source` is the arguments' own JSON text if `value` was read from it unchanged. `sure` means that the markup leaves
    no doubt that a call was meant.
    """

    name: str | None
    value: Json = None
    texts: tuple[TextArg, ...] | None = None
    source: str | None = None
    problem: Problem | None = None
    detail: str = ""
    native_id: str = ""
    fixes: tuple[Fix, ...] = ()
    sure: bool = True
    cut: bool = False
    """Whether to stop reading after this attempt, because the model has lost its way (a run of blanks, say)."""


Checked: TypeAlias = Call | CallRejected | None
"""A call that may run, a complaint, or None if the attempt is plain text."""


class CallIds(Iterator[str]):
    """Ids for new calls. The next one can be seen before it is used: a call that is being read has it already."""

    def __init__(self, ids: Iterator[str]) -> None:
        """Take the ids from an iterator."""
        self._ids = ids
        self._seen: str | None = None

    @override
    def __next__(self) -> str:
        seen, self._seen = self._seen, None
        return next(self._ids) if seen is None else seen

    def peek(self) -> str:
        """Return the next id; it stays the next one."""
        if self._seen is None:
            self._seen = next(self._ids)
        return self._seen


class CallChecker:
    """Checks attempts against the tools and the tool choice of one request."""

    def __init__(self, tools: ToolSet, choice: ToolChoice, ids: Iterator[str]) -> None:
        """Check against these tools and this choice. Calls get their ids from `ids`, unless `check` is given one."""
        self._tools, self._choice = tools, choice
        self._ids = ids if isinstance(ids, CallIds) else CallIds(ids)

    def may_start(self, name: str) -> bool:
        """Return whether a call of exactly this name may be streamed before its arguments are complete.

        A name that would need a fix may not: the fix could not be applied to events that have left.
        """
        named = self._choice.mode is not ChoiceMode.NAMED or name == self._choice.name
        return named and name in self._tools.names

    @property
    def next_id(self) -> str:
        """The id that the next call will have."""
        return self._ids.peek()

    def check(self, attempt: Attempt, raw: str, id: str = "") -> Checked:
        """Check one attempt; `raw` is the model text that it was read from, and is kept in the result."""
        name, complaint, fixes = self._named(attempt)
        if complaint is None and name is not None:
            checked = self._fitted(attempt, name, fixes)
            if isinstance(checked, tuple):
                arguments, fixes = checked
                return Call(id or next(self._ids), name, arguments, attempt.native_id, raw, fixes)
            complaint = checked
        return CallRejected(complaint, raw) if attempt.sure and complaint is not None else None

    def _named(self, attempt: Attempt) -> tuple[str | None, Complaint | None, tuple[Fix, ...]]:
        if attempt.problem is not None:
            return None, Complaint(attempt.problem, attempt.name, attempt.detail), ()
        if attempt.name is None:
            return self._inferred(attempt)
        match = self._tools.find(attempt.name)
        if match.tool is None:
            return None, Complaint(match.problem or Problem.UNKNOWN_TOOL, attempt.name, self._known()), ()
        if self._choice.mode is ChoiceMode.NAMED and match.tool != self._choice.name:
            detail = f"only {self._choice.name!r} may be called in this turn"
            return None, Complaint(Problem.WRONG_TOOL, match.tool, detail), ()
        return match.tool, None, match.fixes

    def _inferred(self, attempt: Attempt) -> tuple[str | None, Complaint | None, tuple[Fix, ...]]:
        """Infer a missing name from the arguments if exactly one tool accepts them."""
        keys = attempt.value.keys() if isinstance(attempt.value, dict) else ()
        tools = self._tools.accepting(keys) if keys else ()
        if len(tools) == 1:
            return tools[0], None, (Fix("name_inferred"),)
        return None, Complaint(Problem.PARSE_ERROR, None, f"the call has no name; {self._known()}"), ()

    def _known(self) -> str:
        return f"available tools: {', '.join(self._tools.names)}"

    def _fitted(
        self, attempt: Attempt, name: str, named: tuple[Fix, ...]
    ) -> tuple[str, tuple[Fix, ...]] | Complaint | None:
        """Return the arguments as JSON text with all fixes; a complaint; or None if the attempt is plain text.

        Arguments that need no fix keep the model's own JSON text, byte for byte.
        """
        try:
            value, typing = self._value(attempt, name)
        except BadJson as error:
            return Complaint(Problem.PARSE_ERROR, name, str(error))
        fitted = self._tools.fit(name, value)
        if not attempt.sure and not self._tools.takes(name, fitted.arguments):
            return None  # the definition of a tool, for example, has a name and parameters too
        if fitted.problems:
            return Complaint(Problem.SCHEMA_ERROR, name, "; ".join(problem.message for problem in fitted.problems))
        # A tool that accepts any object would take its own definition as arguments; it must not run with it.
        if is_schema(fitted.arguments) and "properties" not in self._tools.properties(name):
            return Complaint(Problem.SCHEMA_ERROR, name, "the arguments are the tool's schema, not values for it")
        try:
            arguments = attempt.source if attempt.source is not None and not fitted.fixes else dump(fitted.arguments)
        except BadJson as error:
            return Complaint(Problem.PARSE_ERROR, name, str(error))
        return arguments, (*attempt.fixes, *named, *typing, *fitted.fixes)

    def _value(self, attempt: Attempt, name: str) -> tuple[Json, tuple[Fix, ...]]:
        if attempt.texts is None:
            return attempt.value, ()
        value: JsonObject = {}
        fixes: list[Fix] = []
        for argument in attempt.texts:
            # Which of two values is meant is a guess, so the call is rejected and the model asked again.
            if argument.key in value:
                message = f"argument {argument.key!r} is given twice"
                raise BadJson(message)
            value[argument.key], typed = typed_argument(argument, name, self._tools)
            fixes.extend(typed)
        return value, tuple(fixes)


def typed_argument(argument: TextArg, name: str, tools: ToolSet) -> tuple[Json, tuple[Fix, ...]]:
    """Return the value of an argument of the tool `name` that came as text, and the fixes that typing it took."""
    if argument.kind == "string" and tools.takes_text(name, argument.key):
        return argument.text, ()
    if argument.kind == "json":
        try:
            repaired = repair(argument.text, closed=True)
        except BadJson:
            pass  # the markup declares JSON, but the text is not JSON: the schema decides
        else:
            return repaired.value, repaired.fixes
    coerced = tools.typed(name, argument.key, argument.text)
    return coerced.value, coerced.fixes


def stays_text(key: str, kind: TextKind, name: str, tools: ToolSet) -> bool:
    """Return whether `typed_argument` returns every text of this argument as it is; only `null` may become null."""
    if kind == "string" and tools.takes_text(name, key):
        return True
    return kind != "json" and tools.takes_any_text(name, key)


def is_schema(arguments: Json) -> bool:
    """Return whether arguments are a JSON Schema: small models repeat the tool's definition instead of values."""
    return isinstance(arguments, dict) and arguments.get("type") == "object" and "properties" in arguments
