"""Which Host and Origin may ask: a page in a browser, or a name that leads here, must not reach a handler (SAFE-6)."""

import re
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from testkit.protocols import WIRES, error_faults, question
from testkit.scripted_upstream import ScriptedUpstream
from tests.gateway.scene import Served, config_of, head, key, serving, status_of, towards
from toolspeak.config.shape import Config, Server
from toolspeak.gateway.access import HostPolicy
from toolspeak.gateway.exchange import Refused

PAGE = "https://chat.example.com"
NAMED = "tools.example.com"


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    server = Server(hosts=(NAMED,), origins=(PAGE,))
    with serving(config_of(towards(upstream), server=server)) as served:
        yield served


def listed(gateway: Served, host: str, **headers: str) -> bytes:
    """Ask for the models with this Host, as bytes: HTTP libraries would correct it."""
    return gateway.raw(head("/v1/models", "GET", host, connection="close", **headers))


OWN = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]|tools\.example\.com)(:\d{1,5})?", re.IGNORECASE)
STRANGERS = (
    "evil.com",
    "localhost.evil.com",
    "127.0.0.1.nip.io",
    "evil.com.localhost",
    "tools.example.com.evil.com",
    "xtools.example.com",
    "evil.com@localhost",
    "localhost@evil.com",
    "localhost:80@evil.com",
    "evil.com/localhost",
    "localhost/",
    "localhost/health",
    "localhost?/health",
    "localhost#/health",
    "localhost\\evil.com",
    "localhost:4141:80",
    "localhost:",
    "localhost:port",
    "localhost:999999",
    "localhost,evil.com",
    "localhost evil.com",
    "localhost.",
    "%6cocalhost",
    "localhost%00",
    "loc\u0430lhost",
    "[::1",
    "::1",
    "[::1]evil",
    "[::ffff:127.0.0.1]",
    "[fe80::1%25lo]",
    "0.0.0.0",  # noqa: S104 # only a name here
    "127.1",
    "2130706433",
    "0x7f000001",
    "192.168.0.1",
    "",
)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost:4141", "[::1]", "[::1]:1", NAMED, NAMED + ":80"])
def test_our_own_names_are_served(gateway: Served, host: str) -> None:
    assert OWN.fullmatch(host)
    assert status_of(listed(gateway, host)) == 200


@pytest.mark.parametrize("host", STRANGERS)
def test_a_strangers_host_reaches_no_handler_safe6(gateway: Served, host: str) -> None:
    said = gateway.raw(b"GET /v1/models HTTP/1.1\r\nhost: %b\r\nconnection: close\r\n\r\n" % host.encode())
    assert status_of(said) in (400, 403)
    assert b'"data"' not in said


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    host=st.lists(
        st.sampled_from([*"/?#@:[].,;%\\ \t-_~'\"", "localhost", "127.0.0.1", "[::1]", "evil.com", "80"]), max_size=5
    )
)
@example(host=["localhost", ":", "80"])
def test_no_spelling_of_a_host_gets_a_stranger_in_safe6(gateway: Served, host: list[str]) -> None:
    name = "".join(host)
    said = listed(gateway, name)
    assert (status_of(said) == 200) == (OWN.fullmatch(name.lstrip(" \t")) is not None)


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /v1/models HTTP/1.0\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nHOST: evil.com\r\nconnection: close\r\n\r\n",
        b"GET http://evil.com/v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET http://localhost/v1/models HTTP/1.1\r\nhost: evil.com\r\n\r\n",
        b"GET http://localhost HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET //evil.com/v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET evil.com/v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost : localhost\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\n host: localhost\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nx: y\r\n host: localhost\r\n\r\n",
        b"GET /v1/models\r\n\r\n",
        b"GET /v1/models HTTP/3.0\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_request_that_names_no_host_or_two_or_another_is_refused_safe6(gateway: Served, request_head: bytes) -> None:
    said = gateway.raw(request_head)
    assert status_of(said) in (400, 404)
    assert b'"data"' not in said


def test_a_host_behind_the_body_does_not_count_safe6(gateway: Served) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
    chunks = b"%x\r\n%b\r\n0\r\nhost: localhost\r\n\r\n" % (len(body), body)
    path = b"POST /v1/chat/completions HTTP/1.1\r\n"
    said = gateway.raw(path + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n" + chunks)
    assert status_of(said) == 400


def test_the_path_is_read_from_the_path_alone_safe6(upstream: ScriptedUpstream) -> None:
    """A router that rebuilds the URL from Host can be told to see an open path where a closed one is asked for."""
    with serving(config_of(towards(upstream), keys=(key("k"),))) as gateway:
        for host in ("localhost/health?", "localhost/health#", "localhost?", "localhost#", "localhost:80/health?x="):
            assert status_of(listed(gateway, host)) == 400
        for path in ("/v1/models?/health", "/v1/models;/health", "/v1/models/../health", "/%68ealth", "/health%20"):
            assert status_of(gateway.raw(head(path, "GET", "localhost", connection="close"))) in (401, 404)
        assert status_of(listed(gateway, "localhost", x_forwarded_host="evil.com", x_original_url="/health")) == 401


@pytest.mark.parametrize("wire", WIRES)
def test_a_strangers_page_gets_an_error_of_the_protocol_and_no_turn_safe6(
    gateway: Served, upstream: ScriptedUpstream, wire: str
) -> None:
    before = len(upstream.asked)
    asked = question(wire)
    for headers in ({"host": "evil.com"}, {"origin": "https://evil.com"}, {"origin": "null"}):
        reply = gateway.ask("POST", asked.path, asked.body, headers)
        assert reply.status == 403
        assert error_faults(wire, 403, reply.json) == []
        assert "access-control-allow-origin" not in reply.headers
    assert len(upstream.asked) == before


OWN_ORIGINS = ("http://localhost", "https://127.0.0.1", "http://[::1]", f"https://{NAMED}")
"""Each with the port of the gateway, or without one where the request's Host has none."""
STRANGE_ORIGINS = (
    "null",
    "https://evil.com",
    "http://localhost.evil.com",
    "http://127.0.0.1.nip.io",
    "http://evil.com/localhost",
    "http://localhost@evil.com",
    "http://evil.com@localhost",
    "http://localhost/",
    "http://localhost?",
    "http://localhost#",
    "http://localhost\t",
    "http://loc\talhost",
    "http://localhost, http://evil.com",
    "http://localhost:3000:1",
    "localhost",
    "//localhost",
    "file://",
    "file://localhost",
    "chrome-extension://localhost",
    "http:localhost",
    "http://[::1",
    "http://[::1].evil.com",
    "https://chat.example.com.evil.com",
    "https://chat.example.com:8443",
    "http://chat.example.com",
    "https://evil.com#https://chat.example.com",
)


def assert_may_ask(gateway: Served, host: str, origin: str) -> None:
    asked = question("openai_chat")
    sent = {"host": host, "origin": origin}
    for reply in (
        gateway.ask("POST", asked.path, asked.body, sent),
        gateway.ask("POST", asked.path, b"no JSON", sent),
        gateway.ask("OPTIONS", asked.path, None, {**sent, "access-control-request-method": "POST"}),
    ):
        assert reply.status in (200, 400, 204)
        assert reply.headers["access-control-allow-origin"] == origin
        assert reply.headers["vary"] == "origin"
        assert "access-control-allow-credentials" not in reply.headers


@pytest.mark.parametrize("port", ["", ":4141", ":80"])
@pytest.mark.parametrize("origin", OWN_ORIGINS)
def test_a_page_of_the_gateways_own_origin_may_ask_and_read(gateway: Served, origin: str, port: str) -> None:
    assert_may_ask(gateway, f"localhost{port}", f"{origin}{port}")


def test_a_page_that_is_named_may_ask_and_read(gateway: Served) -> None:
    assert_may_ask(gateway, "localhost:4141", PAGE)


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize("port", [":3000", ":8443", ":414", ":41410", ""])
@pytest.mark.parametrize("origin", OWN_ORIGINS)
def test_a_page_on_another_port_of_this_machine_may_not_safe6(
    gateway: Served, origin: str, port: str, method: str
) -> None:
    said = gateway.raw(
        head("/v1/models", method, "localhost:4141", origin=f"{origin}{port}", connection="close", content_length=0)
    )
    assert status_of(said) == 403
    assert b"access-control" not in said
    assert f"pages of {origin}{port} may not send requests to this gateway; server.origins can name it".encode() in said


@pytest.mark.parametrize("origin", STRANGE_ORIGINS)
def test_another_page_may_neither_ask_nor_read_safe6(gateway: Served, upstream: ScriptedUpstream, origin: str) -> None:
    before = len(upstream.asked)
    for method in ("GET", "POST", "OPTIONS"):
        lines = head("/v1/chat/completions", method, origin=origin, connection="close", content_length=0)
        said = gateway.raw(lines)
        assert status_of(said) == 403, said
        assert b"access-control" not in said
    assert len(upstream.asked) == before


def test_a_preflight_says_what_may_be_sent_and_asks_for_no_key(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream), keys=(key("k"),))) as gateway:
        wanted = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-api-key"}
        reply = gateway.ask(
            "OPTIONS", "/v1/messages", None, {"host": "localhost:3000", "origin": "http://localhost:3000", **wanted}
        )
        assert (reply.status, reply.body) == (204, b"")
        assert "content-length" not in reply.headers
        assert "POST" in reply.headers["access-control-allow-methods"]
        assert reply.headers["access-control-allow-headers"] == "*, authorization"


def test_without_an_origin_there_is_no_word_about_it(gateway: Served) -> None:
    assert not [name for name in gateway.ask("GET", "/v1/models").headers if name.startswith("access-control")]


def test_two_origins_are_refused_safe6(gateway: Served) -> None:
    lines = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\norigin: http://localhost\r\n"
    assert status_of(gateway.raw(lines + b"connection: close\r\n\r\n")) == 400


# ---------------------------------------------------------------- other addresses


class Asking:
    """As much of an exchange as doors look at."""

    method, path, query = "GET", "/", ""

    def __init__(self, **headers: str) -> None:
        self._headers = {name.encode(): value for name, value in headers.items()}

    def headers(self, name: bytes) -> list[str]:
        return [self._headers[name]] if name in self._headers else []


def lets_in(config: Config, **headers: str) -> bool:
    try:
        HostPolicy(config).check(Asking(**headers))  # pyright: ignore[reportArgumentType] # the rest is not looked at
    except Refused:
        return False
    return True


def test_behind_a_public_address_with_a_key_any_name_is_good_but_no_nonsense_safe6() -> None:
    public = Config(server=Server(host="10.0.0.5"), keys=(key("k"),))
    for host in ("10.0.0.5", "tools.example.com:443", "[2001:db8::1]:8080"):
        assert lets_in(public, host=host)
    for host in ("a/b", "a?b", "a#b", "a@b", "", "[a]", "a:b"):
        assert not lets_in(public, host=host)
    assert lets_in(public, host="10.0.0.5:8080", origin="http://10.0.0.5:8080")
    assert not lets_in(public, host="10.0.0.5:8080", origin="http://10.0.0.5:3000")
    assert not lets_in(public, host="evil.com", origin="http://evil.com")


def test_names_that_are_given_are_the_only_ones_safe6() -> None:
    named = Config(server=Server(host="10.0.0.5", hosts=("Tools.Example.com",)), keys=(key("k"),))
    assert lets_in(named, host="tools.example.COM")
    assert lets_in(named, host="10.0.0.5")
    assert not lets_in(named, host="evil.com")


def test_without_a_key_a_name_must_always_be_known_safe6() -> None:
    assert not lets_in(Config(server=Server(host="10.0.0.5")), host="evil.com")
    six = Config(server=Server(host="::1"))
    assert lets_in(six, host="[::1]:4141")
    assert not lets_in(six, host="[::2]:4141")
