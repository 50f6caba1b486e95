"""Reads one answer of an upstream while it streams: finds calls in text, checks native calls, and judges both alike.

    reader = AnswerReader(parts)
    reader.feed(events)    the events that may be shown and executed
    reader.answer()        after the end: everything that later steps need, immutable

From here on a call is one `Call`, whether it was read from text or came natively, and it is split into events where it
leaves. Before that, each call was taken apart and put together twice, and the number of calls was checked in three
places. `PassThrough` has the same interface and changes nothing in the answer.

A call passes these gates in this order: the checker (name, schema, tool choice), the echo test, the answer tool, the
limit of calls, the test for a repeated call, the guardrails. A call that passes all of them may run. A long call that
leaves while it grows has passed them as far as its beginning can tell (`growing_call.py`); the checker has the rest.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from toolspeak.dialects import TextReader, native_attempt
from toolspeak.engine.answer import ReadAnswer, answer_text
from toolspeak.engine.growing_call import GrowingCall, fits_so_far, may_become
from toolspeak.engine.guard import Echo
from toolspeak.engine.guardrails.guardrail import AskModel, DropCall, GuardedConversation, Guardrail
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
    FirstToken,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
    Why,
)
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Message, Result, Role
from toolspeak.ir.turn import LEAST_JOINED, Item, PartialCall, TextLog, events_of
from toolspeak.text.jsonspan import JsonSpan, SpanStatus
from toolspeak.text.strict import parse
from toolspeak.toolset.check import CallChecker
from toolspeak.toolset.toolset import ToolSet

_NO_BEGINNING: Final = re.compile(r"(?!)").search


class StopText:
    """Cuts visible text at the client's first stop sequence, independent of how the text is chunked.

    Emulated requests do not send the client's stop sequences upstream. There they could cut a call: a sequence such as
    a blank line or a closing brace may occur inside of the arguments.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        """Take the sequences; empty ones are ignored."""
        self._stops = tuple(filter(None, stops))
        self._hold = max(map(len, self._stops), default=1) - 1
        self._held = ""
        self.any = bool(self._stops)
        """Whether there are sequences. Without any, readers skip this class: it is in the path of every chunk."""
        self.found = ""
        """The sequence that was found; empty before that."""

    def feed(self, text: str) -> str:
        """Take more text; return the part that may be shown now. After a sequence was found, that is nothing."""
        if not self._stops or self.found:
            return "" if self.found else text
        window = self._held + text
        ends = [(at, stop) for stop in self._stops if (at := window.find(stop)) >= 0]
        if ends:
            # The sequence that is complete first wins, and not the one that starts first: a stream of single characters
            # would find it first, and the result must not depend on the chunks.
            at, self.found = min(ends, key=lambda end: (end[0] + len(end[1]), end[0]))
            self._held = ""
            return window[:at]
        keep = self._tail(window)
        self._held = window[len(window) - keep :]
        return window[: len(window) - keep]

    def finish(self) -> str:
        """Return the text that was held back as the possible start of a sequence."""
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
    """The calls whose results are the end of a history, without failed ones: a failed call may well be tried again.

    Small models write the call that was just answered again, and never stop: seen with Qwen2.5-Coder-0.5B in every
    dialect. Asked once to answer in words, that model does (CHK-9). So such a call is held, not delivered.
    """

    calls: tuple[Call, ...] = ()

    def has(self, name: str, arguments: str) -> bool:
        """Return whether this call is one of them; arguments are compared as JSON values, not as text."""
        return any(call.name == name and _value(call.arguments) == _value(arguments) for call in self.calls)

    def may_have(self, name: str, beginning: JsonObject) -> bool:
        """Return whether a call with these arguments so far may become one of them."""
        return any(call.name == name and may_become(beginning, _value(call.arguments)) for call in self.calls)


NOTHING_ANSWERED = AnsweredCalls()


def answered_calls(messages: tuple[Message, ...]) -> AnsweredCalls:
    """Return the answered calls of the last assistant message if only results follow it, else none."""
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
    """The parts of an `AnswerReader`. They hold state, so each answer gets new ones."""

    reader: TextReader | None
    """Finds calls in text; None if text is not searched (`rescue = false`, MODE-8)."""
    tools: ToolSet
    checker: CallChecker
    stops: StopText
    echo: Echo
    max_calls: int
    """The most calls that one turn may have, native ones and those in text together (CHK-1)."""
    answer_tool: str = ""
    """The name of the answer tool, if it is offered (INL-6)."""
    ids: Iterator[str] | None = None
    """New ids for native calls in an answer to a taught prompt; None keeps the ids of the upstream.

    Such a request offers no tools. If a native call comes all the same, its id may be one of the client's history,
    which this upstream has never seen as ids: the simulation found two calls with one id.
    """
    streams_calls: bool = False
    """Whether native calls leave while they grow, once their name is known to be right (CHK-7)."""
    guardrails: tuple[Guardrail, ...] = ()
    """The guardrails that judge each call before it leaves (CHK-10, CHK-14)."""
    conversation: GuardedConversation | None = None
    """The conversation that guardrails compare a call with; None if the plan has no guardrails."""
    answered: AnsweredCalls = NOTHING_ANSWERED
    """The calls whose results are the end of the history."""
    recover: Callable[[str, str], Iterable[Call]] | None = None
    """Finds calls in an answer without any, given all its text and its visible text (DEC-3, CHK-12)."""


class AnswerReader:
    """Reads one answer. Feed it events until `over`, then take `answer()`.

    The returned events and the calls do not depend on how the upstream's text is split into events.
    """

    def __init__(self, parts: ReaderParts) -> None:
        """Start before the answer's first event."""
        self._parts, self._reader = parts, parts.reader
        self._growing: dict[str, tuple[CallStarted, list[str]]] = {}  # native calls that have begun and not ended
        self._streaming: set[str] = set()  # ids of those that the client sees grow
        self._written: GrowingCall | None = None  # the call in text that has begun and not ended
        self._is_lost = False  # such a call was seen to grow, and did not become complete
        self._said, self._visible = TextLog(), TextLog()
        self._size = 0
        self._is_echo = False  # of the text from which the latest call was read
        self._forged = False
        self._stop: StopReason | None = None
        self._calls: list[Call] = []
        self._attempted: list[tuple[Call, Complaint | None]] = []
        self._rejected: list[CallRejected] = []
        self._set_aside: list[Complaint] = []
        self._questions: dict[str, AskModel] = {}
        self._repeats: list[Call] = []
        self._streamed = 0
        self._has_text = self._left_open = False
        self._stop_sequence = ""
        self._first_token: FirstToken = ()
        self._usage = Usage()
        self._failure: Failure | None = None

    @property
    def over(self) -> bool:
        """Whether the answer has ended: the upstream ended it, a stop sequence was found, or a limit was reached."""
        return self._stop is not None or self._failure is not None

    @property
    def enough(self) -> bool:
        """Whether the upstream can be closed before its answer ends.

        That is so after the model began to forge a tool result (INL-7), or wrote one call over and over: a 0.5B model
        on llama.cpp repeated its call up to the token limit (P7).
        """
        return self._forged or self.over or (self._reader is not None and self._reader.cut is not None)

    @property
    def beginnings(self) -> Callable[[str], object] | None:
        """Return a search for what may begin more than text; None if the next text must be read in any case."""
        if self._parts.stops.any or self._is_lost or self._written is not None:
            return None
        return _NO_BEGINNING if self._reader is None else self._reader.beginnings

    @property
    def room(self) -> int:
        """How many more characters the answer may have."""
        return MOST_CHARACTERS - self._size

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take events of the upstream; return the events that may be shown and executed.

        After the end of the answer, only the usage of a last event is taken; it may follow a stop sequence.
        """
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
                # Nearly all items of a stream are text, so they skip the dispatch of `_seen`.
                if self._written is not None and type(item) is not PartialCall:
                    out += self._end_written(self._written, item)
                elif self._is_lost and not isinstance(item, Finished | Failed):
                    continue
                elif type(item) is TextDelta and not stops.any:
                    self._note_visible(item.text)
                    out.append(item)
                else:
                    out += self._seen(item)
        if len(self._said.pieces) >= LEAST_JOINED:
            self._said.join()
            self._visible.join()
        return out

    def cut(self) -> list[Event]:
        """End the answer here, after the upstream was closed; everything read so far counts."""
        return self.feed([Finished(StopReason.END, self._usage)])

    def release(self) -> None:
        """Let go of a reader whose answer nobody will take: else only the garbage collector would free it."""
        if self._reader is not None:
            self._reader.read_end()

    def answer(self) -> ReadAnswer:
        """Return the whole answer; call it after the end."""
        return ReadAnswer(
            calls=tuple(self._calls),
            streamed=self._streamed,
            repeats=tuple(self._repeats),
            attempted=tuple(self._attempted),
            rejected=tuple(self._rejected),
            set_aside=tuple(self._set_aside),
            questions=tuple(self._questions.values()),
            said=self._said.text,
            first_token=self._first_token,
            visible=self._visible.text,
            repeated_text=next((call.raw for call in self._repeats if call.raw), ""),
            has_text=self._has_text,
            left_open=self._left_open,
            stop=self._stop or StopReason.END,
            stop_sequence=self._parts.stops.found or self._stop_sequence,
            usage=self._usage,
            failure=self._failure,
        )

    # ---------------------------------------------------------------- items

    def _items(self, event: Event) -> Sequence[Item]:
        """Search text for calls; return any other event as it is."""
        if type(event) is TextDelta:
            self._said.pieces.append(event.text)
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
            case PartialCall():
                yield from self._take_written(item)
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
        self._visible.pieces.append(text)

    def _end(self, event: Finished | Failed) -> Iterator[Event]:
        if held := self._parts.stops.finish():
            self._note_visible(held)
            yield TextDelta(held)
        if isinstance(event, Failed):
            self._failure = event.failure
            return
        # Native calls without an end. Whatever the finish reason says, they are truncated and must not run (P3): one
        # client that ran such calls wiped a file to 0 bytes, six times.
        for started, pieces in self._growing.values():
            self._rejected.append(CallRejected(Complaint(Problem.TRUNCATED, started.name), "".join(pieces)))
        self._left_open = self._left_open or any(id in self._streaming for id in self._growing)
        self._stop, self._stop_sequence, self._first_token = event.stop, event.stop_sequence, event.first_token
        yield from self._recovered()

    def _recovered(self) -> Iterator[Event]:
        """Look for calls in another form, if the answer has no call and no attempt at one.

        The calls that are found are checked like native ones. Nothing was checked when they were found.
        """
        recover = self._parts.recover
        nothing_yet = not (self._calls or self._streamed or self._repeats or self._rejected or self._set_aside)
        if recover is None or not nothing_yet:
            return
        for call in recover(self._said.text, self._visible.text):
            checked = self._parts.checker.check(native_attempt(call, self._parts.tools), call.arguments, call.id)
            if isinstance(checked, CallRejected):
                self._rejected.append(checked)
            elif checked is not None:
                yield from self._accept(replace(checked, raw=""))

    # ---------------------------------------------------------------- calls

    def _take_native(self, event: CallStarted | ArgsDelta | CallEnded) -> Iterator[Event]:
        """Collect a native call, or return its events at once if it may leave while it grows."""
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
        """Check a native call that is complete.

        If its beginning has left, it cannot be held back any more. A wrong call is then left without its end, so that
        the client does not take it for complete, and the turn fails (`left_open`).
        """
        started, pieces = self._growing.pop(event.id)
        id = event.id if self._parts.ids is None else self._new_id(self._parts.ids)
        call = Call(id, started.name, "".join(pieces), started.native_id)
        streams, rejected_before = event.id in self._streaming, len(self._rejected)
        self._streaming.discard(event.id)
        checked = self._parts.checker.check(native_attempt(call, self._parts.tools), call.arguments, id)
        leaves: list[Event] = []
        if isinstance(checked, CallRejected):
            self._rejected.append(checked)
        elif checked is not None and not streams:
            leaves = list(self._accept(replace(checked, raw="")))  # `raw` is for calls that were read from text
        complaint = self._rejected[-1].complaint if len(self._rejected) > rejected_before else None
        self._attempted.append((call, complaint))
        if streams and complaint is None:
            self._streamed += 1
            leaves.append(event)
        self._left_open = self._left_open or (streams and complaint is not None)
        return leaves

    def _new_id(self, ids: Iterator[str]) -> str:
        """Return an id that the call which is being read from text does not have."""
        id = next(ids)
        return next(ids) if self._written is not None and id == self._written.id else id

    def _take_written(self, news: PartialCall) -> Iterator[Event]:
        """Take more of a call that is being read from text; it leaves as soon as its beginning allows that (CHK-7)."""
        written = self._written = self._written or GrowingCall(news)
        written.add(news)
        if written.streams:
            yield ArgsDelta(written.id, news.json)
        elif any(self._may_leave(written.name, raw, value) for raw, value in written.looks()):
            written.streams = True
            yield from self._let_repeats_out()
            yield CallStarted(written.id, written.name, written.native_id)
            yield ArgsDelta(written.id, written.arguments)

    def _may_leave(self, name: str, raw: str, value: JsonObject) -> bool:
        """Whether a call that begins so passes all gates, whatever follows, except for the schema of what follows."""
        parts = self._parts
        if name == parts.answer_tool or not self._has_room() or not parts.checker.may_start(name):
            return False
        may_repeat = not self._calls and not self._streamed and parts.answered.may_have(name, value)
        return fits_so_far(name, value, parts.tools) and not may_repeat and not parts.echo.may_become(raw)

    def _end_written(self, written: GrowingCall, item: Item) -> Iterator[Event]:
        """Take what became of a call that was being read from text.

        If its beginning has left and it is not complete, it stays without its end, and the answer ends here: what
        follows cannot be used, since the turn fails (`left_open`), as it does for a native call.
        """
        self._written = None
        if not written.streams:
            yield from self._seen(item)
            return
        call = written.completed(item, self._parts.checker) if isinstance(item, Call) else None
        if call is not None:
            self._calls.append(call)
            yield CallEnded(call.id, call.raw, call.fixes)
            return
        detail = "its arguments are not what their beginning said"
        lost = CallRejected(Complaint(Problem.PARSE_ERROR, written.name, detail), written.arguments)
        self._rejected.append(item if isinstance(item, CallRejected) else lost)
        self._left_open = self._is_lost = True
        self._stop = StopReason.END
        if isinstance(item, Finished | Failed):
            yield from self._end(item)

    def _take_from_text(self, call: Call) -> Iterator[Event]:
        """Take a call that was read from text; return it as text if it only repeats untrusted text (SAFE-3).

        A web page or a file may contain a complete call, and models quote what they read: reading one file with
        `<tool_call>` in it led four models to calls that no user had asked for (hermes-agent #47967).
        """
        # Of several calls in one piece of markup, only the first has the text. The verdict on it holds for all of them,
        # or the second call of an echoed list would run.
        if call.raw:
            self._is_echo = self._parts.echo.is_echo(call.raw)
        if self._is_echo:
            yield from self._show(call.raw)
        else:
            yield from self._accept(call)

    def _accept(self, call: Call) -> Iterator[Event]:
        """Return the events of a complete call, unless it is the answer tool's, one too many, or a repeated one."""
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
        """Whether a call in text was answered just now. A native one, or one beside another call, counts as meant."""
        can_be = bool(call.raw or self.over) and not self._calls and not self._streamed
        return can_be and self._parts.answered.has(call.name, call.arguments)

    def _has_room(self) -> bool:
        open_calls = len(self._streaming) + (self._written is not None and self._written.streams)
        return len(self._calls) + len(self._repeats) + self._streamed + open_calls < self._parts.max_calls

    def _deliver(self, call: Call) -> Iterator[Event]:
        """Return the events of a call, unless a guardrail drops it."""
        if self._is_dropped(call):
            return
        yield from self._let_repeats_out()
        self._calls.append(call)
        yield from events_of(call)

    def _let_repeats_out(self) -> Iterator[Event]:
        """Let held calls leave before a new one: the model goes on with its work, so all leave, in its order."""
        repeats, self._repeats = self._repeats, []
        for call in repeats:
            self._calls.append(call)
            yield from events_of(call)

    def _is_dropped(self, call: Call) -> bool:
        """Return whether a guardrail drops the call; the turn asks the others' questions later."""
        if self._parts.conversation is None:
            return False
        for guardrail in self._parts.guardrails:
            judgement = guardrail.judge(call, self._parts.conversation)
            if isinstance(judgement, DropCall):
                self._set_aside.append(judgement.complaint)
                return True
            if isinstance(judgement, AskModel):
                self._questions.setdefault(call.name, judgement)
        return False


class PassThrough:
    """Reads one answer with the interface of `AnswerReader`, and forwards its events unchanged.

    Two promises hold here too: no truncated call counts as complete (P3), and no answer is an empty success (P6).
    """

    def __init__(self, *, passes_calls: bool, needs_text: bool) -> None:
        """Forward calls, or drop them. With `needs_text`, an empty answer is a failure."""
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

    @property
    def beginnings(self) -> Callable[[str], object] | None:
        """Return a search for what may begin more than text: it finds nothing."""
        return _NO_BEGINNING

    @property
    def room(self) -> int:
        """How many more characters the answer may have."""
        return MOST_CHARACTERS - self._size

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take events of the upstream; return those that pass."""
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
        """End the answer with a failure, because it is too long."""
        return self.feed([Failed(TOO_LONG)])

    def release(self) -> None:
        """Let go of nothing: no text is searched."""

    def answer(self) -> ReadAnswer:
        """Return how the answer ended: with a failure if it is empty or has a truncated call (P3, P6)."""
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
        """Return whether an event of a call passes.

        The end of a call does not pass if its arguments are incomplete JSON: without its end, no client runs it.
        """
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
