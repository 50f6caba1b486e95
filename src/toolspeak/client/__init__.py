"""The Python library: sends requests with tools to a model from your own process.

Belongs here: the arguments and results of Python callers. Does not: decisions (`engine`), protocols (`wires`), servers.
Read first: `async_client.py`; `sync_client.py` is the same without `await`.
"""

from toolspeak.client.answer import Answer, AsyncStream, tool_result
from toolspeak.client.async_client import AsyncClient
from toolspeak.client.request import ChatOptions, MessagesInput, RunnableTools, RunOptions, ToolsInput
from toolspeak.client.sync_client import Client, Stream

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncStream",
    "ChatOptions",
    "Client",
    "MessagesInput",
    "RunOptions",
    "RunnableTools",
    "Stream",
    "ToolsInput",
    "tool_result",
]
