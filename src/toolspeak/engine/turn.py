r"""One turn, as a program: what to send, what to show, when to ask again. No I/O: see `effects.py` for who does it.

program = take_turn(request, plan, ids)
effect = next(program)                    Open(request with the tools taught in its prompt)
effect = program.send(None)               Pull()
effect = program.send([TextDelta("```tool_call\n{…}\n```"), Finished(END)])
                                          Emit(CallStarted, ArgsDelta, CallEnded)
…                                         Emit(Finished(CALLS)), then StopIteration(Outcome)
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from toolspeak.engine.again import asked_again
from toolspeak.engine.constrain import Constraining
from toolspeak.engine.effects import CLOSE, Emit, Open, Program, Pull, Step
from toolspeak.engine.ending import ends, says, stop_of
from toolspeak.engine.fit import doubted, judging, says_no
from toolspeak.engine.further import MOST, asked_last, fitting, left_over, question
from toolspeak.engine.gate import Gate
from toolspeak.engine.outcome import EMULATED, Kept, Outcome
from toolspeak.engine.passing import Passing
from toolspeak.engine.plan import Plan, Release, Strategy, Way, has_calls
from toolspeak.engine.prompt import Prompt, without_tools
from toolspeak.engine.reading import Reading, trouble_with
from toolspeak.engine.readings import Readings
from toolspeak.engine.tally import Tally
from toolspeak.engine.trouble import (
    BROKEN_CALLS,
    REFUSES_HISTORY,
    REFUSES_TOOLS,
    TOO_LONG,
    Kind,
    Trouble,
    corrections,
    failure_of,
    must_call,
)
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallStarted, Event, Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Turn, unfold

_SAYS_NOTHING = frozenset((Kind.EMPTY, Kind.UNRELATED))


def take_turn(request: Request, plan: Plan, ids: Iterator[str], remembered: Iterable[Tool] = ()) -> Program:
    """Run one turn. `ids` are for emulated calls, `remembered` the conversation's tools if the request has none."""
    turn = _Turn(request, plan, ids, remembered)
    yield from turn.run()
    return turn.outcome()


class _Turn:
    """The state of one turn."""

    def __init__(self, request: Request, plan: Plan, ids: Iterator[str], remembered: Iterable[Tool]) -> None:
        self._request, self._plan, self._must_call = request, plan, must_call(request.choice)
        self._readings = Readings(request, plan, ids, remembered)
        self._emitted: list[Event] = []
        self._requests = self._asked = 0
        self._usage = Usage()
        self._complaints: list[Complaint] = []
        self._emulated = False
        self._refusal: Failure | None = None
        self._first_stop = StopReason.END
        self._kept = Kept.UNASKED
        self._tally = Tally()
        self._shown = self._called = False
        """Text has left; a call has left."""

    def outcome(self) -> Outcome:
        """Say what it came to."""
        warnings = (EMULATED,) if self._emulated else ()
        emitted, complaints, why = tuple(self._emitted), tuple(self._complaints), self._refusal
        refused, echoed, tally = (why.kind if why else None), why is not None and why.echoed, self._tally
        outcome = Outcome(emitted, self._plan, self._requests, warnings, refused, complaints, self._kept, echoed=echoed)
        return replace(outcome, native=tally.native, rescued=tally.rescued, empty=tally.empty)

    def run(self) -> Step:
        """Do what the plan says."""
        match self._plan.way:
            case Way.PLAIN:
                yield from self._forward(self._without_calls())
            case Way.OFF:
                yield from self._forward(self._request)
            case Way.NATIVE:
                yield from self._native(self._plan.release)
            case Way.FALLBACK:
                yield from self._native(Release.BUFFERED)
            case Way.FORCE if not self._readings.tools:
                yield from self._forward(self._without_calls())
            case Way.FORCE:
                yield from self._emulate(())

    # ---------------------------------------------------------------- plain

    def _without_calls(self) -> Request:
        """Ask for words only; a history with calls needs its tools beside it, or becomes text."""
        if not has_calls(self._request):
            return without_tools(self._request)
        if self._plan.projects:
            return self._readings.prompt().answer(self._request)
        return replace(self._request, choice=ToolChoice(ChoiceMode.NONE))

    def _forward(self, request: Request) -> Step:
        """Let an answer through as it is; one that we asked for ourselves must not be empty (P6)."""
        self._requests += 1
        passing = Passing(calls=self._plan.way is Way.OFF, needs_words=self._requests > 1)
        yield Open(request)
        batch: list[Event] = []
        while True:
            batch = [event for event in (yield Pull(batch)) or [] if passing.lets(event)]
            last = batch[-1] if batch else None
            if passing.too_long and not isinstance(last, Finished | Failed):
                yield CLOSE
                last = Failed(TOO_LONG)
                batch.append(last)
            if not isinstance(last, Finished | Failed):
                self._note(batch)
                continue
            self._usage = self._usage.plus(last.usage)
            shown = self._shown or any(map(says, batch))
            yield from self._emit((*batch[:-1], passing.last(last, self._usage, shown=shown)))
            return

    # ---------------------------------------------------------------- native

    def _native(self, release: Release) -> Step:
        """Ask with tools, check what comes, and ask again where that helps."""
        sent = self._request
        while True:
            reading, gate = self._readings.native(release), Gate(release, watches=True)
            yield from self._attempt(sent, reading, gate)
            if reading.failure is not None:
                yield from self._native_failed(sent, reading, gate)
                return
            yield from self._doubt(reading, gate)
            trouble = trouble_with(reading, self._request.choice, refused=gate.refused)
            self._tally.count(reading, trouble)
            if self._is_answered_instead(trouble):
                yield from self._forward(self._without_calls())
                return
            again = trouble is not None and self._may_ask_again(trouble)
            if self._plan.way is Way.FALLBACK and not reading.calls and not (again and reading.attempted):
                self._first_stop = StopReason.END if reading.stop in (None, StopReason.CALLS) else reading.stop
                yield from self._emulate(gate.rest() if reading.has_text and not self._must_call else ())
                return
            if trouble is None or not again:
                yield from self._finish(reading, gate, trouble)
                return
            sent = asked_again(sent, reading, trouble, self._level())
            release = self._after(trouble)

    def _native_failed(self, sent: Request, reading: Reading, gate: Gate) -> Step:
        """Find another way around what the upstream cannot do (WIRE-5)."""
        failure = reading.failure
        if failure is None or self._shown or self._called:
            yield from self._fail(failure, gate)
            return
        self._refusal = failure
        if failure.kind is FailureKind.HISTORY_NEEDS_TOOLS and not sent.tools:
            yield from self._again(replace(sent, tools=self._readings.tools))
        elif failure.kind in REFUSES_TOOLS or (failure.kind in REFUSES_HISTORY and has_calls(sent)):
            yield from self._emulate(())
        elif failure.kind is FailureKind.TOOL_CHOICE_UNSUPPORTED and sent.choice != AUTO:
            yield from self._again(replace(sent, choice=AUTO))
        elif failure.kind is FailureKind.STREAMING_TOOLS_UNSUPPORTED and sent.stream:
            yield from self._again(replace(sent, stream=False))
        elif failure.kind in BROKEN_CALLS:
            yield from self._salvage(failure)
        else:
            yield from self._fail(failure)

    def _again(self, request: Request) -> Step:
        """Ask once more in another form; what then fails, fails."""
        reading, gate = self._readings.native(self._plan.release), Gate(self._plan.release, watches=False)
        yield from self._attempt(request, reading, gate)
        if reading.failure is not None:
            yield from self._fail(reading.failure)
        else:
            trouble = trouble_with(reading, self._request.choice, refused=False)
            self._tally.count(reading, trouble)
            yield from self._finish(reading, gate, trouble)

    def _salvage(self, failure: Failure) -> Step:
        """Read the model's own text out of the error; without a call in it, emulate."""
        reading = self._readings.native(Release.BUFFERED)
        seen = reading.feed([TextDelta(failure.salvage), Finished(StopReason.END)])
        if not reading.calls:
            yield from self._emulate(())
            return
        self._tally.count(reading, None)
        gate = Gate(Release.BUFFERED, watches=False)
        gate.take(seen)
        yield from self._finish(reading, gate, None)

    # ---------------------------------------------------------------- emulated

    def _emulate(self, first: Sequence[Event]) -> Step:
        """Teach the tools in the prompt; `first` is an answer in words that came already, and may be returned."""
        self._emulated = True
        prompt = self._readings.prompt()
        if self._plan.strategy is Strategy.DECISION:
            yield from self._decide(prompt, first)
        else:
            yield from self._inline(prompt, first)

    def _inline(self, prompt: Prompt, first: Sequence[Event]) -> Step:
        keeping = self._readings.constraining(prompt)
        sent = prompt.constrained(prompt.inline(self._request), keeping.first())
        release = Release.BUFFERED if first else self._plan.release
        while True:
            reading, gate = self._readings.emulated(prompt), Gate(release, watches=True)
            yield from self._attempt(sent, reading, gate)
            if self._is_refused(keeping, sent, reading):
                sent = replace(sent, constraint=None)
                continue
            if first and not reading.calls:
                yield from self._return(first)
                return
            if reading.failure is not None:
                yield from self._fail(reading.failure, gate)
                return
            if self._plan.intended:
                self._complaints += self._readings.take_intended(reading, gate)
            yield from self._doubt(reading, gate)
            trouble = trouble_with(reading, self._request.choice, refused=gate.refused)
            if self._is_answered_instead(trouble):
                yield from self._forward(prompt.answer(self._request))
                return
            if trouble is None or not self._may_ask_again(trouble):
                yield from self._ask_on(prompt, sent, reading, gate)
                yield from self._finish(reading, gate, trouble)
                return
            words = corrections(trouble, self._request.choice, self._level(), prompt.frame)
            sent = prompt.corrected(sent, reading.quoted, words, keeping.again(trouble))
            release = self._after(trouble)

    def _decide(self, prompt: Prompt, first: Sequence[Event]) -> Step:
        """Ask only which tools to call; without one, ask for the answer (DEC-4)."""
        keeping = self._readings.constraining(prompt)
        sent = prompt.constrained(prompt.decision(self._request), keeping.first())
        while True:
            reading, gate = self._readings.emulated(prompt), Gate(Release.BUFFERED, watches=False)
            yield from self._attempt(sent, reading, gate)
            if self._is_refused(keeping, sent, reading):
                sent = replace(sent, constraint=None)
                continue
            if reading.failure is not None and not first:
                yield from self._fail(reading.failure)
                return
            if not reading.calls and not reading.complaints:
                gate.take(reading.also(self._readings.decided(gate.text)))
                self._complaints += reading.complaints
            yield from self._doubt(reading, gate)
            trouble = trouble_with(reading, self._request.choice, refused=False)
            if reading.calls:
                gate.without_text()
                yield from self._finish(reading, gate, None)
                return
            if trouble is None or trouble.kind in _SAYS_NOTHING or not self._may_ask_again(trouble):
                yield from self._undecided(prompt, first, trouble)
                return
            words = corrections(trouble, self._request.choice, self._level(), prompt.frame)
            sent = prompt.corrected(sent, reading.quoted, words, keeping.again(trouble))
            self._after(trouble)

    def _is_refused(self, keeping: Constraining, sent: Request, reading: Reading) -> bool:
        """Note what became of a constraint; tell whether it is to be asked again without."""
        kept = keeping.judged(sent.constraint, reading)
        self._kept = max(self._kept, kept, key=list(Kept).index)
        return kept is Kept.REFUSED and not (self._shown or self._called)

    def _is_answered_instead(self, trouble: Trouble | None) -> bool:
        """Tell whether the question is to be answered in words, since the calls were set aside (CHK-10)."""
        repeated = trouble is not None and trouble.kind is Kind.REPEATED and self._plan.related
        return trouble is not None and (repeated or trouble.kind is Kind.UNRELATED) and not self._shown

    def _doubt(self, reading: Reading, gate: Gate) -> Step:
        """Ask the model whether the tools that it calls can do what was asked, and set aside what cannot (CHK-14)."""
        if not self._plan.fits or self._must_call or self._shown or self._called:
            return
        for tool in doubted(reading.made, self._readings.tools):
            verdict = self._readings.words()
            yield from self._attempt(judging(self._request, tool), verdict, Gate(Release.BUFFERED, watches=False))
            if says_no(verdict.said):
                gate.without(reading.drop(tool.name))
                self._complaints.append(reading.asides[-1])

    def _ask_on(self, prompt: Prompt, sent: Request, reading: Reading, gate: Gate) -> Step:
        """Ask for the calls that are missing; only what the request says makes a further one (CHK-12)."""
        made, fresh, tools = list(reading.made), list(reading.made), self._readings.tools
        asked, most = asked_last(self._request), self._readings.most
        for _ in range(MOST if self._plan.further else 0):
            left = left_over(asked, made, tools)
            if not left or len(made) >= most:
                return
            sent = prompt.corrected(sent, prompt.written(fresh), (question(asked, left),))
            more = self._readings.emulated(prompt)
            yield from self._attempt(sent, more, Gate(Release.BUFFERED, watches=False))
            if not more.made:
                more.also(self._readings.loose(more.said).calls)
            fresh = fitting(asked, made, more.made, tools)
            if not fresh:
                return
            made += fresh
            reading.calls += len(fresh)
            yield from self._emit(gate.take(list(unfold(Turn(tuple(fresh))))))

    def _undecided(self, prompt: Prompt, first: Sequence[Event], trouble: Trouble | None) -> Step:
        if trouble is not None and self._must_call:
            yield from self._fail(failure_of(trouble))
        elif first:
            yield from self._return(first)
        else:
            yield from self._forward(prompt.answer(self._request))

    def _return(self, first: Sequence[Event]) -> Step:
        """Return the first answer: asking for calls brought none (MODE-7)."""
        yield from self._emit((*first, Finished(self._first_stop, self._usage)))

    # ---------------------------------------------------------------- one attempt

    def _attempt(self, request: Request, reading: Reading, gate: Gate) -> Step:
        """Read one answer, and let out what may leave."""
        self._requests += 1
        yield Open(request)
        seen: Sequence[Event] = ()
        while not reading.over:
            batch = (yield Pull(seen)) or []
            seen = gate.take(reading.feed(batch))
            self._note(seen)
            if reading.enough and not ends(batch):  # enough: stopped, forged, or too long
                yield CLOSE
                cut = gate.take(reading.cut())
                self._note(cut)
                seen = (*seen, *cut)
        if seen:
            yield Emit(seen)
        gate.finish()
        self._usage = self._usage.plus(reading.usage)
        self._complaints += (*reading.complaints, *reading.asides)

    def _finish(self, reading: Reading, gate: Gate, trouble: Trouble | None) -> Step:
        """End the turn: with what there is, or with an error where that is nothing (P6)."""
        repeats = reading.let_repeats_out()
        if repeats and trouble is not None and trouble.kind is Kind.REPEATED:
            trouble = None  # it could not be asked, so it is taken at its word
        if reading.left_open and reading.stop is not StopReason.LENGTH:
            yield from self._fail(failure_of(Trouble(Kind.BAD_CALLS, reading.complaints)), gate)
            return
        if reading.calls and self._shown:
            gate.without_text()  # it was said before, by an attempt whose calls were bad
        nothing = not (reading.calls or reading.has_text or self._shown)
        if trouble is not None and all(complaint.problem is Problem.TRUNCATED for complaint in trouble.complaints):
            reading.stop = StopReason.LENGTH if trouble.complaints else reading.stop  # cut, whatever the upstream says
        if trouble is not None and (self._must_call or (nothing and reading.stop is not StopReason.LENGTH)):
            yield from self._fail(failure_of(trouble))
            return
        last = Finished(stop_of(reading), self._usage, reading.stop_sequence)
        yield from self._emit((*gate.rest(), *repeats, *reading.rejected, last))

    def _fail(self, failure: Failure | None, gate: Gate | None = None) -> Step:
        if failure is not None:
            held = gate.rest() if gate is not None and self._shown else ()
            yield from self._emit((*held, Failed(failure, self._usage)))

    def _emit(self, events: Sequence[Event]) -> Step:
        if events:
            self._note(events)
            yield Emit(events)

    def _note(self, events: Sequence[Event]) -> None:
        """Remember what leaves, now or with the next step."""
        for event in events:
            self._shown = self._shown or says(event)
            self._called = self._called or type(event) is CallStarted
        self._emitted += events

    def _may_ask_again(self, trouble: Trouble) -> bool:
        """Tell whether asking again could help, and contradict nothing that has left (CHK-5)."""
        if self._asked >= self._plan.retries or self._called:
            return False
        return not self._shown or trouble.kind is Kind.BAD_CALLS

    def _after(self, trouble: Trouble) -> Release:
        """Return how the next answer leaves: one in words may stream."""
        if trouble.kind is not Kind.REPEATED:
            return Release.BUFFERED
        self._readings.allow_repeats()
        return self._plan.release

    def _level(self) -> int:
        """Count that it is asked again; say how often it was before."""
        self._asked += 1
        return self._asked - 1
