"""What the tests of runs share: a task with two tools, turns about them, and a player of answers."""

from collections.abc import Iterable

from toolspeak.engine.agent import Ending, RunAnswer, RunEffect, RunTools, TakeTurn, Task, run_task
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, StopReason, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn

TOOLS = (Tool("look"), Tool("final_output"))
TASK = Task(Request("m", (Message(Role.USER, (Text("Look."),)),), TOOLS), 5, frozenset({"final_output"}))
SAID = Turn((Text("Done."),), StopReason.END, Usage(10, 5))
SILENT = Turn((), StopReason.END)
REFUSED = Failure(FailureKind.TRANSIENT, "the upstream is overloaded", 503)
FAILED = Turn((Text("I was abou"),), StopReason.ERROR, Usage(10, 1), failure=REFUSED)
BAD = CallRejected(Complaint(Problem.UNKNOWN_TOOL, "luck", "available tools: look"), '{"at":"door"}')


def look(id: str = "1", at: str = "") -> Call:
    return Call(id, "look", f'{{"at": "{at}"}}' if at else "{}")


def called(*calls: Call, text: str = "I look.") -> Turn:
    return Turn((Text(text), *calls), StopReason.CALLS, Usage(10, 5))


def gave(call: Call, text: str = "a stone", *, is_error: bool = False) -> Result:
    return Result(call.id, (Text(text),), call.name, is_error)


def rounds(count: int, text: str = "a stone") -> list[RunAnswer]:
    """Answer so many rounds, each with the same call."""
    made = [look(str(number)) for number in range(count)]
    return [answer for call in made for answer in (called(call), (gave(call, text),))]


def played(task: Task, answers: Iterable[RunAnswer]) -> tuple[list[RunEffect], Ending | None]:
    """Play answers to a run; return its effects, and its ending if they led to one."""
    program = run_task(task)
    effects = [next(program)]
    try:
        for answer in answers:
            effects += [program.send(answer)]
    except StopIteration as stop:
        return effects, stop.value
    return effects, None


def worked(task: Task, *answers: RunAnswer) -> tuple[list[RunEffect], Ending]:
    """Play answers that end a run."""
    effects, ending = played(task, answers)
    assert ending is not None, f"the run goes on: {effects[-1]}"
    return effects, ending


def asked(effect: RunEffect) -> Request:
    assert isinstance(effect, TakeTurn)
    return effect.request


def tools(effect: RunEffect) -> tuple[Call, ...]:
    assert isinstance(effect, RunTools)
    return effect.calls


def result_texts(ending: Ending) -> list[str]:
    """Say what the results of all rounds say, a line each."""
    results = [result for each in ending.kept.rounds for result in each.results]
    return ["\n".join(piece.text for piece in result.content if isinstance(piece, Text)) for result in results]
