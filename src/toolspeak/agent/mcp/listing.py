"""What tools a server has: page by page, and not more than a run can carry."""

import logging
from typing import Final

from mcp import types

from toolspeak.agent.mcp.definition import Definition
from toolspeak.agent.mcp.session import Session
from toolspeak.config.shape import McpServer

MOST_PAGES: Final = 16
MOST_LISTED: Final = 1024
MOST_TOOLS: Final = 128
"""Of one server; `tools` in the configuration names those that are wanted."""
_MORE: Final = (
    "the server %s has more than %d tools: name those that are wanted in its `tools`; the others are left out"
)
_LOG: Final = logging.getLogger(__name__)


async def list_tools(session: Session, server: McpServer) -> dict[str, Definition]:
    """List the tools that are wanted, by their names at the server."""
    found: dict[str, Definition] = {}
    session.outputs.clear()
    for tool in await _pages(session):
        if server.tools and tool.name not in server.tools:
            continue
        if len(found) == MOST_TOOLS:
            _LOG.warning(_MORE, server.name, MOST_TOOLS)
            break
        found.setdefault(tool.name, _definition(tool))
        session.expect(tool.name, tool.output_schema)
    return found


async def _pages(session: Session) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) > MOST_LISTED:
            break
    return tools


def _definition(tool: types.Tool) -> Definition:
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations is not None else None
    return Definition(tool.name, tool.description or tool.title or "", tool.input_schema, tool.output_schema, hints)
