"""Reads one answer of an upstream while it streams: finds calls in text, checks native calls, and treats both alike.

    reader = AnswerReader(parts)
    reader.feed(events)    the events that may be shown and executed
    reader.answer()        after the end: everything that later steps need, immutable

A call is one `Call` from here on, whether it was read from text or came natively. It is split into events where it
leaves. `PassThrough` reads an answer in the same way and changes nothing in it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from toolspeak.dialects import TextReader, native_attempt
from toolspeak.engine.answer import ReadAnswer
from toolspeak.engine.answer_tool import answer_text
from toolspeak.engine.guard import Echo
from toolspeak.engine.guardrails.guardrail import AskModel, DropCall, GuardedConversation, Guardrail, Recovered
from toolspeak.engine.outbox import is_visible
from toolspeak.engine.trouble import MOST_CHARACTERS, TOO_LONG, Kind, Trouble, failure_of, size_of
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
    Why,
)
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call, Message, Result, Role
from toolspeak.ir.turn import Item, events_of
from toolspeak.text.jsonspan import JsonSpan, SpanStatus
from toolspeak.text.strict import parse
from toolspeak.toolset.check import CallChecker
from toolspeak.toolset.toolset import ToolSet


class StopText:
    """Cuts visible text at the client's first stop sequence, however it is chunked.

    They are not sent upstream, where they could cut a call.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        """Take the sequences; empty ones stop nothing."""
        self._stops = tuple(filter(None, stops))
        self._hold = max(map(len, self._stops), default=1) - 1
        self._held = ""
        self.any = bool(self._stops)
        """There is something to stop at."""
        self.found = ""
        """The sequence that was found."""

    def feed(self, text: str) -> str:
        """Return the text that may be shown."""
        if not self._stops or self.found:
            return "" if self.found else text
        window = self._held + text
        ends = [(at, stop) for stop in self._stops if (at := window.find(stop)) >= 0]
        if ends:
            at, self.found = min(ends, key=lambda end: (end[0] + len(end[1]), end[0]))  # whichever is whole first
            self._held = ""
            return window[:at]
        keep = self._tail(window)
        self._held = window[len(window) - keep :]
        return window[: len(window) - keep]

    def finish(self) -> str:
        """Return what was held back: no sequence came."""
        held, self._held = self._held, ""
        return held

    def _tail(self, window: str) -> int:
        """Return how many characters at the end may be the start of a stop sequence."""
        for size in range(min(self._hold, len(window)), 0, -1):
            if any(stop.startswith(window[-size:]) for stop in self._stops):
                return size
        return 0


@dataclass(frozen=True, slots=True)
class AnsweredCalls:
    """Calls whose results end a history, without those that failed: a failed call may well be tried again.

    A small model that gets a result often writes the same call again, for ever. It is asked once whether it means it.
    """

    calls: tuple[Call, ...] = ()

    def has(self, name: str, arguments: str) -> bool:
        """Return whether this call is one of them, however its JSON is written."""
        return any(call.name == name and _value(call.arguments) == _value(arguments) for call in self.calls)


NOTHING_ANSWERED = AnsweredCalls()


def answered_calls(messages: tuple[Message, ...]) -> AnsweredCalls:
    """Return the calls whose results end a history."""
    behind = list(takewhile(lambda message: message.role is Role.TOOL, reversed(messages)))
    before = messages[: len(messages) - len(behind)]
    if not behind or not before or before[-1].role is not Role.ASSISTANT:
        return NOTHING_ANSWERED
    results = [part for message in behind for part in message.parts if isinstance(part, Result)]
    fine = {result.call_id for result in results if not result.is_error}
    return AnsweredCalls(tuple(part for part in before[-1].parts if isinstance(part, Call) and part.id in fine))


def _value(arguments: str) -> Json:
    try:
        return parse(arguments)
    except BadJson:
        return arguments


@dataclass(frozen=True)
class ReaderParts:
    """What an `AnswerReader` works with; made new for each answer."""

    reader: TextReader | None
    """Finds calls in text. None: text is not searched (MODE-8 switched off)."""
    tools: ToolSet
    checker: CallChecker
    stops: StopText
    echo: Echo
    max_calls: int
    """Calls that one turn may have, native ones and those in text together (CHK-1)."""
    answer_tool: str = ""
    """The name of the answer tool, if it is offered (INL-6)."""
    ids: Iterator[str] | None = None
    """New ids for native calls. An emulated answer has no native call; if one comes, its id may be used already."""
    streams_calls: bool = False
    """Native calls leave while they grow, if their name is right (CHK-7)."""
    guardrails: tuple[Guardrail, ...] = ()
    """They judge each call before it leaves (CHK-10, CHK-11, CHK-14)."""
    conversation: GuardedConversation | None = None
    """What they compare a call with; None if there are none."""
    answered: AnsweredCalls = NOTHING_ANSWERED
    """The calls whose results came just now."""
    recover: Callable[[str, str], Recovered] | None = None
    """Looks for calls in an answer that has none, given all its text and its visible text (DEC-3, CHK-13)."""


class AnswerReader:
    """Reads one answer."""

    def __init__(self, parts: ReaderParts) -> None:
        """Start before the answer's first event."""
        self._parts, self._reader = parts, parts.reader
        self._growing: dict[str, tuple[CallStarted, list[str]]] = {}
        self._streaming: set[str] = set()
        self._said: list[str] = []
        self._visible: list[str] = []  # only if there is something to recover calls from it
        self._size = 0
        self._is_echo = False
        self._forged = False
        self._stop: StopReason | None = None
        self._calls: list[Call] = []
        self._attempted: list[tuple[Call, Complaint | None]] = []
        self._rejected: list[CallRejected] = []
        self._set_aside: list[Complaint] = []
        self._questions: dict[str, AskModel] = {}
        self._repeats: list[Call] = []
        self._streamed = 0
        self._has_text = self._left_open = self._is_only_calls = False
        self._stop_sequence = ""
        self._usage = Usage()
        self._failure: Failure | None = None

    @property
    def over(self) -> bool:
        """Whether the answer has ended: the upstream ended it, a stop sequence came, or a limit was reached."""
        return self._stop is not None or self._failure is not None

    @property
    def enough(self) -> bool:
        """Whether the upstream can be closed, though its answer goes on: the model forges a result, say (INL-7, P7)."""
        return self._forged or self.over or (self._reader is not None and self._reader.cut is not None)

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take events of the upstream; return what may be shown and executed."""
        out: list[Event] = []
        stops = self._parts.stops
        for event in events:
            if self._stop is not None or self._failure is not None:
                self._usage = event.usage if isinstance(event, Finished | Failed) else self._usage
                continue
            self._size += size_of(event)
            if self._size > MOST_CHARACTERS:
                self._failure = TOO_LONG
                continue
            for item in self._items(event):
                if type(item) is TextDelta and not stops.any:
                    self._note_visible(item.text)
                    out.append(item)
                else:
                    out += self._seen(item)
        return out

    def cut(self) -> list[Event]:
        """End the answer here: the upstream is closed, and what was read so far counts."""
        return self.feed([Finished(StopReason.END, self._usage)])

    def answer(self) -> ReadAnswer:
        """Return what the answer came to, after its end."""
        return ReadAnswer(
            calls=tuple(self._calls),
            streamed=self._streamed,
            repeats=tuple(self._repeats),
            attempted=tuple(self._attempted),
            rejected=tuple(self._rejected),
            set_aside=tuple(self._set_aside),
            questions=tuple(self._questions.values()),
            said="".join(self._said),
            repeated_text=next((call.raw for call in self._repeats if call.raw), ""),
            has_text=self._has_text,
            is_only_calls=self._is_only_calls,
            left_open=self._left_open,
            stop=self._stop or StopReason.END,
            stop_sequence=self._parts.stops.found or self._stop_sequence,
            usage=self._usage,
            failure=self._failure,
        )

    # ---------------------------------------------------------------- items

    def _items(self, event: Event) -> Sequence[Item]:
        """Search text for calls; pass everything else on."""
        if type(event) is TextDelta:
            self._said.append(event.text)
            return self._reader.read(event.text) if self._reader is not None else (event,)
        if isinstance(event, Finished | Failed):
            self._usage = event.usage
            return (*(self._reader.read_end() if self._reader is not None else ()), event)
        return (event,)

    def _seen(self, item: Item) -> Iterator[Event]:
        match item:
            case TextDelta(text):
                yield from self._show(text)
            case Call():
                yield from self._take_from_text(item)
            case CallRejected():
                self._rejected.append(item)
            case Discarded(why):
                self._forged = self._forged or why is Why.FORGED
            case CallStarted() | ArgsDelta() | CallEnded():
                yield from self._take_native(item)
            case Finished() | Failed():
                yield from self._end(item)
            case ReasoningDelta():
                yield item

    def _show(self, text: str) -> Iterator[Event]:
        shown = self._parts.stops.feed(text)
        if shown:
            self._note_visible(shown)
            yield TextDelta(shown)
        if self._parts.stops.found:
            self._stop = StopReason.END

    def _note_visible(self, text: str) -> None:
        self._has_text = self._has_text or not text.isspace()
        if self._parts.recover is not None:
            self._visible.append(text)

    def _end(self, event: Finished | Failed) -> Iterator[Event]:
        if held := self._parts.stops.finish():
            self._note_visible(held)
            yield TextDelta(held)
        if isinstance(event, Failed):
            self._failure = event.failure
            return
        for started, pieces in self._growing.values():
            self._rejected.append(CallRejected(Complaint(Problem.TRUNCATED, started.name), "".join(pieces)))
        self._left_open = self._left_open or any(id in self._streaming for id in self._growing)
        self._stop, self._stop_sequence = event.stop, event.stop_sequence
        yield from self._recovered()

    def _recovered(self) -> Iterator[Event]:
        """Look for calls that no reader took for calls, where none was found."""
        recover = self._parts.recover
        nothing_yet = not (self._calls or self._streamed or self._repeats or self._rejected or self._set_aside)
        if recover is None or not nothing_yet:
            return
        found = recover("".join(self._said), "".join(self._visible))
        self._is_only_calls = found.replaces_text
        self._set_aside += found.set_aside
        self._rejected += found.rejected
        for call in found.calls:
            checked = self._parts.checker.check(native_attempt(call, self._parts.tools), call.arguments, call.id)
            if isinstance(checked, CallRejected):
                self._rejected.append(checked)
            elif checked is not None:
                yield from self._accept(replace(checked, raw=""))

    # ---------------------------------------------------------------- calls

    def _take_native(self, event: CallStarted | ArgsDelta | CallEnded) -> Iterator[Event]:
        """Collect a native call, or let it leave while it grows."""
        if isinstance(event, CallStarted):
            self._growing[event.id] = (event, [])
            if self._parts.streams_calls and self._has_room() and self._parts.checker.may_start(event.name):
                self._streaming.add(event.id)
        elif isinstance(event, ArgsDelta):
            self._growing[event.id][1].append(event.json)
        else:
            yield from self._end_native(event)
            return
        if event.id in self._streaming:
            yield event

    def _end_native(self, event: CallEnded) -> list[Event]:
        """Check a native call that is complete. One that has left already can only be complained about."""
        started, pieces = self._growing.pop(event.id)
        id = event.id if self._parts.ids is None else next(self._parts.ids)
        call = Call(id, started.name, "".join(pieces), started.native_id)
        streams, rejected_before = event.id in self._streaming, len(self._rejected)
        self._streaming.discard(event.id)
        checked = self._parts.checker.check(native_attempt(call, self._parts.tools), call.arguments, id)
        leaves: list[Event] = []
        if isinstance(checked, CallRejected):
            self._rejected.append(checked)
        elif checked is not None and not streams:
            leaves = list(self._accept(replace(checked, raw="")))  # it was not read from the model's text
        complaint = self._rejected[-1].complaint if len(self._rejected) > rejected_before else None
        self._attempted.append((call, complaint))
        if streams and complaint is None:
            self._streamed += 1
            leaves.append(event)
        self._left_open = self._left_open or (streams and complaint is not None)
        return leaves

    def _take_from_text(self, call: Call) -> Iterator[Event]:
        """Take a call that was read from text. One that only repeats untrusted text is text (SAFE-3).

        Of several calls in one text, only the first has the text.
        """
        if call.raw:
            self._is_echo = self._parts.echo.is_echo(call.raw)
        if self._is_echo:
            yield from self._show(call.raw)
        else:
            yield from self._accept(call)

    def _accept(self, call: Call) -> Iterator[Event]:
        """Let a complete call leave, unless there is a reason against it."""
        if call.name == self._parts.answer_tool:
            yield from self._show(answer_text(call.arguments))
        elif not self._has_room():
            complaint = Complaint(Problem.WRONG_TOOL, call.name, "one call too many in this turn")
            self._rejected.append(CallRejected(complaint, call.raw or call.arguments))
        elif self._is_repeat(call):
            self._repeats.append(call)
        else:
            yield from self._deliver(call)

    def _is_repeat(self, call: Call) -> bool:
        """Whether a call in text is one that was answered just now. Beside another call it is meant."""
        can_be = bool(call.raw or self.over) and not self._calls and not self._streamed
        return can_be and self._parts.answered.has(call.name, call.arguments)

    def _has_room(self) -> bool:
        open_calls = len(self._streaming)
        return len(self._calls) + len(self._repeats) + self._streamed + open_calls < self._parts.max_calls

    def _deliver(self, call: Call) -> Iterator[Event]:
        """Let a call leave, unless a guardrail drops it."""
        judged = self._judged(call)
        if judged is None:
            return
        repeats, self._repeats = self._repeats, []
        for one in (*repeats, judged):
            self._calls.append(one)
            yield from events_of(one)

    def _judged(self, call: Call) -> Call | None:
        """Return the call as guardrails leave it; None if one drops it. Their questions are for the turn to ask."""
        if self._parts.conversation is None:
            return call
        for guardrail in self._parts.guardrails:
            judgement = guardrail.judge(call, self._parts.conversation)
            if isinstance(judgement, DropCall):
                self._set_aside.append(judgement.complaint)
                return None
            if isinstance(judgement, AskModel):
                self._questions.setdefault(call.name, judgement)
            else:
                call = judgement.call
        return call


class PassThrough:
    """Reads one answer as `AnswerReader` does, and changes nothing in it."""

    def __init__(self, *, passes_calls: bool, needs_text: bool) -> None:
        """Pass calls, or drop them; with `needs_text` an empty answer is an error."""
        self._passes_calls, self._needs_text = passes_calls, needs_text
        self._arguments: dict[str, JsonSpan] = {}
        self._names: dict[str, str] = {}
        self._cut: list[Complaint] = []
        self._dropped = self._has_text = False
        self._size = 0
        self._last: Finished | Failed | None = None

    @property
    def over(self) -> bool:
        """Whether the answer has ended."""
        return self._last is not None

    @property
    def enough(self) -> bool:
        """Whether the answer is longer than the limit (P7)."""
        return self._size > MOST_CHARACTERS

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take events of the upstream; return what passes."""
        out: list[Event] = []
        for event in events:
            self._size += size_of(event)
            if isinstance(event, Finished | Failed):
                self._last = event
            elif not isinstance(event, CallStarted | ArgsDelta | CallEnded) or self._lets_call(event):
                self._has_text = self._has_text or is_visible(event)
                out.append(event)
        return out

    def cut(self) -> list[Event]:
        """End the answer: it is too long."""
        return self.feed([Failed(TOO_LONG)])

    def answer(self) -> ReadAnswer:
        """Return how the answer ended: as a failure if it would be an empty success, or has a cut call (P3, P6)."""
        last = self._last or Finished(StopReason.END)
        if isinstance(last, Failed):
            return ReadAnswer(usage=last.usage, failure=last.failure)
        cut = (*self._cut, *(Complaint(Problem.TRUNCATED, self._names[id]) for id in self._arguments))
        if cut and last.stop is not StopReason.LENGTH:
            return ReadAnswer(usage=last.usage, failure=failure_of(Trouble(Kind.BAD_CALLS, cut)))
        if not self._has_text and (self._dropped or (self._needs_text and last.stop is StopReason.END)):
            return ReadAnswer(usage=last.usage, failure=failure_of(Trouble(Kind.EMPTY)))
        stop = StopReason.END if self._dropped and last.stop is StopReason.CALLS else last.stop
        return ReadAnswer(has_text=self._has_text, stop=stop, usage=last.usage, stop_sequence=last.stop_sequence)

    def _lets_call(self, event: CallStarted | ArgsDelta | CallEnded) -> bool:
        if not self._passes_calls:
            self._dropped = True
            return False
        if isinstance(event, CallStarted):
            self._arguments[event.id], self._names[event.id] = JsonSpan(), event.name
        elif isinstance(event, ArgsDelta):
            self._arguments[event.id].feed(event.json)
        elif self._arguments.pop(event.id).status is SpanStatus.OPEN:
            self._cut.append(Complaint(Problem.TRUNCATED, self._names[event.id]))
            return False
        return True
