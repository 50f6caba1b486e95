"""Stores the profiles that `toolspeak doctor` measures: one small JSON file for each model of each endpoint.

    ~/.local/state/toolspeak/profiles/3f0c….json

A file is read when its model is requested, and checked again after some seconds, so that a running gateway applies what
the doctor finds. A file that is unreadable, or about another model, is ignored with a warning. A model without a file
gets the profile that ships with toolspeak, if there is one for it on this kind of server (CAP-12).
"""

import logging
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.engine.plan import Plan
from toolspeak.engine.settings import NOTHING_SAID, Mode, Settings
from toolspeak.facts.model import FORMAT, ModelFacts, Profile, Setting, Source, Support, without_latest
from toolspeak.facts.shipped import shipped_profile
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.profile_watch import ProfileWatch, WatchedTurn

FRESH: Final = 5.0
"""Seconds for which a file is not checked again: a `stat` for every request would be wasted."""
LARGEST: Final = 64 * 1024
"""Bytes of a profile; a larger file is ignored."""
_MOST, _DIGITS = 4096, 32
"""Models in memory, since clients choose the names; hex digits of a file name."""
_LEFT_OUT: Final = "the profile %s of %s is left out: %s"
_OTHER: Final = "the profile of %s at %s is left out: its server is another one since then; run the doctor again"
_LOG: Final = logging.getLogger(__name__)
_decode = msgspec.json.Decoder(Profile).decode


@dataclass(frozen=True, slots=True)
class Measured:
    """The part of a profile that a plan uses. Without a profile all methods return their arguments."""

    profile: Profile | None = None
    settings: Settings = NOTHING_SAID
    tools: Support | None = None
    stamp: str = ""
    """Changes with the file."""

    def facts(self, facts: ModelFacts) -> ModelFacts:
        """Return the facts with the measured values, which override the built-in tables."""
        if self.profile is not None:
            facts = facts.with_constraint(self.profile.constraint)
        return facts if self.tools is None else facts.with_tools(self.tools, Source.MEASURED)

    def under(self, said: Settings) -> Settings:
        """Return the user's settings, completed by the measured ones. The mode `auto` counts as not set (MODE-5)."""
        if self.profile is None:
            return said
        return (replace(said, mode=None) if said.mode is Mode.AUTO else said).over(self.settings)

    def noted(self, plan: Plan, said: Settings) -> Plan:
        """Return the plan with the profile as its reason, if the profile decided it."""
        decides = self.tools is not None or self.settings.mode is not None
        if self.profile is None or not decides or said.chat or said.mode not in (None, Mode.AUTO):
            return plan
        return replace(plan, why=f"{self.profile.form} did best with this model ({self.profile.measured})")


NOT_MEASURED: Final = Measured()


def _unknown_server(model: str) -> str:
    """Return that the kind of server is not known."""
    del model
    return ""


class Profiles:
    """The profiles of one endpoint's models. Without a folder there are none."""

    def __init__(
        self,
        folder: Path | None = None,
        endpoint: str = "",
        clock: Clock = CLOCK,
        server_of: Callable[[str], str] = _unknown_server,
    ) -> None:
        """Take the folder of all profiles, and the URL of the endpoint; no file is read yet.

        `server_of` returns the kind of server that has a model, by the name of its preset, as far as it is known.
        """
        self._folder: Final = folder
        self._server_of: Final = server_of
        self.endpoint: Final = endpoint
        self._clock: Final = clock
        self._known: Final[dict[str, _Seen]] = {}
        self._others: Final[dict[str, str]] = {}
        """By model, the last fingerprint that differs from the profile's; it was logged, and is not logged again."""
        self._watch: Final = ProfileWatch(endpoint, clock)

    @property
    def on(self) -> bool:
        """Return whether profiles are used."""
        return self._folder is not None

    def of(self, model: str) -> Measured:
        """Return the model's profile: the doctor's, else the shipped one, else `NOT_MEASURED`. Never raises.

        The file is read again if it has changed.
        """
        if self._folder is None:
            return NOT_MEASURED
        found = self._own(model)
        return found if found.profile is not None else _shipped(model, self._server_of(model))

    def _own(self, model: str) -> Measured:
        now, seen = self._clock.monotonic(), self._known.get(model)
        if seen is None or now >= seen.until:
            seen = self._looked(model, seen, now)
            if len(self._known) >= _MOST and model not in self._known:
                self._known.pop(next(iter(self._known)))
            self._known[model] = seen
        return seen.measured

    def heard(self, model: str, fingerprint: str, tenant: str = "") -> Measured:
        """Return the model's profile, or `NOT_MEASURED` if it is suspended or the server's fingerprint has changed.

        A server that was restarted with another build or chat template may behave otherwise than it was measured. An
        empty fingerprint means that it is not known: then the profile is used.
        """
        found = self.of(model)
        if self._folder is None or found.profile is None:
            return found
        if self._watch.is_suspended(self._watch_path(self._folder, model), found.stamp, tenant):
            return NOT_MEASURED
        known = found.profile.fingerprint
        if not known or fingerprint in ("", known):
            return found
        if self._others.get(model) != fingerprint:
            self._others[model] = fingerprint
            _LOG.warning(_OTHER, ascii(model), self.endpoint)
        return NOT_MEASURED

    def suspension(self, model: str) -> str:
        """Return that the model's profile is suspended, and for whom; empty if it is not."""
        found = self.of(model)
        if self._folder is None or found.profile is None:
            return ""
        return self._watch.suspension(self._watch_path(self._folder, model), found.stamp)

    def note(self, model: str, turn: WatchedTurn, *, used: bool) -> None:
        """Count what a turn shows about calls, with the profile or without it (CAP-11)."""
        if self._folder is not None:
            path = self._watch_path(self._folder, model)
            self._watch.note(path, self.of(model).stamp, used, model, turn)

    def keep(self, profile: Profile) -> Path:
        """Write a profile atomically and return its path. Raises `OSError`.

        A gateway may read the file at any moment and another doctor may write it, so the content is written to a
        temporary file of its own and then renamed.
        """
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

    def remove(self, model: str) -> None:
        """Delete the profile of a model, if there is one. Raises `OSError`."""
        if self._folder is not None:
            self._path(self._folder, model).unlink(missing_ok=True)
        self._known.pop(model, None)

    def _looked(self, model: str, seen: "_Seen | None", now: float) -> "_Seen":
        path = self._path(self._folder or Path(), model)
        stamp = _stamp(path)
        if seen is not None and stamp == seen.stamp:
            return replace(seen, until=now + FRESH)
        found = _read(path, self.endpoint, without_latest(model)) if stamp else NOT_MEASURED
        if found.profile is not None:
            found = replace(found, stamp="-".join(map(str, stamp)))
        return _Seen(found, stamp, now + FRESH)

    def _watch_path(self, folder: Path, model: str) -> Path:
        return self._path(folder, model).with_suffix(".watch")

    def _path(self, folder: Path, model: str) -> Path:
        # a hash: model names have slashes and colons. A URL has no space, so different pairs give different texts.
        name = sha256(f"{self.endpoint} {without_latest(model)}".encode()).hexdigest()[:_DIGITS]
        return folder / f"{name}.json"


NO_PROFILES: Final = Profiles()


@lru_cache(_MOST)
def _shipped(model: str, server: str) -> Measured:
    profile = shipped_profile(model, server) if server else None
    return NOT_MEASURED if profile is None else replace(_measured(profile), stamp=profile.measured)


def _measured(profile: Profile) -> Measured:
    return Measured(profile, settings_from(profile.settings), profile.tools)


def settings_from(said: Mapping[str, object]) -> Settings:
    """Convert settings by name. Unknown names, of another version, are ignored. Raises `ValueError` on a bad value."""
    return msgspec.convert(dict(said), Settings)


def settings_said(settings: Settings) -> dict[str, Setting]:
    """Return the settings that have a value, by name."""
    said = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Seen:
    measured: Measured
    stamp: tuple[int, ...]
    """Time, size and inode of the file; if they are the same, so is the content. Empty if there is no file."""
    until: float
    """When to check the file again, in monotonic seconds."""


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
        return _measured(profile)
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
    """Return why a profile does not apply to this endpoint and model; None if it does."""
    if profile.format != FORMAT:
        return f"its format is {profile.format}, and {FORMAT} is read here"
    if (profile.endpoint, without_latest(profile.model)) != (endpoint, model):
        return f"it is about {profile.model!r} at {profile.endpoint!r}"
    return None
