"""Probes wait for a quiet moment, and share what was found (CAP-4)."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

import pytest
from typing_extensions import override

from testkit.loopback import in_loop
from tests.unit.runtime.test_learned import REFUSED, Stood, turn
from toolspeak import wires
from toolspeak.engine.settings import NOTHING_SAID, Mode, Settings
from toolspeak.engine.verdict import Depth, Verdict
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.cache import SEEN, SOON, Memory, Subject
from toolspeak.runtime.directory import Route
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.learned import OWNER, SHARED, Learned, Quorum
from toolspeak.runtime.prober import COSTS, PATIENCE, QUIET, REQUESTS, WINDOW, Prober
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream

URL = "http://127.0.0.1:8080/v1"
WITH_TOOLS = Request("m", (), (Tool("now"),))


class Slept(Stood):
    """Time passes by sleeping only."""

    @override
    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class Upstream(HttpUpstream):
    """A silent dropper without a network, which notes when it was asked."""

    def __init__(self, clock: Stood, wire: str = "openai_chat") -> None:
        super().__init__(HttpTransport(), wires.load(wire), UpstreamAddress(URL, ()), clock)
        self.pages = {"models": b'{"data": [{"id": "m", "max_model_len": 9}]}'}
        self.looks = 0
        self.away = False
        self.asked: list[float] = []

    @override
    async def get(self, path: str, body: bytes = b"") -> bytes:
        self.looks += 1
        if self.away:
            raise TransportError(Failure(FailureKind.DISCONNECTED, "no connection", 502))
        if path not in self.pages:
            raise TransportError(Failure(FailureKind.NOT_FOUND, "no such page", 404))
        return self.pages[path]

    @override
    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        self.asked.append(self._clock.monotonic())
        yield [TextDelta("Hi"), Finished(StopReason.END, Usage(30, 1))]


@dataclass
class Scene:
    """A route, and what finds out about it."""

    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID
    depth: Depth = Depth.FULL
    requests: int = REQUESTS
    quorum: Quorum = OWNER
    clock: Slept = field(default_factory=Slept)

    def __post_init__(self) -> None:
        self.upstream = Upstream(self.clock)
        self.learned = Learned(self.clock, self.quorum)
        self.route = Route("up", self.upstream, "m", self.facts, self.settings, learned=self.learned)
        self.verdicts = Memory(self.clock)
        self.prober = Prober({"up": self.depth}, self.verdicts, self.clock, requests=self.requests)

    async def consider(self, request: Request = WITH_TOOLS) -> None:
        """Consider the route, and wait until all is done."""
        self.prober.consider(self.route, request)
        while self.prober._running:  # noqa: ASYNC110 # it tells nobody
            await asyncio.sleep(0)


@in_loop
async def test_what_is_found_counts_for_the_next_request_cap4() -> None:
    scene = Scene()
    assert scene.route.known.tools is Support.UNKNOWN
    await scene.consider()
    assert (scene.route.known.tools, scene.route.known.context_tokens) == (Support.NONE, 9)
    assert len(scene.upstream.asked) == 2
    await scene.consider()
    assert len(scene.upstream.asked) == 2, "once is enough"


@in_loop
async def test_nothing_is_probed_that_nobody_would_plan_by_cap4() -> None:
    forced, off, chat = Settings(mode=Mode.FORCE), Settings(mode=Mode.OFF), Settings(chat=True)
    scenes = [Scene(settings=settings) for settings in (forced, off, chat)]
    scenes += [Scene(facts=ModelFacts(tools=Support.NATIVE)), Scene(depth=Depth.OFF)]
    scenes.append(Scene(facts=ModelFacts(Support.NATIVE, source=Source.TABLE), depth=Depth.LOOK))
    for scene in scenes:
        await scene.consider()
        assert scene.upstream.looks == 0
    plain = Scene()
    await plain.consider(Request("m", ()))
    assert plain.upstream.looks == 0


@in_loop
async def test_what_a_table_says_is_measured_and_overruled_cap3() -> None:
    scene = Scene(facts=ModelFacts(Support.NATIVE, source=Source.TABLE))
    await scene.consider()
    assert (scene.route.known.tools, scene.route.known.source) == (Support.NONE, Source.MEASURED)


@in_loop
async def test_after_an_hour_the_same_server_is_looked_at_and_not_asked_again_cap4() -> None:
    scene = Scene()
    await scene.verdicts.keep(Subject(URL, "m"), await probed(scene))
    asked, looks = len(scene.upstream.asked), scene.upstream.looks
    scene.clock.now += SEEN
    await scene.consider()
    assert scene.upstream.looks > looks
    assert len(scene.upstream.asked) == asked
    scene.clock.now += SEEN
    scene.upstream.pages["models"] = b'{"data": [{"id": "m", "max_model_len": 10}]}'
    await scene.consider()
    assert len(scene.upstream.asked) == asked + 2, "another server"
    assert scene.route.known.context_tokens == 10


@in_loop
async def test_a_server_that_is_away_at_its_hourly_look_keeps_its_verdict_cap4() -> None:
    scene = Scene()
    await scene.verdicts.keep(Subject(URL, "m"), await probed(scene))
    asked = len(scene.upstream.asked)
    scene.clock.now += SEEN
    scene.upstream.away = True
    await scene.consider()
    assert scene.route.known.tools is Support.NATIVE
    scene.upstream.away = False
    scene.clock.now += SOON
    await scene.consider()
    assert scene.route.known.tools is Support.NATIVE
    assert len(scene.upstream.asked) == asked, "it is the same server"


async def probed(scene: Scene) -> Verdict:
    """Probe it as native, so that the verdict lasts longer than an hour."""
    found = await scene.prober.probe(scene.route, scene.upstream)
    native = replace(found, tools=Support.NATIVE)
    scene.learned.keep("m", native, SEEN)
    return native


@in_loop
async def test_a_question_waits_until_people_are_served_but_not_for_ever_cap4() -> None:
    scene = Scene()
    began = scene.clock.now
    with scene.prober.serving(scene.route):
        await scene.consider()
    assert scene.upstream.asked[0] - began >= PATIENCE - 0.2
    quiet = Scene()
    with quiet.prober.serving(quiet.route):
        pass
    began = quiet.clock.now
    await quiet.consider()
    first, second = quiet.upstream.asked
    assert QUIET - 0.01 <= first - began < QUIET + 0.2
    assert second == first, "the next one need not wait"


@in_loop
async def test_others_are_told_what_traffic_has_shown_cap4() -> None:
    scene = Scene()
    await scene.consider()
    scene.learned.keep("m", replace(scene.learned.verdict("m"), tools=Support.NATIVE), SEEN)
    scene.learned.note("m", turn(REFUSED))
    await scene.consider()
    shared = await scene.verdicts.find(Subject(URL, "m"))
    assert shared is not None
    assert (shared.tools, shared.why) == (Support.NONE, "a request with tools was refused")


@in_loop
async def test_who_cannot_claim_goes_on_without_and_asks_later_cap4() -> None:
    scene = Scene()
    token = await scene.verdicts.claim(Subject(URL, "m"))
    await scene.consider()
    assert (scene.upstream.looks, scene.route.known.tools) == (0, Support.UNKNOWN)
    await scene.verdicts.release(Subject(URL, "m"), token)
    await scene.consider()
    assert scene.upstream.looks == 0, "not at every request"
    scene.clock.now += 5
    await scene.consider()
    assert scene.route.known.tools is Support.NONE


@in_loop
async def test_a_fault_of_ours_is_logged_and_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    del scene.upstream.pages
    await scene.consider()
    assert "a fault in a probe" in caplog.text
    assert scene.route.known.tools is Support.UNKNOWN
    assert await scene.verdicts.claim(Subject(URL, "m")), "the claim is given back"


@pytest.mark.parametrize(
    ("wire", "owner", "form"),
    [
        ("openai_chat", "llamacpp", ConstraintForm.LLAMACPP),
        ("openai_chat", "library", ConstraintForm.OLLAMA),
        ("ollama", "library", ConstraintForm.OLLAMA),
        ("anthropic", "llamacpp", ConstraintForm.NONE),
    ],
)
@in_loop
async def test_a_form_is_measured_only_where_the_wire_has_words_for_it_chk8(
    wire: str, owner: str, form: ConstraintForm
) -> None:
    clock = Slept()
    upstream = Upstream(clock, wire)
    upstream.pages = {"models": f'{{"data": [{{"id": "m", "owned_by": "{owner}"}}]}}'.encode()}
    route = Route("up", upstream, "m", learned=Learned(clock))
    verdict = await Prober({}, Memory(clock), clock).probe(route, upstream, Depth.LOOK)
    assert verdict.constraint is route.known.quirks.constraint is form


# ---------------------------------------------------------------- what clients can cause


@in_loop
async def test_evidence_asks_for_a_probe_and_its_result_decides_cap6() -> None:
    scene = Scene(quorum=SHARED)
    native = replace(await probed(scene), tools=Support.NATIVE)
    await scene.verdicts.keep(Subject(URL, "m"), native)
    asked = len(scene.upstream.asked)
    for _ in range(SHARED.turns):
        assert scene.route.known.tools is Support.NATIVE
        scene.learned.note("m", turn(REFUSED))
    assert scene.route.known.tools is Support.NATIVE, "evidence alone moves nothing"
    await scene.consider()
    assert len(scene.upstream.asked) == asked + 2
    assert scene.route.known.tools is Support.NONE, "the server drops tools, so the probe agrees"
    shared = await scene.verdicts.find(Subject(URL, "m"))
    assert shared is not None
    assert shared.tools is Support.NONE


class Native(Upstream):
    """Shows tools to its model: the prompt grows with them, and a call comes."""

    @override
    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        self.asked.append(self._clock.monotonic())
        calls = [CallStarted("c", "roll_dice"), ArgsDelta("c", '{"sides":20}'), CallEnded("c")] if request.tools else []
        yield [*calls, TextDelta("Hi"), Finished(StopReason.END, Usage(30 + 90 * len(request.tools), 1))]


@in_loop
async def test_evidence_that_a_probe_does_not_confirm_changes_nothing_cap6() -> None:
    scene = Scene(quorum=SHARED)
    scene.upstream = Native(scene.clock)
    scene.route = replace(scene.route, upstream=scene.upstream)
    await scene.consider()
    assert scene.route.known.tools is Support.NATIVE
    asked = len(scene.upstream.asked)
    for _ in range(100):
        scene.learned.note("m", turn(REFUSED))
        await scene.consider()
        assert scene.route.known.tools is Support.NATIVE
    assert 0 < len(scene.upstream.asked) - asked <= COSTS[Depth.FULL], "one probe"


class Listing:
    """An upstream's list of models."""

    def __init__(self, *names: str) -> None:
        self.names, self.looks = names, 0

    def lists(self, model: str) -> bool:
        return self.looks > 0 and model in self.names

    async def look(self) -> None:
        self.looks += 1


@in_loop
async def test_a_name_that_no_upstream_lists_is_not_probed_cap6() -> None:
    scene = Scene()
    listing = Listing("m")
    scene.route = replace(scene.route, model="invented", catalogue=listing)
    await scene.consider()
    assert (scene.upstream.looks, len(scene.upstream.asked), listing.looks) == (0, 0, 1)
    scene.route = replace(scene.route, model="m")
    await scene.consider()
    assert scene.upstream.asked


@in_loop
async def test_a_spent_budget_means_no_probe_and_one_line_in_each_window_cap6(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(requests=COSTS[Depth.FULL] + 3)
    routes = [replace(scene.route, model=f"m{index}") for index in range(20)]
    for _ in range(2):
        sent = scene.upstream.looks + len(scene.upstream.asked)
        for route in routes:
            scene.route = route
            await scene.consider()
        assert scene.upstream.looks + len(scene.upstream.asked) - sent <= COSTS[Depth.FULL] + 3
        assert sum("no more probes of upstream up" in line for line in caplog.messages) == 1
        caplog.clear()
        scene.clock.now += WINDOW


@in_loop
async def test_time_that_jumps_starts_one_probe_and_no_loop_of_them_cap6() -> None:
    scene = Scene()
    await scene.consider()
    for _ in range(5):
        scene.clock.now += 10**9
        before = len(scene.upstream.asked)
        for _ in range(10):
            await scene.consider()
        assert len(scene.upstream.asked) == before + 2
        assert scene.route.known.tools is Support.NONE
