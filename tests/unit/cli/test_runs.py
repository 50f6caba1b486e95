"""`toolspeak runs`: what is kept, shown with its rounds collapsed (RUN-2, RUN-8)."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.contract.runs_scene import Hangs, Model, World, call
from toolspeak.agent.runs import provider
from toolspeak.agent.runs.events import RunEnded, ToolCallAsked, Wrote
from toolspeak.agent.runs.memory import MemoryRuns
from toolspeak.agent.runs.provider import OpenRuns
from toolspeak.agent.runs.runs import RunSummary, RunView, Spec
from toolspeak.cli import main
from toolspeak.cli.run.history import find_run, list_lines, times_of, view_lines
from toolspeak.cli.terminal import Paint
from toolspeak.config.shape import Approval, Config
from toolspeak.engine.agent import Status
from toolspeak.engine.journal import compact_from
from toolspeak.errors import BadRequest, UnknownRun
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Text
from toolspeak.testing import failed

NASTY = "\x1b[2J"
DOWN = failed(FailureKind.OTHER, "the model is down", 400)
PLAIN = Paint()
NOWHERE = ("--upstream", "http://127.0.0.1:9/v1")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> MemoryRuns:
    """Keep two runs: one is done, one has failed. Both can be asked about from another loop."""
    world = World(Model(call("look", before="I look."), "A stone.", call("look"), DOWN, "Better."))
    runs = MemoryRuns(world.prepare)

    @asynccontextmanager
    async def opening(config: Config, *, works: bool = True) -> AsyncGenerator[OpenRuns]:
        del config, works
        yield OpenRuns(runs, lasts=True)

    async def fill() -> None:
        for id, task in (("abc123", "Look around."), ("abd456", f"Fail {NASTY}\nbadly.")):
            await runs.start(Spec(task), id)
            assert [each async for each in runs.events(id)]

    asyncio.run(fill())
    monkeypatch.setattr(
        "toolspeak.cli.run.session.open_user_runs", opening
    )  # loads it: first, or it would keep the other
    monkeypatch.setattr(provider, "open_user_runs", opening)
    return runs


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["runs", *args])
    return ended.value.code


@pytest.mark.usefixtures("kept")
def test_the_list_has_a_line_for_each_run8(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of() == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("abd456  failed     1 round    ")
    assert first.endswith("s ago     Fail \\x1b[2J badly.")
    assert second.startswith("abc123  done       1 round    ")
    assert status_of("--status", "done", "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["id"], run["status"], run["rounds"], run["task"]) == ("abc123", "done", 1, "Look around.")


@pytest.mark.usefixtures("kept")
def test_a_run_is_shown_with_its_rounds_collapsed_run8(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("show", "abc") == 0
    assert capsys.readouterr().out.splitlines()[:4] == ["Look around.", "I look.", "✓ look()  0.0 s", "A stone."]
    assert status_of("show", "abc", "--expand") == 0
    assert capsys.readouterr().out.splitlines()[2:5] == ["✓ look()  0.0 s", "    {}", "    look number 1"]
    assert status_of("show", "abc", "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == "A stone."


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("form", "roles"),
    [
        ("openai", ["user", "assistant", "assistant", "tool", "assistant"]),
        ("anthropic", ["user", "assistant", "assistant", "user", "assistant"]),
        ("gemini", ["user", "model", "model", "function", "model"]),
    ],
)
def test_a_run_is_written_out_as_a_vendor_has_it_run2(
    capsys: pytest.CaptureFixture[str], form: str, roles: list[str]
) -> None:
    assert status_of("show", "abc", "--as", form) == 0
    messages: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["messages"]
    assert [each["role"] for each in messages] == roles
    assert "Look around." in json.dumps(messages[0])
    assert "look number 1" in json.dumps(messages[3])


@pytest.mark.usefixtures("kept")
def test_what_failed_goes_on_run3(upstream_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what was not done is done: the failed turn."""
    assert status_of("resume", "abd", "--upstream", upstream_url) == 0
    captured = capsys.readouterr()
    assert captured.out == "Better.\n"
    assert "look" not in captured.err, "the round that was whole is not shown again"
    assert status_of("resume", "abc", "--upstream", upstream_url) == 2
    assert "run abc123 is done" in capsys.readouterr().err


@pytest.mark.usefixtures("kept")
def test_a_run_that_has_ended_is_not_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("cancel", "abc") == 0
    assert capsys.readouterr().err == "run abc123 has ended already (done); there is nothing to cancel\n"


@pytest.fixture
def upstream_url() -> str:
    return "http://127.0.0.1:9/v1"


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(("id", "problem"), [("ab", "2 runs start with 'ab'"), ("zzz", "no run has the id 'zzz'")])
def test_an_id_must_mean_one_run(capsys: pytest.CaptureFixture[str], id: str, problem: str) -> None:
    for command in ("show", "cancel"):
        assert status_of(command, id) == 2
        assert problem in capsys.readouterr().err


def test_a_run_that_goes_on_is_shown_as_it_stands_run8() -> None:
    async def test() -> None:
        runs = MemoryRuns(World(Model(call("look"), call("write"), Hangs())).prepare)
        id = await runs.start(Spec("Change it.", approval=Approval.ASK))
        async for each in runs.events(id):
            if isinstance(each.event, ToolCallAsked):
                break
        view = await runs.show(id)
        lines = list(view_lines(view, await times_of(runs, view), PLAIN, expand=False))
        assert lines[1:3] == ["✓ look()  0.0 s", "▸ write()"]
        assert "waits for your approval" in lines[3]
        await runs.approve(id, view.asked[0].id, allowed=True)
        async for later in runs.events(id):
            if isinstance(later.event, Wrote):
                break
        await runs.cancel(id)
        assert "cancelled while the model wrote" in list(view_lines(await runs.show(id), {}, PLAIN, expand=False))[-1]

    asyncio.run(test())


def test_ids_are_shown_as_long_as_they_must_be() -> None:
    ids = ("aaaaaaaaaa11", "aaaaaaaaaa22", "b")
    lines = [RunSummary(id, "x", Status.DONE, "m", 100.0) for id in ids]
    assert [line.split("  ")[0].strip() for line in list_lines(lines, 3_800.0, PLAIN)] == [
        "aaaaaaaaaa1",
        "aaaaaaaaaa2",
        "b",
    ]
    assert "1 h ago" in next(list_lines(lines, 3_800.0, PLAIN))


def test_a_whole_id_is_found_though_others_begin_so() -> None:
    async def test() -> None:
        runs = MemoryRuns(World(Model("One.", "Two.")).prepare)
        for id in ("ab", "abc"):
            await runs.start(Spec("x"), id)
            assert [each.event async for each in runs.events(id)][-1] == RunEnded(
                0, Status.DONE, f"{'One.' if id == 'ab' else 'Two.'}"
            )
        assert (await find_run(runs, "ab"), await find_run(runs, "abc")) == ("ab", "abc")
        with pytest.raises(BadRequest):
            await find_run(runs, "a")
        with pytest.raises(UnknownRun):
            await find_run(runs, "")

    asyncio.run(test())


def test_an_ended_run_is_continued_with_the_next_task_run18(
    kept: MemoryRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", *NOWHERE, "--continue", "abc", "--rounds", "7", "And now?"])
    assert (ended.value.code, capsys.readouterr().out) == (0, "Better.\n")

    async def latest() -> RunView:
        return await kept.show((await kept.list())[0].id)

    spec = asyncio.run(latest()).spec
    assert (spec.task, spec.continues, spec.rounds, spec.tools) == ("And now?", "abc123", 7, Spec("").tools)
    asked, answered = map(compact_from, spec.history)
    assert (asked.message.role.value, len(answered.rounds)) == ("user", 1)
    assert answered.message.parts[0] == Text("A stone.")


@pytest.mark.usefixtures("kept")
def test_an_unknown_run_is_not_continued_run18(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", *NOWHERE, "--continue", "zzz", "And now?"])
    assert ended.value.code == 2
    assert "no run has the id 'zzz'" in capsys.readouterr().err
