"""Threads, interrupts and the end: a synchronous client hangs nowhere and leaves nothing behind."""

import asyncio
import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from testkit.loopback import SOON
from tests.unit.client.scene import COLD, bodies, endless, served, silent, soon
from toolspeak import Client, TextDelta
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream

ASKED = "Is it cold in Oslo?"


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(("toolspeak", "asyncio"))]


@pytest.fixture(autouse=True)
def _nothing_left() -> Generator[None]:
    yield
    gc.collect()
    soon(lambda: not ours())


# ---------------------------------------------------------------- threads


def test_a_client_that_is_not_used_has_no_thread_and_no_connection() -> None:
    with served() as server, Client(server.url):
        assert not ours()
    assert not server.connections


def test_several_threads_may_use_one_client() -> None:
    with served(*[COLD] * 24) as server, Client(server.url) as client, ThreadPoolExecutor(8) as pool:

        def ask(number: int) -> str:
            if number % 2:
                return client.chat(ASKED).text
            stream = client.stream(ASKED)
            list(stream)
            return stream.answer.text

        assert set(pool.map(ask, range(24))) == {COLD}
        assert len([thread for thread in ours() if thread.name == "toolspeak"]) == 1
    assert len(bodies(server)) == 24


def test_it_may_be_used_inside_a_running_event_loop() -> None:
    async def inside(client: Client) -> list[str]:
        stream = client.stream(ASKED)
        return [client.chat(ASKED).text, *(event.text for event in stream if isinstance(event, TextDelta))]

    with served(COLD, COLD) as server, Client(server.url) as client:
        first, *rest = asyncio.run(inside(client))
        assert (first, "".join(rest)) == (COLD, COLD)


# ---------------------------------------------------------------- the end


def test_a_closed_client_says_so() -> None:
    with served(COLD) as server:
        client = Client(server.url)
        assert client.chat(ASKED).text == COLD
        client.close()
        client.close()
        for ask in (waiting, reading, Client.models):
            with pytest.raises(RuntimeError, match="the client is closed"):
                ask(client)


def waiting(client: Client) -> object:
    return client.chat(ASKED)


def reading(client: Client) -> object:
    return list(client.stream(ASKED))


@pytest.mark.parametrize("ask", [waiting, reading])
def test_closing_a_client_frees_those_who_wait_for_it_in_other_threads(ask: Callable[[Client], object]) -> None:
    with served(silent) as server, ThreadPoolExecutor(1) as pool:
        client = Client(server.url, model="m")
        asked = pool.submit(ask, client)
        soon(lambda: len(bodies(server)) == 1)
        client.close()
        error = asked.exception(SOON)
        assert isinstance(error, RuntimeError)
        assert "was closed" in str(error)
        soon(lambda: server.gone == server.connections)


def test_a_stream_that_is_left_open_ends_with_its_client() -> None:
    with served(endless) as server:
        with Client(server.url, model="m") as client:
            events = iter(client.stream(ASKED))
            next(events)
        soon(lambda: server.gone == 1)
        with pytest.raises(RuntimeError, match="the client is closed"):
            list(events)


def test_a_client_that_nobody_holds_closes_itself() -> None:
    with served(COLD) as server:
        assert Client(server.url, model="m").chat(ASKED).text == COLD
        gc.collect()
        soon(lambda: not ours())
        soon(lambda: server.gone == 1)


def test_a_stream_holds_its_client() -> None:
    with served(COLD) as server:
        stream = Client(server.url, model="m").stream(ASKED)
        gc.collect()
        list(stream)
        assert stream.answer.text == COLD


def test_a_stream_may_be_collected_in_the_thread_of_its_client() -> None:
    client = Client(AsyncScriptedUpstream(ScriptedUpstream("x" * 1000, COLD)), model="m")
    events = [iter(client.stream(ASKED))]
    next(events[0])

    async def collect() -> None:
        events.clear()

    client._thread.run(collect())
    assert client.chat(ASKED).text == COLD
    client.close()


# ---------------------------------------------------------------- Ctrl-C


def interrupt_when(holds: Callable[[], bool]) -> threading.Thread:
    def interrupt() -> None:
        soon(holds)
        time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads on this system")
@pytest.mark.parametrize("ask", [waiting, reading])
def test_ctrl_c_ends_the_wait_and_the_upstream_and_the_client_goes_on(ask: Callable[[Client], object]) -> None:
    with served(silent, COLD) as server, Client(server.url, model="m") as client:
        interrupting = interrupt_when(lambda: len(bodies(server)) == 1)
        with pytest.raises(KeyboardInterrupt):
            ask(client)
        interrupting.join()
        soon(lambda: server.gone == 1)
        assert client.chat(ASKED).text == COLD


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads on this system")
def test_ctrl_c_between_two_events_ends_the_stream() -> None:
    with served(endless, COLD) as server, Client(server.url, model="m") as client:
        interrupting = interrupt_when(lambda: len(bodies(server)) == 1)
        with pytest.raises(KeyboardInterrupt):
            reading(client)
        interrupting.join()
        soon(lambda: server.gone == 1)
        assert client.chat(ASKED).text == COLD


# ---------------------------------------------------------------- a process of its own


SCRIPTS = {
    "closed": "with Client(URL) as client: print(client.chat('x').text)",
    "not closed": "client = Client(URL); print(client.chat('x').text)",
    "a stream to its end": "with Client(URL) as client: print(len(list(client.stream('x'))) > 1)",
    "a stream left": """
        client = Client(URL)
        events = iter(client.stream("x"))
        print(next(events).text)
    """,
    "awaited": """
        import asyncio
        async def main():
            async with AsyncClient(URL) as client:
                print((await client.chat("x")).text)
                async for event in client.stream("x"):
                    break
        asyncio.run(main())
    """,
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_process_ends_without_a_word_of_complaint(script: str) -> None:
    """With all warnings, among which are those of what is left open."""
    with served(COLD, COLD) as server:
        code = f"from toolspeak import AsyncClient, Client\nURL = {server.url!r}\n{textwrap.dedent(script)}"
        command = [sys.executable, "-W", "error", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
