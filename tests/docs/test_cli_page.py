"""docs/cli.md names every command, and the page for package indexes has no link that leads nowhere."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from toolspeak.cli import COMMANDS, toolspeak

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        yield f"{before}{name}"
        if isinstance(found, click.Group):
            yield from commands(found, f"{before}{name} ")


@pytest.mark.parametrize("command", list(commands(toolspeak)))
def test_a_command_is_on_the_page(command: str) -> None:
    assert re.search(rf"`(toolspeak )?{command}\b", PAGE), f"docs/cli.md does not name `toolspeak {command}`"


def test_the_table_has_the_order_of_the_help() -> None:
    table = re.findall(r"^\| `toolspeak (\w+)[^`]*` \|", PAGE, re.MULTILINE)
    assert list(dict.fromkeys(table)) == list(COMMANDS)


def test_the_page_for_package_indexes_has_no_relative_link() -> None:
    """An index shows it without the rest of the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / project["readme"]).read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https?:)[^)]*\)", page) == []
    for extra in project["optional-dependencies"]:
        assert f"toolspeak[{extra}]" in page
