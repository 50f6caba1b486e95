"""`toolspeak config check`: all mistakes, one on each line; without one, what a gateway would use (OBS-12)."""

from pathlib import Path

import pytest

from testkit.scripted_model import Scripted
from toolspeak.cli import main

SECRET = "sk-canary-5f3e2d1c"
WRONG = """\
unknown_modls = "strict"
[server]
port = 99999
prob = "off"
[upstreams.box]
url = "box:8000"
[[keys]]
tenant = "anna"
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("http_proxy", "https_proxy", "no_proxy", "ssl_cert_file"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def run(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return ended.value.code


def written(folder: Path, text: str) -> str:
    file = folder / "box.toml"
    file.write_text(text)
    file.chmod(0o600)
    return str(file)


@pytest.mark.parametrize("command", [("config", "check"), ("serve", "--config")], ids=["check", "serve"])
def test_each_mistake_is_a_line_of_its_own_obs12(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them were one line of 926 characters."""
    file = written(tmp_path, WRONG)
    assert run(*command, file) == 2
    captured = capsys.readouterr()
    first, *mistakes = captured.err.splitlines()
    assert captured.out == ""
    assert first == "toolspeak: the configuration has 5 mistakes:"
    assert [mistake.split(": ")[0] for mistake in mistakes] == [f"  {file}:{line}" for line in (1, 3, 4, 6, 7)]
    assert "unknown_modls: is no field here; did you mean 'unknown_models'?" in mistakes[0]
    assert "server.prob: is no field here; did you mean 'probe'?" in mistakes[2]


def test_a_single_mistake_is_one_line_obs12(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "[server]\nport = -1\n")
    assert run("config", "check", file) == 2
    assert capsys.readouterr().err == f"toolspeak: {file}:2: server.port: -1 is not an integer from 0 to 65535\n"


def test_it_shows_what_is_used_and_no_secret_obs12(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSPEAK_PORT", "5000")
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    file = written(
        tmp_path, f'[upstreams.groq]\n[models.fast]\nmodel = "m"\n[[keys]]\ntenant = "anna"\nkey = "{SECRET}"\n'
    )
    assert run("config", "check", file) == 0
    said = capsys.readouterr()
    lines = [line.split(maxsplit=1) for line in said.out.splitlines()]
    assert ["file", file] in lines
    assert ["environment", "TOOLSPEAK_PORT, GROQ_API_KEY, XDG_CONFIG_HOME"] in lines
    assert ["address", "127.0.0.1:5000"] in lines
    assert ["upstream", "groq  https://api.groq.com/openai/v1  (openai_chat, with a key)"] in lines
    assert ["model", "fast = groq:m"] in lines
    assert ["keys", "anna"] in lines
    assert SECRET not in said.out + said.err


def test_it_shows_whose_tokens_are_accepted_and_doubts_about_them_safe12(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """\
[upstreams.box]
url = "http://127.0.0.1:1/v1"
[access.jwt]
issuer = "https://login.example.com"
audience = "toolspeak"
jwks_url = "http://10.0.0.3:8080/certs"
[access.jwt.tenants."team-*"]
models = ["small"]
"""
    assert run("config", "check", written(tmp_path, text)) == 0
    captured = capsys.readouterr()
    assert "keys         tokens of https://login.example.com\n" in captured.out
    assert "access.jwt.jwks_url is http: keys that are replaced on the way accept forged tokens" in captured.err
    assert "access.jwt.tenants.'team-*' permits 'small', which is not a name of [models]" in captured.err


def test_a_variable_with_a_typo_is_named_obs12(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSPEAK_UPSTREEM", "http://127.0.0.1:9/v1")
    assert run("config", "check") == 0
    assert "TOOLSPEAK_UPSTREEM has no effect: there is no such variable; did you mean 'TOOLSPEAK_UPSTREAM'?" in (
        capsys.readouterr().err
    )


def test_it_asks_the_upstreams_obs12(upstream: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alive = f'[upstreams.alive]\nurl = "{upstream.url}"\n'
    assert run("config", "check", written(tmp_path, alive), "--upstreams") == 0
    assert "asked        alive answers\n" in capsys.readouterr().out
    dead = '[upstreams.dead]\nurl = "http://127.0.0.1:9/v1"\n'
    assert run("config", "check", written(tmp_path, alive + dead), "--upstreams") == 1
    said = capsys.readouterr().out
    reason = "no connection to the upstream at 127.0.0.1:9: Connection refused"
    assert f"asked        dead does not answer: {reason}. " in said
    assert "toolspeak up MODEL.gguf" in said


def test_a_file_in_the_current_folder_that_is_not_read_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], upstream: Scripted
) -> None:
    (tmp_path / "toolspeak.toml").write_text("[server]\nport = 5000\n")
    assert run("models", "--upstream", upstream.url) == 0
    assert "toolspeak.toml in this folder is not read" in capsys.readouterr().err
    assert run("models", "--upstream", upstream.url, "--config", "toolspeak.toml") == 0
    assert "is not read" not in capsys.readouterr().err
