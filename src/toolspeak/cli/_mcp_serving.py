"""Runs as MCP tools, on standard input and output: `run_agent`, `run_status`, `run_cancel`."""

import asyncio
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from toolspeak.config.shape import Config
from toolspeak.engine.agent import Status
from toolspeak.errors import BadField, ToolspeakError
from toolspeak.ir.message import Text
from toolspeak.runs.opened import opened_runs
from toolspeak.runs.runs import Runs, View
from toolspeak.runs.spec import Spec
from toolspeak.runs.watch import CallAsked, CallBegan, RunEnded, RunEvent, TurnBegan
from toolspeak.runtime.tools.approval import Approval

TOOLS: Final = Spec("").tools
_WELL: Final = (Status.DONE, Status.SUMMED_UP)
_NOBODY: Final = "nobody can be asked over MCP"
_ABOUT: Final = "run_agent works on a task with its own model and tools until it is done, and returns what came of it."


@dataclass(frozen=True, slots=True)
class House:
    """What runs may do that others begin: folders below `root`, calls as `approval` says, these tools."""

    root: Path
    approval: Approval = Approval.AUTO
    tools: tuple[str, ...] = TOOLS

    def spec(self, task: str, folder: str, model: str) -> Spec:
        """Return what a run is to do; raises `BadField` for a folder elsewhere."""
        wanted = (self.root / folder).resolve()
        if not wanted.is_relative_to(self.root) or not wanted.is_dir():
            raise BadField("folder", f"{folder!r} is not a folder below {self.root}")
        return Spec(task, model, tools=self.tools, folder=str(wanted), approval=self.approval)


def run(config: Config, house: House) -> None:
    """Serve until standard input ends."""
    asyncio.run(_serve(config, house))


async def _serve(config: Config, house: House) -> None:
    async with opened_runs(config) as opened:
        await server_of(opened.runs, house).run_stdio_async()


def server_of(runs: Runs, house: House) -> MCPServer:
    """Make the server of these runs."""
    server: MCPServer = MCPServer("toolspeak", instructions=_ABOUT, version=version("toolspeak"), log_level="ERROR")
    desk = Desk(runs, house)
    server.add_tool(desk.run_agent)
    server.add_tool(desk.run_status)
    server.add_tool(desk.run_cancel)
    return server


class Desk:
    """The tools. What is wrong comes back as an error that the caller's model can read."""

    def __init__(self, runs: Runs, house: House) -> None:
        """Serve these runs."""
        self._runs: Final = runs
        self._house: Final = house

    async def run_agent(self, task: str, ctx: Context, folder: str = "", model: str = "") -> str:
        """Work on a task to its end, in a folder below the root, and return what came of it."""
        try:
            id = await self._runs.start(self._house.spec(task, folder, model))
        except ToolspeakError as error:
            raise ToolError(str(error)) from None
        try:
            ended = await self._followed(id, ctx)
        except asyncio.CancelledError:
            await self._runs.cancel(id)
            raise
        said = f"{ended.text}\n\n[run {id}: {ended.status}{ended.reason and ', '}{ended.reason}]"
        if ended.status not in _WELL:
            raise ToolError(said.strip())
        return said

    async def run_status(self, id: str) -> str:
        """Say how a run stands: its status, its rounds, its text so far."""
        try:
            return _told(await self._runs.show(id))
        except ToolspeakError as error:
            raise ToolError(str(error)) from None

    async def run_cancel(self, id: str) -> str:
        """Stop a run; what it has done stays done."""
        try:
            await self._runs.cancel(id)
            return _told(await self._runs.show(id))
        except ToolspeakError as error:
            raise ToolError(str(error)) from None

    async def _followed(self, id: str, ctx: Context) -> RunEnded:
        """Follow a run to its end, say how far it is, and refuse what a person would have to allow."""
        async for each in self._runs.events(id):
            event = each.event
            if isinstance(event, RunEnded):
                return event
            if isinstance(event, CallAsked):
                await self._runs.approve(id, event.id, allowed=False, reason=_NOBODY)
            if message := _progress(id, event):
                await ctx.report_progress(each.number, message=message)
        raise ToolError(f"run {id} has no end")


def _progress(id: str, event: RunEvent) -> str:
    match event:
        case TurnBegan(round=round):
            return f"run {id}: round {round + 1}"
        case CallBegan(name=name):
            return f"run {id}: {name}"
        case _:
            return ""


def _told(view: View) -> str:
    line = view.line
    text = "".join(part.text for part in view.kept.message.parts if isinstance(part, Text))
    calls = [call.name for each in view.kept.rounds for call in each.calls]
    told = [f"run {line.id}: {line.status}{view.reason and ', '}{view.reason}", f"rounds: {line.rounds}"]
    told += [f"calls: {', '.join(calls)}"] if calls else []
    return "\n".join([*told, text] if text else told)
