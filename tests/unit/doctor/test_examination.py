"""The runner: it asks the tasks in each form, marks what comes, and gives up where that is all it can do."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.unit.doctor.pupil import Pupil
from toolspeak.doctor.call_forms import FORMS, TODAY, DoctorForm, candidates
from toolspeak.doctor.examination import ROOM, ROOM_TO_THINK, Examination, TaskProgress, examine, forms_for
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.results import Results
from toolspeak.doctor.suite import FULL, QUICK
from toolspeak.doctor.task import TaskResult
from toolspeak.doctor.tournament import TrialEnd
from toolspeak.errors import UpstreamFailed
from toolspeak.facts.model import ModelFacts
from toolspeak.ir.event import Event, Failed, Finished, ReasoningDelta, StopReason, TextDelta, Usage
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Result, Text
from toolspeak.ir.request import Request
from toolspeak.runtime.directory import Route
from toolspeak.testing import called, failed

BY_NAME = {form.name: form for form in FORMS}
HERMES = (BY_NAME["hermes"],)


@dataclass
class School:
    """An upstream whose model is a pupil; `broken` may answer in its place."""

    pupil: Pupil
    broken: Callable[[Request, int], list[Event] | None] = lambda _, __: None
    requests: list[Request] = field(default_factory=list[Request])

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        self.requests.append(request)
        yield self.broken(request, len(self.requests)) or self._answer(request)

    def _answer(self, request: Request) -> list[Event]:
        said = self.pupil.calls(texts(request), native=bool(request.tools))
        end = Finished(StopReason.END, Usage(100, 10))
        if isinstance(said, str):
            return [TextDelta(said), end]
        if self.pupil.knows != "native":
            return [TextDelta(self.pupil.text(said)), end]
        calls = [called(name, json.dumps(arguments), f"call_{at}") for at, (name, arguments) in enumerate(said)]
        return [*(event for call in calls for event in call), Finished(StopReason.CALLS, Usage(100, 10))]


def texts(request: Request) -> list[str]:
    found = list[str]()
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                found.append(part.text)
            elif isinstance(part, Result):
                found += [piece.text for piece in part.content if isinstance(piece, Text)]
    return found


def examined(
    school: School, *, quick: bool = False, forms: tuple[DoctorForm, ...] = (), news: list[TaskProgress] | None = None
) -> DoctorReport:
    told = news if news is not None else []
    route = Route("box", school, "small")
    trial = Examination(route, forms or forms_for(route, quick=quick), QUICK if quick else FULL)
    return asyncio.run(trial.run(told.append))


@pytest.mark.parametrize("knows", ["hermes", "fenced"])
def test_the_form_that_a_model_has_learned_is_found_cap5(knows: str) -> None:
    report = examined(School(Pupil(knows)))
    assert report.winner is not None
    assert (report.winner.form.name, report.winner.right) == (knows, report.winner.asked)
    assert report.helped
    assert report.model == "small"


@pytest.mark.parametrize("knows", ["native", "leaks"])
def test_a_user_whose_calls_come_already_keeps_what_works_cap9(knows: str) -> None:
    report = examined(School(Pupil(knows)))
    assert (report.winner, report.standing.end) == (None, TrialEnd.NO_RIVAL)
    assert report.helped
    assert "nothing was changed" in report.verdict


def test_today_is_asked_with_all_that_the_user_has_set_cap9() -> None:
    school = School(Pupil("hermes"))
    route = replace(Route("box", school, "small"), settings=BY_NAME["hermes"].settings)
    report = asyncio.run(examine(route, forms_for(route), QUICK))
    assert report.standing.today.right == report.standing.today.asked
    assert "hermes" not in {found.form.name for found in report.tallies}, "it would be tried twice"


def test_a_model_that_has_learned_nothing_is_not_helped() -> None:
    report = examined(School(Pupil("nothing")))
    assert not report.helped
    assert not any(found.called for found in report.tallies)


def test_a_task_that_fails_is_seen_with_why() -> None:
    report = examined(School(Pupil("native", fails=frozenset(("timer", "shelf")))), quick=True)
    wrong = {name: mark.problem for name, mark in report.standing.today.marks.items() if not mark.right}
    assert wrong == {"timer": "calls nothing", "shelf": "calls nothing"}


def test_a_right_call_that_a_guardrail_took_away_is_seen_cap9() -> None:
    """The model knows the form, and says no when it is asked whether the tool fits."""

    def says_no(request: Request, _: int) -> list[Event] | None:
        judged = any("You judge whether" in text for text in texts(request))
        return [TextDelta("No."), Finished(StopReason.END)] if judged else None

    report = examined(School(Pupil("hermes"), says_no), forms=(BY_NAME["hermes+strict"],))
    assert (report.winner, report.standing.end) == (None, TrialEnd.TAKES_CALLS)
    assert report.standing.challenger is not None
    assert report.standing.challenger.took


def test_the_model_is_asked_coldly_and_for_little() -> None:
    school = School(Pupil("native"))
    examined(school, quick=True)
    assert {(request.sampling.temperature, request.sampling.max_tokens) for request in school.requests} == {(0, ROOM)}
    assert not school.requests[0].tools, "first without tools, so that what fails later is about them"


def test_costs_are_counted() -> None:
    report = examined(School(Pupil("native")), quick=True)
    assert report.standing.today.requests == 1
    assert report.standing.today.tokens == pytest.approx(110)


def test_a_model_that_thinks_gets_room_for_it() -> None:
    def thinks(_: Request, count: int) -> list[Event] | None:
        return [ReasoningDelta("Hm. "), Finished(StopReason.LENGTH)] if count == 1 else None

    school = School(Pupil("native"), thinks)
    examined(school, quick=True)
    assert school.requests[-1].sampling.max_tokens == ROOM_TO_THINK


def test_every_task_is_told_before_and_after() -> None:
    news = list[TaskProgress]()
    examined(School(Pupil("hermes")), quick=True, forms=HERMES, news=news)
    assert [one.mark is None for one in news] == [True, False] * (len(news) // 2)
    assert news[0].step.form is TODAY
    assert news[0].step.left == 2 * len(QUICK.confirmation) - 1


def test_who_refuses_tools_is_asked_without() -> None:
    def refuses(request: Request, _: int) -> list[Event] | None:
        return [Failed(failed(FailureKind.TOOLS_UNSUPPORTED))] if request.tools else None

    report = examined(School(Pupil("hermes"), refuses), forms=(BY_NAME["hermes"], BY_NAME["native+rescue"]))
    assert report.winner is not None
    assert report.winner.form.name == "hermes", "today is emulated too, in the form for unknown families"
    rescued = next(found for found in report.tallies if found.form.name == "native+rescue")
    assert rescued.right == 0, "what is emulated after a refusal is another form"


@pytest.mark.parametrize("kind", [FailureKind.DISCONNECTED, FailureKind.AUTH, FailureKind.NOT_FOUND])
@pytest.mark.parametrize("at", [1, 5])
def test_who_cannot_be_reached_is_given_up_at_once(kind: FailureKind, at: int) -> None:
    school = School(Pupil("native"), lambda _, count: [Failed(failed(kind))] if count == at else None)
    with pytest.raises(UpstreamFailed) as caught:
        examined(school)
    assert caught.value.kind == kind
    assert len(school.requests) == at


def test_a_failure_that_passes_is_a_wrong_answer_and_three_in_a_row_are_the_end() -> None:
    once = School(Pupil("native"), lambda _, count: [Failed(failed(FailureKind.TRANSIENT))] if count == 2 else None)
    report = examined(once, quick=True)
    assert report.standing.today.right == report.standing.today.asked - 1
    always = School(Pupil("native"), lambda _, count: [Failed(failed(FailureKind.TIMEOUT))] if count > 1 else None)
    with pytest.raises(UpstreamFailed):
        examined(always, quick=True)
    assert len(always.requests) == 4


def test_a_spurious_call_is_one_where_no_tool_fits() -> None:
    def eager(request: Request, count: int) -> list[Event] | None:
        if count == 1 or not any("How are you" in text for text in texts(request)):
            return None
        return [*called("ring_bell", '{"times": 1}'), Finished(StopReason.CALLS)]

    report = examined(School(Pupil("hermes"), eager))
    assert report.standing.today.spurious == 1


# ---------------------------------------------------------------- interrupted, then resumed


def kept(folder: Path, school: School) -> tuple[Results, Examination]:
    route = Route("box", school, "small")
    results = Results(folder, ("small", "suite 1"), route.plan(Request("", (), ())))
    return results, Examination(route, HERMES, QUICK, results)


def test_a_budget_ends_it_between_two_tasks_and_the_next_one_goes_on_there_cap10(tmp_path: Path) -> None:
    school = School(Pupil("hermes"))
    results, trial = kept(tmp_path, school)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(trial.run(stop_after(7)))
    assert len(school.requests) == 1 + 7
    assert not trial.report.decided
    again = School(Pupil("hermes"))
    results, trial = kept(tmp_path, again)
    assert results.load() == 7
    report = asyncio.run(trial.run())
    assert report.decided
    assert report.winner is not None
    asked = {"today": report.standing.today.asked, "hermes": report.winner.asked}
    assert sum(asked.values()) == len(school.requests) + len(again.requests) - 2, "none was asked twice"


def stop_after(tasks: int) -> Callable[[TaskProgress], None]:
    seen = list[TaskProgress]()

    def tell(news: TaskProgress) -> None:
        seen.append(news)
        if sum(one.mark is not None for one in seen) == tasks:
            raise KeyboardInterrupt

    return tell


def test_no_task_begins_after_the_budget_cap10() -> None:
    school = School(Pupil("hermes"))
    trial = Examination(Route("box", school, "small"), HERMES, QUICK)
    report = asyncio.run(trial.run(until=0.0))
    assert len(school.requests) == 1, "only hello"
    assert (report.decided, report.standing.today.asked) == (False, 0)


@pytest.mark.parametrize("body", ["", "[]", '{"today": 3}', '{"x": {"y": {"right": "yes"}}}'])
def test_a_file_that_cannot_be_read_counts_as_none_cap10(tmp_path: Path, body: str) -> None:
    results, _ = kept(tmp_path, School(Pupil("hermes")))
    results.put(TODAY, QUICK.selection[0], TaskResult(right=True))
    (file,) = tmp_path.iterdir()
    file.write_text(body)
    assert kept(tmp_path, School(Pupil("hermes")))[0].load() == 0


def test_results_of_another_model_suite_or_plan_are_not_used_cap10(tmp_path: Path) -> None:
    results, _ = kept(tmp_path, School(Pupil("hermes")))
    task = QUICK.selection[0]
    results.put(TODAY, task, TaskResult(right=True))
    plan = Route("box", School(Pupil("hermes")), "small").plan(Request("", (), ()))
    assert Results(tmp_path, ("small", "suite 2"), plan).load() == 0
    other = Results(tmp_path, ("small", "suite 1"), replace(plan, why="the user has changed a setting"))
    assert other.load() == 1
    assert other.get(TODAY, task) is None
    results.clear()
    assert list(tmp_path.iterdir()) == []


def test_candidates_do_not_include_what_stands_for_today() -> None:
    assert TODAY not in candidates(ModelFacts())
