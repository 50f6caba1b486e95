"""From an attempt to a call, a complaint, or plain text: the gates that keep recovery safe.

A sure attempt (complete markup of the dialect) fails with a complaint; an unsure one that fails any gate is text.
"""

from collections.abc import Iterator

from toolspeak.dialects._attempt import Attempt, TextArg
from toolspeak.dialects._calls import is_schema
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallRejected, CallStarted, Event
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import ChoiceMode, ToolChoice
from toolspeak.text.repair import repair
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet


class Judge:
    """Judges attempts against the tools of one request."""

    def __init__(self, tools: ToolSet, choice: ToolChoice, ids: Iterator[str]) -> None:
        """Take ids for delivered calls from `ids`."""
        self._tools, self._choice, self._ids = tools, choice, ids

    def judge(self, attempt: Attempt, raw: str) -> list[Event] | None:
        """Return the events of a call or a complaint; None where the attempt is only text."""
        name, complaint, fixes = self._named(attempt)
        if complaint is None and name is not None:
            return self._fitted(attempt, name, fixes, raw)
        if not attempt.sure or complaint is None:
            return None
        return [CallRejected(complaint, raw)]

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
        """Infer a lost name from the arguments, only if exactly one tool takes them."""
        keys = attempt.value.keys() if isinstance(attempt.value, dict) else ()
        tools = self._tools.accepting(keys) if keys else ()
        if len(tools) == 1:
            return tools[0], None, (Fix("name_inferred"),)
        return None, Complaint(Problem.PARSE_ERROR, None, f"the call has no name; {self._known()}"), ()

    def _known(self) -> str:
        return f"available tools: {', '.join(self._tools.names)}"

    def _fitted(self, attempt: Attempt, name: str, fixes: tuple[Fix, ...], raw: str) -> list[Event] | None:
        try:
            value, typing = self._value(attempt, name)
        except BadJson as error:
            complaint = Complaint(Problem.PARSE_ERROR, name, str(error))
            return [CallRejected(complaint, raw)] if attempt.sure else None
        fitted = self._tools.fit(name, value)
        if not attempt.sure and not self._tools.takes(name, fitted.arguments):
            return None  # a tool's definition, say, has a name and parameters too
        if fitted.problems:
            detail = "; ".join(problem.message for problem in fitted.problems)
            return [CallRejected(Complaint(Problem.SCHEMA_ERROR, name, detail), raw)] if attempt.sure else None
        if is_schema(fitted.arguments) and "properties" not in self._tools.properties(name):
            complaint = Complaint(Problem.SCHEMA_ERROR, name, "the arguments are the tool's schema, not values for it")
            return [CallRejected(complaint, raw)] if attempt.sure else None
        try:
            arguments = attempt.source if attempt.source is not None and not fitted.fixes else dump(fitted.arguments)
        except BadJson as error:
            return [CallRejected(Complaint(Problem.PARSE_ERROR, name, str(error)), raw)] if attempt.sure else None
        call_id = next(self._ids)
        ended = CallEnded(call_id, raw, (*attempt.fixes, *fixes, *typing, *fitted.fixes))
        return [CallStarted(call_id, name, attempt.native_id), ArgsDelta(call_id, arguments), ended]

    def _value(self, attempt: Attempt, name: str) -> tuple[Json, tuple[Fix, ...]]:
        if attempt.texts is None:
            return attempt.value, ()
        value: JsonObject = {}
        fixes: list[Fix] = []
        for argument in attempt.texts:
            if argument.key in value:
                message = f"argument {argument.key!r} is given twice"
                raise BadJson(message)
            value[argument.key], typed = self._typed(argument, name)
            fixes.extend(typed)
        return value, tuple(fixes)

    def _typed(self, argument: TextArg, name: str) -> tuple[Json, tuple[Fix, ...]]:
        if argument.kind == "string" and self._tools.takes_text(name, argument.key):
            return argument.text, ()
        if argument.kind == "json":
            try:
                repaired = repair(argument.text, closed=True)
            except BadJson:
                pass  # the markup says JSON and lies; the schema decides
            else:
                return repaired.value, repaired.fixes
        coerced = self._tools.typed(name, argument.key, argument.text)
        return coerced.value, coerced.fixes
