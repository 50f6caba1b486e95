"""An upstream over HTTP: its answers become events, with exactly one last one, whatever the server does."""

import asyncio
import json

import pytest
from typing_extensions import override

from testkit.loopback import Got, Loopback, Out, Say, in_loop, until
from testkit.vendor_answers import Answer
from tests.unit.runtime.scene import (
    CALL,
    CHAT,
    COLD,
    KEY,
    REQUEST,
    SSE,
    STREAMED,
    WIRES,
    Paced,
    answered,
    asked,
    say_stream,
    stream_of,
    stream_type,
    upstream,
    whole_of,
)
from toolspeak.ir.event import CallEnded, CallRejected, Event, Failed, Finished, StopReason, TextDelta
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.runtime.transport import Timeouts
from toolspeak.runtime.upstream import STEP, HttpUpstream


async def to_the_end(opened: HttpUpstream, request: Request = STREAMED) -> list[Event]:
    """Ask, and go on after the last event until nothing comes."""
    return [event async for batch in opened.open(request) for event in batch]


def failure_in(events: list[Event]) -> tuple[FailureKind, str]:
    last = events[-1]
    assert isinstance(last, Failed)
    return last.failure.kind, last.failure.message


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_every_wire_is_asked_and_read_streamed_and_whole_wire2(wire: str, stream: bool) -> None:
    async def say(_: Got, out: Out) -> None:
        if stream:
            await say_stream(out, wire, CALL)
        else:
            await out.whole(200, whole_of(wire, CALL))

    async with Loopback(say) as server, upstream(server, wire) as opened:
        turn = fold(await answered(opened, STREAMED if stream else REQUEST))
    assert (turn.text, turn.stop) == ("Let me see.", StopReason.CALLS)
    assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == [("get_weather", {"city": "Oslo"})]
    got = server.got[0]
    assert got.method == "POST"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["authorization"] == f"Bearer {KEY}"
    assert got.headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_a_whole_answer_to_a_streamed_request_is_read(wire: str) -> None:
    async def say(_: Got, out: Out) -> None:
        await out.whole(200, whole_of(wire, COLD), "application/json; charset=utf-8")

    async with Loopback(say) as server, upstream(server, wire) as opened:
        assert fold(await answered(opened, STREAMED)).text == COLD.text


@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_a_streamed_answer_to_a_whole_request_is_read(wire: str) -> None:
    async def say(_: Got, out: Out) -> None:
        await say_stream(out, wire)

    async with Loopback(say) as server, upstream(server, wire) as opened:
        assert fold(await answered(opened, REQUEST)).text == COLD.text


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_without_a_media_type_an_answer_is_what_was_asked_for(wire: str, stream: bool) -> None:
    async def say(_: Got, out: Out) -> None:
        await out.head(200, (("connection", "close"),))
        await out.raw((stream_of if stream else whole_of)(wire, COLD))
        out.writer.close()

    async with Loopback(say) as server, upstream(server, wire) as opened:
        assert fold(await answered(opened, STREAMED if stream else REQUEST)).text == COLD.text


@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_after_the_last_event_comes_nothing_more(wire: str) -> None:
    async def say(_: Got, out: Out) -> None:
        await say_stream(out, wire)

    async with Loopback(say) as server, upstream(server, wire) as opened:
        events = await to_the_end(opened)
    assert [type(event) for event in events if isinstance(event, Finished | Failed)] == [Finished]


@in_loop
async def test_a_transport_that_closes_soon_after_a_stream_leaves_nothing_behind() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await out.piece(stream_of(CHAT, COLD))
        await out.gone()

    async with Loopback(say) as server:
        async with upstream(server) as opened:
            assert fold(await answered(opened)).text == COLD.text
        await until(lambda: server.gone == 1)


@in_loop
async def test_bytes_that_break_behind_the_last_event_change_nothing() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await out.piece(stream_of(CHAT, COLD))
        await asyncio.sleep(0.05)
        out.reset()

    async with Loopback(say) as server, upstream(server) as opened:
        events = await to_the_end(opened)
    assert [type(event) for event in events if isinstance(event, Finished | Failed)] == [Finished]


LARGE = Answer(text="<tool_call>{}</tool_call>\n\n" * 11_000)
"""Read at once, it takes the loop for more than a second (found by the fuzzer)."""


async def assert_is_read_in_steps(say: Say, wire: str, request: Request) -> None:
    clock = Paced()
    async with Loopback(say) as server, upstream(server, wire, clock=clock) as opened:
        batches = [batch async for batch in opened.open(request)]
    sizes = [sum(len(event.text) for event in batch if isinstance(event, TextDelta)) for batch in batches]
    assert max(sizes) <= 2 * STEP
    assert clock.pauses.count(0) >= len(LARGE.text) // (2 * STEP)
    assert fold(event for batch in batches for event in batch).text == LARGE.text


@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_other_tasks_run_while_a_large_whole_answer_is_read_p8(wire: str) -> None:
    async def say(_: Got, out: Out) -> None:
        await out.whole(200, whole_of(wire, LARGE))

    await assert_is_read_in_steps(say, wire, REQUEST)


@in_loop
async def test_other_tasks_run_while_one_large_event_of_a_stream_is_read_p8() -> None:
    small = stream_of(CHAT, Answer(text="@"))

    async def say(_: Got, out: Out) -> None:
        await out.stream(small.replace(b'"@"', json.dumps(LARGE.text).encode()))

    await assert_is_read_in_steps(say, CHAT, STREAMED)


@in_loop
async def test_calls_without_ids_get_fresh_ones_which_no_two_answers_share() -> None:
    body = whole_of(CHAT, CALL).replace(b'"call_abc123"', b"null")

    async def say(_: Got, out: Out) -> None:
        await out.whole(200, body)

    async with Loopback(say) as server, upstream(server) as opened:
        ids = {fold(await answered(opened, REQUEST)).calls[0].id for _ in range(2)}
    assert len(ids) == 2
    assert all(id.startswith("call_") and len(id) < 40 for id in ids)


# ---------------------------------------------------------------- answers that are none


def whole(body: bytes, media: str = "application/json") -> Say:
    async def say(_: Got, out: Out) -> None:
        await out.whole(200, body, media)

    return say


def cut(data: bytes) -> Say:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await out.piece(data)
        out.writer.close()

    return say


def first_chunks(data: bytes, number: int) -> bytes:
    return b"".join(chunk + b"\n\n" for chunk in data.split(b"\n\n")[:number])


HALF = first_chunks(stream_of(CHAT, COLD), 3)
HALF_A_CALL = first_chunks(stream_of(CHAT, CALL), 10)
assert HALF_A_CALL.endswith(rb'"arguments": "\"Os"}}]}, "finish_reason": null}]}' + b"\n\n")


@pytest.mark.parametrize("request_", [STREAMED, REQUEST])
@pytest.mark.parametrize(
    "say",
    [
        whole(b""),
        whole(b"", SSE),
        whole(b"{}"),
        whole(b"null"),
        whole(b"<html>Sign in to the hotel's network</html>", "text/html"),
        whole(b"data: [DONE", SSE),
        whole(b'data: {"choices": 7}\n\n', SSE),
        whole(b"\xff\xfe\x00", SSE),
        whole(whole_of(CHAT, COLD)[:-9]),
        whole(HALF, SSE),
        cut(HALF),
        cut(HALF_A_CALL),
    ],
)
@in_loop
async def test_what_is_no_whole_answer_ends_in_one_failure_p6(say: Say, request_: Request) -> None:
    async with Loopback(say) as server, upstream(server) as opened:
        events = await to_the_end(opened, request_)
    assert [type(event) for event in events if isinstance(event, Finished | Failed)] == [Failed]
    assert not any(isinstance(event, CallEnded) for event in events)
    assert len(server.got) == 1  # not asked again: the answer had begun


@in_loop
async def test_a_call_that_broke_off_with_its_connection_is_rejected_p3() -> None:
    async with Loopback(cut(HALF_A_CALL)) as server, upstream(server) as opened:
        events = await answered(opened)
    assert isinstance(events[-2], CallRejected)
    assert failure_in(events) == (FailureKind.DISCONNECTED, "the upstream's answer broke off (ClientPayloadError)")
    assert not fold(events).calls


@in_loop
async def test_an_answer_that_said_why_it_stopped_is_whole_though_its_bytes_break_off() -> None:
    data = stream_of(CHAT, CALL).replace(b"data: [DONE]\n\n", b"")
    async with Loopback(cut(data)) as server, upstream(server) as opened:
        turn = fold(await answered(opened))
    assert (turn.stop, len(turn.calls), turn.failure) == (StopReason.CALLS, 1, None)


@in_loop
async def test_a_silent_stream_ends_in_the_wait_that_was_over() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.begin()
        await out.piece(HALF)
        await out.gone()

    async with Loopback(say) as server, upstream(server, timeouts=Timeouts(idle=0.1)) as opened:
        kind, message = failure_in(await answered(opened))
    assert (kind, message) == (
        FailureKind.TIMEOUT,
        "the upstream was silent for too long (timeouts.idle = 0.1 s)",
    )
    assert len(server.got) == 1


@in_loop
async def test_an_error_inside_a_stream_is_a_failure_of_its_own_kind() -> None:
    say = whole(HALF + b'data: {"error": {"message": "Rate limit reached", "code": 429}}\n\n', SSE)
    async with Loopback(say) as server, upstream(server) as opened:
        events = await to_the_end(opened)
    assert failure_in(events)[0] is FailureKind.RATE_LIMITED
    assert sum(isinstance(event, Finished | Failed) for event in events) == 1


@pytest.mark.parametrize(("size", "fits"), [(-1, True), (0, True), (1, False)])
@in_loop
async def test_a_whole_answer_has_a_limit_p7(size: int, fits: bool) -> None:
    body = whole_of(CHAT, COLD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolspeak.runtime.replica_client.MOST", len(body) - size)
        async with Loopback(whole(body)) as server, upstream(server) as opened:
            events = await answered(opened, REQUEST)
    if fits:
        assert fold(events).text == COLD.text
    else:
        assert failure_in(events) == (FailureKind.OTHER, f"the upstream's answer is over {len(body) - 1} bytes")


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error": "llama3 does not support tools"}', FailureKind.TOOLS_UNSUPPORTED),
        (400, b'{"error": {"message": "bad field"}}', FailureKind.INVALID_REQUEST),
        (401, b"", FailureKind.AUTH),
        (403, b"", FailureKind.PERMISSION),
        (404, b'{"error": {"message": "model not found"}}', FailureKind.NOT_FOUND),
        (413, b"", FailureKind.TOO_LARGE),
        (429, b"", FailureKind.RATE_LIMITED),
        (503, b"<html>overloaded</html>", FailureKind.TRANSIENT),
        (529, b"", FailureKind.TRANSIENT),
    ],
)
@in_loop
async def test_an_error_status_becomes_a_failure_of_its_kind_wire5(status: int, body: bytes, kind: FailureKind) -> None:
    async def say(_: Got, out: Out) -> None:
        await out.whole(status, body)

    failure = await asked(say)
    assert (failure.kind, failure.status) == (kind, status)
    assert failure.message


@in_loop
async def test_a_redirect_is_an_error_and_leads_nowhere_safe6() -> None:
    async with Loopback(whole(b"")) as elsewhere:

        async def say(_: Got, out: Out) -> None:
            await out.whole(302, b"", headers=(("location", elsewhere.url),))

        failure = await asked(say)
    assert failure.status == 302
    assert not elsewhere.got


@in_loop
async def test_a_web_page_is_no_answer() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.whole(200, b"<html>", "text/html; charset=utf-8")

    failure = await asked(say)
    assert failure.kind is FailureKind.OTHER
    assert "a web page: is its URL right?" in failure.message


@in_loop
async def test_the_status_speaks_where_an_error_breaks_off() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.head(401, (("content-length", "1000"),))
        await out.raw(b'{"error": {"mess')
        out.writer.close()

    async with Loopback(say) as server, upstream(server) as opened:
        assert failure_in(await answered(opened))[0] is FailureKind.AUTH
    assert len(server.got) == 1


@in_loop
async def test_of_a_long_error_the_beginning_is_read_p7() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolspeak.runtime.replica_client.MOST_OF_AN_ERROR", 100)

        async def say(_: Got, out: Out) -> None:
            await out.whole(403, b"no entry, " * 100_000, "text/plain")

        failure = await asked(say)
    assert failure.kind is FailureKind.PERMISSION
    assert len(failure.message) <= 100


def repeats_key(status: int, form: str, media: str = "application/json") -> Say:
    async def say(got: Got, out: Out) -> None:
        await out.whole(status, (form % got.headers["authorization"]).encode(), media)

    return say


@pytest.mark.parametrize(
    "say",
    [
        repeats_key(401, '{"error": {"message": "%s is no key of ours"}}'),
        repeats_key(503, "%s", "text/plain"),
        repeats_key(200, '{"error": {"message": "%s is no key of ours"}}'),
        repeats_key(200, 'data: {"error": {"message": "%s is no key of ours"}}\n\n', SSE),
        repeats_key(200, 'data: {"error": {"message": "%s is no key of ours"}}', SSE),
    ],
)
@in_loop
async def test_an_upstream_that_repeats_our_key_does_not_give_it_away_safe6(say: Say) -> None:
    failure = await asked(say)
    assert KEY not in repr(failure)
    assert "[redacted]" in failure.message


@in_loop
async def test_every_configured_header_is_hidden_whatever_its_name_safe6() -> None:
    say = whole(b'{"error": {"message": "x-sec secretvalue, x-api-key k, version 2023-06-01"}}')
    headers = (("x-sec", "SECRETVALUE"), ("anthropic-version", "2023-06-01"), ("x-api-key", "k"))
    async with Loopback(say) as server, upstream(server, headers=headers, public=headers[1:2]) as opened:
        assert failure_in(await answered(opened))[1] == "x-sec [redacted], x-api-key k, version 2023-06-01"


# ---------------------------------------------------------------- trying again


def after(refusals: int, refuse: Say) -> Say:
    """Refuse a few times, and answer then."""
    left = [refuse] * refusals

    async def say(got: Got, out: Out) -> None:
        if left:
            await left.pop()(got, out)
        else:
            await say_stream(out)

    return say


def status(number: int, *headers: tuple[str, str], body: bytes = b"") -> Say:
    async def say(_: Got, out: Out) -> None:
        await out.whole(number, body, headers=headers)

    return say


async def hangs_up(_: Got, out: Out) -> None:
    out.reset()


async def closes(_: Got, out: Out) -> None:
    out.writer.close()


@pytest.mark.parametrize("refuse", [status(503), status(529), status(429), hangs_up, closes])
@in_loop
async def test_what_may_pass_is_tried_again_after_growing_pauses(refuse: Say) -> None:
    for luck, pauses in ((0.0, [0.25, 0.5]), (0.5, [0.375, 0.75])):
        clock = Paced(luck=luck)
        async with Loopback(after(2, refuse)) as server, upstream(server, clock=clock) as opened:
            assert fold(await answered(opened)).text == COLD.text
        assert clock.pauses == pauses
        assert len({got.body for got in server.got}) == 1
        assert len(server.got) == 3


@pytest.mark.parametrize("retries", [0, 1, 2, 7])
@in_loop
async def test_it_is_tried_as_often_as_the_address_says_and_no_pause_grows_beyond_eight_seconds(retries: int) -> None:
    clock = Paced(luck=1.0)
    failure = await asked(after(99, status(503)), clock=clock, retries=retries)
    assert failure.kind is FailureKind.TRANSIENT
    assert clock.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0][:retries]


@pytest.mark.parametrize("number", [301, 400, 401, 403, 404, 413, 422])
@in_loop
async def test_what_will_not_pass_is_not_tried_again(number: int) -> None:
    clock = Paced()
    failure = await asked(after(1, status(number)), clock=clock)
    assert (failure.status, clock.pauses) == (number, [])


@in_loop
async def test_a_wait_for_the_first_byte_that_is_over_is_not_tried_again() -> None:
    async def say(_: Got, out: Out) -> None:
        await out.gone()

    async with Loopback(say) as server, upstream(server, timeouts=Timeouts(first_byte=0.1)) as opened:
        assert failure_in(await answered(opened))[0] is FailureKind.TIMEOUT
    assert len(server.got) == 1  # the model may be at work on it


@pytest.mark.parametrize(
    ("refuse", "pause"),
    [
        (status(429, ("retry-after", "3")), 3.25),
        (status(503, ("Retry-After", "20")), 20.25),
        (status(503, ("retry-after", "0")), 0.25),
        (status(503, ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")), 0.25),
        (status(503, ("retry-after", "-5")), 0.25),
        (status(503, ("retry-after", "\N{SUPERSCRIPT TWO}")), 0.25),
        (status(429, body=b'{"error": {"message": "Rate limit, try again in 2s"}}'), 2.25),
    ],
)
@in_loop
async def test_a_pause_that_the_upstream_asks_for_is_kept(refuse: Say, pause: float) -> None:
    clock = Paced()
    async with Loopback(after(1, refuse)) as server, upstream(server, clock=clock) as opened:
        assert fold(await answered(opened)).text == COLD.text
    assert clock.pauses == [pause]


@pytest.mark.parametrize("seconds", ["21", "3600", "999999999"])
@in_loop
async def test_a_pause_that_is_too_long_is_left_to_the_client(seconds: str) -> None:
    clock = Paced()
    failure = await asked(after(1, status(429, ("retry-after", seconds))), clock=clock)
    assert (failure.kind, failure.retry_after, clock.pauses) == (FailureKind.RATE_LIMITED, float(seconds), [])


class Starting(Paced):
    """In its first pause the server comes up."""

    def __init__(self, server: Loopback) -> None:
        super().__init__()
        self._server = server

    @override
    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if len(self.pauses) == 2:
            await self._server.start()


@in_loop
async def test_a_server_that_comes_up_while_we_try_is_reached() -> None:
    server = Loopback(after(0, closes))
    await server.start()
    await server.stop()
    clock = Starting(server)
    async with upstream(server, clock=clock) as opened:
        assert fold(await answered(opened)).text == COLD.text
    assert len(clock.pauses) == 2
    await server.stop()


@in_loop
async def test_a_server_that_stays_down_is_said_to_be_down() -> None:
    server = Loopback(after(0, closes))
    await server.start()
    await server.stop()
    clock = Paced()
    async with upstream(server, clock=clock) as opened:
        kind, message = failure_in(await answered(opened))
    assert (kind, len(clock.pauses)) == (FailureKind.DISCONNECTED, 2)
    assert message == f"no connection to the upstream at 127.0.0.1:{server.port}: Connection refused"


@pytest.mark.parametrize("leave", [hangs_up, closes])
@in_loop
async def test_an_idle_connection_that_is_closed_when_it_is_used_again_costs_one_try(leave: Say) -> None:
    async def say(got: Got, out: Out) -> None:
        if got.connection == 1 and len(server.got) == 2:
            await leave(got, out)
        else:
            await say_stream(out)

    clock = Paced()
    async with Loopback(say) as server, upstream(server, clock=clock) as opened:
        for _ in range(2):
            assert fold(await answered(opened)).text == COLD.text
    assert [got.connection for got in server.got] == [1, 1, 2]
    assert len(clock.pauses) == 1


@in_loop
async def test_after_the_first_byte_nothing_is_tried_again() -> None:
    clock = Paced()
    async with Loopback(cut(b": thinking\n\n")) as server, upstream(server, clock=clock) as opened:
        assert failure_in(await answered(opened))[0] is FailureKind.DISCONNECTED
    assert (len(server.got), clock.pauses) == (1, [])


# ---------------------------------------------------------------- connections


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_twenty_turns_take_one_connection(wire: str, stream: bool) -> None:
    async def say(_: Got, out: Out) -> None:
        if stream:
            data = stream_of(wire, COLD)
            head = f"HTTP/1.1 200 OK\r\ncontent-type: {stream_type(wire)}\r\ntransfer-encoding: chunked\r\n\r\n"
            await out.raw(b"%s%x\r\n%s\r\n0\r\n\r\n" % (head.encode(), len(data), data))  # in one packet
        else:
            await out.whole(200, whole_of(wire, COLD))

    async with Loopback(say) as server, upstream(server, wire) as opened:
        for _ in range(20):
            assert fold(await answered(opened, STREAMED if stream else REQUEST)).text == COLD.text
        assert (server.connections, len(server.got)) == (1, 20)


@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_twenty_streams_whose_http_end_comes_late_take_few_connections(wire: str) -> None:
    async def say(_: Got, out: Out) -> None:
        await out.begin(stream_type(wire))
        await out.piece(stream_of(wire, COLD))
        await asyncio.sleep(0.005)
        await out.end()

    async with Loopback(say) as server, upstream(server, wire) as opened:
        for _ in range(20):
            assert fold(await answered(opened)).text == COLD.text
            await asyncio.sleep(0.02)
        assert server.connections <= 2
        assert len(server.got) == 20


@in_loop
async def test_errors_give_their_connection_back() -> None:
    async with Loopback(status(401, body=b"{}")) as server, upstream(server) as opened:
        for _ in range(20):
            await answered(opened)
        assert (server.connections, len(server.got)) == (1, 20)


async def endless(_: Got, out: Out) -> None:
    await out.begin()
    await out.piece(HALF)
    await out.gone()


@in_loop
async def test_who_leaves_a_stream_closes_its_socket() -> None:
    async with Loopback(endless) as server, upstream(server) as opened:
        batches = opened.open(STREAMED)
        assert isinstance((await anext(batches))[0], TextDelta)
        await batches.aclose()
        await until(lambda: server.gone == 1)


@pytest.mark.parametrize("say", [endless, hangs_up])
@in_loop
async def test_who_is_cancelled_closes_the_socket_and_tries_no_more(say: Say) -> None:
    async with Loopback(say) as server, upstream(server, clock=Waiting()) as opened:
        task = asyncio.get_running_loop().create_task(answered(opened))
        await until(lambda: len(server.got) == 1)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.gone == server.connections)
    assert len(server.got) == 1


class Waiting(Paced):
    """Its pauses never end."""

    @override
    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await asyncio.Event().wait()
