"""The SDK's session with limits: our own validators check output schemas, lists of tools and results are bounded.

SDK 2.3 matches a server's patterns with an engine that backtracks: the pattern `^(a+)+$` and a string of 30 letters
blocked the event loop for more than 15 seconds. Our validators run in linear time and fetch nothing. A schema over
their limits is not checked at all. A result becomes a `ToolOutput`; no link in it is fetched.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcp import ClientSession, types
from mcp.client._transport import TransportStreams
from mcp.client.session import MessageHandlerFnT
from typing_extensions import override

from toolspeak.agent.mcp.definition import Definition, plain_line, plain_text
from toolspeak.agent.tools.action import ToolOutput
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadJson, BadSchema
from toolspeak.ir.message import Image, Text
from toolspeak.text.schema import Validator, compile_schema
from toolspeak.text.strict import dump


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


MOST_TEXT: Final = 64 * 1024
"""Maximum bytes of all texts of a result; the toolbox cuts further."""
MOST_BLOCKS: Final = 256
MOST_IMAGES: Final = 4
LARGEST_IMAGE: Final = 2 << 20
"""Maximum characters of an image's base64."""
LONGEST_NAME: Final = 256
_IMAGES: Final = frozenset(("image/gif", "image/jpeg", "image/png", "image/webp"))
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_UNFIT: Final = "It was run, but what it returned is not what it declares ({problems}). It returned:"


def tool_output(result: types.CallToolResult, problems: str = "") -> ToolOutput:
    """Convert a result. With `problems`, it violates the server's own output schema, and becomes an error."""
    parts = list(_parts(result.content[:MOST_BLOCKS]))
    images = [part for part in parts if isinstance(part, Image)]
    pieces = [_UNFIT.format(problems=problems)] if problems else []
    pieces += [part for part in parts if isinstance(part, str)]
    if (more := len(result.content) - MOST_BLOCKS) > 0:
        pieces.append(f"[{more} more blocks left out]")
    if result.structured_content is not None and not any(
        isinstance(each, types.TextContent) for each in result.content
    ):
        pieces.append(_structured(result.structured_content))
    texts = [Text(_joined(pieces))] if pieces or not images else []
    return ToolOutput((*texts, *images), result.is_error or bool(problems))


def _parts(blocks: Iterable[types.ContentBlock]) -> Iterator[Image | str]:
    """Convert blocks: the first few images stay images, everything else becomes text."""
    images = 0
    for block in blocks:
        if isinstance(block, types.ImageContent) and images < MOST_IMAGES and _can_be_shown(block):
            images += 1
            yield Image(block.mime_type, block.data)
        else:
            yield _text(block)


def _can_be_shown(image: types.ImageContent) -> bool:
    small = len(image.data) <= LARGEST_IMAGE
    return small and image.mime_type in _IMAGES and _BASE64.fullmatch(image.data) is not None


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent(mime_type=kind, data=data) | types.AudioContent(mime_type=kind, data=data):
            return f"[{plain_line(kind, LONGEST_NAME)} of {len(data) * 3 // 4} bytes left out]"
        case types.ResourceLink(name=name, uri=uri):
            return f"[{plain_line(name, LONGEST_NAME)}: {plain_line(uri, LONGEST_NAME)}, not fetched]"
        case types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, text=text)):
            return f"[{plain_line(uri, LONGEST_NAME)}]\n{text}"
        case types.EmbeddedResource(resource=resource):
            return f"[{plain_line(resource.uri, LONGEST_NAME)}: not text, left out]"


def _structured(value: object) -> str:
    try:
        return dump(value)  # type: ignore[arg-type] # it was read from JSON
    except BadJson as error:
        return f"[a structured result that cannot be written: {error}]"


def _joined(pieces: Iterable[str]) -> str:
    """Join texts until the limit is reached, with a note that the rest is left out."""
    kept: list[str] = []
    size = 0
    for piece in pieces:
        if size > MOST_TEXT:
            kept.append("[more left out]")
            break
        kept.append(plain_text(piece, MOST_TEXT))
        size += len(kept[-1])
    return plain_text("\n".join(kept), MOST_TEXT)
