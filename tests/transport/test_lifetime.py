"""The application starts with the first request and ends with its client: no thread, task or socket is left behind."""

import asyncio
import concurrent.futures.thread
import gc
import importlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testkit.scripted_upstream import ScriptedUpstream, hang, listening
from tests.transport.scene import KINDS, LIBRARIES, VENDOR, WAIT_S, Kind, body, says_and_hangs, streamed, text_of
from toolspeak import AsyncTransport, BadConfig, ClientClosed, Transport

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
URL = f"{VENDOR}/chat/completions"
ROOT = Path(__file__).parents[2]


def soon(reached: Callable[[], bool]) -> bool:
    end = time.monotonic() + WAIT_S
    while not reached() and time.monotonic() < end:
        time.sleep(0.01)
    return reached()


def connections(upstream: ScriptedUpstream) -> int:
    """Return how many connections of this process lead to the upstream."""
    port = f":{upstream.port:04X}"
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(port) and row[3] == "01" for row in rows)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@EACH
def test_nothing_is_left_after_close(kind: Kind) -> None:
    with listening() as upstream:
        upstream.answers(streamed("well"))
        with kind.client(upstream) as first:  # the first event loop of libuv opens a pipe that the process keeps
            assert text_of(first.open(body()).rest()) == "well"
        assert soon(lambda: connections(upstream) == 0)
        before, files = threading.active_count(), open_files()
        with kind.client(upstream) as client:
            for _ in range(6):
                assert text_of(client.open(body()).rest()) == "well"
            # one for all requests, and perhaps one for the look at the server beside the first of them
            assert 1 <= connections(upstream) <= 2, "the connection is kept for the next request"
            client.close()
            if kind.is_async:
                assert client.tasks() == 0
        assert soon(lambda: connections(upstream) == 0)
        assert soon(lambda: threading.active_count() <= before), threading.enumerate()
        assert soon(lambda: open_files() <= files)


@EACH
def test_close_ends_open_responses_with_an_error(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(says_and_hangs)
        reply = client.open(body())
        assert reply.chunk()
        raised: list[Exception] = []

        def read() -> None:
            try:
                reply.rest()
            except Exception as error:  # noqa: BLE001 # whatever it is, the test looks at it
                raised.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        client.close()
        reader.join(WAIT_S)
        assert [type(error) for error in raised] == [kind.module.RemoteProtocolError]
        assert upstream.asked[0].hung_up.wait(WAIT_S)


@EACH
def test_a_closed_transport_refuses_requests(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream) as client:
        transport = client.client._transport
        client.close()
        request = kind.module.Request("POST", URL, json=body())
        with pytest.raises(ClientClosed):
            client.loop.run(transport.handle_async_request(request)) if kind.is_async else transport.handle_request(
                request
            )


@EACH
def test_an_unused_transport_starts_nothing(kind: Kind) -> None:
    before = {*threading.enumerate()}
    with kind.client("http://127.0.0.1:9/v1") as client:
        started = {*threading.enumerate()} - before
        assert len(started) == kind.is_async  # the loop of the test
        if kind.is_async:
            assert client.tasks() == 0


@EACH
def test_a_mistake_in_the_configuration_is_raised_at_once(kind: Kind) -> None:
    with pytest.raises(BadConfig, match=r"127\.0\.0\.1"):
        (AsyncTransport if kind.is_async else Transport)("127.0.0.1:8080")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dropped_client_ends_its_thread(library: str) -> None:
    httpx = importlib.import_module(library)
    with listening() as upstream:
        upstream.answers(streamed("well"))
        before = threading.active_count()
        client = httpx.Client(transport=Transport(upstream.url))
        assert client.post(URL, json=body()).status_code == 200
        del client
        gc.collect()
        assert soon(lambda: threading.active_count() <= before)
        assert soon(lambda: connections(upstream) == 0)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_garbage_collector_does_not_wait_for_the_thread(library: str) -> None:
    """It may run while its thread holds any lock; that of the pools, for one, is needed at the application's end."""
    httpx = importlib.import_module(library)
    with listening() as upstream:
        upstream.answers(streamed("well"))
        before = threading.active_count()
        client = httpx.Client(transport=Transport(upstream.url))
        assert client.post(URL, json=body()).status_code == 200
        with concurrent.futures.thread._global_shutdown_lock:
            del client
            gc.collect()
        assert soon(lambda: threading.active_count() <= before)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_response_outlives_its_dropped_client(library: str) -> None:
    httpx = importlib.import_module(library)
    with listening() as upstream:
        upstream.answers(streamed(*["x" * 20_000] * 20))
        client = httpx.Client(transport=Transport(upstream.url))
        response = client.send(client.build_request("POST", URL, json=body()), stream=True)
        del client
        gc.collect()
        assert text_of(b"".join(response.iter_raw())) == "x" * 400_000


@EACH
def test_a_dropped_response_frees_the_upstream(kind: Kind) -> None:
    with listening() as upstream, kind.client(upstream) as client:
        upstream.answers(says_and_hangs)
        reply = client.open(body())
        assert reply.response.status_code == 200
        del reply
        gc.collect()
        assert upstream.asked[0].hung_up.wait(WAIT_S)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cancelled_task_frees_the_upstream(library: str) -> None:
    httpx = importlib.import_module(library)

    async def cancelled_while(upstream: ScriptedUpstream, *, reading: bool) -> None:
        upstream.answers(says_and_hangs if reading else hang)
        async with httpx.AsyncClient(transport=AsyncTransport(upstream.url), timeout=WAIT_S) as client:
            task = asyncio.get_running_loop().create_task(client.post(URL, json=body()))
            asked = (await asyncio.to_thread(upstream.wait_for, 1))[0]
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(asked.hung_up.wait, WAIT_S)

    with listening() as upstream:
        asyncio.run(cancelled_while(upstream, reading=False))
        asyncio.run(cancelled_while(upstream, reading=True))


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_end_of_the_loop_ends_the_application(library: str, caplog: pytest.LogCaptureFixture) -> None:
    httpx = importlib.import_module(library)

    async def use(url: str) -> object:
        client = httpx.AsyncClient(transport=AsyncTransport(url))
        response = await client.send(client.build_request("POST", URL, json=body()), stream=True)
        await anext(response.aiter_raw())
        return client, response  # neither is closed

    with listening() as upstream:
        upstream.answers(says_and_hangs)
        kept = asyncio.run(use(upstream.url))
        assert upstream.asked[0].hung_up.wait(WAIT_S)
        assert soon(lambda: connections(upstream) == 0)
        del kept
        gc.collect()
        assert [each for each in caplog.records if each.name != "toolspeak.gateway.access_log"] == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_second_loop_is_a_clear_error(library: str) -> None:
    httpx = importlib.import_module(library)
    with listening() as upstream:
        upstream.answers(streamed("well"))
        client = httpx.AsyncClient(transport=AsyncTransport(upstream.url))
        assert asyncio.run(client.post(URL, json=body())).status_code == 200
        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(client.post(URL, json=body()))


SCRIPT = """
import sys, threading, {library}, toolspeak
client = {library}.Client(transport=toolspeak.Transport(sys.argv[1]))
response = client.send(client.build_request("POST", "{url}", json={body}), stream=True)
print(len(next(response.iter_raw())) > 0, flush=True)
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_program_that_closes_nothing_exits_quietly(library: str) -> None:
    """It has a stream open. SDKs never close an `http_client` that they were given, so this is how programs end."""
    with listening() as upstream:
        upstream.answers(says_and_hangs)
        script = SCRIPT.format(library=library, url=URL, body=body())
        command = [sys.executable, "-W", "error", "-c", script, upstream.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False, cwd=ROOT)
        assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
        assert upstream.asked[0].hung_up.wait(WAIT_S)


def test_importing_toolspeak_loads_neither_the_gateway_nor_httpx() -> None:
    script = (
        "import sys, toolspeak; print([n for n in sys.modules if n.startswith(('toolspeak.', 'httpx', 'aiohttp'))])"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert done.stdout == "[]\n"


def test_the_transport_loads_no_httpx_of_its_own() -> None:
    script = "import sys, toolspeak; toolspeak.Transport('http://127.0.0.1:9/v1'); print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert done.stdout == "False\n"
