"""`shell`: confined or not at all, unless the configuration says otherwise (RUN-4, RUN-5)."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from toolspeak.agent.sandbox.selection import SandboxSearch, SandboxTrial
from toolspeak.agent.tools import shell
from toolspeak.agent.tools.action import CallContext, Ruling, ToolEffect, Workplace, rule_on
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import Approval
from toolspeak.ir.message import Call, Result, Text


def called(folder: Path, **arguments: object) -> Result:
    return called_in(Workplace(folder.resolve()), arguments)


def called_in(workplace: Workplace, arguments: dict[str, object]) -> Result:
    toolbox = Toolbox(shell.actions(workplace))
    return asyncio.run(toolbox.run(Call("1", "shell", json.dumps(arguments)), CallContext()))


def text(result: Result) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


def test_it_runs_a_command_and_tells_what_it_wrote_run4(tmp_path: Path) -> None:
    result = called(tmp_path, command="echo out; echo err >&2; touch made")
    assert (text(result), result.is_error) == ("out\nerr", False)
    assert (tmp_path / "made").exists()


def test_a_status_is_told_and_is_no_error_run4(tmp_path: Path) -> None:
    result = called(tmp_path, command="echo none; exit 4")
    assert (text(result), result.is_error) == ("none\n[exit status 4]", False)
    assert text(called(tmp_path, command=":")) == "(no output)"


def test_what_is_stopped_is_an_error_run4(tmp_path: Path) -> None:
    result = called(tmp_path, command="echo begun; sleep 60", seconds=1.5)
    assert (text(result), result.is_error) == ("begun\n[stopped: it ran for 1.5 seconds]", True)


WRONG: list[tuple[dict[str, object], str]] = [
    ({}, "command"),
    ({"command": " "}, "command"),
    ({"command": 1}, "command"),
    *(({"command": "ls", "seconds": wrong}, "seconds") for wrong in (0, -1, 601, True, "soon")),
]


@pytest.mark.parametrize(("arguments", "field"), WRONG)
def test_wrong_arguments_are_named_run4(arguments: dict[str, object], field: str, tmp_path: Path) -> None:
    result = called(tmp_path, **arguments)
    assert result.is_error
    assert field in text(result)


def test_without_a_sandbox_it_refuses_and_says_what_helps_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none() -> SandboxSearch:
        return SandboxSearch(None, (SandboxTrial("bwrap", "it is not installed"),))

    monkeypatch.setattr(shell, "find_sandbox", none)
    result = called(tmp_path, command="touch made")
    assert result.is_error
    assert text(result).startswith("The command was not run: no sandbox works here")
    assert "apt install bubblewrap" in text(result)
    assert not (tmp_path / "made").exists()


def test_unsafe_is_somebody_s_explicit_word_and_asked_about_run5(tmp_path: Path) -> None:
    safe, unsafe = (shell.actions(Workplace(tmp_path, unsafe=said))[0] for said in (False, True))
    assert not Workplace(tmp_path).unsafe
    assert (safe.effect, safe.contained, unsafe.contained) == (ToolEffect.ONCE, True, False)
    assert (rule_on(Approval.AUTO, safe), rule_on(Approval.AUTO, unsafe)) == (Ruling.YES, Ruling.ASK)
    outside = tmp_path / "outside"
    said = called_in(Workplace(tmp_path, unsafe=True), {"command": f"echo x > {outside}; cat {outside}"})
    assert text(said) == "x"


def test_git_says_why_it_cannot_commit_run14(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    said = called(tmp_path, command="echo a > a; git add a")
    assert ".git is read-only for commands" in text(said)
    assert "ask the person to commit" in text(said)


def test_what_the_host_would_obey_is_told_run14(tmp_path: Path) -> None:
    said = called(tmp_path, command="echo evil > .envrc")
    assert "Tell the person before they use the folder" in text(said)
    assert "'.envrc' is new" in text(said)


def test_a_new_repository_stops_the_command_run14(tmp_path: Path) -> None:
    said = called(tmp_path, command="mkdir sub; cd sub; git init; sleep 20")
    assert said.is_error
    assert "[stopped: it made or changed 'sub/.git'" in text(said)
    assert not (tmp_path / "sub/.git").exists()
