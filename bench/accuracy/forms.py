"""The forms, each with a name, and how it is asked.

native                      tools are sent, `tool_calls` are read, nothing else
native+rescue               the same, and calls that stand in the text are read too
seed decision, …            what others describe (seeds.py)
forge, forge respond        the peer, as a proxy before the same server (forge.py)
hermes, fenced, decision …  ours: a dialect that the tools are taught in
hermes few_shot retries=0   ours with switches: any field of `Settings`, true if it has no value
hermes guardrails           ours with all five guardrails; `confirm_tool_fit=false` after it leaves one out
default                     ours, when nobody has said anything
auto                        ours with the profile that `toolspeak doctor` has kept
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import toolspeak
from bench.accuracy import seeds
from bench.accuracy.speak import Ours, Speaker, Where
from bench.gateway.install import VERSIONS
from toolspeak import dialects
from toolspeak.engine.guardrails import GUARDRAILS
from toolspeak.engine.settings import Settings
from toolspeak.facts.model import Support

SOURCE = Path(toolspeak.__file__).parent
ROOMS = ("dialects", "engine", "facts", "text", "toolset", "wires", "ir")
"""What decides how our forms speak and read."""
SEEDS = {"seed decision": seeds.Decision, "seed json action": seeds.Action, "seed inline": seeds.Inline}
FORGE = {"forge": (), "forge respond": ("--inject-respond-tool",)}
BASES: dict[str, dict[str, Any]] = {
    "native": {"mode": "off"},
    "native+rescue": {"mode": "auto", "retries": 0},
    "default": {},
    "decision": {"mode": "force", "strategy": "decision"},
}
"""The first word of our forms; any other is a dialect."""
DIALECTS = ("hermes", "fenced", "llama_json", "inline_json", "pythonic", "qwen_xml", "decision")
SWITCHES = ("few_shot", "answer_tool", "few_shot answer_tool", "retries=0")
NATIVE_SWITCHES = ("retries=0", "rescue=false")
CONSTRAINTS = ("constraint=off", "constraint=text", "constraint=json") if hasattr(Settings, "constraint") else ()
SWITCHED = ("hermes", "fenced")
FORMS = (
    "native",
    "native+rescue",
    *SEEDS,
    *FORGE,
    "default",
    *(f"default {switch}" for switch in NATIVE_SWITCHES),
    *DIALECTS,
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


def forms(patterns: Sequence[str], profile: dict[str, Any] | None = None) -> list[Form]:
    """Return the forms of these names; a pattern that fits none must be one of our forms with its switches."""
    known = [name for name in FORMS if name != "auto" or profile is not None]
    chosen: dict[str, None] = {}
    for pattern in patterns or ["*"]:
        fitting = [name for name in known if fnmatchcase(name, pattern)]
        chosen |= dict.fromkeys(fitting or [pattern])
    return [form_of(name, profile) for name in chosen]


def form_of(name: str, profile: dict[str, Any] | None = None) -> Form:
    """Make a form of its name."""
    if name in SEEDS:
        return Form(name, _digest(Path(seeds.__file__)))
    if name in FORGE:
        return Form(name, VERSIONS["forge"])
    kept = profile or {}
    said = settings_said(name) if name != "auto" else kept.get("settings", {})
    tools = Support((kept.get("tools") if name == "auto" else None) or Support.UNKNOWN)
    version = _digest_of(json.dumps([said, tools], sort_keys=True), code_version())
    return Form(name, version, msgspec.convert(said, Settings), tools)


def profile_of(model: str, file: Path | None = None) -> dict[str, Any] | None:
    """Return what `toolspeak doctor` has kept of a model: the newest profile, or the one in this file."""
    found = [file] if file else sorted(_profiles().glob("*.json"), key=lambda path: -path.stat().st_mtime)
    read: list[dict[str, Any]] = [json.loads(path.read_text()) for path in found]
    return next((profile for profile in read if file or profile.get("model") == model), None)


def _profiles() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "toolspeak" / "profiles"


def settings_said(name: str) -> dict[str, Any]:
    """Read the settings out of a form's name."""
    base, *switches = name.split()
    if base not in BASES and base not in dialects.names():
        raise SystemExit(f"form {name!r}: {base!r} is none of {', '.join(BASES)} and no dialect; see --list")
    said: dict[str, Any] = dict(BASES.get(base) or {"mode": "force", "dialect": base}) if base != "default" else {}
    known = {field.name for field in fields(Settings)}
    for switch in switches:
        key, _, value = switch.partition("=")
        if switch == "guardrails":
            said |= dict.fromkeys(GUARDRAILS, True)
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
