r"""Runs one turn as a generator without I/O: it decides what to send, what to show, and when to ask again.

`effects.py` describes what the generator yields, and what the driver sends back.

program = take_turn(request, plan, ids)
effect = next(program)                    Open(request with the tools taught in its prompt)
effect = program.send(None)               Pull()
effect = program.send([TextDelta("```tool_call\n{…}\n```"), Finished(END)])
                                          Emit(CallStarted, ArgsDelta, CallEnded)
…                                         Emit(Finished(CALLS)), then StopIteration(Outcome)

The turn is one loop: it sends a request in the way of the current tactic, reads the answer, judges it, and looks up the
next tactic in `tactics.py`.

One invariant governs everything here: an event that has left for the client is never taken back, and no later event
contradicts it (CHK-5). Therefore every decision that could start a new attempt first asks the outbox what has left.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from toolspeak.engine.answer import ReadAnswer
from toolspeak.engine.answer_reader import AnswerReader, PassThrough
from toolspeak.engine.constraint import Constraining
from toolspeak.engine.effects import (
    CLOSE,
    EMULATED,
    QUESTION,
    EffectReply,
    Emit,
    Escalate,
    Escalated,
    Kept,
    Open,
    Outcome,
    Pull,
    Step,
    TurnEffect,
    TurnProgram,
)
from toolspeak.engine.guardrails.guardrail import MOST_FOLLOW_UPS, AskModel, Guardrail
from toolspeak.engine.guardrails.unrelated_calls import REPEATED
from toolspeak.engine.outbox import Outbox
from toolspeak.engine.plan import Plan, Way, has_calls
from toolspeak.engine.prompt import Prompt, without_tools
from toolspeak.engine.readers import ReaderFactory
from toolspeak.engine.settings import Release
from toolspeak.engine.tactics import REFUSALS, End, Name, Situation, Tactic, first_tactic, tactic_of
from toolspeak.engine.text_lane import TextLane
from toolspeak.engine.trouble import WILL_CALL, Kind, Trouble, asked_again, corrections, describe, failure_of, must_call
from toolspeak.facts.model import Support
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import split


def take_turn(
    request: Request,
    plan: Plan,
    ids: Iterator[str],
    remembered: Iterable[Tool] = (),
    *,
    escalates: bool = False,
) -> TurnProgram:
    """Run one turn, and return its outcome; upstream errors become a `Failed` event and are never raised.

    `ids` yields a new id for each emulated call. `remembered` are the tools of earlier requests of this conversation;
    they are used if the request itself has none (INL-4). With `escalates`, the turn may yield `Escalate`.
    """
    turn = _Turn(request, plan, ids, remembered, escalates=escalates)
    yield from turn.run()
    return turn.outcome()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One request to the upstream. If `given` is set, nothing is sent, and these events are read as the answer."""

    tactic: Tactic
    request: Request
    release: Release
    given: tuple[Event, ...] = ()
    why: str = ""
    """Why it follows another attempt, for traces."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A request of a guardrail, whose answer the client never sees."""

    request: Request
    why: str


_MOST_DROPPED, _LONGEST_NAME = 4, 64
"""Dropped calls that a plan names, and characters of a name in it: it must fit into a header."""
_OF_CALLS = (CallStarted, ArgsDelta, CallEnded, CallRejected)
_REPEATED_CALL = Complaint(Problem.UNRELATED, None, REPEATED)
_Read: TypeAlias = Generator[TurnEffect, EffectReply, ReadAnswer]
_Follow: TypeAlias = Generator[TurnEffect, EffectReply, _Attempt | None]


class _Turn:
    """The state of one turn, over all its attempts."""

    def __init__(
        self, request: Request, plan: Plan, ids: Iterator[str], remembered: Iterable[Tool], *, escalates: bool
    ) -> None:
        self._escalates, self._escalated = escalates, Escalated.NO
        self._request, self._plan, self._must_call = request, plan, must_call(request.choice)
        self._left: list[str] = []
        """The tactics that did not bring the answer, each with its situation."""
        self._dropped: dict[str, None] = {}
        """The calls that guardrails have taken away, each with the guardrail and its reason (CHK-16)."""
        self._taken: Plan | None = None
        self._made_prompt: Prompt | None = None
        self._made_constraining: Constraining | None = None
        self._readers = ReaderFactory(request, plan, ids, remembered)
        self._out = Outbox()
        self._requests = self._asked_again = 0
        self._usage = Usage()
        self._complaints: list[Complaint] = []
        self._rejected: list[CallRejected] = []
        self._emulated = False
        # The native answer in words that came before emulation, and its stop reason. `End.FIRST` returns it: a client
        # in mode `fallback` must not lose a good answer because emulation found no call to make.
        self._first: tuple[Event, ...] = ()
        self._first_stop = StopReason.END
        # The latest failure that led to another tactic. It is part of the outcome, because the gateway learns from it
        # what the upstream supports (CAP-4).
        self._refusal: Failure | None = None
        self._kept = Kept.UNASKED
        self._native = self._rescued = self._empty = 0
        self._written = ""
        self._denied = self._unseen = self._narrated = False

    def outcome(self) -> Outcome:
        """Return the outcome; call it after `run` has ended."""
        refusal = self._refusal
        return Outcome(
            self._out.sent,
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
            written=self._written,
            rejected=tuple(self._rejected),
            denied=self._denied,
            unseen=self._unseen,
            escalated=self._escalated,
            replanned=self._taken,
        )

    def run(self) -> Step:
        """Make attempts until one of them ends the turn.

        The loop is finite. A tactic follows itself only for a retry, which `Plan.retries` bounds, or after its
        constraint or its system message was refused, which is left out then. All other arrows of the table lead to a
        later tactic.
        """
        attempt: _Attempt | None = self._begin(first_tactic(self._plan, has_tools=bool(self._readers.tools)))
        while attempt is not None:
            answer = yield from self._read(attempt)
            attempt = yield from self._follow(attempt, answer)

    def _follow(self, attempt: _Attempt, answer: ReadAnswer) -> _Follow:
        """Judge an answer. Return the next attempt, or end the turn and return None."""
        tactic = attempt.tactic
        if answer.failure is None and not tactic.is_pass_through:
            answer = yield from self._confirm(answer)
        situation, trouble = self._judge(attempt, answer)
        following = tactic.next(situation)
        if following is End.FINISH:
            if trouble is None or not (yield from self._escalate(answer, trouble)):
                yield from self._finish(attempt, answer, trouble)
        elif following is End.FIRST:
            if not self._narrated:
                self._replan(attempt, situation, following)
            yield from self._return_first()
        elif isinstance(following, End):
            yield from self._fail(answer.failure)
        elif situation is Situation.SYSTEM_REFUSED:
            self._made_prompt = self._prompt.without_system()
            return replace(self._begin(tactic, attempt, answer), why=situation)
        elif following is tactic.name:
            # An announcement stays shown, and the call follows it. A copied definition is dropped if it is still held.
            if trouble is not None and trouble.kind is Kind.NARRATED and not (trouble.tool and self._out.is_empty):
                self._narrated, self._first_stop = True, answer.stop_reason
                yield from self._emit(self._out.send(()))
            return replace(self._retry(attempt, answer, trouble), why=describe(trouble) if trouble else situation)
        else:
            tactic = tactic_of(following, self._plan)
            self._replan(attempt, situation, tactic.name)
            return replace(self._begin(tactic, attempt, answer), why=describe(trouble) if trouble else situation)
        return None

    def _replan(self, attempt: _Attempt, situation: Situation, following: Name | End) -> None:
        """Note that the turn goes on in another way, for logs and headers; the plan itself stays as it was decided."""
        self._left.append(f"{attempt.tactic.name} ({situation})")
        is_emulated = self._emulated or following in (Name.INLINE, Name.DECISION)
        way = Way.FORCE if is_emulated and following is not End.FIRST else self._plan.way
        tactics = ", then ".join((*self._left, following))
        self._taken = replace(self._plan, way=way, why="; ".join((tactics, *self._dropped)))

    def _note_dropped(self, complaints: Iterable[Complaint]) -> None:
        """Say in the plan that a guardrail took calls away: without that, the model would seem to have made none."""
        new = dict.fromkeys(_dropped_line(one) for one in complaints if one.problem is Problem.UNRELATED)
        room = _MOST_DROPPED - len(self._dropped)
        fresh = [line for line in new if line not in self._dropped][:room]
        if fresh:
            self._dropped |= dict.fromkeys(fresh)
            taken = self._taken or self._plan
            self._taken = replace(taken, why="; ".join((taken.why, *fresh)))

    # ---------------------------------------------------------------- judging an attempt

    def _judge(self, attempt: _Attempt, answer: ReadAnswer) -> tuple[Situation, Trouble | None]:
        """Return the situation after an attempt, and the trouble with its answer if there is one.

        The order of the checks matters: each one assumes that those before it do not apply.
        """
        tactic = attempt.tactic
        # Before the check for failures: a server that rejects a constraint fails like any other request, and only the
        # constraint that was sent distinguishes the two.
        if tactic.is_taught and self._is_constraint_refused(attempt, answer):
            return Situation.CONSTRAINT_REFUSED, None
        if self._is_no_better(tactic, answer):
            return Situation.NOT_BETTER, None
        if answer.failure is not None:
            return self._judge_failure(attempt, answer.failure), None
        if tactic.is_pass_through:
            return Situation.USABLE, None
        trouble = self._trouble_of(tactic, answer)
        self._count(tactic, answer, trouble)
        if trouble is not None and self._is_set_aside(trouble):
            return self._set_aside(trouble)
        if trouble is not None and self._is_denied(attempt, trouble):
            self._denied, self._asked_again = True, self._asked_again + 1
            return Situation.TOOLS_DENIED, trouble
        if trouble is not None and self._may_ask_again(tactic, answer, trouble):
            return Situation.TROUBLE, trouble
        if trouble is not None and self._first and not answer.has_text:
            return Situation.NOT_BETTER, trouble
        if Situation.NO_CALLS in tactic.after and not answer.call_count and not self._needs_call_of(tactic, trouble):
            return Situation.NO_CALLS, trouble
        return (Situation.USABLE if trouble is None else Situation.NO_RETRY), trouble

    def _set_aside(self, trouble: Trouble) -> tuple[Situation, Trouble]:
        """Return the situation after all calls were dropped."""
        # The reader holds repeated calls without knowing of guardrails, so the complaint is made here.
        if trouble.kind is Kind.REPEATED:
            self._complaints.append(_REPEATED_CALL)
            self._note_dropped((_REPEATED_CALL,))
        return Situation.SET_ASIDE, trouble

    def _needs_call_of(self, tactic: Tactic, trouble: Trouble | None) -> bool:
        """Whether a decision without calls is an error, because the tool choice demands a call."""
        return tactic.name is Name.DECISION and self._must_call and trouble is not None

    def _judge_failure(self, attempt: _Attempt, failure: Failure) -> Situation:
        """Return what the upstream refuses if another tactic can avoid it, else FAILED (WIRE-5).

        Status codes carry no information: "no tools" arrives as 400 (Ollama, vLLM, Bedrock), 404 (OpenRouter), 405
        (DeepInfra), 500 (llama.cpp), or inside a stream with status 200 (Groq). So the wires classify the error text,
        and the engine decides by that class.
        """
        if attempt.tactic.is_taught and failure.kind is FailureKind.ROLE_ORDER and self._prompt.has_system:
            return Situation.SYSTEM_REFUSED if self._out.is_empty else Situation.FAILED
        situation, sent = REFUSALS.get(failure.kind, Situation.FAILED), attempt.request
        if attempt.tactic.name not in (Name.NATIVE, Name.NATIVE_FIRST) or not self._out.is_empty:
            return Situation.FAILED
        self._refusal = failure
        # A refusal counts only if the request has the thing that is refused. Without this check a misclassified error
        # would lead to a second request that is equal to the first one.
        applies = {
            Situation.TOOLS_MISSING: not sent.tools,
            Situation.HISTORY_REFUSED: has_calls(sent),
            Situation.CHOICE_REFUSED: sent.choice != AUTO,
            Situation.STREAM_REFUSED: sent.stream,
        }
        return situation if applies.get(situation, True) else Situation.FAILED

    def _is_constraint_refused(self, attempt: _Attempt, answer: ReadAnswer) -> bool:
        """Record what became of a constraint. Return whether to send the request again without it (CHK-8)."""
        kept = self._constraining.judged(attempt.request.constraint, answer)
        # `Kept` is ordered from the best result to the worst, and the outcome reports the worst one of the turn.
        self._kept = max(self._kept, kept, key=list(Kept).index)
        return kept is Kept.REFUSED and self._out.is_empty

    def _is_set_aside(self, trouble: Trouble) -> bool:
        """Whether the model must answer in words, because a guardrail dropped all its calls (CHK-10)."""
        repeated = trouble.kind is Kind.REPEATED and any(one.drops_repeats for one in self._plan.guardrails)
        return (repeated or trouble.kind is Kind.UNRELATED) and not self._out.has_text

    def _is_denied(self, attempt: _Attempt, trouble: Trouble) -> bool:
        """Whether the tools must be taught: the model says that it has none, and the upstream may have dropped them."""
        may_drop = self._plan.facts.tools is Support.UNKNOWN and bool(attempt.request.tools)
        is_refusal = attempt.tactic.name is Name.NATIVE and trouble.kind is Kind.REFUSED
        return is_refusal and may_drop and self._out.is_empty and self._asked_again < self._plan.retries

    def _is_no_better(self, tactic: Tactic, answer: ReadAnswer) -> bool:
        """Whether the turn ends with the answer before this one."""
        if answer.call_count:
            return False
        # The announcement was shown: words of the follow-up would repeat it, and its error would spoil it (CHK-15).
        if self._narrated:
            return not answer.rejected
        # Also for failures: a native answer in words is better than the error of a hidden second request. But any
        # answer is better than "I have no tools".
        return tactic.is_taught and bool(self._first) and (answer.failure is not None or not self._denied)

    def _trouble_of(self, tactic: Tactic, answer: ReadAnswer) -> Trouble | None:
        """Return the trouble with an answer, also if it means a call and holds none (CHK-15)."""
        trouble = answer.trouble(self._request.choice, refused=self._out.refused)
        is_cut = answer.stop is StopReason.LENGTH
        is_last_word = (is_cut or answer.stop is StopReason.END) and not answer.call_count and not self._out.has_calls
        if trouble or not is_last_word or tactic.name not in (Name.NATIVE, Name.INLINE):
            return trouble
        return self._readers.narrated(answer.visible, is_cut=is_cut)

    def _may_ask_again(self, tactic: Tactic, answer: ReadAnswer, trouble: Trouble) -> bool:
        """Whether asking again could help, and would contradict nothing that has left (CHK-5)."""
        if trouble.kind not in tactic.retries or self._asked_again >= self._plan.retries or self._out.has_calls:
            return False
        if tactic.name is Name.NATIVE_FIRST and not answer.attempted:
            return False  # the model tried no native call, so the next step is emulation and not a retry
        # "Let me check." followed by a broken call: the text may stay, since the corrected call continues it. After
        # any other trouble the text itself is the answer, and a second answer would contradict it.
        return not self._out.has_text or trouble.kind in (Kind.BAD_CALLS, Kind.NARRATED)

    def _count(self, tactic: Tactic, answer: ReadAnswer, trouble: Trouble | None) -> None:
        """Count native calls, rescued calls and empty answers of an upstream that was sent the tools (CAP-4).

        Later requests are planned by these counts. Answers to a taught prompt say nothing about the upstream's own tool
        calling, but something about the form that the model prefers (INL-9).
        """
        if tactic.is_taught:
            self._written = self._readers.form_of(answer.calls) or self._written
        if tactic.is_taught or (tactic.name is Name.SALVAGE and not answer.call_count):
            return
        native = sum(complaint is None for _, complaint in answer.attempted)
        self._native += native
        self._rescued += max(0, answer.call_count - native)
        self._empty += trouble is not None and trouble.kind is Kind.EMPTY
        self._unseen = self._unseen or self._readers.drops_tools(answer.usage)

    # ---------------------------------------------------------------- the next attempt

    def _begin(self, tactic: Tactic, before: _Attempt | None = None, answer: ReadAnswer | None = None) -> _Attempt:
        """Return the first attempt of a tactic; `before` and `answer` are the attempt that led to it, if any."""
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
                # Groq (`failed_generation`), llama.cpp ("Failed to parse input at pos N: …") and Gemini
                # (`finishMessage`) quote the model's text in the error. Reading it costs no second generation.
                text = answer.failure.salvage if answer is not None and answer.failure is not None else ""
                return _Attempt(tactic, sent, release, (TextDelta(text), Finished(StopReason.END)))
            case Name.INLINE | Name.DECISION:
                self._emulated = True
                self._keep_first(before, answer)
                written = self._prompt.inline if tactic.name is Name.INLINE else self._prompt.decision
                sent = self._prompt.constrained(written(self._request), self._constraining.first())
                # With an earlier answer in hand nothing may stream: if no call comes, that answer is returned, and
                # text of this attempt would contradict it.
                release = Release.BUFFERED if self._first else release
        return _Attempt(tactic, sent, release)

    def _retry(self, attempt: _Attempt, answer: ReadAnswer, trouble: Trouble | None) -> _Attempt:
        """Return the next attempt of the same tactic.

        With a trouble, the request says what was wrong. Without one, it leaves out the constraint that was refused.
        """
        if trouble is None:
            return replace(attempt, request=replace(attempt.request, constraint=None))
        level, sent = self._asked_again, attempt.request
        self._asked_again += 1
        # A model that reads the definition it has copied copies it once more.
        quoted = WILL_CALL.format(trouble.tool) if trouble.tool else answer.quoted
        if attempt.tactic.is_taught:
            words = corrections(trouble, self._request.choice, level, self._prompt.frame)
            sent = self._prompt.corrected(sent, quoted, words, self._constraining.again(trouble))
        else:
            sent = asked_again(sent, quoted, answer.attempted, trouble, level)
        # A retry is buffered: it must bring a call, and text that streams now could not be taken back for the next one.
        release = attempt.tactic.release or Release.BUFFERED
        if trouble.kind is Kind.REPEATED:  # here the expected answer is text, which may stream
            self._readers.allow_repeats()
            release = attempt.tactic.release or self._plan.release
        return _Attempt(attempt.tactic, sent, release)

    def _without_calls(self) -> Request:
        """Return a request for text only.

        A history with calls must not be sent without tools: Bedrock, for one, answers that "the toolConfig field must
        be defined when using toolUse and toolResult content blocks". So either the calls are written as text, or the
        tools stay in the request and the tool choice forbids calls.
        """
        if self._emulated or (has_calls(self._request) and self._plan.projects):
            return self._prompt.answer(self._request)
        if has_calls(self._request):
            return replace(self._request, choice=ToolChoice(ChoiceMode.NONE))
        return without_tools(self._request)

    def _keep_first(self, before: _Attempt | None, answer: ReadAnswer | None) -> None:
        """Keep a native answer in words; the turn returns it if emulation brings no calls (MODE-7)."""
        if before is None or answer is None or answer.failure:
            return
        if before.tactic.name is not Name.NATIVE_FIRST and not self._denied:
            return
        if answer.has_text and not self._must_call:
            self._first, self._first_stop = self._out.take_held(), answer.stop_reason

    # Both are made when they are first needed: a native turn that works needs no contract and no grammar.

    # `cached_property` would make 1.6 KB for each emulated turn: an object whose `__dict__` is touched shares no keys.

    @property
    def _prompt(self) -> Prompt:
        if self._made_prompt is None:
            self._made_prompt = self._readers.prompt()
        return self._made_prompt

    @property
    def _constraining(self) -> Constraining:
        if self._made_constraining is None:
            self._made_constraining = self._readers.constraining(self._prompt)
        return self._made_constraining

    # ---------------------------------------------------------------- reading

    def _read(self, attempt: _Attempt) -> _Read:
        """Send a request and read its answer; events that may leave are emitted while it streams."""
        reader = self._reader_for(attempt)
        self._out.begin(attempt.release, watches=attempt.tactic.watches)
        if attempt.given:
            yield from self._emit(self._out.take(reader.feed(attempt.given)))
        else:
            yield from self._answered(attempt, reader, self._out)
        self._out.end()
        return self._read_to_end(reader)

    def _read_hidden(self, request: Request, reader: AnswerReader, why: str) -> _Read:
        """Send a request that the client does not know of, and read the answer; nothing of it is emitted."""
        yield from self._answered(_Question(request, why), reader, None)
        return self._read_to_end(reader)

    def _answered(self, sent: "_Attempt | _Question", reader: AnswerReader | PassThrough, out: Outbox | None) -> Step:
        """Send a request, and feed its answer to the reader until that is over."""
        self._requests += 1
        tactic = sent.tactic.name if isinstance(sent, _Attempt) else QUESTION
        yield Open(sent.request, self._taken, tactic, sent.why)
        try:
            yield from self._stream(reader, out)
        except GeneratorExit:  # the client is gone
            reader.release()
            raise

    def _stream(self, reader: AnswerReader | PassThrough, out: Outbox | None) -> Step:
        """Feed the answer that is open to the reader until that is over."""
        leaving: Sequence[Event] = ()
        lane = TextLane(reader, out) if out is not None else None
        while not reader.over:
            # Events leave with the next Pull and not in an Emit of their own: one step of the generator for each chunk
            # instead of two, which halved the engine's cost of a streamed chunk.
            batch = (yield Pull(leaving, lane)) or []
            if lane is not None:
                if lane.takes(batch):
                    leaving = batch
                    continue
                lane.settle()
            events = reader.feed(batch)
            leaving = out.take(events) if out is not None else ()
            # The model forges a tool result, repeats itself for ever, or is past the limit. The upstream is closed, so
            # no tokens are paid for that would be thrown away. If its last event is here already, there is nothing to
            # close, and that event has the usage.
            if reader.enough and not (batch and isinstance(batch[-1], Finished | Failed)):
                yield CLOSE
                events = reader.cut()
                leaving = (*leaving, *out.take(events)) if out is not None else ()
            if lane is not None:
                lane.reopen()
        yield from self._emit(leaving)

    def _read_to_end(self, reader: AnswerReader | PassThrough) -> ReadAnswer:
        """Return the reader's answer; its usage and complaints count for the turn, whatever becomes of it."""
        answer = reader.answer()
        self._usage = self._usage.plus(answer.usage)
        self._complaints += (*answer.complaints, *answer.set_aside)
        self._note_dropped(answer.set_aside)
        self._rejected += answer.rejected
        return answer

    def _reader_for(self, attempt: _Attempt) -> AnswerReader | PassThrough:
        tactic = attempt.tactic
        if tactic.is_pass_through:
            # An empty answer is an error only after another attempt: then it was asked for in place of calls, and would
            # be an empty success (P6). A first request without tools passes as the upstream answers it.
            return PassThrough(passes_calls=tactic.name is Name.PASS, needs_text=self._requests > 0)
        # A client that waits for the whole answer sees nothing grow, so that its calls keep all checks.
        streams = attempt.release is Release.EAGER and self._request.stream
        if tactic.is_taught:
            decides = tactic.name is Name.DECISION
            return self._readers.emulated(self._prompt, decides=decides, streams_calls=streams)
        return self._readers.native(streams_calls=streams)

    def _confirm(self, answer: ReadAnswer) -> _Read:
        """Ask the model the questions of guardrails about its calls; drop the calls that it takes back (CHK-14)."""
        if not self._out.is_empty:
            return answer  # a call or text has left, and dropping calls would contradict it
        for question in self._in_order_of_tools(answer.questions):
            why = f"a guardrail asks about the call of {question.complaint.name}"
            said = yield from self._read_hidden(question.request, self._readers.words(), why)
            if question.rejects(said.said, said.first_token):
                name = question.complaint.name
                self._out.drop_calls({call.id for call in answer.calls if call.name == name})
                self._complaints.append(question.complaint)
                self._note_dropped((question.complaint,))
                answer = answer.without_tool(question.complaint)
        return answer

    def _in_order_of_tools(self, questions: Iterable[AskModel]) -> list[AskModel]:
        """Sort questions by the client's order of tools: the requests must not depend on the order of the calls."""
        names = [tool.name for tool in self._readers.tools]
        return sorted(questions, key=lambda question: names.index(question.complaint.name or ""))

    def _follow_up(self, guardrail: Guardrail, sent: Request, answer: ReadAnswer) -> _Read:
        """Ask for the calls that a guardrail finds missing, and add those of the answers that it accepts (CHK-12)."""
        first, fresh = answer, answer.calls
        for _ in range(MOST_FOLLOW_UPS):
            follow_up = guardrail.follow_up(answer.calls, self._readers.conversation)
            if follow_up is None or len(answer.calls) >= self._readers.max_calls:
                break
            sent = self._prompt.corrected(sent, self._prompt.written(fresh), (follow_up.question,))
            why = "a guardrail asks for the calls that are missing"
            more = yield from self._read_hidden(sent, self._readers.follow_up(self._prompt), why)
            fresh = tuple(follow_up.accepted(more.calls))
            if not fresh:
                break
            answer = answer.with_calls(fresh)
        added = answer.calls[len(first.calls) :]
        kept = guardrail.settle(first.calls, added, self._readers.conversation) if added else added
        yield from self._emit(self._out.take(split(kept)))
        return first.with_calls(kept)

    # ---------------------------------------------------------------- the end

    def _finish(self, attempt: _Attempt, answer: ReadAnswer, trouble: Trouble | None) -> Step:
        """End the turn with the answer, or with an error if nothing in it can be used (P6).

        LiteLLM #33222 is the case to avoid: 66 of 1,000 requests ended with status 200, `stop` and no content.
        """
        tactic = attempt.tactic
        if tactic.is_pass_through:
            yield from self._emit(self._out.send((Finished(answer.stop, self._usage, answer.stop_sequence),)))
            return
        if tactic.name is Name.INLINE:
            for guardrail in self._plan.guardrails:
                answer = yield from self._follow_up(guardrail, attempt.request, answer)
        if answer.repeats and trouble is not None and trouble.kind is Kind.REPEATED:
            trouble = None  # the model insists, or no retry is left: the repeated call counts as meant
        repeats, answer = answer.repeats, answer.with_repeats()
        # A call that began to stream and did not become complete. Only the stop reason LENGTH tells the client so; with
        # any other it would run half of a command (P3).
        if answer.left_open and answer.stop is not StopReason.LENGTH:
            yield from self._fail(failure_of(Trouble(Kind.BAD_CALLS, answer.complaints)))
            return
        if answer.call_count and (self._out.has_text or tactic.name is Name.DECISION):
            # The held text repeats text that left in an earlier attempt, or is what a decision says beside its JSON.
            # DEC-5 allows calls only.
            self._out.drop_text()
        # Some providers report `stop` for an answer that their token limit cut, so the complaints decide.
        if trouble is not None and trouble.kind is Kind.BAD_CALLS and answer.is_cut:
            answer = replace(answer, stop=StopReason.LENGTH)
        has_text = self._out.has_text or answer.has_text
        nothing = not (answer.call_count or has_text)
        if trouble is not None and (self._must_call or (nothing and answer.stop is not StopReason.LENGTH)):
            yield from self._fail(failure_of(trouble))
            return
        last = Finished(answer.stop_reason, self._usage, answer.stop_sequence)
        yield from self._emit(self._out.send((*split(repeats), *answer.rejected, last)))

    def _may_escalate(self, answer: ReadAnswer, trouble: Trouble) -> bool:
        """Whether a stronger model may answer instead: the calls stay wrong, and nothing has left that forbids it.

        A call that the client's own token limit cut is not wrong: a stronger model would be cut as well.
        """
        if not self._escalates or self._out.has_calls or answer.is_cut:
            return False
        # Text before a wrong call may stay, as for a retry: the right call continues it.
        return trouble.kind is Kind.BAD_CALLS or (trouble.kind is Kind.NO_CALL and not self._out.has_text)

    def _escalate(self, answer: ReadAnswer, trouble: Trouble) -> Generator[TurnEffect, EffectReply, bool]:
        """Ask a stronger model if that is allowed, and end the turn with its answer if that is better (POOL-6).

        Return whether the turn has ended.
        """
        if not self._may_escalate(answer, trouble):
            return False
        events = (yield Escalate(describe(trouble))) or []
        last = events[-1] if events else None
        self._escalated = Escalated.FAILED if events else Escalated.DENIED
        if isinstance(last, Finished | Failed):
            self._usage = self._usage.plus(last.usage)
        shown = [event for event in events[:-1] if not self._out.has_text or isinstance(event, _OF_CALLS)]
        if not isinstance(last, Finished) or not shown:
            return False
        self._escalated = Escalated.ANSWERED
        taken = self._taken or self._plan
        self._taken = replace(taken, why=f"{taken.why}; escalated (its calls stayed wrong)")
        self._out.take_held()
        yield from self._emit(self._out.send((*shown, Finished(last.stop, self._usage, last.stop_sequence))))
        return True

    def _return_first(self) -> Step:
        """End the turn with the answer that came first; nothing of the present attempt is emitted (MODE-7)."""
        self._out.take_held()
        yield from self._emit(self._out.send((*self._first, Finished(self._first_stop, self._usage))))

    def _fail(self, failure: Failure | None) -> Step:
        """End the turn with an error. If part of a text has left, the rest of it leaves before the error."""
        if not self._out.has_text:
            self._out.take_held()
        if failure is not None:
            yield from self._emit(self._out.send((Failed(failure, self._usage),)))

    def _emit(self, leaving: Sequence[Event]) -> Step:
        if leaving:
            yield Emit(leaving)


def _dropped_line(complaint: Complaint) -> str:
    """Describe a dropped call. The client chose the name of the tool, and it may have line breaks: it is escaped."""
    name = ascii(complaint.name[:_LONGEST_NAME])[1:-1] if complaint.name else "a repeated call"
    return f"{name} dropped by {complaint.detail}"
