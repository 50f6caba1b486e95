r"""One turn as a program: what to send, what to show, when to ask again. No I/O: see `effects.py` for what it yields.

program = take_turn(request, plan, ids)
effect = next(program)                    Open(request with the tools taught in its prompt)
effect = program.send(None)               Pull()
effect = program.send([TextDelta("```tool_call\n{…}\n```"), Finished(END)])
                                          Emit(CallStarted, ArgsDelta, CallEnded)
…                                         Emit(Finished(CALLS)), then StopIteration(Outcome)

There is one loop: ask in the way of a tactic, read the answer, judge it, and look up in `tactics.py` what follows.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from toolspeak.engine.answer import ReadAnswer
from toolspeak.engine.answer_reader import AnswerReader, PassThrough
from toolspeak.engine.constraint import Constraining
from toolspeak.engine.effects import CLOSE, EffectReply, Emit, Open, Pull, Step, TurnEffect, TurnProgram
from toolspeak.engine.guardrails.guardrail import MOST_FOLLOW_UPS, AskModel, Guardrail
from toolspeak.engine.outbox import Outbox
from toolspeak.engine.outcome import EMULATED, Kept, Outcome
from toolspeak.engine.plan import Plan, Release, has_calls
from toolspeak.engine.prompt import Prompt, without_tools
from toolspeak.engine.readers import ReaderFactory
from toolspeak.engine.tactics import REFUSALS, End, Name, Situation, Tactic, first_tactic, tactic_of
from toolspeak.engine.trouble import Kind, Trouble, asked_again, corrections, failure_of, must_call
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import Event, Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import split


def take_turn(request: Request, plan: Plan, ids: Iterator[str], remembered: Iterable[Tool] = ()) -> TurnProgram:
    """Run one turn. `ids` are for emulated calls, `remembered` the conversation's tools if the request has none."""
    turn = _Turn(request, plan, ids, remembered)
    yield from turn.run()
    return turn.outcome()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One request to the upstream; with `given`, an answer that is here already."""

    tactic: Tactic
    request: Request
    release: Release
    given: tuple[Event, ...] = ()


_Read: TypeAlias = Generator[TurnEffect, EffectReply, ReadAnswer]
_Follow: TypeAlias = Generator[TurnEffect, EffectReply, _Attempt | None]


class _Turn:
    """The state of one turn."""

    def __init__(self, request: Request, plan: Plan, ids: Iterator[str], remembered: Iterable[Tool]) -> None:
        self._request, self._plan, self._must_call = request, plan, must_call(request.choice)
        self._readers = ReaderFactory(request, plan, ids, remembered)
        self._out = Outbox()
        self._requests = self._asked_again = 0
        self._usage = Usage()
        self._complaints: list[Complaint] = []
        self._emulated = False
        self._first: tuple[Event, ...] = ()
        self._first_stop = StopReason.END
        """An answer in words that came before emulation, for `End.FIRST`."""
        self._refusal: Failure | None = None
        self._kept = Kept.UNASKED
        self._native = self._rescued = self._empty = 0

    def outcome(self) -> Outcome:
        """Return what the turn came to."""
        refusal = self._refusal
        return Outcome(
            tuple(self._out.sent),
            self._plan,
            self._requests,
            (EMULATED,) if self._emulated else (),
            refusal.kind if refusal else None,
            tuple(self._complaints),
            self._kept,
            native=self._native,
            rescued=self._rescued,
            empty=self._empty,
            echoed=refusal is not None and refusal.echoed,
        )

    def run(self) -> Step:
        """Take one attempt after the other, until one ends the turn."""
        attempt: _Attempt | None = self._begin(first_tactic(self._plan, has_tools=bool(self._readers.tools)))
        while attempt is not None:
            answer = yield from self._read(attempt)
            attempt = yield from self._follow(attempt, answer)

    def _follow(self, attempt: _Attempt, answer: ReadAnswer) -> _Follow:
        """Judge an answer; end the turn, or return the next attempt."""
        tactic = attempt.tactic
        if answer.failure is None and not tactic.is_pass_through:
            answer = yield from self._confirm(answer)
        situation, trouble = self._judge(attempt, answer)
        following = tactic.next(situation)
        if following is End.FINISH:
            yield from self._finish(attempt, answer, trouble)
        elif following is End.FIRST:
            yield from self._return_first()
        elif isinstance(following, End):
            yield from self._fail(answer.failure)
        elif following is tactic.name:
            return self._retry(attempt, answer, trouble)
        else:
            return self._begin(tactic_of(following, self._plan), attempt, answer)
        return None

    # ---------------------------------------------------------------- what an attempt came to

    def _judge(self, attempt: _Attempt, answer: ReadAnswer) -> tuple[Situation, Trouble | None]:
        """Return what an attempt came to, and what is wrong with its answer."""
        tactic = attempt.tactic
        if tactic.is_taught and self._is_constraint_refused(attempt, answer):
            return Situation.CONSTRAINT_REFUSED, None
        if tactic.is_taught and self._first and not answer.call_count:
            return Situation.NOT_BETTER, None
        if answer.failure is not None:
            return self._judge_failure(attempt, answer.failure), None
        if tactic.is_pass_through:
            return Situation.USABLE, None
        trouble = answer.trouble(self._request.choice, refused=self._out.refused)
        self._count(tactic, answer, trouble)
        if trouble is not None and self._is_set_aside(trouble):
            return Situation.SET_ASIDE, trouble
        if trouble is not None and self._may_ask_again(tactic, answer, trouble):
            return Situation.TROUBLE, trouble
        if Situation.NO_CALLS in tactic.after and not answer.call_count and not self._needs_call_of(tactic, trouble):
            return Situation.NO_CALLS, trouble
        return (Situation.USABLE if trouble is None else Situation.NO_RETRY), trouble

    def _needs_call_of(self, tactic: Tactic, trouble: Trouble | None) -> bool:
        """Whether a decision without calls is an error: the tool choice asks for one."""
        return tactic.name is Name.DECISION and self._must_call and trouble is not None

    def _judge_failure(self, attempt: _Attempt, failure: Failure) -> Situation:
        """Return what the upstream refuses, if there is another way around it (WIRE-5)."""
        situation, sent = REFUSALS.get(failure.kind, Situation.FAILED), attempt.request
        if attempt.tactic.name not in (Name.NATIVE, Name.NATIVE_FIRST) or not self._out.is_empty:
            return Situation.FAILED
        self._refusal = failure
        applies = {
            Situation.TOOLS_MISSING: not sent.tools,
            Situation.HISTORY_REFUSED: has_calls(sent),
            Situation.CHOICE_REFUSED: sent.choice != AUTO,
            Situation.STREAM_REFUSED: sent.stream,
        }
        return situation if applies.get(situation, True) else Situation.FAILED

    def _is_constraint_refused(self, attempt: _Attempt, answer: ReadAnswer) -> bool:
        """Record what became of a constraint; return whether to ask again without it (CHK-8)."""
        kept = self._constraining.judged(attempt.request.constraint, answer)
        self._kept = max(self._kept, kept, key=list(Kept).index)
        return kept is Kept.REFUSED and self._out.is_empty

    def _is_set_aside(self, trouble: Trouble) -> bool:
        """Whether the question is to be answered in words, since a guardrail dropped the calls (CHK-10)."""
        repeated = trouble.kind is Kind.REPEATED and any(one.drops_repeats for one in self._plan.guardrails)
        return (repeated or trouble.kind is Kind.UNRELATED) and not self._out.has_text

    def _may_ask_again(self, tactic: Tactic, answer: ReadAnswer, trouble: Trouble) -> bool:
        """Whether asking again could help, and would contradict nothing that has left (CHK-5)."""
        if trouble.kind not in tactic.retries or self._asked_again >= self._plan.retries or self._out.has_calls:
            return False
        if tactic.name is Name.NATIVE_FIRST and not answer.attempted:
            return False  # not one native call was tried: emulation comes next
        return not self._out.has_text or trouble.kind is Kind.BAD_CALLS

    def _count(self, tactic: Tactic, answer: ReadAnswer, trouble: Trouble | None) -> None:
        """Count how calls came from an upstream that was sent the tools, for later requests (CAP-4)."""
        if tactic.is_taught or (tactic.name is Name.SALVAGE and not answer.call_count):
            return
        native = sum(complaint is None for _, complaint in answer.attempted)
        self._native += native
        self._rescued += max(0, answer.call_count - native)
        self._empty += trouble is not None and trouble.kind is Kind.EMPTY

    # ---------------------------------------------------------------- the next attempt

    def _begin(self, tactic: Tactic, before: _Attempt | None = None, answer: ReadAnswer | None = None) -> _Attempt:
        """Return the first attempt of a tactic, after another one if there was one."""
        sent = before.request if before is not None else self._request
        release = tactic.release or self._plan.release
        match tactic.name:
            case Name.PASS | Name.NATIVE | Name.NATIVE_FIRST:
                sent = self._request
            case Name.WORDS:
                sent = self._without_calls()
            case Name.WITH_TOOLS:
                sent = replace(sent, tools=self._readers.tools)
            case Name.WITHOUT_CHOICE:
                sent = replace(sent, choice=AUTO)
            case Name.WITHOUT_STREAM:
                sent = replace(sent, stream=False)
            case Name.SALVAGE:
                text = answer.failure.salvage if answer is not None and answer.failure is not None else ""
                return _Attempt(tactic, sent, release, (TextDelta(text), Finished(StopReason.END)))
            case Name.INLINE | Name.DECISION:
                self._emulated = True
                self._keep_first(before, answer)
                written = self._prompt.inline if tactic.name is Name.INLINE else self._prompt.decision
                sent = self._prompt.constrained(written(self._request), self._constraining.first())
                release = Release.BUFFERED if self._first else release
        return _Attempt(tactic, sent, release)

    def _retry(self, attempt: _Attempt, answer: ReadAnswer, trouble: Trouble | None) -> _Attempt:
        """Return the attempt that says what was wrong, or that leaves out a constraint which was refused."""
        if trouble is None:
            return replace(attempt, request=replace(attempt.request, constraint=None))
        level, sent = self._asked_again, attempt.request
        self._asked_again += 1
        if attempt.tactic.is_taught:
            words = corrections(trouble, self._request.choice, level, self._prompt.frame)
            sent = self._prompt.corrected(sent, answer.quoted, words, self._constraining.again(trouble))
        else:
            sent = asked_again(sent, answer.quoted, answer.attempted, trouble, level)
        release = attempt.tactic.release or Release.BUFFERED
        if trouble.kind is Kind.REPEATED:  # the answer is expected in words, which may stream
            self._readers.allow_repeats()
            release = attempt.tactic.release or self._plan.release
        return _Attempt(attempt.tactic, sent, release)

    def _without_calls(self) -> Request:
        """Ask for text only. A history with calls needs its tools beside it, or becomes text."""
        if self._emulated or (has_calls(self._request) and self._plan.projects):
            return self._prompt.answer(self._request)
        if has_calls(self._request):
            return replace(self._request, choice=ToolChoice(ChoiceMode.NONE))
        return without_tools(self._request)

    def _keep_first(self, before: _Attempt | None, answer: ReadAnswer | None) -> None:
        """Keep an answer in words: it is returned if emulation brings no calls (MODE-7)."""
        if before is None or answer is None or before.tactic.name is not Name.NATIVE_FIRST or answer.failure:
            return
        if answer.has_text and not self._must_call:
            self._first, self._first_stop = self._out.take_held(), answer.stop_reason

    @cached_property
    def _prompt(self) -> Prompt:
        return self._readers.prompt()

    @cached_property
    def _constraining(self) -> Constraining:
        return self._readers.constraining(self._prompt)

    # ---------------------------------------------------------------- reading

    def _read(self, attempt: _Attempt) -> _Read:
        """Send a request and read its answer; events that may leave do so while it streams."""
        reader = self._reader_for(attempt)
        self._out.begin(attempt.release, watches=attempt.tactic.watches)
        if attempt.given:
            yield from self._emit(self._out.take(reader.feed(attempt.given)))
        else:
            yield from self._stream(attempt.request, reader, self._out)
        self._out.end()
        return self._read_to_end(reader)

    def _read_hidden(self, request: Request, reader: AnswerReader) -> _Read:
        """Ask a question of our own; nothing of its answer leaves."""
        yield from self._stream(request, reader, None)
        return self._read_to_end(reader)

    def _stream(self, request: Request, reader: AnswerReader | PassThrough, out: Outbox | None) -> Step:
        self._requests += 1
        yield Open(request)
        leaving: Sequence[Event] = ()
        while not reader.over:
            batch = (yield Pull(leaving)) or []
            events = reader.feed(batch)
            leaving = out.take(events) if out is not None else ()
            if reader.enough and not (batch and isinstance(batch[-1], Finished | Failed)):
                yield CLOSE
                events = reader.cut()
                leaving = (*leaving, *out.take(events)) if out is not None else ()
        yield from self._emit(leaving)

    def _read_to_end(self, reader: AnswerReader | PassThrough) -> ReadAnswer:
        answer = reader.answer()
        self._usage = self._usage.plus(answer.usage)
        self._complaints += (*answer.complaints, *answer.set_aside)
        return answer

    def _reader_for(self, attempt: _Attempt) -> AnswerReader | PassThrough:
        tactic = attempt.tactic
        if tactic.is_pass_through:
            return PassThrough(passes_calls=tactic.name is Name.PASS, needs_text=self._requests > 0)
        if tactic.is_taught:
            return self._readers.emulated(self._prompt, decides=tactic.name is Name.DECISION)
        return self._readers.native(attempt.release)

    def _confirm(self, answer: ReadAnswer) -> _Read:
        """Ask the model what guardrails want to know about its calls; drop those that it gives up itself (CHK-14)."""
        if not self._out.is_empty:
            return answer
        for question in self._in_order_of_tools(answer.questions):
            said = yield from self._read_hidden(question.request, self._readers.words())
            if question.rejects(said.said):
                name = question.complaint.name
                self._out.drop_calls({call.id for call in answer.calls if call.name == name})
                self._complaints.append(question.complaint)
                answer = answer.without_tool(question.complaint)
        return answer

    def _in_order_of_tools(self, questions: Iterable[AskModel]) -> list[AskModel]:
        """Sort questions by the client's tools: in any order of the calls, the same requests are sent."""
        names = [tool.name for tool in self._readers.tools]
        return sorted(questions, key=lambda question: names.index(question.complaint.name or ""))

    def _follow_up(self, guardrail: Guardrail, sent: Request, answer: ReadAnswer) -> _Read:
        """Ask for the calls that a guardrail finds missing; it also says which further calls count (CHK-12)."""
        fresh: Sequence[Call] = answer.calls
        for _ in range(MOST_FOLLOW_UPS):
            follow_up = guardrail.follow_up(answer.calls, self._readers.conversation)
            if follow_up is None or len(answer.calls) >= self._readers.max_calls:
                break
            sent = self._prompt.corrected(sent, self._prompt.written(fresh), (follow_up.question,))
            more = yield from self._read_hidden(sent, self._readers.follow_up(self._prompt))
            fresh = follow_up.accepted(more.calls)
            if not fresh:
                break
            answer = answer.with_calls(fresh)
            yield from self._emit(self._out.take(split(fresh)))
        return answer

    # ---------------------------------------------------------------- the end

    def _finish(self, attempt: _Attempt, answer: ReadAnswer, trouble: Trouble | None) -> Step:
        """End the turn with what there is, or with an error if that is nothing (P6)."""
        tactic = attempt.tactic
        if tactic.is_pass_through:
            yield from self._emit(self._out.send((Finished(answer.stop, self._usage, answer.stop_sequence),)))
            return
        if tactic.name is Name.INLINE:
            for guardrail in self._plan.guardrails:
                answer = yield from self._follow_up(guardrail, attempt.request, answer)
        if answer.repeats and trouble is not None and trouble.kind is Kind.REPEATED:
            trouble = None  # it cannot be asked again, so the repeated call is taken as meant
        repeats, answer = answer.repeats, answer.with_repeats()
        if answer.left_open and answer.stop is not StopReason.LENGTH:
            yield from self._fail(failure_of(Trouble(Kind.BAD_CALLS, answer.complaints)))
            return
        if answer.is_only_calls or (answer.call_count and (self._out.has_text or tactic.name is Name.DECISION)):
            self._out.drop_text()  # it is the calls, or was said before, or is a decision's thinking aloud
        if trouble is not None and trouble.kind is Kind.BAD_CALLS and answer.is_cut:
            answer = replace(answer, stop=StopReason.LENGTH)
        has_text = self._out.has_text or (answer.has_text and not answer.is_only_calls)
        nothing = not (answer.call_count or has_text)
        if trouble is not None and (self._must_call or (nothing and answer.stop is not StopReason.LENGTH)):
            yield from self._fail(failure_of(trouble))
            return
        last = Finished(answer.stop_reason, self._usage, answer.stop_sequence)
        yield from self._emit(self._out.send((*split(repeats), *answer.rejected, last)))

    def _return_first(self) -> Step:
        """End the turn with the answer that came first, and with nothing of the present attempt (MODE-7)."""
        self._out.take_held()
        yield from self._emit(self._out.send((*self._first, Finished(self._first_stop, self._usage))))

    def _fail(self, failure: Failure | None) -> Step:
        """End the turn with an error; text of which some has left is completed first."""
        if not self._out.has_text:
            self._out.take_held()
        if failure is not None:
            yield from self._emit(self._out.send((Failed(failure, self._usage),)))

    def _emit(self, leaving: Sequence[Event]) -> Step:
        if leaving:
            yield Emit(leaving)
