"""The door to a server's tools for code that must not load the MCP SDK: an extra, and a second of imports."""

from asyncio import to_thread
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.sandbox.disk import DiskBudget
from toolspeak.agent.tools.action import Action
from toolspeak.config.mcp import server_named
from toolspeak.config.shape import McpServer
from toolspeak.errors import McpFailed


@asynccontextmanager
async def open_mcp_tools(
    servers: Sequence[McpServer], name: str, approved: ApprovalStore, budget: DiskBudget | None = None
) -> AsyncGenerator[Sequence[Action]]:
    """Start or reach a server, for as long as its tools are used; `budget` is what its command may put on the disk."""
    server = server_named(servers, name)
    require_sdk()
    # The SDK is an extra, and takes a second to load. In the event loop of a gateway every other request would wait.
    actions = await to_thread(import_module, "toolspeak.agent.mcp.connection")
    tools: AbstractAsyncContextManager[Sequence[Action]] = actions.open_actions(server, approved, budget=budget)
    async with tools as found:
        yield found


def require_sdk() -> None:
    """Raise `McpFailed`, with the command that installs it, if the MCP SDK is missing."""
    if find_spec("mcp") is None:
        raise McpFailed("MCP needs a package more: pip install 'toolspeak[mcp]'")
