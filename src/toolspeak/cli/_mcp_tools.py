"""How the tools of MCP servers stand: asked for now, compared with what was approved."""

import asyncio
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from toolspeak.cli.json_output import safe_json
from toolspeak.cli.terminal import Paint, counted, cut, visible
from toolspeak.config.mcp import sdk_needed, server_named
from toolspeak.config.shape import Config
from toolspeak.errors import BadSchema, McpFailed
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.tools.mcp.approved import Approved, Known
from toolspeak.runtime.tools.mcp.definition import Definition, effect_of, tool_of
from toolspeak.runtime.tools.mcp.server import McpServer

LEFT_OUT = "left out"
_COLORS = {Known.APPROVED: "green", Known.NEW: "yellow", Known.CHANGED: "red", LEFT_OUT: "red"}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person said; no name is all servers."""

    name: str = ""
    approve: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One tool. `name` is what a model would call; without it `why` says why there is none."""

    definition: Definition
    known: Known
    name: str = ""
    effect: str = ""
    why: str = ""

    @property
    def stands(self) -> str:
        """Say how it stands."""
        return self.known if self.name else LEFT_OUT


@dataclass(frozen=True, slots=True)
class Looked:
    """A server and its tools, or why it has none."""

    server: McpServer
    tools: tuple[Seen, ...] = ()
    failure: str = ""


def show(config: Config, wishes: Wishes, paint: Paint) -> int:
    """Show the tools, and approve them if that is wished; return the status."""
    sdk_needed()
    servers = [server_named(config.mcp, wishes.name)] if wishes.name else config.mcp
    approved = Approved(config.approvals)
    looked = asyncio.run(_look_at_all(servers, approved))
    if wishes.as_json:
        click.echo(safe_json(_as_object(looked)))
    else:
        for each in looked:
            for line in _lines(each, paint, whole=wishes.approve):
                click.echo(line)
        if not servers:
            click.echo("There are no servers: add [mcp.NAME] with a command or a url to the configuration.")
    for each in looked if wishes.approve else ():
        _approve(approved, each)
    return int(any(each.failure for each in looked))


def _approve(approved: Approved, looked: Looked) -> None:
    """Keep what was shown, not what the server would say now."""
    fresh = [seen.definition for seen in looked.tools if seen.name and seen.known is not Known.APPROVED]
    if not fresh:
        click.echo("There is nothing to approve.", err=True)
        return
    if sys.stdin.isatty() and not click.confirm(f"Approve {counted(len(fresh), 'tool')}?", err=True):
        raise click.Abort
    approved.keep(looked.server, fresh)
    click.echo(f"Approved {counted(len(fresh), 'tool')} of {looked.server.name}.", err=True)


async def _look_at_all(servers: Sequence[McpServer], approved: Approved) -> list[Looked]:
    return [await _look(server, approved) for server in servers]


async def _look(server: McpServer, approved: Approved) -> Looked:
    from toolspeak.runtime.tools.mcp.line import Line  # noqa: PLC0415 # the SDK, an extra

    line = Line(server)
    try:
        await line.start()
    except McpFailed as error:
        return Looked(server, failure=str(error))
    await line.close()
    return Looked(server, tuple(_seen(server, each, approved) for each in line.definitions.values()))


def _seen(server: McpServer, definition: Definition, approved: Approved) -> Seen:
    known = approved.known(server, definition)
    try:
        tool = tool_of(server, definition)
    except BadSchema as error:
        return Seen(definition, known, why=str(error))
    return Seen(definition, known, tool.name, effect_of(server, definition))


def _lines(looked: Looked, paint: Paint, *, whole: bool) -> Iterator[str]:
    server = looked.server
    place = server.url or shlex.join((server.command, *server.args))
    yield f"{paint.ink(server.name, bold=True)}  {paint.ink(visible(place), dim=True)}"
    if looked.failure:
        yield f"  {paint.ink(visible(looked.failure), 'red')}"
    width = max((len(seen.name) for seen in looked.tools), default=0)
    for seen in looked.tools:
        stands = paint.ink(f"{seen.stands:8}", _COLORS[seen.stands])
        yield f"  {stands}  {_of(seen, width, paint, whole=whole)}"


def _of(seen: Seen, width: int, paint: Paint, *, whole: bool) -> str:
    """Write a tool: in one line, or all that the model would be told of it where a person shall approve that."""
    if not seen.name:
        return f"{visible(seen.definition.name[: width or 40])!s}: {visible(seen.why)}"
    if whole and seen.known is not Known.APPROVED:
        told = visible(f"{seen.definition.description}\n{safe_json(seen.definition.schema)}")
        return f"{seen.name}  {seen.effect}\n      " + told.replace("\n", "\n      ")
    first = visible(" ".join(seen.definition.description.split()))
    line = f"{seen.name:{width}}  {seen.effect:7}  {first}"
    return cut(line, max(paint.width - 12, 20) if paint.width else 0)


def _as_object(looked: Sequence[Looked]) -> JsonObject:
    servers: list[JsonObject] = [
        {
            "server": each.server.name,
            "failure": each.failure,
            "tools": [
                {
                    "tool": seen.definition.name,
                    "name": seen.name,
                    "stands": seen.stands,
                    "effect": seen.effect,
                    "why": seen.why,
                    "description": seen.definition.description,
                    "schema": seen.definition.schema,
                    "digest": seen.definition.digest,
                }
                for seen in each.tools
            ],
        }
        for each in looked
    ]
    return {"servers": list(servers)}
