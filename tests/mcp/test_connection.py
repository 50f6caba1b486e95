"""Servers that die (RUN-4): between calls, during a call, at once again; and what their results become."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import types

from tests.mcp.scene import called, odd, said, server_pids, toolbox, within, work_on
from tests.unit.runtime.scene import Paced
from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.mcp.connection import ServerConnection
from toolspeak.agent.mcp.definition import Definition
from toolspeak.agent.mcp.session import tool_output
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.errors import McpFailed
from toolspeak.ir.message import Image, Result, Text
from toolspeak.testing import called as call

ECHO = '{"text": "hi"}'


async def pid_of(box: Toolbox) -> int:
    """Return the process of the server, as this machine sees it; the server itself sees another number."""
    await called(box, "pid")
    return server_pids()[-1]


def test_a_server_killed_between_two_calls_is_started_again_run4(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def use(box: Toolbox) -> tuple[int, int]:
        first = await pid_of(box)
        os.kill(first, signal.SIGKILL)
        await asyncio.sleep(0.2)
        return first, await pid_of(box)

    first, second = within(odd("plain", str(notes)), tmp_path, use)
    assert first != second
    assert notes.read_text().count("started") == 2


def test_a_call_in_flight_when_the_server_dies_is_an_error_and_not_sent_again_run3(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def use(box: Toolbox) -> tuple[Result, Result]:
        async with asyncio.TaskGroup() as group:
            pid = await pid_of(box)
            sleeping = group.create_task(called(box, "sleep"))
            await asyncio.sleep(0.3)
            os.kill(pid, signal.SIGKILL)
        return sleeping.result(), await called(box, "echo", ECHO)

    lost, after = within(odd("plain", str(notes)), tmp_path, use)
    assert lost.is_error
    assert "died while the call ran" in said(lost)
    assert "may have done its work or not" in said(lost)
    assert notes.read_text().count("call sleep") == 1
    assert said(after) == "hi"


def test_a_run_goes_on_past_the_death_of_a_server_run1_run4(tmp_path: Path) -> None:
    script = [call("odd__die"), call("odd__echo", ECHO, "call_2"), "It came back."]

    async def used() -> list[tuple[str, bool]]:
        async with toolbox(odd("plain"), tmp_path) as box:
            ending, _ = await work_on(box, script)
            assert ending.text == "It came back."
            return [(said(result), result.is_error) for each in ending.kept.rounds for result in each.results]

    (died, was_error), echoed = asyncio.run(used())
    assert was_error
    assert "died" in died
    assert echoed == ("hi", False)


def test_a_server_that_always_dies_is_waited_for_longer_each_time_run4(tmp_path: Path) -> None:
    clock = Paced()

    async def used() -> None:
        line = ServerConnection(odd("plain", str(tmp_path / "notes")), clock=clock)
        await line.start()
        digest = line.definitions["die"].digest
        for _ in range(3):
            assert (await line.call("die", digest, {})).is_error
        await line.close()

    asyncio.run(used())
    assert clock.pauses == [0.2, 0.4]


def test_a_server_that_does_not_come_back_is_an_error_of_the_call_run4(tmp_path: Path) -> None:
    async def used() -> Result:
        gone = tmp_path / "server.py"
        gone.write_bytes((Path(__file__).parent / "odd_server.py").read_bytes())
        server = odd("plain")
        moved = replace(server, args=("-I", str(gone), "plain"))
        async with toolbox(moved, tmp_path) as box:
            await called(box, "die")
            gone.unlink()
            return await called(box, "echo", ECHO)

    result = asyncio.run(used())
    assert result.is_error
    assert "McpFailed: odd: it ended" in said(result)


def test_calls_at_once_start_a_dead_server_once_run4(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def use(box: Toolbox) -> list[str]:
        await called(box, "die")
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(called(box, "echo", f'{{"text": "{n}"}}')) for n in range(10)]
        return [said(each.result()) for each in calls]

    assert within(odd("plain", str(notes)), tmp_path, use) == [str(n) for n in range(10)]
    assert notes.read_text().count("started") == 2


def test_a_call_that_takes_too_long_is_given_up_and_the_server_stays_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> tuple[Result, Result]:
        slow = await called(box, "sleep", '{"seconds": 3}')
        await asyncio.sleep(1.2)
        return slow, await called(box, "echo", ECHO)

    slow, after = within(odd("plain", seconds=2.0), tmp_path, use)
    assert "gave no answer within 2 seconds" in said(slow)
    assert said(after) == "hi"


def test_nothing_of_a_server_is_left_when_it_is_closed_run4(tmp_path: Path) -> None:
    pid = within(odd("plain"), tmp_path, pid_of)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_heard_us_late_is_asked_again_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> str:
        return said(await called(box, "echo", ECHO))

    assert within(odd("late"), tmp_path, use) == "late"


def test_a_line_that_is_closed_runs_nothing_run4(tmp_path: Path) -> None:
    del tmp_path

    async def used() -> None:
        line = ServerConnection(odd("broken"))
        with pytest.raises(McpFailed):
            await line.start()
        with pytest.raises(McpFailed):
            await line.call("echo", "", {})

    asyncio.run(used())


# ---------------------------------------------------------------- results


def test_blocks_become_text_and_images_and_nothing_is_fetched_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> Result:
        return await called(box, "blocks")

    result = within(odd("plain"), tmp_path, use)
    assert [each for each in result.content if isinstance(each, Image)] == [Image("image/png", "aGk=")]
    assert said(result).splitlines()[:-1] == [
        "one",
        "[image/svg+xml of 3 bytes left out]",
        "[image/png of 8 bytes left out]",
        "[audio/wav of 3 bytes left out]",
        "[link: http://127.0.0.1:1/never, not fetched]",
        "[file:///a.txt]",
        "inside",
        "[file:///b.bin: not text, left out]",
    ]


def test_what_is_structured_is_shown_where_there_is_no_text_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> Result:
        return await called(box, "structured")

    assert said(within(odd("plain"), tmp_path, use)) == '{"degrees":3}'


def test_a_result_has_a_text_unless_it_is_images_run4() -> None:
    image = types.ImageContent(type="image", data="aGk=", mime_type="image/png")
    nothing = tool_output(types.CallToolResult(content=[]))
    assert [type(part) for part in nothing.content] == [Text]
    assert tool_output(types.CallToolResult(content=[image])).content == (Image("image/png", "aGk="),)


def test_an_error_stays_an_error_without_its_control_characters_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> Result:
        return await called(box, "fail")

    result = within(odd("plain"), tmp_path, use)
    assert (said(result), result.is_error) == ("it did not work[31m", True)


def test_approvals_are_kept_for_the_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mcp"
    within(odd("plain"), folder, pid_of)
    assert folder.stat().st_mode & 0o077 == 0
    assert [each.name for each in folder.iterdir()] == ["odd.json"]


def test_a_file_of_approvals_that_cannot_be_read_approves_nothing(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{")

    async def names() -> list[str]:
        async with toolbox(odd("plain"), tmp_path, word=False) as box:
            return [tool.name for tool in box.tools]

    assert asyncio.run(names()) == []


def test_without_a_folder_of_approvals_nothing_is_approved_wherever_toolspeak_runs_run4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, definition = odd("plain"), asyncio.run(first_definition())
    ApprovalStore(tmp_path).keep(server, [definition])
    monkeypatch.chdir(tmp_path)
    assert ApprovalStore(tmp_path).known(server, definition) == "approved"
    assert ApprovalStore(None).known(server, definition) == "new", "the file lies in the current folder"


async def first_definition() -> Definition:
    line = ServerConnection(odd("plain"))
    await line.start()
    await line.close()
    return next(iter(line.definitions.values()))
