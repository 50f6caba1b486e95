"""What is shown before the first task."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from typing_extensions import override

from toolspeak import wires
from toolspeak.doctor.examination import ServerFact, gather_facts
from toolspeak.engine.verdict import NOTHING_MEASURED
from toolspeak.facts.model import ModelFacts, Profile, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.directory import Route
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.profiles import Profiles
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream

UPSTREAM = AsyncScriptedUpstream(ScriptedUpstream())


def test_of_an_unknown_model_nothing_is_known() -> None:
    looked = asyncio.run(gather_facts(Route("box", UPSTREAM, "m")))
    assert looked.findings == (ServerFact("tools", "nothing is known"),)


def test_what_is_known_is_said_and_the_old_profile_too(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path, "http://h/v1")
    profiles.keep(Profile("m", "http://h/v1", "hermes", date="2026-11-15"))
    facts = ModelFacts(Support.LEAKS, "hermes", context_tokens=4096)
    looked = asyncio.run(gather_facts(Route("box", UPSTREAM, "m", facts, profiles=profiles)))
    assert looked.findings == (
        ServerFact("tools", "the server has tool calling, and returns some calls as text"),
        ServerFact("dialect", "hermes"),
        ServerFact("context", "4096 tokens"),
        ServerFact("profile", "hermes (doctor, 2026-11-15)", "part of what you have today"),
    )
    assert looked.facts is facts


class Box(HttpUpstream):
    """A llama.cpp without a network, which shows tools to its model."""

    def __init__(self) -> None:
        super().__init__(HttpTransport(), wires.load("openai_chat"), UpstreamAddress("http://h/v1", ()))
        self.asked = 0

    @override
    async def get(self, path: str, body: bytes = b"") -> bytes:
        if path == "models":
            return b'{"data": [{"id": "m", "owned_by": "llamacpp"}]}'
        if path == "/props":
            return b'{"default_generation_settings": {"n_ctx": 512}, "chat_template": "tools", "build_info": "b1"}'
        raise TransportError(Failure(FailureKind.NOT_FOUND, "no such page", 404))

    @override
    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        self.asked += 1
        yield [TextDelta("Hi"), Finished(StopReason.END, Usage(90 if request.tools else 30, 1))]


def test_what_the_server_tells_is_shown_and_counts_for_the_forms_cap5() -> None:
    box = Box()
    route = Route("box", box, "m")
    looked = asyncio.run(gather_facts(route))
    assert box.asked == 2, "calls are what the tasks ask for"
    assert [(found.about, found.source) for found in looked.findings] == [
        *(("tools", ""), ("probe", "metadata"), ("probe", "tokens"), ("server", ""), ("form", ""), ("context", ""))
    ]
    assert (looked.facts.context_tokens, looked.facts.quirks.constraint) == (512, ConstraintForm.LLAMACPP)
    assert looked.fingerprint
    assert route.learned.verdict("m") is NOTHING_MEASURED, "a look changes nothing"
