"""Sends parts of a page as they change, as server-sent events.

A part is HTML with an id; the browser puts it in the place of the element that has it. A browser that reads nothing is
given up, so that a page that was left open does not hold memory.
"""

import asyncio
from typing import Final

from toolspeak.gateway.page_request import PAGE_HEADERS, UNCACHED, PageRequest

PAUSE: Final = 0.25
"""Seconds between two looks for news."""
_QUIET: Final = 15.0
"""Seconds without news after which a comment is sent, so that proxies keep the connection."""
_STUCK: Final = 10.0
"""Seconds after which a browser that reads nothing is given up."""
_START: Final = ((b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"), *PAGE_HEADERS, UNCACHED)


class StreamOver(Exception):
    """The stream must end: the gateway shuts down, or the browser reads nothing."""


class PageStream:
    """The stream of one page."""

    def __init__(self, request: PageRequest) -> None:
        """Nothing is sent yet: until `start`, an error can still be a page."""
        self._exchange: Final = request.exchange
        self._response: Final = request.response
        self._now: Final = request.gateway.clock.monotonic
        self._last = self._now()

    async def start(self) -> None:
        """Send the headers."""
        self._response.started = True
        await self._exchange.start(200, _START)

    async def send(self, *parts: bytes, name: str = "part") -> None:
        """Send parts of the page. Raises `StreamOver`."""
        await self.write(b"".join(event_frame(name, part) for part in parts))

    async def rest(self) -> None:
        """Send a comment if it was quiet for long. Raises `StreamOver`."""
        if self._now() - self._last > _QUIET:
            await self.write(b":\n\n")

    async def end(self) -> None:
        """End the response."""
        await self._exchange.write(b"", last=True)

    async def write(self, data: bytes) -> None:
        """Send frames. Raises `StreamOver`."""
        self._last = self._now()
        try:
            async with asyncio.timeout(_STUCK):
                await self._exchange.write(data)
        except TimeoutError:
            raise StreamOver from None


def event_frame(name: str, data: bytes, number: int | None = None) -> bytes:
    """Return one event; a browser that connects again says the `number` of the last one that it got."""
    lines = b"".join(b"data: %b\n" % line for line in data.split(b"\n"))
    id = b"" if number is None else b"id: %d\n" % number
    return b"event: %b\n%b%b\n" % (name.encode(), id, lines)
