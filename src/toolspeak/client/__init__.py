"""The library's front door: ask a model with tools, in your own process.

Belongs here: what a caller of Python wants to write and to get. Does not: decisions, protocols, servers.
Read first: `asynchronous.py`; `synchronous.py` is the same for those who do not await.
"""

from toolspeak.client.answer import Answer, tool_result
from toolspeak.client.asynchronous import AsyncClient
from toolspeak.client.running import RunWishes
from toolspeak.client.said import Wishes
from toolspeak.client.streamed import AsyncStream
from toolspeak.client.synchronous import Client, Stream

__all__ = ["Answer", "AsyncClient", "AsyncStream", "Client", "RunWishes", "Stream", "Wishes", "tool_result"]
