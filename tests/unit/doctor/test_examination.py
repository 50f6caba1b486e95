"""The runner: it asks the tasks in each form, marks what comes, and gives up where that is all it can do."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import pytest

from tests.unit.doctor.pupil import Pupil
from toolspeak.doctor.call_forms import FORMS, DoctorForm, candidates
from toolspeak.doctor.examination import ROOM, ROOM_TO_THINK, TaskProgress, examine
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.suite import PARTS
from toolspeak.errors import UpstreamFailed
from toolspeak.facts.model import ModelFacts
from toolspeak.ir.event import Event, Failed, Finished, ReasoningDelta, StopReason, TextDelta, Usage
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Result, Text
from toolspeak.ir.request import Request
from toolspeak.runtime.directory import Route
from toolspeak.testing import called, failed

NATIVE_ONLY, BOTH = FORMS[:1], FORMS[:2]


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
    chosen = forms or candidates(ModelFacts())
    told = news if news is not None else []
    route = Route("box", school, "small")
    return asyncio.run(examine(route, chosen, PARTS[:1] if quick else PARTS, told.append))


@pytest.mark.parametrize(
    ("knows", "winner", "bare"),
    [("native", "native", 24), ("leaks", "native+rescue", 6), ("hermes", "hermes", 6), ("fenced", "fenced", 6)],
)
def test_the_form_that_a_model_has_learned_is_found_cap5(knows: str, winner: str, bare: int) -> None:
    report = examined(School(Pupil(knows)))
    assert (report.winner.form.name, report.winner.right, report.winner.asked) == (winner, 24, 24)
    assert report.bare is not None
    assert report.bare.right == bare
    assert report.helped
    assert report.model == "small"


def test_a_model_that_has_learned_nothing_is_not_helped() -> None:
    report = examined(School(Pupil("nothing")))
    assert not report.helped
    assert report.winner.called == 0


def test_a_task_that_fails_is_seen_with_why() -> None:
    report = examined(School(Pupil("native", fails=frozenset(("ferry", "member")))), forms=NATIVE_ONLY)
    wrong = {name: mark.problem for name, mark in report.winner.marks.items() if not mark.right}
    assert wrong == {"ferry": "calls nothing", "member": "calls nothing"}


def test_the_model_is_asked_coldly_and_for_little() -> None:
    school = School(Pupil("native"))
    examined(school, quick=True, forms=NATIVE_ONLY)
    assert {(request.sampling.temperature, request.sampling.max_tokens) for request in school.requests} == {(0, ROOM)}
    assert not school.requests[0].tools, "first without tools, so that what fails later is about them"
    assert len(school.requests) == 1 + 8 + 1, "hello, eight tasks, and the second step of one"


def test_the_second_step_has_the_call_and_its_result() -> None:
    school = School(Pupil("native"))
    examined(school, quick=True, forms=NATIVE_ONLY)
    assert texts(school.requests[-1])[-1] == "shelf C4"


def test_costs_are_counted() -> None:
    report = examined(School(Pupil("native")), quick=True, forms=NATIVE_ONLY)
    assert report.winner.requests == pytest.approx(9 / 8)
    assert report.winner.tokens == pytest.approx(110 * 9 / 8)


def test_a_model_that_thinks_gets_room_for_it() -> None:
    def thinks(_: Request, count: int) -> list[Event] | None:
        return [ReasoningDelta("Hm. "), Finished(StopReason.LENGTH)] if count == 1 else None

    school = School(Pupil("native"), thinks)
    examined(school, quick=True, forms=NATIVE_ONLY)
    assert school.requests[-1].sampling.max_tokens == ROOM_TO_THINK


def test_every_task_is_told_before_and_after() -> None:
    news = list[TaskProgress]()
    examined(School(Pupil("native")), quick=True, forms=NATIVE_ONLY, news=news)
    assert [one.mark is None for one in news] == [True, False] * 8
    assert news[-1].step.left == 0


def test_who_refuses_tools_is_asked_without() -> None:
    def refuses(request: Request, _: int) -> list[Event] | None:
        return [Failed(failed(FailureKind.TOOLS_UNSUPPORTED))] if request.tools else None

    report = examined(School(Pupil("hermes"), refuses))
    assert report.winner.form.name == "hermes"
    assert report.bare is not None
    assert all(mark.failed for mark in report.bare.marks.values())
    assert "its server refuses tools" in report.verdict
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
    once = School(Pupil("native"), lambda _, count: [Failed(failed(FailureKind.TRANSIENT))] if count == 3 else None)
    report = examined(once, quick=True, forms=BOTH)
    assert report.winner.form.name == "native+rescue"
    always = School(Pupil("native"), lambda _, count: [Failed(failed(FailureKind.TIMEOUT))] if count > 1 else None)
    with pytest.raises(UpstreamFailed):
        examined(always, quick=True, forms=BOTH)
    assert len(always.requests) == 4


def test_a_spurious_call_is_one_where_no_tool_fits() -> None:
    def eager(request: Request, count: int) -> list[Event] | None:
        if count == 1 or not any("How are you" in text for text in texts(request)):
            return None
        return [*called("ring_bell", '{"times": 1}'), Finished(StopReason.CALLS)]

    report = examined(School(Pupil("native"), eager), quick=True, forms=NATIVE_ONLY)
    assert (report.winner.spurious, report.winner.right) == (1, 7)
