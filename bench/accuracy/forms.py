"""The forms, each with a name, and how it is asked.

native                      tools are sent, `tool_calls` are read, nothing else
native+rescue               the same, and calls that stand in the text are read too
seed decision, …            what others describe (seeds.py)
forge, forge respond        the peer, as a proxy before the same server (forge.py)
hermes, fenced, decision …  ours: a dialect that the tools are taught in
hermes few_shot retries=0   ours with switches: any field of `Settings`, true if it has no value
hermes guardrails           ours with all three guardrails; `confirm_tool_fit=false` after it leaves one out
hermes care                 ours with the guardrail that takes no call away
default                     ours out of the box: with the profile that ships with toolspeak, if there is one
auto                        ours with the profile that `toolspeak doctor` has kept, or else as `default`
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import toolspeak
from bench.accuracy import seeds
from bench.accuracy.speak import PRESET, Ours, Speaker, Where
from bench.gateway.install import VERSIONS
from toolspeak import dialects
from toolspeak.doctor.call_forms import CARE
from toolspeak.engine.guardrails import GUARDRAILS
from toolspeak.engine.settings import Settings
from toolspeak.facts.model import Support
from toolspeak.facts.shipped import shipped_profile

SOURCE = Path(toolspeak.__file__).parent
ROOMS = ("dialects", "engine", "facts", "text", "toolset", "wires", "ir")
"""What decides how our forms speak and read."""
SEEDS = {"seed decision": seeds.Decision, "seed json action": seeds.Action, "seed inline": seeds.Inline}
FORGE = {"forge": (), "forge respond": ("--inject-respond-tool",)}
BASES: dict[str, dict[str, Any]] = {
    "native": {"mode": "off"},
    "native+rescue": {"mode": "auto", "retries": 0},
    "default": {},
    "auto": {},
    "decision": {"mode": "force", "strategy": "decision"},
}
"""The first word of our forms; any other is a dialect."""
DIALECTS = ("hermes", "fenced", "llama_json", "inline_json", "pythonic", "qwen_xml", "decision")
SWITCHES = ("few_shot", "answer_tool", "few_shot answer_tool", "retries=0")
NATIVE_SWITCHES = ("retries=0", "rescue=false")
CONSTRAINTS = ("constraint=off", "constraint=text", "constraint=json") if hasattr(Settings, "constraint") else ()
SWITCHED = ("hermes", "fenced")
SEVERAL_SWITCHES = {
    "guardrails": dict.fromkeys(GUARDRAILS, True),
    "care": {name: True for name in GUARDRAILS if getattr(CARE, name)},
}
"""Words for several switches at once."""
GUARDED = ("hermes guardrails", "hermes care", *(f"hermes guardrails {name}=false" for name in GUARDRAILS))
FORMS = (
    "native",
    "native+rescue",
    *SEEDS,
    *FORGE,
    "default",
    *(f"default {switch}" for switch in NATIVE_SWITCHES),
    *DIALECTS,
    *GUARDED,
    *(f"{base} {switch}" for base in SWITCHED for switch in (*SWITCHES, *CONSTRAINTS)),
    "auto",
)


@dataclass(frozen=True, slots=True)
class Form:
    """A way to ask. `version` changes whenever its questions or its reading may have changed."""

    name: str
    version: str
    settings: Settings | None = None
    tools: Support = Support.UNKNOWN

    @property
    def code(self) -> str:
        """Return which code of ours speaks; lines of two codes do not belong into one table."""
        return "" if self.name in SEEDS or self.name in FORGE else code_version()

    def speaker(self, where: Where) -> Speaker:
        """Return who asks in this form."""
        if self.name in SEEDS:
            return SEEDS[self.name](where)
        return Ours(where, self.settings or Settings(), self.tools)


@dataclass(frozen=True, slots=True)
class KnownProfiles:
    """What is known of a model before it is asked, as settings and support for tools."""

    shipped: dict[str, Any] | None = None
    kept: dict[str, Any] | None = None
    """By the doctor."""

    def of(self, form: str) -> dict[str, Any]:
        """Return the profile that a form uses; most use none."""
        base = form.split(maxsplit=1)[0]
        if base == "auto":
            return self.kept or self.shipped or {}
        return (self.shipped or {}) if base == "default" else {}


NO_PROFILES = KnownProfiles()


def forms(patterns: Sequence[str], profiles: KnownProfiles = NO_PROFILES) -> list[Form]:
    """Return the forms of these names; a pattern that fits none must be one of our forms with its switches."""
    known = [name for name in FORMS if name != "auto" or profiles.of(name)]
    chosen: dict[str, None] = {}
    for pattern in patterns or ["*"]:
        fitting = [name for name in known if fnmatchcase(name, pattern)]
        chosen |= dict.fromkeys(fitting or [pattern])
    return [form_of(name, profiles) for name in chosen]


def form_of(name: str, profiles: KnownProfiles = NO_PROFILES) -> Form:
    """Make a form of its name."""
    if name in SEEDS:
        return Form(name, _digest(Path(seeds.__file__)))
    if name in FORGE:
        return Form(name, VERSIONS["forge"])
    profile = profiles.of(name)
    said = {**profile.get("settings", {}), **settings_said(name)}
    tools = Support(profile.get("tools") or Support.UNKNOWN)
    version = _digest_of(json.dumps([said, tools], sort_keys=True), code_version())
    return Form(name, version, msgspec.convert(said, Settings), tools)


def profiles_of(model: str, file: Path | None = None) -> KnownProfiles:
    """Return the shipped profile of a model, and the one that `toolspeak doctor` kept last, or that of this file."""
    found = [file] if file else sorted(_profiles().glob("*.json"), key=lambda path: -path.stat().st_mtime)
    read: list[dict[str, Any]] = [json.loads(path.read_text()) for path in found]
    kept = next((profile for profile in read if file or profile.get("model") == model), None)
    shipped = shipped_profile(model, PRESET)
    return KnownProfiles(asdict(shipped) if shipped else None, kept)


def _profiles() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "toolspeak" / "profiles"


def settings_said(name: str) -> dict[str, Any]:
    """Read the settings out of a form's name."""
    base, *switches = name.split()
    if base not in BASES and base not in dialects.names():
        raise SystemExit(f"form {name!r}: {base!r} is none of {', '.join(BASES)} and no dialect; see --list")
    said: dict[str, Any] = dict(BASES.get(base, {"mode": "force", "dialect": base}))
    known = {field.name for field in fields(Settings)}
    for switch in switches:
        key, _, value = switch.partition("=")
        if switch in SEVERAL_SWITCHES:
            said |= SEVERAL_SWITCHES[switch]
            continue
        if key not in known:
            raise SystemExit(f"form {name!r}: {key!r} is none of {', '.join(sorted(known))}")
        said[key] = _value(value or "true")
    return said


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@cache
def code_version() -> str:
    """Return what changes with the code that speaks and reads."""
    files = [file for room in ROOMS for file in sorted((SOURCE / room).rglob("*")) if file.suffix in (".py", ".json")]
    return _digest(*files)


def _digest(*files: Path) -> str:
    return _digest_of(*(file.read_text() for file in files))


def _digest_of(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
