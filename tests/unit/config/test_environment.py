"""The environment: what our variables say, and where servers of this machine are looked for."""

from pathlib import Path

import pytest

from toolspeak import config
from toolspeak.config import Options
from toolspeak.config.environment import current, local_places, options_in
from toolspeak.engine.settings import Mode, Release, Strategy
from toolspeak.engine.verdict import Depth
from toolspeak.errors import BadConfig
from toolspeak.facts.model import Constrain

LOCAL = [
    "http://127.0.0.1:11434",
    "http://127.0.0.1:8080",
    "http://127.0.0.1:1234",
    "http://127.0.0.1:8000",
    "http://127.0.0.1:30000",
]


def test_the_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_MODEL", "m")
    assert current()["TOOLSPEAK_MODEL"] == "m"


def test_every_variable_is_heard() -> None:
    environ = {
        "TOOLSPEAK_UPSTREAM": "http://127.0.0.1:9/v1",
        "TOOLSPEAK_WIRE": "anthropic",
        "TOOLSPEAK_MODEL": "m",
        "TOOLSPEAK_UPSTREAM_KEY": "up\n",
        "TOOLSPEAK_KEY": "down",
        "TOOLSPEAK_HOST": "::1",
        "TOOLSPEAK_PORT": "80",
        "TOOLSPEAK_MODE": "Fallback",
        "TOOLSPEAK_DIALECT": "hermes",
        "TOOLSPEAK_STRATEGY": "decision",
        "TOOLSPEAK_RELEASE": "eager",
        "TOOLSPEAK_PROBE": "look",
        "TOOLSPEAK_REDIS_URL": "redis://:secret@127.0.0.1:6379/0",
        "TOOLSPEAK_RUNS_DATABASE": "postgresql://runs:secret@db/toolspeak",
        "TOOLSPEAK_CONSTRAINT": "text",
    }
    found = config.load(None, environ)
    (upstream,) = found.upstreams
    assert (upstream.name, upstream.url, upstream.wire) == ("127.0.0.1:9", "http://127.0.0.1:9/v1", "anthropic")
    assert upstream.key == "up"
    assert found.default == "m"
    assert [key.tenant for key in found.keys] == ["default"]
    assert (found.server.host, found.server.port) == ("::1", 80)
    assert (found.server.probe, found.redis) == (Depth.LOOK, "redis://:secret@127.0.0.1:6379/0")
    assert found.runs.database == "postgresql://runs:secret@db/toolspeak"
    assert "secret" not in repr(found)
    said = found.settings
    assert (said.mode, said.dialect) == (Mode.FALLBACK, "hermes")
    assert (said.strategy, said.release) == (Strategy.DECISION, Release.EAGER)
    assert said.constraint is Constrain.TEXT


def test_empty_variables_say_nothing() -> None:
    names = ("UPSTREAM", "WIRE", "MODEL", "KEY", "HOST", "PORT", "MODE", "FORCE_EMULATION", "DIALECT", "CONFIG")
    assert config.load(None, {f"TOOLSPEAK_{name}": "" for name in names}) == config.Config()


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_emulation_can_be_forced_mode6(value: str) -> None:
    assert options_in({"TOOLSPEAK_FORCE_EMULATION": value}) == Options(mode="force")
    both = {"TOOLSPEAK_FORCE_EMULATION": value, "TOOLSPEAK_MODE": "force"}
    assert options_in(both) == Options(mode="force")


@pytest.mark.parametrize("value", ["0", "false", "No", "off", ""])
def test_emulation_need_not_be_forced_mode6(value: str) -> None:
    assert options_in({"TOOLSPEAK_FORCE_EMULATION": value}) == Options()
    assert options_in({"TOOLSPEAK_FORCE_EMULATION": value, "TOOLSPEAK_MODE": "off"}) == Options(mode="off")


def test_chat_is_a_mode_of_the_environment_mode6() -> None:
    found = config.load(None, {"TOOLSPEAK_MODE": "chat"})
    assert (found.settings.chat, found.settings.mode) == (True, None)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"PORT": "80a"}, "TOOLSPEAK_PORT: '80a' is not an integer from 0 to 65535"),
        ({"WORKERS": "1000"}, "TOOLSPEAK_WORKERS: '1000' is not an integer from 0 to 256"),
        ({"WORKERS": "500"}, "TOOLSPEAK_WORKERS: 500 is not an integer from 0 to 256"),
        ({"PORT": "99999"}, "TOOLSPEAK_PORT: 99999 is not an integer from 0 to 65535"),
        ({"FORCE_EMULATION": "maybe"}, "TOOLSPEAK_FORCE_EMULATION: 'maybe' is not one of 1, true, yes, on, 0, false"),
        ({"FORCE_EMULATION": "1", "MODE": "off"}, "TOOLSPEAK_MODE: 'off' contradicts TOOLSPEAK_FORCE_EMULATION=1"),
        ({"MODE": "forse"}, "TOOLSPEAK_MODE: 'forse' is not one of off, fallback, force, auto; did you mean 'force'?"),
        ({"WIRE": "openai"}, "TOOLSPEAK_WIRE: 'openai' is not one of anthropic, gemini"),
        ({"DIALECT": "hermess"}, "TOOLSPEAK_DIALECT: 'hermess' is not one of"),
        ({"HOST": "a b"}, "TOOLSPEAK_HOST: 'a b' is not an address"),
        ({"UPSTREAM": "ollama"}, "TOOLSPEAK_UPSTREAM: 'ollama' is not a URL but a preset: pass --preset ollama"),
        ({"UPSTREAM": "ftp://h"}, "TOOLSPEAK_UPSTREAM: 'ftp://h' is not a URL such as"),
        ({"KEY": "sk\x01canary"}, "TOOLSPEAK_KEY: is not a string of visible ASCII characters"),
    ],
)
def test_what_is_wrong_is_said_with_its_variable(environ: dict[str, str], message: str) -> None:
    with pytest.raises(BadConfig) as caught:
        config.load(None, {f"TOOLSPEAK_{name}": value for name, value in environ.items()})
    assert str(caught.value).startswith(message)
    assert "canary" not in str(caught.value)
    assert len(caught.value.problems) == 1


def test_the_environment_is_heard_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text(
        '[server]\nport = 1\nhost = "::1"\n[tools]\nmode = "off"\n[models.a.tools]\nmode = "off"\n[upstreams.groq]'
    )
    found = config.load(file, {"TOOLSPEAK_PORT": "2", "TOOLSPEAK_MODE": "force"})
    assert (found.server.port, found.server.host) == (2, "::1")
    assert found.settings.mode is Mode.FORCE
    assert found.models[0].settings.mode is Mode.FORCE


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("", LOCAL[0]),
        ("0.0.0.0", LOCAL[0]),  # noqa: S104 # the case
        (":11434", LOCAL[0]),
        ("gpu", "http://gpu:11434"),
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        ("0.0.0.0:9", "http://127.0.0.1:9"),
        ("[::]:9", "http://127.0.0.1:9"),
        ("[::1]:9", "http://[::1]:9"),
        ("http://gpu", "http://gpu:80"),
        ("https://gpu/", "https://gpu:443"),
        ("https://gpu:9", "https://gpu:9"),
        ("user:pass@gpu", LOCAL[0]),
        ("what is this", LOCAL[0]),
    ],
)
def test_ollama_is_looked_for_where_its_variable_says(said: str, place: str) -> None:
    places = local_places({"OLLAMA_HOST": said})
    assert places[0] == place
    assert [each for each in places if each != place] == [each for each in LOCAL if each != place]


@pytest.mark.parametrize(("said", "workers"), [("auto", 0), ("AUTO", 0), ("0", 0), ("4", 4), ("", None)])
def test_workers_are_a_number_or_auto(said: str, workers: int | None) -> None:
    assert options_in({"TOOLSPEAK_WORKERS": said}).workers == workers
    assert config.load(None, {"TOOLSPEAK_WORKERS": said}).server.workers == (1 if workers is None else workers)
