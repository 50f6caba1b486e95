"""Where profiles are kept, who may switch them off, and where the user's own word goes before them (CAP-5)."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from toolspeak import config
from toolspeak.config import Config, Options
from toolspeak.config.addresses import plain_url
from toolspeak.config.assemble import assemble
from toolspeak.config.environment import options_in, profiles_folder
from toolspeak.config.file import parse_config
from toolspeak.engine.plan import Way
from toolspeak.errors import BadConfig
from toolspeak.facts.model import Profile
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.profiles import Profiles
from toolspeak.runtime.transport import UpstreamTransport

URL = "http://127.0.0.1:9000/v1"
BOX = f'[upstreams.box]\nurl = "{URL}/"\n'
REQUEST = Request("m", (), (Tool("any"),))


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/a"}, "/state/toolspeak/profiles"),
        ({"HOME": "/home/a"}, "/home/a/.local/state/toolspeak/profiles"),
        ({"XDG_STATE_HOME": "state", "HOME": "/home/a"}, "/home/a/.local/state/toolspeak/profiles"),
        ({}, None),
    ],
)
def test_the_folder_is_that_of_the_users_state(environ: dict[str, str], folder: str | None) -> None:
    assert profiles_folder(environ) == (Path(folder) if folder else None)
    assert config.load(None, environ).profiles == profiles_folder(environ)


@pytest.mark.parametrize("value", ["0", "false", "No", "off"])
def test_the_environment_can_switch_them_off(value: str) -> None:
    environ = {"HOME": "/home/a", "TOOLSPEAK_PROFILES": value}
    assert options_in(environ) == Options(profiles=False)
    assert config.load(None, environ).profiles is None
    assert config.load(None, environ, Options(profiles=True)).profiles is not None, "who speaks later is heard"


def test_what_is_neither_yes_nor_no_is_said() -> None:
    with pytest.raises(BadConfig, match="TOOLSPEAK_PROFILES: 'maybe' is not one of 1, true"):
        options_in({"TOOLSPEAK_PROFILES": "maybe"})


def test_the_file_and_the_command_line_can_switch_them_off() -> None:
    home = {"HOME": "/home/a"}
    assert parse_config("profiles = false", "t.toml", home).profiles is None
    assert parse_config("profiles = true", "t.toml", home) == parse_config("", "t.toml", home)
    assert config.load(None, home, Options(profiles=False)).profiles is None
    with pytest.raises(BadConfig, match="profiles: 1 is not true or false"):
        parse_config("profiles = 1", "t.toml", home)


def way(tmp_path: Path, text: str, name: str) -> Way:
    """Return what becomes of a request for a model whose profile wants emulation."""
    found = parse_config(text, "t.toml", {"XDG_STATE_HOME": str(tmp_path)})
    Profiles(found.profiles, plain_url(URL)).keep(Profile("m", plain_url(URL), "hermes", {"mode": "force"}))
    directory = assemble(found, Mock(spec=UpstreamTransport))
    (route,) = [route for alias, route in directory._aliases.items() if alias == name]
    return route.plan(REQUEST).way


ALIAS = '[models.fast]\nmodel = "m"\n'


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (BOX + ALIAS, Way.FORCE),
        (BOX + ALIAS + '[models.fast.tools]\nmode = "auto"\n', Way.FORCE),
        (BOX + ALIAS + '[models.fast.tools]\nmode = "off"\n', Way.OFF),
        (BOX + ALIAS + 'support = "native"\n', Way.NATIVE),
        (BOX + 'support = "native"\n' + ALIAS, Way.NATIVE),
        (BOX + '[upstreams.box.facts]\ndialect = "react"\n' + ALIAS, Way.NATIVE),
    ],
    ids=["nothing", "auto", "a mode", "support of the model", "support of the upstream", "facts of the upstream"],
)
def test_the_users_own_word_goes_before_a_profile_cap5(tmp_path: Path, said: str, expected: Way) -> None:
    assert way(tmp_path, said, "fast") is expected


def test_a_url_has_one_way_to_be_written() -> None:
    assert plain_url("http://LOCALHOST:8080/v1/") == plain_url("http://127.0.0.1:8080/v1") == "http://127.0.0.1:8080/v1"
    assert plain_url("https://api.example.com") == "https://api.example.com:443"
    assert plain_url("no url") == "no url"


def test_a_config_that_is_made_by_hand_has_none() -> None:
    assert Config().profiles is None
