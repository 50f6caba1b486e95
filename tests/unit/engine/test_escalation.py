"""Calls that stay wrong: the engine asks for a stronger model, and uses its answer only if that is better (POOL-6)."""

from collections.abc import Sequence

import pytest

from tests.unit.engine.scene import ASK, FORCE, NATIVE, OSLO, REQUIRED, WRONG, ask
from toolspeak.engine.effects import Emit, Escalate, Escalated, Open, Outcome, Pull
from toolspeak.engine.plan import decide
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.settings import Settings
from toolspeak.engine.turn import take_turn
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.event import CallStarted, Event, Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold, split

KNOWS_TOOLS = ModelFacts(Support.NATIVE)
BAD: list[Event] = [*split((WRONG,)), Finished(StopReason.CALLS, Usage(10, 5))]
GOOD: list[Event] = [*split((OSLO,)), Finished(StopReason.CALLS, Usage(100, 50))]
NO_CALL: list[Event] = [TextDelta("Oslo is in Norway."), Finished(StopReason.END, Usage(10, 5))]
LOST: list[Event] = [Failed(Failure(FailureKind.DISCONNECTED, "gone", 502), Usage(3, 1))]


def turn(
    stronger: list[Event] | None,
    *answers: list[Event],
    request: Request = ASK,
    settings: Settings = NATIVE,
    escalates: bool = True,
) -> tuple[Outcome, list[Event], list[str]]:
    """Run a turn; return its outcome, what the client got, and the reasons to escalate."""
    facts = KNOWS_TOOLS if settings is not FORCE else ModelFacts(Support.NONE, dialect="fenced")
    program = take_turn(request, decide(request, settings, facts), emulated_ids(7), escalates=escalates)
    shown: list[Event] = []
    whys: list[str] = []
    left = list(answers)
    reply: list[Event] | None = None
    current: list[Event] = []
    try:
        while True:
            effect = program.send(reply)
            reply = None
            match effect:
                case Open():
                    current = left.pop(0) if len(left) > 1 else left[0]
                case Pull(events):
                    shown += events
                    reply = current
                case Emit(events):
                    shown += events
                case Escalate(why):
                    whys.append(why)
                    reply = stronger
                case _:
                    pass
    except StopIteration as stop:
        outcome: Outcome = stop.value
    assert list(outcome.events) == shown
    assert sum(isinstance(event, Finished | Failed) for event in shown) == 1
    return outcome, shown, whys


def calls_in(events: Sequence[Event]) -> list[str]:
    return [call.arguments for call in fold(events).calls]


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_stronger_model_is_asked_once_after_the_allowed_questions_pool6(retries: int) -> None:
    outcome, shown, whys = turn(GOOD, BAD, settings=Settings(retries=retries))
    assert outcome.requests == 1 + retries
    assert len(whys) == 1
    assert "the arguments do not fit" in whys[0]
    assert calls_in(shown) == ['{"city": "Oslo"}']
    assert outcome.escalated is Escalated.ANSWERED
    assert outcome.usage == Usage(10 * (1 + retries) + 100, 5 * (1 + retries) + 50)
    assert outcome.taken.why.endswith("escalated (its calls stayed wrong)")


def test_a_call_that_is_right_or_corrected_asks_no_one_pool6() -> None:
    for answers in ((GOOD,), (BAD, GOOD)):
        outcome, shown, whys = turn(GOOD, *answers)
        assert (whys, outcome.escalated) == ([], Escalated.NO)
        assert calls_in(shown) == ['{"city": "Oslo"}']


def test_without_a_stronger_model_nothing_changes_pool6() -> None:
    plain, shown, whys = turn(GOOD, BAD, escalates=False)
    assert (whys, plain.escalated) == ([], Escalated.NO)
    denied, shown_too, whys = turn(None, BAD)
    assert (len(whys), denied.escalated) == (1, Escalated.DENIED)
    assert shown == shown_too
    assert isinstance(shown[-1], Failed)


def test_a_stronger_model_that_fails_changes_nothing_but_the_usage_pool6() -> None:
    plain, _, _ = turn(None, BAD)
    outcome, shown, _ = turn(LOST, BAD)
    assert outcome.escalated is Escalated.FAILED
    last = shown[-1]
    assert isinstance(last, Failed)
    assert last.failure.kind is FailureKind.MODEL_SCHEMA_ERROR
    assert outcome.usage == plain.usage.plus(Usage(3, 1))


def test_text_that_has_left_stays_and_only_calls_follow_it_pool6() -> None:
    wrong: list[Event] = [TextDelta("Let me check the weather there for you. " * 20), *BAD]
    stronger: list[Event] = [TextDelta("I will look."), *GOOD]
    outcome, shown, _ = turn(stronger, wrong, settings=Settings(retries=0))
    assert outcome.escalated is Escalated.ANSWERED
    assert fold(shown).text == "Let me check the weather there for you. " * 20
    assert calls_in(shown) == ['{"city": "Oslo"}']
    outcome, shown, _ = turn(NO_CALL, wrong, settings=Settings(retries=0))  # words would contradict those that left
    assert outcome.escalated is Escalated.FAILED
    assert "Norway" not in fold(shown).text


def test_a_call_that_the_tool_choice_demands_and_that_does_not_come_pool6() -> None:
    outcome, shown, whys = turn(GOOD, NO_CALL, request=ask(choice=REQUIRED))
    assert "it made no call" in whys[0]
    assert outcome.escalated is Escalated.ANSWERED
    assert calls_in(shown) == ['{"city": "Oslo"}']


def test_a_call_that_the_token_limit_cut_is_not_asked_of_another_model_pool6() -> None:
    cut: list[Event] = [
        TextDelta('```tool_call\n{"name": "get_weather", "arguments": {"ci'),
        Finished(StopReason.LENGTH),
    ]
    _, _, whys = turn(GOOD, cut, settings=FORCE)
    assert whys == []


def test_emulated_calls_that_stay_wrong_are_asked_of_a_stronger_model_pool6() -> None:
    wrong: list[Event] = [
        TextDelta('```tool_call\n{"name": "get_weather", "arguments": {"town": 5}}\n```'),
        Finished(StopReason.END),
    ]
    outcome, shown, whys = turn(GOOD, wrong, settings=FORCE)
    assert len(whys) == 1
    assert calls_in(shown) == ['{"city": "Oslo"}']
    assert sum(isinstance(event, CallStarted) for event in shown) == 1
    assert outcome.requests == 3
