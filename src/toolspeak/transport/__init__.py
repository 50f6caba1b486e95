"""toolspeak inside a program: transports for httpx and httpx2, by which any Python SDK uses it without a server.

    OpenAI(http_client=httpx2.Client(transport=toolspeak.Transport("http://127.0.0.1:8080/v1")))

Belongs here: driving the gateway's ASGI application from an HTTP client in the same process. Does not: what the
application answers; it is the one that `toolspeak serve` runs. Read first: `application.py`, then `call.py`.
"""

from toolspeak.transport.async_transport import AsyncTransport
from toolspeak.transport.source import TransportOptions
from toolspeak.transport.sync_transport import Transport

__all__ = ["AsyncTransport", "Transport", "TransportOptions"]
