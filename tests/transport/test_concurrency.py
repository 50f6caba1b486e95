"""Two hundred streams at once through one transport: none lost, none mixed up, and those that leave free theirs."""

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from testkit.scripted_upstream import Asked, hang, listening
from tests.transport.scene import END, LIBRARIES, VENDOR, WAIT_S, body, delta, text_of
from toolspeak import AsyncTransport, Transport

STREAMS, CHUNKS, LEAVING = 200, 20, 20
URL = f"{VENDOR}/chat/completions"


async def numbered(asked: Asked) -> None:
    """Repeat the number of the request in each chunk, in small steps; one that is to hang hangs after three."""
    number = asked.json["messages"][0]["content"]
    asked.head()
    for chunk in range(CHUNKS):
        await asked.chunk(delta(f"{number}.{chunk} "))
        await asyncio.sleep(0)
        if int(number) < LEAVING and chunk == 3:
            await hang(asked)
    await asked.chunk(END)
    await asked.end()


def wanted(number: int) -> str:
    return "".join(f"{number}.{chunk} " for chunk in range(CHUNKS))


@pytest.mark.parametrize("library", LIBRARIES)
def test_200_streams_of_tasks_none_lost_none_mixed_p6(library: str) -> None:
    httpx = importlib.import_module(library)

    async def one(client: Any, number: int) -> str:  # noqa: ANN401 -- of either library
        async with client.stream("POST", URL, json=body(content=str(number)), timeout=WAIT_S) as response:
            data = b""
            async for chunk in response.aiter_raw():
                data += chunk
                if number < LEAVING and f"{number}.3 ".encode() in data:
                    break
            return text_of(data)

    async def all_of_them(url: str) -> list[str]:
        async with httpx.AsyncClient(transport=AsyncTransport(url)) as client:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(client, number)) for number in range(STREAMS)]
            return [task.result() for task in tasks]

    with listening() as upstream:
        upstream.answers(numbered)
        said = asyncio.run(all_of_them(upstream.url))
        assert said[LEAVING:] == [wanted(number) for number in range(LEAVING, STREAMS)]
        assert said[:LEAVING] == [wanted(number)[: len(said[number])] for number in range(LEAVING)]
        left = [asked for asked in upstream.asked if int(asked.json["messages"][0]["content"]) < LEAVING]
        assert len(left) == LEAVING
        assert all(asked.hung_up.wait(WAIT_S) for asked in left)


@pytest.mark.parametrize("library", LIBRARIES)
def test_200_streams_of_threads_none_lost_none_mixed_p6(library: str) -> None:
    httpx = importlib.import_module(library)
    with listening() as upstream, httpx.Client(transport=Transport(upstream.url), timeout=WAIT_S) as client:
        upstream.answers(numbered)

        def one(number: int) -> str:
            with client.stream("POST", URL, json=body(content=str(number))) as response:
                data = b""
                for chunk in response.iter_raw():
                    data += chunk
                    if number < LEAVING and f"{number}.3 ".encode() in data:
                        break
                return text_of(data)

        with ThreadPoolExecutor(STREAMS) as threads:
            said = list(threads.map(one, range(STREAMS)))
        assert said[LEAVING:] == [wanted(number) for number in range(LEAVING, STREAMS)]
        left = [asked for asked in upstream.asked if int(asked.json["messages"][0]["content"]) < LEAVING]
        assert len(left) == LEAVING
        assert all(asked.hung_up.wait(WAIT_S) for asked in left)
