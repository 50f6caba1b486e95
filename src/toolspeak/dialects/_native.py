"""A call that came natively, judged like one that was read: its arguments are text that a model wrote."""

from collections.abc import Iterator
from dataclasses import replace

from toolspeak.dialects._attempt import Attempt, Scope
from toolspeak.dialects._judge import Judge
from toolspeak.dialects._tagged import XML
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallEnded, CallRejected, CallStarted, Event
from toolspeak.ir.message import Call
from toolspeak.ir.tool import ChoiceMode, ToolChoice
from toolspeak.text.repair import repair
from toolspeak.toolset.toolset import ToolSet


class NativeCalls:
    """Judges the native calls of one turn: names, arguments, how many (CHK-1, CHK-2, CHK-3)."""

    def __init__(self, tools: ToolSet, choice: ToolChoice, most: int) -> None:
        """Deliver at most so many calls."""
        self._tools, self._choice, self._left = tools, choice, most

    def may_stream(self, name: str) -> bool:
        """Tell whether a call of this name may leave before its arguments are whole."""
        named = self._choice.mode is not ChoiceMode.NAMED or name == self._choice.name
        return name in self._tools.names and named and self._left > 0

    def judge(self, call: Call) -> list[Event]:
        """Return the events of the call, or of its rejection; the call keeps the id that it has."""
        if self._left <= 0:
            return [
                CallRejected(Complaint(Problem.WRONG_TOOL, call.name, "one call too many in this turn"), call.arguments)
            ]
        judge = Judge(self._tools, self._choice, _only(call.id))
        attempt = native_attempt(call.name, call.arguments, self._tools, call.native_id)
        events = judge.judge(replace(attempt, sure=True), call.arguments) or []
        self._left -= any(isinstance(event, CallStarted) for event in events)
        return [_without_raw(event) for event in events]


def _only(id: str) -> Iterator[str]:
    yield id


def _without_raw(event: Event) -> Event:
    """Forget the raw text of a delivered call: it was not read from the model's visible text."""
    return CallEnded(event.id, "", event.fixes) if isinstance(event, CallEnded) else event


def native_attempt(name: str, arguments: str, tools: ToolSet, native_id: str = "") -> Attempt:
    """Read the arguments of a native call; servers have been seen to leave a dialect's markup in them."""
    if not arguments.strip():
        return Attempt(name, {}, native_id=native_id)
    if arguments.lstrip().startswith("<parameter"):
        return _from_tags(name, arguments, tools, native_id)
    try:
        repaired = repair(arguments, closed=False)
    except BadJson as error:
        detail = f"the arguments are not JSON: {error}"
        return Attempt(name, problem=Problem.PARSE_ERROR, detail=detail, native_id=native_id)
    source = None if repaired.fixes else arguments
    return Attempt(name, repaired.value, source=source, native_id=native_id, fixes=repaired.fixes)


def _from_tags(name: str, arguments: str, tools: ToolSet, native_id: str) -> Attempt:
    form = XML.new(Scope(tools, stop=("</",)))
    _, outcome = form.feed(arguments.strip(), 0, final=True)
    if isinstance(outcome, tuple) and outcome[0].texts is not None:
        return Attempt(name, texts=outcome[0].texts, native_id=native_id)
    return Attempt(name, problem=Problem.PARSE_ERROR, detail="the arguments are not JSON", native_id=native_id)
