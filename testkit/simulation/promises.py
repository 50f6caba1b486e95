"""Promises that must hold after every run of the simulation; each breach names its promise (see docs/behaviour.md).

The judge knows what the model meant, what the network did to it, and what the client received. It does not know how the
engine reads.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from testkit.corpus import strings_in, unescaped
from testkit.simulation.client import SimClient
from testkit.simulation.model import Meant
from testkit.simulation.scenario import STOP, Scenario
from testkit.simulation.tools import fits
from testkit.simulation.upstream import Attempt, SimUpstream
from toolspeak.engine.effects import EMULATED, Outcome
from toolspeak.engine.guardrails.guardrail import FEW_TOOLS, MOST_FOLLOW_UPS
from toolspeak.engine.plan import Way
from toolspeak.engine.settings import Release, Strategy
from toolspeak.ir.event import CallStarted, Failed, Finished, ReasoningDelta, StopReason, TextDelta, Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Role
from toolspeak.ir.tool import ChoiceMode
from toolspeak.ir.turn import Turn, fold

MOST_HELD: Final = 300
"""Characters of plain text that may wait while text streams live: a possible refusal is held this long."""
MORE_REQUESTS: Final = 3
"""Requests that may come on top of the retries."""


@dataclass(frozen=True)
class Run:
    """One scenario, and its results. `outcome` is None if the client went away."""

    scenario: Scenario
    upstream: SimUpstream
    client: SimClient
    outcome: Outcome | None
    turn: Turn
    """The fold of what was emitted."""

    @property
    def attempts(self) -> list[Attempt]:
        """All requests."""
        return self.upstream.attempts

    @property
    def succeeded(self) -> bool:
        """Tell whether the turn ended well."""
        return self.outcome is not None and self.turn.failure is None

    @property
    def forwarded(self) -> bool:
        """Tell whether the last answer was passed through as it came."""
        decides = self.scenario.plan.settings.strategy is Strategy.DECISION
        return not self.scenario.checked or (decides and self._is_answer)

    @property
    def _is_answer(self) -> bool:
        last = self.attempts[-1]
        return not last.emulated and not last.request.tools and any(one.emulated for one in self.attempts)


def breaches(run: Run) -> Iterator[str]:
    """Yield the broken promises."""
    for check in ALWAYS:
        yield from check(run)
    if run.outcome is None:
        yield from _left(run)
        return
    for check in FINISHED:
        yield from check(run, run.outcome)


# ---------------------------------------------------------------- always


def _requests(run: Run) -> Iterator[str]:
    yield from run.upstream.faults
    plan, has = run.scenario.plan, run.scenario.has_guardrail
    confirmations = FEW_TOOLS * has("confirm_tool_fit") * (plan.retries + 1)
    most = plan.retries + MORE_REQUESTS + MOST_FOLLOW_UPS * has("request_missing_calls") + confirmations
    if len(run.attempts) > most:
        yield f"CHK-5: {len(run.attempts)} upstream requests, at most {most}"
    for attempt in run.attempts:
        if not attempt.closed and attempt.pulls:
            yield "an answer of the upstream was left open"


def _calls(run: Run) -> Iterator[str]:
    """Check names and arguments of what was delivered (CHK-1, CHK-2, CHK-3)."""
    if not run.scenario.checked:
        return
    tools = {tool.name: tool for tool in run.scenario.tools}
    for call in run.turn.calls:
        if call.name not in tools:
            yield f"CHK-2: {call.name!r} was called, offered are {sorted(tools)}"
        elif run.scenario.plan.release is not Release.EAGER and not _fits(tools[call.name].parameters, call):
            yield f"CHK-3: {call.name} was called with {call.arguments}, which does not fit"


def _choice(run: Run) -> Iterator[str]:
    choice, calls = run.scenario.request.choice, run.turn.calls
    started = [event.name for event in run.client.events if isinstance(event, CallStarted)]
    if run.scenario.plan.way is Way.PLAIN and started:
        yield f"CHK-1: no tools, but {started}"
    if not run.scenario.checked:
        return
    if choice.mode is ChoiceMode.NAMED and (set(started) - {choice.name} or len(started) > 1):
        yield f"CHK-1: only {choice.name} once, but {started}"
    if not choice.parallel and len(started) > 1:
        yield f"CHK-1: not parallel, but {started}"
    if choice.allowed and set(started) - set(choice.allowed):
        yield f"CHK-1: allowed are {choice.allowed}, but {started}"
    if choice.mode in (ChoiceMode.REQUIRED, ChoiceMode.NAMED) and run.succeeded and not calls:
        yield "CHK-1: a call is required, and a success has none"


def _ids(run: Run) -> Iterator[str]:
    ids = Counter(event.id for event in run.client.events if isinstance(event, CallStarted))
    ids.update(part.id for message in run.scenario.request.messages for part in message.parts if isinstance(part, Call))
    started = {event.id for event in run.client.events if isinstance(event, CallStarted)}
    if doubled := [id for id in started if ids[id] > 1]:
        yield f"ids {doubled} occur more than once"


def _meant(run: Run) -> Iterator[str]:
    """Check that each call was meant, whole, and is delivered once (P3, P5)."""
    if not run.scenario.checked:
        return
    left = [meant for attempt in run.attempts for meant in attempt.said.may]
    eager = run.scenario.plan.release is Release.EAGER
    for call in run.turn.calls:
        found = next((meant for meant in left if _same(meant, call) and (eager or not meant.eager)), None)
        if found is not None:
            left.remove(found)
        elif not any(attempt.salvage for attempt in run.attempts):
            said = f"{call.name}({call.arguments}) was delivered and was not meant, raw {call.raw!r}"
            yield f"{_which(run, call)}: {said}"


def _which(run: Run, call: Call) -> str:
    """Name the promise that an unmeant call breaks, as far as it can be determined."""
    kinds = {attempt.said.kind for attempt in run.attempts}
    cut = "truncated call" in kinds or any(not attempt.delivery.whole for attempt in run.attempts)
    planted = any(text in planted for planted in run.scenario.planted for text in strings_in(_value(call)) if text)
    return "P5" if planted or not cut else "P3"


def _grounded(run: Run) -> Iterator[str]:
    """Check that no string of the arguments is invented (P2)."""
    readings: list[str] = []
    for call in run.turn.calls:
        readings = readings or _readings(run)
        for leaf in strings_in(_value(call)):
            if not any(leaf in reading for reading in readings):
                yield f"P2: {leaf!r} in the arguments of {call.name} was never written"


def _text(run: Run) -> Iterator[str]:
    """Check that all visible text was written by the model, in this order (P1)."""
    texts = "".join(piece for attempt in run.attempts for piece in (*attempt.texts, attempt.salvage))
    if run.scenario.plan.settings.answer_tool:
        texts += unescaped(texts)
    if not _is_within(run.turn.text, texts):
        yield f"P1: the text {run.turn.text[:200]!r} is not what the model wrote"
    if not _is_within(run.turn.reasoning, "".join(piece for one in run.attempts for piece in one.words)):
        yield f"P1: the reasoning {run.turn.reasoning[:200]!r} is not what the model wrote"
    for attempt in run.attempts:
        if attempt.emulated and attempt.said.never and attempt.said.never in run.turn.text:
            yield f"INL-7: the forged result {attempt.said.never!r} was shown"
    stops = run.scenario.plan.way is Way.FORCE and run.attempts[-1].emulated and run.scenario.request.sampling.stop
    if stops and STOP in run.turn.text:
        yield "the client's stop sequence is in the text"


def _bounded(run: Run) -> Iterator[str]:
    """Check that steps and what is held back are bounded (P7, CHK-7)."""
    pulls = sum(attempt.pulls for attempt in run.attempts)
    if run.client.emits > 2 * pulls + 2 * len(run.attempts) + 2:
        yield f"P7: {run.client.emits} emits for {pulls} reads"
    only = run.attempts[0]
    live = run.scenario.plan.release is not Release.BUFFERED and run.scenario.plan.way is not Way.FALLBACK
    if len(run.attempts) == 1 and only.delivery.fault == "endless" and only.texts and live and not _decides(run):
        shown = sum(len(event.text) for event in run.client.events if isinstance(event, TextDelta | ReasoningDelta))
        held = sum(map(len, only.words)) - shown
        if held > MOST_HELD:
            yield f"P7: {held} characters of plain text are held, though text streams live"


def _left(run: Run) -> Iterator[str]:
    """Check what must hold when the client goes away."""
    if run.client.late:
        yield f"{run.client.late} emits after the client went away"
    if any(isinstance(event, Finished | Failed) for event in run.client.events[:-1]):
        yield "something was emitted after the end"
    if any(not attempt.closed for attempt in run.attempts):
        yield "the client went away, and the upstream was not closed"


# ---------------------------------------------------------------- of a turn that ended


def _ended_once(run: Run, outcome: Outcome) -> Iterator[str]:
    ends = [n for n, event in enumerate(run.client.events) if isinstance(event, Finished | Failed)]
    if ends != [len(run.client.events) - 1]:
        yield f"P6: the ends are at {ends} of {len(run.client.events)} events"
    if outcome.turn != run.turn:
        yield "the outcome's turn is not the fold of what was emitted"
    if outcome.plan != run.scenario.plan:
        yield "the plan has changed"
    if outcome.requests != len(run.attempts):
        yield f"MODE-9: {outcome.requests} requests are told, {len(run.attempts)} were made"


def _counted(run: Run, outcome: Outcome) -> Iterator[str]:
    """Check the sum of the usage, and the warning (MODE-9)."""
    told = [attempt.last.usage for attempt in run.attempts if isinstance(attempt.last, Finished | Failed)]
    wanted = Usage(sum(usage.input_tokens for usage in told), sum(usage.output_tokens for usage in told))
    if (outcome.turn.usage.input_tokens, outcome.turn.usage.output_tokens) != (
        wanted.input_tokens,
        wanted.output_tokens,
    ):
        yield f"MODE-9: usage {outcome.turn.usage} is not the sum {wanted}"
    emulated = any(attempt.emulated for attempt in run.attempts)
    if (EMULATED in outcome.warnings) != emulated:
        yield f"MODE-9: warnings {outcome.warnings}, emulated {emulated}"
    for attempt in run.attempts:
        if attempt.good and isinstance(attempt.last, Finished):
            counted = attempt.last.usage.input_tokens, attempt.last.usage.output_tokens
            if counted != (11, 7):
                yield f"the upstream said usage (11, 7), the wire read {counted}"


def _not_empty(run: Run, outcome: Outcome) -> Iterator[str]:
    """Check that a success has content, and comes from an answer that ended (P6)."""
    for attempt in run.attempts:
        if not attempt.delivery.told_end and isinstance(attempt.last, Finished):
            yield f"P6: the answer broke ({attempt.delivery.fault}), and was read as whole"
    if not run.succeeded:
        return
    turn = outcome.turn
    cut = turn.stop in (StopReason.LENGTH, StopReason.FILTER) or turn.stop_sequence
    as_it_came = run.forwarded and not (run.attempts[-1].said.calls and run.scenario.plan.way is Way.PLAIN)
    if not (turn.text.strip() or turn.calls or cut or as_it_came):
        yield "P6: an empty success"
    ended_before = bool(turn.stop_sequence)  # the client's own stop text came before the failure
    if isinstance(run.attempts[-1].last, Failed) and not _saved(run) and not ended_before:
        yield f"P6: the upstream failed ({run.attempts[-1].last.failure.message}), and the turn is a success"


def _saved(run: Run) -> bool:
    """Tell whether a success is not from the last answer, but from its error, the first answer, or one with calls."""
    if run.attempts[-1].salvage:
        return True
    plan, before = run.scenario.plan, [attempt.last for attempt in run.attempts[:-1]]
    asks_more = any(map(run.scenario.has_guardrail, ("confirm_tool_fit", "request_missing_calls")))
    if asks_more and run.turn.calls and not all(isinstance(last, Failed) for last in before):
        return True  # the last only asked about calls, or for more of them
    return plan.way is Way.FALLBACK and bool(before) and isinstance(before[0], Finished)


def _delivered(run: Run, outcome: Outcome) -> Iterator[str]:
    """Check that right calls and good answers are delivered."""
    last = run.attempts[-1]
    for attempt in run.attempts if not run.scenario.guarded else ():
        if attempt.good and attempt.said.must and run.scenario.checked and STOP not in attempt.said.text:
            got = [(call.name, _value(call)) for call in outcome.turn.calls]
            wanted = [(meant.name, meant.arguments) for meant in attempt.said.may]
            if (attempt is not last or got != wanted) and not _repeats(run, wanted):
                yield f"CHK-1: the right calls {wanted} came to {got}"
    auto = run.scenario.request.choice.mode in (ChoiceMode.AUTO, ChoiceMode.NONE)
    if last.good and last.said.fine and auto and not run.succeeded:
        yield f"P6: a good answer became an error: {outcome.turn.failure}"


def _repeats(run: Run, wanted: Sequence[tuple[str, JsonObject]]) -> bool:
    """Tell whether all these calls were just answered: then the model is asked about them first (CHK-9)."""
    said = [message for message in run.scenario.request.messages if message.role is not Role.TOOL]
    if not said or run.scenario.request.messages[-1].role is not Role.TOOL:
        return False
    answered = [(part.name, _value(part)) for part in said[-1].parts if isinstance(part, Call)]
    return all(call in answered for call in wanted)


def _prose(run: Run, outcome: Outcome) -> Iterator[str]:
    """Check that the words of the answer reach the client (P1)."""
    text = outcome.turn.text
    # a decision has calls only (DEC-5); words of a retried attempt are not repeated
    calls_only = outcome.turn.calls and (_decides(run) or len(run.attempts) > 1)
    if not run.succeeded or run.scenario.guarded or calls_only:
        return
    if STOP in run.attempts[-1].said.text or outcome.turn.stop_sequence:
        return
    first = [one for one in run.attempts[:-1] if run.scenario.plan.way is Way.FALLBACK and not one.emulated]
    sources = [run.attempts[-1], *first]
    known = all(attempt.good for attempt in sources)
    if known and not any(all(piece in text for piece in attempt.said.prose) for attempt in sources):
        yield f"P1: the words {[attempt.said.prose for attempt in sources]} are not in the text {text!r}"
    only = run.attempts[0]
    if len(run.attempts) == 1 and known and only.said.fine and text.strip() != only.said.text.strip():
        yield f"P1: the answer {only.said.text!r} became {text!r}"


def _on_the_wire(run: Run, outcome: Outcome) -> Iterator[str]:
    """Check that the client's protocol is kept, and has the content of the turn."""
    seen = run.client.seen()
    if seen is None or outcome.turn.failure is not None:
        if bool(seen is None or seen.error) != (outcome.turn.failure is not None):
            yield f"P6: the client sees {seen}, the failure is {outcome.turn.failure}"
        return
    calls = [(call.name, call.arguments) for call in seen.calls]
    wanted = [(call.name, _value(call)) for call in outcome.turn.calls]
    if seen.error or seen.text != outcome.turn.text or calls != wanted:
        yield f"the client sees {seen.text!r}, {calls}, error {seen.error!r}; not {outcome.turn.text!r}, {wanted}"
    if seen.usage is not None and seen.usage != (outcome.turn.usage.input_tokens, outcome.turn.usage.output_tokens):
        yield f"the client sees usage {seen.usage}, not {outcome.turn.usage}"


ALWAYS: Final[tuple[Callable[[Run], Iterator[str]], ...]] = (
    _requests,
    _calls,
    _choice,
    _ids,
    _meant,
    _grounded,
    _text,
    _bounded,
)
FINISHED: Final[tuple[Callable[[Run, Outcome], Iterator[str]], ...]] = (
    _ended_once,
    _counted,
    _not_empty,
    _delivered,
    _prose,
    _on_the_wire,
)


# ---------------------------------------------------------------- of calls


def _decides(run: Run) -> bool:
    return run.scenario.plan.settings.strategy is Strategy.DECISION


def _value(call: Call) -> Json:
    """Return the arguments; None if they are not JSON."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return None


def _fits(schema: JsonObject, call: Call) -> bool:
    value = _value(call)
    return isinstance(value, dict) and fits(schema, value)


def _same(meant: Meant, call: Call) -> bool:
    """Tell whether a call is the one that was meant."""
    return meant.name == call.name and meant.arguments == _value(call)


def _is_within(text: str, written: str) -> bool:
    """Tell whether all characters of a text were written, in this order."""
    if text in written:
        return True
    rest = iter(written)
    return all(char in rest for char in text)


def _written(attempt: Attempt) -> str:
    return "".join((*attempt.texts, *(call.arguments for call in attempt.said.calls), attempt.salvage))


def _readings(run: Run) -> list[str]:
    """Return what the model wrote, as written and with its escapes decoded."""
    raw = "\n".join(map(_written, run.attempts))
    once = unescaped(raw)
    return [raw, once, unescaped(once)]


def turn_of(client: SimClient) -> Turn:
    """Fold what a client got."""
    return fold(client.events)
