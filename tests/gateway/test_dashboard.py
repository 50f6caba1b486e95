"""The dashboard at `/ui`: headers, login, tenants, forms of other pages, hostile text (OBS-16)."""

from collections.abc import Generator, Mapping
from urllib.parse import urlencode

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import Config, DashboardSettings, Traces
from toolspeak.engine.settings import Mode, Settings
from toolspeak.gateway.access import Keyring

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
    sessions, exchange = locked.app.gateway.sessions, _Cookie(cookie["cookie"])
    assert sessions.find(exchange, Keyring(KEYS)) is not None  # type: ignore[arg-type]
    assert sessions.find(exchange, Keyring(KEYS[1:])) is None  # type: ignore[arg-type]


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
