"""Profiles that `toolspeak doctor` has kept: one small JSON file for each model of each endpoint.

    ~/.local/state/toolspeak/profiles/3f0c….json

A file is looked at when its model is asked for, and again after some seconds, so that a gateway which runs takes up
what a doctor finds. A file that cannot be read, or is about something else, counts for nothing but a warning.
"""

import logging
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.engine.plan import NOTHING_SAID, Mode, Plan, Settings
from toolspeak.facts.model import ModelFacts, Source, Support, without_latest
from toolspeak.facts.profile import FORMAT, Profile, Setting
from toolspeak.runtime.clock import CLOCK, Clock

FRESH: Final = 5.0
"""Seconds for which a file is not looked at again."""
LARGEST: Final = 64 * 1024
_MOST, _DIGITS = 4096, 32
_LEFT_OUT: Final = "the profile %s of %s is left out: %s"
_OTHER: Final = "the profile of %s at %s is left out: its server is another one since then; run the doctor again"
_LOG: Final = logging.getLogger(__name__)
_decode = msgspec.json.Decoder(Profile).decode


@dataclass(frozen=True, slots=True)
class Measured:
    """What a profile says to a plan."""

    profile: Profile | None = None
    settings: Settings = NOTHING_SAID
    tools: Support | None = None

    def facts(self, facts: ModelFacts) -> ModelFacts:
        """Return the facts with what was measured: it beats tables."""
        if self.profile is not None:
            facts = facts.with_constraint(self.profile.constraint)
        return facts if self.tools is None else facts.with_tools(self.tools, Source.MEASURED)

    def under(self, said: Settings) -> Settings:
        """Return what was said, and what was measured where nothing was: `auto` leaves the mode to us (MODE-5)."""
        if self.profile is None:
            return said
        return (replace(said, mode=None) if said.mode is Mode.AUTO else said).over(self.settings)

    def noted(self, plan: Plan, said: Settings) -> Plan:
        """Say in the plan that it is the profile's, if it is."""
        decides = self.tools is not None or self.settings.mode is not None
        if self.profile is None or not decides or said.chat or said.mode not in (None, Mode.AUTO):
            return plan
        return replace(plan, why=f"{self.profile.form} did best with this model (doctor, {self.profile.date})")


NOT_MEASURED: Final = Measured()


class Profiles:
    """The profiles of one endpoint's models. Without a folder there are none."""

    def __init__(self, folder: Path | None = None, endpoint: str = "", clock: Clock = CLOCK) -> None:
        """Look at nothing yet."""
        self._folder: Final = folder
        self.endpoint: Final = endpoint
        self._clock: Final = clock
        self._known: Final[dict[str, _Seen]] = {}
        self._others: Final[dict[str, str]] = {}
        """Fingerprints of other servers than those measured, by model: each was logged once."""

    @property
    def on(self) -> bool:
        """Return whether profiles are heard here."""
        return self._folder is not None

    def of(self, model: str) -> Measured:
        """Return what was measured."""
        if self._folder is None:
            return NOT_MEASURED
        now, seen = self._clock.monotonic(), self._known.get(model)
        if seen is None or now >= seen.until:
            seen = self._looked(model, seen, now)
            if len(self._known) >= _MOST and model not in self._known:
                self._known.pop(next(iter(self._known)))
            self._known[model] = seen
        return seen.measured

    def heard(self, model: str, fingerprint: str) -> Measured:
        """Return what counts: nothing, if the server is known to be another one than that which was measured."""
        found = self.of(model)
        known = found.profile.fingerprint if found.profile is not None else ""
        if not known or fingerprint in ("", known):
            return found
        if self._others.get(model) != fingerprint:
            self._others[model] = fingerprint
            _LOG.warning(_OTHER, ascii(model), self.endpoint)
        return NOT_MEASURED

    def keep(self, profile: Profile) -> Path:
        """Write a profile: whole or not at all, whoever else writes. Raises `OSError`."""
        if self._folder is None:
            raise FileNotFoundError("there is no folder for profiles")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(self._folder, profile.model)
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=path.stem, suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(profile), indent=2) + b"\n")
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
        self._known.pop(profile.model, None)
        return path

    def _looked(self, model: str, seen: "_Seen | None", now: float) -> "_Seen":
        path = self._path(self._folder or Path(), model)
        stamp = _stamp(path)
        if seen is not None and stamp == seen.stamp:
            return replace(seen, until=now + FRESH)
        return _Seen(_read(path, self.endpoint, without_latest(model)) if stamp else NOT_MEASURED, stamp, now + FRESH)

    def _path(self, folder: Path, model: str) -> Path:
        name = sha256(f"{self.endpoint} {without_latest(model)}".encode()).hexdigest()[:_DIGITS]  # no URL has a blank
        return folder / f"{name}.json"


NO_PROFILES: Final = Profiles()


def settings_from(said: Mapping[str, object]) -> Settings:
    """Read settings by their names; those of another version of toolspeak are left out. Raises `ValueError`."""
    return msgspec.convert(dict(said), Settings)


def settings_said(settings: Settings) -> dict[str, Setting]:
    """Write the settings that say something."""
    said = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Seen:
    measured: Measured
    stamp: tuple[int, ...]
    """Of the file: another one is another content. Empty if there is none."""
    until: float


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _read(path: Path, endpoint: str, model: str) -> Measured:
    try:
        profile = _decode(_body(path))
        if problem := _foreign(profile, endpoint, model):
            _LOG.warning(_LEFT_OUT, path, model, problem)
            return NOT_MEASURED
        return Measured(profile, settings_from(profile.settings), profile.tools)
    except (OSError, ValueError) as error:
        _LOG.warning(_LEFT_OUT, path, model, error)
        return NOT_MEASURED


def _body(path: Path) -> bytes:
    with path.open("rb") as file:
        body = file.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise ValueError(f"it is over {LARGEST} bytes")
    return body


def _foreign(profile: Profile, endpoint: str, model: str) -> str | None:
    """Return why a profile is none of ours."""
    if profile.format != FORMAT:
        return f"its format is {profile.format}, and {FORMAT} is read here"
    if (profile.endpoint, without_latest(profile.model)) != (endpoint, model):
        return f"it is about {profile.model!r} at {profile.endpoint!r}"
    return None
