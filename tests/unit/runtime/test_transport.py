"""One HTTP request and its answer, against real servers on loopback."""

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import aiohttp
import pytest
import uvloop
from aiohttp.client_reqrep import ConnectionKey

from testkit.loopback import Got, Loopback, Out, Say, in_loop, until
from toolspeak.ir.failure import FailureKind
from toolspeak.runtime.http_transport import HttpTransport, transport_error
from toolspeak.runtime.push_transport import PushTransport
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Response, Timeouts, TransportError

SECRET = "canary-7f3a"
KEY = (("authorization", f"Bearer {SECRET}"),)
SHORT = 0.1
LONG = 20.0


@pytest.fixture(autouse=True, params=[HttpTransport, PushTransport])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[HttpTransport]:
    """Run each test with the transport of each driver."""
    kind: type[HttpTransport] = request.param
    monkeypatch.setattr(sys.modules[__name__], "new_transport", kind)
    return kind


def new_transport() -> HttpTransport:
    """Make the transport of the driver under test."""
    raise AssertionError("the fixture `driver` replaces it")


@asynccontextmanager
async def transport() -> AsyncGenerator[HttpTransport]:
    made = new_transport()
    try:
        yield made
    finally:
        await made.close()


async def everything(reply: Response) -> bytes:
    found = b""
    while chunk := await reply.read():
        found += chunk
    return found


async def ask(
    sender: HttpTransport, server: Loopback, body: bytes = b"{}", timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> Response:
    return await sender.send("POST", f"{server.url}/{SECRET}?key={SECRET}", KEY, body, timeouts)


async def fetch(
    sender: HttpTransport, server: Loopback, body: bytes = b"{}", timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> bytes:
    reply = await ask(sender, server, body, timeouts)
    try:
        return await everything(reply)
    finally:
        reply.close()


async def broken(say: Say, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> TransportError:
    """Say how asking such a server fails; the URL and the key are in no message (SAFE-6)."""
    async with Loopback(say) as server, transport() as sender:
        with pytest.raises(TransportError) as caught:
            await fetch(sender, server, timeouts=timeouts)
        assert SECRET not in f"{caught.value!r} {caught.value} {caught.value.failure!r}"
        assert caught.value.__suppress_context__  # a traceback does not show aiohttp's message
        return caught.value


async def ok(_: Got, out: Out) -> None:
    await out.whole(200, b"fine")


async def streamed(_: Got, out: Out) -> None:
    await out.stream(b"one ", b"two")


async def silent(_: Got, out: Out) -> None:
    await out.gone()


def stalling(*pieces: bytes) -> Say:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        for piece in pieces:
            await out.piece(piece)
        await out.gone()

    return say


# ---------------------------------------------------------------- what goes out, what comes in


@in_loop
async def test_a_request_goes_out_as_it_is_and_nothing_is_added_that_tells_who_we_are() -> None:
    async with Loopback(ok) as server, transport() as sender:
        reply = await ask(sender, server, b'{"a": 1}')
        assert (reply.status, await everything(reply)) == (200, b"fine")
        reply.close()
        assert reply.headers["Content-Type"] == reply.headers["content-type"] == "application/json"
    got = server.got[0]
    assert (got.method, got.target, got.body) == ("POST", f"/v1/{SECRET}?key={SECRET}", b'{"a": 1}')
    assert set(got.headers) == {"host", "authorization", "accept", "accept-encoding", "content-length"}
    assert got.headers["accept-encoding"] == "identity"


@in_loop
async def test_a_large_body_goes_out_whole_and_without_a_warning() -> None:
    body = b"x" * ((1 << 20) + 1)
    async with Loopback(ok) as server, transport() as sender:
        assert await fetch(sender, server, body) == b"fine"
    assert server.got[0].body == body
    assert server.got[0].headers["content-length"] == str(len(body))


@in_loop
async def test_chunks_come_when_they_are_sent_not_when_the_answer_is_over() -> None:
    go_on = asyncio.Event()

    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await out.piece(b"first")
        await go_on.wait()
        await out.piece(b"second")
        await out.end()

    async with Loopback(say) as server, transport() as sender:
        reply = await ask(sender, server)
        assert await reply.read() == b"first"
        go_on.set()
        assert await everything(reply) == b"second"
        reply.close()


# ---------------------------------------------------------------- connections


@pytest.mark.parametrize("say", [ok, streamed])
@in_loop
async def test_twenty_requests_one_after_the_other_take_one_connection(say: Say) -> None:
    async with Loopback(say) as server, transport() as sender:
        for _ in range(20):
            assert await fetch(sender, server) in (b"fine", b"one two")
        assert (server.connections, len(server.got)) == (1, 20)


async def leave_after(reply: Response, last: bytes) -> None:
    """Read up to the last event, and no further."""
    found = b""
    while last not in found:
        found += await reply.read()
    reply.end()


@pytest.mark.parametrize("pause", [0.0, 0.01])
@in_loop
async def test_a_finished_stream_gives_its_connection_back_though_its_http_end_comes_later(pause: float) -> None:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await out.piece(b"data: [DONE]\n\n")
        await asyncio.sleep(pause)
        await out.end()

    async with Loopback(say) as server, transport() as sender:
        for _ in range(20):
            await leave_after(await ask(sender, server), b"[DONE]")
            await asyncio.sleep(2 * pause)
        # the first one's end may come after the second request has left: then there are two, in turns
        assert server.connections <= 2
        assert len(server.got) == 20


@in_loop
async def test_a_stream_that_never_ends_behind_its_last_event_is_cut_soon() -> None:
    async with Loopback(stalling(b"data: [DONE]\n\n")) as server, transport() as sender:
        await leave_after(await ask(sender, server), b"[DONE]")
        await until(lambda: server.gone == 1)


@in_loop
async def test_closing_an_answer_in_its_middle_closes_the_socket() -> None:
    async with Loopback(stalling(b"one")) as server, transport() as sender:
        reply = await ask(sender, server)
        assert await reply.read() == b"one"
        reply.close()
        await until(lambda: server.gone == 1)


async def cancel(work: Coroutine[object, object, object], when: Callable[[], bool]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    await until(when)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_loop
async def test_a_cancelled_wait_for_the_answer_closes_the_socket() -> None:
    async with Loopback(silent) as server, transport() as sender:
        await cancel(ask(sender, server), lambda: len(server.got) == 1)
        await until(lambda: server.gone == 1)


@in_loop
async def test_a_cancelled_read_closes_the_socket() -> None:
    async with Loopback(stalling()) as server, transport() as sender:
        await cancel(fetch(sender, server), lambda: len(server.got) == 1)
        await until(lambda: server.gone == 1)


@in_loop
async def test_closing_the_transport_closes_all_sockets_also_those_in_use() -> None:
    async with Loopback(stalling(b"one")) as server:
        async with transport() as sender:
            reply = await ask(sender, server)
            await reply.read()
        await until(lambda: server.gone == 1)
        reply.close()


def test_connections_of_one_event_loop_are_not_for_another() -> None:
    sender = new_transport()

    async def once(close: bool) -> None:
        async with Loopback(ok) as server:
            try:
                assert await fetch(sender, server) == b"fine"
            finally:
                if close:
                    await sender.close()

    asyncio.run(once(close=True))
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(once(close=False))


# ---------------------------------------------------------------- timeouts


@asynccontextmanager
async def plain_socket(first: bytes) -> AsyncGenerator[int]:
    """Serve a few bytes to whoever comes, and no more."""

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        writer.write(first)

    accepted: list[asyncio.StreamWriter] = []
    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        for writer in accepted:
            writer.transport.abort()
        listening.close()
        await listening.wait_closed()


@in_loop
async def test_the_wait_for_a_connection_covers_its_handshake() -> None:
    async with plain_socket(b"") as port, transport() as sender:
        with pytest.raises(TransportError, match=r"timeouts\.connect = 0\.1 s") as caught:
            await sender.send("GET", f"https://127.0.0.1:{port}/{SECRET}", KEY, b"", Timeouts(connect=SHORT))
    assert (caught.value.failure.kind, caught.value.connected) == (FailureKind.TIMEOUT, False)


async def late_by_tens(_: Got, out: Out) -> None:
    for line in [b"HTTP/1.1 100 Continue\r\n\r\n"] * 40:
        await asyncio.sleep(SHORT / 4)
        await out.raw(line)
    await out.gone()


@pytest.mark.parametrize(
    ("say", "timeouts", "named"),
    [
        (silent, Timeouts(first_byte=SHORT), "first_byte = 0.1"),
        (silent, Timeouts(first_byte=SHORT, idle=SHORT, total=SHORT + 1), "first_byte = 0.1"),
        (silent, Timeouts(first_byte=LONG, total=SHORT), "total = 0.1"),
        (late_by_tens, Timeouts(first_byte=SHORT, idle=LONG), "first_byte = 0.1"),
        (stalling(), Timeouts(first_byte=SHORT), "first_byte = 0.1"),
        (stalling(), Timeouts(first_byte=SHORT, idle=SHORT), "first_byte = 0.1"),
        (stalling(), Timeouts(first_byte=0.3, idle=SHORT), "first_byte = 0.3"),
        (stalling(), Timeouts(first_byte=LONG, total=SHORT), "total = 0.1"),
        (stalling(b"one"), Timeouts(idle=SHORT), "idle = 0.1"),
        (stalling(b"one"), Timeouts(first_byte=0.3, idle=SHORT), "idle = 0.1"),
        (stalling(b"one"), Timeouts(first_byte=SHORT, idle=0.3), "idle = 0.3"),
        (stalling(b"one"), Timeouts(idle=LONG, total=SHORT), "total = 0.1"),
    ],
)
@in_loop
async def test_each_wait_is_told_apart_and_its_error_names_it(say: Say, timeouts: Timeouts, named: str) -> None:
    started = asyncio.get_running_loop().time()
    error = await broken(say, timeouts)
    took = asyncio.get_running_loop().time() - started
    assert f"timeouts.{named} s" in str(error)
    assert (error.failure.kind, error.failure.status, error.connected) == (FailureKind.TIMEOUT, 504, True)
    assert float(named.rsplit(maxsplit=1)[-1]) <= took + 0.01
    assert took < 2


@pytest.mark.parametrize(
    ("say", "timeouts"),
    [(stalling(), Timeouts(first_byte=SHORT)), (stalling(b"one"), Timeouts(first_byte=300.0, idle=SHORT))],
)
def test_waits_are_kept_to_where_the_clock_is_coarse(say: Say, timeouts: Timeouts) -> None:
    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            for delay in range(20):
                await asyncio.sleep(delay / 7000)
                group.create_task(broken(say, timeouts))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), 5))


@in_loop
async def test_headers_do_not_start_the_wait_for_the_first_byte_anew() -> None:
    async def say(_: Got, out: Out) -> None:
        await asyncio.sleep(0.5)
        await out.begin()
        await out.gone()

    started = asyncio.get_running_loop().time()
    assert "first_byte = 0.6" in str(await broken(say, Timeouts(first_byte=0.6)))
    assert asyncio.get_running_loop().time() - started < 1.05


@in_loop
async def test_an_idle_wait_is_as_long_as_it_says_also_where_the_first_byte_may_take_longer() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await asyncio.sleep(0.15)  # after the first look
        await out.piece(b"one")
        await out.gone()

    started = asyncio.get_running_loop().time()
    assert "idle = 0.1" in str(await broken(say, Timeouts(first_byte=2.0, idle=0.1)))
    assert asyncio.get_running_loop().time() - started < 1.5


@in_loop
async def test_a_slow_reader_is_no_idle_upstream() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.stream(*[b"x"] * 5)

    async with Loopback(say) as server, transport() as sender:
        reply = await ask(sender, server, timeouts=Timeouts(first_byte=SHORT, idle=SHORT))
        found = b""
        while chunk := await reply.read():
            found += chunk
            await asyncio.sleep(3 * SHORT)
        reply.close()
    assert found == b"xxxxx"


@in_loop
async def test_a_reader_that_was_slow_gets_the_whole_idle_wait() -> None:
    go_on = asyncio.Event()

    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await out.piece(b"one")
        await go_on.wait()
        await asyncio.sleep(0.2)
        await out.piece(b"two")
        await out.end()

    async with Loopback(say) as server, transport() as sender:
        reply = await ask(sender, server, timeouts=Timeouts(idle=0.5))
        assert await reply.read() == b"one"
        await asyncio.sleep(0.8)
        go_on.set()
        assert await reply.read() == b"two"
        reply.close()


@in_loop
async def test_a_steady_stream_may_take_longer_than_the_idle_wait() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        for piece in [b"x"] * 40:
            await out.piece(piece)
            await asyncio.sleep(0.02)
        await out.end()

    async with Loopback(say) as server, transport() as sender:
        assert await fetch(sender, server, timeouts=Timeouts(first_byte=0.5, idle=0.5)) == b"x" * 40


@in_loop
async def test_after_a_wait_is_over_the_socket_is_closed() -> None:
    async with Loopback(stalling(b"one")) as server, transport() as sender:
        with pytest.raises(TransportError):
            await fetch(sender, server, timeouts=Timeouts(idle=SHORT))
        await until(lambda: server.gone == 1)


# ---------------------------------------------------------------- what breaks


async def free_port() -> int:
    async with Loopback(ok) as server:
        return server.port


@in_loop
async def test_where_nobody_listens_the_error_says_where() -> None:
    port = await free_port()
    async with transport() as sender:
        with pytest.raises(TransportError) as caught:
            await sender.send("POST", f"http://127.0.0.1:{port}/{SECRET}", KEY, b"{}")
    assert str(caught.value) == f"no connection to the upstream at 127.0.0.1:{port}: Connection refused"
    assert (caught.value.failure.kind, caught.value.connected) == (FailureKind.DISCONNECTED, False)


async def resolve_nothing(*_: object, **__: object) -> NoReturn:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def resolve_never(*_: object, **__: object) -> NoReturn:
    await asyncio.sleep(LONG)
    raise AssertionError


@in_loop
async def test_a_name_that_nobody_knows_is_no_connection() -> None:
    async with transport() as sender:
        asyncio.get_running_loop().getaddrinfo = resolve_nothing
        with pytest.raises(TransportError) as caught:
            await sender.send("POST", f"http://nowhere.invalid/{SECRET}", KEY, b"{}")
    assert str(caught.value) == "no connection to the upstream at nowhere.invalid:80: Name or service not known"
    assert not caught.value.connected


@in_loop
async def test_the_wait_for_a_connection_covers_the_look_up_of_its_name() -> None:
    async with transport() as sender:
        asyncio.get_running_loop().getaddrinfo = resolve_never
        with pytest.raises(TransportError, match=r"timeouts\.connect = 0\.1 s"):
            await sender.send("POST", "http://nowhere.invalid/", (), b"{}", Timeouts(connect=SHORT))


@in_loop
async def test_https_where_plain_http_is_spoken_is_no_connection() -> None:
    async with plain_socket(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port, transport() as sender:
        with pytest.raises(TransportError, match=f"no connection to the upstream at 127.0.0.1:{port}: .") as caught:
            await sender.send("POST", f"https://127.0.0.1:{port}/{SECRET}", KEY, b"{}")
    assert not caught.value.connected
    assert SECRET not in str(caught.value)


def test_a_certificate_that_is_not_trusted_is_no_connection() -> None:
    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    place = ConnectionKey("box.example", 443, True, True, None, None, None)
    found = transport_error(aiohttp.ClientConnectorCertificateError(place, untrusted), DEFAULT_TIMEOUTS)
    assert str(found) == (
        "no connection to the upstream at box.example:443: certificate verify failed: self-signed certificate; "
        "to trust a private authority, set ca_file"
    )
    assert not found.connected


@pytest.mark.parametrize(
    ("url", "value"),
    [
        (f"http://:80/{SECRET}", ""),
        (f"no-url-{SECRET}", ""),
        (f"http://host:{SECRET}/", ""),
        ("", f"{SECRET}\r\nx-more: 1"),
    ],
)
@in_loop
async def test_what_cannot_be_sent_is_not_called_a_broken_answer(url: str, value: str) -> None:
    async with Loopback(ok) as server, transport() as sender:
        with pytest.raises(TransportError, match="nothing was sent") as caught:
            await sender.send("POST", url or server.url, (("x-key", value),), b"{}")
    assert not server.got
    assert caught.value.failure.kind is FailureKind.OTHER
    assert SECRET not in str(caught.value)


async def hangs_up(_: Got, out: Out) -> None:
    out.reset()


async def half_a_head(_: Got, out: Out) -> None:
    await out.raw(b"HTTP/1.1 200 OK\r\ncontent-")
    out.writer.close()


async def no_http(_: Got, out: Out) -> None:
    await out.raw(b"SSH-2.0-OpenSSH\r\n\r\n")
    out.writer.close()


async def half_a_body(_: Got, out: Out) -> None:
    await out.head(200, (("content-length", "10"),))
    await out.raw(b"half")
    out.writer.close()


async def half_a_stream(_: Got, out: Out) -> None:
    await out.begin()
    await out.piece(b"half")
    out.writer.close()


async def bad_chunk(_: Got, out: Out) -> None:
    await out.begin()
    await out.raw(b"zz\r\n")
    await out.gone()


async def reset_in_the_middle(_: Got, out: Out) -> None:
    await out.begin()
    await out.piece(b"half")
    await asyncio.sleep(0.02)
    out.reset()


async def interim_without_end(_: Got, out: Out) -> None:
    for _turn in range(100_000):
        await out.raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        if out.writer.is_closing():
            break


@pytest.mark.parametrize(
    "say",
    [
        *(hangs_up, half_a_head, no_http, half_a_body, half_a_stream, bad_chunk, reset_in_the_middle),
        interim_without_end,
    ],
)
@in_loop
async def test_a_broken_answer_is_a_disconnect_p6(say: Say) -> None:
    error = await broken(say)
    assert (error.failure.kind, error.failure.status) == (FailureKind.DISCONNECTED, 502)
    assert error.connected


@in_loop
async def test_a_few_interim_responses_are_skipped_on_each_use_of_a_connection() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.raw(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 16)
        await out.whole(200, b"ok")

    async with Loopback(say) as server, transport() as sender:
        assert [await fetch(sender, server) for _ in range(3)] == [b"ok"] * 3


# ---------------------------------------------------------------- safety


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@in_loop
async def test_no_redirect_is_followed_safe6(status: int) -> None:
    async with Loopback(ok) as elsewhere:

        async def say(_: Got, out: Out) -> None:
            await out.whole(status, b"", headers=(("location", f"{elsewhere.url}/stolen"),))

        async with Loopback(say) as server, transport() as sender:
            reply = await ask(sender, server)
            assert reply.status == status
            reply.close()
    assert not elsewhere.got


@in_loop
async def test_no_cookie_is_kept_safe6() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.whole(200, b"", headers=(("set-cookie", "who=me; Path=/"),))

    async with Loopback(say) as server, transport() as sender:
        for _ in range(2):  # by a name: aiohttp never keeps cookies of addresses
            reply = await sender.send("POST", f"http://localhost:{server.port}/v1", (), b"{}")
            await everything(reply)
            reply.close()
    assert len(server.got) == 2
    assert all("cookie" not in got.headers for got in server.got)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_no_proxy_and_no_password_is_taken_from_the_environment_safe6(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(netrc))

    @in_loop
    async def scenario() -> None:
        async with Loopback(ok) as proxy, Loopback(ok) as server, transport() as sender:
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
            reply = await sender.send("POST", f"{server.url}/chat", (), b"{}")
            reply.close()
            assert not proxy.got
            assert "authorization" not in server.got[0].headers

    scenario()
