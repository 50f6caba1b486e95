"""Run the doctor: look, try all forms, keep the winner."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from toolspeak.cli._doctor_text import first_lines
from toolspeak.cli._trying import Trying
from toolspeak.cli.failure_hints import hinted
from toolspeak.cli.terminal import Paint
from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config
from toolspeak.doctor.examine import examine
from toolspeak.doctor.forms import candidates, named
from toolspeak.doctor.look import Looked, look
from toolspeak.doctor.suite import PARTS
from toolspeak.doctor.verdict import Report
from toolspeak.engine.plan import Mode
from toolspeak.errors import UpstreamFailed
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import Route
from toolspeak.runtime.profiles import settings_said
from toolspeak.runtime.transport import HttpTransport


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person said; no model is the default one, no forms are those that fit."""

    model: str = ""
    forms: tuple[str, ...] = ()
    quick: bool = False
    save: bool = True


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found, where it is kept, or why it is not."""

    looked: Looked
    report: Report
    kept: Path | None = None
    why_not: str = ""
    stronger: tuple[str, ...] = ()
    """Settings of the configuration that are heard before the profile."""


async def diagnose(config: Config, wishes: Wishes, paint: Paint, *, quiet: bool = False) -> Diagnosis:
    """Examine one model; raises `UpstreamFailed`."""
    transport = HttpTransport()
    try:
        directory = assemble(config, transport)
        route = await (directory.exactly(wishes.model) if wishes.model else directory.find(""))
        return await _diagnosed(route, wishes, Trying(paint, sees=not quiet))
    except UpstreamFailed as error:
        raise hinted(error) from None
    finally:
        await transport.close()


async def _diagnosed(route: Route, wishes: Wishes, trying: Trying) -> Diagnosis:
    wished = named(wishes.forms, candidates(route.facts))
    looked = await look(route)
    forms, parts = wished or candidates(looked.facts, quick=wishes.quick), PARTS[:1] if wishes.quick else PARTS
    for line in first_lines(route, looked.findings, forms, parts, trying.paint) if trying.sees else ():
        click.echo(line, err=True)
    try:
        report = await examine(replace(route, facts=looked.facts), forms, parts, trying.tell)
    finally:
        trying.end()
    return _kept(route, Diagnosis(looked, report), wishes)


def _kept(route: Route, found: Diagnosis, wishes: Wishes) -> Diagnosis:
    """Keep the profile, unless there is none or nobody would hear it."""
    if not found.report.worth_keeping:
        return replace(found, why_not="there is nothing to keep")
    if not wishes.save:
        return replace(found, why_not="--no-save")
    if not route.profiles.on:
        return replace(found, why_not="your configuration switches profiles off, or describes this model itself")
    today = datetime.fromtimestamp(CLOCK.seconds(), UTC).date().isoformat()
    profile = found.report.profile(today, version("toolspeak"), found.looked.fingerprint)
    try:
        return replace(found, kept=route.profiles.keep(profile), stronger=_stronger(route, found.report))
    except OSError as error:
        return replace(found, why_not=f"it cannot be written: {error.strerror or error}")


def _stronger(route: Route, report: Report) -> tuple[str, ...]:
    """Return what the user's own settings say otherwise."""
    said, profile = settings_said(route.settings), settings_said(report.winner.form.profile)
    other = {name: value for name, value in said.items() if name in profile and profile[name] != value}
    return tuple(f"{name} = {value}" for name, value in other.items() if value != Mode.AUTO)
