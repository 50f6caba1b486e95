"""Two readers of one byte stream must not see different requests: what is ambiguous is refused (SAFE-6, SAFE-7)."""

import json
import re
from collections.abc import Generator

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import Asked, ScriptedUpstream, hang
from testkit.timing import BAR, growth
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Served, config_of, head, read_all, read_reply, serving, status_of, towards
from toolspeak.config.shape import Limits

HIDDEN = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n"
"""A request inside the body of another: nobody may answer it."""
BODY = json.dumps(question("openai_chat").body).encode()


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    limits = Limits(header_seconds=0.3, body_idle_seconds=0.3)
    with serving(config_of(towards(upstream), limits=limits)) as served:
        yield served


def replies(gateway: Served, data: bytes) -> list[int]:
    """Send bytes, wait until the connection closes, and return the status of every answer."""
    connection = gateway.connect()
    connection.sendall(data)
    said = read_all(connection)
    assert b'"data"' not in said, "the hidden request was answered"
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d\d\d) ", said)]


AMBIGUOUS = {
    "a length and chunks": (b"content-length: 4\r\ntransfer-encoding: chunked", b"0\r\n\r\n"),
    "chunks and a length": (b"transfer-encoding: chunked\r\ncontent-length: 4", b"0\r\n\r\n"),
    "two lengths": (b"content-length: 0\r\ncontent-length: 46", b""),
    "a list of lengths": (b"content-length: 0, 46", b""),
    "a length with a sign": (b"content-length: +0", b""),
    "a negative length": (b"content-length: -1", b""),
    "a length in hex": (b"content-length: 0x0", b""),
    "a length with letters": (b"content-length: 0a", b""),
    "no length at all": (b"content-length: ", b""),
    "chunks not last": (b"transfer-encoding: chunked, identity", b"0\r\n\r\n"),
    "chunks twice": (b"transfer-encoding: chunked\r\ntransfer-encoding: identity", b"0\r\n\r\n"),
    "unknown coding": (b"transfer-encoding: xchunked", b"0\r\n\r\n"),
    "coding with a space before the colon": (b"transfer-encoding : chunked", b"0\r\n\r\n"),
    "coding with a vertical tab": (b"transfer-encoding: \x0bchunked", b"0\r\n\r\n"),
    "a folded coding": (b"transfer-encoding:\r\n chunked", b"0\r\n\r\n"),
    "a size of a chunk with a sign": (b"transfer-encoding: chunked", b"-1\r\n"),
    "a size of a chunk that is too large": (b"transfer-encoding: chunked", b"ffffffffffffffff0\r\n"),
    "a chunk longer than its size": (b"transfer-encoding: chunked", b"1\r\nabcdef\r\n0\r\n\r\n"),
    "a chunk ended by a bare newline": (b"transfer-encoding: chunked", b"1\na\n0\n\n"),
    "a null in a header": (b"x: a\x00b\r\ncontent-length: 0", b""),
    "a bare return in a header": (b"x: a\rcontent-length: 46", b""),
    "a header without a name": (b": x\r\ncontent-length: 0", b""),
}


@pytest.mark.parametrize(("headers", "body"), AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_an_ambiguous_request_is_refused_and_ends_the_connection(gateway: Served, headers: bytes, body: bytes) -> None:
    """The next request is never read: whose it is cannot be known."""
    lines = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n%b\r\n\r\n" % headers
    assert set(replies(gateway, lines + body + HIDDEN)) <= {400, 408}


def test_the_request_behind_a_good_one_is_another_one(gateway: Served) -> None:
    """The bar of the tests above: what is not ambiguous is answered, one after the other."""
    first = head(content_length=len(BODY)) + BODY
    assert replies(gateway, first + first + head("/health", "GET", connection="close")) == [200, 200, 200]


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0", "anything"])
@pytest.mark.parametrize("pieces", [1, 2, 9])
def test_a_wish_to_upgrade_leaves_the_body_a_body(
    gateway: Served, upstream: ScriptedUpstream, protocol: str, pieces: int
) -> None:
    """Java's client asks for h2c in every first request. A body taken for the next request would be smuggled."""
    upstream.answers(answering(Answer("It is cold.")))
    asked = head(
        connection="Upgrade, HTTP2-Settings",
        upgrade=protocol,
        http2_settings="AAMAAABkAARAAAAAAAIAAAAA",
        content_length=len(BODY),
    )
    data = asked + BODY
    connection = gateway.connect()
    step = -(-len(data) // pieces)
    for start in range(0, len(data), step):
        connection.sendall(data[start : start + step])
    assert status_of(read_reply(connection)) == 200
    assert upstream.asked[0].json["messages"]
    connection.sendall(head("/health", "GET", connection="close"))
    assert b'{"status":"ok"}' in read_all(connection)


def test_a_request_hidden_in_an_upgrade_is_part_of_the_body(gateway: Served) -> None:
    body = HIDDEN.ljust(100)
    asked = head(connection="close, Upgrade", upgrade="h2c", content_length=len(body))
    assert replies(gateway, asked + body) == [400]
    small = b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)
    assert replies(gateway, head(connection="close, Upgrade", upgrade="h2c", transfer_encoding="chunked") + small) == [
        400
    ]


def test_a_key_behind_the_body_is_no_key_safe6(gateway: Served) -> None:
    """A proxy in front of us may have taken the header out."""
    chunks = b"%x\r\n%b\r\n0\r\nx-toolspeak-mode: nonsense\r\norigin: http://evil.com\r\n\r\n" % (len(BODY), BODY)
    assert replies(gateway, head(transfer_encoding="chunked", connection="close") + chunks) == [200]


# ---------------------------------------------------------------- other protocols


def health(**headers: str) -> bytes:
    return head("/health", "GET", **headers)


CONNECTS = (
    b"CONNECT / HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"CONNECT / HTTP/1.0\r\nhost: localhost\r\n\r\n",
    b"CONNECT /v1/models HTTP/1.1\r\nhost: localhost\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
    b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"CONNECT / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nhello",
)


@pytest.mark.parametrize("request_bytes", CONNECTS)
def test_connect_is_refused_with_one_short_line_of_log(
    gateway: Served, request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """39 bytes once blocked the event loop for half a second and logged 300 KB: the request was replayed for ever."""
    caplog.set_level("INFO")
    assert replies(gateway, request_bytes + HIDDEN) == [400]
    assert all(record.exc_info is None for record in caplog.records)
    assert sum(len(record.getMessage()) for record in caplog.records) < 400


@pytest.mark.parametrize("number", [1, 5, 30])
def test_pipelined_upgrades_are_answered_one_by_one(gateway: Served, number: int) -> None:
    asked = health(connection="upgrade", upgrade="h2c") * number + health(connection="close")
    assert replies(gateway, asked) == [200] * (number + 1)


def test_a_long_pipeline_is_cut_and_costs_little(gateway: Served, caplog: pytest.LogCaptureFixture) -> None:
    """3,000 upgrades in one packet grew the stack until it broke; other clients waited for two seconds."""
    caplog.set_level("INFO")
    for each in (health(connection="upgrade", upgrade="websocket"), health()):
        assert set(replies(gateway, each * 3000)) <= {200, 400}
        assert growth(lambda number, each=each: replies(gateway, each * number), 1500, 3000) < BAR
    assert all(record.exc_info is None for record in caplog.records)
    assert sum(len(record.getMessage()) for record in caplog.records) < 10_000
    assert replies(gateway, health(connection="close")) == [200]


def test_a_body_in_crumbs_is_refused(gateway: Served) -> None:
    """Each chunk costs a callback: 32 MiB in chunks of one byte would keep the event loop busy for a minute."""
    crumbs = b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n"
    assert set(replies(gateway, head(transfer_encoding="chunked") + crumbs)) <= {400}


async def one_word(asked: Asked) -> None:
    """Send one word of an answer, and no more."""
    asked.head()
    await asked.chunk(STREAMS["openai_chat"](Answer("It is cold. " * 100)).encode()[:2000])
    await hang(asked)


def test_an_error_after_the_response_began_writes_nothing_into_it(gateway: Served, upstream: ScriptedUpstream) -> None:
    """A second status line inside a response would be taken for its content."""
    upstream.answers(one_word)
    body = json.dumps(question("openai_chat", stream=True).body).encode()
    connection = gateway.connect()
    connection.sendall(head(content_length=len(body)) + body)
    said = bytearray()
    while b"data: " not in said:
        said += connection.recv(65536)
    connection.sendall(b"\x00\x01 not HTTP\r\n\r\n")
    said += read_all(connection)
    assert re.findall(rb"HTTP/1.1 \d+", said) == [b"HTTP/1.1 200"]
    upstream.answers(answering(Answer("It is cold.")))
