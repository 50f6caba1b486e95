"""Settings are declared once: file, environment, options, JSON Schema and reference page follow the declarations."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tools.configuration_page import PAGE, SCHEMA, page, schema
from toolspeak.cli import toolspeak as command_line
from toolspeak.config.declared import Declared, walk
from toolspeak.config.file import parse_config
from toolspeak.config.forms import FORMS
from toolspeak.config.options import Options, overrides, settings_by_path
from toolspeak.config.schema import config_schema
from toolspeak.config.sections import ConfigFile
from toolspeak.errors import BadConfig

ROOT = Path(__file__).parents[3]
DOCS = sorted((ROOT / "docs").glob("*.md"))
ALL = list(walk(ConfigFile))
VALIDATOR = jsonschema_rs.validator_for(config_schema())
SECTIONS = ("server", "limits", "runs", "tools", "redis")


def problems(text: str) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, "t.toml", {})
    return list(caught.value.problems)


def examples() -> Iterator[tuple[str, str]]:
    for path in (*DOCS, ROOT / "README.md"):
        for number, text in enumerate(re.findall(r"```toml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)):
            if "[project" not in text and "[build-system" not in text:
                yield f"{path.name}-{number}", text


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.path)
def test_every_setting_has_help_and_a_known_form(each: Declared) -> None:
    assert re.fullmatch(r"[A-Z`\[].*\.", each.about.help), "a sentence"
    assert not each.about.form or each.about.form in FORMS
    if each.kind in (int, float):
        assert each.about.least is not None or each.about.above is not None
    if each.default in ("", None) and not is_dataclass(each.element) and not each.is_mapping:
        assert each.otherwise or each.about.is_required, "an empty default says nothing"


@pytest.mark.parametrize("each", [each for each in ALL if each.kind in (int, float)], ids=lambda each: each.path)
def test_a_number_out_of_its_range_is_refused_in_its_own_unit(each: Declared) -> None:
    section, _, name = each.path.rpartition(".")
    if section not in SECTIONS:
        section = section.replace("NAME", "groq")
    number = r"a number (?:of \w+|from \d+ to \d+)" if each.kind is float else "an integer"
    head = "[[keys]]\ntenant = 'a'\nkey = 'k'\n" if section == "keys[]" else f"[{section}]\n"
    found = problems(f"{head}{name} = -1\n")
    assert any(re.search(rf"\.{name}: -1 is not {number}", problem) for problem in found), found
    if each.about.unit and each.kind is float:
        assert any(f"a number of {each.about.unit}" in problem for problem in found)


def test_days_are_not_called_seconds() -> None:
    assert problems("[runs]\nkeep_days = -1") == ["t.toml:2: runs.keep_days: -1 is not a number of days above 0"]


def test_every_option_overrides_a_setting() -> None:
    assert {target.path for target in overrides().values()} <= settings_by_path().keys()
    assert overrides().keys() == {each.name for each in fields(Options)}


def test_every_flag_is_an_option_of_serve_and_every_option_a_flag() -> None:
    serve: Any = command_line.get_command(None, "serve")  # pyright: ignore[reportArgumentType] # it is not looked at
    named = {option.name for option in serve.params}
    assert {name for name, target in overrides().items() if target.has_flag} <= named
    assert not {name for name, target in overrides().items() if not target.has_flag and name != "profiles"} & named


def test_the_page_and_the_schema_are_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `just docs`"
    assert SCHEMA.read_text(encoding="utf-8") == schema(), "run `just docs`"
    assert json.loads(schema()) == config_schema()


def test_the_page_has_every_setting() -> None:
    text = page()
    assert all(f"| `{each.name}` |" in text for each in ALL if not is_dataclass(each.element) and not each.about.item)


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in examples()])
def test_every_example_of_the_docs_fits_the_schema(text: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nport = 70000",
        "[server]\nhosts = 'one'",
        "[limits]\ntools = 513",
        "[runs]\nkeep_days = 0",
        "[tools]\nmode = 'always'",
        "[tools]\nmodes = 'auto'",
        "[upstreams.box]\nurl = 'ftp://box'",
        "[[keys]]\nkey = 'k'",
        "[capabilities]\nbox = 'some'",
    ],
)
def test_the_schema_refuses_what_the_file_refuses(text: str) -> None:
    assert not VALIDATOR.is_valid(tomllib.loads(text))
    assert problems(text)
