"""Servers that lie, flood and inject (RUN-4): nothing of it stops us, and nothing is believed that nobody approved."""

import asyncio
import logging
import time
from pathlib import Path

import pytest

from testkit.loopback import Got, Loopback, Out
from tests.mcp.scene import Person, called, odd, offered, said, toolbox, within, work_on
from toolspeak.agent.mcp.approval_store import ApprovalState, ApprovalStore
from toolspeak.agent.mcp.connection import open_actions
from toolspeak.agent.tools.action import ToolEffect
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import McpServer
from toolspeak.errors import McpFailed
from toolspeak.ir.message import Result
from toolspeak.testing import called as call
from toolspeak.text.strict import parse

ECHO = '{"text": "hi"}'


# ---------------------------------------------------------------- schemas


def test_a_pattern_that_backtracks_costs_nothing_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> tuple[Result, float]:
        began = time.perf_counter()
        return await called(box, "word"), time.perf_counter() - began

    result, seconds = within(odd("backtracks"), tmp_path, use)
    assert seconds < 20, "with backtracking it would be years"
    assert result.is_error
    assert "is not what it declares" in said(result)
    assert "a" * 30 in said(result)


def test_a_remote_reference_is_never_fetched_run4(tmp_path: Path) -> None:
    fetched: list[str] = []

    async def note(got: Got, out: Out) -> None:
        fetched.append(got.target)
        await out.whole(200, b'{"type": "integer"}')

    async def used() -> Result:
        async with Loopback(note) as host, toolbox(odd("remote", "", f"{host.url}/n.json"), tmp_path) as box:
            return await called(box, "remote")

    result = asyncio.run(used())
    assert fetched == []
    assert "many" in said(result)


def test_a_result_that_is_not_what_was_declared_is_an_error_that_shows_it_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> tuple[Result, Result]:
        return await called(box, "number"), await called(box, "none")

    number, none = within(odd("lies"), tmp_path, use)
    assert number.is_error
    assert '"many"' in said(number)
    assert "integer" in said(number)
    assert none.is_error
    assert "there is no structured content" in said(none)
    assert "I declare a number." in said(none)


def test_schemas_over_the_budget_are_left_out_run4(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    actions = offered(odd("huge"), tmp_path)
    assert [action.name for action in actions] == ["odd__echo"]
    assert "'huge'" in caplog.text
    assert "'deep'" in caplog.text


def test_an_output_schema_over_the_budget_is_not_checked_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> Result:
        return await called(box, "echo", ECHO)

    result = within(odd("long"), tmp_path, use)
    assert (said(result), result.is_error) == ("hi", False)


# ---------------------------------------------------------------- floods


def test_a_thousand_tools_are_cut_with_a_warning_run4(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    actions = offered(odd("thousand"), tmp_path)
    assert len(actions) == 128
    assert "more than 128 tools" in caplog.text
    wanted = offered(odd("thousand", tools=("tool_900",)), tmp_path)
    assert [action.name for action in wanted] == ["odd__tool_900"]


def test_pages_without_an_end_end_run4(tmp_path: Path) -> None:
    assert [action.name for action in offered(odd("pages"), tmp_path)] == ["odd__echo"]


def test_a_result_of_100_mb_ends_the_server_and_not_us_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> tuple[Result, float, Result]:
        began = time.perf_counter()
        large = await called(box, "large", '{"bytes": 100000000}')
        return large, time.perf_counter() - began, await called(box, "echo", ECHO)

    large, seconds, after = within(odd("plain"), tmp_path, use)
    assert large.is_error
    assert "a line of over 8 MiB" in said(large), "as the page about MCP says"
    assert seconds < 20
    assert said(after) == "hi"


def test_a_result_under_the_limit_is_cut_run4(tmp_path: Path) -> None:
    async def use(box: Toolbox) -> Result:
        return await called(box, "large", '{"bytes": 5000000}')

    result = within(odd("plain"), tmp_path, use)
    assert not result.is_error
    assert len(said(result)) < 5000
    assert "bytes left out" in said(result)


# ---------------------------------------------------------------- words


def test_what_nobody_sees_is_taken_out_of_descriptions_run4(tmp_path: Path) -> None:
    (action,) = offered(odd("injected"), tmp_path)
    shown = action.tool.description + str(action.tool.parameters)
    assert "Adds numbers." in shown
    assert not [char for char in shown if not char.isprintable()]


def test_injected_instructions_reach_no_model_that_nobody_approved_run4(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert offered(odd("injected"), tmp_path, word=False) == ()
    assert "nobody has approved it" in caplog.text
    assert "IMPORTANT" not in caplog.text


def test_names_and_values_with_hidden_characters_are_left_out_run4(tmp_path: Path) -> None:
    assert [action.name for action in offered(odd("hidden"), tmp_path)] == ["odd__echo"]


def test_names_fit_every_upstream_and_are_never_two_run4(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = [action.name for action in offered(odd("names"), tmp_path)]
    assert names[0] == "odd__a_b"
    assert len(names) == 2
    assert len(names[1]) == 64
    assert "is called odd__a_b already" in caplog.text


def test_a_server_s_word_that_it_only_reads_counts_only_if_it_is_trusted_run5(tmp_path: Path) -> None:
    assert [each.effect for each in offered(odd("claims"), tmp_path)] == [ToolEffect.ONCE]
    assert [each.effect for each in offered(odd("claims", trust=True), tmp_path)] == [ToolEffect.READS]
    assert [each.effect for each in offered(odd("claims", reads=("wipe",)), tmp_path)] == [ToolEffect.READS]
    assert not any(each.contained for each in offered(odd("claims", trust=True), tmp_path))


# ---------------------------------------------------------------- rug pulls


def test_a_changed_definition_is_asked_about_and_left_out_without_a_word_run4(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = odd("changes", str(tmp_path / "notes"))
    first, second, third = Person(), Person(word=False), Person()

    async def names(person: Person) -> list[str]:
        async with open_actions(server, ApprovalStore(tmp_path, person.ask)) as actions:
            return [action.name for action in actions]

    assert asyncio.run(names(first)) == ["odd__echo", "odd__die"]
    assert first.asked == [("echo", ApprovalState.NEW), ("die", ApprovalState.NEW)]
    assert asyncio.run(names(second)) == ["odd__die"]
    assert second.asked == [("echo", ApprovalState.CHANGED)]
    assert "nobody has approved it as it is now" in caplog.text
    assert asyncio.run(names(third)) == ["odd__echo", "odd__die"]
    assert asyncio.run(names(Person(word=False))) == ["odd__echo", "odd__die"]


def test_a_definition_that_changes_when_the_server_is_started_again_is_not_run_run4(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def use(box: Toolbox) -> tuple[Result, Result]:
        return await called(box, "die"), await called(box, "echo", ECHO)

    _, after = within(odd("changes", str(notes)), tmp_path, use)
    assert after.is_error
    assert "is not what was approved any more" in said(after)
    assert "call echo" not in notes.read_text()


def test_a_definition_that_changes_between_two_calls_is_not_run_run4(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def use(box: Toolbox) -> tuple[Result, Result]:
        first = await called(box, "echo", ECHO)
        await asyncio.sleep(0.3)  # the notification comes behind the result
        return first, await called(box, "echo", ECHO)

    first, second = within(odd("changes_now", str(notes)), tmp_path, use)
    assert said(first) == "hi"
    assert "is not what was approved any more" in said(second)
    assert notes.read_text().count("call echo") == 1


def test_what_was_approved_of_one_command_is_not_so_of_another_run4(tmp_path: Path) -> None:
    offered(odd("plain"), tmp_path)
    assert offered(odd("plain"), tmp_path, word=False)
    assert offered(odd("greets"), tmp_path, word=False) == ()


# ---------------------------------------------------------------- starting


def test_a_server_that_cannot_start_says_why_in_words_that_are_safe_to_show_run4(tmp_path: Path) -> None:
    with pytest.raises(McpFailed) as found:
        offered(odd("broken"), tmp_path)
    assert "odd: it ended; its last words:" in str(found.value)
    assert len(str(found.value)) < 500
    assert "\x1b" not in str(found.value)


def test_a_server_that_says_nothing_is_given_up_run4(tmp_path: Path) -> None:
    began = time.perf_counter()
    with pytest.raises(McpFailed, match=r"odd: it did not start in 0.5 seconds"):
        offered(odd("mute", seconds=0.5), tmp_path)
    assert time.perf_counter() - began < 6


def test_a_command_that_is_not_there_is_named_run4(tmp_path: Path) -> None:
    with pytest.raises(McpFailed, match="'/nowhere/at/all' is not found"):
        offered(McpServer("odd", "/nowhere/at/all"), tmp_path)


def test_lines_that_are_no_messages_are_skipped_run4(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert offered(odd("greets"), tmp_path)
    assert "Welcome" not in caplog.text


def test_the_environment_is_what_was_named_and_nothing_else_run5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_KEY", "canary-7f3a")

    async def use(box: Toolbox) -> Result:
        return await called(box, "env")

    assert "canary" not in said(within(odd("plain"), tmp_path, use))
    found = parse(said(within(odd("plain"), tmp_path, use)))
    assert isinstance(found, dict)
    basics = {"PATH", "HOME", "LANG", "TERM", "GIT_OPTIONAL_LOCKS", "npm_config_offline", "UV_OFFLINE"}
    assert found.keys() <= basics | {"PWD", "OLDPWD", "LC_CTYPE"}  # the shell and Python set these


# ---------------------------------------------------------------- a run


def test_a_run_goes_on_past_a_server_that_lies_run1_run4(tmp_path: Path) -> None:
    async def used() -> tuple[str, list[bool]]:
        async with toolbox(odd("lies"), tmp_path) as box:
            ending, _ = await work_on(box, [call("odd__number"), "It lied."])
            return ending.text, [result.is_error for each in ending.kept.rounds for result in each.results]

    assert asyncio.run(used()) == ("It lied.", [True])


def test_the_loop_is_never_blocked_run4(tmp_path: Path) -> None:
    """While all of it happens, a watcher in the same loop ticks."""

    async def used() -> float:
        slowest = 0.0

        async def watch() -> None:
            nonlocal slowest
            while True:
                began = time.perf_counter()
                await asyncio.sleep(0.01)
                slowest = max(slowest, time.perf_counter() - began)

        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(watch())
            async with toolbox(odd("plain"), tmp_path) as box:
                await called(box, "large", '{"bytes": 100000000}')
                await called(box, "large", '{"bytes": 7000000}')
            watcher.cancel()
        return slowest

    assert asyncio.run(used()) < 2.0
