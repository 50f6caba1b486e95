"""docs/coming-from.md: what it names of ours exists, and words of other tools that people type name their successor."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import toolspeak
from toolspeak.cli import toolspeak as command_line
from toolspeak.config import load
from toolspeak.config.environment import RENAMED
from toolspeak.config.options import PREFIX, flag, overrides, settings_by_path, variable
from toolspeak.errors import BadConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
ROWS = [row.split(" | ", 1) for row in re.findall(r"^\| (.+) \|$", PAGE, re.MULTILINE)]
OURS = [ours for _, ours in ROWS if set(ours) - {"-", " ", "|"} and ours != "toolspeak"]
NAMED = sorted({name for ours in OURS for name in re.findall(r"`([^`]+)`", ours)})
VARIABLES = {variable(name) for name, target in overrides().items() if target.has_variable} | {
    f"{PREFIX}FORCE_EMULATION",
    f"{PREFIX}CONFIG",
}
SECTIONS = {f"[{path.partition('.')[0]}]" for path in settings_by_path()} | {"[models.NAME]", "[[keys]]"}
VALUES = {value for each in settings_by_path().values() for value in each.choices} | {"true", "false", "provider:model"}
ROUTES = {"/api/chat", "/api/tags", "/api/show"}


def is_command(words: str) -> bool:
    """Return whether these are a command of ours, and options that it has."""
    command: click.Command = command_line
    for word in words.split()[1:]:
        if word.startswith("--"):
            if word not in {option for each in command.params for option in each.opts}:
                return False
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return False
            command = found
    return True


def exists(name: str) -> bool:
    if name.startswith("toolspeak "):
        return is_command(name)
    if name.startswith(PREFIX):
        return name.partition("=")[0] in VARIABLES
    if name.startswith("x-toolspeak-"):
        return name.encode() in b" ".join(file.read_bytes() for file in (ROOT / "src/toolspeak/gateway").glob("*.py"))
    public, _, inner = re.sub(r"\(.*\)", "", name).partition(".")
    if public == "answer":
        return inner in toolspeak.Answer.__annotations__ or hasattr(toolspeak.Answer, inner)
    if public in toolspeak.__all__:
        return not inner or hasattr(getattr(toolspeak, public), inner)
    flags = {flag(option) for option in overrides()}
    return name in settings_by_path() or name in SECTIONS or name in VALUES or name in ROUTES or name in flags


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_of_ours_exists(name: str) -> None:
    assert exists(name)


def test_the_check_can_fail() -> None:
    assert len(NAMED) > 40
    for name in ("tools.modus", "toolspeak serve --never", "toolspeak walk", "TOOLSPEAK_NEVER=1", "Client.walk"):
        assert not exists(name)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"TOOLSPEAK_MODE": "manual"}, "here it is 'auto'; whether a run asks before it acts"),
        ({"TOOLSPEAK_MODE": "ToolsEmulationForce"}, "here it is 'force'"),
        ({"TOOLSPEAK_MODE": "smart_approve"}, "toolspeak run --approval ask"),
        ({"TOOLSPEAK_MODE": "fallbak"}, "did you mean 'fallback'?"),
    ],
)
def test_a_word_of_another_tool_names_its_successor(environ: dict[str, str], message: str) -> None:
    with pytest.raises(BadConfig) as raised:
        load(None, environ)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[capabilities]\nollama = "ToolCallingOpenAI"', "here it is 'openai'"),
        ('[runs]\napproval = "manual"', "here it is 'ask'"),
        ('[tools]\ntools_emulation_mode = "force"', "did you mean 'mode'?"),
    ],
)
def test_a_setting_of_another_tool_names_its_successor(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "toolspeak.toml"
    file.write_text(text)
    with pytest.raises(BadConfig) as raised:
        load(file, {})
    assert message in str(raised.value)
    assert "--approval" not in str(raised.value)


@pytest.mark.parametrize("old", RENAMED)
def test_a_variable_of_another_tool_is_a_warning_with_ours(old: str) -> None:
    assert load(None, {old: "true"}).warnings == (
        f"{old} has no effect: set {PREFIX}{RENAMED[old]} (see docs/coming-from.md)",
    )
    assert PREFIX + RENAMED[old] in VARIABLES
    assert load(None, {"GOOSE_MODE": "chat", old: " "}).warnings == ()


def test_the_command_line_prints_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TOOLSPEAK_MODE", "manual")
    found: Any = CliRunner().invoke(command_line, ["models", "--upstream", "http://127.0.0.1:1/v1"])
    assert "TOOLSPEAK_MODE: 'manual' is not one of off, fallback, force, auto; here it is 'auto'" in str(
        found.exception
    )
