"""A run as it stands, from the steps that are kept: the same program, run over them again."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from toolspeak.engine.agent import RunAnswer, RunEffect, RunTools, TakeTurn, Task
from toolspeak.engine.journal import result_from, stands, turn_from
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact
from toolspeak.runs.durable.ledger import Row
from toolspeak.runs.durable.written import read
from toolspeak.runs.outfit import conversation
from toolspeak.runs.runs import Numbered, View
from toolspeak.runs.spec import Spec
from toolspeak.runs.watch import CallAsked


def view(row: Row, steps: Mapping[str, str], asked: Iterable[Numbered]) -> View:
    """Put a view together from a run's row, its steps by name, and the calls that people were asked about."""
    _, kept = _stands(row.spec, steps)
    return View(row.line, row.spec, kept, row.reason, tuple(waiting_calls(row, steps, asked).values()))


def waiting_calls(row: Row, steps: Mapping[str, str], asked: Iterable[Numbered]) -> dict[str, Call]:
    """Return the calls that wait for a person's word, by the key of their steps."""
    effect, _ = _stands(row.spec, steps)
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


def _stands(spec: Spec, steps: Mapping[str, str]) -> tuple[RunEffect | None, Compact]:
    """Return what the run is about to do, and what it would keep if it were stopped now."""
    ending = frozenset[str](read(steps["outfit"])["ending"]) if "outfit" in steps else frozenset[str]()
    task, turns = Task(Request(spec.model, conversation(spec)), spec.rounds, ending), count()
    return stands(task, lambda effect: _answer(effect, steps, turns))


def _answer(effect: RunEffect, steps: Mapping[str, str], turns: Iterator[int]) -> RunAnswer:
    if isinstance(effect, TakeTurn):
        given = steps.get(f"turn:{next(turns)}")
        return None if given is None else turn_from(read(given))
    results = [steps.get(f"tool:{effect.round}:{index}") for index in range(len(effect.calls))]
    return None if None in results else tuple(result_from(read(each)) for each in results if each is not None)
