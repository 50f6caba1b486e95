"""A program with the openai SDK, which `bench.speed_hosts` measures; it runs in .venv-hosts.

    python bench/hosts_client.py WAY URL     WAY is `sdk`, `gateway` (both over HTTP) or `transport` (in process)

It reads one order per line (JSON: mode, model, requests, streams), carries it out and prints the seconds to the first
event of each stream, or to the whole answer. It exits at the end of its input.
"""

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

MESSAGES = [{"role": "user", "content": "Is it cold in Oslo?"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Program:
    """The clients of one way."""

    def __init__(self, way: str, url: str) -> None:
        self._way, self._url = way, url
        self._loop = asyncio.new_event_loop()
        self._threads = ThreadPoolExecutor(8)  # the threads stay: the CPU of an ended thread is counted coarsely
        self._client, self._async_client = self._made()

    def _made(self) -> tuple[OpenAI, AsyncOpenAI]:
        if self._way != "transport":
            return OpenAI(api_key="none", base_url=self._url), AsyncOpenAI(api_key="none", base_url=self._url)
        import toolspeak  # noqa: PLC0415 -- the other ways do without

        plain = DefaultHttpxClient(transport=toolspeak.Transport(self._url))
        awaited = DefaultAsyncHttpxClient(transport=toolspeak.AsyncTransport(self._url))
        return OpenAI(api_key="none", http_client=plain), AsyncOpenAI(api_key="none", http_client=awaited)

    def carry_out(self, order: dict[str, Any]) -> list[float]:
        """Return the seconds of each request."""
        if order["mode"] == "async":
            return self._loop.run_until_complete(self._awaited(order))
        if order["streams"] == 1:
            return [self._one(order["model"]) for _ in range(order["requests"])]
        return list(self._threads.map(self._one, [order["model"]] * order["requests"]))

    def _one(self, model: str) -> float:
        began, first, ended = time.perf_counter(), 0.0, False
        if model.startswith("small"):
            assert self._client.chat.completions.create(model=model, messages=MESSAGES).choices[0].message.content
            return time.perf_counter() - began
        for chunk in self._client.chat.completions.create(model=model, messages=MESSAGES, tools=[TOOL], stream=True):
            first = first or time.perf_counter() - began
            ended |= any(choice.finish_reason == "stop" for choice in chunk.choices)
        assert ended
        return first

    async def _awaited(self, order: dict[str, Any]) -> list[float]:
        waiting = iter(range(order["requests"]))
        seconds: list[float] = []

        async def work() -> None:
            for _ in waiting:
                seconds.append(await self._async_one(order["model"]))  # noqa: PERF401 -- each as it comes

        async with asyncio.TaskGroup() as group:
            for _ in range(order["streams"]):
                group.create_task(work())
        return seconds

    async def _async_one(self, model: str) -> float:
        create = self._async_client.chat.completions.create
        began, first, ended = time.perf_counter(), 0.0, False
        if model.startswith("small"):
            assert (await create(model=model, messages=MESSAGES)).choices[0].message.content
            return time.perf_counter() - began
        async for chunk in await create(model=model, messages=MESSAGES, tools=[TOOL], stream=True):
            first = first or time.perf_counter() - began
            ended |= any(choice.finish_reason == "stop" for choice in chunk.choices)
        assert ended
        return first

    def close(self) -> None:
        """Close the clients, as a program with its own event loop does."""
        self._loop.run_until_complete(self._async_client.close())
        self._loop.close()
        self._client.close()


def main() -> None:
    program = Program(*sys.argv[1:])
    for line in sys.stdin:
        print(json.dumps(program.carry_out(json.loads(line))), flush=True)
    program.close()


if __name__ == "__main__":
    main()
