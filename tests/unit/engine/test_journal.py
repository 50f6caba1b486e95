"""What a run's effects were answered with is kept as JSON, and the run follows from it (RUN-3)."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.run_scene import BAD, FAILED, SAID, SILENT, TASK, called, gave, look, played, rounds
from tests.unit.engine.run_values import COMPACTS, MESSAGES, RESULTS, TURNS
from toolspeak.engine.agent import STOP, RunAnswer, RunEffect, RunTools, Status, TakeTurn
from toolspeak.engine.journal import (
    Replayed,
    compact_from,
    compact_json,
    message_from,
    message_json,
    replay,
    result_from,
    result_json,
    stands,
    turn_from,
    turn_json,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Result, Text
from toolspeak.ir.round import Compact
from toolspeak.ir.turn import Turn

T = TypeVar("T")


def read_again(value: T, write: Callable[[T], JsonObject], read: Callable[[JsonObject], T]) -> T:
    """Write a value, store it as text, and read it; what is stored must come back as it was written."""
    written = write(value)
    stored = json.loads(json.dumps(written))
    assert stored == written
    return read(stored)


def again(answers: Sequence[RunAnswer]) -> Replayed:
    """Run the task over answers in their order."""
    kept = iter(answers)
    return replay(TASK, lambda _: next(kept, None))


# ---------------------------------------------------------------- to JSON and back


@given(turn=TURNS)
def test_every_turn_comes_back_run3(turn: Turn) -> None:
    assert read_again(turn, turn_json, turn_from) == turn


@given(result=RESULTS)
def test_every_result_comes_back_run3(result: Result) -> None:
    assert read_again(result, result_json, result_from) == result


@given(message=MESSAGES)
def test_every_message_comes_back_run3(message: Message) -> None:
    assert read_again(message, message_json, message_from) == message


@given(kept=COMPACTS)
def test_every_kept_message_comes_back_run2_run3(kept: Compact) -> None:
    assert read_again(kept, compact_json, compact_from) == kept


def test_little_is_written_of_what_says_little_run3() -> None:
    assert turn_json(Turn((Text("Hi."), Call("1", "look", "{}")))) == {
        "parts": [
            {"kind": "text", "text": "Hi."},
            {"kind": "call", "id": "1", "name": "look", "arguments": "{}"},
        ],
        "usage": {},
    }


def test_a_time_of_nothing_is_not_no_time_run3() -> None:
    failed = Turn(failure=Failure(FailureKind.RATE_LIMITED, "slowly", retry_after=0.0))
    assert turn_from(turn_json(failed)) == failed


# ---------------------------------------------------------------- the run that follows


def kept_as_json(answers: Sequence[RunAnswer]) -> list[RunAnswer]:
    """Store answers as an engine does, and read them."""
    return [
        turn_from(json.loads(json.dumps(turn_json(answer))))
        if isinstance(answer, Turn)
        else tuple(result_from(json.loads(json.dumps(result_json(one)))) for one in answer)
        if isinstance(answer, tuple)
        else answer
        for answer in answers
    ]


KINDS = st.sampled_from(["look", "same", "two", "twice", "bad", "mixed", "words", "silent", "failed", "final", "stop"])


def answered(effect: RunEffect, kind: str, number: int) -> RunAnswer:
    """Answer whatever is asked."""
    if kind == "stop":
        return STOP
    if isinstance(effect, RunTools):
        return tuple(gave(call, "same" if kind == "same" else f"{number}") for call in effect.calls)
    one, two, final = look(f"{number}"), look(f"{number}b", "door"), Call(f"{number}", "final_output", "{}")
    return {
        "look": called(one),
        "same": called(look("1")),
        "two": called(one, two),
        "twice": called(one, one),
        "bad": Turn((BAD,)),
        "mixed": Turn((BAD, one)),
        "words": SAID,
        "silent": SILENT,
        "failed": FAILED,
        "final": called(final),
    }[kind]


def script_of(kinds: list[str]) -> tuple[list[RunAnswer], list[RunEffect], Any]:
    """Let a run live through answers of these kinds; return them, its effects, and its ending if it came to one."""
    answers: list[RunAnswer] = []
    effects, ending = played(TASK, answers)
    for number, kind in enumerate(kinds):
        if ending is not None:
            break
        answers.append(answered(effects[-1], kind, number))
        effects, ending = played(TASK, answers)
    return answers, effects, ending


@given(kinds=st.lists(KINDS, max_size=14), data=st.data())
def test_a_run_that_is_cut_anywhere_goes_on_as_if_nothing_had_been_run3(kinds: list[str], data: st.DataObject) -> None:
    answers, effects, ending = script_of(kinds)
    cut = data.draw(st.integers(0, len(answers)))
    replayed = again(kept_as_json(answers[:cut]))
    at_end = ending is not None and cut == len(answers)
    assert replayed.ending == (ending if at_end else None)
    assert replayed.waiting == (None if at_end else effects[cut])
    assert again(kept_as_json(answers)).ending == ending


@given(kinds=st.lists(KINDS, max_size=14), data=st.data())
def test_a_replayed_program_lives_on_run3(kinds: list[str], data: st.DataObject) -> None:
    answers, effects, ending = script_of(kinds)
    cut = data.draw(st.integers(0, max(len(answers) - 1, 0)))
    replayed = again(kept_as_json(answers[:cut]))
    seen, ended = [replayed.waiting], None
    try:
        for answer in answers[cut:]:
            seen += [replayed.program.send(answer)]
    except StopIteration as stop:
        ended = stop.value
    assert (seen, ended) == (effects[cut:], ending)


def test_answers_behind_the_end_count_for_nothing_run3() -> None:
    replayed = again([SAID, called(look()), SAID])
    assert replayed.ending is not None
    assert replayed.ending.text == "Done."


@pytest.mark.parametrize("last", [FAILED, STOP])
def test_a_run_that_failed_or_was_cancelled_is_taken_up_before_its_last_answer_run3(last: RunAnswer) -> None:
    answers = [*rounds(2), last]
    ended = again(answers).ending
    assert ended is not None
    assert ended.status in (Status.FAILED, Status.CANCELLED)
    waiting = again(answers[:-1]).waiting
    assert isinstance(waiting, TakeTurn)
    assert waiting.round == 2


# ---------------------------------------------------------------- how a run stands


def stood(*answers: RunAnswer) -> tuple[RunEffect | None, Compact]:
    kept = iter(answers)
    return stands(TASK, lambda _: next(kept, None))


def test_a_run_shows_its_rounds_so_far_run3() -> None:
    assert [len(stood(*rounds(2)[:cut])[1].rounds) for cut in range(5)] == [0, 0, 1, 1, 2]


def test_a_run_shows_what_it_waits_for_run3() -> None:
    waiting = [stood(*rounds(1)[:cut])[0] for cut in range(3)]
    assert [type(effect) for effect in waiting] == [TakeTurn, RunTools, TakeTurn]
    assert stood(SAID)[0] is None


def test_a_run_shows_what_was_said_since_its_last_round_run3() -> None:
    assert stood(*rounds(1), called(look("2"), text="On."))[1].message.parts == (Text("On."),)


def test_a_run_that_has_ended_shows_its_end_run3() -> None:
    assert stood(*rounds(1), SAID)[1].message.parts == (Text("Done."),)
