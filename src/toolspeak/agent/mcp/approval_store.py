"""Definitions that a person has seen and approved: one small JSON file for each server.

    ~/.local/state/toolspeak/mcp/files.json

A server may describe a tool one way today and another way tomorrow. So the first use of a tool and every change of its
definition need a person's approval; where no person can be asked, the tool is left out.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from toolspeak.agent.mcp.definition import Definition
from toolspeak.config.shape import McpServer

FORMAT: Final = 1
LARGEST: Final = 1 << 20


class ApprovalState(StrEnum):
    """How a definition stands to what was approved."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"


AskTool: TypeAlias = Callable[[McpServer, Definition, ApprovalState], Awaitable[bool]]
"""A person's word on a definition that is new or has changed."""


async def approve_none(server: McpServer, definition: Definition, known: ApprovalState) -> bool:
    """Answer where there is no person."""
    del server, definition, known
    return False


class _Kept(msgspec.Struct, frozen=True):
    format: int
    place: str
    tools: dict[str, str]
    """Digests by the names of tools."""


class ApprovalStore:
    """What was allowed. Without a folder nothing is, and nothing is kept."""

    def __init__(self, folder: Path | None, ask: AskTool = approve_none) -> None:
        """Look at nothing yet."""
        self._folder: Final = folder
        self._ask: Final = ask

    def known(self, server: McpServer, definition: Definition) -> ApprovalState:
        """Return how a definition stands to what was approved."""
        digest = self._read(server).get(definition.name)
        if digest is None:
            return ApprovalState.NEW
        return ApprovalState.APPROVED if digest == definition.digest else ApprovalState.CHANGED

    async def allows(self, server: McpServer, definition: Definition) -> bool:
        """Return whether a tool may be used, and ask if nobody knows; a yes is kept."""
        known = self.known(server, definition)
        if known is ApprovalState.APPROVED:
            return True
        if not await self._ask(server, definition, known):
            return False
        self.keep(server, [definition])
        return True

    def keep(self, server: McpServer, definitions: Iterable[Definition]) -> None:
        """Note that these are allowed. Raises `OSError`."""
        if self._folder is None:
            return
        tools = self._read(server) | {each.name: each.digest for each in definitions}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self._path(self._folder, server), msgspec.json.encode(_Kept(FORMAT, server.place, tools)))

    def _read(self, server: McpServer) -> dict[str, str]:
        """Return the digests; what cannot be read, or is of another command or URL, approves nothing."""
        try:
            with self._path(self._folder or Path(), server).open("rb") as file:
                kept = msgspec.json.decode(file.read(LARGEST), type=_Kept)
        except (OSError, ValueError):
            return {}
        return kept.tools if (kept.format, kept.place) == (FORMAT, server.place) and self._folder else {}

    @staticmethod
    def _path(folder: Path, server: McpServer) -> Path:
        return folder / f"{server.name}.json"


def _write(path: Path, body: bytes) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(body, indent=2) + b"\n")
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
