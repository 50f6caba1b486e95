"""What the tests of MCP servers share: our odd server, a person who says yes, calls, and a run by a script."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from toolspeak.agent.mcp.approval_store import ApprovalState, ApprovalStore
from toolspeak.agent.mcp.connection import open_actions
from toolspeak.agent.mcp.definition import Definition
from toolspeak.agent.runs.steps import Work, run_inline
from toolspeak.agent.sandbox.processes import tree
from toolspeak.agent.tools.action import Action, CallContext
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import Approval, McpServer
from toolspeak.engine.agent import Ending, Task
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.message import Call, Message, Result, Role, Text, part_text
from toolspeak.ir.request import Request
from toolspeak.runtime.directory import Route
from toolspeak.testing import AsyncScriptedUpstream, Scripted, ScriptedUpstream

ODD = Path(__file__).parent / "odd_server.py"
PATH = ("PATH", os.environ["PATH"])
T = TypeVar("T")


def odd(
    behaviour: str,
    *more: str,
    tools: tuple[str, ...] = (),
    trust: bool = False,
    reads: tuple[str, ...] = (),
    seconds: float = 30.0,
) -> McpServer:
    """Describe our odd server, confined as all are; where it notes what it did, it has that folder."""
    args = ("-I", str(ODD), behaviour, *more)
    server = McpServer("odd", sys.executable, args, (PATH,), tools=tools, trust=trust, reads=reads, seconds=seconds)
    return replace(server, folders=(str(Path(more[0]).parent),)) if more and more[0] else server


def server_pids() -> list[int]:
    """Return the processes of odd servers that run now, as this machine sees them; the server itself is the last."""
    return [pid for pid in tree(os.getpid())[1:] if ODD.name.encode() in command_line(pid)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@dataclass
class Person:
    """Says the same about every tool, and remembers what was asked."""

    word: bool = True
    asked: list[tuple[str, ApprovalState]] = field(default_factory=list[tuple[str, ApprovalState]])

    async def ask(self, server: McpServer, definition: Definition, known: ApprovalState) -> bool:
        del server
        self.asked.append((definition.name, known))
        return self.word


@asynccontextmanager
async def toolbox(server: McpServer, folder: Path, word: bool = True) -> AsyncGenerator[Toolbox]:
    async with open_actions(server, ApprovalStore(folder, Person(word).ask)) as actions:
        yield Toolbox(actions)


async def called(box: Toolbox, name: str, arguments: str = "{}") -> Result:
    return await box.run(Call("call_1", f"odd__{name}", arguments), CallContext("run", "run:0:0"))


def said(result: Result) -> str:
    return "\n".join(part_text(piece) for piece in result.content)


def within(server: McpServer, folder: Path, use: Callable[[Toolbox], Coroutine[Any, Any, T]]) -> T:
    """Use a server's tools, and close it."""

    async def used() -> T:
        async with toolbox(server, folder) as box:
            return await use(box)

    return asyncio.run(used())


def offered(server: McpServer, folder: Path, word: bool = True) -> tuple[Action, ...]:
    """Return the tools of a server that a run would get."""

    async def used() -> tuple[Action, ...]:
        async with open_actions(server, ApprovalStore(folder, Person(word).ask)) as actions:
            return tuple(actions)

    return asyncio.run(used())


async def work_on(box: Toolbox, script: Sequence[Scripted]) -> tuple[Ending, ScriptedUpstream]:
    """Let a model that says what a script says work with these tools."""
    model = ScriptedUpstream(*script)
    request = Request("m", (Message(Role.USER, (Text("Do it."),)),), box.tools)
    route = Route("scripted", AsyncScriptedUpstream(model), "m", ModelFacts(tools=Support.NATIVE))
    work = Work("run", Task(request), route, box, approval=Approval.OFF)
    return await run_inline(work), model
