"""A synchronous connection to the models, for commands that wait for one answer at a time.

Ctrl-C while waiting closes the connection to the upstream first, and raises KeyboardInterrupt after that.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from toolspeak.cli.failure_hints import hinted
from toolspeak.client import Answer, AsyncClient
from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.event import Event
from toolspeak.ir.message import Message
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import Route
from toolspeak.runtime.transport import HttpTransport


@contextmanager
def connected(config: Config) -> "Generator[Connection, None, None]":
    """Open a connection, and close it at the end of the block."""
    with asyncio.Runner() as runner:
        connection = Connection(runner, config)
        try:
            yield connection
        finally:
            connection.close()


class Connection:
    """Sends turns to the configured upstreams. `UpstreamFailed` is raised with a hint in its message."""

    def __init__(self, runner: asyncio.Runner, config: Config) -> None:
        """Prepare a client; nothing is sent yet."""
        self._runner: Final = runner
        self._config: Final = config
        self._client: Final = AsyncClient(config=config)

    def default(self) -> Route:
        """Return the route of requests that name no model; its model is empty if no upstream tells."""
        return self._runner.run(_default_route(self._config))

    def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Answer:
        """Take one turn, and return the whole answer."""
        try:
            return self._runner.run(self._client.chat(messages, tools))
        except UpstreamFailed as error:
            raise hinted(error) from None

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool], take: Callable[[Event], None]) -> Answer:
        """Take one turn; `take` gets each event as it arrives."""
        try:
            return self._runner.run(self._streamed(messages, tools, take))
        except UpstreamFailed as error:
            raise hinted(error) from None

    def close(self) -> None:
        """Close all connections to upstreams."""
        self._runner.run(self._client.close())

    async def _streamed(
        self, messages: Sequence[Message], tools: Sequence[Tool], take: Callable[[Event], None]
    ) -> Answer:
        async with self._client.stream(messages, tools) as stream:
            async for event in stream:
                take(event)
        return stream.answer


async def _default_route(config: Config) -> Route:
    transport = HttpTransport()
    try:
        return await assemble(config, transport).find("")
    finally:
        await transport.close()
