"""The gateway examines models while their upstream is idle, and users never wait for it (CAP-13)."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from testkit.loopback import in_loop
from testkit.protocols import question, says
from testkit.scripted_upstream import JSON, Asked, hang, listening, say
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from tests.gateway.signalled_process import configured
from tests.gateway.test_dashboard import log_in, send_form
from tests.gateway.test_dashboard_models import HTMX, page, taught
from tests.gateway.worker_scene import working
from tests.unit.doctor.pupil import Pupil
from tests.unit.doctor.test_examination import School
from toolspeak import wires
from toolspeak.config.shape import Config, Durable, Offer, Server, Upstream
from toolspeak.engine.settings import NOTHING_SAID, Mode, Settings
from toolspeak.engine.verdict import Verdict
from toolspeak.facts.model import Support
from toolspeak.gateway import idle_doctor
from toolspeak.gateway.checkups import CheckupProgress, Checkups, CheckupState
from toolspeak.gateway.idle_doctor import CHECK, FIRST_WAIT, IDLE, IdleDoctor
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.cache import LONGEST_PROBE, SEEN, Memory
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.profiles import NO_PROFILES, Profiles
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream, UpstreamAddress
from toolspeak.runtime.upstream_activity import UpstreamActivity

URL = "http://127.0.0.1:8080/v1"
WITH_TOOLS, WITHOUT = Request("m", (), (Tool("now"),)), Request("m", ())


class HandClock(Clock):
    """Time passes only if the test lets it pass."""

    now = 1000.0

    @override
    def monotonic(self) -> float:
        return self.now

    @override
    async def sleep(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:  # noqa: ASYNC110 # it waits for a number, which the test changes
            await asyncio.sleep(0)


class SchoolServer(HttpUpstream):
    """A server without a network whose model is a pupil. `room` is how many questions it answers; then it is slow."""

    def __init__(self, pupil: Pupil) -> None:
        super().__init__(HttpTransport(), wires.load("openai_chat"), UpstreamAddress(URL, ()))
        self.school = School(pupil)
        self.context = 9
        self.room = inf
        self.dropped = 0
        """Answers that were cancelled in the middle."""

    @override
    def with_quirks(self, quirks: object) -> "SchoolServer":
        return self

    @override
    def encoding(self, prepare: object) -> "SchoolServer":
        return self

    @override
    async def get(self, path: str, body: bytes = b"") -> bytes:
        if path != "models":
            raise TransportError(Failure(FailureKind.NOT_FOUND, "no such page", 404))
        return b'{"data": [{"id": "m", "max_model_len": %d}]}' % self.context

    @override
    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        while len(self.school.requests) >= self.room:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                self.dropped += 1
                raise
        async for batch in self.school.open(request):
            yield batch

    @property
    def asked(self) -> int:
        return len(self.school.requests)


@dataclass
class Ward:
    """A gateway's idle doctor, with the route to one model."""

    folder: Path
    knows: str = "hermes"
    on: bool = True
    settings: Settings = NOTHING_SAID
    url: str = URL
    verdicts: Memory = field(default_factory=Memory)
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.activity = UpstreamActivity(self.clock)
        self.server = SchoolServer(Pupil(self.knows))
        self.verdicts = Memory(self.clock)
        self.route = self.to("m")
        self.renew()

    def renew(self) -> None:
        """Start the gateway anew; what is on disk stays."""
        self.checkups = Checkups(self.clock)
        self.doctor = IdleDoctor(self.config(), self.checkups, self.activity, self.verdicts, self.clock)

    def to(self, model: str) -> Route:
        profiles = Profiles(self.folder / "profiles", URL, self.clock)
        return Route("up", self.server, model, settings=self.settings, profiles=profiles)

    def config(self, *, on: bool | None = None) -> Config:
        server = Server(doctor_when_idle=self.on if on is None else on)
        return Config(server=server, upstreams=(Upstream("up", self.url),), profiles=self.folder / "profiles")

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        self.doctor.start()
        try:
            yield
        finally:
            await self.doctor.stop()
            await self.checkups.close()

    def turn(self, request: Request = WITH_TOOLS, route: Route | None = None) -> None:
        """Take a user's turn that ends at once."""
        with self.activity.serving("up"):
            pass
        self.doctor.note(route or self.route, request)

    async def passes(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(end, self.clock.now + step)
            for _ in range(12):
                await asyncio.sleep(0)

    async def until_decided(self) -> CheckupProgress:
        """Let time pass until an examination has ended."""
        for _ in range(3000):
            await self.passes(CHECK)
            if (found := self.checkups.progress(self.route)) is not None and found.state is CheckupState.ENDED:
                return found
        raise AssertionError("it does not end")

    @property
    def state(self) -> CheckupState | None:
        found = self.checkups.progress(self.route)
        return found.state if found is not None else None

    @property
    def saved(self) -> list[Path]:
        return sorted((self.folder / "profiles").glob("*.json"))


@in_loop
async def test_a_model_is_examined_only_when_its_upstream_was_idle_for_a_minute_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    async with ward.open():
        await ward.passes(3 * IDLE)
        assert ward.state is None, "no client has asked a model"
        ward.turn()
        await ward.passes(IDLE - 1)
        ward.turn()
        await ward.passes(IDLE - 1)
        assert (ward.state, ward.server.asked) == (None, 0)
        with ward.activity.serving("up"):
            await ward.passes(2 * IDLE)
            assert ward.server.asked == 0, "a long turn"
        ward.server.room = 5
        await ward.passes(IDLE + 2 * CHECK)
        assert ward.state is CheckupState.RUNNING
        assert ward.server.asked == 5


@in_loop
async def test_nothing_is_examined_that_the_operator_does_not_want_cap13(tmp_path: Path) -> None:
    class Empty:
        def lists(self, model: str) -> bool:
            return model == "another"

        async def look(self) -> None:
            pass

    off, far = Ward(tmp_path, on=False), Ward(tmp_path, url="https://api.example.com/v1")
    wards = [off, far, *(Ward(tmp_path, settings=said) for said in (Settings(Mode.FORCE), Settings(dialect="fenced")))]
    wards += [Ward(tmp_path, settings=Settings(chat=True)), Ward(tmp_path), Ward(tmp_path), Ward(tmp_path)]
    wards[-1].route = replace(wards[-1].route, profiles=NO_PROFILES)
    wards[-2].route = replace(wards[-2].route, catalogue=Empty())
    requests = [WITH_TOOLS] * 5 + [WITHOUT] + [WITH_TOOLS] * 2
    for ward, request in zip(wards, requests, strict=True):
        async with ward.open():
            ward.turn(request)
            await ward.passes(3 * IDLE)
            assert (ward.state, ward.server.asked) == (None, 0), ward
    assert not off.doctor._asked


@in_loop
async def test_settings_that_no_form_changes_do_not_keep_a_model_from_it_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path, settings=Settings(Mode.AUTO, retries=1))
    async with ward.open():
        ward.turn()
        await ward.passes(2 * IDLE)
        assert ward.server.asked > 0


@in_loop
async def test_only_the_model_that_was_asked_last_is_examined_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    async with ward.open():
        ward.turn()
        ward.turn(WITHOUT, ward.to("other"))
        await ward.passes(3 * IDLE)
        assert ward.state is None, "the server may have to unload `other` for it"
        ward.turn(WITHOUT)  # as agents ask for a title
        await ward.passes(2 * IDLE)
        assert ward.server.asked > 0


@in_loop
async def test_a_users_turn_interrupts_the_answer_and_nothing_is_asked_twice_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    async with ward.open():
        ward.turn()
        ward.server.room = 20
        await ward.passes(IDLE + 2 * CHECK)
        first = ward.checkups.progress(ward.route)
        assert first is not None
        answers = first.answers
        assert answers > 5
        with ward.activity.serving("up"):
            await ward.passes(0.3, step=0.1)
            assert (ward.state, ward.server.dropped) == (CheckupState.PAUSED, 1)
            ward.server.room = inf
            await ward.passes(2 * IDLE)
            assert ward.server.asked == 20, "the user has the server"
        ward.server.room = 22
        await ward.passes(IDLE + CHECK + 1)
        second = ward.checkups.progress(ward.route)
        assert second is not None
        assert second is not first
        assert second.checkup is not None
        assert second.checkup.known == answers
        ward.server.room = inf
        ended = await ward.until_decided()
    report = ended.report
    assert report is not None
    assert ended.answers + answers == sum(tally.asked for tally in report.tallies)


@in_loop
async def test_the_winner_is_kept_with_its_figures_and_the_model_is_left_alone_cap13(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolspeak.gateway")
    ward = Ward(tmp_path)
    async with ward.open():
        ward.turn()
        await ward.until_decided()
        assert len(ward.saved) == 1
        assert ward.route.profiles.of("m").profile is not None
        begun, ended = (record.getMessage() for record in caplog.records)
        assert begun.startswith("the doctor examines up:m: its upstream has been idle for 6")
        assert "toolspeak now speaks hermes to it" in ended
        assert "came out right only with hermes and 0 only with what you had" in ended
        assert f"The profile is saved in {ward.saved[0]}." in ended
        asked = ward.server.asked
        for _ in range(3):
            ward.turn()
            await ward.passes(2 * IDLE)
        assert ward.server.asked == asked
    ward.renew()
    async with ward.open():
        ward.turn()
        await ward.passes(2 * IDLE)
        assert (ward.state, ward.server.asked) == (None, asked), "a restart forgets nothing"
        ward.server.context += 1
        ward.turn()
        await ward.passes(2 * IDLE)
        assert ward.server.asked == asked, "no look has seen it yet"
        ward.route.learned.keep("m", Verdict(Support.NONE, fingerprint="another"), SEEN)
        await ward.until_decided()
        assert ward.server.asked > asked


@in_loop
async def test_a_trial_that_finds_nothing_better_is_not_repeated_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path, knows="native")
    async with ward.open():
        ward.turn()
        await ward.until_decided()
        assert ward.saved == []
        asked = ward.server.asked
    ward.renew()
    async with ward.open():
        ward.turn()
        await ward.passes(5 * IDLE)
        assert ward.server.asked == asked
    [decided] = (tmp_path / "doctor").iterdir()
    assert "nothing better beyond chance was found" in decided.read_text()


@in_loop
async def test_a_quick_examination_of_a_person_does_not_decide_for_the_whole_one_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path, knows="native")
    async with ward.open():
        ward.checkups.start(ward.route, tmp_path / "doctor", quick=True)
        await ward.until_decided()
        asked = ward.server.asked
        ward.turn()
        await ward.passes(2 * IDLE)
        assert ward.server.asked > asked


@in_loop
async def test_failures_wait_longer_and_longer_cap13(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "toolspeak.gateway")
    ward = Ward(tmp_path)
    ward.server.school.broken = lambda _, __: [Failed(Failure(FailureKind.AUTH, "no such key", 401))]
    async with ward.open():
        ward.turn()
        await ward.passes(IDLE + 2 * CHECK)
        assert ward.state is CheckupState.FAILED
        await ward.passes(FIRST_WAIT - 3 * CHECK)
        assert len(caplog.messages) == 1
        await ward.passes(4 * CHECK)
        assert len(caplog.messages) == 2
        await ward.passes(2 * FIRST_WAIT - 3 * CHECK)
        assert len(caplog.messages) == 2
        await ward.passes(4 * CHECK)
    assert caplog.messages == [
        f"the doctor could not examine up:m: no such key; it tries again in {minutes} min" for minutes in (10, 20, 40)
    ]


@in_loop
async def test_pauses_too_short_for_one_answer_are_not_used_again_at_once_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    ward.server.room = 0
    async with ward.open():
        for _ in range(4):
            ward.turn()
            await ward.passes(IDLE + 2 * CHECK)
        assert ward.server.dropped == 1
        ward.turn()
        await ward.passes(FIRST_WAIT)
        assert ward.state is CheckupState.RUNNING


@in_loop
async def test_a_person_who_stops_it_has_stopped_it_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    ward.server.room = 9
    async with ward.open():
        ward.turn()
        await ward.passes(IDLE + 2 * CHECK)
        await ward.checkups.stop(ward.route)
        await ward.passes(5 * IDLE)
        assert (ward.state, ward.server.asked) == (CheckupState.STOPPED, 9)
        assert ward.checkups.start(ward.route, tmp_path / "doctor", quick=False) == ""
        ward.server.room = inf
        ended = await ward.until_decided()
        assert not ended.when_idle


@in_loop
async def test_a_paused_examination_can_be_stopped_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    ward.server.room = 9
    async with ward.open():
        ward.turn()
        await ward.passes(IDLE + 2 * CHECK)
        ward.turn()
        await ward.passes(1)
        assert ward.state is CheckupState.PAUSED
        await ward.checkups.stop(ward.route)
        await ward.passes(5 * IDLE)
        assert (ward.state, ward.server.asked) == (CheckupState.STOPPED, 9)


@in_loop
async def test_an_examination_that_is_stopped_before_its_first_step_has_ended_obs17(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    assert ward.checkups.start(ward.route, None, quick=True) == ""
    await ward.checkups.stop(ward.route)
    assert ward.state is CheckupState.STOPPED
    assert ward.checkups.start(ward.to("other"), None, quick=True) == "", "it must not count as running"
    await ward.checkups.close()


@in_loop
async def test_the_doctor_of_a_person_goes_first_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path)
    ward.server.room = 9
    async with ward.open():
        assert ward.checkups.start(ward.to("other"), None, quick=True) == ""
        ward.turn()
        await ward.passes(3 * IDLE)
        assert ward.state is None
        await ward.checkups.stop(ward.to("other"))
        ward.server.room = inf
        await ward.until_decided()


@in_loop
async def test_of_several_workers_one_examines_however_long_it_takes_cap13(tmp_path: Path) -> None:
    one, two = Ward(tmp_path), Ward(tmp_path)
    two.clock, two.activity, two.verdicts = one.clock, one.activity, one.verdicts
    two.renew()
    one.server.room = two.server.room = 9
    async with one.open(), two.open():
        one.turn()
        two.turn()
        await one.passes(IDLE + 2 * CHECK)
        assert (one.server.asked, two.server.asked) == (9, 0)
        await one.passes(3 * LONGEST_PROBE)
        assert sorted((one.server.asked, two.server.asked)) in ([0, 9], [9, 9])
        assert [one.state, two.state].count(CheckupState.RUNNING) == 1
        with one.activity.serving("up"):
            await one.passes(1)
            assert CheckupState.RUNNING not in (one.state, two.state), "a turn of any worker"


@in_loop
async def test_a_reload_turns_it_off_and_on_cap13(tmp_path: Path) -> None:
    ward = Ward(tmp_path, on=False)
    ward.server.room = 9
    async with ward.open():
        ward.doctor.change(ward.config(on=True))
        ward.turn()
        await ward.passes(2 * IDLE)
        assert ward.state is CheckupState.RUNNING
        ward.doctor.change(ward.config(on=False))
        await ward.passes(1)
        assert ward.state is CheckupState.PAUSED
        ward.turn()
        await ward.passes(3 * IDLE)
        assert ward.state is CheckupState.PAUSED


def test_a_setting_that_can_do_nothing_says_so_cap13(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Ward(tmp_path, url="https://api.example.com/v1")
    assert caplog.messages == [
        "doctor_when_idle examines no model: it needs profiles, and an upstream on this machine or its network"
    ]


# ---------------------------------------------------------------- through the gateway


@pytest.fixture
def _soon_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_doctor, "IDLE", 0.4)
    monkeypatch.setattr(idle_doctor, "CHECK", 0.05)


def ask(served: Served, headers: dict[str, str] | None = None) -> dict[str, Any]:
    asked = question("openai_chat")
    reply = served.post(asked.path, {**(asked.body or {}), "model": "m"}, headers)
    assert reply.status == 200, reply.body
    return dict(reply.headers)


@pytest.mark.usefixtures("_soon_idle")
def test_a_gateway_examines_on_idle_capacity_yields_and_uses_what_it_keeps_cap13(tmp_path: Path) -> None:
    pupil, held = Pupil("hermes"), list[Asked]()
    answer = taught(pupil)

    async def script(asked: Asked) -> None:
        if asked.wire and not held and len(pupil.asked) >= 10:
            held.append(asked)
            await hang(asked)
        else:
            await answer(asked)

    server = Server(doctor_when_idle=True)
    with listening(("m",)) as upstream:
        upstream.answers(script)
        config = config_of(towards(upstream, key="", retries=0), server=server, profiles=tmp_path / "profiles")
        with serving(config) as served:
            ask(served)
            shown = "The gateway began this by itself, because the upstream is idle."
            assert soon(lambda: shown in page(served, "/ui/doctor/m", HTMX), 20)
            assert soon(lambda: bool(held), 20)
            ask(served)
            assert soon(held[0].hung_up.is_set, 10), "its answer was interrupted"
            paused = "Paused: its upstream serves users. It goes on when the upstream is idle."
            assert soon(lambda: paused in page(served, "/ui/doctor/m", HTMX), 10)
            saved = "Saved: the gateway uses it from now on."
            assert soon(lambda: saved in page(served, "/ui/doctor/m", HTMX), 120)
            assert soon(lambda: "Kept profile in use" in page(served, "/ui/models/m"), 20)
            assert soon(lambda: "hermes did best" in ask(served)["x-toolspeak-plan"], 20)
            assert "Stop" not in page(served, "/ui/doctor/m", HTMX)


def test_what_is_forwarded_and_the_turns_of_runs_keep_an_upstream_busy_cap13(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    during = list[float]()
    with listening(("m",)) as upstream:
        config = config_of(towards(upstream), offer=Offer(enabled=True), runs=Durable(folder=tmp_path))
        with serving(config) as served:
            activity = served.app.gateway.prober._activity

            async def script(asked: Asked) -> None:
                during.append(activity.idle_seconds("up"))
                await (says(Answer("Done."))(asked) if asked.wire else asked.whole(200, b"{}", JSON))

            upstream.answers(script)
            assert activity.idle_seconds("up") == inf
            assert served.post("/v1/embeddings", {"model": "m", "input": "x"}).status == 200
            assert during == [0.0]
            run = served.post("/v1/runs", {"task": "Look around."}).json["id"]
            assert soon(lambda: served.ask("GET", f"/v1/runs/{run}").json["status"] == "done", 20)
            assert during == [0.0, 0.0]
            assert 0 < activity.idle_seconds("up") < 60


@pytest.mark.usefixtures("_soon_idle")
def test_a_tenant_does_not_see_why_it_failed_cap13(tmp_path: Path) -> None:
    with listening(("m",)) as upstream:
        pupil = taught(Pupil("hermes"))
        upstream.answers(pupil)
        server = Server(doctor_when_idle=True)
        config = config_of(
            towards(upstream, key="", retries=0),
            server=server,
            profiles=tmp_path / "profiles",
            keys=(key("sk-a", "anna"),),
        )
        with serving(config) as served:
            ask(served, {"authorization": "Bearer sk-a"})
            upstream.answers(say(b'{"error": {"message": "no such key at 10.0.0.7"}}', JSON, 401))
            session = log_in(served, "sk-a")
            told = "The doctor could not examine this model; the log of the gateway says why."
            assert soon(lambda: told in page(served, "/ui/doctor/m", {**session, **HTMX}), 20)
            assert "10.0.0.7" not in page(served, "/ui/doctor/m", {**session, **HTMX})
            assert send_form(served, "/ui/doctor/m", {**session, **HTMX}, do="stop").status == 403


@pytest.mark.skipif(sys.platform != "linux", reason="the test finds workers by /proc")
def test_a_turn_of_another_worker_interrupts_it_and_any_worker_goes_on_cap13(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    pupil, held = Pupil("hermes"), list[Asked]()
    answer = taught(pupil)

    async def script(asked: Asked) -> None:
        if asked.wire and not held and len(pupil.asked) >= 10:
            held.append(asked)
            await hang(asked)
        else:
            await answer(asked)

    soon_idle = "from toolspeak.gateway import idle_doctor as one; one.IDLE, one.CHECK = 2.0, 0.1"
    with listening(("m",)) as upstream:
        upstream.answers(script)
        text = configured(upstream.port).replace("[server]", "[server]\ndoctor_when_idle = true")
        with working(monkeypatch, tmp_path, text, first=soon_idle) as pool:
            one, other = pool.workers
            with pool.only(one):
                assert pool.ask(model="m").status == 200
            assert soon(lambda: bool(held), 60)
            with pool.only(other):
                assert pool.ask(model="m").status == 200
            assert soon(held[0].hung_up.is_set, 20), "the worker that examines sees the turn of the other"
            assert pool.process.says("The profile is saved in")
            assert pool.process.log.read_text().count("the doctor has examined box:m") == 1
