"""Installs the servers of `pins.toml` into a cache outside the repository, as the clients are; what is there stays.

$XDG_CACHE_HOME/toolspeak/mcp-servers/npm/<name>     node_modules
$XDG_CACHE_HOME/toolspeak/mcp-servers/venv/<name>    a virtual environment
"""

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from tests.clients import install as clients

CACHE = clients.CACHE.parent / "mcp-servers"


@dataclass(frozen=True)
class Pinned(clients.Pinned):
    """One server."""

    @property
    @override
    def folder(self) -> Path:
        return CACHE / self.kind / self.name


def servers() -> dict[str, Pinned]:
    """Read the table of versions."""
    table = tomllib.loads((Path(__file__).parent / "pins.toml").read_text(encoding="utf-8"))
    return {
        name: Pinned(kind, name, tuple(row["packages"]), table["before"], tuple(row.get("flags", ())))
        for kind in ("npm", "venv")
        for name, row in table[kind].items()
    }


def install() -> None:
    """Install what is not there yet."""
    for pinned in servers().values():
        if not pinned.is_whole:
            _, seconds = clients._timed(pinned)
            print(f"installed {pinned.name} {pinned.version} in {seconds:.0f} s", file=sys.stderr, flush=True)


def program(name: str) -> str:
    """Return the program of a server."""
    pinned = servers()[name]
    folder = pinned.folder / ("node_modules/.bin" if pinned.kind == "npm" else "bin")
    return str(folder / f"mcp-server-{name}")
