"""`[mcp.NAME]`: servers whose tools runs may use.

[mcp.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv/papers"]
env = ["HOME"]
reads = ["read_text_file", "list_directory"]
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import Final

from toolspeak.config.addresses import url_problem
from toolspeak.config.environment import key_in
from toolspeak.config.problems import not_one_of
from toolspeak.config.table import Table
from toolspeak.errors import BadField, McpFailed
from toolspeak.runtime.tools.action import Action
from toolspeak.runtime.tools.mcp.approved import Approved
from toolspeak.runtime.tools.mcp.server import SECONDS, McpServer

_NAME: Final = re.compile(r"[A-Za-z0-9](?:_?[A-Za-z0-9-]){0,23}")
"""Without `__`, which ends it in the names of its tools."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PATH: Final = "PATH"


def read_mcp(name: str, table: Table, environ: Mapping[str, str]) -> McpServer:
    """Read one of `[mcp]`: it has a command or a URL."""
    if not _NAME.fullmatch(name):
        table.problems.add(table.path, "a server's name is at most 24 letters, digits, - and single _")
    if ("command" in table.left) == ("url" in table.left):
        table.bad("command", "one of command and url is needed, and only one")
    env, missing = _environment(table, environ)
    return McpServer(
        name,
        command=table.text("command") or "",
        args=table.texts("args") or (),
        env=env,
        cwd=table.text("cwd", _relative) or "",
        url=table.text("url", url_problem) or "",
        headers=_headers(table, environ),
        tools=table.texts("tools") or (),
        trust=table.flag("trust") or False,
        reads=table.texts("reads") or (),
        seconds=table.seconds("seconds") or SECONDS,
        missing=missing,
    )


def server_named(servers: Sequence[McpServer], name: str) -> McpServer:
    """Find a server; raises `BadField` if there is none of that name."""
    found = next((each for each in servers if each.name == name), None)
    if found is None:
        names = [each.name for each in servers]
        raise BadField("mcp", not_one_of(name, names) if names else f"there is no [mcp.{name}] in the configuration")
    return found


def mcp_tools(
    servers: Sequence[McpServer], name: str, approved: Approved
) -> AbstractAsyncContextManager[Sequence[Action]]:
    """Start or reach a server, for as long as its tools are used."""
    server = server_named(servers, name)
    sdk_needed()
    from toolspeak.runtime.tools.mcp.actions import opened  # noqa: PLC0415 # the SDK is heavy, and an extra

    return opened(server, approved)


def sdk_needed() -> None:
    """Say what is missing if the SDK is; raises `McpFailed`."""
    if find_spec("mcp") is None:
        raise McpFailed("MCP needs a package more: pip install 'toolspeak[mcp]'")


def _environment(table: Table, environ: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return what the command finds in its environment, and what it was to find: PATH, what is named, what is set."""
    named = table.texts("env", _no_variable) or ()
    values = table.table("set")
    given = {name: environ[name] for name in (_PATH, *named) if name in environ}
    for name in values.left:
        if problem := _no_variable(name):
            values.bad(name, problem)
        given[name] = values.secret(name) or ""
    return tuple(given.items()), tuple(name for name in named if name not in given)


def _headers(table: Table, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Read `headers`, whose values may be keys, and `key_env`, which is sent as a bearer token."""
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


def _relative(path: str) -> str | None:
    return None if path.startswith("/") else f"{path!r} is not an absolute path"
