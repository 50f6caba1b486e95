"""The bare gateway: our server and our client, which pass bytes through without reading them.

    python -m bench.gateway.bare PORT UPSTREAM

The difference to toolspeak is the cost of toolspeak's own work.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import uvicorn

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
PASSED = {b"content-type", b"content-length"}


class Bare:
    """A raw ASGI app over one aiohttp session."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if not self._session:
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        body = await read(receive)
        kept = {"content-type": "application/json"}
        async with self._session.request(
            scope["method"], self._upstream + scope["path"], data=body or None, headers=kept
        ) as answer:
            headers = [(name, value) for name, value in answer.raw_headers if name.lower() in PASSED]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            async for chunk in answer.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def read(receive: Receive) -> bytes:
    """Return the body of a request."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


def main() -> None:
    """Serve until a signal comes."""
    port, upstream = int(sys.argv[1]), sys.argv[2]
    app = Bare(upstream)
    lean: dict[str, Any] = {"proxy_headers": False, "server_header": False, "date_header": False, "access_log": False}
    off: dict[str, Any] = {"ws": "none", "lifespan": "off", "log_level": "error"}
    config = uvicorn.Config(app, "127.0.0.1", port, loop="uvloop", http="httptools", **lean, **off)
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
