"""The troubles that an answer as a whole can have, and the corrections that the model gets for them (CHK-4).

A correction names what was wrong and what is accepted. Each retry uses stronger words than the one before (CHK-5). For
an unknown tool the correction says that it does not exist, and never that it is denied: a model that was told "denied"
tried the same tool five times in one turn (connectonion #1321).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, Event, ReasoningDelta, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, ToolChoice


class Kind(StrEnum):
    """The kinds of trouble; traces show the values."""

    BAD_CALLS = "bad_calls"
    """There are calls, and none of them may run."""
    NO_CALL = "no_call"
    """The tool choice demands a call, and there is none."""
    REFUSED = "refused"
    """"I have no tools", with tools offered (CHK-6)."""
    EMPTY = "empty"
    """There is no call, and no text that is not blank."""
    REPEATED = "repeated"
    """The only calls are those that were answered just now: small models repeat them without end (CHK-9)."""
    NARRATED = "narrated"
    """The answer announces a call ("Let me check the weather for you."), or copies a tool's definition (CHK-15)."""
    UNRELATED = "unrelated"
    """A guardrail dropped all calls, because they have nothing to do with the request (CHK-10)."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The reason why an answer cannot be used as it is."""

    kind: Kind
    complaints: tuple[Complaint, ...] = ()
    tool: str = ""
    """The tool that the answer means, if it has its definition, or arguments that do not fit, in place of a call."""


_WORDS: Final = {
    Kind.BAD_CALLS: "its calls cannot run",
    Kind.NO_CALL: "it made no call, and the tool choice demands one",
    Kind.REFUSED: "it says that it has no tools",
    Kind.EMPTY: "its answer was empty",
    Kind.REPEATED: "it repeated a call that was answered just now",
    Kind.NARRATED: "it announced a call and made none",
    Kind.UNRELATED: "a guardrail dropped its calls",
}


def describe(trouble: Trouble) -> str:
    """Return a trouble in words, with its complaints, for people who read a trace."""
    if trouble.kind is Kind.NARRATED and trouble.tool:
        return f"it wrote the definition of {trouble.tool}, or arguments that do not fit it, and made no call"
    details = (f"{one.name or 'a call'}: {SAYS[one.problem]}" for one in trouble.complaints)
    return ": ".join(filter(None, (_WORDS[trouble.kind], "; ".join(details))))


MOST_CHARACTERS: Final = 16 * 1024 * 1024
"""The most characters of one answer: text, reasoning and arguments together (P7)."""
TOO_LONG: Final = Failure(
    FailureKind.OTHER, f"the model's answer has more than {MOST_CHARACTERS} characters, which is all that is read", 502
)
ANSWERED: Final = "You have made this call already, and its result is above. Answer in words."
CALL_NOW: Final = "You have said what you will do, and called no tool. Call the tool now: write nothing but the call."
WILL_CALL: Final = "I will call {}."
"""The next request has this sentence in place of an answer that copied a tool's definition."""
ANSWER_INSTEAD: Final = "None of the tools is for this. Answer in words."
GO_ON: Final = "Go on from the last result: make the next call, or give the user the answer."
"""Last, because small models repeat the last statement: with the error alone, Qwen answered "The answer was empty."."""
NOT_EXECUTED: Final = "The call was not executed. Write it again, corrected."
HAS_TOOLS: Final = "There are tools: those of the system message, and they work. Call the one that helps."
STRONGER: Final = (
    (),
    ("Write nothing but the call, exactly in the form that the system message shows.",),
    ("This is the last try. Copy the form of the system message to the letter, and fill in name and arguments only.",),
)
"""The sentences that each retry adds to a correction (CHK-5)."""
SAYS: Final = {
    Problem.PARSE_ERROR: "the call could not be read",
    Problem.TRUNCATED: "the call is not complete: it was cut off; write it again, shorter if you can",
    Problem.UNKNOWN_TOOL: "there is no such tool",
    Problem.AMBIGUOUS: "several tools could be meant",
    Problem.SCHEMA_ERROR: "the arguments do not fit the tool's schema",
    Problem.WRONG_TOOL: "this call is not allowed now",
    Problem.UNRELATED: "this tool has nothing to do with the request",
    Problem.DISCONNECTED: "the connection was lost",
}


def size_of(event: Event) -> int:
    """Return the number of characters of an event that count for `MOST_CHARACTERS`."""
    if isinstance(event, TextDelta | ReasoningDelta):
        return len(event.text)
    return len(event.json) if isinstance(event, ArgsDelta) else 0


def corrections(trouble: Trouble, choice: ToolChoice, level: int, frame: Callable[[Result], str]) -> list[str]:
    """Return the paragraphs of a correction: what was wrong, and what is accepted.

    `frame` writes a result as the dialect does, so that the model sees the error in the form of a tool's result.
    `level` counts the retries so far.
    """
    stronger = STRONGER[min(level, len(STRONGER) - 1)]
    match trouble.kind:
        case Kind.BAD_CALLS:
            return [*(frame(error_result(complaint)) for complaint in trouble.complaints), NOT_EXECUTED, *stronger]
        case Kind.NO_CALL:
            return [frame(_error(call_needed(choice))), *stronger]
        case Kind.REFUSED:
            return [frame(_error(HAS_TOOLS)), *stronger]
        case Kind.EMPTY:
            return [frame(_error("the answer was empty: call a tool, or answer in words")), GO_ON, *stronger]
        case Kind.REPEATED:
            return [ANSWERED]
        case Kind.NARRATED:
            return [CALL_NOW]
        case Kind.UNRELATED:
            return [ANSWER_INSTEAD]


def asked_again(
    sent: Request, quoted: str, attempted: Sequence[tuple[Call, Complaint | None]], trouble: Trouble, level: int
) -> Request:
    """Return the request that asks for a native answer again (CHK-4).

    Bad calls get error results. All calls of the answer are in the history, with a result each: vendors reject a call
    without its result. Any other trouble is stated in a user message.
    """
    said = (Text(quoted),) if quoted.strip() else ()
    if attempted and trouble.kind is Kind.BAD_CALLS:
        calls = [call for call, _ in attempted]
        results = tuple(answered_with(call, complaint, level) for call, complaint in attempted)
        messages = (Message(Role.ASSISTANT, (*said, *calls)), Message(Role.TOOL, results))
    else:
        words = corrections(trouble, sent.choice, level, in_words)
        answered = (Message(Role.ASSISTANT, said),) if said else ()
        messages = (*answered, Message(Role.USER, (Text("\n\n".join(words)),)))
    return replace(sent, messages=(*sent.messages, *messages))


def insisting(level: int) -> tuple[str, ...]:
    """Return the stronger words for a native call that is rejected again (CHK-5)."""
    if not level:
        return ()
    last = " This is the last try." if level > 1 else ""
    return (f"This call was refused before. Only a call that fits the tool's schema is accepted.{last}",)


def error_result(complaint: Complaint, call_id: str = "") -> Result:
    """Return a complaint as the error result of the call that it is about."""
    says = SAYS[complaint.problem]
    text = f"{says}: {complaint.detail}" if complaint.detail else says
    return Result(call_id, (Text(text),), complaint.name or "", is_error=True)


def failure_of(trouble: Trouble) -> Failure:
    """Return the failure that ends the turn when no retry helped; the client never gets an empty success (P6)."""
    match trouble.kind:
        case Kind.BAD_CALLS:
            details = "; ".join(f"{c.name or 'a call'}: {SAYS[c.problem]}" for c in trouble.complaints)
            return Failure(FailureKind.MODEL_SCHEMA_ERROR, f"the model's tool calls cannot be used: {details}", 502)
        case Kind.NO_CALL:
            return Failure(FailureKind.OTHER, "the model made no tool call, and tool_choice asks for one", 502)
        case Kind.REFUSED | Kind.EMPTY | Kind.REPEATED | Kind.NARRATED | Kind.UNRELATED:
            return Failure(FailureKind.OTHER, "the model's answer was empty", 502)


def must_call(choice: ToolChoice) -> bool:
    """Return whether the tool choice demands a call."""
    return choice.mode in (ChoiceMode.REQUIRED, ChoiceMode.NAMED)


def call_needed(choice: ToolChoice) -> str:
    """Return the tool choice as a sentence for the model; empty if the model is free."""
    if choice.mode is ChoiceMode.NAMED:
        return f"The tool {choice.name} must be called now, once. Answer with that call, not with words."
    if choice.mode is ChoiceMode.REQUIRED:
        return "A tool must be called now. Answer with the call, not with words."
    return ""


def answered_with(call: Call, complaint: Complaint | None, level: int) -> Result:
    """Return the error result of a native call from an answer in which at least one call was rejected.

    A valid call of that answer gets one too. It was not executed, since the model will write all its calls again.
    """
    if complaint is None:
        return Result(call.id, (Text("not executed: another call of this turn was refused"),), call.name, is_error=True)
    error = error_result(complaint, call.id)
    return replace(error, name=call.name, content=(*error.content, *map(Text, insisting(level))))


def in_words(result: Result) -> str:
    """Return the text of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def _error(text: str) -> Result:
    return Result("", (Text(text),), "tools", is_error=True)
