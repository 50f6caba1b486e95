"""Lists settings, command-line options and public names that are documented and unused; exits with 1 if there are any.

    python -m tools.unreached

- A setting is reached if its field is read outside `config`, in a function that the product reaches. A setting that
  `config` resolves first (`key_env` into a key) is followed to the field that holds its value then.
- An option of the command line is reached if its command uses the parameter. Options that a command only passes on are
  fields of `Options`, which `config` must read.
- A public name is reached if the page that docs/api.md points to for it shows it, or the package itself uses it; its
  fields, if anything reads them: the package, a test or a page.
"""

import ast
import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import click

import toolspeak
from testkit.report import close
from tools.api_reference import GROUPS
from tools.imports import Module, read_modules
from tools.unreached.reached import reached_functions
from tools.unreached.reads import Attribute, Read, Reads
from toolspeak.cli import toolspeak as command_line
from toolspeak.config.declared import declared_in
from toolspeak.config.options import Options
from toolspeak.config.sections import ConfigFile
from toolspeak.engine.guardrails import GUARDRAILS

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = "src/toolspeak"
READERS: Final = ("config.assemble", "config.local", "config.server_tls")
"""Modules of `config` that use settings; the others only read and resolve them."""
RESOLVED: Final = {
    "ConfigFile": "Config",
    "UpstreamSection": "Upstream",
    "ModelSection": "Model",
    "KeySection": "Key",
    "McpSection": "McpServer",
    "AccessSection": "Access",
    "JwtSection": "Jwt",
    "TenantSection": "TenantRule",
    "UpSection": "Up",
    "UpModelSection": "UpModel",
}
"""Sections of the file, and the class that `config` resolves each into: fields of one name hold the same."""
BECOMES: Final[Mapping[Attribute, Attribute]] = {
    ("ConfigFile", "network"): ("Upstream", "outbound"),
    ("ConfigFile", "tools"): ("Config", "settings"),
    ("RedisSection", "url"): ("Config", "redis"),
    ("RunsSection", "offer"): ("Config", "offer"),
    ("UpSection", "common"): ("Config", "up"),
    ("AccessSection", "common"): ("Config", "access"),
    ("JwtSection", "common"): ("Access", "jwt"),
    ("RunsSection", "durable"): ("Config", "runs"),
    ("RunsSection", "cells"): ("Durable", "cells"),
    ("CellSection", "database"): ("Durable", "cells"),
    ("UpstreamSection", "key_env"): ("Upstream", "key"),
    ("UpstreamSection", "urls"): ("Upstream", "more_urls"),
    ("UpstreamSection", "support"): ("ModelFacts", "tools"),
    ("UpstreamSection", "quirks"): ("ModelFacts", "quirks"),
    ("ModelSection", "support"): ("ModelFacts", "tools"),
    ("ModelFacts", "response_template"): ("ModelFacts", "leaks_as"),
    ("KeySection", "key"): ("Key", "digest"),
    ("KeySection", "key_env"): ("Key", "digest"),
    ("KeySection", "sha256"): ("Key", "digest"),
    ("McpSection", "set"): ("McpServer", "env"),
    ("McpSection", "key_env"): ("McpServer", "headers"),
}
"""Settings that are resolved into a field of another name."""
BY_NAME: Final = {("Settings", name) for name in GUARDRAILS}
"""Fields that `engine.plan.decide` reads by the names of a catalogue."""


class Product:
    """The source of the package, and the reads in the functions that it reaches."""

    def __init__(self, root: Path) -> None:
        """Read `src/toolspeak` below a folder."""
        self.modules: Mapping[str, Module] = read_modules(root, SOURCE, "toolspeak")
        self._reads = Reads(self.modules)
        reached = reached_functions(self.modules, toolspeak.__all__)
        self._by_attribute: defaultdict[Attribute, list[Read]] = defaultdict(list)
        for read in self._reads.found:
            if not read.function[1] or read.function in reached:
                self._by_attribute[read.attribute].append(read)

    def reads(self, attribute: Attribute, *, in_config: bool = False, seen: frozenset[Attribute] = frozenset()) -> bool:
        """Return whether a field is read; of a copy, whether the field that it becomes is."""
        return any(
            read.copied is None
            or (read.copied not in seen and self.reads(read.copied, in_config=in_config, seen=seen | {attribute}))
            for read in self._by_attribute[attribute]
            if in_config or not _only_resolves(read.function[0])
        )

    def has_field(self, attribute: Attribute) -> bool:
        """Return whether a class of the tree has a field."""
        return attribute[1] in self._reads.fields_of(attribute[0])

    @cached_property
    def attributes(self) -> set[str]:
        """The names of all attributes that are read, of whatever object."""
        return {name for _, name in self._by_attribute}


def _only_resolves(module: str) -> bool:
    inner = module.removeprefix("toolspeak.")
    return inner.partition(".")[0] == "config" and inner not in READERS


# ---------------------------------------------------------------- settings


def unread_settings(product: Product, kind: Any = ConfigFile) -> list[str]:  # noqa: ANN401 # a dataclass
    """Return the settings, as `Class.field`, whose value nothing uses."""
    found = dict.fromkeys(_declared(kind))
    return [f"{owner}.{name}" for owner, name in found if not _is_read(product, (owner, name))]


def _declared(kind: Any) -> Iterator[Attribute]:  # noqa: ANN401 # a dataclass
    for each in declared_in(kind):
        yield kind.__name__, each.field
        if each.is_table:
            yield from _declared(each.element)


def _is_read(product: Product, setting: Attribute) -> bool:
    if setting in BY_NAME:
        return True
    owner, name = setting
    target = BECOMES.get(setting) or (RESOLVED.get(owner, owner), name)
    return product.has_field(target) and product.reads(target)


# ---------------------------------------------------------------- the command line


def unused_options(product: Product) -> list[str]:
    """Return the options of commands, as `serve --port`, that nothing uses."""
    passed_on = {
        each.name
        for each in fields(Options)
        if product.reads(("Options", each.name), in_config=True)
        or each.metadata["overrides"].path.startswith("tools.")  # `Options.settings` reads these by name
    }
    return [*_unused_in(command_line, passed_on)]


def _unused_in(command: click.Command, passed_on: set[str], path: str = "") -> Iterator[str]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _unused_in(inner, passed_on, f"{path} {name}".strip())
    if command.callback is not None:
        used, rest = used_parameters(inspect.unwrap(command.callback))
        for each in command.params:
            if each.expose_value and each.name not in used and not (rest and each.name in passed_on):
                yield f"{path} {each.opts[0]}"


def used_parameters(function: Any) -> tuple[set[str], bool]:  # noqa: ANN401 # any function
    """Return the names that the body of a function uses, and whether it uses its `**options`."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    inside = {inner.id for each in node.body for inner in ast.walk(each) if isinstance(inner, ast.Name)}
    return inside, node.args.kwarg is not None and node.args.kwarg.arg in inside


# ---------------------------------------------------------------- public names


def unshown_names(product: Product, root: Path) -> list[str]:
    """Return the public names that their page does not show, and their fields that nothing reads."""
    written = " ".join(file.read_text(encoding="utf-8") for file in sorted((root / "docs").glob("*.md")))
    written += " ".join(file.read_text(encoding="utf-8") for file in sorted((root / "tests").rglob("*.py")))
    attributes = product.attributes | {name for _, name in BY_NAME} | set(re.findall(r"\.(\w+)", written))
    found: list[str] = []
    for names, guide in GROUPS.values():
        page = (root / "docs" / guide).read_text(encoding="utf-8")
        for name in names:
            public = getattr(toolspeak, name)
            if not re.search(rf"\b{name}\b", page) and not _is_used(product, name):
                found.append(name)
            if is_dataclass(public):
                found += [f"{name}.{each.name}" for each in fields(public) if each.name not in attributes]
    return found


def _is_used(product: Product, name: str) -> bool:
    """Return whether code of the package uses a name outside of the module that defines it."""
    home = getattr(getattr(toolspeak, name), "__module__", "")
    return any(
        isinstance(node, ast.Name) and node.id == name
        for module in product.modules.values()
        if module.name not in (home, "toolspeak")
        for node in ast.walk(module.syntax)
    )


def main() -> None:
    """Print each finding, and the closing line."""
    product = Product(ROOT)
    settings, options, names = unread_settings(product), unused_options(product), unshown_names(product, ROOT)
    for found, what in ((settings, "setting"), (options, "option"), (names, "public name")):
        for each in found:
            print(f"{what} {each} is documented, and nothing uses it: use it, or delete it with its documentation")
    close(
        "unreached",
        ok=not (settings or options or names),
        settings=settings,
        options=options,
        names=names,
    )


if __name__ == "__main__":
    main()
