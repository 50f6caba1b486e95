"""The line to the models. Who waits can be interrupted: then the upstream is hung up first, and only then told here."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from toolspeak.cli._catalogue import default_route
from toolspeak.cli.failure_hints import hinted
from toolspeak.client import Answer, AsyncClient
from toolspeak.config.shape import Config
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.event import Event
from toolspeak.ir.message import Message
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import Route


@contextmanager
def connected(config: Config) -> "Generator[Line, None, None]":
    """Open a line, and close it in the end."""
    with asyncio.Runner() as runner:
        line = Line(runner, config)
        try:
            yield line
        finally:
            line.close()


class Line:
    """Failures come with a hint."""

    def __init__(self, runner: asyncio.Runner, config: Config) -> None:
        """Connect nothing yet."""
        self._runner: Final = runner
        self._config: Final = config
        self._client: Final = AsyncClient(config=config)

    def default(self) -> Route:
        """Return the model that answers."""
        return self._runner.run(default_route(self._config))

    def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Answer:
        """Take a turn."""
        try:
            return self._runner.run(self._client.chat(messages, tools))
        except UpstreamFailed as error:
            raise hinted(error) from None

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool], take: Callable[[Event], None]) -> Answer:
        """Take a turn, event by event."""
        try:
            return self._runner.run(self._streamed(messages, tools, take))
        except UpstreamFailed as error:
            raise hinted(error) from None

    def close(self) -> None:
        """Close all connections."""
        self._runner.run(self._client.close())

    async def _streamed(
        self, messages: Sequence[Message], tools: Sequence[Tool], take: Callable[[Event], None]
    ) -> Answer:
        async with self._client.stream(messages, tools) as stream:
            async for event in stream:
                take(event)
        return stream.answer
