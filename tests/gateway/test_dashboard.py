"""The dashboard at `/ui`: headers, login, tenants, forms of other pages, hostile text (OBS-16)."""

import asyncio
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import cast
from urllib.parse import urlencode

import pytest
from typing_extensions import override

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, hang, listening, refuse
from testkit.vendor_answers import Answer
from tests.gateway.scene import UPSTREAM_KEY, Reply, Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import Config, DashboardSettings, Traces
from toolspeak.engine.settings import Mode, Settings
from toolspeak.gateway.access import Keyring
from toolspeak.gateway.exchange import Exchange
from toolspeak.gateway.reload import Reloader
from toolspeak.gateway.request_stream import RowStream
from toolspeak.gateway.sessions import Sessions
from toolspeak.runtime.clock import Clock
from toolspeak.traces.store import TraceQuery

CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
KEYS = (key("sk-anna-key", "anna"), key("sk-ben-key", "ben"))
QUESTION = question("openai_chat")
FORCED = Settings(mode=Mode.FORCE, dialect="fenced")
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m",)) as scripted:
        scripted.answers(answering(CALL))
        yield scripted


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    with serving(config_of(towards(upstream), settings=FORCED)) as served:
        yield served


@pytest.fixture
def locked(upstream: ScriptedUpstream) -> Generator[Served]:
    """Run a gateway with keys that keeps content."""
    with serving(locked_config(upstream)) as served:
        yield served


def locked_config(upstream: ScriptedUpstream) -> Config:
    return config_of(towards(upstream), settings=FORCED, keys=KEYS, traces=Traces(content=True))


def send_form(gateway: Served, path: str, headers: Mapping[str, str] | None = None, **fields: str) -> Reply:
    """Post a form as a page of the dashboard does."""
    own = {"origin": f"http://127.0.0.1:{gateway.port}", "sec-fetch-site": "same-origin", "content-type": FORM}
    return gateway.ask("POST", path, urlencode(fields).encode(), {**own, **(headers or {})})


def log_in(gateway: Served, text: str) -> dict[str, str]:
    """Return the cookie of a session."""
    reply = send_form(gateway, "/ui/login", key=text)
    assert reply.status == 303, reply.body
    return {"cookie": reply.headers["set-cookie"].partition(";")[0]}


def test_every_page_has_the_headers_against_scripts_and_frames_obs16(gateway: Served) -> None:
    for path in ("/ui", "/ui/", "/ui/login", "/ui/no-such-page", "/ui/static/toolspeak.css", "/ui/static/none.js"):
        reply = gateway.ask("GET", path)
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'"), path
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "same-origin"
        is_static = path.endswith(".css")
        assert reply.headers["cache-control"] == ("public, max-age=31536000, immutable" if is_static else "no-store")


def test_static_files_are_named_and_nothing_else_is_served(gateway: Served) -> None:
    assert b"htmx" in gateway.ask("GET", "/ui/static/htmx.min.js").body
    for path in ("/ui/static/../pages.py", "/ui/static/%2e%2e/pages.py", "/ui/static/", "/ui/static/base.html"):
        assert gateway.ask("GET", path).status == 404


def test_without_keys_no_login_is_needed(gateway: Served) -> None:
    assert gateway.ask("GET", "/ui").status == 200
    assert gateway.ask("GET", "/ui/login").headers["location"] == "/ui"


def test_an_empty_list_shows_how_to_send_a_first_request(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream))) as fresh:
        page = fresh.ask("GET", "/ui").body.decode()
        assert f"curl http://127.0.0.1:{fresh.port}/v1/chat/completions" in page
        assert "toolspeak launch claude" in page


def test_the_dashboard_can_be_switched_off(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream), dashboard=DashboardSettings(enabled=False))) as gateway:
        assert gateway.ask("GET", "/ui").status == 404
        assert gateway.ask("GET", "/ui/static/toolspeak.css").status == 404


# ---------------------------------------------------------------- login


def test_with_keys_every_page_leads_to_the_login_and_back(locked: Served) -> None:
    reply = locked.ask("GET", "/ui/requests/abc")
    assert (reply.status, reply.headers["location"]) == (303, "/ui/login?then=/ui/requests/abc")
    assert locked.ask("GET", "/ui/login").status == 200
    assert locked.ask("GET", "/ui/events").status == 401
    assert locked.ask("GET", "/ui", headers={"hx-request": "true"}).headers["hx-redirect"] == "/ui/login"
    entered = send_form(locked, "/ui/login", key="sk-anna-key", then="/ui/requests/abc")
    assert (entered.status, entered.headers["location"]) == (303, "/ui/requests/abc")


@pytest.mark.parametrize(
    "then", ["https://evil.example", "//evil.example", "/ui//evil", "/ui/\\evil", "/v1", "/ui/a\r\nx: y"]
)
def test_the_login_leads_to_no_other_place(locked: Served, then: str) -> None:
    assert send_form(locked, "/ui/login", key="sk-anna-key", then=then).headers["location"] == "/ui"


def test_a_session_has_a_cookie_that_scripts_and_other_pages_cannot_use(locked: Served) -> None:
    cookie = send_form(locked, "/ui/login", key="sk-anna-key").headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/ui;", "Max-Age=43200"))
    assert "Secure" not in cookie
    assert "sk-anna" not in cookie
    over_tls = send_form(locked, "/ui/login", {"origin": f"https://127.0.0.1:{locked.port}"}, key="sk-anna-key")
    assert over_tls.headers["set-cookie"].endswith("; Secure")


def test_a_wrong_key_begins_no_session(locked: Served) -> None:
    reply = send_form(locked, "/ui/login", key="sk-wrong-key")
    assert reply.status == 401
    assert "set-cookie" not in reply.headers
    assert b"This key is not known here" in reply.body
    assert b"sk-wrong-key" not in reply.body


@pytest.mark.parametrize("cookie", ["toolspeak_session=", "toolspeak_session=abc", "other=1; toolspeak_session=x;;="])
def test_a_made_up_cookie_opens_nothing(locked: Served, cookie: str) -> None:
    assert locked.ask("GET", "/ui", headers={"cookie": cookie}).status == 303


def test_logging_out_ends_the_session_on_the_server(locked: Served) -> None:
    cookie = log_in(locked, "sk-anna-key")
    assert locked.ask("GET", "/ui", headers=cookie).status == 200
    assert send_form(locked, "/ui/logout", cookie).status == 303
    assert locked.ask("GET", "/ui", headers=cookie).status == 303


def test_a_session_ends_when_its_key_is_removed(locked: Served) -> None:
    cookie = log_in(locked, "sk-anna-key")
    sessions, exchange = locked.app.gateway.sessions, cast("Exchange", _Cookie(cookie["cookie"]))
    assert sessions.find(exchange, Keyring(KEYS)) is not None
    assert sessions.find(exchange, Keyring(KEYS[1:])) is None


class _Cookie:
    """As much of an exchange as sessions read."""

    def __init__(self, cookie: str) -> None:
        self._cookie = cookie

    def headers(self, name: bytes) -> list[str]:
        return [self._cookie] if name == b"cookie" else []


def test_a_large_login_form_is_refused_before_it_is_read(locked: Served) -> None:
    assert send_form(locked, "/ui/login", key="x" * 100_000).status == 413


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_forms_of_other_pages_are_refused(locked: Served, headers: dict[str, str]) -> None:
    cookie = log_in(locked, "sk-anna-key")
    for path in ("/ui/login", "/ui/logout", "/ui/replay/abc"):
        assert send_form(locked, path, {**cookie, **headers}, key="sk-anna-key").status == 403
    assert locked.ask("GET", "/ui", headers=cookie).status == 200


def test_a_tenant_sees_only_its_own_requests(locked: Served) -> None:
    sent = locked.post(QUESTION.path, QUESTION.body, {"authorization": "Bearer sk-anna-key"})
    trace = sent.headers["x-toolspeak-trace"]
    anna, ben = log_in(locked, "sk-anna-key"), log_in(locked, "sk-ben-key")
    assert soon(lambda: trace.encode() in locked.ask("GET", "/ui", headers=anna).body, 5)
    assert trace.encode() not in locked.ask("GET", "/ui", headers=ben).body


# ---------------------------------------------------------------- one response


@pytest.fixture(scope="module")
def trace(gateway: Served, upstream: ScriptedUpstream) -> str:
    """Send a request that is asked again; return its id."""
    bad = Answer('```tool_call\n{"name": "get_weather", "arguments": {"town": 7}}\n```')
    upstream.answers(answering(bad), answering(CALL))
    reply = gateway.post(QUESTION.path, QUESTION.body, {"user-agent": "agent-of-the-test/1.0 (more)"})
    id = reply.headers["x-toolspeak-trace"]
    assert soon(lambda: gateway.ask("GET", f"/traces/{id}").status == 200, 5)
    return id


def test_the_page_of_a_response_tells_what_happened_obs16(gateway: Served, trace: str) -> None:
    page = gateway.ask("GET", f"/ui/requests/{trace}").body.decode()
    for said in (
        "agent-of-the-test/1.0 asked m over openai_chat with 2 messages and 1 tool",
        "because the mode is force",
        "<b>Asked again:</b> its calls cannot run: get_weather",
        'class="span invalid" title="a rejected call: schema_error',
        "What changed since attempt 1",
        "What toolspeak changed in the client&#39;s request",
        "<code>get_weather</code>",
        "tool get_weather",
    ):
        assert said in page, said


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("json", b'"body":"{'),
        ("markdown", b"# Trace "),
        ("curl", b'authorization: Bearer $TOOLSPEAK_KEY"'),
        ("case?attempt=2", b'"expect":{"calls":[{"name":"get_weather"'),
        ("text?attempt=1", b'{"town": 7}'),
        ("request", b'"messages"'),
    ],
)
def test_a_trace_can_be_downloaded(gateway: Served, trace: str, form: str, wanted: bytes) -> None:
    reply = gateway.ask("GET", f"/ui/requests/{trace}/export/{form}")
    assert reply.status == 200
    assert reply.headers["content-disposition"].startswith(f'attachment; filename="trace-{trace}.')
    assert wanted in reply.body


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("requests/none", 404),
        ("requests", 404),
        ("requests/{}/export/exe", 404),
        ("requests/{}/export/text?attempt=9", 404),
        ("requests/{}/export/case?attempt=x", 400),
        ("requests/{}/text/9", 404),
        ("requests/{}/none", 404),
        ("requests/%3Cscript%3E", 404),
    ],
)
def test_an_address_that_leads_nowhere_gets_a_page_that_says_so(
    gateway: Served, trace: str, path: str, status: int
) -> None:
    reply = gateway.ask("GET", f"/ui/{path.format(trace)}")
    assert reply.status == status
    assert b"Back to the requests" in reply.body
    assert b"<script>" not in reply.body


def test_a_replay_under_another_mode_shows_what_the_client_would_get(gateway: Served, trace: str) -> None:
    off = send_form(gateway, f"/ui/requests/{trace}/replay", mode="off").body.decode()
    assert "The client would get another answer." in off
    same = send_form(gateway, f"/ui/requests/{trace}/replay", dialect="fenced").body.decode()
    assert "The client would get the same answer." in same


@pytest.mark.parametrize("fields", [{"mode": "magic"}, {"dialect": "../../etc/passwd"}, {"dialect": "<script>"}])
def test_a_replay_with_unknown_settings_is_refused(gateway: Served, trace: str, fields: dict[str, str]) -> None:
    reply = send_form(gateway, f"/ui/requests/{trace}/replay", {"hx-request": "true"}, **fields)
    assert reply.status == 400
    assert b"<script>" not in reply.body


def test_another_tenant_finds_no_page_of_a_response(locked: Served) -> None:
    sent = locked.post(QUESTION.path, QUESTION.body, {"authorization": "Bearer sk-anna-key"})
    trace = sent.headers["x-toolspeak-trace"]
    anna, ben = log_in(locked, "sk-anna-key"), log_in(locked, "sk-ben-key")
    for path in ("", "/json", "/text/1", "/export/json", "/export/request", "/export/curl"):
        assert soon(lambda path=path: locked.ask("GET", f"/ui/requests/{trace}{path}", headers=anna).status == 200, 5)
        assert locked.ask("GET", f"/ui/requests/{trace}{path}", headers=ben).status == 404
    assert send_form(locked, f"/ui/requests/{trace}/replay", ben, mode="off").status == 404


def test_a_trace_without_content_says_how_to_keep_it(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(CALL))
    with serving(config_of(towards(upstream), settings=FORCED, traces=Traces(content=False))) as gateway:
        trace = gateway.post(QUESTION.path, QUESTION.body).headers["x-toolspeak-trace"]
        assert soon(lambda: gateway.ask("GET", f"/traces/{trace}").json.get("status") == 200, 5)
        page = gateway.ask("GET", f"/ui/requests/{trace}").body.decode()
        assert "Kept without content" in page
        assert "content = true" in page
        assert "Oslo" not in page
        assert gateway.ask("GET", f"/ui/requests/{trace}/text/1").status == 400


def test_without_traces_the_list_says_how_to_switch_them_on(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream), traces=Traces(enabled=False))) as gateway:
        assert b"Traces are switched off" in gateway.ask("GET", "/ui").body
        assert gateway.ask("GET", "/ui/requests/abc").status == 404


def test_no_key_is_on_any_page_or_in_the_log(upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture) -> None:
    """Canaries: the client's key, a wrong key, the upstream's key in an error, and the session's token."""
    caplog.set_level("DEBUG")
    upstream.answers(refuse(401, f"the key {UPSTREAM_KEY} is wrong"))
    with serving(locked_config(upstream)) as gateway:
        sent = gateway.post(QUESTION.path, QUESTION.body, {"authorization": "Bearer sk-anna-key"})
        cookie = log_in(gateway, "sk-anna-key")
        token = cookie["cookie"].partition("=")[2]
        trace = sent.headers["x-toolspeak-trace"]
        assert soon(lambda: trace.encode() in gateway.ask("GET", "/ui", headers=cookie).body, 5)
        pages = [send_form(gateway, "/ui/login", key="sk-wrong-key").body]
        own = f"/ui/requests/{trace}"
        paths = (
            "/ui",
            "/ui/none",
            own,
            f"{own}/json",
            f"{own}/export/json",
            f"{own}/export/curl",
            f"{own}/export/markdown",
        )
        pages += [gateway.ask("GET", path, headers=cookie).body for path in paths]
        pages.append(send_form(gateway, f"{own}/replay", cookie, mode="off").body)
    seen = b"\n".join(pages) + caplog.text.encode()
    for secret in ("sk-anna-key", "sk-wrong-key", UPSTREAM_KEY, token):
        assert secret.encode() not in seen


def test_a_page_stays_small_whatever_was_written(upstream: ScriptedUpstream) -> None:
    long = "<&\"'\x1b" * (1 << 19)
    upstream.answers(answering(Answer(f"{long}{CALL.text}")))
    body = {**(QUESTION.body or {}), "messages": [{"role": "user", "content": long[: 1 << 20]}] * 3}
    with serving(config_of(towards(upstream), settings=FORCED, traces=Traces(bytes=256 << 20))) as gateway:
        trace = gateway.post(QUESTION.path, body).headers["x-toolspeak-trace"]
        assert soon(lambda: gateway.ask("GET", f"/traces/{trace}").json.get("status") == 200, 10)
        for path in ("", "/json", "/text/1"):
            page = gateway.ask("GET", f"/ui/requests/{trace}{path}").body
            assert 1000 < len(page) < 1_000_000
            assert b"characters more" in page
        whole = gateway.ask("GET", f"/ui/requests/{trace}/export/text?attempt=1").body.decode()
        assert whole.startswith(long)


# ---------------------------------------------------------------- the live stream


def events_of(connection: http.client.HTTPResponse, wanted: bytes, seconds: float = 5.0) -> bytes:
    """Read a stream until it has said something."""
    said, end = b"", time.monotonic() + seconds
    while wanted not in said:
        assert time.monotonic() < end, said[-500:]
        said += connection.read1(65536)
    return said


@contextmanager
def watching(
    gateway: Served, query: str = "", headers: Mapping[str, str] | None = None
) -> Generator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=5)
    connection.request("GET", f"/ui/events{query}", headers=dict(headers or {}))
    try:
        with connection.getresponse() as response:
            yield response
    finally:
        connection.close()


def test_a_viewer_sees_a_request_while_it_runs_and_when_it_ends_obs16(upstream: ScriptedUpstream) -> None:
    upstream.answers(hang)
    with serving(config_of(towards(upstream), settings=FORCED)) as gateway, watching(gateway) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store"
        client = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
        client.request("POST", QUESTION.path, json.dumps(QUESTION.body).encode())
        said = events_of(stream, b"waits for the model")
        assert b"event: row" in said
        client.close()
        assert b"client left" in events_of(stream, b"id: 1\n")
        assert gateway.app.gateway.admission.inside == 0


def test_the_filter_for_running_requests_drops_those_that_end(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(CALL))
    with watching(gateway, "?show=running&since=999999") as stream:
        events_of(stream, b"retry:")
        trace = gateway.post(QUESTION.path, QUESTION.body).headers["x-toolspeak-trace"]
        assert b"event: gone" in events_of(stream, f"data: r-{trace}\n".encode())


def test_a_viewer_sees_no_other_tenant(locked: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(CALL))
    with watching(locked, headers=log_in(locked, "sk-ben-key")) as stream:
        events_of(stream, b"retry:")
        other = locked.post(QUESTION.path, QUESTION.body, {"authorization": "Bearer sk-anna-key"})
        own = locked.post(QUESTION.path, QUESTION.body, {"authorization": "Bearer sk-ben-key"})
        said = events_of(stream, own.headers["x-toolspeak-trace"].encode())
        assert other.headers["x-toolspeak-trace"].encode() not in said


def test_viewers_are_bounded_and_hold_up_no_shutdown(upstream: ScriptedUpstream) -> None:
    with ExitStack() as stack:
        with serving(config_of(towards(upstream))) as gateway:
            streams = [stack.enter_context(watching(gateway)) for _ in range(16)]
            assert [stream.status for stream in streams] == [200] * 16
            with watching(gateway) as refused:
                assert refused.status == 503
            assert gateway.ask("GET", "/ui").status == 200
            began = time.monotonic()
        assert time.monotonic() - began < 3
        assert all(stream.read().endswith(b"\n\n") for stream in streams)


def test_a_session_ends_after_twelve_idle_hours() -> None:
    clock = _Clock()
    sessions = Sessions(clock)
    cookie = _Cookie(sessions.begin(KEYS[0], is_secure=False).decode().partition(";")[0])
    for hours, is_known in ((11.0, True), (11.0, True), (12.1, False), (0.0, False)):
        clock.now += hours * 3600
        assert (sessions.find(cast("Exchange", cookie), Keyring(KEYS)) is not None) is is_known


def test_the_oldest_sessions_end_when_there_are_too_many() -> None:
    sessions = Sessions(_Clock())
    cookies = [sessions.begin(KEYS[0], is_secure=False).decode().partition(";")[0] for _ in range(1001)]
    found = [sessions.find(cast("Exchange", _Cookie(one)), Keyring(KEYS)) for one in (cookies[0], cookies[-1])]
    assert found == [None, KEYS[0]]


class _Clock(Clock):
    now = 0.0

    @override
    def monotonic(self) -> float:
        return self.now


def test_a_gateway_loads_the_pages_only_when_they_are_asked_for() -> None:
    code = "import sys, toolspeak.gateway.server; print({'jinja2', 'toolspeak.dashboard'} & {*sys.modules})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "set()\n"


def test_a_page_that_is_closed_is_no_news_for_the_log(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "toolspeak")
    with watching(gateway) as stream:
        events_of(stream, b"retry:")
    assert soon(lambda: not gateway.app.gateway.viewers._of_tenant.total(), 5)
    assert [record for record in caplog.records if record.name.startswith("toolspeak")] == []


def test_a_reload_ends_the_streams_so_that_their_keys_are_checked_again(upstream: ScriptedUpstream) -> None:
    with serving(locked_config(upstream)) as gateway:
        cookie, app = log_in(gateway, "sk-anna-key"), gateway.app
        fewer = replace(app.gateway.config, keys=KEYS[1:])
        with watching(gateway, headers=cookie) as stream:
            events_of(stream, b"retry:")
            reloader = Reloader(app, lambda: fewer)
            asyncio.run_coroutine_threadsafe(reloader.reload(), gateway.server.loop).result(10)
            assert stream.read() == b""
        assert gateway.ask("GET", "/ui/events", headers=cookie).status == 401
        assert gateway.ask("GET", "/ui", headers=cookie).status == 303


def test_a_busy_gateway_sends_the_newest_rows_only(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(CALL))
    with serving(config_of(towards(upstream), settings=FORCED)) as gateway:
        ids = [gateway.post(QUESTION.path, QUESTION.body).headers["x-toolspeak-trace"] for _ in range(60)]
        assert soon(lambda: gateway.app.gateway.traces.ended_count == 60, 5)
        stream = RowStream(gateway.app.gateway.traces, TraceQuery(), 0, only_running=False)
        said = asyncio.run(stream.news()).decode()
        assert [id for id in ids if f'id="r-{id}"' in said] == ids[-40:]
        assert "id: 60\n" in said
        assert asyncio.run(stream.news()) == b""
