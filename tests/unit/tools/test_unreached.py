"""`just unreached`: a setting, an option or a public name that is documented and unused is named."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from tools.unreached import __main__ as unreached
from tools.unreached.__main__ import ROOT, Product, unread_settings, unused_options, used_parameters
from toolspeak.declaration import setting

SHAPE = """
class Server:
    port: int = setting(1, "Port.")
    colour: str = setting("", "Colour.")
    greeting: str = setting("", "Greeting.")
    shade: str = setting("", "Shade.")

@dataclass
class Config:
    server: Server
    name: str
"""
USES = """
class Painted:
    colour: str
    shade: str

class Lamp:
    shade: str

def serve(config: Config):
    for one in [config.server]:
        listen(one.port)
    draw(Painted(one.colour, shade=one.shade or "dark"))

def draw(painted: Painted):
    print(painted.colour)
    print(Lamp().shade)

def never_called(server: Server):
    print(server.greeting)

serve(Config())
"""


@dataclass(frozen=True)
class Server:
    """The settings of the tree below."""

    port: int = setting(1, "Port.")
    colour: str = setting("", "Colour.")
    greeting: str = setting("", "Greeting.")
    shade: str = setting("", "Shade.")


def tree(root: Path, uses: str) -> Product:
    (root / "src/toolspeak/config").mkdir(parents=True)
    (root / "src/toolspeak/config/shape.py").write_text(SHAPE)
    (root / "src/toolspeak/config/file.py").write_text("def load(one: Server):\n    print(one.greeting)\n\nload()\n")
    (root / "src/toolspeak/gateway.py").write_text(uses)
    return Product(root)


def test_a_setting_is_read_by_a_reached_function_outside_config_or_its_copy_is(tmp_path: Path) -> None:
    # `greeting` is read by config alone and by a function without a caller; `shade` is copied, and its copy is not read
    assert unread_settings(tree(tmp_path, USES), Server) == ["Server.greeting", "Server.shade"]


def test_a_field_of_the_same_name_of_another_class_is_no_use(tmp_path: Path) -> None:
    other = "class Lamp:\n    port: int\n\ndef light(lamp: Lamp):\n    print(lamp.port)\n\nlight(Lamp())\n"
    assert "Server.port" in unread_settings(tree(tmp_path, other), Server)


def test_a_setting_that_is_added_to_the_product_and_used_nowhere_is_named(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src/toolspeak", tmp_path / "src/toolspeak", ignore=shutil.ignore_patterns("__pycache__"))
    reading = [file for file in tmp_path.rglob("*.py") if "settings.rescue" in file.read_text()]
    assert reading
    for file in reading:
        file.write_text(file.read_text().replace("settings.rescue", "settings.key"))
    assert unread_settings(Product(tmp_path)) == ["Settings.rescue"]


def test_an_option_whose_parameter_the_command_ignores_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @click.command()
    @click.option("--seed")
    @click.option("--port")
    @click.option("--never")
    def work(seed: str, **options: str) -> None:
        print(seed, options)

    group = click.Group("toolspeak", {"work": work})
    monkeypatch.setattr(unreached, "command_line", group)
    source = "class Options:\n    port: int\n\ndef use(said: Options):\n    print(said.port)\n\nuse(Options())\n"
    assert unused_options(tree(tmp_path, source)) == ["work --never"]


def test_the_body_of_a_function_uses_its_parameters_or_not() -> None:
    def one(first: int, second: int, **rest: int) -> None:  # noqa: ARG001 # that is the point
        print(first, rest)

    def other(first: int, **rest: int) -> None:  # noqa: ARG001 # as above
        del first

    assert "second" not in used_parameters(one)[0]
    assert used_parameters(one)[1]
    assert not used_parameters(other)[1]
