"""An MCP server on standard input and output that offers runs as tools: `run_agent`, `run_status`, `run_cancel`.

If the client disconnects or cancels during `run_agent`, the run is cancelled.
"""

import asyncio
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from toolspeak.agent.runs.events import RunEnded, RunEvent, ToolCallAsked, ToolCallBegan, TurnBegan
from toolspeak.agent.runs.provider import open_user_runs
from toolspeak.agent.runs.runs import Runs, RunView, Spec
from toolspeak.config.shape import Approval, Config
from toolspeak.engine.agent import Status
from toolspeak.errors import BadField, ToolspeakError
from toolspeak.ir.message import Text

TOOLS: Final = Spec("").tools
_SUCCESSFUL: Final = (Status.DONE, Status.SUMMED_UP)
_DENIED: Final = "this call needs the approval of a user, and there is none to ask over MCP"
_ABOUT: Final = "run_agent works on a task with its own model and tools until it is done, and returns the result."


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """Limits for runs that MCP clients start: folders below `root`, the approval mode, and the tools."""

    root: Path
    approval: Approval = Approval.AUTO
    tools: tuple[str, ...] = TOOLS

    def spec(self, task: str, folder: str, model: str) -> Spec:
        """Return the spec of a run. Raises `BadField` if the folder is not below the root."""
        # Resolved before the check: `..`, absolute paths and symbolic links would otherwise lead out of the root.
        wanted = (self.root / folder).resolve()
        if not wanted.is_relative_to(self.root) or not wanted.is_dir():
            raise BadField("folder", f"{folder!r} is not a folder below {self.root}; pass a folder relative to it")
        return Spec(task, model, tools=self.tools, folder=str(wanted), approval=self.approval)


def serve_runs(config: Config, policy: RunPolicy) -> None:
    """Serve until standard input ends."""
    asyncio.run(_serve(config, policy))


async def _serve(config: Config, policy: RunPolicy) -> None:
    async with open_user_runs(config) as opened:
        await server_of(opened.runs, policy).run_stdio_async()


def server_of(runs: Runs, policy: RunPolicy) -> MCPServer:
    """Build the server for these runs."""
    server: MCPServer = MCPServer("toolspeak", instructions=_ABOUT, version=version("toolspeak"), log_level="ERROR")
    tools = McpRunTools(runs, policy)
    server.add_tool(tools.run_agent)
    server.add_tool(tools.run_status)
    server.add_tool(tools.run_cancel)
    return server


class McpRunTools:
    """The tools of the server. Errors are returned as `ToolError`, which the model of the client can read."""

    def __init__(self, runs: Runs, policy: RunPolicy) -> None:
        """Serve these runs, within the limits of the policy."""
        self._runs: Final = runs
        self._policy: Final = policy

    async def run_agent(self, task: str, ctx: Context, folder: str = "", model: str = "") -> str:
        """Work on a task until it is done, in a folder below the root, and return the result."""
        try:
            id = await self._runs.start(self._policy.spec(task, folder, model))
        except ToolspeakError as error:
            raise ToolError(str(error)) from None
        try:
            ended = await self._followed(id, ctx)
        except asyncio.CancelledError:
            await self._runs.cancel(id)
            raise
        said = f"{ended.text}\n\n[run {id}: {ended.status}{ended.reason and ', '}{ended.reason}]"
        if ended.status not in _SUCCESSFUL:
            raise ToolError(said.strip())
        return said

    async def run_status(self, id: str) -> str:
        """Return the status of a run, its rounds and its text so far."""
        try:
            return _status_text(await self._runs.show(id))
        except ToolspeakError as error:
            raise ToolError(str(error)) from None

    async def run_cancel(self, id: str) -> str:
        """Cancel a run. Changes that it has made are kept."""
        try:
            await self._runs.cancel(id)
            return _status_text(await self._runs.show(id))
        except ToolspeakError as error:
            raise ToolError(str(error)) from None

    async def _followed(self, id: str, ctx: Context) -> RunEnded:
        """Follow a run to its end: report progress, and deny calls that need approval."""
        async for each in self._runs.events(id):
            event = each.event
            if isinstance(event, RunEnded):
                return event
            if isinstance(event, ToolCallAsked):  # denied at once: the run would wait forever for an approval
                await self._runs.approve(id, event.id, allowed=False, reason=_DENIED)
            if message := _progress(id, event):
                await ctx.report_progress(each.number, message=message)
        raise ToolError(f"the events of run {id} ended before the run did; call run_status for its state")


def _progress(id: str, event: RunEvent) -> str:
    match event:
        case TurnBegan(round=round):
            return f"run {id}: round {round + 1}"
        case ToolCallBegan(name=name):
            return f"run {id}: {name}"
        case _:
            return ""


def _status_text(view: RunView) -> str:
    line = view.line
    text = "".join(part.text for part in view.kept.message.parts if isinstance(part, Text))
    calls = [call.name for each in view.kept.rounds for call in each.calls]
    lines = [f"run {line.id}: {line.status}{view.reason and ', '}{view.reason}", f"rounds: {line.rounds}"]
    lines += [f"calls: {', '.join(calls)}"] if calls else []
    return "\n".join([*lines, text] if text else lines)
