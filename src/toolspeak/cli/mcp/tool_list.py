"""Lists the tools of MCP servers, compared with the definitions that the user has approved.

A definition is part of the model's prompt, so a server that changes one after its approval could inject instructions.
The user approves exactly the text that was printed; a changed definition needs a new approval.
"""

import asyncio
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from toolspeak.agent.mcp.approval_store import ApprovalState, ApprovalStore
from toolspeak.agent.mcp.definition import Definition, effect_of, tool_of
from toolspeak.agent.mcp.sdk import require_sdk
from toolspeak.cli.output import safe_json
from toolspeak.cli.terminal import Paint, count_noun, shorten, visible
from toolspeak.config.mcp import server_named
from toolspeak.config.shape import Config, McpServer
from toolspeak.errors import BadSchema, McpFailed
from toolspeak.ir.json import JsonObject

LEFT_OUT = "left out"
_COLORS = {ApprovalState.APPROVED: "green", ApprovalState.NEW: "yellow", ApprovalState.CHANGED: "red", LEFT_OUT: "red"}


@dataclass(frozen=True, slots=True)
class ToolListOptions:
    """What to list; an empty name means all servers."""

    name: str = ""
    approve: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One tool. `name` is its name for models; empty if the tool is left out, and then `why` has the reason."""

    definition: Definition
    known: ApprovalState
    name: str = ""
    effect: str = ""
    why: str = ""

    @property
    def status(self) -> str:
        """Whether it is approved, new, changed or left out."""
        return self.known if self.name else LEFT_OUT


@dataclass(frozen=True, slots=True)
class ServerTools:
    """A server and its tools, or its failure."""

    server: McpServer
    tools: tuple[ListedTool, ...] = ()
    failure: str = ""


def show(config: Config, options: ToolListOptions, paint: Paint) -> int:
    """Print the tools, and approve them if `options` says so; return the exit status."""
    require_sdk()
    servers = [server_named(config.mcp, options.name)] if options.name else config.mcp
    approved = ApprovalStore(config.approvals)
    found = asyncio.run(_list_all(servers, approved))
    if options.as_json:
        click.echo(safe_json(_as_object(found)))
    else:
        for each in found:
            for line in _lines(each, paint, whole=options.approve):
                click.echo(line)
        if not servers:
            click.echo("No MCP servers are configured. Add [mcp.NAME] with a command or a url to the configuration.")
    for each in found if options.approve else ():
        _approve(approved, each)
    return int(any(each.failure for each in found))


def _approve(approved: ApprovalStore, found: ServerTools) -> None:
    """Store the definitions that were printed. The server is not asked again: it could answer something else."""
    fresh = [tool.definition for tool in found.tools if tool.name and tool.known is not ApprovalState.APPROVED]
    if not fresh:
        click.echo("There are no new tools to approve.", err=True)
        return
    if sys.stdin.isatty() and not click.confirm(f"Approve {count_noun(len(fresh), 'tool')}?", err=True):
        raise click.Abort
    approved.keep(found.server, fresh)
    click.echo(f"Approved {count_noun(len(fresh), 'tool')} of {found.server.name}.", err=True)


async def _list_all(servers: Sequence[McpServer], approved: ApprovalStore) -> list[ServerTools]:
    return [await _list_tools(server, approved) for server in servers]


async def _list_tools(server: McpServer, approved: ApprovalStore) -> ServerTools:
    from toolspeak.agent.mcp.connection import ServerConnection  # noqa: PLC0415 # the SDK, an extra

    line = ServerConnection(server)
    try:
        await line.start()
    except McpFailed as error:
        return ServerTools(server, failure=str(error))
    await line.close()
    return ServerTools(server, tuple(_compared(server, each, approved) for each in line.definitions.values()))


def _compared(server: McpServer, definition: Definition, approved: ApprovalStore) -> ListedTool:
    known = approved.known(server, definition)
    try:
        tool = tool_of(server, definition)
    except BadSchema as error:
        return ListedTool(definition, known, why=str(error))
    return ListedTool(definition, known, tool.name, effect_of(server, definition))


def _lines(found: ServerTools, paint: Paint, *, whole: bool) -> Iterator[str]:
    server = found.server
    place = server.url or shlex.join((server.command, *server.args))
    yield f"{paint.ink(server.name, bold=True)}  {paint.ink(visible(place), dim=True)}"
    if found.failure:
        yield f"  {paint.ink(visible(found.failure), 'red')}"
    width = max((len(tool.name) for tool in found.tools), default=0)
    for tool in found.tools:
        status = paint.ink(f"{tool.status:8}", _COLORS[tool.status])
        yield f"  {status}  {_tool_text(tool, width, paint, whole=whole)}"


def _tool_text(tool: ListedTool, width: int, paint: Paint, *, whole: bool) -> str:
    """Write a tool on one line; before approval, in full as the model would see it."""
    if not tool.name:
        return f"{visible(tool.definition.name[: width or 40])!s}: {visible(tool.why)}"
    if whole and tool.known is not ApprovalState.APPROVED:
        told = visible(f"{tool.definition.description}\n{safe_json(tool.definition.schema)}")
        return f"{tool.name}  {tool.effect}\n      " + told.replace("\n", "\n      ")
    first = visible(" ".join(tool.definition.description.split()))
    line = f"{tool.name:{width}}  {tool.effect:7}  {first}"
    return shorten(line, max(paint.width - 12, 20) if paint.width else 0)


def _as_object(found: Sequence[ServerTools]) -> JsonObject:
    servers: list[JsonObject] = [
        {
            "server": each.server.name,
            "failure": each.failure,
            "tools": [
                {
                    "tool": tool.definition.name,
                    "name": tool.name,
                    "status": tool.status,
                    "effect": tool.effect,
                    "why": tool.why,
                    "description": tool.definition.description,
                    "schema": tool.definition.schema,
                    "digest": tool.definition.digest,
                }
                for tool in each.tools
            ],
        }
        for each in found
    ]
    return {"servers": list(servers)}
