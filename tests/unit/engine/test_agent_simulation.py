"""Thousands of runs with random answers: what holds of every run (RUN-1, RUN-2, RUN-7)."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from tests.unit.engine.run_scene import BAD, FAILED, SAID, SILENT, TASK, gave
from toolspeak.agent.runs.runs import FORMS, export_messages
from toolspeak.engine.agent import STOP, Ending, RunAnswer, RunEffect, RunTools, Status, TakeTurn, Task, run_task
from toolspeak.ir.event import StopReason
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.round import expand
from toolspeak.ir.tool import ChoiceMode
from toolspeak.ir.turn import Turn, TurnPart

RUNS: Final = 3000
PLACES = ("", '{"at": "door"}', '{ "at":"door" }', "{}", '{"at": "tree"}', "{broken")
IDS = ("", "1", "2", "call_0", "rejected", "rejected_0")


def some_turn(chance: Random) -> Turn:
    """Make up a turn: mostly calls, sometimes an end."""
    luck = chance.random()
    if luck < 0.1:
        return chance.choice((SAID, SILENT, FAILED, Turn((Text("It is"),), StopReason.LENGTH)))
    parts = [some_part(chance) for _ in range(chance.randint(1, 4))]
    return Turn(tuple(parts), chance.choice((StopReason.CALLS, StopReason.LENGTH, None)))


def some_part(chance: Random) -> TurnPart:
    name = "final_output" if chance.random() < 0.02 else chance.choice(("look", "touch"))
    call = Call(chance.choice(IDS), name, chance.choice(PLACES))
    return chance.choice((call, call, call, BAD, Text("Hm. "), Reasoning("Hm?")))


def some_results(chance: Random, calls: tuple[Call, ...]) -> tuple[Result, ...]:
    return tuple(gave(call, chance.choice("abc"), is_error=chance.random() < 0.2) for call in calls)


def lived(task: Task, chance: Random) -> tuple[list[RunEffect], Ending]:
    """Let a run live with random answers until it ends."""
    program, effects = run_task(task), list[RunEffect]()
    answer: RunAnswer = None
    try:
        while True:
            effects.append(program.send(answer))
            answer = some_answer(effects[-1], chance)
    except StopIteration as stop:
        return effects, stop.value


def some_answer(effect: RunEffect, chance: Random) -> RunAnswer:
    if chance.random() < 0.01:
        return STOP
    return some_turn(chance) if isinstance(effect, TakeTurn) else some_results(chance, effect.calls)


def unpaired(messages: tuple[Message, ...]) -> list[str]:
    """Return the ids of calls that are not answered once, right behind them, in their order."""
    wrong: list[str] = []
    open_: list[str] = []
    for message in messages:
        results = [part.call_id for part in message.parts if isinstance(part, Result)]
        if message.role is Role.TOOL and results != open_:
            wrong += results
        open_ = [] if message.role is Role.TOOL else open_ + [p.id for p in message.parts if isinstance(p, Call)]
    return wrong + open_


def check(task: Task, effects: list[RunEffect], ending: Ending) -> None:
    asked = [effect for effect in effects if isinstance(effect, TakeTurn)]
    ran = [effect for effect in effects if isinstance(effect, RunTools)]
    kept = ending.kept.rounds
    assert len(ran) <= task.rounds
    assert len(asked) <= task.rounds + 1
    assert [effect.round for effect in effects] == sorted(effect.round for effect in effects)
    assert all(effect.calls for effect in ran)
    assert not any(unpaired(effect.request.messages) for effect in asked)
    assert sum(effect.request.choice.mode is ChoiceMode.NONE for effect in asked) <= 1
    assert all(one.choice == task.request.choice for one in [effect.request for effect in asked[:-1]])
    ids = [call.id for each in kept for call in each.calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    assert ids == [result.call_id for each in kept for result in each.results]
    run_ids = [call.id for effect in ran for call in effect.calls]
    assert not {id for id, times in Counter(run_ids).items() if times > 1}
    check_end(ending)


def check_end(ending: Ending) -> None:
    if ending.status in (Status.DONE, Status.SUMMED_UP):
        assert ending.text.strip()
    if ending.status is not Status.DONE:
        assert ending.reason
    assert ending.status not in (Status.RUNNING, Status.WAITING)
    assert not unpaired(expand([ending.kept]))


@pytest.mark.parametrize("seed", range(6))
def test_every_run_ends_and_all_its_calls_are_answered_run1_run2_run7(seed: int) -> None:
    chance = Random(seed)
    ends: Counter[Status] = Counter()
    for number in range(RUNS // 6):
        task = replace(TASK, rounds=chance.choice((0, 1, 3, 10, 50)))
        effects, ending = lived(task, chance)
        check(task, effects, ending)
        ends[ending.status] += 1
        if number % 50 == 0:
            assert all(export_messages([ending.kept], form) or not ending.kept.rounds for form in FORMS)
    assert set(ends) == {Status.DONE, Status.SUMMED_UP, Status.CANCELLED, Status.FAILED}


def test_the_same_answers_lead_to_the_same_end_run3() -> None:
    assert [lived(TASK, Random(seed)) for seed in range(50)] == [lived(TASK, Random(seed)) for seed in range(50)]
