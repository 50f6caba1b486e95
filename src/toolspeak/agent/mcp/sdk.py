"""Opens a server's tools for code that must not import the MCP SDK, which is an extra and takes a second to import."""

from asyncio import to_thread
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module

from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.sandbox.disk import DiskBudget
from toolspeak.agent.tools.action import Action
from toolspeak.config.mcp import server_named
from toolspeak.config.shape import McpServer
from toolspeak.extras import require_extra


@asynccontextmanager
async def open_mcp_tools(
    servers: Sequence[McpServer], name: str, approved: ApprovalStore, budget: DiskBudget | None = None
) -> AsyncGenerator[Sequence[Action]]:
    """Start or connect to a server while its tools are used. `budget` is the disk budget of its command.

    Raises `MissingExtra` without the SDK, and `McpFailed` if the server does not start.
    """
    server = server_named(servers, name)
    require_sdk()
    # Imported in a thread: in the event loop of a gateway, every other request would wait for a second.
    actions = await to_thread(import_module, "toolspeak.agent.mcp.connection")
    tools: AbstractAsyncContextManager[Sequence[Action]] = actions.open_actions(server, approved, budget=budget)
    async with tools as found:
        yield found


def require_sdk() -> None:
    """Raise `MissingExtra` if the MCP SDK is missing."""
    require_extra("mcp", "MCP")
