"""What a trial came to, in words with figures, and as a profile (CAP-5, CAP-9)."""

from dataclasses import replace

import msgspec
import pytest

from toolspeak.doctor.call_forms import FORMS, NO_PROFILE, TODAY, DoctorForm
from toolspeak.doctor.report import DoctorReport, form_text
from toolspeak.doctor.suite import FULL
from toolspeak.doctor.task import TaskResult
from toolspeak.doctor.tournament import Standing, Tally, TrialEnd, compare
from toolspeak.facts.model import Profile, Score, Support
from toolspeak.runtime.profiles import settings_from

BY_NAME = {form.name: form for form in FORMS}


def tally(form: DoctorForm, right: int, asked: int = 33) -> Tally:
    """Return a form whose first tasks are right."""
    found = Tally(form)
    for at, task in enumerate(FULL.confirmation[:asked]):
        found.add(task, TaskResult(right=at < right))
    return found


def report(today: int, new: int, end: TrialEnd, form: str = "hermes", asked: int = 33) -> DoctorReport:
    now, other = tally(TODAY, today, asked), tally(BY_NAME[form], new, asked)
    return DoctorReport("small", "http://127.0.0.1:8080/v1", Standing(now, (other,), end, other, compare(other, now)))


def test_a_better_form_is_told_with_the_figures_that_it_rests_on_cap9() -> None:
    assert report(6, 30, TrialEnd.BETTER).verdict == (
        "small: toolspeak now speaks hermes to it: 30 of 33 tasks right, with what you had 6 of 33 tasks right. "
        "Of 33 tasks that only compare the two, 24 came out right only with hermes and 0 only with what you had: "
        "by chance that has a probability of under 0.01 %."
    )


def test_nothing_better_is_said_plainly_with_the_figures_cap9() -> None:
    found = report(25, 28, TrialEnd.CHANCE)
    assert found.verdict == (
        "small: nothing better beyond chance was found; nothing was changed. "
        "What you have today: 25 of 33 tasks right. "
        "Of 33 tasks that only compare the two, 3 came out right only with hermes and 0 only with what you have: by "
        "chance that has a probability of 12 %."
    )
    assert found.winner is None
    assert found.helped, "what the user has works"
    with pytest.raises(ValueError, match="no winner"):
        found.profile("", "")


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (TrialEnd.TAKES_CALLS, "Not kept: a guardrail took a right call away."),
        (TrialEnd.UNSEEN_HARM, "were tried on fewer than 29 tasks with calls."),
        (TrialEnd.PLAIN_WORSE, "Not kept: it is worse on plain requests."),
    ],
)
def test_why_the_best_form_is_not_kept_is_said_cap9(end: TrialEnd, why: str) -> None:
    found = report(6, 30, end)
    assert found.winner is None
    assert found.verdict.endswith(f"{why} {found.verdict.split(why + ' ')[-1]}")
    assert "nothing was changed" in found.verdict


def test_an_unfinished_trial_says_the_best_so_far_cap10() -> None:
    assert report(1, 4, TrialEnd.OPEN, asked=5).verdict == (
        "small: not decided yet. What you have today: 1 of 5 tasks right. "
        "The best other form so far is hermes: 4 of 5 tasks right."
    )


def test_a_model_that_never_calls_is_told_what_to_do() -> None:
    found = report(0, 0, TrialEnd.NO_RIVAL)
    assert not found.helped
    assert "it makes no right call in any form; nothing better beyond chance was found" in found.verdict
    assert "Take a larger model" in found.verdict


@pytest.mark.parametrize(
    ("form", "does"),
    [
        ("native+rescue", "toolspeak makes calls of what its server returns"),
        ("hermes+care", "toolspeak now speaks hermes to it, with guardrails"),
        ("hermes+grammar", "toolspeak now speaks hermes to it, with a grammar and guardrails"),
        ("fenced+example", "toolspeak now speaks fenced to it, with an example"),
        ("json", "toolspeak now has it answer in JSON"),
        ("decision", "toolspeak now asks it for a decision first"),
    ],
)
def test_what_is_done_beside_is_said(form: str, does: str) -> None:
    assert form_text(BY_NAME[form]) == does
    assert form_text(NO_PROFILE) == "it does better without its saved profile"


def test_the_profile_has_all_that_is_needed_later_cap5() -> None:
    profile = report(6, 30, TrialEnd.BETTER, "hermes+example").profile("2026-11-15", "1.0", "b1234")
    assert (profile.model, profile.endpoint, profile.form) == ("small", "http://127.0.0.1:8080/v1", "hermes+example")
    assert (profile.date, profile.version, profile.fingerprint, profile.tools) == ("2026-11-15", "1.0", "b1234", None)
    assert profile.scores["today"] == Score(6, 33, 0, 0.182)
    assert settings_from(profile.settings) == BY_NAME["hermes+example"].settings
    assert msgspec.json.decode(msgspec.json.encode(profile), type=Profile) == profile


def test_a_native_winner_keeps_what_the_upstream_does() -> None:
    leaks = report(6, 30, TrialEnd.BETTER, "native+rescue").profile("", "")
    assert (leaks.tools, leaks.settings) == (Support.LEAKS, {"mode": "auto"})


def test_a_report_without_a_rival_names_none() -> None:
    standing = Standing(tally(TODAY, 30, 33), (), TrialEnd.NO_RIVAL)
    found = replace(report(1, 1, TrialEnd.NO_RIVAL), standing=standing)
    assert found.verdict.endswith("No form was ahead of it after 33 tasks.")
