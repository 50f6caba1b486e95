"""Our runs as MCP tools (RUN-1, RUN-8): in this process by the SDK's client, and as a command by our own."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client, types

from testkit.scripted_model import called as native
from testkit.scripted_model import scripted, text
from tests.contract.runs_scene import Hangs, Model, World, call
from tests.mcp.scene import Person
from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.mcp.connection import open_actions
from toolspeak.agent.runs.memory import MemoryRuns
from toolspeak.agent.tools.action import CallContext
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.cli.mcp.server import RunPolicy, server_of
from toolspeak.config.shape import Approval, McpServer
from toolspeak.ir.message import Call, part_text

SOURCES = Path(__file__).resolve().parents[2] / "src"


def words(result: types.CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


async def begun(runs: MemoryRuns) -> str:
    """Wait until the one run is at its model."""
    for _ in range(500):
        for line in await runs.list():
            if line.model == "tiny":
                return line.id
        await asyncio.sleep(0.01)
    raise AssertionError("no run has begun")


def test_a_run_is_worked_to_its_end_with_progress_run1_run8(tmp_path: Path) -> None:
    seen: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        seen.append(message or "")

    async def use() -> types.CallToolResult:
        runs = MemoryRuns(World(Model(call("look"), "Found it.")).prepare)
        async with Client(server_of(runs, RunPolicy(tmp_path))) as client:
            return await client.call_tool("run_agent", {"task": "Look."}, progress_callback=note)

    result = asyncio.run(use())
    assert not result.is_error
    assert words(result).startswith("Found it.\n\n[run ")
    assert words(result).endswith(": done]")
    assert [each.split(": ")[1] for each in seen] == ["round 1", "look", "round 2"]


def test_a_call_that_needs_a_person_s_word_is_refused_run5(tmp_path: Path) -> None:
    world = World(Model(call("write"), "I may not."))

    async def use() -> types.CallToolResult:
        async with Client(server_of(MemoryRuns(world.prepare), RunPolicy(tmp_path, Approval.ASK))) as client:
            return await client.call_tool("run_agent", {"task": "Write."})

    assert words(asyncio.run(use())).startswith("I may not.")
    assert world.done == []


@pytest.mark.parametrize("folder", ["..", "/etc", "nowhere", "link"])
def test_folders_elsewhere_are_refused_run5(tmp_path: Path, folder: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("/etc")
    world = World(Model())

    async def use() -> types.CallToolResult:
        async with Client(server_of(MemoryRuns(world.prepare), RunPolicy(root))) as client:
            return await client.call_tool("run_agent", {"task": "Look.", "folder": folder})

    result = asyncio.run(use())
    assert result.is_error
    assert "is not a folder below" in words(result)
    assert world.model.requests == []


def test_a_run_can_be_looked_at_and_stopped_by_another_call_run8(tmp_path: Path) -> None:
    async def use() -> tuple[str, str, types.CallToolResult]:
        runs = MemoryRuns(World(Model(Hangs())).prepare)
        async with Client(server_of(runs, RunPolicy(tmp_path))) as client, asyncio.TaskGroup() as group:
            running = group.create_task(client.call_tool("run_agent", {"task": "Look."}))
            id = await begun(runs)
            status = words(await client.call_tool("run_status", {"id": id}))
            stopped = words(await client.call_tool("run_cancel", {"id": id}))
            return status, stopped, await running

    status, stopped, result = asyncio.run(use())
    assert ": running" in status
    assert ": cancelled" in stopped
    assert result.is_error
    assert "cancelled" in words(result)


def test_who_leaves_stops_its_run_run1(tmp_path: Path) -> None:
    async def use() -> str:
        runs = MemoryRuns(World(Model(Hangs())).prepare)
        async with Client(server_of(runs, RunPolicy(tmp_path))) as client:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(client.call_tool("run_agent", {"task": "Look."}))
                id = await begun(runs)
                running.cancel()
            await asyncio.sleep(0.1)
            return (await runs.show(id)).line.status

    assert asyncio.run(use()) == "cancelled"


def test_an_unknown_run_is_an_error_that_can_be_read(tmp_path: Path) -> None:
    async def use() -> list[types.CallToolResult]:
        async with Client(server_of(MemoryRuns(World(Model()).prepare), RunPolicy(tmp_path))) as client:
            return [await client.call_tool(name, {"id": "nobody"}) for name in ("run_status", "run_cancel")]

    for result in asyncio.run(use()):
        assert result.is_error
        assert words(result).endswith("no run has the id 'nobody'")


def test_the_command_serves_a_run_to_our_own_client_run1_run4(tmp_path: Path) -> None:
    """A model over HTTP, `toolspeak mcp serve` before it, and a run of ours that uses it as a tool."""
    (tmp_path / "note.txt").write_text("remember the milk")

    async def use(url: str) -> str:
        args = ("-m", "toolspeak", "mcp", "serve", "--upstream", url, "--tools", "files", "--root", str(tmp_path))
        env = (("PATH", os.environ["PATH"]), ("HOME", str(tmp_path)), ("PYTHONPATH", os.pathsep.join(sys.path)))
        server = McpServer("agent", sys.executable, args, env, network=True, folders=(str(tmp_path),))
        server = replace(server, read=(str(SOURCES),))
        async with open_actions(server, ApprovalStore(tmp_path / "state", Person().ask)) as actions:
            box = Toolbox(actions)
            assert [tool.name for tool in box.tools] == ["agent__run_agent", "agent__run_status", "agent__run_cancel"]
            result = await box.run(Call("c", "agent__run_agent", '{"task": "What is in the note?"}'), CallContext())
        assert not result.is_error
        return "\n".join(part_text(piece) for piece in result.content)

    with scripted() as upstream:
        upstream.answers += [native(("read_file", '{"path": "note.txt"}')), text("The milk.")]
        said = asyncio.run(use(upstream.url))
    assert said.startswith("The milk.")
    assert "remember the milk" in str(upstream.bodies[-1])
