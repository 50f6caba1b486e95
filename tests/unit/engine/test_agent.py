"""The loop of a run (RUN-1)."""

from toolspeak.engine.agent import STOP, Ending, RunAnswer, RunEffect, RunTools, Status, TakeTurn, Task, run
from toolspeak.ir.event import StopReason
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.ir.turn import Turn

LOOK = Call("1", "look", "{}")
TASK = Task(Request("m", (Message(Role.USER, (Text("Look."),)),), (Tool("look"),)), rounds=5)
SAID = Turn((Text("Done."),), StopReason.END)


def called(call: Call = LOOK, text: str = "I look.") -> Turn:
    return Turn((Text(text), call), StopReason.CALLS)


def gave(text: str = "a stone", call: Call = LOOK) -> tuple[Result, ...]:
    return (Result(call.id, (Text(text),), call.name),)


def worked(task: Task, *answers: RunAnswer) -> tuple[list[RunEffect], Ending]:
    program = run(task)
    effects = [next(program)]
    try:
        for answer in answers:
            effects += [program.send(answer)]
    except StopIteration as stop:
        return effects, stop.value
    raise AssertionError(f"the run goes on: {effects[-1]}")


def test_a_turn_without_calls_ends_the_run_run1() -> None:
    _, ending = worked(TASK, SAID)
    assert (ending.status, ending.text, ending.kept.rounds) == (Status.DONE, "Done.", ())


def test_results_go_back_to_the_model_run1() -> None:
    effects, ending = worked(TASK, called(), gave(), SAID)
    assert effects[1] == RunTools(0, (LOOK,))
    assert isinstance(effects[2], TakeTurn)
    assert [message.role for message in effects[2].request.messages] == ["user", "assistant", "assistant", "tool"]
    assert [(each.text, each.calls, each.results) for each in ending.kept.rounds] == [("I look.", (LOOK,), gave())]


def test_used_up_rounds_are_summed_up_without_tools_run1() -> None:
    rounds = [each for number in range(5) for each in (called(), gave(f"stone {number}"))]
    effects, ending = worked(TASK, *rounds, SAID)
    assert isinstance(effects[-1], TakeTurn)
    assert effects[-1].request.choice.mode is ChoiceMode.NONE
    assert (ending.status, ending.reason) == (Status.SUMMED_UP, "its 5 rounds were used up")


def test_a_cancelled_run_keeps_its_rounds_run1() -> None:
    _, ending = worked(TASK, called(), gave(), STOP)
    assert (ending.status, len(ending.kept.rounds)) == (Status.CANCELLED, 1)
