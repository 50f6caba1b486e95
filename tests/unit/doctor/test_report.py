"""What a trial came to, in words and as a profile."""

from dataclasses import replace

import msgspec
import pytest

from toolspeak.doctor.call_forms import FORMS
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.suite import SUITE
from toolspeak.doctor.task import TaskResult
from toolspeak.doctor.tournament import Tally, rank_tallies
from toolspeak.facts.model import ModelFacts, Profile, Score, Support
from toolspeak.runtime.profiles import settings_from

BY_NAME = {form.name: form for form in FORMS}


def tally(name: str, right: int, *, failed: bool = False, asked: int = 24) -> Tally:
    """Return a form whose first tasks are right."""
    found = Tally(BY_NAME[name])
    for at, task in enumerate(SUITE[:asked]):
        found.add(task, TaskResult(right=at < right, failed=failed))
    return found


def silent(name: str) -> Tally:
    """Right only where no call is wanted."""
    found = Tally(BY_NAME[name])
    for task in SUITE:
        found.add(task, TaskResult(right=not task.wants_calls))
    return found


def report(*tallies: Tally) -> DoctorReport:
    return DoctorReport("small", "http://127.0.0.1:8080/v1", rank_tallies(tallies))


@pytest.mark.parametrize(
    ("tallies", "verdict"),
    [
        (
            (tally("native", 22), tally("hermes", 20)),
            "small: its server's own tool calls do best: 22 of 24 tasks right.",
        ),
        ((tally("native", 15),), "small: its server's own tool calls do best, if not well: 15 of 24 tasks right."),
        (
            (silent("native"), tally("native+rescue", 19)),
            (
                "small: its server shows its calls as text. toolspeak makes calls of what its server returns: "
                "19 of 24 tasks right (natively 6)."
            ),
        ),
        (
            (silent("native"), tally("native+rescue", 3, asked=8), tally("hermes", 19)),
            (
                "small: its server shows its calls as text. toolspeak now speaks hermes to it: "
                "19 of 24 tasks right (natively 6)."
            ),
        ),
        (
            (tally("native", 0, failed=True), tally("fenced+example", 19)),
            (
                "small: its server refuses tools. toolspeak now speaks fenced to it, with an example: "
                "19 of 24 tasks right (natively 0)."
            ),
        ),
        ((tally("decision", 19),), "small: toolspeak now asks it for a decision first: 19 of 24 tasks right."),
    ],
)
def test_a_model_that_can_be_helped(tallies: tuple[Tally, ...], verdict: str) -> None:
    found = report(*tallies)
    assert found.verdict == verdict
    assert found.helped


@pytest.mark.parametrize(
    ("form", "does"),
    [
        ("native+care", "toolspeak makes calls of what its server returns, with guardrails"),
        ("hermes+grammar", "toolspeak now speaks hermes to it, with a grammar and guardrails"),
        ("fenced+ex+care", "toolspeak now speaks fenced to it, with an example and guardrails"),
        ("json", "toolspeak now has it answer in JSON, with guardrails"),
    ],
)
def test_what_is_done_beside_is_said(form: str, does: str) -> None:
    assert report(tally(form, 20)).verdict == f"small: {does}: 20 of 24 tasks right."


def test_a_server_without_tools_was_not_asked_for_them_and_is_said_to_have_none() -> None:
    found = replace(report(tally("hermes", 20)), facts=ModelFacts(Support.NONE))
    assert found.verdict == "small: its server has no tools. toolspeak now speaks hermes to it: 20 of 24 tasks right."


def test_a_model_that_cannot_be_helped_is_told_so_with_what_to_do() -> None:
    found = report(tally("native", 0), tally("hermes", 7))
    assert not found.helped
    assert found.worth_keeping, "it is the best there is"
    assert found.verdict.startswith(
        "small: no form makes it call tools reliably. The best is hermes: 7 of 24 tasks right."
    )
    assert "Take a larger model" in found.verdict


def test_a_model_that_never_calls_is_not_helped_by_being_right_where_no_call_is_wanted() -> None:
    found = report(silent("native"), silent("hermes"))
    assert not found.helped
    assert not found.worth_keeping
    assert "no right call in any of the 2 forms" in found.verdict


def test_the_profile_has_all_that_is_needed_later_cap5() -> None:
    profile = report(silent("native"), tally("hermes+example", 19)).profile("2026-11-15", "1.0", "b1234")
    assert (profile.model, profile.endpoint, profile.form) == ("small", "http://127.0.0.1:8080/v1", "hermes+example")
    assert (profile.date, profile.version, profile.fingerprint, profile.tools) == ("2026-11-15", "1.0", "b1234", None)
    assert profile.scores["native"] == Score(6, 24, 0, 0.25)
    assert settings_from(profile.settings) == BY_NAME["hermes+example"].settings
    assert msgspec.json.decode(msgspec.json.encode(profile), type=Profile) == profile


def test_a_native_winner_keeps_what_the_upstream_does() -> None:
    assert report(tally("native", 20)).profile("", "").tools is Support.NATIVE
    leaks = report(silent("native"), tally("native+rescue", 20)).profile("", "")
    assert (leaks.tools, leaks.settings) == (Support.LEAKS, {})
