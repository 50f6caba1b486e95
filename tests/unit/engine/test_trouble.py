"""What can be wrong with an answer as a whole, what the model is told, and what the client (CHK-4, CHK-5, P6)."""

import pytest

from tests.unit.engine.scene import FORCE, LONG, NAMED, NATIVE, REQUIRED, TOOLS, program
from toolspeak.engine.answer import ReadAnswer
from toolspeak.engine.answer_reader import AnswerReader, ReaderParts, StopText
from toolspeak.engine.effects import Close, Emit, Pull, TurnEffect
from toolspeak.engine.guard import Echo
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.trouble import (
    SAYS,
    STRONGER,
    Kind,
    Trouble,
    call_needed,
    corrections,
    describe,
    error_result,
    failure_of,
)
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import Event, Failed, Finished, ReasoningDelta, StopReason, TextDelta
from toolspeak.ir.message import Result, Text
from toolspeak.ir.tool import AUTO, ToolChoice
from toolspeak.testing import called
from toolspeak.toolset.check import CallChecker
from toolspeak.toolset.toolset import ToolSet

GOOD = called("get_weather", '{"city": "Oslo"}')
BAD = called("get_weather", "{}")
TROUBLES = [
    Trouble(Kind.BAD_CALLS, (Complaint(Problem.SCHEMA_ERROR, "get_weather", "/city is missing"),)),
    Trouble(Kind.NO_CALL),
    Trouble(Kind.REFUSED),
    Trouble(Kind.EMPTY),
]


def read(*events: Event, stop: StopReason = StopReason.END) -> ReadAnswer:
    tools = ToolSet.of(TOOLS)
    checker = CallChecker(tools, AUTO, iter(()))
    reader = AnswerReader(ReaderParts(None, tools, checker, StopText(()), Echo(()), 128))
    reader.feed([*events, Finished(stop)])
    return reader.answer()


def kind(answer: ReadAnswer, choice: ToolChoice = AUTO, *, refused: bool = False) -> Kind | None:
    trouble = answer.trouble(choice, refused=refused)
    return trouble.kind if trouble is not None else None


def plain(result: Result) -> str:
    """Frame a result so that everything of it can be seen."""
    return (
        f"[{result.name}|{result.is_error}|{''.join(part.text for part in result.content if isinstance(part, Text))}]"
    )


def test_an_answer_with_text_stands_chk4() -> None:
    assert kind(read(TextDelta("Cold."))) is None


@pytest.mark.parametrize("choice", [AUTO, REQUIRED, NAMED])
def test_an_answer_with_a_good_call_stands_chk1(choice: ToolChoice) -> None:
    assert kind(read(*GOOD), choice) is None
    assert kind(read(*GOOD, *called("shell", "{}", "b")), choice) is None


def test_bad_calls_are_a_trouble_with_all_their_complaints_chk4() -> None:
    trouble = read(TextDelta("Hm."), *BAD, *called("shell", "{}", "b")).trouble(AUTO, refused=False)
    assert trouble is not None
    assert trouble.kind is Kind.BAD_CALLS
    assert [complaint.problem for complaint in trouble.complaints] == [Problem.SCHEMA_ERROR, Problem.UNKNOWN_TOOL]


@pytest.mark.parametrize("choice", [REQUIRED, NAMED])
def test_words_are_not_enough_where_a_call_is_needed_chk1(choice: ToolChoice) -> None:
    assert kind(read(TextDelta("Cold.")), choice) is Kind.NO_CALL
    assert kind(read(), choice) is Kind.NO_CALL
    assert kind(read(TextDelta("No tools.")), choice, refused=True) is Kind.NO_CALL


def test_a_refusal_is_one_chk4() -> None:
    assert kind(read(TextDelta("I have no tools.")), refused=True) is Kind.REFUSED


@pytest.mark.parametrize("events", [(), (TextDelta(" \n"),), (ReasoningDelta("hm"),)])
def test_nothing_blanks_and_thoughts_alone_are_empty_p6(events: tuple[Event, ...]) -> None:
    assert kind(read(*events)) is Kind.EMPTY


@pytest.mark.parametrize("stop", [StopReason.FILTER, StopReason.LENGTH])
def test_an_empty_answer_that_has_its_reason_stands_chk5(stop: StopReason) -> None:
    assert kind(read(stop=stop)) is None


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.kind)
def test_every_correction_begins_in_the_result_frame_as_an_error_chk4(trouble: Trouble) -> None:
    told = corrections(trouble, REQUIRED, 0, plain)
    assert told[0].startswith(("[get_weather|True|", "[tools|True|"))


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.kind)
def test_every_correction_says_more_than_the_one_before_chk5(trouble: Trouble) -> None:
    told = ["\n".join(corrections(trouble, REQUIRED, level, plain)) for level in range(3)]
    assert len(set(told)) == 3
    assert told[1].startswith(told[0])


def test_there_are_words_for_more_retries_than_the_default_chk5() -> None:
    assert len(STRONGER) >= 3
    assert corrections(TROUBLES[1], REQUIRED, 99, plain) == corrections(TROUBLES[1], REQUIRED, len(STRONGER) - 1, plain)


@pytest.mark.parametrize("problem", Problem)
def test_every_problem_has_words_and_keeps_its_detail_chk4(problem: Problem) -> None:
    result = error_result(Complaint(problem, "now", "must be /this"), "c1")
    (text,) = result.content
    assert text == Text(f"{SAYS[problem]}: must be /this")
    assert (result.call_id, result.name, result.is_error) == ("c1", "now", True)


def test_a_call_without_a_name_can_be_complained_of_too_chk4() -> None:
    assert error_result(Complaint(Problem.PARSE_ERROR, None)).name == ""
    failure = failure_of(Trouble(Kind.BAD_CALLS, (Complaint(Problem.PARSE_ERROR, None),)))
    assert "a call: the call could not be read" in failure.message


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.kind)
def test_what_cannot_be_helped_is_a_gateway_error_with_a_reason_p6(trouble: Trouble) -> None:
    failure = failure_of(trouble)
    assert failure.status == 502
    assert failure.message


def test_what_the_choice_asks_for_is_said_by_name_chk4() -> None:
    assert "get_weather" in call_needed(NAMED)
    assert call_needed(REQUIRED)
    assert call_needed(AUTO) == ""


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_an_answer_has_a_limit_p7(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolspeak.engine.answer_reader.MOST_CHARACTERS", 1000)
    reading = read(TextDelta("a" * 500), ReasoningDelta("b" * 300), TextDelta("c" * (200 + more)))
    assert (reading.failure is None) is (more <= 0)


@pytest.mark.parametrize("settings", [FORCE, NATIVE, Settings(mode=Mode.OFF), Settings(chat=True)])
def test_an_answer_without_end_is_closed_at_the_limit_p7(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolspeak.engine.answer_reader.MOST_CHARACTERS", 1000)
    turn = program(settings)
    effects: list[TurnEffect] = [next(turn)]
    while not isinstance(effects[-1], Close):
        effects.append(turn.send([TextDelta(LONG)] if isinstance(effects[-1], Pull) else None))
    assert sum(isinstance(effect, Pull) for effect in effects) == 1000 // len(LONG) + 1
    emitted = [effect.events[-1] for effect in turn if isinstance(effect, Emit)]
    assert isinstance(emitted[-1], Failed)


def test_a_trace_tells_an_announcement_from_a_copied_definition_chk15() -> None:
    assert describe(Trouble(Kind.NARRATED)) == "it announced a call and made none"
    copied = describe(Trouble(Kind.NARRATED, tool="get_weather"))
    assert "definition of get_weather" in copied
    assert "announced" not in copied
