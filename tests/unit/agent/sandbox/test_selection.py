"""A sandbox is tried before it is used: one that does not hold is none (RUN-5)."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from toolspeak.agent.sandbox.process import Unconfined
from toolspeak.agent.sandbox.sandbox import Command, Ran, SandboxLimits
from toolspeak.agent.sandbox.selection import trial, try_sandboxes


class Pretends(Unconfined):
    """A sandbox that does what a test says with a command."""

    def __init__(self, act: Callable[[Command], Ran]) -> None:
        self._act = act

    @property
    @override
    def name(self) -> str:
        return "pretends"

    @override
    async def run(self, command: Command) -> Ran:
        return self._act(command)


def holds(command: Command) -> Ran:
    (command.folder / "made").write_text("made")
    return Ran(0, "inside\n")


def tells(command: Command) -> Ran:
    holds(command)
    return Ran(0, "inside\n" + (command.folder.parent / "secret").read_text())


def changes(command: Command) -> Ran:
    (command.folder.parent / "secret").write_text("changed")
    return holds(command)


def test_one_that_holds_is_taken_run5() -> None:
    assert asyncio.run(trial(Pretends(holds))) == ""


@pytest.mark.parametrize("act", [tells, changes])
def test_one_that_lets_a_file_out_is_not_run5(act: Callable[[Command], Ran]) -> None:
    assert asyncio.run(trial(Pretends(act))) == "a command got at a file outside its folder"


def test_one_that_runs_nothing_is_not_run5() -> None:
    assert asyncio.run(trial(Pretends(lambda _: Ran(1, "no")))) == "it does not run commands: no"
    assert "cannot write" in asyncio.run(trial(Pretends(lambda _: Ran(0, "inside"))))


def test_one_that_raises_is_not_run5() -> None:
    def fails(command: Command) -> Ran:
        raise OSError(f"no {command.seconds:g}")

    assert asyncio.run(trial(Pretends(fails))) == "OSError: no 15"


def test_no_sandbox_at_all_is_noticed_run5() -> None:
    assert asyncio.run(trial(Unconfined())) == "a command got at a file outside its folder"


def test_one_that_lets_a_command_call_us_is_noticed_run5() -> None:
    class Calls(Pretends):
        @override
        async def run(self, command: Command) -> Ran:
            port = re.search(r"127\.0\.0\.1/(\d+)", command.text)
            assert port
            _, writer = await asyncio.open_connection("127.0.0.1", int(port[1]))
            writer.write(b"hello")
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            await asyncio.sleep(0.05)
            return holds(command)

    assert asyncio.run(trial(Calls(holds))) == "a command got at a service on this machine"


def test_the_first_that_works_is_taken_and_all_are_told_run5() -> None:
    good, late = Pretends(holds), Pretends(holds)
    found = asyncio.run(try_sandboxes([("a", lambda: "not here"), ("b", lambda: good), ("c", lambda: late)]))
    assert found.sandbox is good
    assert [(each.name, each.problem) for each in found.tried] == [("a", "not here"), ("b", ""), ("c", "")]


def test_a_reason_is_no_sandbox_even_if_it_has_no_words_run5() -> None:
    good = Pretends(holds)
    assert asyncio.run(try_sandboxes([("a", lambda: ""), ("b", lambda: good)])).sandbox is good


def test_where_none_works_it_says_what_to_install_run5() -> None:
    found = asyncio.run(try_sandboxes([("a", lambda: "not here")]))
    assert found.sandbox is None
    assert "apt install bubblewrap" in found.refusal
    assert "a: not here" in found.refusal


def test_a_trial_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asyncio.run(trial(Pretends(holds)))
    assert list(tmp_path.iterdir()) == []


def test_an_unconfined_command_has_three_variables_and_none_of_ours_run5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ran = asyncio.run(Unconfined().run(Command("env", tmp_path, 30.0, SandboxLimits())))
    given = dict(line.split("=", 1) for line in ran.output.splitlines())
    shell = {"PWD", "OLDPWD", "SHLVL", "_", "HOME", "TMPDIR"}
    assert {name: value for name, value in given.items() if name not in shell} == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
