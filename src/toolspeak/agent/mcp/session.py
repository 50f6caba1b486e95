"""The SDK's session with limits: our own validators check output schemas, and the list of tools is bounded.

SDK 2.3 matches a server's patterns with an engine that backtracks: the pattern `^(a+)+$` and a string of 30 letters
blocked the event loop for more than 15 seconds. Our validators run in linear time and fetch nothing. A schema over
their limits is not checked at all.
"""

import logging
from typing import Any, Final

from mcp import ClientSession, types
from mcp.client._transport import TransportStreams
from mcp.client.session import MessageHandlerFnT
from typing_extensions import override

from toolspeak.agent.mcp.definition import Definition
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadSchema
from toolspeak.text.schema import Validator, compile_schema


class InvalidToolResult(Exception):
    """A result violates the output schema that its server declares."""

    def __init__(self, result: types.CallToolResult, problems: str) -> None:
        """Keep the result: the tool has run, so the model must see what came back."""
        super().__init__(problems)
        self.result: Final = result


class Session(ClientSession):
    """A session. `outputs` has the output validators of the tools that were listed last."""

    def __init__(self, streams: TransportStreams, seconds: float, heard: MessageHandlerFnT) -> None:
        """Communicate over the streams. `heard` receives the server's notifications."""
        super().__init__(*streams, seconds, message_handler=heard)
        self.outputs: Final[dict[str, Validator]] = {}

    def expect(self, name: str, schema: dict[str, Any] | None) -> None:
        """Compile the output schema of a tool. A schema that cannot be compiled is not checked."""
        if schema is None:
            return
        try:
            self.outputs[name] = compile_schema(schema)
        except BadSchema:
            self.outputs.pop(name, None)

    @override
    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Raise `InvalidToolResult` if a result violates the schema of its tool. Replaces the SDK's own check."""
        validator = self.outputs.get(name)
        if validator is None:
            return
        if result.structured_content is None:
            raise InvalidToolResult(result, "there is no structured content")
        try:
            problems = validator.problems(result.structured_content)
        except BadSchema:
            return
        if problems:
            raise InvalidToolResult(
                result, "; ".join(f"{each.path or '/'} {each.found}, accepted: {each.accepted}" for each in problems)
            )


# ---------------------------------------------------------------- the list of tools


MOST_PAGES: Final = 16
MOST_LISTED: Final = 1024
MOST_TOOLS: Final = 128
"""Maximum tools of one server. `tools` in the configuration selects the wanted ones."""
_MORE: Final = (
    "the server %s has more than %d tools: name those that are wanted in its `tools`; the others are left out"
)
_LOG: Final = logging.getLogger(__name__)


async def list_tools(session: Session, server: McpServer) -> dict[str, Definition]:
    """Return the wanted tools by their names at the server, and prepare their output validators."""
    found: dict[str, Definition] = {}
    session.outputs.clear()
    for tool in await _pages(session):
        if server.tools and tool.name not in server.tools:
            continue
        if len(found) == MOST_TOOLS:
            _LOG.warning(_MORE, server.name, MOST_TOOLS)
            break
        # The first of two tools of one name stays: a later one must not replace it.
        found.setdefault(tool.name, _definition(tool))
        session.expect(tool.name, tool.output_schema)
    return found


async def _pages(session: Session) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    # Bounded, since a hostile server can send pages without end.
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
