"""Examines one model from the first look to the saved profile; the command and the dashboard both use it.

checkup = await prepare_checkup(route, DoctorOptions(quick=True), folder)      the facts, the forms, what is known
await checkup.examination.run(tell, until)                                     the tasks; may be cancelled between two
found = checkup.finish()                                                       the profile is saved, if one won
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Final

from toolspeak.doctor.call_forms import NO_PROFILE, WITH_TOOLS, DoctorForm, candidates, forms_by_name
from toolspeak.doctor.examination import Examination, ServerFacts, forms_for, gather_facts
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.results import Results
from toolspeak.doctor.suite import FULL, QUICK, SUITE_VERSION, Trial
from toolspeak.engine.settings import Mode
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.profiles import settings_said

QUICK_MINUTES: Final = 3.0
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What to test. An empty model means the default one; no forms means those that suit the model."""

    model: str = ""
    forms: tuple[str, ...] = ()
    quick: bool = False
    save: bool = True
    minutes: float | None = None
    """After how many minutes to stop between two tasks; None for `QUICK_MINUTES` if it is quick, else no limit."""
    fresh: bool = False
    """Forget what an unfinished trial has found."""

    def deadline(self, now: float) -> float:
        """Return the time at which to stop, in monotonic seconds."""
        return now + (self.minutes or (QUICK_MINUTES if self.quick else inf)) * _MINUTE


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The facts about a model, the report on its forms, and where the profile is saved or why it is not."""

    looked: ServerFacts
    report: DoctorReport
    saved: Path | None = None
    not_saved: str = ""
    """The reason, if `saved` is None."""
    overridden: tuple[str, ...] = ()
    """Settings of the user that override the profile."""
    removed: bool = False
    """The saved profile was deleted, because the model does better without it."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """A model that is ready to be examined."""

    route: Route
    """With the facts of the probe."""
    options: DoctorOptions
    looked: ServerFacts
    forms: tuple[DoctorForm, ...]
    trial: Trial
    results: Results
    known: int
    """How many answers of an unfinished trial are not asked again."""
    examination: Examination
    clock: Clock = CLOCK

    def finish(self) -> Diagnosis:
        """Save the profile, if a form won. The results of a trial that is decided are forgotten."""
        report = self.examination.report
        if report.decided:
            self.results.clear()
        found = self._saved(Diagnosis(self.looked, report))
        # A quick trial, or one of some forms only, does not answer what a whole one would.
        is_whole = not (self.options.quick or self.options.forms)
        if report.decided and is_whole and not found.not_saved:
            self.results.conclude(report.verdict)
        return found

    def _saved(self, found: Diagnosis) -> Diagnosis:
        """Return the diagnosis with the path of the profile, or with the reason why it is not saved."""
        winner, profiles = found.report.winner, self.route.profiles
        if winner is None:
            return found
        if not self.options.save:
            return replace(found, not_saved="--no-save")
        if not profiles.on:
            return replace(found, not_saved="your configuration turns profiles off, or has settings for this model")
        if winner.form is NO_PROFILE:
            profiles.remove(self.route.model)
            if profiles.of(self.route.model).profile is None:
                return replace(found, removed=True)
            # Else the profile that ships with toolspeak would be used from now on: one without settings overrides it.
        today = datetime.fromtimestamp(self.clock.seconds(), UTC).date().isoformat()
        profile = found.report.profile(today, version("toolspeak"), found.looked.fingerprint)
        try:
            return replace(found, saved=profiles.keep(profile), overridden=overridden_by_user(self.route, winner.form))
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            return replace(found, not_saved=f"cannot write{where}: {error.strerror or error}")


async def prepare_checkup(route: Route, options: DoctorOptions, folder: Path | None, clock: Clock = CLOCK) -> Checkup:
    """Gather the facts about a model, and choose the forms to try.

    `folder` keeps the answers of an unfinished trial; None for none. Raises `ValueError` for a form that is unknown.
    """
    wanted = forms_by_name(options.forms, candidates(route.facts))
    looked = await gather_facts(route)
    measured = replace(route, facts=looked.facts)
    forms = tuple(wanted or forms_for(measured, quick=options.quick))
    trial = QUICK if options.quick else FULL
    results = _results(measured, looked.fingerprint, folder)
    if options.fresh:
        results.clear()
    known = results.load()
    examination = Examination(measured, forms, trial, results, clock)
    return Checkup(measured, options, looked, forms, trial, results, known, examination, clock)


def is_trial_decided(route: Route, fingerprint: str, folder: Path | None) -> bool:
    """Return whether a whole trial of a model on this server, by this version, has come to its end."""
    return _results(route, fingerprint, folder).is_concluded


def _results(route: Route, fingerprint: str, folder: Path | None) -> Results:
    subject = (route.profiles.endpoint, route.model, fingerprint, version("toolspeak"), SUITE_VERSION)
    return Results(folder, subject, route.plan(WITH_TOOLS))


def results_folder(profiles: Path | None) -> Path | None:
    """Return where unfinished trials are kept, beside the folder of profiles."""
    return profiles.parent / "doctor" if profiles else None


def overridden_by_user(route: Route, form: DoctorForm) -> tuple[str, ...]:
    """Return the user's settings that differ from the profile, and so override it."""
    said, profile = settings_said(route.settings), settings_said(form.settings)
    other = {name: value for name, value in said.items() if name in profile and profile[name] != value}
    return tuple(f"{name} = {value}" for name, value in other.items() if value != Mode.AUTO)
