"""One answer of an upstream after it has been read: immutable, and judged as a whole (CHK-4).

The answer tool (INL-6) is a synthetic tool by which the model answers in words; the client never sees it. Text without
a call is ambiguous: the model has answered, or it forgot to call. With the answer tool every answer is a call. Other
projects arrived at the same tool: forge has `respond`, LocalAI `answer`, claude-code-router `ExitTool`.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.engine.guardrails.guardrail import AskModel
from toolspeak.engine.trouble import Kind, Trouble, must_call
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, FirstToken, StopReason, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool, ToolChoice
from toolspeak.text.strict import parse


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The content of one answer after reading. With a `failure` the answer broke off, and none of its calls may run."""

    calls: tuple[Call, ...] = ()
    """The calls that may run, without native ones that left while they grew."""
    streamed: int = 0
    """The number of native calls that left while they grew (CHK-7)."""
    repeats: tuple[Call, ...] = ()
    """Calls that were answered just now. They are held: a small model often repeats a call that it does not mean."""
    attempted: tuple[tuple[Call, Complaint | None], ...] = ()
    """All native calls with their complaints. A correction must quote all of them: vendors want calls and results in
    pairs."""
    rejected: tuple[CallRejected, ...] = ()
    """The calls that must not run, with the model's text."""
    set_aside: tuple[Complaint, ...] = ()
    """Complaints about calls that a guardrail dropped (CHK-10, CHK-14)."""
    questions: tuple[AskModel, ...] = ()
    """The questions of guardrails to the model before the calls leave, at most one for each tool."""
    said: str = ""
    """All text of the model, as it wrote it, with markup."""
    first_token: FirstToken = ()
    """How likely its first tokens were, if the request asked for that."""
    visible: str = ""
    """The text of the model without reasoning and calls."""
    repeated_text: str = ""
    """The text of the first of `repeats`."""
    has_text: bool = False
    """Whether some visible text is not blank."""
    left_open: bool = False
    """Whether a call began to leave and did not become complete. The client must not take it for complete (P3)."""
    stop: StopReason = StopReason.END
    stop_sequence: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None

    @property
    def call_count(self) -> int:
        """The number of calls that may run."""
        return len(self.calls) + self.streamed

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """The complaints about the calls that must not run."""
        return tuple(one.complaint for one in self.rejected)

    @property
    def quoted(self) -> str:
        """The text that a correction quotes.

        If the model wrote one call over and over, that is the first one only: a model continues the loop that it reads.
        """
        said, again = self.said, self.repeated_text
        second = said.find(again, said.find(again) + len(again)) if again else -1
        return said[:second] if second >= 0 else said

    @property
    def stop_reason(self) -> StopReason:
        """The stop reason for the client: CALLS if and only if there are calls to run.

        Upstreams report `stop` beside calls and `tool_calls` without any, and clients decide by it whether to go on.
        """
        if self.call_count and not self.left_open and self.stop is not StopReason.FILTER:
            return StopReason.CALLS
        return StopReason.END if self.stop is StopReason.CALLS else self.stop

    @property
    def is_cut(self) -> bool:
        """Whether all rejected calls are truncated: then the token limit was reached, whatever `stop` says."""
        return bool(self.rejected) and all(one.complaint.problem is Problem.TRUNCATED for one in self.rejected)

    def with_repeats(self) -> "ReadAnswer":
        """Return the answer with the repeated calls among the calls that may run."""
        return replace(self, calls=(*self.calls, *self.repeats), repeats=()) if self.repeats else self

    def with_calls(self, calls: Iterable[Call]) -> "ReadAnswer":
        """Return the answer with calls of a later answer added (CHK-12)."""
        return replace(self, calls=(*self.calls, *calls))

    def without_tool(self, complaint: Complaint) -> "ReadAnswer":
        """Return the answer without the calls of the tool that a complaint names (CHK-14)."""
        calls = tuple(call for call in self.calls if call.name != complaint.name)
        return replace(self, calls=calls, set_aside=(*self.set_aside, complaint))

    def trouble(self, choice: ToolChoice, *, refused: bool) -> Trouble | None:
        """Return why the answer cannot be used as it is; None if it can.

        `refused` says that its text is a refusal ("I have no tools", CHK-6). One call that may run is enough; rejected
        calls beside it are reported with the turn.
        """
        if self.call_count:
            return None
        if self.repeats:
            return Trouble(Kind.REPEATED)
        if self.set_aside:
            return Trouble(Kind.UNRELATED, self.set_aside)
        if self.rejected:
            return Trouble(Kind.BAD_CALLS, self.complaints)
        if must_call(choice):
            return Trouble(Kind.NO_CALL)
        if refused:
            return Trouble(Kind.REFUSED)
        if self.stop_sequence:
            return None  # empty text before the client's own stop sequence is what the client asked for
        if not self.has_text and self.stop not in (StopReason.FILTER, StopReason.LENGTH):
            return Trouble(Kind.EMPTY)
        return None


# ---------------------------------------------------------------- the answer tool


NAME: Final = "answer"
ANSWER: Final = Tool(
    NAME,
    "Answer the user. Call this when no other tool is needed any more.",
    {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The whole answer."}},
        "required": ["text"],
        "additionalProperties": False,
    },
)


def offered_name(names: Container[str]) -> str:
    """Return a name for the answer tool that no tool of the client has."""
    name = NAME
    while name in names:
        name = f"final_{name}"
    return name


def answer_text(arguments: str) -> str:
    """Return the text of an answer. Arguments in another form are returned as they are: no text is lost (P1)."""
    try:
        value = parse(arguments)
    except BadJson:
        return arguments
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else arguments
