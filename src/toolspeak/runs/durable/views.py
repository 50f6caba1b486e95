"""A run as it stands, from the steps that are kept: the same program, run over them again."""

from collections.abc import Iterable, Mapping

from toolspeak.engine.agent import RunEffect, RunTools, Task
from toolspeak.ir.message import Call, Result
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact
from toolspeak.ir.turn import Turn
from toolspeak.runs.durable.keeper import BEGINNING
from toolspeak.runs.durable.ledger import Row
from toolspeak.runs.durable.written import read
from toolspeak.runs.preparation import conversation
from toolspeak.runs.runs import Numbered, View
from toolspeak.runs.spec import Spec
from toolspeak.runs.steps import RESULT, TURN, TextForm, progress
from toolspeak.runs.watch import CallAsked


def view(row: Row, steps: Mapping[str, str], asked: Iterable[Numbered]) -> View:
    """Put a view together from a run's row, its steps by name, and the calls that people were asked about."""
    _, kept = _progress(row.spec, steps)
    return View(row.line, row.spec, kept, row.reason, tuple(waiting_calls(row, steps, asked).values()))


def waiting_calls(row: Row, steps: Mapping[str, str], asked: Iterable[Numbered]) -> dict[str, Call]:
    """Return the calls that wait for a person's word, by the key of their steps."""
    effect, _ = _progress(row.spec, steps)
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


def _progress(spec: Spec, steps: Mapping[str, str]) -> tuple[RunEffect | None, Compact]:
    """Return what the run is about to do, and what it would keep if it were stopped now."""
    ending = frozenset[str](read(steps[BEGINNING])["ending"]) if BEGINNING in steps else frozenset[str]()
    task = Task(Request(spec.model, conversation(spec)), spec.rounds, ending)
    return progress(task, {name: form.read(text) for name, text in steps.items() if (form := _form(name)) is not None})


def _form(step: str) -> TextForm[Turn] | TextForm[Result] | None:
    return {"turn": TURN, "tool": RESULT}.get(step.partition(":")[0])
