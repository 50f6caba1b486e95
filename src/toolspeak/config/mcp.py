"""Reads `[mcp.NAME]`: the MCP servers whose tools runs may use.

[mcp.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv/papers"]
folders = ["/srv/papers"]
network = true
reads = ["read_text_file", "list_directory"]
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from toolspeak.config.declared import read_given
from toolspeak.config.environment import homes_folder, journal_folder, key_in
from toolspeak.config.forms import FORMS
from toolspeak.config.problems import not_one_of
from toolspeak.config.sections import McpSection
from toolspeak.config.shape import McpServer
from toolspeak.config.table import Table
from toolspeak.errors import BadField

_NAME: Final = re.compile(r"[A-Za-z0-9](?:_?[A-Za-z0-9-]){0,23}")
"""Without `__`, which separates the server's name from the tool's: `files__read_text_file`."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PATH: Final = "PATH"
_PATHS: Final = ("folders", "read")
_CONFINES: Final = ("sandbox", "network", *_PATHS)
_RESOLVED: Final = (*_CONFINES, "env", "set", "headers", "key_env")
"""Settings that depend on others or on the environment, and are read here; the rest is used as it is written."""


def read_mcp(name: str, table: Table, environ: Mapping[str, str]) -> McpServer:
    """Read one of `[mcp]`, which has either a command or a URL."""
    if not _NAME.fullmatch(name):
        table.problems.add(table.path, "a server's name is at most 24 letters, digits, - and single _")
    if ("command" in table.left) == ("url" in table.left):
        table.bad("command", "one of command and url is needed, and only one")
    confinement = _confinement(name, table, environ)  # before `url` is taken out of the table
    env, missing = _environment(table, environ)
    return McpServer(
        name,
        env=env,
        headers=_headers(table, environ),
        **confinement,
        missing=missing,
        **read_given(table, McpSection, skip=_RESOLVED),
    )


class _Confinement(TypedDict):
    sandbox: bool
    network: bool
    folders: tuple[str, ...]
    read: tuple[str, ...]
    home: str
    journal: str


def _confinement(name: str, table: Table, environ: Mapping[str, str]) -> _Confinement:
    """Read what the command may access. A server over HTTP runs elsewhere, so these settings are errors there.

    A command is confined by default: an MCP server that the configuration starts once had all rights of the gateway.
    """
    said = [field for field in _CONFINES if field in table.left]
    if said and "url" in table.left:
        table.bad(said[0], "it is for a server with a command; one with a url runs elsewhere")
    sandbox = table.flag("sandbox")
    if sandbox is False and (left := [field for field in said if field != "sandbox"]):
        table.bad(left[0], "it has no effect with sandbox = false; remove one of the two")
    home, own, recorded = environ.get("HOME", ""), homes_folder(environ), journal_folder(environ)
    paths = {
        field: tuple(_expand(each, home) for each in table.texts(field, FORMS["home_path"].check) or ())
        for field in _PATHS
    }
    return _Confinement(
        sandbox=sandbox is not False,
        network=table.flag("network") or False,
        folders=paths["folders"],
        read=paths["read"],
        home=str(own / name) if own is not None else "",
        journal=str(recorded) if recorded is not None else "",
    )


def _expand(path: str, home: str) -> str:
    """Replace `~/` by the user's home; nothing else is expanded."""
    return home + path[1:] if path.startswith("~/") else path


def server_named(servers: Sequence[McpServer], name: str) -> McpServer:
    """Return the server of that name. Raises `BadField` if there is none."""
    found = next((each for each in servers if each.name == name), None)
    if found is None:
        names = [each.name for each in servers]
        missing = f"there is no [mcp.{name}] in the configuration: add it, with a command or a url"
        raise BadField("mcp", not_one_of(name, names) if names else missing)
    return found


def _environment(table: Table, environ: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the environment of the command, and the variables of `env` that are not set.

    The command gets PATH, the variables that `env` names and those of `set`. It inherits no other, because the
    environment of the gateway has the keys of upstreams.
    """
    named = table.texts("env", _no_variable) or ()
    values = table.table("set")
    given = {name: environ[name] for name in (_PATH, *named) if name in environ}
    for name in values.left:
        if problem := _no_variable(name):
            values.bad(name, problem)
        given[name] = values.secret(name) or ""
    return tuple(given.items()), tuple(name for name in named if name not in given)


def _headers(table: Table, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Read `headers`, whose values may be keys, and `key_env`, whose value is sent as a bearer token."""
    inner = table.table("headers")
    for name in inner.left:
        if not _HEADER.fullmatch(name):
            inner.bad(name, "is not the name of a header")
    headers = {name.lower(): value for name in inner.left if (value := inner.secret(name)) is not None}
    variable = table.text("key_env", _no_variable)
    if variable and (key := key_in(environ, variable)):
        headers.setdefault("authorization", f"Bearer {key}")
    return tuple(headers.items())


def _no_variable(name: str) -> str | None:
    return None if _VARIABLE.fullmatch(name) else f"{name!r} is not the name of a variable"
