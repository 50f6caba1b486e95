"""The pages of models: what is known, from where, and a probe at the press of a button (OBS-17)."""

import asyncio
import re
from collections.abc import Generator
from html import unescape
from pathlib import Path

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import JSON, Asked, Script, ScriptedUpstream, hang, listening, say
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from tests.gateway.test_dashboard import log_in, send_form
from tests.unit.doctor.pupil import Pupil
from toolspeak.config.shape import Config, Model, Server, Upstream
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.verdict import Depth
from toolspeak.facts.model import ModelFacts, Profile, Score, Support
from toolspeak.runtime.profiles import Profiles

HTMX = {"hx-request": "true"}
HOSTILE = "m<script>alert(1)</script>"
MODELS = ("m", "other", HOSTILE)


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    """Run a server that has no page about itself, and counts as many tokens with tools as without."""
    answers = answering(Answer("It is cold."))

    async def script(asked: Asked) -> None:
        await (answers(asked) if asked.wire else asked.whole(404, b"{}", JSON))

    with listening(MODELS) as scripted:
        scripted.answers(script)
        yield scripted


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    """Run a gateway that probes with requests of one token."""
    with serving(probing(upstream)) as served:
        yield served


def probing(upstream: ScriptedUpstream, probe_requests: int = 300, **more: object) -> Config:
    server = Server(probe=Depth.TOKENS, probe_requests=probe_requests)
    return config_of(towards(upstream, key="", retries=0), server=server, **more)


def page(gateway: Served, path: str = "/ui/models", headers: dict[str, str] | None = None) -> str:
    reply = gateway.ask("GET", path, headers=headers)
    assert reply.status == 200, reply.body
    return words(reply.body)


def words(body: bytes) -> str:
    """Return the text of a page, without markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body.decode())).split())


def test_every_model_says_how_its_tools_are_handled_and_where_that_is_known_from_obs17(
    upstream: ScriptedUpstream,
) -> None:
    said = Upstream("said", f"http://127.0.0.1:{upstream.port}/v1", facts=ModelFacts(tools=Support.NATIVE))
    forced = Model("forced", "up", "m", Settings(mode=Mode.FORCE, dialect="hermes"))
    with serving(config_of(towards(upstream), said, models=(forced,))) as served:
        text = page(served)
    assert "forced alias of m emulated Tools are taught in the prompt, and calls are written as text (hermes)." in text
    assert "configuration Set in the configuration: the mode is force." in text
    assert "m default native first Tools are sent; if they are refused, calls are written as text (fenced)." in text
    assert "not known yet Tools are sent, and a refusal or a probe decides. never" in text
    # The second upstream lists the same names: its models are there under names that lead to them.
    assert "said:m native Tools are sent as they are. configuration Set in the configuration: it has tools." in text


def test_names_of_models_stay_text_obs17(gateway: Served) -> None:
    listed = gateway.ask("GET", "/ui/models").body
    assert b"<script>alert" not in listed
    assert b"m&lt;script&gt;alert(1)&lt;/script&gt;" in listed
    one = gateway.ask("GET", "/ui/models/m%3Cscript%3Ealert(1)%3C/script%3E")
    assert one.status == 200
    assert b"<script>alert" not in one.body
    assert "toolspeak doctor 'm<script>alert(1)</script>' --upstream" in words(one.body.replace(b"&#39;", b"'"))


def test_a_search_shows_the_models_that_match(gateway: Served) -> None:
    found = page(gateway, "/ui/models?search=OTH", HTMX)
    assert "other" in found
    assert "script" not in found
    assert "No model matches" in page(gateway, "/ui/models?search=nothing-like-it")


def test_probe_now_probes_once_and_the_row_asks_until_it_has_ended_obs17(gateway: Served) -> None:
    begun = send_form(gateway, "/ui/models/other?part=row", HTMX)
    assert begun.status == 200
    assert b'hx-trigger="load delay:1s"' in begun.body
    assert "probing" in words(begun.body)
    row = "/ui/models/other?part=row"
    assert soon(lambda: "probing" not in page(gateway, row, HTMX), 20)
    ended = page(gateway, row, HTMX)
    assert "emulated" in ended
    assert "probe The prompt has 11 tokens with tools and without: they are dropped in silence." in ended
    assert "has no tools (95% sure)" in ended
    again = send_form(gateway, row, HTMX)
    assert "it was probed just now: try again in" in words(again.body)
    whole = page(gateway, "/ui/models/other")
    assert "tokens the prompt has 11 tokens with tools and without: they are dropped in silence" in whole


def test_a_probe_without_scripts_leads_back_to_the_model(gateway: Served) -> None:
    sent = send_form(gateway, "/ui/models/m")
    assert (sent.status, sent.headers["location"]) == (303, "/ui/models/m")
    assert soon(lambda: "has no tools" in page(gateway, "/ui/models/m"), 20)


def test_a_probe_that_a_person_asks_for_needs_probes_and_their_budget_obs17(upstream: ScriptedUpstream) -> None:
    def asked_for(server: Server) -> str:
        with serving(config_of(towards(upstream, retries=0), server=server)) as served:
            return words(send_form(served, "/ui/models/m?part=row", HTMX).body)

    assert 'probes of up are off: set probe = "full" under [server]' in asked_for(Server(probe=Depth.OFF))
    assert "probing" in asked_for(Server(probe=Depth.FULL, probe_requests=15))

    async def slow(asked: Asked) -> None:
        await asyncio.sleep(2)
        await asked.whole(404, b"{}", JSON)

    with listening(MODELS) as busy, serving(probing(busy, probe_requests=9)) as served:  # one probe reserves nine
        busy.answers(slow)
        assert "probing" in words(send_form(served, "/ui/models/m?part=row", HTMX).body)
        second = words(send_form(served, "/ui/models/other?part=row", HTMX).body)
        assert "probes of up have used 9 of their 9 requests of this hour ([server] probe_requests)" in second


def test_what_the_configuration_says_is_not_probed(upstream: ScriptedUpstream) -> None:
    with serving(probing(upstream, models=(Model("off", "up", "m", Settings(mode=Mode.OFF)),))) as served:
        reply = send_form(served, "/ui/models/off?part=row", HTMX)
        assert "a probe would change nothing: the configuration or a table already says" in words(reply.body)


def test_an_upstream_that_is_down_is_said_and_the_others_are_shown_obs17(upstream: ScriptedUpstream) -> None:
    gone = Upstream("gone", "http://127.0.0.1:9/v1", retries=0)
    with serving(config_of(towards(upstream), gone)) as served:
        text = page(served)
        assert "other" in text
        assert "gone http://127.0.0.1:9/v1 does not answer" in text
        assert "Connection refused. Start the server, then reload this page." in text


def test_a_key_sees_and_probes_only_its_models_obs17(upstream: ScriptedUpstream) -> None:
    secret = Upstream("secret", "http://127.0.0.1:9/v1", retries=0)
    keys = (key("sk-all", "anna"), key("sk-one", "ben", models=("up:other",)))
    config = config_of(towards(upstream), secret, server=Server(probe=Depth.LOOK), keys=keys)
    with serving(config) as served:
        anna, ben = log_in(served, "sk-all"), log_in(served, "sk-one")
        assert "secret does not answer its list of models cannot be read" in page(served, headers=anna)
        text = page(served, headers=ben)
        assert "other" in text
        assert not any(hidden in text for hidden in ("secret", "script", "default", "127.0.0.1"))
        assert served.ask("GET", "/ui/models/m", headers=ben).status == 404
        assert send_form(served, "/ui/models/m?part=row", {**ben, **HTMX}).status == 404
        assert "toolspeak doctor other Copy" in page(served, "/ui/models/other", ben)  # without the operator's URL
        assert send_form(served, "/ui/models/other", {**ben, "origin": "http://evil.example"}).status == 403


def test_the_doctors_profile_is_shown_with_its_scores_and_its_command_obs17(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{upstream.port}/v1"
    scores = {"native": Score(19, 48), "hermes": Score(41, 48)}
    kept = Profile("m", url, "hermes", {"mode": "force", "dialect": "hermes"}, None, scores, "hermes is better.")
    Profiles(tmp_path, url).keep(kept)
    with serving(probing(upstream, profiles=tmp_path)) as served:
        text = page(served, "/ui/models/m")
    assert f"toolspeak doctor m --upstream {url}" in text
    assert "Kept profile in use hermes is better." in text
    assert "hermes kept 41 of 48 native 19 of 48" in text
    assert "doctor . The doctor measured" in text


def test_a_suspended_profile_says_so_obs17(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{upstream.port}/v1"
    profiles = Profiles(tmp_path, url)
    profiles.keep(Profile("m", url, "hermes", {"mode": "force", "dialect": "hermes"}))
    file = next(tmp_path.glob("*.json"))
    counts = f'{{"profile":"{profiles.of("m").stamp}","tenants":{{"":{{"suspends":true}}}}}}'
    file.with_suffix(".watch").write_text(counts)
    with serving(probing(upstream, profiles=tmp_path)) as served:
        assert "doctor profile: hermes suspended" in page(served)
        assert "Kept profile suspended Since it was used, more answers had no call than before." in page(
            served, "/ui/models/m"
        )


def test_a_refusal_in_traffic_shows_as_learned_obs17() -> None:
    keys = (key("sk-a", "anna"), key("sk-b", "ben"))
    refusal = b'{"error": {"message": "m does not support tools", "type": "invalid_request_error"}}'
    with listening(("m",)) as refusing, serving(config_of(towards(refusing, retries=0), keys=keys)) as served:
        refusing.answers(say(refusal, JSON, 400))
        asked = question("openai_chat")
        body = {**(asked.body or {})}
        for number in range(4):  # similar requests would be sent without tools at once, so each has another tool
            body["tools"] = [{"type": "function", "function": {"name": f"tool_{number}", "parameters": {}}}]
            served.post(asked.path, body, {"authorization": f"Bearer sk-{'ab'[number % 2]}"})
        text = page(served, "/ui/models/m", log_in(served, "sk-a"))
    assert "learned . A request with tools was refused." in text


# ---------------------------------------------------------------- the doctor by a button


def taught(pupil: Pupil) -> Script:
    """Let a pupil answer, in text."""

    async def script(asked: Asked) -> None:
        if not asked.wire:
            await asked.whole(404, b"{}", JSON)
            return
        texts = [message.get("content") or "" for message in asked.json["messages"]]
        said = pupil.calls(texts, native="tools" in asked.json)
        await answering(Answer(said if isinstance(said, str) else pupil.text(said)))(asked)

    return script


def test_the_doctor_runs_by_a_button_and_the_gateway_uses_what_it_keeps_obs17(tmp_path: Path) -> None:
    profiles = tmp_path / "profiles"
    with listening(("m",)) as pupil, serving(probing(pupil, profiles=profiles)) as served:
        pupil.answers(taught(Pupil("hermes")))
        begun = send_form(served, "/ui/doctor/m", HTMX, do="quick")
        assert begun.status == 200
        assert b'hx-get="/ui/doctor/m" hx-trigger="load delay:2s"' in begun.body
        assert "Stop" in words(begun.body)
        assert soon(lambda: "Stop" not in page(served, "/ui/doctor/m", HTMX), 120)
        ended = page(served, "/ui/doctor/m", HTMX)
        assert "toolspeak now speaks hermes to it" in ended
        assert "Saved: the gateway uses it from now on." in ended
        assert re.search(r"Right answers of this examination Form Right hermes (\d+) of \1 ", ended)
        assert soon(lambda: "Kept profile in use" in page(served, "/ui/models/m"), 20)
        assert "emulated" in page(served, "/ui/models/m")
    assert len(list(profiles.glob("*.json"))) == 1
    assert list((tmp_path / "doctor").glob("*.json")) == [], "nothing is left to continue"


def test_the_doctor_is_stopped_by_a_button_and_examines_one_model_at_a_time_obs17() -> None:
    with listening(("m", "other")) as slow, serving(probing(slow)) as served:
        slow.answers(hang)
        assert send_form(served, "/ui/doctor/m", do="full").headers["location"] == "/ui/models/m"
        second = words(send_form(served, "/ui/doctor/other", HTMX, do="quick").body)
        assert "the doctor examines up:m now: wait until it has ended, or stop it on the page of that model" in second
        stopped = words(send_form(served, "/ui/doctor/m", HTMX, do="stop").body)
        assert "Stopped. What is known is kept: start it again to continue." in stopped
        assert soon(lambda: all(asked.hung_up.is_set() for asked in slow.asked), 10)
        assert "Stop" in words(send_form(served, "/ui/doctor/other", HTMX, do="quick").body)
        assert send_form(served, "/ui/doctor/other", HTMX, do="dance").status == 400
    # The gateway has ended with an examination running, and waited for nothing.


def test_a_doctor_whose_upstream_fails_says_so_obs17() -> None:
    with listening(("m",)) as failing, serving(probing(failing)) as served:
        failing.answers(say(b'{"error": {"message": "no such key"}}', JSON, 401))
        send_form(served, "/ui/doctor/m", HTMX, do="quick")
        assert soon(lambda: "no such key" in page(served, "/ui/doctor/m", HTMX), 20)


def test_a_tenant_does_not_start_the_doctor_obs17(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream), keys=(key("sk-a", "anna"),))) as served:
        session = log_in(served, "sk-a")
        refused = send_form(served, "/ui/doctor/m", {**session, **HTMX}, do="quick")
        assert refused.status == 403
        assert "this gateway has keys, so the doctor is started in a terminal" in words(refused.body)
        shown = page(served, "/ui/models/m", session)
        assert "Quick, 3 minutes" not in shown
        assert "toolspeak doctor m" in shown
