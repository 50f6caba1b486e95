"""The options of the command line say what the settings declare that they override."""

import re

import click
import pytest

from toolspeak import wires
from toolspeak.cli.serve import serve
from toolspeak.config.options import overrides, settings_by_path
from toolspeak.engine.settings import OPTIONS

SHOWN = {option.name: f"{option.metavar} {option.help}" for option in serve.params if isinstance(option, click.Option)}
FLAGS = [name for name, target in overrides().items() if target.has_flag]


@pytest.mark.parametrize("name", FLAGS)
def test_an_option_shows_the_choices_and_the_default_of_its_setting(name: str) -> None:
    each = settings_by_path()[overrides()[name].path]
    default = [] if each.otherwise or each.default in ("", None) else [str(each.default)]
    for word in (*each.choices, *default, *(wires.names() if name == "wire" else ())):
        assert re.search(rf"\b{re.escape(word)}\b", SHOWN[name]), word


def test_a_setting_of_a_turn_that_is_an_option_is_one_everywhere() -> None:
    assert {option.name: f"tools.{option.name}" for option in OPTIONS} == {
        name: overrides()[name].path for name in FLAGS if overrides()[name].path.startswith("tools.")
    }


def test_the_help_is_plain_text() -> None:
    shown = [SHOWN[option.name] for option in OPTIONS]
    assert not any(re.search(r"`|\]\(|\([A-Z]+-\d+\)", text) for text in shown)
