"""A run as it stands, from the steps that are kept: the same program, run over them again."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from toolspeak.engine.agent import STOP, RunAnswer, RunTools, Task
from toolspeak.engine.journal import replay, result_from, turn_from
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact
from toolspeak.runs.durable.ledger import Row
from toolspeak.runs.durable.written import read
from toolspeak.runs.runs import Numbered, View
from toolspeak.runs.watch import CallAsked


def view(row: Row, steps: Mapping[str, str], asked: Iterable[Numbered]) -> View:
    """Put a view together from a run's row, its steps by name, and the calls that people were asked about."""
    task = Task(Request(row.spec.model, (), ()), row.spec.rounds, _ending(steps))
    answers = list(_answers(steps))
    return View(row.line, row.spec, _kept(task, answers), row.reason, tuple(waiting_calls(row, steps, asked).values()))


def waiting_calls(row: Row, steps: Mapping[str, str], asked: Iterable[Numbered]) -> dict[str, Call]:
    """Return the calls that wait for a person's word, by the key of their steps."""
    task = Task(Request(row.spec.model, (), ()), row.spec.rounds, _ending(steps))
    effect = replay(task, _answers(steps)).waiting
    if row.line.ended or not isinstance(effect, RunTools):
        return {}
    names = {each.event.id for each in asked if isinstance(each.event, CallAsked) and each.event.round == effect.round}
    calls = {f"{effect.round}:{index}": call for index, call in enumerate(effect.calls)}
    return {key: call for key, call in calls.items() if call.id in names and f"tool:{key}" not in steps}


def failed_turn(steps: Iterable[tuple[int, str, object, bool]]) -> int | None:
    """Return the number of the step at which a run failed: its last turn, if that brought no answer."""
    turns = [step for step in steps if step[1].startswith("turn:")]
    if not turns:
        return None
    number, _, given, raised = turns[-1]
    return number if raised or (isinstance(given, str) and "failure" in read(given)) else None


def _kept(task: Task, answers: list[RunAnswer]) -> Compact:
    done = replay(task, answers)
    ending = done.ending or replay(task, [*answers, STOP]).ending
    if ending is None:
        raise RuntimeError("a run that was stopped goes on")
    return ending.kept


def _ending(steps: Mapping[str, str]) -> frozenset[str]:
    return frozenset(read(steps["outfit"])["ending"]) if "outfit" in steps else frozenset()


def _answers(steps: Mapping[str, str]) -> Iterator[RunAnswer]:
    for number in count():
        if (given := steps.get(f"turn:{number}")) is None:
            return
        turn = turn_from(read(given))
        yield turn
        results = [steps.get(f"tool:{number}:{index}") for index in range(len(turn.calls))]
        if not results or None in results:
            return
        yield tuple(result_from(read(each)) for each in results if each is not None)
