"""What the gateway takes from clients, at each limit, one below and one above (SAFE-7, P7)."""

import asyncio
import json
import threading
import time
from collections.abc import Generator

import pytest

from testkit.protocols import WIRES, answering, error_faults, question
from testkit.scripted_upstream import Asked, ScriptedUpstream, hang, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import (
    Served,
    config_of,
    head,
    key,
    read_all,
    read_reply,
    send_until_cut,
    serving,
    soon,
    status_of,
    towards,
)
from toolspeak.config.shape import Limits

HEAD, BODY = 2048, 4096
HEAD_S, IDLE_S = 0.4, 0.15
LIMITS = Limits(body_bytes=BODY, header_bytes=HEAD, header_seconds=HEAD_S, body_idle_seconds=IDLE_S)
LATE = 5.0
"""Seconds that a busy machine may add."""


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    with serving(config_of(towards(upstream), limits=LIMITS)) as served:
        yield served


def body_of(size: int, wire: str = "openai_chat") -> bytes:
    """Make a good body of exactly so many bytes."""
    asked = question(wire).body or {}
    short = json.dumps(asked).replace("How is the weather?", "").encode()
    return json.dumps(asked).replace("How is the weather?", "x" * (size - len(short))).encode()


def head_of(size: int, *, path: str = "/health") -> bytes:
    """Make the head of a request of exactly so many bytes."""
    short = head(path, "GET", connection="close", x="")
    return head(path, "GET", connection="close", x="y" * (size - len(short)))


# ---------------------------------------------------------------- heads


@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize(("size", "status"), [(HEAD - 1, 200), (HEAD, 200), (HEAD + 1, 431), (40 * HEAD, 431)])
def test_a_head_has_a_largest_size_however_it_is_cut_safe7(
    gateway: Served, size: int, status: int, pieces: int
) -> None:
    connection = gateway.connect()
    data = head_of(size)
    assert len(data) == size
    step = -(-size // pieces)
    try:
        for start in range(0, size, step):
            connection.sendall(data[start : start + step])
            time.sleep(0.002 if pieces > 1 else 0)
    except OSError:
        assert status == 431, "it may hang up before all has come"
    assert status_of(read_all(connection)) == status


def test_a_long_path_and_many_small_headers_count_too_safe7(gateway: Served) -> None:
    assert status_of(gateway.raw(head("/" + "a" * HEAD, "GET"))) == 431
    assert status_of(gateway.raw(head("/?" + "a" * HEAD, "GET"))) == 431
    assert status_of(gateway.raw(head("/", "GET", **{f"a{number}": "" for number in range(HEAD // 6)}))) == 431


def test_a_head_without_end_is_not_kept_safe7(gateway: Served) -> None:
    connection = gateway.connect()
    assert send_until_cut(connection, b"x" * 65536, 1 << 28) < 1 << 25


@pytest.mark.parametrize(
    "said", [b"", b"G", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nhost: localhost\r\n"]
)
def test_a_slow_head_is_cut_safe7(gateway: Served, said: bytes) -> None:
    connection = gateway.connect()
    began = time.monotonic()
    connection.sendall(said)
    assert read_all(connection) == b""
    assert HEAD_S * 0.9 < time.monotonic() - began < HEAD_S + LATE


def test_a_head_that_drips_is_cut_all_the_same_safe7(gateway: Served) -> None:
    """Slowloris: a byte now and then must not win more time."""
    connection = gateway.connect()
    began = time.monotonic()
    connection.sendall(b"GET /health HTTP/1.1\r\nx: ")
    send_until_cut(connection, b"y", HEAD, pause=0.02)
    assert HEAD_S * 0.9 < time.monotonic() - began < HEAD_S + LATE


def test_the_second_head_on_a_connection_has_the_same_limits_safe7(gateway: Served) -> None:
    connection = gateway.connect()
    connection.sendall(head("/health", "GET"))
    assert status_of(read_reply(connection)) == 200
    time.sleep(HEAD_S * 1.5)
    connection.sendall(head("/health", "GET"))
    assert status_of(read_reply(connection)) == 200, "an idle connection is no slow head"
    began = time.monotonic()
    connection.sendall(b"GET /hea")
    assert read_all(connection) == b""
    assert time.monotonic() - began < HEAD_S + LATE


# ---------------------------------------------------------------- bodies


def chunked(body: bytes) -> bytes:
    half = len(body) // 2
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:half], body[half:])) + b"0\r\n\r\n"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("size", "status"), [(BODY - 1, 200), (BODY, 200), (BODY + 1, 413)])
def test_a_body_has_a_largest_size_safe7(gateway: Served, wire: str, size: int, status: int) -> None:
    body, path = body_of(size, wire), question(wire).path
    assert len(body) == size
    whole = gateway.post(path, body)
    lines = head(path, transfer_encoding="chunked", connection="close")
    in_chunks = gateway.raw(lines + chunked(body))
    assert (whole.status, status_of(in_chunks)) == (status, status)
    if status == 413:
        assert error_faults(wire, 413, whole.json) == []
        assert error_faults(wire, 413, json.loads(in_chunks.partition(b"\r\n\r\n")[2])) == []


def test_a_body_that_says_it_is_too_large_is_not_waited_for_safe7(gateway: Served) -> None:
    for length in (BODY + 1, 10**15, 10**30):
        connection = gateway.connect()
        connection.sendall(head(content_length=length, expect="100-continue"))
        assert status_of(connection.recv(9999)) in (413, 400)


def test_a_client_that_asks_before_it_sends_is_told_to(gateway: Served) -> None:
    connection = gateway.connect()
    body = body_of(1000)
    connection.sendall(head(content_length=len(body), expect="100-continue", connection="close"))
    assert status_of(connection.recv(9999)) == 100
    connection.sendall(body)
    assert status_of(read_all(connection)) == 200


@pytest.mark.parametrize("wire", WIRES)
def test_a_body_that_stops_is_not_waited_for_safe7(gateway: Served, wire: str) -> None:
    body = body_of(1000, wire)
    connection = gateway.connect()
    began = time.monotonic()
    connection.sendall(head(question(wire).path, content_length=len(body)) + body[:500])
    said = read_reply(connection)
    assert IDLE_S * 0.9 < time.monotonic() - began < IDLE_S + LATE
    assert status_of(said) == 408
    assert error_faults(wire, 408, json.loads(said.partition(b"\r\n\r\n")[2])) == []


def test_a_body_that_drips_is_cut_all_the_same_safe7(upstream: ScriptedUpstream) -> None:
    idle = 0.5  # a busy machine may keep this test from the next byte for so long
    with serving(config_of(towards(upstream), limits=Limits(body_idle_seconds=idle))) as gateway:
        connection = gateway.connect()
        began = time.monotonic()
        connection.sendall(head(content_length=1000))
        connection.settimeout(0.03)
        said = b""
        for _ in range(1000):
            connection.sendall(b" ")
            try:
                said = connection.recv(9999)
                break
            except TimeoutError:
                pass
        took = time.monotonic() - began
    assert status_of(said) == 408
    assert idle * 8 < took < idle * 10 + LATE


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/nothing"])
def test_the_rest_of_a_refused_body_is_not_taken_for_ever_safe7(gateway: Served, path: str) -> None:
    """Its answer has left; what still comes is dropped, for a while."""
    connection = gateway.connect()
    connection.sendall(head(path, content_length=10**9 if path.endswith("g") else BODY + 1))
    assert status_of(read_reply(connection)) in (404, 413)
    began = time.monotonic()
    send_until_cut(connection, b"x", BODY, pause=0.02)
    assert time.monotonic() - began < HEAD_S + LATE


@pytest.mark.parametrize("field", [b"x: %b\r\n" % (b"y" * 100), b"x" * 102])
def test_what_stands_behind_a_body_is_limited_too_safe7(gateway: Served, field: bytes) -> None:
    """Trailers, many or a single one without end."""
    connection = gateway.connect()
    connection.sendall(head(transfer_encoding="chunked") + b"2\r\n{}\r\n0\r\n")
    assert send_until_cut(connection, field * 500, 1 << 26) < 1 << 24


def test_an_extension_of_a_chunk_is_limited_too_safe7(gateway: Served) -> None:
    connection = gateway.connect()
    connection.sendall(head(transfer_encoding="chunked") + b"2;a=")
    assert send_until_cut(connection, b"y" * 50_000, 1 << 26) < 1 << 24


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "x-gzip", "identity, gzip", "aws-chunked"])
def test_a_packed_body_is_refused_not_unpacked_safe7(gateway: Served, wire: str, encoding: str) -> None:
    reply = gateway.post(question(wire).path, b"\x1f\x8b\x08", {"content-encoding": encoding})
    assert reply.status == 415
    assert error_faults(wire, 415, reply.json) == []


def test_identity_is_no_packing(gateway: Served) -> None:
    assert (
        gateway.post(question("gemini").path, question("gemini").body, {"content-encoding": "Identity"}).status == 200
    )


# ---------------------------------------------------------------- how many


@pytest.mark.parametrize("wire", WIRES)
def test_so_many_at_once_and_no_more_safe7(wire: str) -> None:
    with listening() as upstream, serving(config_of(towards(upstream), limits=Limits(concurrent=3))) as gateway:
        upstream.answers(hang)
        asked = question(wire)
        lines = head(asked.path, content_length=len(json.dumps(asked.body))) + json.dumps(asked.body).encode()
        waiting = [gateway.connect() for _ in range(3)]
        for connection in waiting:
            connection.sendall(lines)
        upstream.wait_for(3)
        refused = gateway.post(asked.path, asked.body)
        assert refused.status == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["x-should-retry"] == "true"
        assert error_faults(wire, 429, refused.json) == []
        assert gateway.ask("GET", "/health").status == 200, "who is busy is not dead"
        assert gateway.inside == 3
        waiting[0].close()
        # The three arrive at the upstream in any order, so it may be any of them.
        assert soon(lambda: any(one.hung_up.is_set() for one in upstream.asked), 10)
        upstream.answers(answering(Answer("It is cold.")))
        assert gateway.post(asked.path, asked.body).status == 200


def test_so_many_of_one_key_and_no_more_safe7() -> None:
    keys = (key("one", "first", concurrent=1), key("two", "second", concurrent=2), key("three", "third"))
    with listening() as upstream, serving(config_of(towards(upstream), keys=keys)) as gateway:
        asked = question("openai_chat")
        replies: list[int] = []

        def ask(shown: str) -> None:
            replies.append(gateway.post(asked.path, asked.body, {"x-api-key": shown}).status)

        release = threading.Event()

        async def held(told: Asked) -> None:
            await asyncio.to_thread(release.wait)
            await answering(Answer("It is cold."))(told)

        upstream.answers(held)
        threads = [
            threading.Thread(target=ask, args=(name,)) for name in ("one", "two", "two", "three", "three", "three")
        ]
        for thread in threads:
            thread.start()
        upstream.wait_for(6)
        for name, status in (("one", 429), ("two", 429)):
            assert gateway.post(asked.path, asked.body, {"x-api-key": name}).status == status
        release.set()
        for thread in threads:
            thread.join()
        assert replies == [200] * 6
        assert gateway.post(asked.path, asked.body, {"x-api-key": "one"}).status == 200
        assert gateway.inside == 0
