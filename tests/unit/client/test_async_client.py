"""The asynchronous client: the same, for many at once; nothing is left over, however a turn ends."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from testkit.loopback import Loopback, in_loop, until
from tests.unit.client.scene import CALL, COLD, bodies, endless, scripted, silent
from tests.unit.runtime.scene import WEATHER
from toolspeak import AsyncClient, Settings, TextDelta, UpstreamFailed, tool_result
from toolspeak.engine.plan import Way
from toolspeak.errors import BadConfig, UnknownName
from toolspeak.ir.event import Event, Finished, StopReason
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.runtime.transport import Timeouts
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream

ASKED = "Is it cold in Oslo?"


@in_loop
async def test_a_turn_a_stream_and_a_conversation() -> None:
    async with Loopback(scripted(CALL, COLD)) as server, AsyncClient(server.url) as client:
        answer = await client.chat(ASKED, tools=[WEATHER])
        assert (answer.calls[0].name, answer.warnings) == ("get_weather", ("tool calls emulated",))
        stream = client.stream([ASKED, answer.message, tool_result(answer.calls[0], "-4")], tools=[WEATHER])
        events = [event async for event in stream]
        assert fold(events) == stream.answer.turn
        assert stream.answer.text == COLD
        assert await client.models() == ["small", "large"]
        client.override("small", "none")
        assert (await client.plan(ASKED, [WEATHER])).way is Way.FORCE


@in_loop
async def test_many_that_begin_at_once_read_the_configuration_and_the_list_once() -> None:
    async with Loopback(scripted(*[COLD] * 20)) as server, AsyncClient(server.url) as client:
        async with asyncio.TaskGroup() as group:
            turns = [group.create_task(client.chat(ASKED)) for _ in range(20)]
        assert {turn.result().text for turn in turns} == {COLD}
        assert len(server.got) - len(bodies(server)) == 1


@in_loop
async def test_two_streams_at_once_do_not_mix() -> None:
    async with Loopback(scripted("abcdefgh" * 9, "12345678" * 9)) as server, AsyncClient(server.url) as client:
        one, other = aiter(client.stream(ASKED)), aiter(client.stream(ASKED))
        texts = ["", ""]
        for _ in range(9):
            for index, stream in enumerate((one, other)):
                event = await anext(stream)
                assert isinstance(event, TextDelta)
                texts[index] += event.text
        assert "abcdefgh" in texts[0] or "12345678" in texts[0]
        assert not set(texts[0]) & set(texts[1])
        await one.aclose()
        await other.aclose()


class Counting:
    """Counts what is taken from it."""

    def __init__(self) -> None:
        self.taken = 0

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        del request
        for text in "x" * 1000:
            self.taken += 1
            yield [TextDelta(text)]
        yield [Finished(StopReason.END)]


@in_loop
async def test_the_reader_sets_the_pace() -> None:
    upstream, seen = Counting(), 0
    async with AsyncClient(upstream) as client:
        async for _ in client.stream(ASKED):
            seen += 1
            await asyncio.sleep(0)
            assert upstream.taken <= seen + 2
    assert seen == 1001


# ---------------------------------------------------------------- leaving


@in_loop
async def test_who_breaks_out_of_a_stream_closes_the_upstream() -> None:
    async with Loopback(scripted(endless)) as server, AsyncClient(server.url, model="m") as client:
        async for _ in client.stream(ASKED):
            break
        await until(lambda: server.gone == 1)


@in_loop
async def test_when_the_context_of_a_stream_ends_the_upstream_is_closed_already() -> None:
    script = ScriptedUpstream("x" * 1000)
    async with AsyncClient(AsyncScriptedUpstream(script)) as client:
        async with client.stream(ASKED) as stream:
            assert await anext(aiter(stream))
        assert script.closed == 1
        with pytest.raises(RuntimeError, match="read the stream to its end"):
            assert stream.answer


@in_loop
async def test_closing_the_client_closes_its_streams_and_tells_who_reads() -> None:
    async with Loopback(scripted(endless, endless)) as server, AsyncClient(server.url, model="m") as client:
        left = client.stream(ASKED)
        await anext(aiter(left))

        async def read() -> None:
            async for _ in client.stream(ASKED):
                pass

        reading = asyncio.get_running_loop().create_task(read())
        await until(lambda: len(bodies(server)) == 2)
        await client.close()
        with pytest.raises(RuntimeError, match="the stream was closed before its end"):
            await reading
        await until(lambda: server.gone == 2)
        await client.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            await client.chat(ASKED)
        with pytest.raises(RuntimeError, match="the client is closed"):
            await anext(aiter(client.stream(ASKED)))


@pytest.mark.parametrize("how", ["chat", "stream"])
@in_loop
async def test_a_cancelled_turn_closes_the_upstream(how: str) -> None:
    async def work() -> None:
        if how == "chat":
            await client.chat(ASKED)
        else:
            async for _ in client.stream(ASKED):
                pass

    async with (
        Loopback(scripted(silent if how == "chat" else endless)) as server,
        AsyncClient(server.url, model="m") as client,
    ):
        task = asyncio.get_running_loop().create_task(work())
        await until(lambda: len(bodies(server)) == 1)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.gone == 1)


@in_loop
async def test_a_stream_can_have_a_time_limit() -> None:
    async with Loopback(scripted(endless)) as server, AsyncClient(server.url, model="m") as client:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                async for event in client.stream(ASKED):
                    assert isinstance(event, TextDelta)
                    limit.reschedule(asyncio.get_running_loop().time())  # it is over as soon as the stream has begun
        await until(lambda: server.gone == 1)


# ---------------------------------------------------------------- failures


@in_loop
async def test_an_error_in_the_configuration_comes_with_the_first_question_each_time() -> None:
    async with AsyncClient("gorq") as client:
        for _ in range(2):
            with pytest.raises(BadConfig, match=r"upstream: 'gorq' is not one of .* did you mean 'groq'"):
                await client.chat(ASKED)
        with pytest.raises(BadConfig, match="upstream: 'gorq'"):
            [event async for event in client.stream(ASKED)]


@in_loop
async def test_an_unknown_dialect_is_an_error_of_the_caller() -> None:
    async with AsyncClient(AsyncScriptedUpstream(ScriptedUpstream(COLD))) as client:
        with pytest.raises(UnknownName, match="'hermess'"):
            await client.chat(ASKED, [WEATHER], mode="force", settings=Settings(dialect="hermess"))


@in_loop
async def test_a_stream_that_failed_while_nobody_read_is_quiet() -> None:
    async with AsyncClient(AsyncScriptedUpstream(ScriptedUpstream())) as client:
        with pytest.raises(UpstreamFailed, match="the script has no more answers"):
            [event async for event in client.stream(ASKED)]


@in_loop
async def test_waits_can_be_said() -> None:
    timeouts = Timeouts(total=0.1)
    async with Loopback(scripted(silent)) as server, AsyncClient(server.url, model="m", timeouts=timeouts) as client:
        with pytest.raises(UpstreamFailed, match=r"timeouts\.total = 0\.1 s") as caught:
            await client.chat(ASKED)
    assert caught.value.kind == "timeout"


def test_a_client_belongs_to_one_event_loop() -> None:
    async def once() -> AsyncClient:
        async with Loopback(scripted(COLD)) as server:
            client = AsyncClient(server.url, model="m")
            assert (await client.chat(ASKED)).text == COLD
            await client._transport.close()
            return client

    client = asyncio.run(once())
    with pytest.raises(RuntimeError, match="another event loop: make a new client in each one"):
        asyncio.run(client.chat(ASKED))
