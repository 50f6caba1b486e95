"""What is shown before the first task."""

import asyncio
from pathlib import Path

from toolspeak.doctor.look import Finding, look
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.facts.profile import Profile
from toolspeak.runtime.directory import Route
from toolspeak.runtime.profiles import Profiles
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream

UPSTREAM = AsyncScriptedUpstream(ScriptedUpstream())


def test_of_an_unknown_model_nothing_is_known() -> None:
    looked = asyncio.run(look(Route("box", UPSTREAM, "m")))
    assert looked.findings == (Finding("tools", "nothing is known"),)


def test_what_is_known_is_said_and_the_old_profile_too(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path, "http://h/v1")
    profiles.keep(Profile("m", "http://h/v1", "hermes", date="2026-11-15"))
    facts = ModelFacts(Support.LEAKS, "hermes", context_tokens=4096)
    looked = asyncio.run(look(Route("box", UPSTREAM, "m", facts, profiles=profiles)))
    assert looked.findings == (
        Finding("tools", "the server has tool calling, and returns some calls as text"),
        Finding("dialect", "hermes"),
        Finding("context", "4096 tokens"),
        Finding("profile", "hermes, measured 2026-11-15", "will be replaced"),
    )
    assert looked.facts is facts
