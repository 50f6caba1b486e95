"""`toolspeak launch`: an agent gets its gateway and its settings, and leaves nothing behind (LAUNCH-1 to LAUNCH-6)."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from testkit.scripted_model import Scripted, text
from toolspeak.cli import main
from toolspeak.cli.launch.agents import AGENTS, AgentTarget, Recipe
from toolspeak.cli.launch.process import agent_environment
from toolspeak.cli.launch.shell_lines import shell_lines

LONG = 30.0
PINS = Path(__file__).parents[2] / "clients" / "pins.toml"
FAKE = f"""#!{sys.executable}
import json, os, signal, sys, time, urllib.request
seen = {{"env": dict(os.environ), "argv": sys.argv[1:]}}
seen["files"] = {{word: open(word).read() for word in [*sys.argv, *os.environ.values()] if "toolspeak-launch-" in word
                 and os.path.isfile(word)}}
url = os.environ.get("ANTHROPIC_BASE_URL")
if url and "ask" in sys.argv:
    messages = [{{"role": "user", "content": "Hi"}}]
    body = {{"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 9, "messages": messages}}
    headers = {{"content-type": "application/json", "authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"]}}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
    with opener.open(urllib.request.Request(url + "/v1/messages", json.dumps(body).encode(), headers)) as answer:
        seen["answer"] = json.load(answer)["content"][0]["text"]
def interrupted(number, frame):
    with open(os.environ["SEEN"] + ".signal", "w") as out:
        out.write(signal.Signals(number).name)
    sys.exit(7)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, interrupted)
with open(os.environ["SEEN"] + ".part", "w") as out:
    json.dump(seen, out)
os.rename(os.environ["SEEN"] + ".part", os.environ["SEEN"])
if "wait" in sys.argv:
    time.sleep({LONG:.0f})
if "die" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(3 if "fail" in sys.argv else 0)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with the files that the agents' own settings are in, and a PATH with only false agents."""
    home, programs, temporary = tmp_path / "home", tmp_path / "bin", tmp_path / "tmp"
    for folder in (home, programs, temporary):
        folder.mkdir()
    for name in (
        ".claude/settings.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".pi/agent/models.json",
        ".config/goose/config.yaml",
        ".config/opencode/opencode.json",
    ):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("the user's own")
    for agent in ("claude", "codex", "pi", "goose"):
        program = programs / agent
        program.write_text(FAKE)
        program.chmod(0o755)
    for name, value in {"HOME": home, "PATH": programs, "TMPDIR": temporary, "SEEN": tmp_path / "seen.json"}.items():
        monkeypatch.setenv(name, str(value))
    # The gateway of a developer who runs these tests must not be found.
    monkeypatch.setenv("TOOLSPEAK_PORT", "1")
    return home


def digests(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def launched(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "toolspeak", "launch", *args]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LONG, encoding="utf-8"
    )


def seen() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(os.environ["SEEN"]).read_text())
    return found


def is_clean() -> bool:
    return not list(Path(os.environ["TMPDIR"]).iterdir())


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["launch", *args])
    return ended.value.code


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.02)


# ---------------------------------------------------------------- it runs


def test_the_agent_reaches_the_model_through_a_gateway_of_its_own_launch1(home: Path, upstream: Scripted) -> None:
    upstream.says(text("Hello from the model"))
    before = digests(home)
    ended = launched("claude", "--upstream", upstream.url, "--", "ask", "--flag")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr.startswith("Claude Code uses tiny through http://127.0.0.1:")
    assert seen()["answer"] == "Hello from the model"
    assert seen()["argv"] == ["ask", "--flag"]
    assert seen()["env"]["ANTHROPIC_MODEL"] == "tiny"
    assert upstream.bodies[0]["model"] == "tiny"
    assert digests(home) == before
    assert is_clean()


def test_the_model_of_the_command_line_is_used_launch1(home: Path, upstream: Scripted) -> None:
    del home
    upstream.says(text("Hello"))
    assert launched("claude", "large", "--upstream", upstream.url, "--", "ask").returncode == 0
    assert upstream.bodies[0]["model"] == "large"


def test_a_gateway_that_runs_is_used_and_stays_launch2(
    home: Path, upstream: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    upstream.says(text("Hello"), text("Hello again"))
    with served(upstream, "--key", "sk-of-the-gateway") as url:
        refused = launched("claude", "--gateway", url, "--", "ask")
        assert refused.returncode == 2
        assert f"the gateway at {url} requires a key. Set TOOLSPEAK_KEY to it" in refused.stderr
        ended = launched("claude", "--gateway", url, "--key", "sk-of-the-gateway", "--", "ask")
        assert ended.returncode == 0, ended.stderr
        assert f"{url} (already running)" in ended.stderr
        monkeypatch.setenv("TOOLSPEAK_PORT", url.rpartition(":")[2])
        monkeypatch.setenv("TOOLSPEAK_KEY", "sk-of-the-gateway")
        found = launched("claude", "--", "ask")
        assert f"{url} (already running)" in found.stderr
    assert seen()["answer"] == "Hello again"


@contextmanager
def served(upstream: Scripted, *args: str) -> Generator[str]:
    command = [sys.executable, "-m", "toolspeak", "serve", "--upstream", upstream.url, "--port", "0", "--quiet", *args]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[-1]
        finally:
            process.kill()


def test_an_own_gateway_lets_nobody_else_in_launch2(home: Path, upstream: Scripted) -> None:
    """Each gateway has a key of its own, which the log does not show."""
    for _ in range(2):
        upstream.says(text("Hello"))
    keys: set[str] = set()
    for _ in range(2):
        assert launched("claude", "--upstream", upstream.url, "--", "ask").returncode == 0
        keys.add(seen()["env"]["ANTHROPIC_AUTH_TOKEN"])
    assert len(keys) == 2
    assert all(len(key) >= 32 for key in keys)
    [log] = home.parent.rglob("launch.log")
    written = log.read_text()
    assert "tiny@" in written
    assert not any(key in written for key in keys)


# ---------------------------------------------------------------- it ends


@pytest.mark.parametrize(("word", "status"), [("fail", 3), ("die", 137)])
def test_the_exit_status_of_the_agent_is_passed_on_launch4(
    home: Path, upstream: Scripted, word: str, status: int
) -> None:
    del home
    assert launched("claude", "--upstream", upstream.url, "--", word).returncode == status
    assert is_clean()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_belongs_to_the_agent_and_sigterm_is_passed_on_launch4(
    home: Path, upstream: Scripted, number: signal.Signals
) -> None:
    """A terminal sends SIGINT to all its processes; SIGTERM comes to toolspeak alone."""
    command = [sys.executable, "-m", "toolspeak", "launch", "pi", "--upstream", upstream.url, "--", "wait"]
    before = digests(home)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, process_group=0) as process:
        eventually(Path(os.environ["SEEN"]).exists)
        assert not is_clean()
        if number is signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        assert process.wait(LONG) == 7
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert Path(os.environ["SEEN"] + ".signal").read_text() == number.name
    assert is_clean()
    assert digests(home) == before


# ---------------------------------------------------------------- what the agent gets


def test_files_are_temporary_and_for_the_user_alone_launch3(home: Path, upstream: Scripted) -> None:
    before = digests(home)
    assert launched("pi", "--upstream", upstream.url).returncode == 0
    [(path, written)] = seen()["files"].items()
    assert 'registerProvider("toolspeak"' in written
    assert not Path(path).exists()
    assert digests(home) == before


def test_what_would_send_the_agent_elsewhere_is_taken_away_launch3() -> None:
    environ = {"ANTHROPIC_API_KEY": "sk-of-the-user", "CLAUDE_CODE_USE_BEDROCK": "1", "LANG": "C"}
    env = agent_environment(AGENTS["claude"], Recipe({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}), environ)
    assert env == {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "LANG": "C"}


def test_a_proxy_does_not_get_the_requests_to_the_gateway_launch3() -> None:
    environ = {"https_proxy": "http://proxy:3128", "no_proxy": "intern"}
    env = agent_environment(AGENTS["claude"], Recipe(), environ)
    assert env["NO_PROXY"] == env["no_proxy"] == "intern,127.0.0.1,localhost,::1"
    assert agent_environment(AGENTS["claude"], Recipe(), {}) == {}


@pytest.mark.parametrize("name", AGENTS)
def test_every_recipe_names_the_address_the_model_and_the_key(name: str) -> None:
    for api, recipe in AGENTS[name].recipes.items():
        made = recipe(AgentTarget("http://127.0.0.1:4141", "the-model", Path("/tmp/t"), "the-key", 32_768))  # noqa: S108
        whole = "\n".join([*made.env.values(), *made.arguments, *made.files.values()])
        assert all(word in whole for word in ("http://127.0.0.1:4141", "the-model", "the-key")), api
        assert all(path.is_relative_to("/tmp/t") for path in made.files)  # noqa: S108
        assert "the-key" not in made.arguments, "other users of the machine can see arguments"


def test_the_packages_to_install_are_those_that_are_tested() -> None:
    """Goose has no package of its name on a registry: the tests use the program inside another."""
    pins = tomllib.loads(PINS.read_text())
    tested = {row["packages"][0].partition("==")[0] for row in pins["venv"].values()}
    tested |= {row["packages"][0].rpartition("@")[0] for row in pins["npm"].values()}
    named = {agent.install.split()[-1] for agent in AGENTS.values() if agent.name != "goose"}
    assert named <= tested


# ---------------------------------------------------------------- what people see


def test_alone_it_lists_the_agents_launch5(home: Path) -> None:
    ended = launched()
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines][:4] == ["claude", "codex", "goose", "pi"], "installed ones are first"
    assert lines[0].endswith(str(home.parent / "bin" / "claude"))
    assert next(line for line in lines if line.startswith("gemini")).endswith(
        "not installed: npm install -g @google/gemini-cli"
    )
    assert len(lines) == len(AGENTS)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("clade",), "There is no agent 'clade'; did you mean 'claude'? Type `toolspeak launch` to list them."),
        (("gemini",), "Gemini CLI is not installed: there is no program 'gemini' on the PATH. Install it with `npm "),
        (("claude", "--api", "gemini"), "Claude Code cannot use the API 'gemini'. Pass --api anthropic, or leave it"),
        (("claude", "--gateway", "http://127.0.0.1:9"), "no toolspeak gateway answers at http://127.0.0.1:9. Start "),
        (("claude", "--gateway", "nonsense"), "--gateway: 'nonsense' is not a URL. Write it as http://127.0.0.1:4141"),
        (("claude", "--upstream", "http://127.0.0.1:9/v1"), "lists no models: its model server does not answer, or "),
    ],
)
def test_what_is_wrong_is_said_with_what_to_type_launch6(
    home: Path, args: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del home
    assert status_of(*args) == 2
    assert said in capsys.readouterr().err
    assert is_clean()


def test_an_unknown_model_is_said_with_those_there_are_launch6(
    home: Path, upstream: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    del home
    assert status_of("claude", "huge", "--upstream", upstream.url) == 2
    assert (
        "there is no model 'huge' here; there is tiny, large. Type `toolspeak launch claude tiny`, or `toolspeak up "
        in capsys.readouterr().err
    )


def test_without_a_model_server_it_says_how_to_run_one_launch6(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    monkeypatch.setattr("toolspeak.config.local.local_places", Mock(return_value=["http://127.0.0.1:9"]))
    assert status_of("claude") == 2
    assert "none runs on this machine. Run a model with `toolspeak up MODEL.gguf`, start Ollama" in (
        capsys.readouterr().err
    )


def test_print_shows_lines_that_a_shell_takes_and_no_key_launch5(
    home: Path, upstream: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines do the same as launch: here a shell runs them."""
    del home
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-user")
    with served(upstream, "--key", "sk-of-the-gateway") as url:
        shown = launched("claude", "--gateway", url, "--key", "sk-of-the-gateway", "--print", "--", "two words")
    assert shown.returncode == 0
    assert "sk-of" not in shown.stdout
    assert "unset ANTHROPIC_API_KEY\n" in shown.stdout
    assert not Path(os.environ["SEEN"]).exists()
    script = shown.stdout.replace("***", "sk")
    subprocess.run([shutil.which("sh", path=os.defpath) or "sh", "-c", script], check=True, timeout=LONG)
    assert seen()["argv"] == ["two words"]
    assert seen()["env"]["ANTHROPIC_BASE_URL"] == url
    assert "ANTHROPIC_API_KEY" not in seen()["env"]


def test_print_without_a_gateway_says_to_start_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del home
    assert status_of("codex", "--print") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# No gateway runs yet; start it first: toolspeak serve\n")
    assert "-c 'model_providers.toolspeak.base_url=\"http://127.0.0.1:4141/v1\"' \\\n" in shown


def test_long_commands_have_an_option_on_each_line() -> None:
    lines = list(shell_lines("codex", Recipe(arguments=("-c", "a" * 60, "-c", "b" * 60)), ["exec"]))
    assert lines == ["codex \\", f"  -c {'a' * 60} \\", f"  -c {'b' * 60} exec"]
