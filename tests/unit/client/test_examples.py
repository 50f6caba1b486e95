"""The programs of examples/ run as they are, against a scripted upstream; `just check` checks their types."""

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from toolspeak import AsyncUpstream, FailureKind, Status
from toolspeak.testing import AsyncScriptedUpstream, Scripted, ScriptedUpstream, called, failed

FOLDER = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def saying(*script: Scripted) -> AsyncUpstream:
    return AsyncScriptedUpstream(ScriptedUpstream(*script))


def test_chat() -> None:
    assert example("chat").ask(saying("Oslo.", "Reykjavik.")) == ["Oslo.", "Reykjavik."]


def test_function_tools() -> None:
    script = ScriptedUpstream(called("get_weather", '{"city": "Oslo"}'), "Yes, it is cold.")
    assert example("function_tools").ask(AsyncScriptedUpstream(script)) == "Yes, it is cold."
    assert "-4 degrees C in Oslo" in str(script.requests[1].messages[-1])
    assert example("function_tools").ask(saying("It is.")) == "It is."


def test_stream() -> None:
    shown = "".join(example("stream").ask(saying(called("get_time", '{"city": "Oslo"}'))))
    assert shown == "[get_time] (5 tokens)"
    assert "".join(example("stream").ask(saying("It is noon."))) == "It is noon. (5 tokens)"


def test_async_chat() -> None:
    assert asyncio.run(example("async_chat").ask(saying("Oslo.", "Reykjavik."))) == ["Oslo.", "Reykjavik."]


def test_run_task(capsys: pytest.CaptureFixture[str]) -> None:
    ending = example("run_task").work(saying(called("read_notes"), "There are two."))
    assert (ending.status, ending.text) == (Status.DONE, "There are two.")
    assert capsys.readouterr().out == 'read_notes: ["buy milk","call Ada"]\n'


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("Oslo.", "Oslo."),
        (failed(FailureKind.TRANSIENT, "busy", 503), "try again later: busy"),
        (failed(FailureKind.AUTH, "no key", 401), "the upstream refuses (401): no key"),
    ],
)
def test_handle_errors(script: Scripted, said: str) -> None:
    assert example("handle_errors").ask("Where?", upstream=saying(script)) == said


def test_handle_errors_of_the_caller() -> None:
    ask = example("handle_errors").ask
    assert ask("Where?", [{"name": 7}]).startswith("the argument tools[0]")
    assert ask("Where?", upstream="ftp://box").startswith("the configuration is wrong: ")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_on_the_list_and_uses_public_names_only(file: Path) -> None:
    assert f"`{file.name}`" in (FOLDER / "README.md").read_text()
    assert "from toolspeak." not in file.read_text()


def test_a_program_without_a_server_says_what_to_do() -> None:
    environ = {"PATH": "", "HOME": "/nonexistent", "OLLAMA_HOST": "http://127.0.0.1:9"}
    command = [sys.executable, str(FOLDER / "handle_errors.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True, env=environ)
    assert done.stdout
    assert "Traceback" not in done.stderr
