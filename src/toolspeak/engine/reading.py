"""One answer of an upstream, read: text is looked through for calls, native calls are checked, both the same way.

What comes out may be shown and executed. What must not is kept beside it: complaints, the raw text for a correction,
and how the answer ended.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from toolspeak.dialects import NativeCalls, Reader
from toolspeak.engine.answer import answer_text
from toolspeak.engine.answered import NOTHING_ANSWERED, Answered
from toolspeak.engine.guard import Echo
from toolspeak.engine.stops import StopText
from toolspeak.engine.told import MADE_UP, UNFIT, Told
from toolspeak.engine.trouble import MOST_CHARACTERS, TOO_LONG, Kind, Trouble, must_call, size_of
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
from toolspeak.ir.message import Call
from toolspeak.ir.tool import ToolChoice


@dataclass(frozen=True)
class Reads:
    """What reads one answer; made new for each."""

    reader: Reader | None
    """None where text is not looked through (MODE-8 switched off)."""
    native: NativeCalls
    stops: StopText
    echo: Echo
    most: int
    """Calls that one turn may have (CHK-1)."""
    answer_tool: str = ""
    """The name under which the answer tool is offered (INL-6)."""
    ids: Iterator[str] | None = None
    """For native calls that nobody offered: their own ids may be in the client's history already."""
    eager: bool = False
    """Let native calls out as they grow, once their name is right (CHK-7)."""
    told: Told | None = None
    """Judges what whole calls say (CHK-10, CHK-11)."""
    answered: Answered = NOTHING_ANSWERED
    """The calls whose results came just now: who writes one of them as text may only be repeating itself."""


class Reading:
    """Reads one answer."""

    def __init__(self, reads: Reads) -> None:
        """Start before the answer's first event."""
        self._reads, self._reader = reads, reads.reader
        self._growing: dict[str, tuple[CallStarted, list[str]]] = {}
        self._streaming: set[str] = set()
        self._said: list[str] = []
        self._size = 0
        self._stop_sequence = ""
        self._echoed = False
        self._repeats: list[tuple[Event, ...]] = []
        self._repeated = ""
        self.attempted: list[tuple[Call, Complaint | None]] = []
        """All native calls, and what is wrong with them: a history that has one must have all."""
        self.left_open = False
        """A call has begun to leave, and must not be taken for whole (P3)."""
        self.rejected: list[CallRejected] = []
        """What the model wrote of calls that must not run."""
        self.asides: list[Complaint] = []
        """Calls that were set aside (CHK-10)."""
        self.made: list[Call] = []
        """Those that may be executed, without any that leave as they grow."""
        self.calls = 0
        self.has_text = False
        """Something was said that is not blank."""
        self.forged = False
        """The model has begun to write a tool's result (INL-7)."""
        self.stop: StopReason | None = None
        self.usage = Usage()
        self.failure: Failure | None = None

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """Return what is wrong with the calls that must not run."""
        return tuple(one.complaint for one in self.rejected)

    @property
    def over(self) -> bool:
        """Tell whether the answer has ended, or nothing more of it is wanted."""
        return self.stop is not None or self.failure is not None

    @property
    def enough(self) -> bool:
        """Tell whether nothing more of the answer is wanted, though it goes on (INL-7, P7)."""
        return self.forged or self.over or (self._reader is not None and self._reader.cut is not None)

    @property
    def repeats(self) -> bool:
        """Tell whether the only calls are those that were answered just now."""
        return bool(self._repeats) and not self.calls

    @property
    def stop_sequence(self) -> str:
        """The client's stop sequence that ended the text."""
        return self._reads.stops.found or self._stop_sequence

    @property
    def said(self) -> str:
        """All that the model wrote as text."""
        return "".join(self._said)

    @property
    def quoted(self) -> str:
        """What of it a correction quotes: of a call in a loop only the first round, or the model goes on with it."""
        said, again = self.said, self._repeated
        second = said.find(again, said.find(again) + len(again)) if again else -1
        return said[:second] if second >= 0 else said

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take events of the upstream; return what may be shown and executed."""
        out: list[Event] = []
        for event in events:
            if self.stop is not None or self.failure is not None:
                self.usage = event.usage if isinstance(event, Finished | Failed) else self.usage
                continue
            self._size += size_of(event)
            if self._size > MOST_CHARACTERS:
                self.failure = TOO_LONG
                continue
            for read in self._read(event):
                if type(read) is TextDelta and not self._reads.stops.any:
                    self.has_text = self.has_text or not read.text.isspace()
                    out.append(read)
                else:
                    out += self._seen(read)
        return out

    def also(self, calls: Iterable[Call]) -> list[Event]:
        """Take calls that were found in what was said, after its end."""
        judged = (event for call in calls for event in self._reads.native.judge(call))
        return [seen for event in judged for seen in self._seen(event)]

    def is_made_up(self, call: Call) -> bool:
        """Tell whether what a call needs was told by nobody."""
        return self._reads.told is not None and self._reads.told.is_made_up(call.name, call.arguments)

    def set_aside(self, calls: Iterable[Call]) -> None:
        """Keep calls from running; the question is to be answered in words."""
        self.asides += (Complaint(Problem.UNRELATED, call.name, MADE_UP) for call in calls)

    def drop(self, name: str) -> frozenset[str]:
        """Set the calls of a tool aside that cannot do what was asked; return their ids."""
        dropped = frozenset(call.id for call in self.made if call.name == name)
        self.made = [call for call in self.made if call.id not in dropped]
        self.calls -= len(dropped)
        self.asides.append(Complaint(Problem.UNRELATED, name, UNFIT))
        return dropped

    def let_repeats_out(self) -> list[Event]:
        """Return the calls that were held because they were answered before: to ask twice is no error."""
        repeats, self._repeats = self._repeats, []
        self.calls += len(repeats)
        return [event for repeat in repeats for event in repeat]

    def cut(self) -> list[Event]:
        """End the answer here: the upstream is closed, and what was read so far counts."""
        return self.feed([Finished(StopReason.END, self.usage)])

    # ---------------------------------------------------------------- from the upstream

    def _read(self, event: Event) -> list[Event]:
        """Look through text, and put native calls together."""
        if type(event) is TextDelta:
            self._said.append(event.text)
            return self._reader.feed(event.text) if self._reader is not None else [event]
        match event:
            case CallStarted() | ArgsDelta() | CallEnded():
                return self._native(event)
            case Finished() | Failed():
                self.usage = event.usage
                return [*(self._reader.finish() if self._reader is not None else ()), event]
            case TextDelta() | ReasoningDelta() | CallRejected() | Discarded():
                return [event]

    def _native(self, event: CallStarted | ArgsDelta | CallEnded) -> list[Event]:
        if isinstance(event, CallStarted):
            self._growing[event.id] = (event, [])
            if self._reads.eager and self._reads.native.may_stream(event.name):
                self._streaming.add(event.id)
        elif isinstance(event, ArgsDelta):
            self._growing[event.id][1].append(event.json)
        else:
            return self._judged(event)
        return [event] if event.id in self._streaming else []

    def _judged(self, event: CallEnded) -> list[Event]:
        """Check a native call that is whole; one that is out already can only be complained of."""
        started, pieces = self._growing.pop(event.id)
        id = event.id if self._reads.ids is None else next(self._reads.ids)
        call = Call(id, started.name, "".join(pieces), started.native_id)
        judged = self._reads.native.judge(call)
        rejected = [one for one in judged if isinstance(one, CallRejected)]
        self.attempted.append((call, rejected[0].complaint if rejected else None))
        if event.id not in self._streaming:
            return judged
        self.left_open = self.left_open or bool(rejected)
        return [*rejected] if rejected else [event]

    # ---------------------------------------------------------------- to the client

    def _seen(self, event: Event) -> Iterator[Event]:
        match event:
            case TextDelta(text):
                yield from self._shown(text)
            case CallRejected():
                self.rejected.append(event)
            case Discarded(why):
                self.forged = self.forged or why is Why.FORGED
            case CallStarted() | ArgsDelta() | CallEnded():
                yield from self._called(event)
            case Finished() | Failed():
                yield from self._ended(event)
            case ReasoningDelta():
                yield event

    def _shown(self, text: str) -> Iterator[Event]:
        shown = self._reads.stops.feed(text)
        if shown:
            self.has_text = self.has_text or not shown.isspace()
            yield TextDelta(shown)
        if self._reads.stops.found:
            self.stop = StopReason.END

    def _called(self, event: CallStarted | ArgsDelta | CallEnded) -> Iterator[Event]:
        """Let a call out when it is whole, or as it grows if it may."""
        if event.id in self._streaming:
            self.calls += isinstance(event, CallEnded)
            yield event
        elif isinstance(event, CallStarted):
            self._growing[event.id] = (event, [])
        elif isinstance(event, ArgsDelta):
            self._growing[event.id][1].append(event.json)
        else:
            started, pieces = self._growing.pop(event.id)
            yield from self._whole(started, "".join(pieces), event)

    def _whole(self, started: CallStarted, arguments: str, ended: CallEnded) -> Iterator[Event]:
        """Let a whole call out: one that only echoes untrusted text is text (SAFE-3), and so is the answer."""
        if self._is_echo(ended):
            yield from self._shown(ended.raw)
        elif self.calls + len(self._repeats) >= self._reads.most and started.name != self._reads.answer_tool:
            complaint = Complaint(Problem.WRONG_TOOL, started.name, "one call too many in this turn")
            self.rejected.append(CallRejected(complaint, ended.raw or arguments))
        elif started.name == self._reads.answer_tool:
            yield from self._shown(answer_text(arguments))
        elif (ended.raw or self.over) and not self.calls and self._reads.answered.has(started.name, arguments):
            self._repeated = self._repeated or ended.raw
            self._repeats.append((started, ArgsDelta(started.id, arguments), ended))
        else:
            yield from self._judged_by(self._reads.told, started, arguments, ended)

    def _judged_by(self, told: Told | None, started: CallStarted, arguments: str, ended: CallEnded) -> Iterator[Event]:
        """Hold a call against what was said, where that is asked for."""
        if told is not None and told.is_unrelated(started.name):
            self.asides.append(Complaint(Problem.UNRELATED, started.name))
            return
        arguments, left_out = told.kept(started.name, arguments) if told is not None else (arguments, ())
        yield from self.let_repeats_out()  # with a new call beside it, it is meant
        self.calls += 1
        self.made.append(Call(started.id, started.name, arguments))
        ended = CallEnded(ended.id, ended.raw, (*ended.fixes, *left_out)) if left_out else ended
        yield from (started, ArgsDelta(started.id, arguments), ended)

    def _is_echo(self, ended: CallEnded) -> bool:
        """Ask for the call's text; of several calls in one text, only the first has it."""
        if ended.raw:
            self._echoed = self._reads.echo.is_echo(ended.raw)
        return self._echoed and all(call.id != ended.id for call, _ in self.attempted)

    def _ended(self, event: Finished | Failed) -> Iterator[Event]:
        if held := self._reads.stops.finish():
            self.has_text = self.has_text or not held.isspace()
            yield TextDelta(held)
        if isinstance(event, Failed):
            self.failure = event.failure
            return
        for started, pieces in self._growing.values():
            self.rejected.append(CallRejected(Complaint(Problem.TRUNCATED, started.name), "".join(pieces)))
        self.left_open = self.left_open or any(id in self._streaming for id in self._growing)
        self.stop, self._stop_sequence = event.stop, event.stop_sequence


def trouble_with(reading: Reading, choice: ToolChoice, *, refused: bool) -> Trouble | None:
    """Judge an answer that has ended."""
    if reading.calls:
        return None
    if reading.repeats:
        return Trouble(Kind.REPEATED)
    if reading.asides:
        return Trouble(Kind.UNRELATED, tuple(reading.asides))
    if reading.complaints:
        return Trouble(Kind.BAD_CALLS, reading.complaints)
    if must_call(choice):
        return Trouble(Kind.NO_CALL)
    if refused:
        return Trouble(Kind.REFUSED)
    if reading.stop_sequence:
        return None  # the client itself ended it there
    if not reading.has_text and reading.stop is not StopReason.FILTER and reading.stop is not StopReason.LENGTH:
        return Trouble(Kind.EMPTY)
    return None
