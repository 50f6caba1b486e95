"""A run over real turns: what the engine makes of its requests, natively and emulated (RUN-1)."""

from dataclasses import replace
from itertools import count

import pytest

from tests.unit.engine.run_scene import worked
from tests.unit.engine.scene import ASK, FORCE, NATIVE, OSLO, TOOLS, WRONG, ask, run, texts, written
from toolspeak.engine.agent import Ending, RunAnswer, RunEffect, RunTools, Status, TakeTurn, Task, run_task
from toolspeak.engine.plan import decide
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.turn import take_turn
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Finished, StopReason, TextDelta
from toolspeak.ir.message import Call, Result, Text
from toolspeak.runtime.drive import drive_sync
from toolspeak.testing import Scripted, ScriptedUpstream
from toolspeak.testing import called as native_call

OFF = Settings(mode=Mode.OFF)
CALLS = (TextDelta("I look."), *native_call("get_weather", '{"city": "Oslo"}'), Finished(StopReason.CALLS))
BAD = (TextDelta("I look."), *native_call("get_weather", '{"town": 5}'), Finished(StopReason.CALLS))


def done(settings: Settings, *answers: Scripted, rounds: int = 5) -> tuple[list[RunEffect], Ending, ScriptedUpstream]:
    """Work on a task with a scripted upstream; every tool says 3 degrees."""
    upstream, ids = ScriptedUpstream(*answers), (f"emulated_{number}" for number in count())
    program, effects = run_task(Task(ASK, rounds)), list[RunEffect]()
    answer: RunAnswer = None
    try:
        while True:
            effects.append(effect := program.send(answer))
            if isinstance(effect, RunTools):
                answer = tuple(Result(call.id, (Text("3 °C"),), call.name) for call in effect.calls)
                continue
            plan = decide(effect.request, settings)
            answer = drive_sync(take_turn(effect.request, plan, ids), upstream, _nobody).turn
    except StopIteration as stop:
        return effects, stop.value, upstream


def _nobody(events: object) -> None:
    del events


NATIVELY = pytest.mark.parametrize("settings", [NATIVE, OFF], ids=["native", "off"])


@NATIVELY
def test_a_run_goes_its_way_natively_run1(settings: Settings) -> None:
    effects, ending, upstream = done(settings, CALLS, "It is 3 degrees.")
    assert (ending.status, ending.text, len(ending.kept.rounds)) == (Status.DONE, "It is 3 degrees.", 1)
    assert (len(effects), len(upstream.requests)) == (3, 2)


def test_a_run_goes_its_way_emulated_run1() -> None:
    _, ending, upstream = done(FORCE, f"I look.\n\n{written(OSLO)}", "It is 3 degrees.")
    assert (ending.status, ending.text, ending.kept.rounds[0].calls[0].name) == (
        Status.DONE,
        "It is 3 degrees.",
        "get_weather",
    )
    assert not any(request.tools for request in upstream.requests)


@NATIVELY
def test_the_summary_runs_no_call_natively_run1(settings: Settings) -> None:
    effects, ending, _ = done(settings, CALLS, CALLS, rounds=1)
    assert sum(isinstance(effect, RunTools) for effect in effects) == 1
    assert (ending.status, ending.text) == (Status.SUMMED_UP, "I look.")


@NATIVELY
def test_a_summary_that_only_calls_fails_natively_run1_p6(settings: Settings) -> None:
    _, ending, _ = done(settings, CALLS, CALLS[1:], rounds=1)
    assert (ending.status, len(ending.kept.rounds)) == (Status.FAILED, 1)


def test_the_summary_runs_no_call_emulated_run1() -> None:
    effects, ending, upstream = done(FORCE, written(OSLO), f"I look on.\n\n{written(OSLO)}", rounds=1)
    assert sum(isinstance(effect, RunTools) for effect in effects) == 1
    assert ending.status is Status.SUMMED_UP
    last = upstream.requests[-1]
    assert not last.tools
    assert not any(isinstance(part, Call) for message in last.messages for part in message.parts)


def test_words_beside_calls_that_may_not_run_do_not_end_a_run_natively_run1_chk5() -> None:
    _, ending, upstream = done(NATIVE, BAD, BAD, BAD, "It cannot be done.")
    assert (ending.status, ending.text) == (Status.DONE, "It cannot be done.")
    (call,), (result,) = ending.kept.rounds[0].calls, ending.kept.rounds[0].results
    assert (call.name, call.arguments, result.is_error) == ("get_weather", '{"town": 5}', True)
    assert len(upstream.requests) == 4


def test_words_beside_calls_that_may_not_run_do_not_end_a_run_emulated_run1_chk5() -> None:
    bad = f"I look.\n\n{written(WRONG)}"
    _, ending, _ = done(FORCE, bad, bad, bad, "It cannot be done.")
    assert (ending.text, [call.name for call in ending.kept.rounds[0].calls]) == ("It cannot be done.", ["get_weather"])
    assert "city" in str(ending.kept.rounds[0].results[0].content)


def test_a_turn_tells_what_of_its_last_answer_may_not_run_chk4() -> None:
    assert [one.problem for one in run(NATIVE, BAD, BAD, BAD).turn.complaints] == [Problem.SCHEMA_ERROR]


def test_a_turn_does_not_tell_what_was_put_right_chk4() -> None:
    ran = run(NATIVE, BAD, CALLS)
    assert (ran.turn.complaints, len(ran.turn.calls), len(ran.outcome.complaints)) == ((), 1, 1)


def test_a_call_that_was_cut_goes_back_to_the_model_run1_p3() -> None:
    cut = texts(f"I look.\n\n{written(OSLO)[:40]}", stop=StopReason.LENGTH)
    _, ending, _ = done(replace(FORCE, retries=0), cut, "Shorter, then.")
    assert (ending.status, ending.text) == (Status.DONE, "Shorter, then.")
    assert "not complete" in str(ending.kept.rounds[0].results[0].content)


def test_a_task_keeps_its_tools_to_the_end_run1() -> None:
    """A history with calls needs its tools beside it, in the summary too."""
    effects, _ = worked(Task(ask(), rounds=0), run(NATIVE, "It is cold.").turn)
    assert isinstance(effects[0], TakeTurn)
    assert effects[0].request.tools == TOOLS
