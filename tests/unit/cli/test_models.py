"""`toolspeak models`: every upstream is asked, and every model tells what becomes of its tools (OBS-4)."""

import json
import socket
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from testkit.scripted_model import Refuses, Scripted
from testkit.terminal import terminal
from toolspeak.cli import main
from toolspeak.cli.models.catalogue import plan_text
from toolspeak.config import local
from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.settings import Settings, Strategy
from toolspeak.facts.model import Support

NOBODY = "http://127.0.0.1:9/v1"


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["models", *args])
    return ended.value.code


def rows(shown: str) -> list[str]:
    """Return the lines, with single spaces."""
    return [" ".join(line.split()) for line in shown.splitlines()]


def configured(tmp_path: Path, text: str) -> str:
    file = tmp_path / "test.toml"
    file.write_text(text)
    return str(file)


def test_models_are_listed_with_what_becomes_of_tools(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--upstream", upstream.url) == 0
    captured = capsys.readouterr()
    host = upstream.url.removeprefix("http://").removesuffix("/v1")
    assert rows(captured.out) == [
        "model tools what toolspeak does",
        "",
        f"{host} {upstream.url}",
        "* tiny unknown native, else emulated (fenced)",
        "large unknown native, else emulated (fenced)",
        "",
        "* is the default: it answers requests for models that no upstream has",
    ]
    assert captured.err == ""
    assert upstream.bodies == [], "a list asks no model"


def test_models_say_how_it_is_known(upstream: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.models = ["qwen3-coder:30b", "llama3.2:latest", "tiny"]
    text = f"[upstreams.box]\nurl = '{upstream.url}'\n[capabilities]\n'box:llama*' = 'none'"
    file = configured(tmp_path, text)
    assert status_of("--config", file, "--why") == 0
    assert rows(capsys.readouterr().out)[3:-2] == [
        "* qwen3-coder:30b unknown native, else emulated (qwen_xml)",
        "tools: unknown; toolspeak sends them, and learns from a refusal",
        "family qwen3-coder: its template asks for a tag for each parameter",
        "llama3.2:latest none emulated (pythonic)",
        "tools: set in your configuration",
        "family llama3.2: Meta teaches the small ones a Python list of calls",
        "tiny unknown native, else emulated (fenced)",
        "tools: unknown; toolspeak sends them, and learns from a refusal",
    ]
    assert status_of("--config", file, "--json") == 0
    models = json.loads(capsys.readouterr().out)["upstreams"][0]["models"]
    assert [(model["known_from"], model["family"]) for model in models] == [
        ("nobody", "qwen3-coder"),
        ("said", "llama3.2"),
        ("nobody", None),
    ]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--mode", "force", "--dialect", "hermes"), "emulated (hermes)"),
        (("--mode", "force", "--strategy", "decision"), "emulated (decision)"),
        (("--mode", "fallback"), "native, then emulated (fenced)"),
        (("--mode", "off"), "passes through unchanged"),
    ],
)
def test_options_change_what_is_done(
    upstream: Scripted, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], shown: str
) -> None:
    assert status_of("--upstream", upstream.url, *options) == 0
    assert f"* tiny unknown {shown}" in rows(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("plan", "tools", "words"),
    [
        (Plan(Way.NATIVE, ""), Support.NATIVE, "native"),
        (Plan(Way.NATIVE, ""), Support.LEAKS, "native, leaks rescued"),
        (Plan(Way.NATIVE, "", Settings(rescue=False)), Support.LEAKS, "native"),
        (Plan(Way.FORCE, "", Settings(strategy=Strategy.INLINE, dialect="react")), Support.NONE, "emulated (react)"),
        (Plan(Way.PLAIN, ""), Support.UNKNOWN, "removes tools"),
    ],
)
def test_a_plan_in_words(plan: Plan, tools: Support, words: str) -> None:
    assert plan_text(plan, tools) == words


def test_a_default_that_is_not_listed_is_shown_all_the_same(
    upstream: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("--upstream", upstream.url, "--model", "huge") == 0
    shown = rows(capsys.readouterr().out)
    assert "* huge (not listed) unknown native, else emulated (fenced)" in shown
    assert "tiny unknown native, else emulated (fenced)" in shown


SEVERAL = """
default = "fast"
[upstreams.dead]
url = "{nobody}"
[upstreams.box]
url = "{url}"
[upstreams.twin]
url = "{url}"
[models.fast]
upstream = "box"
model = "large"
support = "native"
[models.slow]
upstream = "dead"
model = "old"
support = "none"
"""


def test_one_upstream_that_is_silent_does_not_hide_the_others(
    upstream: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = configured(tmp_path, SEVERAL.format(nobody=NOBODY, url=upstream.url))
    assert status_of("--config", file) == 0
    captured = capsys.readouterr()
    assert rows(captured.out)[2:-2] == [
        f"dead {NOBODY}",
        "slow → old none emulated (fenced)",
        "",
        f"box {upstream.url}",
        "* fast → large native native",
        "tiny unknown native, else emulated (fenced)",
        "large unknown native, else emulated (fenced)",
        "",
        f"twin {upstream.url}",
    ]
    dead, hint, twin, ask = rows(captured.err)
    assert dead.startswith("no connection to the upstream at 127.0.0.1:9")
    assert hint == "is the server running, and is its URL right?"
    assert (twin, ask) == ("other upstreams have models of the same names", "ask for twin/MODEL")


def test_no_answer_at_all_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--upstream", NOBODY) == 1
    captured = capsys.readouterr()
    assert captured.out == f"127.0.0.1:9  {NOBODY}\n"
    assert "no connection" in captured.err


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "TOOLSPEAK_UPSTREAM_KEY"), (404, "…/v1"), (503, "try again in a moment")]
)
def test_an_upstream_that_refuses_gets_a_hint(
    upstream: Scripted, capsys: pytest.CaptureFixture[str], status: int, hint: str
) -> None:
    upstream.models = Refuses(status, "go\naway \x1b[2J")
    assert status_of("--upstream", upstream.url) == 1
    said = capsys.readouterr().err
    assert "go away \\x1b[2J" in said
    assert hint in said


def test_an_upstream_without_models_has_answered(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.models = []
    assert status_of("--upstream", upstream.url) == 0
    assert capsys.readouterr().err.strip() == "lists no models"


def test_names_cannot_write_to_the_terminal(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.models = ["\x1b[2Jevil\u202e"]
    assert status_of("--upstream", upstream.url, "--color", "never") == 0
    assert "* \\x1b[2Jevil\\u202e" in capsys.readouterr().out
    assert status_of("--upstream", upstream.url, "--json") == 0
    written = capsys.readouterr().out
    assert "\x1b" not in written
    assert json.loads(written)["upstreams"][0]["models"][0]["name"] == "\x1b[2Jevil\u202e"


def test_programs_get_json(upstream: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configured(tmp_path, SEVERAL.format(nobody=NOBODY, url=upstream.url))
    assert status_of("--config", file, "--json") == 0
    captured = capsys.readouterr()
    found: dict[str, Any] = json.loads(captured.out)
    dead, box, twin = found["upstreams"]
    assert captured.err == ""
    assert dead["error"].startswith("no connection")
    assert [model["way"] for model in dead["models"]] == ["force"]
    assert (box["name"], box["url"], box["wire"], box["error"]) == ("box", upstream.url, "openai_chat", None)
    assert box["models"][0] == {
        "name": "fast",
        "model": "large",
        "default": True,
        "listed": True,
        "upstream_tools": "native",
        "known_from": "said",
        "family": None,
        "way": "native",
        "dialect": "fenced",
        "plan": "native checked: the upstream has tools",
        "profile": None,
        "profile_suspended": None,
    }
    assert (twin["models"], twin["error"]) == ([], None)


def test_a_server_of_this_machine_is_found(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream.owner = "vllm"
    monkeypatch.setattr(local, "local_places", Mock(return_value=[upstream.url.removesuffix("/v1")]))
    assert status_of() == 0
    assert f"vllm {upstream.url}" in rows(capsys.readouterr().out)


def test_a_hung_upstream_is_not_waited_for_forever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("toolspeak.runtime.replica_client._SOON", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        assert status_of("--upstream", url) == 1
    assert "no answer from the upstream within" in capsys.readouterr().err


def test_on_a_terminal_a_long_name_is_cut_and_all_fits(upstream: Scripted) -> None:
    upstream.models = ["short", "meta-llama/" + "Llama-3.3-70B-Instruct-Turbo-" * 4]
    with terminal("models", "--upstream", upstream.url) as screen:
        assert screen.status() == 0
    lines = screen.plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("meta-llama/Llama-3.3" in line and "…  unknown  native" in line for line in lines)
    assert "\x1b[1m" in screen.shown, "the upstream's name is bold"


def test_without_colour_there_are_no_escapes(upstream: Scripted) -> None:
    with terminal("models", "--upstream", upstream.url, env={"NO_COLOR": "1"}) as screen:
        assert screen.status() == 0
    assert "\x1b" not in screen.shown
    assert "* tiny" in screen.shown
