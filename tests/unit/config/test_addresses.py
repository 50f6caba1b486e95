"""URLs and addresses (SAFE-6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from toolspeak.config import Config, Key, Server, check_public
from toolspeak.config.addresses import (
    is_loopback,
    is_near,
    reaches_this_machine_only,
    same_server,
    same_url,
    upstream_name,
    url_problem,
)
from toolspeak.errors import BadConfig

GOOD = [
    "http://127.0.0.1:8080/v1",
    "https://api.example.com",
    "HTTPS://API.example.com:443/v1/",
    "http://[::1]:80/v1",
    "http://my_box.local/a~b/%20/c",
]
BAD = [
    "",
    "127.0.0.1:8080",
    "http://",
    "http:///v1",
    "file:///etc/passwd",
    "http://h:0/v1",
    "http://h:65536/v1",
    "http://h:x/v1",
    "http://h\\@evil/v1",
    "http://h\\evil",
    "http://h/v1 ",
    "http://h/v1\n",
    "http://h\t/v1",
    "http://-h/v1",
    "http://h_/v1?",
    "http://u@h/v1",
    "http://u:p@h/v1",
    "http://h/v1?a=b",
    "http://h/v1#a",
    "http://h%2fevil/v1",
    "http://hé/v1",
    "http://[::1/v1",
    "http://[1]",
]


@pytest.mark.parametrize("url", GOOD)
def test_plain_urls_are_taken(url: str) -> None:
    assert url_problem(url) is None


@pytest.mark.parametrize("url", BAD)
def test_other_urls_are_refused(url: str) -> None:
    assert url_problem(url)


@given(st.text(alphabet="htps:/@\\?#[]%.aA1-_ \n\té", max_size=30).map(lambda rest: "http://" + rest))
def test_the_http_client_reads_a_url_as_we_do(url: str) -> None:
    """SAFE-6: nobody behind us may see another host in it."""
    if url_problem(url) is None:
        read = URL(url)
        assert read.host is not None
        assert upstream_name(url).rpartition(":")[0] in ("", read.host.lower()) or upstream_name(url).startswith("[")
        assert same_server(url, str(read.origin()))


def test_two_urls_are_one() -> None:
    assert same_url("http://LOCALHOST:80/v1/", "http://127.0.0.1/v1")
    assert same_url("https://h:443", "https://h/")
    assert not same_url("http://h/v1", "https://h/v1")
    assert not same_url("http://h/v1", "http://h/v2")
    assert same_server("https://h/v1", "https://h/v2")
    assert not same_server("https://h", "https://h.evil")
    assert not same_server("https://h", "https://h:444")


def test_an_upstream_without_a_name_has_that_of_its_host() -> None:
    assert upstream_name("http://127.0.0.1:8080/v1") == "127.0.0.1:8080"
    assert upstream_name("https://API.example.com/v1") == "api.example.com"


LOOPBACK = ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LocalHost"]
PUBLIC = [
    "0.0.0.0",  # noqa: S104 # the case
    "::",
    "",
    "192.168.1.2",
    "10.0.0.1",
    "example.com",
    "localhost.example.com",
    "127.0.0.1.evil",
    "127.1",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_needs_no_key(host: str) -> None:
    assert is_loopback(host)
    check_public(Config(Server(host)))


@pytest.mark.parametrize("host", PUBLIC)
def test_a_public_address_needs_a_key(host: str) -> None:
    """SAFE-6."""
    assert not is_loopback(host)
    with pytest.raises(BadConfig, match=r"server.host: .* set one \(--key KEY, TOOLSPEAK_KEY, or \[\[keys\]\]"):
        check_public(Config(Server(host)))
    check_public(Config(Server(host), keys=(Key("a", b"digest"),)))


def test_a_url_may_stay_on_this_machine() -> None:
    assert reaches_this_machine_only("http://localhost:1/v1")
    assert reaches_this_machine_only("http://[::1]:1/v1")
    assert not reaches_this_machine_only("http://127.0.0.1.example.com/v1")


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.7/v1", True),
        ("http://10.0.0.1:11434", True),
        ("http://ollama:11434", True),
        ("https://api.groq.com/openai/v1", False),
        ("http://8.8.8.8/v1", False),
        ("http://[2606:4700::1111]/v1", False),
    ],
)
def test_only_what_is_near_may_be_probed_to_the_bottom_cap4(url: str, near: bool) -> None:
    assert is_near(url) is near
